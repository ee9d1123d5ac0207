"""The comparison of runs: which is better in what, regressions, and why runs may not compare.

The first run is the reference. `judge` says what is a difference, `differences_of` in which
settings two runs differ, and `headline` what the comparison comes to.
"""

from __future__ import annotations

import dataclasses
import itertools
import string
from collections.abc import Iterator, Sequence
from typing import Any

from harness.measure.record.record import RunRecord
from harness.measure.verdict.verdict import VerdictResult
from harness.model.figures import agreed, counted, listed, number, percent
from harness.model.target import indicative
from harness.report.compare.differences import (
    FEW_REPEATS,
    MANY_TIMES,
    NEVER_WITHIN,
    SAME_WITHIN,
    UNKNOWN,
    Subject,
    Values,
    change_of,
    change_words,
    doubts,
    in_brackets,
    judge,
)
from harness.report.compare.measures import Measure, measures_of
from harness.report.compare.regressions import Judged, Regression
from harness.report.compare.replayed import replay_sentences
from harness.report.limits import counted_unit
from harness.report.names import shortened

_BYTES = ("sent_bytes", "received_bytes")


_OTHER_DURATION = 2.0
_OTHER_RATE = 1.1
_OTHER_SIZE = 1.01
_INCONCLUSIVE = 3
_REGRESSED = 1


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Who is better in a measure; nobody if none is behind.

    Attributes:
        best: Names of the best run, and of those that do not differ from it.
        behind: Names of the runs that are worse.
        undecided: Why others cannot be told from the best, each reason once.
    """

    measure: Measure
    values: dict[str, Values]
    best: tuple[str, ...]
    behind: tuple[str, ...]
    undecided: tuple[str, ...]

    def shown(self, name: str) -> str:
        """The figure of a run, with the sign of a bound."""
        values = self.values[name]
        return values.sign + self.measure.show_in_full(values.mean)

    def is_bounded(self, name: str, other: str) -> bool:
        """Whether two that differ may differ by more, because the figure of one is a bound."""
        return bool(self.values[name].sign or self.values[other].sign)

    def __str__(self) -> str:
        """The difference as a sentence."""
        leading = listed([f"{name} ({self.shown(name)})" for name in self.best])
        among = "better" if len(self.best) + len(self.behind) == 2 else "best"
        leading += f" {agreed(len(self.best), 'is', 'are')} {among}"
        if len(self.best) > 1:
            leading += " and do not differ"
        others = []
        for name in self.behind:
            words = f"{name} has {self.shown(name)}"
            # A share of a share would mislead.
            if self.measure.unit != "%":
                mean, best = (self.values[one].mean for one in (name, self.best[0]))
                bounded = self.is_bounded(name, self.best[0])
                words += in_brackets(change_words(mean, best, bounded=bounded))
            others.append(words)
        noun = self.measure.noun
        return f"{noun[0].upper()}{noun[1:]}: {leading}; {', '.join(others)}."


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The comparison of two or more runs; the first is the reference.

    Attributes:
        same: Nouns of the measures in which no run is better.
        scattered: Nouns of those whose values differ, but no more than they scatter.
        undecided: Nouns of the measures that decide nothing, by the reason.
        regressions: Of the last run against the first.
    """

    subjects: tuple[Subject, ...]
    warnings: tuple[str, ...]
    differences: tuple[Ranking, ...]
    same: tuple[str, ...]
    scattered: tuple[str, ...]
    undecided: dict[str, list[str]]
    notes: tuple[str, ...]
    rule: str
    regressions: tuple[Judged, ...]

    @property
    def findings(self) -> list[str]:
        """Which run is better in what, a sentence each; then what is the same or undecided."""
        sentences = [*replay_sentences(self.subjects)]
        sentences += map(str, self.differences)
        if self.same:
            sentences.append(f"No difference: {', '.join(self.same)}.")
        if self.scattered:
            sentences.append(f"Within the scatter, not told apart: {', '.join(self.scattered)}.")
        reasons: dict[str, list[str]] = {}
        for why, nouns in self.undecided.items():
            reasons.setdefault(", ".join(nouns), []).append(why)
        for noun, found in reasons.items():
            sentences.append(f"Shown, not judged: {noun} ({'; '.join(found)}).")
        return [*sentences, *self.notes]

    @property
    def exit_code(self) -> int:
        """3 where a regression cannot be judged, 1 where one holds, 0 otherwise."""
        if any(judged.holds is None for judged in self.regressions):
            return _INCONCLUSIVE
        return _REGRESSED if any(judged.holds for judged in self.regressions) else 0


