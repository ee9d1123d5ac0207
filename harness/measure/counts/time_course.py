"""The course of a run: its heat map, and its latencies over time. Memory is bounded.

Latencies over time have ten rows a decade of latency and a bounded number of columns of time. Both
merge exactly, so that percentiles over time are read off sums and never averaged.
"""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any, Self

from harness.measure.counts.heatmap import HeatMap, HeatView
from harness.measure.counts.time_columns import MOST_COLUMNS, Columns

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


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CourseView:
    """A course at one moment; None where nothing was counted, or was not asked for."""

    heat: HeatView | None = None
    service: LatencyCourseView | None = None
    response: LatencyCourseView | None = None


class Course:
    """Counts results by partition, by latency, and by the UTC second in which they were done."""

    __slots__ = ("_heat", "_response", "_service")

    def __init__(self) -> None:
        self._heat = HeatMap()
        self._service = LatencyCourse()
        self._response = LatencyCourse()

    def add(self, key: str, second: int, entities: int) -> None:
        """Count entities of partition ``key``, which were done in ``second``."""
        if entities:
            self._heat.add(key, second, entities)

    def add_latencies(
        self, second: int, service_s: Sequence[float], response_s: Sequence[float]
    ) -> None:
        """Count latencies of results that were done in ``second``."""
        if service_s:
            self._service.add(second, service_s)
        if response_s:
            self._response.add(second, response_s)

    def add_throttled(self, key: str, second: int) -> None:
        """Count one throttled attempt."""
        self._heat.add_throttled(key, second)

    def merge(self, other: Course) -> None:
        """Add every count of ``other``."""
        self._heat.merge(other._heat)
        self._service.merge(other._service)
        self._response.merge(other._response)

    def view(self, *, latencies: bool) -> CourseView:
        """What was counted; without ``latencies`` the heat map alone."""
        heat = self._heat.view()
        if not latencies:
            return CourseView(heat=heat)
        return CourseView(heat=heat, service=self._service.view(), response=self._response.view())

    def encode(self) -> list[Any]:
        """Its content for the wire."""
        return [self._heat.encode(), self._service.encode(), self._response.encode()]

    @classmethod
    def decode(cls, content: list[Any]) -> Self:
        """What `encode` gave."""
        made = cls()
        made._heat = HeatMap.decode(content[0])
        made._service = LatencyCourse.decode(content[1])
        made._response = LatencyCourse.decode(content[2])
        return made
