"""Prediction of the load on partitions and key ranges, from the mix and the keys alone.

Key ranges count because one server may serve neighbouring keys ("range partitions" of the
partitioning strategy). The largest of many random counts overestimates its share. Therefore one
half of the operations selects the hottest partition and range, and the other half measures them.
"""

from __future__ import annotations

import bisect
import collections
from collections.abc import Callable, Iterable, Sequence
from typing import Self, TypeVar

from harness.measure.record.findings import PredictionPart
from harness.model.operation import Operation, over_partitions, table_and_key

RANGES = 20
"""Number of ranges of each table, with equal numbers of partitions."""
SAMPLE = 8_000
"""Operations in a prediction. More would delay the start of a run and hardly improve it."""
_MOST_PARTITIONS = 20_000
"""If more partitions are loaded, every n-th of them defines the ranges."""
_BLOCK = 50
"""Consecutive operations that go to the same half, so that most tasks stay together."""
_T = TypeVar("_T")


class KeyRanges:
    """Ranges of key order, table by table, with the bounds of `PredictionPart.ranges`.

    Keys outside of all ranges of a table belong to its first or last range: a table grows at its
    ends.
    """

    def __init__(self, bounds: Iterable[tuple[str, str]]) -> None:
        self.bounds = tuple(bounds)
        self._firsts: dict[str, list[str]] = {}
        self._numbers: dict[str, list[int]] = {}
        for number, (first, _) in enumerate(self.bounds):
            table, key = table_and_key(first)
            self._firsts.setdefault(table, []).append(key)
            self._numbers.setdefault(table, []).append(number)

    @classmethod
    def over(cls, partitions: Iterable[str]) -> Self:
        """Ranges with equal numbers of ``partitions``."""
        tables: dict[str, list[str]] = {}
        for table, key in sorted({table_and_key(name) for name in partitions}):
            tables.setdefault(table, []).append(f"{table}/{key}" if table else key)
        return cls(bounds for loaded in tables.values() for bounds in _cut(loaded))

    def of(self, partition: str) -> int | None:
        """Number of the range of a partition; None if its table has none."""
        table, key = table_and_key(partition)
        firsts = self._firsts.get(table)
        if firsts is None:
            return None
        return self._numbers[table][max(0, bisect.bisect_right(firsts, key) - 1)]


class LoadShares:
    """Adds up what operations take: their entity counts, or what else is given for each.

    ``partitions`` are the loaded ones, or `thinned`.
    """

    def __init__(self, partitions: Iterable[str]) -> None:
        self.ranges = KeyRanges.over(partitions)
        self._seen = 0
        self._all = [0, 0]
        self._scans = 0
        self._partitions = [collections.Counter[str](), collections.Counter[str]()]
        self._ranges = [collections.Counter[int](), collections.Counter[int]()]

    def add(self, operation: Operation, amount: int) -> None:
        """Add what one operation takes. Blocks of operations go to the two halves in turn."""
        partition = operation.partition
        half = self._seen // _BLOCK % 2
        self._seen += 1
        self._all[half] += amount
        if over_partitions(partition):
            self._scans += amount
            return
        self._partitions[half][partition] += amount
        number = self.ranges.of(partition)
        if number is not None:
            self._ranges[half][number] += amount

    def largest(self, group: Callable[[str], _T], scattered: int = 1) -> float:
        """The share of the largest group of partitions.

        What goes over several partitions belongs to all ``scattered`` groups in equal parts.
        """
        halves = [collections.Counter[_T](), collections.Counter[_T]()]
        for half, counts in zip(halves, self._partitions, strict=True):
            for partition, amount in counts.items():
                half[group(partition)] += amount
        largest = _largest(halves, self._all)
        over = self._scans / (sum(self._all) or 1) / scattered
        return over + (0.0 if largest is None else largest[1])

    def prediction(self) -> PredictionPart:
        partition = _largest(self._partitions, self._all)
        key_range = _largest(self._ranges, self._all)
        return PredictionPart(
            hottest="" if partition is None else partition[0],
            hottest_share=0.0 if partition is None else partition[1],
            ranges=self.ranges.bounds,
            hottest_range=None if key_range is None else key_range[0],
            hottest_range_share=0.0 if key_range is None else key_range[1],
            over_partitions_share=self._scans / (sum(self._all) or 1),
        )


def thinned(names: Iterable[str], most: int = _MOST_PARTITIONS) -> tuple[list[str], int]:
    """``names``, or every n-th if there are more than ``most``; and the number of all names."""
    kept: list[str] = []
    step, number = 1, 0
    for name in names:
        if number % step == 0:
            kept.append(name)
        number += 1
        if len(kept) > most:
            kept = kept[::2]
            step *= 2
    return kept, number


def _cut(loaded: Sequence[str]) -> Iterable[tuple[str, str]]:
    count = min(RANGES, len(loaded))
    for number in range(count):
        first, end = (len(loaded) * place // count for place in (number, number + 1))
        yield loaded[first], loaded[end - 1]


def _largest(
    halves: Sequence[collections.Counter[_T]], everything: Sequence[int]
) -> tuple[_T, float] | None:
    """The item with the highest count in the first half, and its share in the second half."""
    choosing, telling = halves if everything[1] else (halves[0], halves[0])
    if not choosing:
        return None
    largest, _ = choosing.most_common(1)[0]
    return largest, telling[largest] / (everything[1] or everything[0])
