"""Where the load will fall, from the mix and the keys alone.

The source is driven without a service. What each operation counts for is added up by partition
and by range of key order, because neighbouring keys may be served together ("range partitions"
of the partitioning strategy).

Of many counts the largest is large by chance too. So one half of the operations says which
partition and which range are the hottest, and the other half how hot they are.
"""

from __future__ import annotations

import bisect
import collections
import dataclasses
from collections.abc import Iterable, Sequence
from typing import Self, TypeVar

from harness.model.operation import Operation, over_partitions

RANGES = 20
"""The key order of each table is cut into so many ranges, each with as many of its partitions."""
SAMPLE = 8_000
"""Operations that a prediction is made of, whoever asks for it, so that all say the same. The start
of a run waits for them; more would be hardly closer."""
_MOST_PARTITIONS = 20_000
"""Enough to cut ranges by; of more loaded partitions every n-th is taken."""
_BLOCK = 50
"""Operations that go to the same half: those of one task stay together."""
_T = TypeVar("_T")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """Shares of the entities that operations count for, from 0 to 1.

    Attributes:
        hottest: Name of the partition with the largest share; empty where all is scans of many.
        hottest_share: Its share.
        ranges: First and last loaded partition of each range.
        hottest_range: Number of the range with the largest share; None where there is none.
        hottest_range_share: Its share.
        over_partitions_share: Share of queries over several partitions, which belong to none.
    """

    hottest: str
    hottest_share: float
    ranges: tuple[tuple[str, str], ...]
    hottest_range: int | None
    hottest_range_share: float
    over_partitions_share: float

    @property
    def range_count(self) -> int:
        """How many ranges the table of the hottest range is cut into; 0 where there is none."""
        if self.hottest_range is None:
            return 0
        table, _ = table_and_key(self.ranges[self.hottest_range][0])
        return sum(table_and_key(first)[0] == table for first, _ in self.ranges)

    def account_rate_at(self, partition_per_s: float) -> float:
        """Entities a second of all together at which the hottest partition has this rate."""
        return partition_per_s / self.hottest_share if self.hottest_share else float("inf")


class KeyRanges:
    """Ranges of key order, table by table.

    Args:
        bounds: First and last partition of each range, as `Prediction.ranges` has them. What
            sorts before the first range of a table is counted for that one, as is for the last
            what sorts behind it: a table that grows does so at its ends.
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
        """Ranges that hold as many of ``partitions`` each."""
        tables: dict[str, list[str]] = {}
        for table, key in sorted({table_and_key(name) for name in partitions}):
            tables.setdefault(table, []).append(f"{table}/{key}" if table else key)
        return cls(bounds for loaded in tables.values() for bounds in _cut(loaded))

    def of(self, partition: str) -> int | None:
        """Number of the range that a partition is in; None where its table has none."""
        table, key = table_and_key(partition)
        firsts = self._firsts.get(table)
        if firsts is None:
            return None
        return self._numbers[table][max(0, bisect.bisect_right(firsts, key) - 1)]


class LoadShares:
    """Adds up what operations count for.

    Args:
        partitions: Names of the loaded partitions, or an even choice of them.
    """

    def __init__(self, partitions: Iterable[str]) -> None:
        self.ranges = KeyRanges.over(partitions)
        self._seen = 0
        self._all = [0, 0]
        self._scans = 0
        self._partitions = [collections.Counter[str](), collections.Counter[str]()]
        self._ranges = [collections.Counter[int](), collections.Counter[int]()]

    def add(self, operation: Operation) -> None:
        """Count one operation."""
        entities, partition = operation.entities_asked, operation.partition
        half = self._seen // _BLOCK % 2
        self._seen += 1
        self._all[half] += entities
        if over_partitions(partition):
            self._scans += entities
            return
        self._partitions[half][partition] += entities
        number = self.ranges.of(partition)
        if number is not None:
            self._ranges[half][number] += entities

    def prediction(self) -> Prediction:
        """What was counted."""
        partition = _largest(self._partitions, self._all)
        key_range = _largest(self._ranges, self._all)
        return Prediction(
            hottest="" if partition is None else partition[0],
            hottest_share=0.0 if partition is None else partition[1],
            ranges=self.ranges.bounds,
            hottest_range=None if key_range is None else key_range[0],
            hottest_range_share=0.0 if key_range is None else key_range[1],
            over_partitions_share=self._scans / (sum(self._all) or 1),
        )


def table_and_key(partition: str) -> tuple[str, str]:
    """Ending of the table's name and PartitionKey of a partition's name."""
    table, _, key = partition.rpartition("/")
    return table, key


def thinned(names: Iterable[str], most: int = _MOST_PARTITIONS) -> tuple[list[str], int]:
    """``names``, or where they are more than ``most`` every n-th of them; and their number."""
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
    """What the first half counts most of, and the second half's share of it."""
    choosing, telling = halves if everything[1] else (halves[0], halves[0])
    if not choosing:
        return None
    largest, _ = choosing.most_common(1)[0]
    return largest, telling[largest] / (everything[1] or everything[0])
