"""The page of the doctor in a terminal: a line a check, what to do below it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from harness.doctor.checks import CheckResult, Status
from harness.model.figures import counted
from harness.report.terminal.page import Page

_NAME_WIDTH = 17
_STYLES = {
    Status.OK: "green",
    Status.WARNING: "yellow",
    Status.FAILED: "red",
    Status.NOT_TRIED: "dim",
}


def check_text(check: CheckResult, page: Page) -> str:
    """The line of a check, and another one with its advice."""
    marks = {
        Status.OK: page.glyphs.yes,
        Status.WARNING: "!",
        Status.FAILED: page.glyphs.no if page.glyphs.no != "!" else "X",
        Status.NOT_TRIED: page.glyphs.line,
    }
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=1)
    table.add_column(width=_NAME_WIDTH)
    table.add_column(overflow="fold")
    style = _STYLES[check.status]
    table.add_row(
        Text(marks[check.status], style),
        Text(check.name, "" if check.status is Status.OK else style),
        Text(page.show(check.text), style if check.status is Status.NOT_TRIED else ""),
    )
    if check.advice:
        table.add_row("", "", Text(page.show(f"-> {check.advice}"), style))
    return page.render(table)


def together(checks: Sequence[CheckResult]) -> CheckResult:
    """Checks with the same text, as one line."""
    first = checks[0]
    names = ", ".join(check.name for check in checks)
    return dataclasses.replace(first, name="", text=f"{names} not tried: {first.text}")


def section_text(title: str, page: Page, *lines: RenderableType) -> str:
    return page.render(page.section(title, *lines))


def summary_text(checks: Sequence[CheckResult], transactions: int, exit_code: int) -> str:
    """How many checks failed, and how many transactions were billed to accounts."""
    numbers = {status: sum(check.status is status for check in checks) for status in Status}
    parts = [
        f"{numbers[Status.OK]:,} of {counted(len(checks), 'check')} fine",
        counted(numbers[Status.WARNING], "warning"),
        f"{numbers[Status.FAILED]:,} failed",
        f"{numbers[Status.NOT_TRIED]:,} not tried",
    ]
    billed = f"; {counted(transactions, 'billable transaction')}" if transactions else ""
    return f"{', '.join(parts)}{billed}\nExit code: {exit_code}"
