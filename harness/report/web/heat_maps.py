"""Heat maps: key ranges, or latencies, over the time of a run; and what a map of keys shows.

Its pattern is said in a sentence, where the counts show it beyond doubt.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterable, Sequence

from harness.measure.record.over_time import HeatPart, KeyRangePart, LatencyCoursePart
from harness.measure.record.record import RunRecord
from harness.measure.record.whatif import SchemePart, WhatIfRecord
from harness.model.figures import percent
from harness.model.partition import Partition
from harness.report.events import moved_words
from harness.report.names import partition_name, shortened
from harness.report.web.frame import (
    Chart,
    ColourGrid,
    Layer,
    Line,
    Mark,
    clipped,
    named,
    over_run,
    together,
)

_PERCENTILES = ((50, "dot"), (90, "dash"), (99, ""))
"""Percentiles, and how their lines are drawn."""
_NAME_WIDTH = 60
_ROW_PX = 14
_LEAST_PX, _MOST_PX = 130, 640
_ROOM_PX = 40
_ROWS_PER_DECADE = 10
_BURST, _RARE = 4, 0.1
"""A column in this share of the time, with this many times as much as any other, is a burst."""


def key_heat(
    record: RunRecord | None,
    part: HeatPart,
    title: str,
    unit: str,
    *,
    throttled: bool = False,
    rate: float = 1.0,
) -> Chart:
    """The heat map of entities, or of ``throttled`` attempts, times ``rate``.

    ``record`` is None outside of a run; ``unit`` is what is counted.
    """
    what = "throttled" if throttled else "entities"
    widths = [part.width_s] * part.columns if record is None else covered(record, part)
    cells = _cells([getattr(row, what) for row in part.ranges], [width / rate for width in widths])
    began = record.series[0].t if record is not None and record.series else part.start
    made = Chart(
        title=f"{title} by key range and time",
        began=began,
        span=(0.0, part.width_s * part.columns),
        height=min(max(len(cells) * _ROW_PX + _ROOM_PX, _LEAST_PX), _MOST_PX),
        pattern="" if throttled else pattern(part),
        heat=ColourGrid(
            start_s=part.start - began,
            width_s=part.width_s,
            cells=cells,
            unit=f"{unit}/s",
            scale="refused" if throttled else "heat",
            most=_most(cells),
            names=[_name(row, part.ranges) for row in part.ranges],
            layers=() if throttled else _layers(part, widths, unit),
        ),
        marks=[] if record is None else _marks(record, part),
    )
    return made if record is None else over_run(record, made)


def scheme_heats(
    found: WhatIfRecord, shown: Iterable[tuple[str, str, SchemePart]]
) -> dict[str, Chart]:
    """The heat maps of schemes over the same time; each is shown by its id and its name."""
    maps = {
        f"chart-heat-{place}": key_heat(
            None, part.heat, f"{name}: {found.unit}/s", found.unit, rate=found.rate
        )
        for place, name, part in shown
        if part.heat is not None and part.heat.ranges
    }
    return together(maps)


def _cells(rows: Sequence[Sequence[int]], of: Sequence[float]) -> list[list[float | None]]:
    """Each count by what its column is held against; empty ones, so that small ones are seen."""
    return [
        [float(f"{n / one:.4g}") if n else None for n, one in zip(row, of, strict=True)]
        for row in rows
    ]


def _layers(part: HeatPart, widths: Sequence[int], unit: str) -> list[Layer]:
    """Reads and writes apart, bytes, latencies; none where a range does not have them."""
    if not all(row.written for row in part.ranges):
        return []
    read = [[*map(operator.sub, row.entities, row.written)] for row in part.ranges]
    written = [row.written for row in part.ranges]
    sent = _cells([row.bytes for row in part.ranges], [1000.0 * width for width in widths])
    took = _cells([row.latency_us for row in part.ranges], [1000.0] * part.columns)
    layers = [("bytes", sent, "KB/s"), ("latency", took, "ms on average")]
    if any(map(any, written)) and any(map(any, read)):
        both = (("reads", read), ("writes", written))
        layers[:0] = [(name, _cells(rows, widths), f"{unit}/s") for name, rows in both]
    return [
        Layer(name=name, cells=cells, unit=of, scale="heat", most=_most(cells))
        for name, cells, of in layers
    ]


def _most(cells: Sequence[Sequence[float | None]]) -> float:
    """The highest rate that has a colour of its own: a single burst does not flatten the rest."""
    columns = sorted(
        max((rate for rate in one if rate), default=0.0) for one in zip(*cells, strict=True)
    )
    usual = columns[int(len(columns) * (1 - _RARE)) - 1] if columns else 0.0
    highest = columns[-1] if columns else 0.0
    return usual if 0 < usual * _BURST < highest else highest or 1.0


def _marks(record: RunRecord, part: HeatPart) -> list[Mark]:
    """The times at which partitions were offline because they moved, in their rows."""
    found = []
    for move in () if record.enforced is None else record.enforced.moves:
        row = _row_of(move.key, part.ranges, redacted=record.redacted)
        at = clipped(record, move.start_s, move.start_s + move.offline_s)
        if row is not None and at is not None:
            text = moved_words(move, named(move.key, _NAME_WIDTH))
            found.append(Mark(row=row, start_s=at[0], end_s=at[1], text=text))
    return found


def _row_of(key: str, ranges: Sequence[KeyRangePart], *, redacted: bool) -> int | None:
    """The row of a partition; None where no row has it.

    Aliases are not in the order of their keys, so they are found at the ends of a range only.
    """
    for place, row in enumerate(ranges):
        if key in (row.first, row.last):
            return place
    if redacted:
        return None
    for place, row in enumerate(ranges):
        if not Partition.named(row.first).whole_table and row.first < key < row.last:
            return place
    return None


def latency_heat(record: RunRecord, part: LatencyCoursePart, kind: str) -> Chart:
    widths = covered(record, part)
    cells = _cells(part.rows, widths)
    began = record.series[0].t if record.series else part.start
    xs = [part.start - began + (column + 0.5) * part.width_s for column in range(part.columns)]
    heat = ColourGrid(
        start_s=part.start - began,
        width_s=part.width_s,
        cells=cells,
        unit="operations/s",
        scale="latency",
        most=max((rate for row in cells for rate in row if rate), default=1.0),
        edges=[part.bounds_ms[0] / 10 ** (1 / _ROWS_PER_DECADE), *part.bounds_ms],
        log=True,
    )
    lines = [
        Line(name=f"p{q}", tone="waiting", unit="ms", xs=xs, ys=percentiles(part, q), look=look)
        for q, look in _PERCENTILES
    ]
    title = f"{kind.capitalize()} latency in ms"
    return over_run(record, Chart(title=title, lines=lines, heat=heat, height=240, log=True))


def percentiles(part: LatencyCoursePart, q: float) -> list[float | None]:
    """The ``q``-th percentile (0 to 100) of each column in ms; None where a column is empty.

    A percentile is the upper bound of the row that it falls into: it exceeds the true one by less
    than the height of a row.
    """
    found = []
    for counts in zip(*part.rows, strict=True):
        rank = max(1, math.ceil(q / 100 * sum(counts)))
        upto = zip(part.bounds_ms, itertools.accumulate(counts), strict=True)
        found.append(next((bound for bound, count in upto if count >= rank), None))
    return found


def covered(record: RunRecord, part: HeatPart | LatencyCoursePart) -> list[int]:
    """Seconds of each column that were under load: the first and the last may be cut."""
    first, end = part.start, part.start + part.columns * part.width_s
    if record.series:
        first, last = record.series[0].t, record.series[-1]
        end = last.t + last.width_s
    starts = (part.start + column * part.width_s for column in range(part.columns))
    return [max(1, min(start + part.width_s, end) - max(start, first)) for start in starts]


def _name(row: KeyRangePart, ranges: Sequence[KeyRangePart]) -> str:
    """The partition of a row, or the first and the last one."""
    keys = [row.first] if row.last == row.first else [row.first, row.last]
    if len({Partition.named(key).table for one in ranges for key in (one.first, one.last)}) == 1:
        # The room is for what differs.
        keys = [Partition.named(key).key for key in keys]
    return " to ".join(named(key, _NAME_WIDTH // len(keys)) for key in keys)


_LEAST_COUNT, _LEAST_COLUMNS, _LEAST_ROWS = 500, 8, 4
"""With fewer counts, columns with counts, or rows, chance could make any pattern."""
_MOST_OF, _NEARLY_ALWAYS = 0.5, 0.75
"""The share of the load, and the share of the time."""
_IN_ORDER = 0.9
_RANGE_LOAD, _RANGE_ROWS = 0.75, 0.25
"""A hot range has this share of the load on at most this share of the keys."""
_EVEN = 1.5
_SAID_WIDTH = 40


def pattern(part: HeatPart) -> str:
    """What the map shows; empty where it shows none of the patterns for sure."""
    rows = [row for row in part.ranges if not Partition.named(row.first).whole_table]
    columns = [one for one in zip(*(row.entities for row in rows), strict=True) if sum(one)]
    total = sum(map(sum, columns))
    if total < _LEAST_COUNT or len(columns) < _LEAST_COLUMNS or len(rows) < _LEAST_ROWS:
        return ""
    singles = all(row.first == row.last for row in rows)
    return (
        _hot_key(rows, columns, total)
        or _moving_front(rows, columns)
        # Ranges of many keys are made so that they weigh the same.
        or (_hot_range(rows, columns, total) or _even(rows, columns, total) if singles else "")
    )


def _hot_key(rows: Sequence[KeyRangePart], columns: Sequence[tuple[int, ...]], total: int) -> str:
    place, row = max(enumerate(rows), key=lambda one: sum(one[1].entities))
    share = sum(row.entities) / total
    if row.first != row.last or share < _MOST_OF or not _lasts(columns, place, place + 1, _MOST_OF):
        return ""
    return f"One hot key: {_named(row.first)} has {percent(share)} of the load."


def _moving_front(rows: Sequence[KeyRangePart], columns: Sequence[tuple[int, ...]]) -> str:
    """The load is on one place of the key order at a time, and moves on in one direction."""
    # A front crosses the edge of a range within a column.
    places = [one.index(max(one)) for one in columns]
    narrow = sum(
        sum(one[max(0, place - 1) : place + 2]) >= _RANGE_LOAD * sum(one)
        for one, place in zip(columns, places, strict=True)
    )
    steps = [later - place for place, later in itertools.pairwise(places)]
    onward = max(sum(step >= 0 for step in steps), sum(step <= 0 for step in steps))
    moved = abs(places[-1] - places[0]) >= len(rows) / 2
    if not moved or narrow < _IN_ORDER * len(columns) or onward < _IN_ORDER * len(steps):
        return ""
    first, last = rows[places[0]].first, rows[places[-1]].last
    return (
        f"A moving front: the load moves from {_named(first)} to {_named(last)} in the order of "
        "the keys, so one partition after the other has nearly all of it."
    )


def _hot_range(rows: Sequence[KeyRangePart], columns: Sequence[tuple[int, ...]], total: int) -> str:
    sums = [sum(row.entities) for row in rows]
    for wide in range(2, int(len(rows) * _RANGE_ROWS) + 1):
        start = max(range(len(rows) - wide + 1), key=lambda at: sum(sums[at : at + wide]))
        share = sum(sums[start : start + wide]) / total
        if share >= _RANGE_LOAD and _lasts(columns, start, start + wide, _RANGE_LOAD):
            break
    else:
        return ""
    first, last = rows[start].first, rows[start + wide - 1].first
    return (
        f"A hot range: the {wide} keys from {_named(first)} to {_named(last)} of {len(rows)} have "
        f"{percent(share)} of the load."
    )


def _even(rows: Sequence[KeyRangePart], columns: Sequence[tuple[int, ...]], total: int) -> str:
    mean = total / len(rows)
    sums = [sum(row.entities) for row in rows]
    always = all(
        sum(count > 0 for count in one) >= _NEARLY_ALWAYS * len(columns)
        for one in zip(*columns, strict=True)
    )
    if not always or max(sums) > _EVEN * mean or min(sums) * _EVEN < mean:
        return ""
    return (
        f"An even spread: the busiest of {len(rows)} keys has {percent(max(sums) / total)} of the "
        f"load, and an equal share is {percent(1 / len(rows))}."
    )


def _lasts(columns: Sequence[tuple[int, ...]], first: int, end: int, share: float) -> bool:
    """Whether these rows have that share of the load nearly all the time."""
    found = sum(sum(one[first:end]) >= share * sum(one) for one in columns)
    return found >= _NEARLY_ALWAYS * len(columns)


def _named(key: str) -> str:
    return f"'{shortened(partition_name(key), _SAID_WIDTH)}'"
