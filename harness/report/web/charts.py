"""All charts of a record, and the line charts: rates, throttling, backlog, generator."""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Sequence
from typing import Any

from harness.measure.counts.generator import BUSY_PERCENT
from harness.measure.figures import listed, number
from harness.measure.record.over_time import HeatPart, KeyRangePart, LatencyCoursePart, counts_of
from harness.measure.record.record import RunRecord
from harness.model.operation import over_partitions
from harness.model.outcome import THROTTLING_ANSWERS
from harness.report.names import partition_name
from harness.report.sentences import scheduled_words, shown_gaps
from harness.report.web.tables import short

Figure = dict[str, Any]
"""``data`` and ``layout`` of plotly.js."""

BLUE, RED, AMBER, VIOLET, TEAL, GREY = (
    "#3b82c4", "#dc4a4a", "#d9901a", "#8e63ce", "#2a9d8f", "#8a929c",
)  # fmt: skip

_TIME = "time (UTC)"
_AT = "%{x|%H:%M:%S}"
_MARGIN = {"l": 64, "r": 24, "t": 56, "b": 44}


def plain(text: str) -> str:
    """``text`` escaped for plotly.js, which would interpret ``<b>`` and other tags."""
    return html.escape(text, quote=False)


def moment(utc_s: float) -> int:
    """UTC seconds in the unit of a time axis."""
    return round(utc_s * 1000)


def hover(value: str, extra: str = "") -> str:
    """The text beside the pointer: the time, and a value with its unit."""
    return f"{_AT}<br>{value}<extra>{extra}</extra>"


def line(
    xs: Sequence[int],
    ys: Sequence[float | None],
    name: str,
    colour: str,
    unit: str,
    **more: Any,
) -> dict[str, Any]:
    """A line over time.

    Args:
        xs: As `moment` gives them.
        ys: Its values; None where there is none.
        name: Of the line, for the legend.
        colour: Of the line.
        unit: Of its values, for the pointer.
        more: Further settings of plotly.js.
    """
    return {
        "type": "scatter",
        "mode": "lines",
        "x": list(xs),
        "y": list(ys),
        "name": name,
        "line": {"color": colour, "width": 1.6},
        "hovertemplate": hover(f"%{{y:,.2~f}} {unit}", name),
        **more,
    }


def figure(
    record: RunRecord,
    title: str,
    data: list[dict[str, Any]],
    unit: str,
    *,
    yaxis: dict[str, Any] | None = None,
    note: str = "",
    levels: Sequence[tuple[float, str]] = (),
    shaded: bool = True,
    height: int = 300,
) -> Figure:
    """A chart over the time of a run.

    Args:
        record: The run.
        title: Of the chart.
        data: What is drawn.
        unit: Title of the upright axis.
        yaxis: More about it.
        note: Below the title.
        levels: Values with a line across the chart, and what each is.
        shaded: Whether the measured window and gaps are seen.
        height: In pixels.
    """
    legend = sum(trace.get("showlegend", True) for trace in data if trace["type"] == "scatter") > 1
    return {
        "data": data,
        "layout": {
            "title": {"text": title, "x": 0, "xref": "paper", "xanchor": "left", "yanchor": "top",
                      "y": 0.97, "font": {"size": 14},
                      "subtitle": {"text": note, "font": {"size": 11.5}}},
            "height": height,
            "margin": dict(_MARGIN),
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "hovermode": "closest",
            "showlegend": legend,
            "legend": {"orientation": "h", "x": 1, "xanchor": "right", "y": 1.0,
                       "yanchor": "bottom"},
            "uirevision": record.run_id,
            "xaxis": {"type": "date", "title": {"text": _TIME}, "range": _span(record),
                      "hoverformat": "%H:%M:%S"},
            "yaxis": {"title": {"text": unit, "standoff": 10}, "automargin": True,
                      "rangemode": "tozero", **(yaxis or {})},
            "shapes": [*(_shades(record) if shaded else []), *itertools.starmap(_level, levels)],
        },
    }  # fmt: skip


def middles(record: RunRecord) -> list[int]:
    """Where on the time axis each point of the series is: in the middle of its seconds."""
    return [moment(point.t + point.width_s / 2) for point in record.series]


def _span(record: RunRecord) -> list[int] | None:
    """The whole time under load."""
    if not record.series:
        return None
    last = record.series[-1]
    return [moment(record.series[0].t), moment(last.t + last.width_s)]


def _level(value: float, text: str) -> dict[str, Any]:
    return {
        "type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": value, "y1": value,
        "line": {"color": RED, "width": 1.4, "dash": "dash"},
        "label": {"text": text, "textposition": "start", "yanchor": "bottom",
                  "font": {"size": 11, "color": RED}},
    }  # fmt: skip


def _shade(start: int, end: int, colour: str, text: str, place: str) -> dict[str, Any]:
    return {
        "type": "rect", "xref": "x", "yref": "paper", "x0": moment(start), "x1": moment(end),
        "y0": 0, "y1": 1, "line": {"width": 0}, "fillcolor": colour, "layer": "below",
        "label": {"text": text, "textposition": place, "font": {"size": 10, "color": GREY}},
    }  # fmt: skip


