"""The checks of `harness doctor`: a line with a figure each, what to do about it; their page."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from harness.model.figures import counted
from harness.report.terminal.page import Page

_NAME_WIDTH = 17


class Status(enum.StrEnum):
    """What a check found. Only a failed one says that a run cannot work."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    NOT_TRIED = "not tried"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """One line of the page.

    Attributes:
        section: The part of the page that it stands in.
        figures: The figures of ``text``, for programs.
    """

    section: str = ""
    name: str
    status: Status = Status.OK
    text: str
    advice: str = ""
    figures: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def judged(
    name: str, text: str, advice: str = "", figures: Mapping[str, Any] | None = None
) -> CheckResult:
    """A check that was made: a warning if there is ``advice``, else fine."""
    status = Status.WARNING if advice else Status.OK
    return CheckResult(name=name, status=status, text=text, advice=advice, figures=figures or {})


def failed(
    name: str, why: str, advice: str = "", figures: Mapping[str, Any] | None = None
) -> CheckResult:
    status = Status.FAILED
    return CheckResult(name=name, status=status, text=why, advice=advice, figures=figures or {})


def not_tried(name: str, why: str, advice: str = "") -> CheckResult:
    """A check that ``why`` did not allow; several with one reason are one line of the page."""
    return CheckResult(name=name, status=Status.NOT_TRIED, text=why, advice=advice)


def exit_code(checks: Iterable[CheckResult]) -> int:
    """1 if a check failed, 3 if one was not tried, else 0."""
    found = {check.status for check in checks}
    if Status.FAILED in found:
        return 1
    return 3 if Status.NOT_TRIED in found else 0


def check_text(check: CheckResult, page: Page) -> str:
    """The line of a check, and another one with its advice."""
    mark, style = {
        Status.OK: (page.glyphs.yes, "green"),
        Status.WARNING: ("!", "yellow"),
        Status.FAILED: (page.glyphs.no if page.glyphs.no != "!" else "X", "red"),
        Status.NOT_TRIED: (page.glyphs.line, "dim"),
    }[check.status]
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=1)
    table.add_column(width=_NAME_WIDTH)
    table.add_column(overflow="fold")
    table.add_row(
        Text(mark, style),
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
