"""The loads of partitions second by second, as arrays: peaks, totals, what is over the limits.

Partitions are numbers of 32 bits, spread evenly. Memory does not grow with their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from harness.trace.whatif.digests import Array

_WINDOW_S = 10
"""Width of the window of the highest rate."""
_MOST_KEPT = 65_536
"""Partitions that are counted exactly."""
_MOST_CARRIED = 4096
"""Partitions whose latest seconds are kept for windows that end later."""
_COUNTED_BY = 4096
"""Smallest numbers, by which more partitions than are kept are counted."""
MOST_SECONDS = 2**31


class PartitionLoads(NamedTuple):
    """Loads of partitions in some seconds, in columns. `SEVERAL` stands for several partitions."""

    partition: Array
    second: Array
    amount: Array


SEVERAL = np.uint64(2**32 - 1)
_SHIFT, _LOWER = np.uint64(32), np.uint64(2**32 - 1)
_EARLIER = _WINDOW_S
"""Is added to seconds, so that a window may begin before the first."""


class LoadSums:
    """The loads of the partitions under one scheme.

    Attributes:
        total: All loads.
        over: What is over the limit of a partition, or of the account, second by second.
    """

    def __init__(self, partition_per_s: float, account_per_s: float) -> None:
        self._limits = partition_per_s, account_per_s
        # Of all partitions; of more than are kept the smallest ones.
        self._numbers = np.empty(0, np.uint64)
        self._estimated = False
        # By partition and second: of the latest seconds.
        self._keys, self._sums = np.empty(0, np.uint64), np.empty(0)
        self._judged = 0
        self._last = 0
        self._peak = 0.0
        self.over = self.total = 0.0

    def add(self, parts: Sequence[PartitionLoads], until: int) -> None:
        """Add loads; later ones are not before the second ``until``."""
        keys: Array = np.empty(0, np.uint64)
        sums: Array = np.empty(0)
        for part in parts:
            second = (part.second + _EARLIER).astype(np.uint64)
            keys = np.concatenate([keys, part.partition.astype(np.uint64) << _SHIFT | second])
            sums = np.concatenate([sums, part.amount])
        keys, sums = summed(keys[sums > 0], sums[sums > 0])
        self.total += float(sums.sum())
        self._count(keys >> _SHIFT)
        self._last = max(self._last, int((keys & _LOWER).max(initial=0)) - _EARLIER)
        keys, sums = summed(
            np.concatenate([self._keys, keys]), np.concatenate([self._sums, sums]), runs=True
        )
        ids, seconds = keys >> _SHIFT, (keys & _LOWER).astype(np.int64) - _EARLIER
        one = ids != SEVERAL
        self._peak = max(self._peak, _highest(keys[one], sums[one]))
        self._judge(ids, seconds, sums, until)
        self._carry(keys, seconds, sums, until)

    def _count(self, numbers: Array) -> None:
        """Count the partitions with these numbers."""
        known = np.unique(np.concatenate([self._numbers, numbers[numbers != SEVERAL]]))
        self._estimated |= len(known) > _MOST_KEPT
        self._numbers = known[:_COUNTED_BY] if self._estimated else known

    def _judge(self, ids: Array, seconds: Array, sums: Array, until: int) -> None:
        """Add what is over the limits in the seconds that are complete."""
        partition_per_s, account_per_s = self._limits
        chosen = (seconds >= self._judged) & (seconds < until)
        self._judged = max(self._judged, until)
        passing = sums[chosen]
        within = np.minimum(passing, partition_per_s)
        passing = np.where(ids[chosen] == SEVERAL, passing, within)
        _, of_all = summed(seconds[chosen].astype(np.uint64), passing)
        self.over += float(sums[chosen].sum() - np.minimum(of_all, account_per_s).sum())

    def _carry(self, keys: Array, seconds: Array, sums: Array, until: int) -> None:
        """Keep the latest seconds: of those that are complete, the partitions with most load."""
        complete = (seconds < until) & (seconds > min(until, self._last) - _EARLIER)
        whole = np.flatnonzero(complete)
        if len(whole) > _MOST_CARRIED:
            whole = np.sort(whole[np.argsort(-sums[whole], kind="stable")[:_MOST_CARRIED]])
        kept = np.concatenate([whole, np.flatnonzero(seconds >= until)])
        kept.sort()
        self._keys, self._sums = keys[kept], sums[kept]

    @property
    def partitions(self) -> int:
        """The number of partitions; of many an estimate, within about 3 %."""
        if not self._estimated:
            return len(self._numbers)
        share = (float(self._numbers[-1]) + 1) / 2**32
        return round((len(self._numbers) - 1) / share)

    @property
    def peak_per_s(self) -> float:
        """The highest rate of one partition over 10 s; in a shorter trace the mean over it."""
        return self._peak / min(_WINDOW_S, self._last + 1)


def summed(keys: Array, amounts: Array, *, runs: bool = False) -> tuple[Array, Array]:
    """Different keys in order, with the sums of their amounts.

    ``runs``: a few runs of the keys are in order already, which a stable sort finds.
    """
    if not len(keys):
        return keys, amounts
    order = np.argsort(keys, kind="stable" if runs else None)
    keys = keys[order]
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    return keys[starts], np.add.reduceat(amounts[order], starts)


def _highest(keys: Array, sums: Array) -> float:
    """The highest load over a window, of loads by partition and second."""
    if not len(keys):
        return 0.0
    before = np.concatenate([[0.0], np.cumsum(sums)])
    loads = before[1:] - before[np.searchsorted(keys, keys - np.uint64(_WINDOW_S - 1))]
    return float(loads.max())
