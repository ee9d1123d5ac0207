"""The charts of a record for plotly.js: lines over time, and heat maps of keys and latencies.

Colours of lines are visible on light and dark pages. The page sets the colours of texts, grids and
heat maps by the reader's colour scheme: a heat map names its scale in ``meta``.
"""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

from rich.cells import cell_len

from harness.measure.counts.generator import BUSY_PERCENT
from harness.model.figures import number
from harness.measure.record.enforced import MovePart
from harness.measure.record.over_time import HeatPart, KeyRangePart, LatencyCoursePart
from harness.measure.record.record import RunRecord
from harness.model.operation import over_partitions
from harness.model.outcome import THROTTLING_ANSWERS
from harness.report.names import partition_name
from harness.report.sentences import moved_words, scheduled_words, shown_gaps
from harness.report.limits import ShownLimit, above_words, limits_of
from harness.report.web.parts import short

Figure = dict[str, Any]
"""``data`` and ``layout`` of plotly.js."""

_BLUE, _RED, _AMBER, _VIOLET, _TEAL, _GREY = (
    "#3b82c4", "#dc4a4a", "#d9901a", "#8e63ce", "#2a9d8f", "#8a929c",
)  # fmt: skip
_STATUS_COLOURS = (_RED, _AMBER, _VIOLET, _BLUE, _TEAL)
_PERCENTILES = ((50, _VIOLET), (90, _AMBER), (99, _RED))
_NEAR = 0.4
"""A target is drawn from this share on: a higher line would flatten the data."""
_NAME_WIDTH = 18
_HOVER_WIDTH = 60
_ROW_PX = 14
_LEAST_PX, _MOST_PX = 240, 640
_ROOM_PX = 130
"""Title, axis and margins."""
_ROWS_PER_DECADE = 10
_PLOT_PX = 450
"""Assumed width of a chart: texts that do not overlap in it do not overlap in a wider one."""
_LETTER_PX = 5.6
_LINE_PX = 13
_MOST_LINES = 3
"""Lines of texts at the top of a chart. Further texts are left out."""


def charts(record: RunRecord) -> dict[str, Figure]:
    """The charts of ``record`` by the id of their element; empty charts are left out."""
    made: dict[str, Figure | None] = {}
    if record.series:
        made["chart-rate"] = _rate(record)
        made["chart-throttling"] = _throttling(record)
        made["chart-backlog"] = _backlog(record)
        made["chart-generator"] = _generator(record)
    if (heat := record.heat) is not None and heat.ranges:
        made["chart-heat"] = key_heat(record, heat, "entities", "Entities/s", "heat")
        if any(any(row.throttled) for row in heat.ranges):
            title = "Throttled attempts/s"
            made["chart-refused"] = key_heat(record, heat, "throttled", title, "refused")
    for kind in ("service", "response"):
        course = getattr(record, f"{kind}_over_time")
        if course is not None and course.columns:
            made[f"chart-{kind}"] = _latency_heat(record, course, kind)
    return {name: chart for name, chart in made.items() if chart is not None}


def _rate(record: RunRecord) -> Figure:
    xs, series = _middles(record), record.series
    served = [point.entities for point in series]
    offered = [point.offered for point in series]
    traces = [_line(xs, served, "served", _BLUE, "entities/s")]
    if any(value is not None for value in offered):
        step = {"color": _GREY, "width": 1.4, "dash": "dot"}
        traces.append(_line(xs, offered, "offered", _GREY, "entities/s", line=step))
    highest = max([*served, *(value for value in offered if value is not None)], default=0.0)
    limits = limits_of(record)
    reached = [one for one in limits if highest >= one.value * _NEAR]
    return _figure(
        record,
        "Entities/s over time",
        traces,
        "entities/s",
        note=above_words([one for one in limits if one not in reached]),
        levels=[_limit_line(one, highest) for one in reached],
    )


def _limit_line(limit: ShownLimit, highest: float) -> dict[str, Any]:
    """The line of a limit in a chart whose data reach up to ``highest``."""
    text = f"{number(limit.value)} ({limit.of})"
    if not limit.enforced:
        return _level(limit.value, f"target {text}")
    # At the other end than targets, which may be near.
    line = _level(limit.value, f"enforced limit {text}", _VIOLET, "end")
    if limit.value >= highest:
        # The chart may end at the line.
        line["label"]["yanchor"] = "top"
    return line


