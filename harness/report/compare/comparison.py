"""Runs side by side: which is better on what, and what forbids to hold them side by side.

The first of the compared is what the others are held against.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from harness.measure.record import RunRecord
from harness.measure.verdict import VerdictResult, indicative
from harness.report.comparable import (
    MEASURES,
    NEVER_WITHIN,
    SAME_WITHIN,
    Measure,
    Values,
    change_of,
    differ,
    values_of,
)
from harness.report.regression import Judged, Regression
from harness.report.words import counted, listed, percent

_FEW_REPEATS = 3
_OTHER_DURATION = 2.0
_OTHER_SIZE = 1.01
_INCONCLUSIVE = 3
_REGRESSED = 1


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One of the compared: a run, or its repeats.

    Attributes:
        letter: What the output calls it.
        source: Where it was read from, as it was named.
        records: At least one.
    """

    letter: str
    source: str
    records: tuple[RunRecord, ...]

    def values(self, measure: Measure) -> Values | None:
        """What was reached; None where a run did not measure it."""
        return values_of(measure, self.records)

    def doubts(self) -> list[str]:
        """Why its figures should not be relied on, a sentence each."""
        reasons: list[tuple[str, Callable[[RunRecord], bool]]] = [
            ("broke the harness's own laws of counting", lambda run: bool(run.invariants)),
            (
                "had operations that ended in a way the harness does not know",
                lambda run: run.outcomes.get("defect", 0) > 0,
            ),
            ("is incomplete: its counts are too low", lambda run: not run.complete),
            (
                "was client-limited: its rates are the generator's, not the endpoint's",
                lambda run: run.verdict.result == VerdictResult.CLIENT_LIMITED,
            ),
            (
                "was inconclusive",
                lambda run: run.verdict.result == VerdictResult.INCONCLUSIVE,
            ),
        ]
        found = []
        for reason, holds in reasons:
            count = sum(map(holds, self.records))
            if count:
                runs = f"{count} of {counted(len(self.records), 'run')} of {self.letter}"
                found.append(f"{self.letter if len(self.records) == 1 else runs} {reason}.")
        return found


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What there is to say about runs side by side.

    Attributes:
        subjects: At least two; the first is the reference.
        warnings: Why the figures cannot simply be held beside each other.
        findings: Which is better on what.
        rule: When a difference counts as one.
        regressions: What was asked of the last against the first.
    """

    subjects: tuple[Subject, ...]
    warnings: tuple[str, ...]
    findings: tuple[str, ...]
    rule: str
    regressions: tuple[Judged, ...]

    @property
    def exit_code(self) -> int:
        """3 where a regression cannot be told, 1 where one holds, 0 otherwise."""
        if any(judged.holds is None for judged in self.regressions):
            return _INCONCLUSIVE
        return _REGRESSED if any(judged.holds for judged in self.regressions) else 0


def compare(subjects: Sequence[Subject], regressions: Sequence[Regression]) -> Comparison:
    """Hold ``subjects`` side by side, and the last against the first.

    Where either of these two cannot be relied on, no regression can be told.
    """
    first, last = subjects[0], subjects[-1]
    doubts = [*first.doubts(), *last.doubts()]
    judged = [
        regression.judge(first.values(regression.measure), last.values(regression.measure))
        for regression in regressions
    ]
    if doubts:
        judged = [
            dataclasses.replace(one, holds=None, sentence=f"{one.sentence}; but {doubts[0]}")
            for one in judged
        ]
    return Comparison(
        subjects=tuple(subjects),
        warnings=tuple(warnings(subjects)),
        findings=tuple(findings(subjects)),
        rule=rule_of_difference(subjects),
        regressions=tuple(judged),
    )


def rule_of_difference(subjects: Sequence[Subject]) -> str:
    """How `differ` judges these, in words."""
    counts = [len(subject.records) for subject in subjects]
    single = f"differences up to {percent(SAME_WITHIN)} count as none."
    if max(counts) == 1:
        return f"There are no repeats, so no spread to judge by: {single}"
    rule = (
        "A difference counts where it is larger than the widest spread of the repeats (most - "
        f"least), and than {percent(NEVER_WITHIN)}."
    )
    if counts.count(1) > 1:
        rule += f" Between single runs {single}"
    if max(counts) < _FEW_REPEATS:
        rule += f" {max(counts)} repeats say little about a spread; make {_FEW_REPEATS} or more."
    return rule


def findings(subjects: Sequence[Subject]) -> list[str]:
    """Which is better on what, a sentence each; last, on what there is no difference."""
    sentences, same = [], []
    for measure in MEASURES:
        if measure.more_is_better is None:
            continue
        known = {
            subject.letter: values
            for subject in subjects
            if (values := subject.values(measure)) is not None
        }
        if len(known) < 2:
            continue
        pick = max if measure.more_is_better else min
        best = pick(known, key=lambda letter: known[letter].mean)
        behind = [name for name in known if differ(measure, known[best], known[name])]
        if behind:
            sentences.append(_better(measure, known, behind))
        else:
            same.append(measure.noun)
    if same:
        sentences.append(f"No difference: {', '.join(same)}.")
    return sentences


def _better(measure: Measure, known: dict[str, Values], behind: list[str]) -> str:
    first = [letter for letter in known if letter not in behind]
    unit = " ms" if measure.unit == "ms" else ""
    word = "better" if len(known) == 2 else "best"
    shown = listed([f"{name} ({measure.show(known[name].mean)}{unit})" for name in first])
    leading = f"{shown} {'is' if len(first) == 1 else 'are'} {word}"
    if len(first) > 1:
        leading += ", without a difference"
    reference = known[first[0]].mean
    others = [
        f"{name} has {measure.show(known[name].mean)}{unit}"
        f"{_beside(measure, known[name].mean, reference)}"
        for name in behind
    ]
    return f"{measure.noun[0].upper()}{measure.noun[1:]}: {leading}; {', '.join(others)}."


def _beside(measure: Measure, value: float, reference: float) -> str:
    """How much a value is above or below another; a share of a share would mislead."""
    change = change_of(value, reference)
    if measure.unit == "%" or change is None:
        return ""
    return f" ({percent(abs(change))} {'more' if change > 0 else 'less'})"


def warnings(subjects: Sequence[Subject]) -> list[str]:
    """Why the figures cannot simply be held beside each other, a sentence each."""
    first = subjects[0]
    sentences = [doubt for subject in subjects for doubt in subject.doubts()]
    for subject in subjects[1:]:
        a, b = first.records[0], subject.records[0]
        names = first.letter, subject.letter
        if a.endpoint.kind != b.endpoint.kind:
            sentences.append(
                f"{names[0]} was answered by {a.endpoint.described}, {names[1]} by "
                f"{b.endpoint.described}."
            )
        sizes = a.entity.stored_bytes, b.entity.stored_bytes
        if _apart(*sizes, _OTHER_SIZE):
            sentences.append(
                f"Written entities have {sizes[0]:,} B in {names[0]}, {sizes[1]:,} B in "
                f"{names[1]}; rates count entities, not bytes."
            )
        if _apart(a.measured_s, b.measured_s, _OTHER_DURATION):
            sentences.append(
                f"{names[0]} was measured for {a.measured_s:,} s, {names[1]} for "
                f"{b.measured_s:,} s."
            )
    off_size = [one.letter for one in subjects if indicative(one.records[0].entity.stored_bytes)]
    if off_size:
        sentences.append(
            f"Indicative only: targets hold for 1 KiB entities, which {listed(off_size)} "
            f"{'does' if len(off_size) == 1 else 'do'} not have."
        )
    return sentences


def _apart(one: float, other: float, factor: float) -> bool:
    return max(one, other) > factor * min(one, other)
