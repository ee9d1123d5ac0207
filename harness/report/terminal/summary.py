"""The report of a run for a terminal.

The verdict and its reasons come last, where the eye rests when a run is over. A warning about wrong
figures stands at the top and again above the verdict.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from harness.measure.figures import agreed, counted
from harness.measure.record.findings import AuditPart
from harness.measure.record.record import RunRecord
from harness.report.columns import referred
from harness.report.names import shortened
from harness.report.sentences import (
    RELY_NOT,
    advised,
    alarms,
    audit_examples,
    audited,
    cost,
    limited_by,
    measured,
    result_words,
    setup,
    throttling,
)
from harness.report.terminal.page import Page, grid
from harness.report.terminal.rate_chart import rate_chart
from harness.report.terminal.tables import (
    account,
    attempts,
    operations,
    partitions,
    predicted,
    steps,
)

_VALUE_WIDTH = 36
_TABLE_NAME_WIDTH = 24
_VERDICT_COLOURS = {"within_target": "green", "throttled": "red"}


def summary(record: RunRecord, *, width: int, colour: bool, ascii_only: bool = False) -> str:
    """The report of ``record``.

    Args:
        record: The run.
        width: Columns of the terminal; made for 80 and more.
        colour: Whether colours and bold are shown.
        ascii_only: Whether only ASCII can be shown.
    """
    page = Page(width=width, colour=colour, ascii_only=ascii_only)
    alarm = _alarm(record, page)
    parts = [_head(record, page), *alarm]
    if record.search is not None:
        parts.append(steps(record.search, page))
    parts += [
        partitions(record, page),
        *predicted(record, page),
        account(record, page),
        operations(record, page),
        attempts(record, page),
    ]
    if record.series:
        parts.append(rate_chart(record, page))
    if rows := throttling(record):
        parts.append(_facts("throttling", rows, page))
    if record.pointers:
        parts.append(_index_tables(record, page))
    if record.audit is not None:
        parts.append(_audit(record.audit, page))
    parts.append(_facts("generator and cost", cost(record), page))
    if record.conditions:
        parts.append(_conditions(record, page))
    parts += [Text(), *alarm, _verdict(record, page), *_reasons(record, page)]
    return page.render(Group(*parts))


def _facts(title: str, rows: Sequence[tuple[str, str]], page: Page) -> RenderableType:
    return page.section(title, grid([(Text(name, "dim"), page.show(fact)) for name, fact in rows]))


def _head(record: RunRecord, page: Page) -> RenderableType:
    profile = record.profile
    content: list[RenderableType] = []
    if question := profile.get("question"):
        content += [Text(page.show(str(question)), style="italic"), Text()]
    content.append(grid([(Text(name, "dim"), page.show(text)) for name, text in setup(record)]))
    return Panel(
        Group(*content),
        title=Text(page.show(str(profile.get("name", "run"))), style="bold"),
        title_align="left",
        box=page.glyphs.box,
        border_style="cyan",
    )


def _alarm(record: RunRecord, page: Page) -> list[RenderableType]:
    """Why the figures are wrong; empty where they are right."""
    lines = [page.show(sentence) for sentence in alarms(record)]
    if not lines:
        return []
    return [
        Panel(
            Text("\n".join(lines), style="bold"),
            title=Text(RELY_NOT.upper(), style="bold"),
            box=page.glyphs.box,
            border_style="bold red",
        )
    ]


def _index_tables(record: RunRecord, page: Page) -> RenderableType:
    """References between an index table and its main table that are broken."""
    rows = []
    for part in record.pointers:
        to = page.show(referred(part))
        dangling = (
            f"{part.dangling:,} {agreed(part.dangling, 'refers', 'refer')} to a missing row of {to}"
        )
        line = Text(f"{counted(part.rows, 'row')}, of which ")
        line.append(dangling, style="yellow" if part.dangling else "")
        line.append(
            f"; {counted(part.unnamed, 'row')} of {to} {agreed(part.unnamed, 'has', 'have')} no "
            "reference"
        )
        name = shortened(page.show(part.table), _TABLE_NAME_WIDTH, page.glyphs.ellipsis)
        rows.append((Text(name), line))
    return page.section("index tables", grid(rows))


def _audit(part: AuditPart, page: Page) -> RenderableType:
    rows = [
        (
            Text(name, style="dim"),
            Text(page.show(text), style="bold red" if name == "lost" and part.lost else ""),
        )
        for name, text in [*audited(part), *audit_examples(part)]
    ]
    return page.section("audit", grid(rows))


def _conditions(record: RunRecord, page: Page) -> RenderableType:
    rows = []
    for part in record.conditions:
        sign, word, colour = {
            True: (page.glyphs.yes, "holds", "green"),
            False: (page.glyphs.no, "FAILS", "bold red"),
            None: ("?", "not known", "yellow"),
        }[part.passed]
        # The value takes what is left of the line, and wraps.
        text = shortened(page.show(part.text), page.width - _VALUE_WIDTH, page.glyphs.ellipsis)
        rows.append((Text(f"{sign} {word}", style=colour), text, page.show(measured(part))))
    return page.section("conditions", grid(rows))


def _verdict(record: RunRecord, page: Page) -> RenderableType:
    colour = _VERDICT_COLOURS.get(record.verdict.result, "yellow")
    limit = limited_by(record)
    return Panel(
        Text(page.show(record.verdict.sentence), style="bold"),
        title=Text(f"VERDICT: {page.show(result_words(record).upper())}", style=f"bold {colour}"),
        title_align="left",
        subtitle=None if limit is None else Text(f"limited by {limit}", style="dim"),
        subtitle_align="left",
        box=page.glyphs.box,
        border_style=colour,
        padding=(1, 1),
    )


def _reasons(record: RunRecord, page: Page) -> list[RenderableType]:
    """The evidence of the verdict, and advice from the documents; empty sections are left out."""
    parts: list[RenderableType] = []
    if evidence := record.verdict.evidence:
        rows = [(Text("-", style="dim"), Text(page.show(sentence))) for sentence in evidence]
        parts.append(page.section("why", grid(rows)))
    if record.verdict.advice:
        lines = [
            (
                Text("-", style="dim"),
                Text(page.show(sentence)).append(f"\n{page.show(source)}", style="dim"),
            )
            for sentence, source in map(advised, record.verdict.advice)
        ]
        parts.append(page.section("what the documents advise", grid(lines)))
    return parts
