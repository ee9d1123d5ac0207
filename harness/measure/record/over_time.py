"""Parts of a record that hold the course of a run: its series, its heat map, its latencies.

A row of counts is one string, the counts of all columns in order with a blank between them, so
that a record stays small and readable: ``"12 0 7"``. `counts_of` reads it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Self

import pydantic

from harness.measure.record.findings import RecordPart
from harness.model.outcome import THROTTLING_STATUSES

_MOST_DIGITS = 18
_Columns = Annotated[int, pydantic.Field(ge=0, le=100_000)]
_Width = Annotated[int, pydantic.Field(ge=1)]
_Bound = Annotated[float, pydantic.Field(ge=1e-6)]


class SeriesPart(RecordPart):
    """Means a second over ``width_s`` seconds from ``t``, UTC.

    Attributes:
        failed: Operations that did not succeed. Not found, conflict and precondition are among
            them, which `Outcome.failed` does not count.
        throttled_by_status: Throttled attempts, with an item for each of `THROTTLING_STATUSES`. In
            JSON each is a field of its own, such as ``throttled_503``.
        waiting: Operations that were due and not sent, on average. 0 in a closed loop.
        dropped: Operations that were given up unsent, a second.
        offered: Entities a second that the load asked for; None where it takes what comes.
        cpu_percent: Of the busiest worker, in percent of one core; None where nobody looked.
    """

    t: int
    width_s: _Width
    entities: float
    operations: float
    failed: float
    attempts: float
    throttled: float
    throttled_by_status: dict[int, float]
    waiting: float = 0.0
    dropped: float = 0.0
    offered: float | None = None
    cpu_percent: float | None = None

    @pydantic.model_validator(mode="before")
    @classmethod
    def _gather_statuses(cls, content: Any) -> Any:
        if not isinstance(content, dict) or "throttled_by_status" in content:
            return content
        by_status = {status: content.get(name, 0.0) for name, status in _FIELDS.items()}
        return {**content, "throttled_by_status": by_status}

    @pydantic.model_serializer(mode="wrap")
    def _spread_statuses(self, to_dict: pydantic.SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields = {}
        for name, value in to_dict(self).items():
            if name == "throttled_by_status":
                fields.update({f"throttled_{status}": rate for status, rate in value.items()})
            else:
                fields[name] = value
        return fields


_FIELDS = {f"throttled_{status}": status for status in THROTTLING_STATUSES}


class KeyRangePart(RecordPart):
    """One row of a heat map: the partitions from ``first`` to ``last``, in key order.

    ``entities`` and ``throttled`` (attempts) are rows of counts.
    """

    first: str
    last: str
    entities: str
    throttled: str


class HeatPart(RecordPart):
    """Key range x time: the whole run under load, exact sums.

    Attributes:
        start: UTC second at which the first column begins.
        width_s: Seconds that a column is wide.
        columns: How many there are.
        ranges: In key order, at most 64; queries over several partitions come before them, a row a
            table.
    """

    start: int
    width_s: _Width
    columns: _Columns
    ranges: tuple[KeyRangePart, ...]

    @pydantic.model_validator(mode="after")
    def _hold_together(self) -> Self:
        for row in self.ranges:
            _require_counts(row.entities, self.columns)
            _require_counts(row.throttled, self.columns)
        return self


class LatencyCoursePart(RecordPart):
    """Latencies x time: the whole run under load, the window marked nowhere.

    Attributes:
        start: UTC second at which the first column begins.
        width_s: Seconds that a column is wide.
        columns: How many there are.
        bounds_ms: Upper bound of each row, lowest first; a row begins where the one below ends, the
            lowest one a tenth of a decade below its bound.
        rows: Operations by latency, rows of counts.
    """

    start: int
    width_s: _Width
    columns: _Columns
    bounds_ms: tuple[_Bound, ...]
    rows: tuple[str, ...]

    @pydantic.model_validator(mode="after")
    def _hold_together(self) -> Self:
        if len(self.rows) != len(self.bounds_ms):
            raise ValueError(f"{len(self.rows)} rows have {len(self.bounds_ms)} bounds")
        for row in self.rows:
            _require_counts(row, self.columns)
        return self


def counts_of(row: str) -> list[int]:
    """A row of counts as numbers."""
    return [int(count) for count in row.split()]


def _require_counts(row: str, columns: int) -> None:
    """See to it that a row has a count for each column.

    Raises:
        ValueError: it has not.
    """
    counts = row.split()
    if len(counts) != columns or not all(
        count.isdecimal() and len(count) <= _MOST_DIGITS for count in counts
    ):
        raise ValueError(f"a row of {columns} counts cannot be read")


def row_of(counts: Iterable[int]) -> str:
    """Numbers as a row of counts."""
    return " ".join(map(str, counts))
