"""The course of a run: a chart of entities a second, with what was throttled below it."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from harness.measure.record import RunRecord
from harness.report.drawing import chart, columns
from harness.report.page import Page
from harness.report.words import counted, duration, number

_HEIGHT = 3


def course(record: RunRecord, page: Page) -> RenderableType:
    """Entities a second over the whole time under load, the measured window marked."""
    series = record.series
    top = number(max(point.entities for point in series))
    margin = max(len(top), len("throttled")) + 1
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
        lines.append(_line("throttled", margin, Text(marks, style="red")))
    length = sum(point.width_s for point in series)
    ends = duration(length)
    middle = f"{page.glyphs.inside * 2} measured {counted(record.measured_s, 'second')}"
    room = len(groups) - len("0:00") - len(ends)
    if room > len(middle):
        lines.append(_line("", margin, Text(f"0:00{middle:^{room}}{ends}", style="dim")))
    return page.section("entities/s over time", *lines)


def _line(label: str, margin: int, content: Text) -> Text:
    return Text.assemble((f"{label:>{margin - 1}} ", "dim"), content, no_wrap=True)
