"""Heat maps over time: entities and throttling by key range, operations by latency."""

from __future__ import annotations

import itertools
import math
from typing import Any

from harness.measure.record.over_time import HeatPart, KeyRangePart, LatencyCoursePart, counts_of
from harness.measure.record.record import RunRecord
from harness.report.names import partition_name
from harness.report.web.plotting import (
    AMBER,
    RED,
    VIOLET,
    Figure,
    figure,
    hover,
    line,
    moment,
    plain,
)
from harness.report.web.tables import short

_NAME_WIDTH = 18
_ROW_PX = 14
_LEAST_PX, _MOST_PX = 240, 640
_ROWS_PER_DECADE = 10
_LINES = ((50, VIOLET), (90, AMBER), (99, RED))
_ROOM_PX = 130
"""Title, axis and margins."""


def key_heat(record: RunRecord, part: HeatPart) -> Figure:
    """Entities a second by key range and time."""
    rows = [counts_of(row.entities) for row in part.ranges]
    return _heat(record, part, rows, "Entities/s by key range and time", "entities/s", "heat")


def throttled_heat(record: RunRecord, part: HeatPart) -> Figure | None:
    """Throttled attempts a second by key range and time; None where there were none."""
    rows = [counts_of(row.throttled) for row in part.ranges]
    if not any(map(any, rows)):
        return None
    title = "Throttled attempts/s by key range and time"
    return _heat(record, part, rows, title, "throttled/s", "refused")


def latency_heat(record: RunRecord, part: LatencyCoursePart, kind: str) -> Figure:
    """Operations a second by latency and time, and percentiles over it."""
    widths = _covered(record, part)
    # A few slow operations matter as much as many fast ones: the colour is the order of magnitude.
    rates = [
        [count / width for count, width in zip(counts_of(row), widths, strict=True)]
        for row in part.rows
    ]
    edges = [part.bounds_ms[0] / 10 ** (1 / _ROWS_PER_DECADE), *part.bounds_ms]
    most = max(map(max, rates), default=1.0) or 1.0
    least = min((rate for row in rates for rate in row if rate), default=1.0)
    decades = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
    traces: list[dict[str, Any]] = [
        {
            "type": "heatmap",
            "meta": "latency",
            **_across(part),
            "y": edges,
            "z": [[_rounded(math.log10(rate)) if rate else None for rate in row] for row in rates],
            "text": [[_rounded(rate) for rate in row] for row in rates],
            "colorscale": "Blues",
            "hoverongaps": False,
            "hovertemplate": hover("%{y:,.3~r} ms<br>%{text} operations/s"),
            "colorbar": {
                **_bar("operations/s"),
                "tickvals": list(decades),
                "ticktext": [f"{10.0**decade:g}" for decade in decades],
            },
        }
    ]
    middles = [moment(part.start + (column + 0.5) * part.width_s) for column in range(part.columns)]
    traces += [
        line(
            middles,
            percentiles(part, q),
            f"p{q}",
            colour,
            "ms",
            hovertemplate=hover("%{y:,.3~r} ms or less", f"p{q}"),
        )
        for q, colour in _LINES
    ]
    span = [math.log10(edges[0]), math.log10(edges[-1])]
    return figure(
        record,
        f"{kind.capitalize()} latency over time",
        traces,
        "latency (ms)",
        yaxis={"type": "log", "range": span, "dtick": 1, "rangemode": "normal"},
        shaded=False,
        height=360,
    )


def _heat(
    record: RunRecord, part: HeatPart, rows: list[list[int]], title: str, unit: str, scale: str
) -> Figure:
    widths = _covered(record, part)
    # What took nothing stays empty, so that a little is seen.
    cells = [
        [_rounded(n / width) if n else None for n, width in zip(row, widths, strict=True)]
        for row in rows
    ]
    trace = {
        "type": "heatmap",
        "meta": scale,
        **_across(part),
        "y": _names(part.ranges),
        "z": cells,
        "zmin": 0,
        "zmax": max((cell for row in cells for cell in row if cell), default=1),
        "colorscale": "Blues",
        "hoverongaps": False,
        "hovertemplate": hover(f"%{{y}}<br>%{{z:,.2~f}} {unit}"),
        "colorbar": _bar(unit),
        "ygap": 1,
    }
    height = min(max(len(rows) * _ROW_PX + _ROOM_PX, _LEAST_PX), _MOST_PX)
    keys = {"type": "category", "autorange": "reversed", "ticklabelstandoff": 4}
    return figure(record, title, [trace], "key range", yaxis=keys, shaded=False, height=height)


def percentiles(part: LatencyCoursePart, q: float) -> list[float | None]:
    """The ``q``-th percentile of each column in milliseconds; None where a column is empty.

    A percentile is the upper bound of the row that it falls into: it exceeds the true one by less
    than the height of a row.

    Args:
        part: Operations by latency and time.
        q: From 0 to 100.
    """
    by_column = zip(*(counts_of(row) for row in part.rows), strict=True)
    return [_percentile(column, part.bounds_ms, q) for column in by_column]


def _percentile(counts: tuple[int, ...], bounds_ms: tuple[float, ...], q: float) -> float | None:
    total = sum(counts)
    if not total:
        return None
    rank = max(1, math.ceil(q / 100 * total))
    upto = itertools.accumulate(counts)
    return next(bound for bound, count in zip(bounds_ms, upto, strict=True) if count >= rank)


def _covered(record: RunRecord, part: HeatPart | LatencyCoursePart) -> list[int]:
    """Seconds of each column that were under load: the first and the last may be cut."""
    first = record.series[0].t if record.series else part.start
    end = part.start + part.columns * part.width_s
    if record.series:
        end = record.series[-1].t + record.series[-1].width_s
    starts = (part.start + column * part.width_s for column in range(part.columns))
    return [max(1, min(start + part.width_s, end) - max(start, first)) for start in starts]


def _across(part: HeatPart | LatencyCoursePart) -> dict[str, Any]:
    """Edges of the columns."""
    edges = range(part.columns + 1)
    return {"x": [moment(part.start + column * part.width_s) for column in edges]}


def _names(ranges: tuple[KeyRangePart, ...]) -> list[str]:
    """What each row is called: short, and no two alike, or they would become one."""
    names: list[str] = []
    for place, row in enumerate(ranges, 1):
        name = _name(row.first)
        if row.last != row.first:
            name += f" to {_name(row.last)}"
        names.append(name if name not in names else f"{name} ({place})")
    return [plain(name) for name in names]


def _name(key: str) -> str:
    return short(partition_name(key), _NAME_WIDTH)


def _bar(unit: str) -> dict[str, Any]:
    return {"title": {"text": unit, "side": "right"}, "thickness": 10, "outlinewidth": 0}


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
