"""The comparison of runs: which is better in what, and why runs may not be comparable.

The first run is the reference.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from harness.measure.figures import counted, listed, percent
from harness.measure.record.record import RunRecord
from harness.measure.verdict.verdict import VerdictResult, indicative
from harness.report.compare.quantities import (
    MEASURES,
    NEVER_WITHIN,
    SAME_WITHIN,
    Judged,
    Measure,
    Regression,
    Values,
    change_of,
    differ,
    values_of,
)

_FEW_REPEATS = 3
_OTHER_DURATION = 2.0
_OTHER_SIZE = 1.01
_INCONCLUSIVE = 3
_REGRESSED = 1
_DOUBTS: dict[str, Callable[[RunRecord], bool]] = {
    "is not valid: its counts contradict each other": lambda run: bool(run.invariants),
    "had operations that failed because of a defect in the harness or its user class": (
        lambda run: run.outcomes.get("defect", 0) > 0
    ),
    "is incomplete: its counts are too low": lambda run: not run.complete,
    "was client-limited: its rates are those of the generator, not of the endpoint": (
        lambda run: run.verdict.result == VerdictResult.CLIENT_LIMITED
    ),
    "was inconclusive": lambda run: run.verdict.result == VerdictResult.INCONCLUSIVE,
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A run, or its repeats, with its letter in outputs and the path that the user named."""

    letter: str
    source: str
    records: tuple[RunRecord, ...]

    def values(self, measure: Measure) -> Values | None:
        """The values of all repeats; None where one of them was not measured."""
        return values_of(measure, self.records)

    def doubts(self) -> list[str]:
        """Why the figures are unreliable, a sentence each."""
        found = []
        for reason, holds in _DOUBTS.items():
            if count := sum(map(holds, self.records)):
                runs = f"{count} of {counted(len(self.records), 'run')} of {self.letter}"
                found.append(f"{self.letter if len(self.records) == 1 else runs} {reason}.")
        return found


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The comparison of two or more runs; the first is the reference.

    Attributes:
        warnings: Why the figures may not be comparable.
        findings: Which run is better in what.
        rule: When a difference counts.
        regressions: The judged regressions of the last run against the first.
    """

    subjects: tuple[Subject, ...]
    warnings: tuple[str, ...]
    findings: tuple[str, ...]
    rule: str
    regressions: tuple[Judged, ...]

    @property
    def exit_code(self) -> int:
        """3 where a regression cannot be judged, 1 where one holds, 0 otherwise."""
        if any(judged.holds is None for judged in self.regressions):
            return _INCONCLUSIVE
        return _REGRESSED if any(judged.holds for judged in self.regressions) else 0


def compare(subjects: Sequence[Subject], regressions: Sequence[Regression]) -> Comparison:
    """Compare ``subjects``; judge the regressions of the last against the first.

    No regression can be judged where one of these two is unreliable.
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
    """When a difference counts between these runs: the rule of `differ` as text."""
    counts = [len(subject.records) for subject in subjects]
    single = f"differences up to {percent(SAME_WITHIN)} are ignored."
    if max(counts) == 1:
        return f"No run was repeated, so the spread is unknown: {single}"
    rule = (
        "A difference counts if it exceeds both the widest spread of the repeats (most - least) "
        f"and {percent(NEVER_WITHIN)}."
    )
    if counts.count(1) > 1:
        rule += f" Between single runs {single}"
    if max(counts) < _FEW_REPEATS:
        rule += f" {max(counts)} repeats give a rough spread; run {_FEW_REPEATS} or more."
    return rule


def findings(subjects: Sequence[Subject]) -> list[str]:
    """Which run is better in what, a sentence each; the last names what does not differ."""
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
    def show(name: str) -> str:
        return measure.show_in_full(known[name].mean)

    first = [letter for letter in known if letter not in behind]
    leading = listed([f"{name} ({show(name)})" for name in first])
    leading += f" {'is' if len(first) == 1 else 'are'} {'better' if len(known) == 2 else 'best'}"
    if len(first) > 1:
        leading += " and do not differ"
    others = []
    for name in behind:
        change = change_of(known[name].mean, known[first[0]].mean)
        words = f"{name} has {show(name)}"
        # A share of a share would mislead.
        if measure.unit != "%" and change is not None:
            words += f" ({percent(abs(change))} {'more' if change > 0 else 'less'})"
        others.append(words)
    return f"{measure.noun[0].upper()}{measure.noun[1:]}: {leading}; {', '.join(others)}."


def warnings(subjects: Sequence[Subject]) -> list[str]:
    """Why the figures may not be comparable, a sentence each."""
    first = subjects[0]
    sentences = [doubt for subject in subjects for doubt in subject.doubts()]
    for subject in subjects[1:]:
        one, other = first.records[0], subject.records[0]
        a, b = first.letter, subject.letter
        if one.endpoint.kind != other.endpoint.kind:
            sentences.append(
                f"{a} ran on {one.endpoint.described}, {b} on {other.endpoint.described}."
            )
        sizes = one.entity.stored_bytes, other.entity.stored_bytes
        if _apart(*sizes, _OTHER_SIZE):
            sentences.append(
                f"Entities have {sizes[0]:,} B in {a} and {sizes[1]:,} B in {b}; rates count "
                "entities, not bytes."
            )
        seconds = one.measured_s, other.measured_s
        if _apart(*seconds, _OTHER_DURATION):
            sentences.append(f"{a} was measured for {seconds[0]:,} s, {b} for {seconds[1]:,} s.")
    off_size = [one.letter for one in subjects if indicative(one.records[0].entity.stored_bytes)]
    if off_size:
        sentences.append(
            f"Indicative only: targets hold for 1 KiB entities, and entities of {listed(off_size)} "
            "have another size."
        )
    return sentences


def _apart(one: float, other: float, factor: float) -> bool:
    return max(one, other) > factor * min(one, other)