def _throttling(record: RunRecord) -> Figure | None:
    """Throttled attempts/s by status, stacked; None without throttling."""
    if not any(point.throttled for point in record.series):
        return None
    xs = _middles(record)
    traces = []
    for answer, colour in zip(THROTTLING_ANSWERS, itertools.cycle(_STATUS_COLOURS), strict=False):
        values = [point.throttled_by_status[answer.status] for point in record.series]
        if any(values):
            stacked: dict[str, Any] = {"stackgroup": "throttled", "showlegend": True}
            style = {"width": 0.6, "color": colour}
            traces.append(
                _line(xs, values, answer.label, colour, "attempts/s", line=style, **stacked)
            )
    shown = _figure(record, "Throttled attempts/s over time", traces, "throttled attempts/s")
    shown["layout"]["showlegend"] = True
    return shown


def _backlog(record: RunRecord) -> Figure | None:
    """Operations that wait or were dropped; None in a closed loop."""
    held = any(point.waiting or point.dropped for point in record.series)
    if not held and scheduled_words(record.profile) is None:
        return None
    xs = _middles(record)
    waiting = [point.waiting for point in record.series]
    dropped = [point.dropped for point in record.series]
    traces = [_line(xs, waiting, "waiting", _TEAL, "operations waiting")]
    if any(dropped):
        traces.append(_line(xs, dropped, "dropped/s", _RED, "dropped/s"))
    return _figure(record, "Backlog: operations due and not sent", traces, "operations", half=True)


def _generator(record: RunRecord) -> Figure | None:
    """CPU of the busiest worker; None where it was not measured."""
    values = [point.cpu_percent for point in record.series]
    if all(value is None for value in values):
        return None
    return _figure(
        record,
        "Generator: CPU of the busiest worker"
        if record.watched is None
        else "Application: CPU of the busiest thread",
        [_line(_middles(record), values, "CPU", _TEAL, "% of a core")],
        "% of one core",
        yaxis={"range": [0, 105]},
        levels=[_level(BUSY_PERCENT, f"busy: {BUSY_PERCENT:.0f}%")],
        half=True,
    )


def key_heat(record: RunRecord | None, part: HeatPart, what: str, title: str, scale: str) -> Figure:
    """The heat map of ``what``: entities or throttled; ``record`` is None outside of a run."""
    widths = [part.width_s] * part.columns if record is None else _covered(record, part)
    # Cells without a count stay empty, so that small counts are visible.
    cells = [
        [
            _rounded(n / width) if n else None
            for n, width in zip(getattr(row, what), widths, strict=True)
        ]
        for row in part.ranges
    ]
    unit = f"{what}/s"
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
    made = _figure(
        record, title, [trace, *marks], "key range", yaxis=keys, shaded=False, height=height
    )
    if record is None:
        made["layout"]["xaxis"]["range"] = [trace["x"][0], trace["x"][-1]]
    if marks:
        made["layout"]["showlegend"] = True
        # By itself the axis would leave room for the ends of lines.
        made["layout"]["yaxis"] |= {"autorange": False, "range": [len(names) - 0.5, -0.5]}
    return made


def _row_marks(record: RunRecord, part: HeatPart, names: Sequence[str]) -> list[dict[str, Any]]:
    """The times at which partitions were offline because they moved, as lines in their rows."""
    xs: list[int | None] = []
    ys: list[str | None] = []
    texts: list[str | None] = []
    for start, end, move in _moves(record):
        row = _row_of(move.key, part.ranges, redacted=record.redacted)
        if row is not None:
            text = _moved(move, _HOVER_WIDTH)
            xs += [start, end, None]
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
            "line": {"color": _VIOLET, "width": 3},
            "marker": {
                "color": _VIOLET,
                "size": 9,
                "symbol": "line-ns",
                "line": {"color": _VIOLET, "width": 2},
            },
            "showlegend": True,
            "hovertemplate": _hover("%{text}"),
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
        if not over_partitions(row.first) and row.first < key < row.last:
            return place
    return None


