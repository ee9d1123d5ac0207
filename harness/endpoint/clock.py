"""The clock of a process: UTC seconds that never run backwards."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], float]
"""Returns UTC seconds. Differences are as precise as those of ``time.perf_counter``."""


def monotonic_utc() -> Clock:
    """A clock that starts at the machine's UTC time and advances with ``time.perf_counter``."""
    origin = time.time() - time.perf_counter()
    counter = time.perf_counter

    def now() -> float:
        return origin + counter()

    return now
