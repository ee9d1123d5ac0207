"""A time limit for work in a library that limits only parts of it, or nothing."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


def bounded(work: Callable[[], _T], within_s: float) -> _T:
    """Do ``work`` in a thread of its own, which is abandoned after ``within_s`` seconds.

    Raises:
        TimeoutError: it took longer. Errors of ``work`` are raised as they are.
    """
    results: queue.SimpleQueue[tuple[_T | None, BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            results.put((work(), None))
        except BaseException as error:  # Raised again in the thread that waits.
            results.put((None, error))

    threading.Thread(target=run, daemon=True, name="bounded").start()
    try:
        result, error = results.get(timeout=within_s)
    except queue.Empty:
        raise TimeoutError from None
    if error is not None:
        raise error
    return result  # type: ignore[return-value]
