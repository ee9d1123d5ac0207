"""Parts of a record: the series, the heat map, and latencies over time.

In JSON a row of counts is one string, so that a record stays small and readable: ``"12 0 7"``.
"""

from __future__ import annotations

from typing import Annotated, Any, Self

import pydantic

from harness.measure.record.findings import RecordPart
from harness.model.outcome import THROTTLING_STATUSES

_MOST_DIGITS = 18
_Columns = Annotated[int, pydantic.Field(ge=0, le=100_000)]
_Width = Annotated[int, pydantic.Field(ge=1)]
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


_Units = Annotated[float | None, pydantic.Field(exclude_if=lambda rate: rate is None)]


class SeriesPart(RecordPart):
    """Means per second over ``width_s`` seconds from ``t``, UTC.

    Attributes:
        failed: Operations that did not succeed. They include not found, conflict and precondition,
            which `Outcome.failed` does not count.
        throttled_by_status: Throttled attempts, with an item for each of `THROTTLING_STATUSES`. In
            JSON each is a field of its own, such as ``throttled_503``.
        waiting: Operations that were due and not sent, on average. 0 in a closed loop.
        retrying: Operations that were throttled and went on, on average. 0 in a watch, and in
            records of earlier versions.
        offered: Entities that the load asked for; None in a closed loop.
        cpu_percent: Of the busiest worker, in percent of one core; None if unknown.
        machine_percent: Of the busiest machine of a worker, in percent of the cores that the worker
            may use; None if unknown, and in records of earlier versions.
        others_percent: Of processes that do not belong to the run, likewise.
        request_units: Charged by Cosmos DB; None, and not in the JSON, where none were in the run.
        costliest_request_units: Those of the partition with the highest RU/s of the window.
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
    retrying: float = 0.0
    offered: float | None = None
    cpu_percent: float | None = None
    machine_percent: float | None = None
    others_percent: float | None = None
    request_units: _Units = None
    costliest_request_units: _Units = None

    @pydantic.model_validator(mode="before")
    @classmethod
    def _gather_statuses(cls, content: Any) -> Any:
        if not isinstance(content, dict) or "throttled_by_status" in content:
            return content
        by_status = {s: content.get(f"throttled_{s}", 0.0) for s in THROTTLING_STATUSES}
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


class KeyRangePart(RecordPart):
    """One row of a heat map: the partitions from ``first`` to ``last``, in key order."""

    first: str
    last: str
    entities: CountRow
    throttled: CountRow


class HeatPart(RecordPart):
    """Key range x time: exact sums of the whole run under load.

    Attributes:
        start: UTC second at which the first column begins.
        ranges: In key order, at most 64. Queries over several partitions come first, a row for
            each table.
    """

    start: int
    width_s: _Width
    columns: _Columns
    ranges: tuple[KeyRangePart, ...]

    @pydantic.model_validator(mode="after")
    def _hold_together(self) -> Self:
        for row in self.ranges:
            _require_columns((row.entities, row.throttled), self.columns)
        return self


class LatencyCoursePart(RecordPart):
    """Latencies x time: the whole run under load.

    Attributes:
        start: UTC second at which the first column begins.
        bounds_ms: Upper bound of each row, the lowest first. A row begins at the bound of the row
            below it, the lowest one a tenth of a decade below its own bound.
    """

    start: int
    width_s: _Width
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
