"""Samples of keys of bounded size, which merge exactly in any order."""

from __future__ import annotations

import dataclasses
import heapq
import zlib
from typing import Any

from harness.measure.counts.tally import PairCounts, add_counts
from harness.model.key_shapes import FEWEST_CREATED, growth_of, shapes_of

SIZE = 256
"""Keys in a sample; up to twice as many between two cuts."""
_MOST_ROWS = 64
_ALL = 2**32
_SPREAD = 2_654_435_761
_Row = tuple[int, float, str, str]
"""Rank, UTC seconds, PartitionKey, RowKey."""


def rank_of(key: str) -> int:
    """A number from 0 to 2^32 that depends on nothing but ``key``."""
    return zlib.crc32(key.encode("utf-8", "surrogatepass"))


@dataclasses.dataclass(slots=True)
class KeySample:
    """PartitionKeys, each once, and written rows: of both those with the lowest ranks.

    Which of them are kept depends on nothing but the whole set, not on order or on merges.
    """

    ranks: dict[str, int] = dataclasses.field(default_factory=dict)
    _limit: int = _ALL
    _rows: list[_Row] = dataclasses.field(default_factory=list)
    _row_limit: int = _ALL

    def add(self, partition_key: str) -> int:
        """Add a key that is not in `ranks`, and return its rank."""
        rank = rank_of(partition_key)
        if rank <= self._limit:
            self.ranks[partition_key] = rank
            if len(self.ranks) >= 2 * SIZE:
                self._cut_keys()
        return rank

    def add_row(self, rank: int, time_s: float, partition_key: str, row_key: str) -> None:
        """Add a written row; ``rank`` is that of its PartitionKey."""
        row_rank = (rank ^ int(time_s * 1e6) * _SPREAD) & (_ALL - 1)
        if row_rank <= self._row_limit:
            self._rows.append((row_rank, time_s, partition_key, row_key))
            if len(self._rows) >= 2 * SIZE:
                self._cut_rows()

    def merge(self, other: KeySample) -> None:
        self.ranks.update(other.ranks)
        self._rows += other._rows
        self._cut()

    def shapes(self) -> dict[str, Any]:
        """The fields of a `TableBehaviourPart` about keys."""
        self._cut()
        in_time = sorted((time_s, key) for _, time_s, key, _ in self._rows)
        created = [key for _, key in in_time]
        partitions = len(self.ranks)
        if partitions >= SIZE:
            # More are not counted: the density of the sample tells their number.
            partitions = max(SIZE, round((SIZE - 1) * _ALL / max(1, self._limit)))
        return {
            "partitions": partitions,
            "growth": growth_of(created) if len(created) >= FEWEST_CREATED else None,
            **shapes_of(sorted(self.ranks), [row for *_, row in self._rows]),
        }

    def _cut(self) -> None:
        self._cut_keys()
        self._cut_rows()

    def _cut_keys(self) -> None:
        if len(self.ranks) >= SIZE:
            kept = heapq.nsmallest(SIZE, ((rank, key) for key, rank in self.ranks.items()))
            self.ranks = {key: rank for rank, key in kept}
            self._limit = kept[-1][0]

    def _cut_rows(self) -> None:
        if len(self._rows) >= SIZE:
            self._rows = heapq.nsmallest(SIZE, self._rows)
            self._row_limit = self._rows[-1][0]


@dataclasses.dataclass(slots=True)
class BusiestRows:
    """How often the busiest rows were used: lower bounds, in bounded memory (Misra and Gries).

    A bound is low by 1 in `_MOST_ROWS` of all uses at most, in whatever order counts are merged.
    """

    _counts: PairCounts[int] = dataclasses.field(default_factory=dict)

    def add(self, row: tuple[str, str]) -> None:
        """Count a use of the row with this PartitionKey and RowKey."""
        self._counts[row] = self._counts.get(row, 0) + 1
        self._cut()

    def merge(self, other: BusiestRows) -> None:
        add_counts(self._counts, other._counts)
        self._cut()

    @property
    def most(self) -> int:
        return max(self._counts.values(), default=0)

    def _cut(self) -> None:
        if len(self._counts) >= 2 * _MOST_ROWS:
            kept = heapq.nlargest(_MOST_ROWS, self._counts.items(), key=lambda item: item[1])
            less = kept[-1][1]
            self._counts = {row: count - less for row, count in kept if count > less}
