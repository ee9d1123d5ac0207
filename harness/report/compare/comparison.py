"""The comparison of runs: which is better in what, regressions, and why runs may not compare.

The first run is the reference. A difference counts only where it exceeds the spread of repeats.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence

from harness.measure.record.record import BODIES_ONLY, RunRecord
from harness.measure.verdict.verdict import VerdictResult, indicative
from harness.model.errors import echoed
from harness.model.figures import agreed, counted, listed, percent
from harness.model.target import EndpointKind
from harness.report.compare.measures import MEASURES, Measure, measures_of
from harness.report.compare.replayed import Recording, replay_sentences

SAME_WITHIN = 0.05
"""Without repeats, a difference below this share of the larger value counts as none."""
NEVER_WITHIN = 0.01
"""With repeats, a smaller share counts as none, however steady the runs were."""
FAR_APART = 2
"""A difference counts whatever the spread if all repeats of one are more than so many times those
of the other."""
_BYTES = ("sent_bytes", "received_bytes")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """The mean, the least and the most of repeats in one measure."""

    mean: float
    least: float
    most: float
    count: int

    @property
    def spread(self) -> float:
        """From the least to the most; 0 for a single run."""
        return self.most - self.least


def values_of(measure: Measure, records: Sequence[RunRecord]) -> Values | None:
    """The values of repeats; None where one of them was not measured."""
    read = [measure.read(record) for record in records]
    known = [value for value in read if value is not None]
    if len(known) < len(read):
        return None
    return Values(mean=sum(known) / len(known), least=min(known), most=max(known), count=len(known))


def differ(measure: Measure, one: Values, other: Values) -> bool:
    """Whether two differ by more than repeats of either do among themselves, or by a factor.

    Latencies scatter so widely on a busy machine that the spread alone would hide a factor of ten.
    """
    gap = abs(one.mean - other.mean)
    larger = max(abs(one.mean), abs(other.mean))
    repeated = max(one.count, other.count) > 1
    share = NEVER_WITHIN if repeated else SAME_WITHIN
    low, high = sorted((one, other), key=lambda values: values.mean)
    far = high.least > FAR_APART * low.most
    spread = 0.0 if far else max(one.spread, other.spread)
    return gap > max(measure.least, spread, share * larger)


MANY_TIMES = 10
"""From here on a ratio is easier to read than a percentage."""


def change_of(value: float, reference: float) -> float | None:
    """The relative difference of a value from a reference; None where the reference is 0."""
    return None if reference == 0 else value / reference - 1


def change_words(value: float, reference: float) -> str:
    """``55% less``, ``12 times as much``; empty where the reference is 0."""
    change = change_of(value, reference)
    if change is None:
        return ""
    if change + 1 >= MANY_TIMES:
        return f"{change + 1:,.0f} times as much"
    return f"{percent(abs(change))} {'more' if change > 0 else 'less'}"


def in_brackets(words: str) -> str:
    return f" ({words})" if words else ""


_PATTERN = re.compile(
    r"\s*(?P<name>[a-z0-9_]+(?:\(\s*[a-z0-9_]+\s*\))?)\s*(?P<side>[<>])\s*"
    r"(?:(?P<percent>[0-9]+(?:\.[0-9]+)?)\s*%"
    r"|first\s*(?P<sign>[+-])\s*(?P<number>[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>[a-z%]*))\s*"
)
_UNITS = {"": {"": 1.0}, "ms": {"ms": 1.0, "s": 1000.0}, "%": {"%": 0.01}}
_EXAMPLES = "'entities_per_s < 95%', 'p99(service) > first + 20ms', 'throttled_ratio > first + 1%'"


@dataclasses.dataclass(frozen=True, slots=True)
class Judged:
    """A regression and whether it holds: None where it cannot be judged."""

    text: str
    holds: bool | None
    sentence: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Regression:
    """A bound that the last of the compared runs must not pass.

    The bound is the value of the first run times ``factor`` plus ``offset``, in the unit of the
    measure. ``below`` is True where a value below the bound is the regression.
    """

    text: str
    measure: Measure
    below: bool
    factor: float = 1.0
    offset: float = 0.0

    def judge(self, first: Values | None, last: Values | None) -> Judged:
        """Whether the regression holds; never inside the spread of repeats."""
        if first is None or last is None:
            missing = "the first" if first is None else "the last"
            return Judged(self.text, None, f"{missing} has no {self.measure.noun}")
        bound = first.mean * self.factor + self.offset
        passed = last.mean < bound if self.below else last.mean > bound
        figures = "{} against {}; the bound is {}".format(
            *map(self.measure.show_in_full, (last.mean, first.mean, bound))
        )
        repeated = max(first.count, last.count) > 1
        if passed and repeated and not differ(self.measure, first, last):
            passed = False
            figures += "; the difference is within the spread of repeats"
        return Judged(self.text, passed, figures)


def parse_regression(text: str) -> Regression:
    """The regression that ``text`` describes, with a bound relative to the first run.

        entities_per_s < 95%             the last has less than 95 % of the first
        p99(service) > 120%              the last has more than 120 % of the first
        p99(service) > first + 20ms      the last is more than 20 ms above the first
        throttled_ratio > first + 1%     a share: one percentage point above the first

    The bound is on the worse side of the first run. A share takes no percentage of the first: 1 %
    of a share is too easily mistaken for the share 1 %.

    Raises:
        ValueError: The text is no regression; the message describes what is.
    """
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise ValueError(f"{echoed(text)} cannot be read as a regression. Examples: {_EXAMPLES}")
    name = "".join(match["name"].split())
    measure = next((known for known in MEASURES if known.name == name), None)
    if measure is None:
        known = ", ".join(one.name for one in MEASURES)
        raise ValueError(f"{echoed(text)} names an unknown metric. Known metrics: {known}")
    below = match["side"] == "<"
    if measure.more_is_better is not None and below != measure.more_is_better:
        worse = "less" if measure.more_is_better else "more"
        raise ValueError(
            f"{echoed(text)} would fail on an improvement: for {name}, {worse} is worse, "
            f"so write {'<' if measure.more_is_better else '>'}"
        )
    regression = Regression(text=text.strip(), measure=measure, below=below)
    if match["percent"] is not None:
        if measure.unit == "%":
            raise ValueError(
                f"{echoed(text)} takes a percentage of a share; write '{name} {match['side']} "
                f"first {'-' if below else '+'} {match['percent']}%' for percentage points"
            )
        return dataclasses.replace(regression, factor=float(match["percent"]) / 100)
    units = _UNITS[measure.unit]
    if match["unit"] not in units:
        takes = " or ".join(unit or "no unit" for unit in units)
        raise ValueError(f"{echoed(text)} has unit {echoed(match['unit'])}; {name} takes {takes}")
    offset = float(match["sign"] + match["number"]) * units[match["unit"]]
    return dataclasses.replace(regression, offset=offset)


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
        lambda run: run.watched is None and run.verdict.result == VerdictResult.CLIENT_LIMITED
    ),
    "was client-limited: its rates are those of the application or of its machine, not of the "
    "endpoint": (
        lambda run: run.watched is not None and run.verdict.result == VerdictResult.CLIENT_LIMITED
    ),
    "was inconclusive": lambda run: run.verdict.result == VerdictResult.INCONCLUSIVE,
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A run, or its repeats, with its letter in outputs and the path that the user named.

    Attributes:
        recording: What the record was made of, if it is that of a trace.
    """

    letter: str
    source: str
    records: tuple[RunRecord, ...]
    recording: Recording | None = None

    @property
    def counts_whole(self) -> bool:
        """Whether bytes are those of whole requests and answers, not only of their bodies."""
        if self.recording is not None:
            return self.recording.counts_whole
        record = self.records[0]
        return record.watched is None and record.session not in BODIES_ONLY

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
        f"and {percent(NEVER_WITHIN)}, or if each repeat of one run is more than twice each of the "
        "other."
    )
    if counts.count(1) > 1:
        rule += f" Between single runs {single}"
    if max(counts) < _FEW_REPEATS:
        rule += f" {max(counts)} repeats give a rough spread; run {_FEW_REPEATS} or more."
    return rule


