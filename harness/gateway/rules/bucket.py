"""A token bucket: a rate with a burst."""

from __future__ import annotations


class Bucket:
    """A token bucket of entities. Time is an argument.

    The level may become negative. A full bucket passes a request that is larger than the burst:
    with a burst of 50, a transaction of 100 passes, and the next request waits for both. The
    entities that a query scanned are known only after it has passed.

    Args:
        per_s: Rate in entities/s.
        burst_s: Capacity in seconds of the rate.
        now_s: The time now; the bucket starts full.
    """

    __slots__ = ("_capacity", "_level", "_per_s", "used_s")

    def __init__(self, per_s: float, burst_s: float, now_s: float) -> None:
        self._per_s = per_s
        self._capacity = per_s * burst_s
        self._level = self._capacity
        self.used_s = now_s
        """Time of the last use."""

    def allows(self, entities: int, now_s: float) -> bool:
        """Whether ``entities`` may pass now."""
        if now_s > self.used_s:
            self._fill(now_s)
        return self._level >= entities or self._level >= self._capacity

    def holds(self, entities: int, now_s: float) -> bool:
        """Whether requests with ``entities`` in all may pass now, in any order."""
        self._fill(now_s)
        return self._level >= entities

    def take(self, entities: int, now_s: float) -> None:
        """Take ``entities``, whatever the level is."""
        if now_s > self.used_s:
            self._fill(now_s)
        self._level -= entities

    def give_back(self, entities: int, now_s: float) -> None:
        """Give back ``entities`` that should not have been taken."""
        self._fill(now_s)
        self._level = min(self._capacity, self._level + entities)

    def full(self, now_s: float) -> bool:
        """Whether the bucket is as full as a new one."""
        return self._level + (now_s - self.used_s) * self._per_s >= self._capacity

    def _fill(self, now_s: float) -> None:
        if now_s > self.used_s:
            filled = self._level + (now_s - self.used_s) * self._per_s
            self._level = filled if filled < self._capacity else self._capacity
            self.used_s = now_s
