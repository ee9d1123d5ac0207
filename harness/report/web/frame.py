"""The frame that all charts of a record share: time axis, lines, limits, marks of events.

A colour has one meaning, and a contrast of at least 3 : 1 to light and dark pages. By the reader's
colour scheme the page sets the colours of all texts, of grids, and of heat maps, which name their
scale in ``meta``.
The title of a chart is apart from what plotly.js draws: a title of the library does not wrap.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

from rich.cells import cell_len

from harness.measure.record.record import RunRecord
from harness.report.events import moved_together, shown_gaps
from harness.report.names import partition_name
from harness.report.web.tables import short

Figure = dict[str, Any]
"""``data`` and ``layout`` of plotly.js, ``title``, and ``note`` below it."""
SERVED, SERVED_IN_ALL, ASKED = "#3b82c4", "#5f97cc", "#7f8892"
LIMIT, WAITING, CPU, MOVED = "#9a70d8", "#bf7c0d", "#a67c52", "#12a594"
THROTTLED = ("#dc4a4a", "#e8743b", "#c2569b", "#9b5c3f", "#8f2f4f")
"""By the place of the status in `THROTTLING_ANSWERS`; the first is 503."""
_MEASURED_BAND, _MOVED_BAND = "rgba(128,140,160,0.10)", "rgba(18,165,148,0.22)"
_MEASURED = "measured"
_STOPPED = "#78818d"
_STRIP = 0.05
"""Height of the strip of an outage. A band as high as that of a move would mix with it."""
TIME = "%{x|%H:%M:%S}"
"""The time beside the pointer."""
NAME_WIDTH = 26
_PLOT_PX = 450
"""Assumed width of a chart: texts that do not overlap in it do not overlap in a wider one."""
_LETTER_PX, _TICK_PX = 5.6, 7.7
_LINE_PX = 13
_MOST_LINES = 3
"""Lines of texts at the top of a chart. Further texts are left out."""
_LEFT_PX, _RIGHT_PX, _SCALE_PX = 56, 18, 92
"""Room beside a plot, and right of it where a chart has a scale of colours."""


def moment(utc_s: float) -> int:
    """UTC seconds in milliseconds, the unit of a time axis."""
    return round(utc_s * 1000)


def middles(record: RunRecord) -> list[int]:
    return [moment(point.t + point.width_s / 2) for point in record.series]


def hover(value: str, extra: str = "") -> str:
    return f"{TIME}<br>{value}<extra>{extra}</extra>"


def line(
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
        "hovertemplate": hover(f"%{{y:,.2~f}} {unit}", name),
        **more,
    }


def figure(
    record: RunRecord | None,
    title: str,
    data: list[dict[str, Any]],
    *,
    yaxis: Mapping[str, Any] | None = None,
    note: str = "",
    levels: Sequence[dict[str, Any]] = (),
    texts: bool = False,
    height: int = 220,
) -> Figure:
    """A chart over the time of a run, marked where partitions moved and where nothing succeeded.

    ``levels`` are lines across the chart. With ``texts`` the marks say what they are.
    """
    drawn = [trace for trace in data if trace["type"] == "scatter"]
    legend = sum(trace.get("showlegend", True) for trace in drawn) > 1
    shown = list(span(record)) if record is not None and record.series else None
    said = _move_texts(record) if texts and record is not None else []
    over = any(trace["type"] == "heatmap" for trace in data)
    bands = [] if record is None else _bands(record, texts=texts, over=over)
    legend = legend or any(band.get("showlegend") for band in bands)
    return {
        "title": title,
        "note": note,
        "data": data,
        "layout": {
            "height": height,
            "margin": {"l": _LEFT_PX, "r": _RIGHT_PX, "t": 28 if legend else 10, "b": 44,
                       # By itself the library would take room from the plots of some charts.
                       "autoexpand": False},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "hovermode": "closest",
            "showlegend": legend,
            "legend": {"orientation": "h", "x": 0, "xanchor": "left", "yref": "container",
                       "y": 1, "yanchor": "top", "bgcolor": "rgba(0,0,0,0)"},
            "uirevision": "" if record is None else record.run_id,
            "xaxis": {"type": "date", "range": shown, "hoverformat": "%H:%M:%S"},
            "yaxis": {"rangemode": "tozero", **(yaxis or {})},
            "shapes": [*bands, *levels],
            "annotations": said,
        },
    }  # fmt: skip


def aligned(figures: Mapping[str, Figure]) -> dict[str, Figure]:
    """The same charts with the same room beside their plots: one time axis for all."""
    maps = [t for one in figures.values() for t in one["data"] if t["type"] == "heatmap"]
    names = [name for trace in maps for name in trace["y"] if isinstance(name, str)]
    widest = max((cell_len(html.unescape(name)) for name in names), default=0)
    left = max(_LEFT_PX, round(widest * _TICK_PX) + 14)
    room = {"l": left, "r": _SCALE_PX if maps else _RIGHT_PX}
    return {
        key: {**one, "layout": {**one["layout"], "margin": {**one["layout"]["margin"], **room}}}
        for key, one in figures.items()
    }


def level(value: float, text: str, colour: str = LIMIT) -> dict[str, Any]:
    return {
        "type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": value, "y1": value,
        "line": {"color": colour, "width": 1.6, "dash": "dash"},
        "label": {"text": text, "textposition": "start", "yanchor": "bottom", "font": {"size": 12}},
    }  # fmt: skip


def span(record: RunRecord) -> tuple[int, int]:
    last = record.series[-1]
    return moment(record.series[0].t), moment(last.t + last.width_s)


def clipped(record: RunRecord, start_s: float, end_s: float) -> tuple[int, int] | None:
    """Seconds from the start of the load as times on the axis; None outside of it."""
    if not record.series:
        return None
    first, last = span(record)
    start, end = max(first, first + moment(start_s)), min(last, first + moment(end_s))
    return (start, end) if start < end else None


def named(key: str, width: int) -> str:
    # plotly.js would interpret <b> and other tags.
    return html.escape(short(partition_name(key), width), quote=False)


def _measured(record: RunRecord) -> tuple[float, float] | None:
    """The measured window in seconds from the start of the load; None without one."""
    if not record.measured_s or not record.series:
        return None
    start = record.window_start - record.series[0].t
    return start, start + record.measured_s


def _move_texts(record: RunRecord) -> list[dict[str, Any]]:
    """The texts of moves at the top of a chart, as many as have room."""
    made: list[dict[str, Any]] = []
    if not record.series:
        return made
    first, last = span(record)
    ms_per_px = (last - first) / _PLOT_PX
    taken: dict[int, list[tuple[float, float]]] = {line: [] for line in range(_MOST_LINES)}
    if (window := _measured(record)) is not None and (at := clipped(record, *window)) is not None:
        taken[0].append((at[1] - len(_MEASURED) * _LETTER_PX * ms_per_px, at[1]))
    for moved in moved_together(record):
        at = clipped(record, moved.start_s, moved.end_s)
        if at is None:
            continue
        start, end = at
        which = f"{len(moved.keys)} partitions"
        if len(moved.keys) == 1:
            which = named(moved.keys[0], NAME_WIDTH)
        text = f"{which} moved: {moved.end_s - moved.start_s:.0f} s offline"
        width = cell_len(html.unescape(text)) * _LETTER_PX * ms_per_px
        side, begin = ("left", float(start)) if start + width <= last else ("right", end - width)
        for line, others in taken.items():
            if all(begin + width <= left or right <= begin for left, right in others):
                others.append((begin, begin + width))
                made.append({
                    "xref": "x", "x": start if side == "left" else end, "xanchor": side,
                    "yref": "paper", "y": 1, "yanchor": "top", "yshift": -line * _LINE_PX,
                    "text": text, "showarrow": False, "font": {"size": 11},
                })  # fmt: skip
                break
    return made


def _bands(record: RunRecord, *, texts: bool, over: bool) -> list[dict[str, Any]]:
    """The measured window and the moves of partitions, across a chart, and outages at its bottom.

    They are ``over`` what is drawn where it would cover them; the measured window is then left out.
    """
    bands: list[tuple[float, float, dict[str, Any]]] = []
    if not over and (window := _measured(record)) is not None:
        label = {"text": _MEASURED, "textposition": "top right", "font": {"size": 10}}
        bands.append(
            (*window, {"fillcolor": _MEASURED_BAND, **({"label": label} if texts else {})})
        )
    bands += [
        (moved.start_s, moved.end_s, {"fillcolor": _MOVED_BAND}) for moved in moved_together(record)
    ]
    for place, gap in enumerate(shown_gaps(record)):
        named = {"name": "nothing succeeded", "showlegend": True} if texts and not place else {}
        strip = {"fillcolor": _STOPPED, "y1": _STRIP, **named}
        bands.append((gap.start_s, gap.start_s + gap.length_s, strip))
    return [
        {
            "type": "rect", "xref": "x", "yref": "paper", "x0": at[0], "x1": at[1],
            "y0": 0, "y1": 1, "line": {"width": 0}, "layer": "above" if over else "below",
            **looks,
        }
        for start_s, end_s, looks in bands
        if (at := clipped(record, start_s, end_s)) is not None
    ]  # fmt: skip
