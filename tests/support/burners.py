"""Processes that use up cores."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator

BURNERS = 2
"""On each core."""


@contextlib.contextmanager
def burnt_core() -> Iterator[int]:
    """A core that is kept busy by others; they end with the context, or by themselves."""
    core = min(os.sched_getaffinity(0))
    with burnt_cores({core}):
        yield core


@contextlib.contextmanager
def burnt_cores(cores: Iterable[int]) -> Iterator[None]:
    """Cores that are kept busy by others; they end with the context, or by themselves."""
    script = "import time\nend = time.time() + 60\nwhile time.time() < end: pass"
    burners = []
    try:
        for core in cores:
            for _ in range(BURNERS):
                # A session each: Linux may share cores between sessions, not between processes.
                command = [sys.executable, "-c", script]
                burner = subprocess.Popen(command, start_new_session=True)
                burners.append(burner)
                os.sched_setaffinity(burner.pid, {core})
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
