"""Heat maps: key ranges, or latencies, over the time of a run."""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Sequence
from typing import Any

from harness.measure.record.measured import HeatPart, KeyRangePart, LatencyCoursePart
from harness.measure.record.record import RunRecord
from harness.model.partition import Partition
from harness.report.events import moved_words
from harness.report.names import partition_name
from harness.report.web.frame import (
    MOVED,
    NAME_WIDTH,
    WAITING,
    Figure,
    clipped,
    figure,
    hover,
    line,
    moment,
    named,
)
from harness.report.web.tables import short

_PERCENTILES = ((50, "dot"), (90, "dash"), (99, "solid"))
"""Percentiles, and how their lines are drawn."""
_HOVER_WIDTH = 60
_RANGE_NAME_WIDTH = 14
_ROW_PX = 14
_LEAST_PX, _MOST_PX = 130, 640
_ROOM_PX = 64
"""Axis and margins."""
_ROWS_PER_DECADE = 10


def key_heat(
    record: RunRecord | None,
    part: HeatPart,
    what: str,
    title: str,
    scale: str,
    rate: float = 1.0,
    unit: str = "",
) -> Figure:
    """The heat map of ``what``: entities or throttled; ``record`` is None outside of a run.

    Counts are multiplied by ``rate``. ``unit`` is their name, if it is not ``what``.
    """
    widths = [part.width_s] * part.columns if record is None else covered(record, part)
    # Cells without a count stay empty, so that small counts are visible.
    cells = [
        [
            _rounded(rate * n / width) if n else None
            for n, width in zip(getattr(row, what), widths, strict=True)
        ]
        for row in part.ranges
    ]
    unit = f"{unit or what}/s"
    names = _names(part.ranges)
    trace = _heat_map(
        part,
        scale,
        unit,
        f"%{{y}}<br>%{{z:,.2~f}} {unit}",
        y=names,
        z=cells,
        zmin=0,
        zmax=max((cell for row in cells for cell in row if cell), default=1),
    )
    trace["ygap"] = 1
    title = f"{title} by key range and time"
    height = min(max(len(cells) * _ROW_PX + _ROOM_PX, _LEAST_PX), _MOST_PX)
    keys = {"type": "category", "autorange": "reversed", "ticklabelstandoff": 4}
    marks = [] if record is None else _row_marks(record, part, names)
    made = figure(record, title, [trace, *marks], yaxis=keys, height=height)
    if record is None:
        made["layout"]["xaxis"]["range"] = [trace["x"][0], trace["x"][-1]]
    if marks:
        # By itself the axis would leave room for the ends of lines.
        made["layout"]["yaxis"] |= {"autorange": False, "range": [len(names) - 0.5, -0.5]}
    return made


def _row_marks(record: RunRecord, part: HeatPart, names: Sequence[str]) -> list[dict[str, Any]]:
    """The times at which partitions were offline because they moved, as lines in their rows."""
    xs: list[int | None] = []
    ys: list[str | None] = []
    texts: list[str | None] = []
    for move in () if record.enforced is None else record.enforced.moves:
        row = _row_of(move.key, part.ranges, redacted=record.redacted)
        at = clipped(record, move.start_s, move.start_s + move.offline_s)
        if row is not None and at is not None:
            text = moved_words(move, named(move.key, _HOVER_WIDTH))
            xs += [*at, None]
            ys += [names[row], names[row], None]
            texts += [text, text, None]
    if not xs:
        return []
    return [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "x": xs,
            "y": ys,
            "text": texts,
            "name": "partition moved, unavailable",
            "line": {"color": MOVED, "width": 3},
            "marker": {
                "color": MOVED,
                "size": 9,
                "symbol": "line-ns",
                "line": {"color": MOVED, "width": 2},
            },
            "showlegend": False,
            "hovertemplate": hover("%{text}"),
        }
    ]


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


def latency_heat(record: RunRecord, part: LatencyCoursePart, kind: str) -> Figure:
    widths = covered(record, part)
    # A few slow operations matter as much as many fast ones: the colour is the order of magnitude.
    rates = [[count / width for count, width in zip(row, widths, strict=True)] for row in part.rows]
    edges = [part.bounds_ms[0] / 10 ** (1 / _ROWS_PER_DECADE), *part.bounds_ms]
    most = max(map(max, rates), default=1.0) or 1.0
    least = min((rate for row in rates for rate in row if rate), default=1.0)
    decades = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
    heat = _heat_map(
        part,
        "latency",
        "operations/s",
        "%{y:,.3~r} ms<br>%{text} operations/s",
        y=edges,
        z=[[_rounded(math.log10(rate)) if rate else None for rate in row] for row in rates],
        text=[[_rounded(rate) for rate in row] for row in rates],
    )
    heat["colorbar"] |= {
        "tickvals": list(decades),
        "ticktext": [f"{10.0**decade:g}" for decade in decades],
    }
    xs = [moment(part.start + (column + 0.5) * part.width_s) for column in range(part.columns)]
    lines = []
    for q, dash in _PERCENTILES:
        over = hover("%{y:,.3~r} ms or less", f"p{q}")
        style = {"color": WAITING, "width": 1.8, "dash": dash}
        found = percentiles(part, q)
        lines.append(line(xs, found, f"p{q}", WAITING, "ms", line=style, hovertemplate=over))
    span = [math.log10(edges[0]), math.log10(edges[-1])]
    return figure(
        record,
        f"{kind.capitalize()} latency in ms",
        [heat, *lines],
        yaxis={"type": "log", "range": span, "dtick": 1, "rangemode": "normal"},
        height=260,
    )


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


def _heat_map(
    part: HeatPart | LatencyCoursePart, scale: str, unit: str, over: str, **rows: Any
) -> dict[str, Any]:
    """A heat map of ``rows``, with the text ``over`` beside the pointer."""
    edges = range(part.columns + 1)
    return {
        "type": "heatmap",
        "meta": scale,
        "x": [moment(part.start + column * part.width_s) for column in edges],
        **rows,
        "colorscale": "Blues",
        "hoverongaps": False,
        "hovertemplate": hover(over),
        "colorbar": {"title": {"text": unit, "side": "right"}, "thickness": 10, "outlinewidth": 0},
    }


def _names(ranges: Sequence[KeyRangePart]) -> list[str]:
    """The name of each row: short, and no two alike, because they would become one row."""
    names: list[str] = []
    tables = {Partition.named(key).table for row in ranges for key in (row.first, row.last)}
    for place, row in enumerate(ranges, 1):
        keys = [row.first] if row.last == row.first else [row.first, row.last]
        if len(tables) == 1:
            # The room is for what differs.
            keys = [Partition.named(key).key for key in keys]
        width = NAME_WIDTH if len(keys) == 1 else _RANGE_NAME_WIDTH
        name = " to ".join(short(partition_name(key), width) for key in keys)
        names.append(name if name not in names else f"{name} ({place})")
    # plotly.js would interpret <b> and other tags.
    return [html.escape(name, quote=False) for name in names]


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
