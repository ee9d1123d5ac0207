"""Samples of keys of bounded size, which merge exactly in any order."""

from __future__ import annotations

import heapq
import zlib
from typing import Any, Self

from harness.model.entity import characters
from harness.model.key_shapes import (
    FEWEST_CREATED,
    are_dates,
    are_guids,
    growth_of,
    needs_escaping,
    unpadded,
)

SIZE = 256
"""Keys in a sample; up to twice as many between two cuts."""
_ALL = 2**32
_SPREAD = 2_654_435_761
_Row = tuple[int, float, str, str]
"""Rank, UTC seconds, PartitionKey, RowKey."""


def rank_of(key: str) -> int:
    """A number from 0 to 2^32 that depends on nothing but ``key``."""
    return zlib.crc32(key.encode("utf-8", "surrogatepass"))


class KeySample:
    """PartitionKeys, each once, and written rows: of both those with the lowest ranks.

    Which of them are kept depends on nothing but the whole set, not on order or on merges.
    """

    __slots__ = ("_limit", "_row_limit", "_rows", "ranks")

    def __init__(self) -> None:
        self.ranks: dict[str, int] = {}
        self._limit = _ALL
        self._rows: list[_Row] = []
        self._row_limit = _ALL

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
        """Add all keys of ``other``."""
        self.ranks.update(other.ranks)
        self._rows += other._rows
        self._cut()

    def shapes(self) -> dict[str, Any]:
        """The fields of a `TableBehaviourPart` about keys."""
        self._cut()
        keys = sorted(self.ranks)
        rows = [row for *_, row in self._rows]
        every = [*keys, *rows]
        in_time = sorted((time_s, key) for _, time_s, key, _ in self._rows)
        created = [key for _, key in in_time]
        return {
            "partitions": self.partitions,
            "growth": growth_of(created) if len(created) >= FEWEST_CREATED else None,
            "dates": are_dates(keys),
            "guids": are_guids(keys),
            "row_guids": are_guids(rows),
            "unpadded": unpadded(keys) is not None,
            "longest_key": max(map(characters, every), default=0),
            "escaped": _share(every, needs_escaping),
            "foreign": _share(every, lambda key: not key.isascii()),
        }

    @property
    def partitions(self) -> int:
        """Number of different PartitionKeys, exact up to `SIZE`."""
        self._cut()
        if len(self.ranks) < SIZE:
            return len(self.ranks)
        return max(SIZE, round((SIZE - 1) * _ALL / max(1, self._limit)))

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

    def encode(self) -> list[Any]:
        """For the wire."""
        self._cut()
        return [list(self.ranks), [list(row) for row in self._rows]]

    @classmethod
    def decode(cls, content: list[Any]) -> Self:
        keys, rows = content
        made = cls()
        made.ranks = {key: rank_of(key) for key in keys}
        made._rows = [tuple(row) for row in rows]
        made._cut()
        return made


def _share(keys: list[str], is_so: Any) -> float:
    return sum(map(is_so, keys)) / len(keys) if keys else 0.0
