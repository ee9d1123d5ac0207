"""A token bucket: a rate with a burst."""

from __future__ import annotations

from collections.abc import Sequence

_HARDLY = 0.25
"""Of the capacity: so much is wrong at most, in the second after one that passed as a whole."""


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
        level = self._level
        # As `_fill`, without a call.
        if now_s > self.used_s:
            level += (now_s - self.used_s) * self._per_s
            if level > self._capacity:
                level = self._capacity
            self._level = level
            self.used_s = now_s
        return level >= entities or level >= self._capacity

    def hardly_used_by(self, entities: float) -> bool:
        """Whether it makes no difference when in a second these entities arrive."""
        return entities <= _HARDLY * self._capacity

    def holds(
        self, entities: int, now_s: float, limited: Sequence[Bucket] = (), overdraft: int = 0
    ) -> bool:
        """Whether some requests may pass from now on, in any order, and at any time.

        Args:
            entities: Of all requests but those that have to pass other buckets before this one.
            limited: These buckets. However much they are asked for, in no time do they pass more
                than what they hold at its beginning, what flows in, and the overdraft.
            overdraft: The most by which the level of one of them becomes negative.
        """
        self._fill(now_s)
        if not limited:
            return self._level >= entities
        at_first = at_most = float(entities + overdraft * len(limited))
        flows_in = 0.0
        for bucket in limited:
            bucket._fill(now_s)
            at_first += max(0.0, bucket._level)
            at_most += bucket._capacity
            flows_in += bucket._per_s
        # This bucket is nowhere emptied: neither from now on, nor from a time when it is full.
        return self._level >= at_first and self._capacity >= at_most and self._per_s >= flows_in

    def most(self, since_s: float, until_s: float) -> float:
        """The entities that pass at most in some time, but for what becomes negative."""
        self._fill(since_s)
        return max(0.0, self._level) + (until_s - since_s) * self._per_s

    def take(self, entities: int, now_s: float) -> None:
        """Take ``entities``, whatever the level is."""
        if now_s > self.used_s:
            self._fill(now_s)
        self._level -= entities

    def admit(self, asked: int, taken: int, now_s: float) -> bool:
        """Take ``taken`` if ``asked`` may pass now; return whether they may."""
        level, capacity = self._level, self._capacity
        # As `_fill`, without a call.
        if now_s > self.used_s:
            level += (now_s - self.used_s) * self._per_s
            if level > capacity:
                level = capacity
            self.used_s = now_s
        passes = level >= asked or level >= capacity
        self._level = level - taken if passes else level
        return passes

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
