"""The chart of the rate over time, of text."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from harness.measure.record.measured import SeriesPart
from harness.measure.record.record import RunRecord
from harness.model.figures import counted, duration, number
from harness.report import events
from harness.report.limits import unit_of
from harness.report.terminal.page import Page, chart, chart_columns

_CHART_HEIGHT = 3


def rate_chart(record: RunRecord, page: Page) -> list[RenderableType]:
    """Entities/s, or RU/s, over the time under load. A heavy axis marks the measured window."""
    series = record.series
    if not series:
        return []
    top = number(max(map(_rate_of, series)))
    margin = max(len(top), len("throttled")) + 1
    groups = [
        [series[place] for place in group]
        for group in chart_columns(len(series), page.width - margin - 1)
    ]
    lines: list[RenderableType] = []

    def add(label: str, content: str, style: str) -> None:
        lines.append(
            Text.assemble((f"{label:>{margin - 1}} ", "dim"), (content, style), no_wrap=True)
        )

    values = [sum(map(_rate_of, group)) / len(group) for group in groups]
    labels = [top, *[""] * (_CHART_HEIGHT - 2), "0"]
    for label, line in zip(labels, chart(values, _CHART_HEIGHT, page.glyphs), strict=True):
        add(label, line, "cyan")
    window = range(record.window_start, record.window_start + record.measured_s)
    inside = [any(point.t in window for point in group) for group in groups]
    axis = (page.glyphs.inside if one else page.glyphs.outside for one in inside)
    add("", "".join(axis), "dim")
    if any(point.throttled for point in series):
        refused = [sum(point.throttled for point in group) for group in groups]
        add("throttled", chart(refused, 1, page.glyphs)[0], "red")
    if gaps := events.shown_gaps(record):
        began = series[0].t
        spans = [range(began + gap.start_s, began + gap.start_s + gap.length_s) for gap in gaps]
        gone = [any(_meets(point, spans) for point in group) for group in groups]
        add("outage", "".join(page.glyphs.levels[-1] if one else " " for one in gone), "yellow")
    ends = duration(sum(point.width_s for point in series))
    middle = f"{page.glyphs.inside * 2} measured {counted(record.measured_s, 'second')}"
    room = len(groups) - len("0:00") - len(ends)
    if room > len(middle):
        add("", f"0:00{middle:^{room}}{ends}", "dim")
    unit = unit_of(record)
    return [page.section(f"{unit} over time", *lines)]


def _rate_of(point: SeriesPart) -> float:
    return point.entities if point.request_units is None else point.request_units


def _meets(point: SeriesPart, spans: Sequence[range]) -> bool:
    """True where the seconds of a point overlap one of ``spans``, UTC."""
    return any(point.t < span.stop and span.start < point.t + point.width_s for span in spans)
