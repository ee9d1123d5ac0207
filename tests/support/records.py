"""Records with a course over time, made by hand, for the tests of what is drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel

from harness.measure.record.enforced import EnforcedPart, MovePart
from harness.measure.record.over_time import HeatPart, KeyRangePart, LatencyCoursePart
from harness.measure.record.record import RunRecord
from harness.report.compare.comparison import named
from harness.report.compare.differences import Subject
from tests.support.golden import GOLDEN

KEPT = GOLDEN / "run-v1.json"
Part = TypeVar("Part", bound=BaseModel)


def kept(name: str = KEPT.name) -> RunRecord:
    """A record that a run kept."""
    return RunRecord.from_json((GOLDEN / name).read_bytes())


def altered(part: Part, **fields: Any) -> Part:
    """``part`` with other fields; a dict for a field that is a part itself names its fields."""
    parts = {name: getattr(part, name) for name in fields}
    update = {
        name: altered(parts[name], **value)
        if isinstance(value, dict) and isinstance(parts[name], BaseModel)
        else value
        for name, value in fields.items()
    }
    return part.model_copy(update=update)


def move(key: str, start_s: float, offline_s: float = 3.0) -> MovePart:
    return MovePart(start_s=start_s, offline_s=offline_s, key=key, from_server=0, to_server=1)


def enforcing(*moves: MovePart, partition: float = 250.0) -> EnforcedPart:
    """Limits of a gateway, and what it moved."""
    return EnforcedPart(
        partition_per_s=partition, account_per_s=2500.0, server_per_s=500.0, moves=moves
    )


def judged(result: str, limited_by: str = "unknown", **parts: Any) -> RunRecord:
    """The kept record with this verdict, and other parts."""
    return altered(altered(kept(), verdict={"result": result, "limited_by": limited_by}), **parts)


def run(
    rate: float = 1000.0, result: str = "throttled", name: str = "single-partition", **parts: Any
) -> RunRecord:
    """The kept record at a rate of its own, with another result and profile, and other parts."""
    like = kept()
    rates = {"mean": rate, "best_1s": rate}
    hot = altered(like.partitions[0], entities_per_s=rates, ratio=rate / 2000)
    changes = {
        "account": {"entities_per_s": rates, "ratio": rate / 20000},
        "partitions": (hot,),
        "profile": {**like.profile, "name": name},
        "verdict": {"result": result},
    }
    return altered(like, **changes | parts)


def subjects(*of: RunRecord | Sequence[RunRecord], names: Sequence[str] = ()) -> list[Subject]:
    """One subject for each record, or for each list of repeats."""
    every = ((one,) if isinstance(one, RunRecord) else tuple(one) for one in of)
    unnamed = [
        Subject(source=f"out/{letter}", records=records, name=name)
        for letter, records, name in zip("ABCDEFGH", every, (*names, *[""] * len(of)), strict=False)
    ]
    return [*named(unnamed)]


def line_with(text: str, part: str) -> str:
    """The first line that holds ``part``."""
    return next(line for line in text.splitlines() if part in line)


def with_partitions(
    record: RunRecord, keys: Sequence[str], *, folded: bool = False, **parts: Any
) -> RunRecord:
    """``record`` with partitions of these keys, all like its first but for ``parts``."""
    like = record.partitions[0]
    return record.model_copy(
        update={
            "partitions": tuple(like.model_copy(update={"key": key, **parts}) for key in keys),
            "partitions_folded": like.model_copy(update={"key": "(other)"}) if folded else None,
        }
    )


def with_heat(
    record: RunRecord,
    keys: Sequence[str],
    entities: Callable[[int, int], int],
    throttled: Callable[[int, int], int] = lambda row, column: 0,
    columns: int | None = None,
) -> RunRecord:
    """``record`` with a heat map: a row a key, counts by row and column."""
    width_s = 1
    columns = columns or sum(point.width_s for point in record.series)
    ranges = tuple(
        KeyRangePart(
            first=key,
            last=key,
            entities=tuple(entities(row, column) for column in range(columns)),
            throttled=tuple(throttled(row, column) for column in range(columns)),
            written=tuple(entities(row, column) // 3 for column in range(columns)),
            bytes=tuple(1000 * entities(row, column) for column in range(columns)),
            latency_us=tuple(1000 * (row + 1) for _ in range(columns)),
        )
        for row, key in enumerate(keys)
    )
    start = record.series[0].t
    heat = HeatPart(start=start, width_s=width_s, columns=columns, ranges=ranges)
    return record.model_copy(update={"heat": heat})


def course(start: int, rows: Sequence[Sequence[int]], lowest_ms: float = 1.0) -> LatencyCoursePart:
    """Operations by latency, ten rows a decade from ``lowest_ms``, and time."""
    return LatencyCoursePart(
        start=start,
        width_s=1,
        columns=len(rows[0]),
        bounds_ms=tuple(round(lowest_ms * 10 ** (row / 10), 3) for row in range(len(rows))),
        rows=tuple(map(tuple, rows)),
    )


def with_courses(record: RunRecord) -> RunRecord:
    """``record`` with latencies over time, some of a second's worth slow, and an offered rate."""
    start, columns = record.series[0].t, len(record.series)
    rows = [
        [max(0, 90 - 11 * abs(row - 6 - column % 3)) + (row == 24) for column in range(columns)]
        for row in range(25)
    ]
    rows = [[0 if column == 3 else count for column, count in enumerate(row)] for row in rows]
    series = tuple(
        point.model_copy(
            update={
                "offered": 250.0,
                "waiting": float(place % 5),
                "dropped": float(place % 7 == 6),
                "cpu_percent": 40.0 + place % 11,
            }
        )
        for place, point in enumerate(record.series)
    )
    return record.model_copy(
        update={
            "series": series,
            "service_over_time": course(start, rows),
            "response_over_time": course(start, rows, lowest_ms=2.0),
        }
    )