def findings(subjects: Sequence[Subject]) -> list[str]:
    """Which run is better in what, a sentence each; the last names what does not differ."""
    sentences = list(
        replay_sentences([(one.letter, one.records[0]) for one in subjects], subjects[0].recording)
    )
    same = []
    whole = [one.letter for one in subjects if one.counts_whole]
    bodies = [one.letter for one in subjects if not one.counts_whole]
    mixed = bool(whole and bodies)
    for measure in measures_of([one for subject in subjects for one in subject.records]):
        if measure.more_is_better is None or (mixed and measure.name in _BYTES):
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
    uncharged = [
        one.letter
        for one in subjects
        if any(run.endpoint.cosmos and run.request_units is None for run in one.records)
    ]
    if uncharged:
        sentences.append(
            f"Request units of {listed(uncharged)} are unknown: no answer named its charge."
        )
    if mixed:
        sentences.append(
            f"Bytes do not compare: {listed(whole)} {agreed(len(whole), 'counts', 'count')} whole "
            f"requests and answers, {listed(bodies)} their bodies."
        )
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
        words = f"{name} has {show(name)}"
        # A share of a share would mislead.
        if measure.unit != "%":
            words += in_brackets(change_words(known[name].mean, known[first[0]].mean))
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
                f"Entities have {sizes[0]:,} B{known} in {a} and {sizes[1]:,} B{known} in {b}; "
                "rates count entities, not bytes."
            )
        seconds = one.measured_s, other.measured_s
        if _apart(*seconds, _OTHER_DURATION):
            sentences.append(f"{a} was measured for {seconds[0]:,} s, {b} for {seconds[1]:,} s.")
    on_blobs = {run.records[0].endpoint.kind == EndpointKind.AZURITE_BLOBS for run in subjects}
    if len(on_blobs) > 1:
        sentences.append("A line of a blob counts as an entity of a table.")
    off_size = [one.letter for one in subjects if indicative(one.records[0].entity.stored_bytes)]
    if off_size:
        sentences.append(
            f"Indicative only: targets hold for 1 KiB entities, and entities of {listed(off_size)} "
            "have another size."
        )
    return sentences


def _apart(one: float, other: float, factor: float) -> bool:
    return max(one, other) > factor * min(one, other)
