"""The loads of partitions second by second, as arrays: peaks, totals, what is over the limits.

Partitions are numbers of 32 bits, spread evenly. Memory does not grow with their number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from harness.measure.record.whatif import PeakPart
from harness.trace.whatif.digests import Array

WINDOWS_S = (1, 10)
"""Widths of the windows of the peaks."""
_HOTTEST = 5
_MOST_KEPT, _LEFT = 65_536, 32_768
"""Partitions whose load is known at a time, and how many are left of more."""
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
_EARLIER = WINDOWS_S[-1]
"""Is added to seconds, so that a window may begin before the first."""


class LoadPeak(NamedTuple):
    """The highest load over a window, and where and when it was."""

    load: float = 0.0
    last_second: int = 0
    partition: int = 0


class LoadSums:
    """The loads of the partitions under one scheme.

    Attributes:
        total: All loads.
        over: What is over the limit of a partition, or of the account, second by second.
        peaks: The highest loads of one partition over `WINDOWS_S`.
        account_peaks: The same of all together.
        estimated: The number of partitions is an estimate, within about 3 %.
    """

    def __init__(self, partition_per_s: float, account_per_s: float) -> None:
        self._limits = partition_per_s, account_per_s
        self._ids = np.empty(0, np.uint64)
        self._totals = np.empty(0)
        self.estimated = False
        self._digests = np.empty(0, np.uint64)
        # By id and second: of the latest seconds.
        self._keys, self._sums = np.empty(0, np.uint64), np.empty(0)
        self._seconds, self._of_all = np.empty(0, np.uint64), np.empty(0)
        self._judged = 0
        self._last = 0
        self.over = self.total = 0.0
        self.peaks = [LoadPeak()] * len(WINDOWS_S)
        self.account_peaks = [LoadPeak()] * len(WINDOWS_S)

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
        self._count(keys, sums)
        self._last = max(self._last, int((keys & _LOWER).max(initial=0)) - _EARLIER)
        of_all = summed(
            np.concatenate([self._seconds, keys & _LOWER]), np.concatenate([self._of_all, sums])
        )
        self.account_peaks = _peaks(self.account_peaks, *of_all)
        latest = of_all[0] > min(until, self._last)
        self._seconds, self._of_all = of_all[0][latest], of_all[1][latest]
        keys, sums = summed(
            np.concatenate([self._keys, keys]), np.concatenate([self._sums, sums]), runs=True
        )
        ids, seconds = keys >> _SHIFT, (keys & _LOWER).astype(np.int64) - _EARLIER
        one = ids != SEVERAL
        self.peaks = _peaks(self.peaks, keys[one], sums[one])
        self._judge(ids, seconds, sums, until)
        self._carry(keys, seconds, sums, until)

    def _count(self, keys: Array, sums: Array) -> None:
        """Bring loads to the totals of their partitions."""
        ids = keys >> _SHIFT
        ids, totals = summed(ids[ids != SEVERAL], sums[ids != SEVERAL], runs=True)
        if self.estimated:
            self._note(ids)
        self._ids, self._totals = summed(
            np.concatenate([self._ids, ids]), np.concatenate([self._totals, totals]), runs=True
        )
        if len(self._ids) > _MOST_KEPT:
            if not self.estimated:
                self.estimated = True
                self._note(self._ids)
            kept = np.sort(np.argsort(-self._totals, kind="stable")[:_LEFT])
            self._ids, self._totals = self._ids[kept], self._totals[kept]

    def _note(self, ids: Array) -> None:
        # Ids are in order: of these no more than the smallest matter.
        least = np.concatenate([self._digests, ids[:_COUNTED_BY]])
        self._digests = np.unique(least)[:_COUNTED_BY]

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
        if not self.estimated:
            return len(self._ids)
        share = (float(self._digests[-1]) + 1) / 2**32
        return round((len(self._digests) - 1) / share)

    def hottest(self) -> dict[int, float]:
        """The loads of the partitions with most of it, the hottest first."""
        places = np.arange(len(self._ids))
        if len(places) > _HOTTEST:
            places = np.sort(np.argpartition(-self._totals, _HOTTEST)[:_HOTTEST])
        places = places[np.argsort(-self._totals[places], kind="stable")]
        return dict(zip(self._ids[places].tolist(), self._totals[places].tolist(), strict=True))

    def rates(self, peaks: Sequence[LoadPeak], names: Mapping[int, str]) -> tuple[PeakPart, ...]:
        """Peaks as rates; in a trace that is shorter than a window the mean over the trace."""
        return tuple(
            PeakPart(
                width_s=width_s,
                per_s=peak.load / min(width_s, self._last + 1),
                at_s=max(0, peak.last_second - width_s + 1),
                partition=names.get(peak.partition, ""),
            )
            for width_s, peak in zip(WINDOWS_S, peaks, strict=True)
        )


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


def _peaks(known: Sequence[LoadPeak], keys: Array, sums: Array) -> list[LoadPeak]:
    """The highest loads over `WINDOWS_S`, of loads by id and second."""
    if not len(keys):
        return list(known)
    found = []
    before = np.concatenate([[0.0], np.cumsum(sums)])
    for peak, width_s in zip(known, WINDOWS_S, strict=True):
        loads = sums
        if width_s > 1:
            loads = before[1:] - before[np.searchsorted(keys, keys - np.uint64(width_s - 1))]
        at = int(loads.argmax())
        if loads[at] > peak.load:
            second = int(keys[at] & _LOWER) - _EARLIER
            peak = LoadPeak(float(loads[at]), second, int(keys[at] >> _SHIFT))
        found.append(peak)
    return found
