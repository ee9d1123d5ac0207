"""Latencies x time: how many operations took how long, and when.

Rows are ten a decade of latency, columns a bounded number of time; both merge exactly, so that
percentiles over time are read off sums and never averaged.
"""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Iterable
from typing import Any, Self

from harness.measure.columns import MOST_COLUMNS, Columns

_LOWEST_S = 1e-4
_PER_DECADE = 10
_ROWS = 62
"""Up to 126 s."""
BOUNDS_S = tuple(_LOWEST_S * 10 ** (row / _PER_DECADE) for row in range(_ROWS))
"""Upper bound of each row; shorter latencies are in the first, longer ones in the last."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LatencyCourseView:
    """What was counted; rows by column.

    Attributes:
        start: UTC second at which the first column begins.
        width_s: Seconds that a column is wide.
        bounds_s: Upper bound of each row, from the lowest that has something in it.
        rows: Operations by column, the earliest first.
    """

    start: int
    width_s: int
    bounds_s: tuple[float, ...]
    rows: tuple[tuple[int, ...], ...]


class LatencyCourse:
    """Counts latencies by UTC second.

    Args:
        columns: So many columns of time are kept.
    """

    __slots__ = ("_columns", "_counts")

    def __init__(self, columns: int = MOST_COLUMNS) -> None:
        self._columns = Columns(columns)
        self._counts: dict[int, list[int]] = {}

    def add(self, second: int, latencies_s: Iterable[float]) -> None:
        """Count latencies of operations that were done in UTC second ``second``."""
        counts = self._counts.get(second // self._columns.width_s)
        if counts is None:
            counts = self._of(second)
        for latency_s in latencies_s:
            counts[bisect.bisect_left(BOUNDS_S, latency_s, 0, _ROWS - 1)] += 1

    def merge(self, other: LatencyCourse) -> None:
        """Add every latency of ``other``."""
        width_s = other._columns.width_s
        while self._columns.width_s < width_s:
            self._columns.double()
            self._join()
        for column, counts in other._counts.items():
            into = self._of(column * width_s)
            for row, count in enumerate(counts):
                into[row] += count

    def view(self) -> LatencyCourseView | None:
        """What was counted; None where nothing was."""
        columns = self._columns
        if not self._counts:
            return None
        empty = [0] * _ROWS
        places = range(columns.first, columns.last + 1)
        by_column = [self._counts.get(place, empty) for place in places]
        rows = list(zip(*by_column, strict=True))
        taken = [row for row in range(_ROWS) if any(rows[row])]
        shown = slice(taken[0], taken[-1] + 1)
        return LatencyCourseView(
            start=columns.first * columns.width_s,
            width_s=columns.width_s,
            bounds_s=BOUNDS_S[shown],
            rows=tuple(rows[shown]),
        )

    def encode(self) -> list[Any]:
        """Its content for the wire."""
        columns = self._columns
        return [
            columns.encode(),
            [
                [column, *(n for row, count in enumerate(counts) if count for n in (row, count))]
                for column, counts in self._counts.items()
            ],
        ]

    @classmethod
    def decode(cls, content: list[Any]) -> Self:
        """What `encode` gave."""
        made = cls()
        columns, rows = content
        made._columns = Columns.decode(columns)
        for column, *pairs in rows:
            counts = made._counts[column] = [0] * _ROWS
            for row, count in zip(pairs[::2], pairs[1::2], strict=True):
                counts[row] = count
        return made

    def _of(self, second: int) -> list[int]:
        """The counts of the column that ``second`` is in."""
        for _ in range(self._columns.cover(second)):
            self._join()
        return self._counts.setdefault(self._columns.at(second), [0] * _ROWS)

    def _join(self) -> None:
        """Every two columns become one."""
        joined: dict[int, list[int]] = {}
        for column, counts in self._counts.items():
            into = joined.setdefault(column // 2, [0] * _ROWS)
            for row, count in enumerate(counts):
                into[row] += count
        self._counts = joined
