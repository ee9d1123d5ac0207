"""Ports for processes that a test starts and that cannot choose one themselves.

A port that was free a moment ago may be taken by another test, or by any outgoing connection,
before the process listens. So ports come from blocks below the range that the system gives out by
itself, and each test process holds a block of its own for as long as it runs.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import random
import socket
from collections.abc import Iterator

_FIRST, _LAST = 12_000, 32_000
_BLOCK = 200


def free_port() -> int:
    """A port that nobody listens on, and that no other test is given."""
    for port in _ports(os.getpid()):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("endless")


@functools.cache
def _ports(pid: int) -> Iterator[int]:
    """The ports of this process's block, over and over.

    Args:
        pid: The process, so that a fork takes a block of its own.
    """
    blocks = list(range(_FIRST, _LAST, _BLOCK))
    random.Random(pid).shuffle(blocks)
    for start in blocks:
        with contextlib.suppress(OSError):
            # Who listens on the first port of a block holds the block.
            _held.append(socket.create_server(("127.0.0.1", start)))
            return itertools.cycle(range(start + 1, start + _BLOCK))
    raise AssertionError(f"no block of ports from {_FIRST} to {_LAST} is free")


_held: list[socket.socket] = []
