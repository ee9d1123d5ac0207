"""Which requests failed and may be sent again, as all metering processes know it.

A retry over a new connection can reach another process than the first attempt. A process marks a
failed request before the client has the answer, so that the process with the retry finds the mark.
"""

from __future__ import annotations

import mmap
from hashlib import blake2b
from pathlib import Path

from harness.watch.books import Identity

_SLOTS = 1 << 16
_BYTES = 8
_EMPTY = bytes(_BYTES)


class Marks:
    """A file in memory with a slot for each of 65,536 identities.

    A mark is never removed: a request that has it needlessly is only joined elsewhere. A mark that
    another one replaced is lost; the attempts after it count as an operation of their own.

    Args:
        path: The file, which `create_marks` made.
    """

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._slots = mmap.mmap(file.fileno(), _BYTES * (_SLOTS + 1))

    def add(self, identity: Identity) -> None:
        at, mark = _place(identity)
        self._slots[at : at + _BYTES] = mark
        self._slots[:_BYTES] = mark

    def __contains__(self, identity: Identity) -> bool:
        # The first slot is empty as long as nothing failed, which is quicker to see.
        if self._slots[:_BYTES] == _EMPTY:
            return False
        at, mark = _place(identity)
        return self._slots[at : at + _BYTES] == mark


def create_marks(path: Path) -> None:
    path.write_bytes(bytes(_BYTES * (_SLOTS + 1)))


def _place(identity: Identity) -> tuple[int, bytes]:
    """Where the mark of ``identity`` is in the file, and the mark."""
    text = "\n".join(identity).encode("utf-8", "surrogatepass")
    digest = blake2b(text, digest_size=_BYTES).digest()
    return _BYTES * (1 + int.from_bytes(digest[:2]) % _SLOTS), digest
