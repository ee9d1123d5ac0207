"""One check of `harness doctor`: a line with a figure, and what to do about it."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable, Mapping
from typing import Any


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
        advice: What to do; empty if there is nothing to do.
        figures: The figures of ``text``, for programs.
    """

    name: str
    status: Status = Status.OK
    text: str
    advice: str = ""
    figures: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def failed(name: str, why: str, advice: str = "") -> CheckResult:
    return CheckResult(name=name, status=Status.FAILED, text=why, advice=advice)


def not_tried(name: str, why: str, advice: str = "") -> CheckResult:
    """A check that ``why`` did not allow; several with one reason are one line of the page."""
    return CheckResult(name=name, status=Status.NOT_TRIED, text=why, advice=advice)


def exit_code(checks: Iterable[CheckResult]) -> int:
    """1 if a check failed, 3 if one was not tried, else 0."""
    found = {check.status for check in checks}
    if Status.FAILED in found:
        return 1
    return 3 if Status.NOT_TRIED in found else 0
