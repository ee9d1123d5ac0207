"""Whether a run passed its conditions: the first thing that every output says of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from harness.measure.record.findings import ConditionPart
from harness.measure.record.record import RunRecord
from harness.measure.verdict.conditions import Condition, parse_condition
from harness.measure.verdict.quantities import Unit
from harness.measure.verdict.verdict import VerdictResult, is_doubtful
from harness.model.figures import agreed, milliseconds, number, percent, request_units

_VALUES: dict[str, Callable[[float], str]] = {
    Unit.SHARE: percent,
    Unit.RATE: number,
    Unit.REQUEST_UNITS: lambda value: f"{request_units(value)} RU",
    Unit.REQUEST_UNITS_RATE: lambda value: f"{number(value)} RU/s",
    Unit.LATENCY: lambda value: f"{milliseconds(value)} ms",
    Unit.COUNT: lambda value: f"{value:,.0f}",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Passing:
    """Whether the run passed its conditions: a word, a tone of good, bad or warn, and why."""

    word: str
    tone: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.word}: {self.sentence}"


def passing_of(record: RunRecord) -> Passing | None:
    """What the conditions say of the run, as its exit code does; None without conditions."""
    conditions = record.conditions
    if not conditions:
        return None
    failed = [part for part in conditions if part.passed is False]
    those = {1: "the condition holds", 2: "both conditions hold"}
    held = those.get(len(conditions), f"all {len(conditions)} conditions hold")
    if record.exit_code == 0:
        return Passing("PASS", "good", held)
    if record.exit_code == 1 and failed:
        verb = agreed(len(failed), "fails", "fail")
        return Passing("FAIL", "bad", f"{_of(conditions, failed)} {verb}: {_example(failed)}")
    unknown = [part for part in conditions if part.passed is None]
    doubtful = is_doubtful(record.verdict)
    if not (failed or unknown) and record.exit_code == 3 and not doubtful:
        return Passing("PASS", "warn", f"{held}, but an output could not be written (exit code 3)")
    if not unknown:
        said = "the run does not show whether its conditions hold"
        if not failed and doubtful:
            inconclusive = record.verdict.result == VerdictResult.INCONCLUSIVE
            why = (
                "the run is inconclusive"
                if inconclusive
                else "the limits of the endpoint are unknown"
            )
            said = f"{held} in what was measured, but {why}"
        return Passing("NOT DECIDED", "warn", said)
    words = f"{_of(conditions, unknown)} cannot be decided: {_example(unknown)}"
    return Passing("NOT DECIDED", "warn", words)


def is_unexplained(record: RunRecord) -> bool:
    """Whether a condition failed although the verdict names nothing that went wrong."""
    passing = passing_of(record)
    failed = passing is not None and passing.tone == "bad"
    return failed and record.verdict.result == VerdictResult.WITHIN_TARGET


def failed_latency(record: RunRecord) -> Condition | None:
    """The first failed condition about a latency of all operations; None without one."""
    for part in record.conditions:
        condition = _parsed(part.text) if part.passed is False else None
        if condition is not None and condition.form.unit == Unit.LATENCY and not condition.form.by:
            return condition
    return None


def _of(conditions: Sequence[ConditionPart], some: Sequence[ConditionPart]) -> str:
    return (
        "the condition" if len(conditions) == 1 else f"{len(some)} of {len(conditions)} conditions"
    )


def _example(some: Sequence[ConditionPart]) -> str:
    """The first of them, with its measured value, and how many more there are."""
    first, *others = some
    return f"{first.text} ({measured(first)})" + (f", and {len(others)} more" if others else "")


def measured(part: ConditionPart) -> str:
    """The measured value of a condition, with its unit and the condition's note."""
    if part.value is None:
        return part.note or "not measured"
    # A record of a later version of the harness may have a unit that is unknown here.
    # One of an earlier version may have none.
    parsed = None if part.unit else _parsed(part.text)
    unit = part.unit if parsed is None else parsed.form.unit
    value = _VALUES.get(unit, number)(part.value)
    return f"measured {value}; {part.note}" if part.note else f"measured {value}"


def _parsed(text: str) -> Condition | None:
    """None for a condition of a later version of the harness."""
    try:
        return parse_condition(text)
    except ValueError:
        return None
