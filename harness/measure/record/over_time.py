"""Counts over time: heat maps of keys, and of latencies, by columns of equal width.

In JSON a row of counts over time is one string such as ``"12 0 7"``, to be small and readable.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, Self

import pydantic

from harness.measure.record.findings import RecordPart

_MOST_DIGITS = 18
_Columns = Annotated[int, pydantic.Field(ge=0, le=100_000)]
Width = Annotated[int, pydantic.Field(ge=1)]
"""Of a column, in seconds."""
_Bound = Annotated[float, pydantic.Field(ge=1e-6)]


def _counts(row: Any) -> Any:
    if not isinstance(row, str):
        return row
    counts = row.split()
    if not all(count.isdecimal() and len(count) <= _MOST_DIGITS for count in counts):
        raise ValueError("a row of counts cannot be read")
    return tuple(map(int, counts))


CountRow = Annotated[
    tuple[Annotated[int, pydantic.Field(ge=0, lt=10**_MOST_DIGITS)], ...],
    pydantic.BeforeValidator(_counts),
    pydantic.PlainSerializer(lambda row: " ".join(map(str, row)), return_type=str),
]
"""Counts by column, the earliest first."""


class KeyRangePart(RecordPart):
    """One row of a heat map: the partitions from ``first`` to ``last``, in key order.

    Attributes:
        written: Of the entities; the others were read. The last three are empty where they are
            not known.
        bytes: In both directions, of operations with entities.
        latency_us: Their mean service latency; 0 in a column without one.
    """

    first: str
    last: str
    entities: CountRow
    throttled: CountRow
    written: CountRow = ()
    bytes: CountRow = ()
    latency_us: CountRow = ()


class RangeRate(NamedTuple):
    """The rates of a range of keys, which is named by its first key."""

    first: str
    entities_per_s: float
    throttled_per_s: float


class HeatPart(RecordPart):
    """Key range x time: exact sums of the whole run under load.

    Attributes:
        start: UTC second at which the first column begins.
        ranges: In key order, at most 64. Queries over several partitions come first, a row for
            each table.
    """

    start: int
    width_s: Width
    columns: _Columns
    ranges: tuple[KeyRangePart, ...]

    @pydantic.model_validator(mode="after")
    def _hold_together(self) -> Self:
        for row in self.ranges:
            more = (row.written, row.bytes, row.latency_us)
            known = more if any(more) else ()
            _require_columns((row.entities, row.throttled, *known), self.columns)
        return self

    def rates(self, until_s: int, over_s: int) -> list[RangeRate]:
        """The mean rates of the last whole columns that cover ``over_s`` seconds, in key order.

        There are none while no column is whole. The counts are complete before ``until_s``, a UTC
        second; seconds behind the last column count as 0.
        """
        whole = (until_s - self.start) // self.width_s
        begin = max(0, whole - -(-over_s // self.width_s))
        seconds = (whole - begin) * self.width_s
        if seconds <= 0:
            return []
        return [
            RangeRate(
                row.first,
                sum(row.entities[begin:whole]) / seconds,
                sum(row.throttled[begin:whole]) / seconds,
            )
            for row in self.ranges
        ]


class LatencyCoursePart(RecordPart):
    """Latencies x time: the whole run under load.

    Attributes:
        bounds_ms: Upper bound of each row, the lowest first. A row begins at the bound of the row
            below it, the lowest one a tenth of a decade below its own bound.
    """

    start: int
    width_s: Width
    columns: _Columns
    bounds_ms: tuple[_Bound, ...]
    rows: tuple[CountRow, ...]

    @pydantic.model_validator(mode="after")
    def _hold_together(self) -> Self:
        if len(self.rows) != len(self.bounds_ms):
            raise ValueError(f"{len(self.rows)} rows have {len(self.bounds_ms)} bounds")
        _require_columns(self.rows, self.columns)
        return self


def _require_columns(rows: tuple[CountRow, ...], columns: int) -> None:
    if any(len(row) != columns for row in rows):
        raise ValueError(f"a row does not have {columns} counts")