def _latency_heat(record: RunRecord, part: LatencyCoursePart, kind: str) -> Figure:
    widths = _covered(record, part)
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
    xs = [_moment(part.start + (column + 0.5) * part.width_s) for column in range(part.columns)]
    lines = []
    for q, colour in _PERCENTILES:
        over = _hover("%{y:,.3~r} ms or less", f"p{q}")
        lines.append(_line(xs, percentiles(part, q), f"p{q}", colour, "ms", hovertemplate=over))
    span = [math.log10(edges[0]), math.log10(edges[-1])]
    return _figure(
        record,
        f"{kind.capitalize()} latency over time",
        [heat, *lines],
        "latency (ms)",
        yaxis={"type": "log", "range": span, "dtick": 1, "rangemode": "normal"},
        shaded=False,
        height=360,
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


def _covered(record: RunRecord, part: HeatPart | LatencyCoursePart) -> list[int]:
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
        "x": [_moment(part.start + column * part.width_s) for column in edges],
        **rows,
        "colorscale": "Blues",
        "hoverongaps": False,
        "hovertemplate": _hover(over),
        "colorbar": {"title": {"text": unit, "side": "right"}, "thickness": 10, "outlinewidth": 0},
    }


def _names(ranges: Iterable[KeyRangePart]) -> list[str]:
    """The name of each row: short, and no two alike, because they would become one row."""
    names: list[str] = []
    for place, row in enumerate(ranges, 1):
        keys = (row.first,) if row.last == row.first else (row.first, row.last)
        name = " to ".join(short(partition_name(key), _NAME_WIDTH) for key in keys)
        names.append(name if name not in names else f"{name} ({place})")
    # plotly.js would interpret <b> and other tags.
    return [html.escape(name, quote=False) for name in names]


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def _moment(utc_s: float) -> int:
    """UTC seconds in milliseconds, the unit of a time axis."""
    return round(utc_s * 1000)


def _middles(record: RunRecord) -> list[int]:
    return [_moment(point.t + point.width_s / 2) for point in record.series]


def _hover(value: str, extra: str = "") -> str:
    return f"%{{x|%H:%M:%S}}<br>{value}<extra>{extra}</extra>"


def _line(
    xs: list[int], ys: Sequence[float | None], name: str, colour: str, unit: str, **more: Any
) -> dict[str, Any]:
    """A line over time; ``more`` are further settings of plotly.js."""
    return {
        "type": "scatter",
        "mode": "lines",
        "x": xs,
        "y": ys,
        "name": name,
        "line": {"color": colour, "width": 1.6},
        "hovertemplate": _hover(f"%{{y:,.2~f}} {unit}", name),
        **more,
    }


def _figure(
    record: RunRecord | None,
    title: str,
    data: list[dict[str, Any]],
    unit: str,
    *,
    yaxis: dict[str, Any] | None = None,
    note: str = "",
    levels: Sequence[dict[str, Any]] = (),
    shaded: bool = True,
    half: bool = False,
    height: int = 300,
) -> Figure:
    """A chart over the time of a run, with the ``unit`` on the vertical axis.

    A ``note`` stands below the title, ``levels`` are lines across the chart, and ``shaded`` marks
    the measured window, the outages, and the moves of partitions. A ``half`` chart may have half
    the width of a page.
    """
    legend = sum(trace.get("showlegend", True) for trace in data if trace["type"] == "scatter") > 1
    span = list(_span(record)) if record is not None and record.series else None
    marked = record if shaded else None
    texts = {"annotations": found} if marked and (found := _move_texts(marked, half=half)) else {}
    return {
        "data": data,
        "layout": {
            "title": {"text": title, "x": 0, "xref": "paper", "xanchor": "left", "yanchor": "top",
                      "y": 0.97, "font": {"size": 14},
                      "subtitle": {"text": note, "font": {"size": 11.5}}},
            "height": height,
            "margin": {"l": 64, "r": 24, "t": 56, "b": 44},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "hovermode": "closest",
            "showlegend": legend,
            "legend": {"orientation": "h", "x": 1, "xanchor": "right", "y": 1.0,
                       "yanchor": "bottom"},
            "uirevision": "" if record is None else record.run_id,
            "xaxis": {"type": "date", "title": {"text": "time (UTC)"}, "range": span,
                      "hoverformat": "%H:%M:%S"},
            "yaxis": {"title": {"text": unit, "standoff": 10}, "automargin": True,
                      "rangemode": "tozero", **(yaxis or {})},
            "shapes": [*(_shades(marked) if marked else []), *levels],
            **texts,
        },
    }  # fmt: skip


