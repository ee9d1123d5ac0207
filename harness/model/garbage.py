"""Python's search for reference cycles, where objects leave none behind."""

from __future__ import annotations

import gc

_OBJECTS_BETWEEN_SEARCHES = 50_000


def search_rarely() -> None:
    """Search for cycles after 50,000 new objects instead of 700, and not in those that exist.

    For a process of its own, whose many short-lived objects form no cycles.
    """
    gc.freeze()
    gc.set_threshold(_OBJECTS_BETWEEN_SEARCHES)
