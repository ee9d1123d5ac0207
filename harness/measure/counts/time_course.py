"""Counts over time in a bounded number of columns: where the columns are, and latencies over time.

All columns have the same width, which doubles when there are too many of them. They begin at
multiples of their width in UTC seconds, so that sums do not depend on the order of counting: two
columns always become one of twice the width.
"""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Iterable

from harness.measure.record.findings import rounded
from harness.measure.record.over_time import LatencyCoursePart

MOST_COLUMNS = 120

_LOWEST_S = 1e-4
_PER_DECADE = 10
_ROWS = 62
"""Up to 126 s."""
BOUNDS_S = tuple(_LOWEST_S * 10 ** (row / _PER_DECADE) for row in range(_ROWS))
"""Upper bound of each row; shorter latencies are in the first row, longer ones in the last."""


@dataclasses.dataclass(slots=True)
class Columns:
    """The columns ``first`` to ``last`` in use; their width is a power of two, in seconds."""

    width_s: int = 1
    first: int = 0
    last: int = -1

    def __len__(self) -> int:
        return self.last - self.first + 1

    @property
    def start(self) -> int:
        """UTC second at which the first column begins."""
        return self.first * self.width_s

    def at(self, second: int) -> int:
        """Number of the column of a UTC second."""
        return second // self.width_s

    def cover(self, second: int) -> int:
        """Make room for a UTC second. Returns how often the width doubled."""
        column = self.at(second)
        if not len(self):
            self.first = self.last = column
            return 0
        self.first = min(self.first, column)
        self.last = max(self.last, column)
        doubled = 0
        while len(self) > MOST_COLUMNS:
            self.double()
            doubled += 1
        return doubled

    def double(self) -> None:
        self.width_s *= 2
        if len(self):
            self.first //= 2
            self.last //= 2


@dataclasses.dataclass(slots=True)
class LatencyCourse:
    """Counts latencies by UTC second, in ten rows per decade of latency."""

    _columns: Columns = dataclasses.field(default_factory=Columns)
    _counts: dict[int, list[int]] = dataclasses.field(default_factory=dict)

    def add(self, second: int, latencies_s: Iterable[float]) -> None:
        """Count latencies of operations that were done in a UTC second."""
        counts = self._counts.get(second // self._columns.width_s)
        if counts is None:
            counts = self._of(second)
        for latency_s in latencies_s:
            counts[bisect.bisect_left(BOUNDS_S, latency_s, 0, _ROWS - 1)] += 1

    def merge(self, other: LatencyCourse) -> None:
        width_s = other._columns.width_s
        while self._columns.width_s < width_s:
            self._columns.double()
            self._join()
        for column, counts in other._counts.items():
            _add(self._of(column * width_s), counts)

    def view(self) -> LatencyCoursePart | None:
        """The counts so far; None if there are none."""
        columns = self._columns
        if not self._counts:
            return None
        empty = [0] * _ROWS
        places = range(columns.first, columns.last + 1)
        rows = list(zip(*(self._counts.get(place, empty) for place in places), strict=True))
        taken = [row for row in range(_ROWS) if any(rows[row])]
        shown = slice(taken[0], taken[-1] + 1)
        return LatencyCoursePart(
            start=columns.start,
            width_s=columns.width_s,
            columns=len(columns),
            bounds_ms=tuple(rounded(bound * 1000) for bound in BOUNDS_S[shown]),
            rows=tuple(rows[shown]),
        )

    def _of(self, second: int) -> list[int]:
        """The counts of the column of ``second``."""
        for _ in range(self._columns.cover(second)):
            self._join()
        return self._counts.setdefault(self._columns.at(second), [0] * _ROWS)

    def _join(self) -> None:
        """Join each pair of columns into one."""
        joined: dict[int, list[int]] = {}
        for column, counts in self._counts.items():
            _add(joined.setdefault(column // 2, [0] * _ROWS), counts)
        self._counts = joined


def _add(into: list[int], counts: Iterable[int]) -> None:
    for row, count in enumerate(counts):
        into[row] += count
