"""What all charts share: figures as plotly.js reads them, times, colours, and safe texts.

Colours of lines are visible on light and dark pages. The page sets the colours of texts, grids and
heat maps by the reader's colour scheme: a heat map names its scale in ``meta``.
"""

from __future__ import annotations

import html
import itertools
from collections.abc import Sequence
from typing import Any

from harness.measure.record.record import RunRecord
from harness.report.sentences import shown_gaps

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
