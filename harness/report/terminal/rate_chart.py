"""Entities/s over time as a chart of characters, with throttling and outages below it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from harness.measure.figures import counted, duration, number
from harness.measure.record.over_time import SeriesPart
from harness.measure.record.record import RunRecord
from harness.report.sentences import shown_gaps
from harness.report.terminal.drawing import chart, columns
from harness.report.terminal.page import Page

_HEIGHT = 3
_THROTTLED = "throttled"
_OUTAGE = "outage"


def rate_chart(record: RunRecord, page: Page) -> RenderableType:
    """Entities/s over the time under load; a heavy axis marks the measured window."""
    series = record.series
    top = number(max(point.entities for point in series))
    margin = max(len(top), len(_THROTTLED)) + 1
    groups = columns(len(series), page.width - margin - 1)
    values = [sum(series[place].entities for place in group) / len(group) for group in groups]
    lines: list[RenderableType] = []
    for place, line in enumerate(chart(values, _HEIGHT, page.glyphs)):
        label = top if place == 0 else ("0" if place == _HEIGHT - 1 else "")
        lines.append(_line(label, margin, Text(line, style="cyan")))
    start, end = record.window_start, record.window_start + record.measured_s
    axis = "".join(
        page.glyphs.inside
        if any(start <= series[place].t < end for place in group)
        else page.glyphs.outside
        for group in groups
    )
    lines.append(_line("", margin, Text(axis, style="dim")))
    if any(point.throttled for point in series):
        refused = [sum(series[place].throttled for place in group) for group in groups]
        [marks] = chart(refused, 1, page.glyphs)
        lines.append(_line(_THROTTLED, margin, Text(marks, style="red")))
    if gaps := shown_gaps(record):
        began = series[0].t
        spans = [range(began + gap.start_s, began + gap.start_s + gap.length_s) for gap in gaps]
        inside = [any(_meets(series[place], spans) for place in group) for group in groups]
        drawn = "".join(page.glyphs.levels[-1] if gone else " " for gone in inside)
        lines.append(_line(_OUTAGE, margin, Text(drawn, style="yellow")))
    length = sum(point.width_s for point in series)
    ends = duration(length)
    middle = f"{page.glyphs.inside * 2} measured {counted(record.measured_s, 'second')}"
    room = len(groups) - len("0:00") - len(ends)
    if room > len(middle):
        lines.append(_line("", margin, Text(f"0:00{middle:^{room}}{ends}", style="dim")))
    return page.section("entities/s over time", *lines)


def _meets(point: SeriesPart, spans: Sequence[range]) -> bool:
    """True where the seconds of a point overlap one of ``spans``, UTC."""
    return any(point.t < span.stop and span.start < point.t + point.width_s for span in spans)


def _line(label: str, margin: int, content: Text) -> Text:
    return Text.assemble((f"{label:>{margin - 1}} ", "dim"), content, no_wrap=True)