def _shades(record: RunRecord) -> list[dict[str, Any]]:
    shades = []
    if record.measured_s:
        end = record.window_start + record.measured_s
        shades.append(
            _shade(record.window_start, end, "rgba(128,140,160,0.10)", "measured", "bottom left")
        )
    if record.series:
        began = record.series[0].t
        shades += [
            _shade(began + gap.start_s, began + gap.start_s + gap.length_s,
                   "rgba(217,144,26,0.25)", "outage", "top left")
            for gap in shown_gaps(record)
        ]  # fmt: skip
    return shades


_COLOURS = (RED, AMBER, VIOLET, BLUE, TEAL)
_NEAR = 0.4
"""A target is drawn from this share on: a higher line would flatten the data."""


def charts(record: RunRecord) -> dict[str, Figure]:
    """The charts of ``record`` by the id of their element; empty charts are left out."""
    made: dict[str, Figure | None] = {}
    if record.series:
        made["chart-rate"] = rate(record)
        made["chart-throttling"] = throttling(record)
        made["chart-backlog"] = backlog(record)
        made["chart-generator"] = generator(record)
    if record.heat is not None and record.heat.ranges:
        made["chart-heat"] = key_heat(record, record.heat)
        made["chart-refused"] = throttled_heat(record, record.heat)
    for kind in ("service", "response"):
        course = getattr(record, f"{kind}_over_time")
        if course is not None and course.columns:
            made[f"chart-{kind}"] = latency_heat(record, course, kind)
    return {name: chart for name, chart in made.items() if chart is not None}


def rate(record: RunRecord) -> Figure:
    """Entities/s beside the offered rate and the targets."""
    xs, series = middles(record), record.series
    served = [point.entities for point in series]
    offered = [point.offered for point in series]
    traces = [line(xs, served, "served", BLUE, "entities/s")]
    if any(value is not None for value in offered):
        step = {"color": GREY, "width": 1.4, "dash": "dot"}
        traces.append(line(xs, offered, "offered", GREY, "entities/s", line=step))
    highest = max([*served, *(value for value in offered if value is not None)], default=0.0)
    reached = [one for one in _targets(record) if highest >= one[0] * _NEAR]
    above = [f"{number(value)} ({name})" for value, name in _targets(record)[len(reached) :]]
    note = ""
    if above:
        verb = "target {} is" if len(above) == 1 else "targets {} are"
        note = f"{verb.format(listed(above))} above the range of this chart"
    return figure(
        record,
        "Entities/s over time",
        traces,
        "entities/s",
        note=note,
        levels=[(value, f"target {number(value)} ({name})") for value, name in reached],
    )


def throttling(record: RunRecord) -> Figure | None:
    """Throttled attempts/s by status, stacked; None without throttling."""
    if not any(point.throttled for point in record.series):
        return None
    xs = middles(record)
    traces = []
    for answer, colour in zip(THROTTLING_ANSWERS, itertools.cycle(_COLOURS), strict=False):
        values = [point.throttled_by_status[answer.status] for point in record.series]
        if any(values):
            stacked: dict[str, Any] = {"stackgroup": "throttled", "line": {"width": 0.6}}
            traces.append(line(xs, values, answer.label, colour, "attempts/s", **stacked))
            traces[-1]["line"]["color"] = colour
            traces[-1]["showlegend"] = True
    shown = figure(record, "Throttled attempts/s over time", traces, "throttled attempts/s")
    shown["layout"]["showlegend"] = True
    return shown


def backlog(record: RunRecord) -> Figure | None:
    """Operations that wait or were dropped; None in a closed loop."""
    held = any(point.waiting or point.dropped for point in record.series)
    if not held and scheduled_words(record.profile) is None:
        return None
    xs = middles(record)
    dropped = [point.dropped for point in record.series]
    traces = [
        line(xs, [point.waiting for point in record.series], "waiting", TEAL, "operations waiting"),
    ]
    if any(dropped):
        traces.append(line(xs, dropped, "dropped/s", RED, "dropped/s"))
    return figure(record, "Backlog: operations due and not sent", traces, "operations")


def generator(record: RunRecord) -> Figure | None:
    """CPU of the busiest worker; None where it was not measured."""
    values = [point.cpu_percent for point in record.series]
    if all(value is None for value in values):
        return None
    return figure(
        record,
        "Generator: CPU of the busiest worker",
        [line(middles(record), values, "CPU", TEAL, "% of a core")],
        "% of one core",
        yaxis={"range": [0, 105]},
        levels=[(BUSY_PERCENT, f"busy: {BUSY_PERCENT:.0f}%")],
    )


def _targets(record: RunRecord) -> list[tuple[float, str]]:
    """The target of the account, and before it that of the partition if there is only one."""
    targets = []
    if record.account.target is not None:
        targets.append((record.account.target, "account"))
    single = [part for part in record.partitions if not over_partitions(part.key)]
    if len(single) == 1 and record.partitions_folded is None and single[0].target is not None:
        targets.insert(0, (single[0].target, "partition"))
    return targets


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