def named(subjects: Sequence[Subject]) -> tuple[Subject, ...]:
    """The runs with names: as given, or profiles or keys if they differ, or else letters."""
    profiles = [subject.records[0].profile for subject in subjects]
    made = [
        keys.get("partition_key") for one in profiles if isinstance(keys := one.get("keys"), dict)
    ]
    given = [subject.name for subject in subjects]
    for told in (given, [profile.get("name") for profile in profiles], made):
        names = [str(name or "") for name in told]
        if all(names) and len(set(names)) == len(subjects):
            break
    else:
        names = [*string.ascii_uppercase[: len(subjects)]]
    return tuple(
        dataclasses.replace(subject, name=name)
        for subject, name in zip(subjects, names, strict=True)
    )


def compare(subjects: Sequence[Subject], regressions: Sequence[Regression]) -> Comparison:
    """Compare ``subjects``; judge the regressions of the last against the first."""
    subjects = named(subjects)
    first, last = subjects[0], subjects[-1]
    differences: list[Ranking] = []
    same: list[str] = []
    scattered: list[str] = []
    undecided: dict[str, list[str]] = {}
    cautions = warnings(subjects)
    whole = [one.name for one in subjects if one.counts_whole]
    bodies = [one.name for one in subjects if not one.counts_whole]
    mixed = bool(whole and bodies)
    for measure in measures_of([one for subject in subjects for one in subject.records]):
        if measure.more_is_better is None or (mixed and measure.name in _BYTES):
            continue
        values = {one.name: found for one in subjects if (found := one.values(measure))}
        if len(values) < 2:
            continue
        ranked = _ranked(measure, values)
        if ranked.behind:
            differences.append(ranked)
        elif len(ranked.best) > 1:
            means = [values[name].mean for name in ranked.best]
            apart = max(means) - min(means) > max(measure.least, SAME_WITHIN * max(means))
            (scattered if apart else same).append(measure.noun)
        for why in ranked.undecided:
            # That a run decides nothing at all is said above, and not with each measure.
            if len(ranked.best + ranked.behind) == 1 or f"{why}." not in cautions:
                nouns = undecided.setdefault(why, [])
                nouns += [] if measure.noun in nouns else [measure.noun]
    return Comparison(
        subjects=subjects,
        warnings=tuple(cautions),
        differences=tuple(differences),
        same=tuple(same),
        scattered=tuple(scattered),
        undecided=undecided,
        notes=tuple(_notes(subjects, whole, bodies)),
        rule=rule_of_difference(subjects),
        regressions=tuple(
            regression.judge(first.values(regression.measure), last.values(regression.measure))
            for regression in regressions
        ),
    )


def _ranked(measure: Measure, values: dict[str, Values]) -> Ranking:
    sure = [name for name, one in values.items() if not one.doubt] or [*values]
    pick = max if measure.more_is_better else min
    best = pick(sure, key=lambda name: values[name].mean)
    judged = {
        name: judge(measure, values[best], one) for name, one in values.items() if name != best
    }
    return Ranking(
        measure=measure,
        values=values,
        best=tuple(name for name in values if name == best or judged[name].differ is False),
        behind=tuple(name for name, one in judged.items() if one.differ),
        undecided=tuple(dict.fromkeys(why for one in judged.values() for why in one.reasons)),
    )


def rule_of_difference(subjects: Sequence[Subject]) -> str:
    """When a difference counts between these runs: the rule of `judge` as text."""
    counts = [len(subject.records) for subject in subjects]
    inside = (
        "A difference counts if the scatter of the seconds inside of each run does not explain it, "
        f"and it exceeds {percent(SAME_WITHIN if max(counts) == 1 else NEVER_WITHIN)}"
    )
    if max(counts) == 1:
        return f"{inside}. Repeats would show how far runs differ among themselves."
    if min(counts) >= FEW_REPEATS:
        return (
            f"A difference counts if it exceeds {percent(NEVER_WITHIN)} and the scatter of the "
            "repeats does not explain it, or if each repeat of one run is more than twice each of "
            "the other."
        )
    few = f"Fewer than {FEW_REPEATS} repeats give a rough spread; run {FEW_REPEATS} or more."
    return f"{inside} and the spread of the repeats (most - least). {few}"


