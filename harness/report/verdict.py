"""The verdict as a terminal shows it: its sentence, why, and what the documents advise."""

from __future__ import annotations

from rich.console import RenderableType
from rich.panel import Panel
from rich.text import Text

from harness.measure.record import RunRecord
from harness.report.page import Page, grid
from harness.report.reading import advised, limited_by, result_words

_COLOURS = {"within_target": "green", "throttled": "red"}


def verdict(record: RunRecord, page: Page) -> RenderableType:
    """What the run means, in a frame."""
    colour = _COLOURS.get(record.verdict.result, "yellow")
    limit = limited_by(record)
    result = result_words(record).upper()
    return Panel(
        Text(page.show(record.verdict.sentence), style="bold"),
        title=Text(f"VERDICT: {page.show(result)}", style=f"bold {colour}"),
        title_align="left",
        subtitle=None if limit is None else Text(f"limited by {limit}", style="dim"),
        subtitle_align="left",
        box=page.glyphs.box,
        border_style=colour,
        padding=(1, 1),
    )


def reasons(record: RunRecord, page: Page) -> list[RenderableType]:
    """Below the verdict: what was seen, and what may be done; only where there is something."""
    evidence, advice = record.verdict.evidence, record.verdict.advice
    parts: list[RenderableType] = []
    if evidence:
        rows = [(Text("-", style="dim"), Text(page.show(sentence))) for sentence in evidence]
        parts.append(page.section("why", grid(rows)))
    if advice:
        lines = [
            (
                Text("-", style="dim"),
                Text(page.show(sentence)).append(f"\n{page.show(source)}", style="dim"),
            )
            for sentence, source in map(advised, advice)
        ]
        parts.append(page.section("what the documents advise", grid(lines)))
    return parts
