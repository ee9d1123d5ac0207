"""PASS or FAIL of the conditions is the first thing in every output."""

from __future__ import annotations

import pytest

from harness.report.export.markdown import markdown
from harness.report.passing import passing_of
from harness.report.terminal.page import Page
from harness.report.terminal.summary import summary
from harness.report.web.document import update
from tests.support.records import altered, kept

RECORD = kept()


def test_whether_the_conditions_hold_comes_before_the_verdict() -> None:
    """A green verdict cannot hide a failed condition."""
    verdict = altered(RECORD.verdict, result="within_target")
    record = altered(RECORD, verdict=verdict, exit_code=1)
    shown = update(record, live=False)["parts"]["verdict"]
    assert shown.index(">FAIL<") < shown.index(">within target<")
    terminal = summary(record, Page(width=100))
    assert terminal.startswith("FAIL: 2 of 3 conditions fail: throttled_ratio < 1%")
    assert terminal.rindex("FAIL: 2 of 3") < terminal.index("VERDICT: WITHIN TARGET")
    assert markdown(record).startswith("## FAIL, within target: single-partition\n")


@pytest.mark.parametrize(
    ("exit_code", "passed", "words"),
    [
        (0, True, "PASS: both conditions hold"),
        (
            1,
            False,
            "FAIL: 2 of 2 conditions fail: throttled_ratio < 1% (measured 8.7%), and 1 more",
        ),
        (
            3,
            None,
            "NOT DECIDED: 2 of 2 conditions cannot be decided: throttled_ratio < 1% (not "
            "measured), and 1 more",
        ),
        (3, True, "PASS: both conditions hold, but an output could not be written (exit code 3)"),
        (4, False, "NOT DECIDED: the run does not show whether its conditions hold"),
    ],
)
def test_the_conditions_are_told_as_the_exit_code_says(
    exit_code: int, passed: bool | None, words: str
) -> None:
    """What is said first is never greener than the exit code, and nothing without conditions."""
    parts = tuple(
        part.model_copy(update={"passed": passed} | ({} if passed is not None else {"value": None}))
        for part in RECORD.conditions
        if not part.passed
    )
    record = altered(RECORD, exit_code=exit_code, conditions=parts)
    assert str(passing_of(record)) == words
    assert passing_of(altered(record, conditions=())) is None


def test_conditions_that_hold_decide_nothing_where_the_run_was_in_doubt() -> None:
    """Exit code 3 of a run whose generator was the limit is not about outputs."""
    parts = tuple(altered(part, passed=True) for part in RECORD.conditions)
    verdict = altered(RECORD.verdict, result="client_limited")
    changes = {"exit_code": 3, "conditions": parts, "verdict": verdict}
    passing = passing_of(RECORD.model_copy(update=changes))
    assert str(passing).startswith("NOT DECIDED: all 3 conditions hold in what was measured, but")


def test_conditions_that_hold_in_an_inconclusive_run_are_not_decided_for_that_reason() -> None:
    """Whether the endpoint has a limit is not what a lost worker or a short window leaves open."""
    verdict = altered(RECORD.verdict, result="inconclusive", limited_by="unknown")
    held = tuple(part for part in RECORD.conditions if part.passed)
    record = altered(RECORD, verdict=verdict, exit_code=3, conditions=held)
    said = "NOT DECIDED: the condition holds in what was measured, but the run is inconclusive"
    assert str(passing_of(record)) == said