def _notes(
    subjects: Sequence[Subject], whole: Sequence[str], bodies: Sequence[str]
) -> Iterator[str]:
    uncharged = [
        one.name
        for one in subjects
        if any(run.endpoint.service.charges and run.request_units is None for run in one.records)
    ]
    if uncharged:
        yield f"Request units of {listed(uncharged)} are unknown: no answer named its charge."
    if whole and bodies:
        yield (
            f"Bytes do not compare: {listed(whole)} {agreed(len(whole), 'counts', 'count')} whole "
            f"requests and answers, {listed(bodies)} their bodies."
        )


def warnings(subjects: Sequence[Subject]) -> list[str]:
    """Why the figures may not be comparable, a sentence each."""
    first = subjects[0]
    many = counted_unit(record for one in subjects for record in one.records).many
    sentences = [f"{doubt}." for one in subjects for doubt in doubts(one.records, one.name)]
    for subject in subjects[1:]:
        one, other = first.records[0], subject.records[0]
        a, b = first.name, subject.name
        if one.endpoint.kind != other.endpoint.kind:
            # The list of the runs says more of each endpoint.
            on = [run.endpoint.described.partition(" (")[0] for run in (one, other)]
            sentences.append(f"{a} ran on {on[0]}, {b} on {on[1]}.")
        replayed = one.replay is not None or other.replay is not None
        recorded = first.recording is not None or subject.recording is not None
        if (one.watched is None) != (other.watched is None) and not (replayed or recorded):
            watched, load = (b, a) if one.watched is None else (a, b)
            sentences.append(
                f"{watched} was the load of an application, {load} that of the harness: their "
                "operations and their pace differ."
            )
        sizes, known = (one.entity.stored_bytes, other.entity.stored_bytes), ""
        if 0 in sizes and first.counts_whole == subject.counts_whole:
            # What an application stores is not known, only what it sends.
            sizes, known = (one.entity.wire_bytes, other.entity.wire_bytes), " on the wire"
        if 0 not in sizes and _apart(*sizes, _OTHER_SIZE):
            sentences.append(
                f"{many.capitalize()} have {sizes[0]:,} B{known} in {a} and {sizes[1]:,} B{known} "
                f"in {b}; rates count {many}, not bytes."
            )
        mine, theirs = one.offered_per_s, other.offered_per_s
        searched = one.search or other.search
        if mine and theirs and not searched and _apart(mine, theirs, _OTHER_RATE):
            rates = f"{number(mine)} and {number(theirs)} {one.endpoint.service.unit.rate}"
            sentences.append(
                f"{a} and {b} were asked for {rates}: throttling and latencies depend on the rate."
            )
        seconds = one.measured_s, other.measured_s
        if _apart(*seconds, _OTHER_DURATION):
            sentences.append(f"{a} was measured for {seconds[0]:,} s, {b} for {seconds[1]:,} s.")
    corresponds = {run.records[0].endpoint.service.same_as for run in subjects}
    if len(corresponds) > 1:
        sentences.extend(sorted(filter(None, corresponds)))
    off_size = [one.name for one in subjects if indicative(one.records[0].entity.stored_bytes)]
    if off_size:
        sentences.append(
            f"Indicative only: targets hold for 1 KiB {many}, and {many} of {listed(off_size)} "
            "have another size."
        )
    for run in subjects:
        service = run.records[0].endpoint.service
        if service.targets is not None and (note := service.targets.note(service.unit)):
            sentences.append(f"{run.name}: {note}")
    return sentences


def _apart(one: float, other: float, factor: float) -> bool:
    return max(one, other) > factor * min(one, other)


_MAY_DIFFER = frozenset(("seed", "question"))
"""Settings in which repeats may differ."""
_LONGEST = 60
"""Characters of a value."""


def differences_of(one: RunRecord, other: RunRecord) -> Iterator[str]:
    """The settings in which two runs differ; none if they are repeats."""
    if one.endpoint.kind != other.endpoint.kind:
        yield f"the endpoint: {one.endpoint.kind} and {other.endpoint.kind}"
    mine, theirs = _flat(one.profile), _flat(other.profile)
    for name in sorted({*mine, *theirs} - _MAY_DIFFER):
        if mine.get(name) != theirs.get(name):
            values = [one.get(name) for one in (mine, theirs)]
            said = ["not set" if one is None else shortened(str(one), _LONGEST) for one in values]
            yield f"{name}: {' and '.join(said)}"