def _level(value: float, text: str, colour: str = _RED, at: str = "start") -> dict[str, Any]:
    return {
        "type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": value, "y1": value,
        "line": {"color": colour, "width": 1.4, "dash": "dash"},
        "label": {"text": text, "textposition": at, "yanchor": "bottom",
                  "font": {"size": 11, "color": colour}},
    }  # fmt: skip


def _span(record: RunRecord) -> tuple[int, int]:
    last = record.series[-1]
    return _moment(record.series[0].t), _moment(last.t + last.width_s)


def _moves(record: RunRecord) -> list[tuple[int, int, MovePart]]:
    """The moves of partitions, each with the time on the axis at which it was unavailable."""
    if record.enforced is None or not record.series:
        return []
    first, last = _span(record)
    found = []
    for move in record.enforced.moves:
        start = max(first, first + _moment(move.start_s))
        end = min(last, first + _moment(move.start_s + move.offline_s))
        if start < end:
            found.append((start, end, move))
    return found


def _moved(move: MovePart, width: int) -> str:
    # plotly.js would interpret <b> and other tags.
    return html.escape(moved_words(move, short(partition_name(move.key), width)), quote=False)


def _move_texts(record: RunRecord, *, half: bool) -> list[dict[str, Any]]:
    """The texts of moves at the top of a chart, as many as have room; short in a ``half`` chart."""
    made = []
    if record.series:
        first, last = _span(record)
        ms_per_px = (last - first) / _PLOT_PX
    # Below the texts of outages, which moves cause.
    taken: dict[int, list[tuple[float, float]]] = {line: [] for line in range(1, 1 + _MOST_LINES)}
    for start, end, move in _moves(record):
        text = "moved" if half else _moved(move, _NAME_WIDTH)
        width = cell_len(html.unescape(text)) * _LETTER_PX * ms_per_px
        side, begin = ("left", float(start)) if start + width <= last else ("right", end - width)
        for line, others in taken.items():
            if all(begin + width <= left or right <= begin for left, right in others):
                others.append((begin, begin + width))
                made.append({
                    "xref": "x", "x": start if side == "left" else end, "xanchor": side,
                    "yref": "paper", "y": 1, "yanchor": "top", "yshift": -line * _LINE_PX,
                    "text": text, "showarrow": False, "font": {"size": 10},
                })  # fmt: skip
                break
    return made


def _shades(record: RunRecord) -> list[dict[str, Any]]:
    grey, amber, violet = "rgba(128,140,160,0.10)", "rgba(217,144,26,0.25)", "rgba(142,99,206,0.22)"
    spans = []
    if record.measured_s:
        spans.append((record.window_start, record.measured_s, grey, "measured", "bottom left"))
    if record.series:
        began = record.series[0].t
        spans += [
            (began + gap.start_s, gap.length_s, amber, "outage", "top left")
            for gap in shown_gaps(record)
        ]
    marks = [(_moment(start), _moment(start + long), *look) for start, long, *look in spans]
    # Their texts are annotations: many texts of moves would overlap.
    marks += [(start, end, violet, "", "top left") for start, end, _ in _moves(record)]
    return [
        {
            "type": "rect", "xref": "x", "yref": "paper",
            "x0": start, "x1": end,
            "y0": 0, "y1": 1, "line": {"width": 0}, "fillcolor": colour, "layer": "below",
            "label": {"text": text, "textposition": place, "font": {"size": 10, "color": _GREY}},
        }
        for start, end, colour, text, place in marks
    ]  # fmt: skip
