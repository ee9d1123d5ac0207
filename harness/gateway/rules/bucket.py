"""A rate with a burst: entities are saved up at the rate, and taken by what is let through."""

from __future__ import annotations


class Bucket:
    """Entities a second, of which some may come at once. Time is an argument.

    More than the burst at once passes when the bucket is full, and is owed afterwards: a
    transaction of 100 is let through by a burst of 50, and the next one waits for both. What a
    query scanned is known only afterwards, and owed too.

    Args:
        per_s: Entities a second.
        burst_s: Seconds' worth of them that a quiet time saves up.
        now_s: When it begins, full.
    """

    __slots__ = ("_capacity", "_level", "_per_s", "_then_s")

    def __init__(self, per_s: float, burst_s: float, now_s: float) -> None:
        self._per_s = per_s
        self._capacity = per_s * burst_s
        self._level = self._capacity
        self._then_s = now_s

    def allows(self, entities: int, now_s: float) -> bool:
        """Whether so many may pass now."""
        self._fill(now_s)
        return self._level >= min(entities, self._capacity)

    def take(self, entities: int, now_s: float) -> None:
        """Let so many pass, whether they may or not."""
        self._fill(now_s)
        self._level -= entities

    def full(self, now_s: float) -> bool:
        """True where nothing was taken lately: a new bucket would be the same."""
        self._fill(now_s)
        return self._level >= self._capacity

    def _fill(self, now_s: float) -> None:
        if now_s > self._then_s:
            filled = self._level + (now_s - self._then_s) * self._per_s
            self._level = filled if filled < self._capacity else self._capacity
            self._then_s = now_s