def _flat(content: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Every setting of a profile by its full name."""
    flat: dict[str, Any] = {}
    for name, value in content.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat


SAME = "No difference that the scatter of these runs does not explain."
_MOST_SETTINGS = 8
_AS_MUCH_FROM = 2.0
"""From here on a ratio is written as one, below it in percent."""
_WEIGHTIEST = (
    *("sustained_per_s", "entities_per_s", "throttled_ratio"),
    *("p99(response)", "p99(service)", "p50(response)", "p50(service)"),
    *("ru_per_operation", "billable_per_1000"),
)
"""What a manager asks for, in this order; other measures follow in theirs."""


def headline(comparison: Comparison) -> str:
    """What the comparison comes to: the difference that weighs most, or that there is none."""
    if len(comparison.subjects) < 2:
        return ""
    if not comparison.differences:
        # What a single run cannot tell of some figures is said with them.
        reasons = "; ".join(why for why in comparison.undecided if why != UNKNOWN)
        if not (comparison.same or comparison.scattered):
            return f"Nothing can be judged, because {reasons}." if reasons else SAME
        return SAME + (f" Some figures were not judged, because {reasons}." if reasons else "")
    order = {name: place for place, name in enumerate(_WEIGHTIEST)}
    found = min(comparison.differences, key=lambda one: order.get(one.measure.name, len(order)))
    return _sentence(comparison, found)


def _sentence(comparison: Comparison, found: Ranking) -> str:
    """The best run, and how far it is from the first, or else from the worst."""
    best, first = found.best[0], comparison.subjects[0].name
    pick = min if found.measure.more_is_better else max
    far = pick(found.behind, key=lambda name: found.values[name].mean)
    behind = first if first in found.behind else far
    records = {one.name: one.records for one in comparison.subjects}
    high, low = (found.values[name].mean for name in (best, behind))
    name = listed(found.best)
    more, less = map(found.shown, (best, behind))
    bounded = found.is_bounded(best, behind)
    least = "at least " * bounded
    if found.measure.name == "sustained_per_s":
        return f"{name} sustains {least}{_than(high, low, behind)} ({more} against {less})."
    if found.measure.name == "entities_per_s":
        served = _than(high, low, behind)
        throttled = [
            all(one.verdict.result == VerdictResult.THROTTLED for one in records[name])
            for name in (best, behind)
        ]
        if all(throttled):
            return f"{name} serves {least}{served} before it throttles."
        if throttled[1]:
            # How much more it would serve is not known.
            return f"{name} serves at least {served}, which was throttled."
        unit = counted_unit(itertools.chain(*records.values())).rate
        change = change_words(high, low, bounded=bounded)
        return f"{name} served {more} {unit}, {behind} {less} ({change})."
    if found.measure.name == "throttled_ratio":
        against = f"{more} of the attempts against {less}"
        return f"{name} is throttled less than {behind}: {against}."
    noun = found.measure.noun
    change = "" if found.measure.unit == "%" else change_words(high, low, bounded=bounded)
    against = f"{more} against {less}{f', {change}' if change else ''}"
    return f"{noun[0].upper()}{noun[1:]}: {name} is better than {behind} ({against})."


def _than(high: float, low: float, behind: str) -> str:
    """``2.4 times as much as B``, or ``13% more than B``."""
    change = change_of(high, low)
    if change is None or change + 1 < _AS_MUCH_FROM:
        return f"{change_words(high, low) or 'more'} than {behind}"
    if change + 1 < MANY_TIMES:
        return f"{number(change + 1)} times as much as {behind}"
    return f"{change_words(high, low)} as {behind}"


def settings_of(comparison: Comparison) -> list[str]:
    """The settings in which the runs differ from the first, a line for each run."""
    first, *others = comparison.subjects
    lines = []
    for subject in others:
        found = [*differences_of(first.records[0], subject.records[0])]
        shown, more = found[:_MOST_SETTINGS], len(found) - _MOST_SETTINGS
        if more > 0:
            shown.append(counted(more, "more setting"))
        if shown:
            lines.append(f"{first.name} and {subject.name}: {'; '.join(shown)}")
    return lines
