"""Whether a run passed its conditions: the first thing that every output says of it."""

from __future__ import annotations

import dataclasses

from harness.model.figures import agreed
from harness.measure.record.record import RunRecord
from harness.report.sentences import measured


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
    if record.exit_code == 0:
        those = {1: "the condition holds", 2: "both conditions hold"}
        held = those.get(len(conditions), f"all {len(conditions)} conditions hold")
        return Passing("PASS", "good", held)
    if record.exit_code == 1 and failed:
        first, *others = failed
        single = len(conditions) == 1
        of = "the condition" if single else f"{len(failed)} of {len(conditions)} conditions"
        more = f", and {len(others)} more" if others else ""
        why = f"{first.text} ({measured(first)}){more}"
        return Passing("FAIL", "bad", f"{of} {agreed(len(failed), 'fails', 'fail')}: {why}")
    return Passing("NOT DECIDED", "warn", "the run does not show whether its conditions hold")
