"""The report of a run for a terminal: what was stressed, what it served, and what that means.

From top to bottom: what was stressed, what was searched, the partitions beside their target, the
account, the operations, the attempts, the course of the run, what was stored, its cost, the
conditions, and the verdict with its reasons last, where the eye rests when the run is over. What
makes the figures wrong stands above and below.
"""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from harness.measure.record import RunRecord
from harness.report.course import course, throttled
from harness.report.operations import attempts, operations
from harness.report.page import Page, grid
from harness.report.rates import account, partitions, predicted
from harness.report.reading import RELY_NOT, alarms, cost, measured
from harness.report.search import steps
from harness.report.stored import audit, index_tables
from harness.report.stressed import stressed
from harness.report.verdict import reasons, verdict
from harness.report.words import shortened

_VALUE_WIDTH = 36


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
        parts.append(course(record, page))
    parts += throttled(record, page)
    if record.pointers:
        parts.append(index_tables(record, page))
    if record.audit is not None:
        parts.append(audit(record.audit, page))
    parts.append(_cost(record, page))
    if record.conditions:
        parts.append(_conditions(record, page))
    parts += [Text(), *alarm, verdict(record, page), *reasons(record, page)]
    return page.render(Group(*parts))


def _head(record: RunRecord, page: Page) -> RenderableType:
    profile = record.profile
    content: list[RenderableType] = []
    if question := profile.get("question"):
        content += [Text(page.show(str(question)), style="italic"), Text()]
    content.append(
        grid([(Text(name, style="dim"), page.show(text)) for name, text in stressed(record)])
    )
    return Panel(
        Group(*content),
        title=Text(page.show(str(profile.get("name", "run"))), style="bold"),
        title_align="left",
        box=page.glyphs.box,
        border_style="cyan",
    )


def _alarm(record: RunRecord, page: Page) -> list[RenderableType]:
    """What makes the figures wrong, loud; nothing where they are right."""
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


def _cost(record: RunRecord, page: Page) -> RenderableType:
    return page.section(
        "generator and cost",
        grid([(Text(name, style="dim"), text) for name, text in cost(record)]),
    )


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
