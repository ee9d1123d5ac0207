"""The comparison of runs: which is better in what, regressions, and why runs may not compare.

The first run is the reference. A difference counts only where it exceeds the spread of repeats.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence

from harness.model.figures import counted, listed, milliseconds, number, percent
from harness.measure.record.record import RunRecord
from harness.measure.verdict.verdict import THROTTLED_FROM, VerdictResult, indicative
from harness.model.errors import echoed
from harness.report.sentences import hottest, hottest_share

SAME_WITHIN = 0.05
"""Without repeats, a difference below this share of the larger value counts as none."""
NEVER_WITHIN = 0.01
"""With repeats, a smaller share counts as none, however steady the runs were."""


@dataclasses.dataclass(frozen=True, slots=True)
class Measure:
    """A quantity that is compared.

    Attributes:
        name: As ``--fail-if`` writes it.
        label: In the table.
        noun: In a sentence.
        unit: ``""``, ``"ms"``, or ``"%"`` for a share.
        read: The value in one run; None where it was not measured.
        more_is_better: None where neither is.
        least: A difference up to this counts as none, whatever share it is.
    """

    name: str
    label: str
    noun: str
    unit: str
    read: Callable[[RunRecord], float | None]
    more_is_better: bool | None = None
    least: float = 0.0

    def show(self, value: float) -> str:
        """A value as outputs write it, without a latency's unit."""
        return {"%": percent, "ms": milliseconds}.get(self.unit, number)(value)

    def show_in_full(self, value: float) -> str:
        return f"{self.show(value)}{' ms' if self.unit == 'ms' else ''}"


def _figure(part: str, figure: str) -> Callable[[RunRecord], float | None]:
    return lambda record: getattr(getattr(record, part), figure, None)


def _rate(figure: str) -> Callable[[RunRecord], float | None]:
    return lambda record: getattr(record.account.entities_per_s, figure)


def _throttled(scope: str) -> Measure:
    def read(record: RunRecord) -> float | None:
        attempts = record.counts.attempts
        throttled = record.throttled[scope] if scope else sum(record.throttled.values())
        return throttled / attempts if attempts else None

    label = f"  for the {scope}" if scope else "throttled attempts"
    noun = f"share of attempts throttled{f' for the {scope}' if scope else ''}"
    name = f"throttled_ratio({scope})" if scope else "throttled_ratio"
    return Measure(name, label, noun, "%", read, False, THROTTLED_FROM)


def _billable(record: RunRecord) -> float | None:
    # Each attempt is billed once. Loading and cleaning are not part of the load, and left out.
    counts = record.counts
    return counts.attempts / counts.entities * 1000 if counts.entities else None


def _hottest_ratio(record: RunRecord) -> float | None:
    return getattr(hottest(record), "ratio", None)


_BEST = "entities/s of the best second"
_OF_PARTITION = "the hottest partition's share of its target"
_OF_ACCOUNT = "the account's share of its target"
_OF_LOAD = "the hottest partition's share of the load"
_OF_BILL = "billable transactions per 1,000 entities"
MEASURES: tuple[Measure, ...] = (
    Measure("entities_per_s", "entities/s", "entities/s", "", _rate("mean"), True),
    Measure("entities_per_s(best_1s)", "  best 1 s", _BEST, "", _rate("best_1s"), True),
    Measure("target_ratio(partition)", "hottest, of target", _OF_PARTITION, "%", _hottest_ratio),
    Measure(
        "target_ratio(account)", "account, of target", _OF_ACCOUNT, "%", _figure("account", "ratio")
    ),
    Measure("hottest_share", "hottest, of the load", _OF_LOAD, "%", hottest_share, False),
    *map(_throttled, ("", "partition", "account")),
    *(
        Measure(
            f"{figure}({latency})",
            f"{figure} {latency}, ms",
            f"{figure} of {latency} latency",
            "ms",
            _figure(f"{latency}_ms", figure),
            False,
        )
        for latency in ("service", "response")
        for figure in ("p50", "p99")
    ),
    Measure("billable_per_1000", "billable /1,000 entities", _OF_BILL, "", _billable, False),
)


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
    """Whether two differ by more than repeats of either do among themselves."""
    gap = abs(one.mean - other.mean)
    larger = max(abs(one.mean), abs(other.mean))
    repeated = max(one.count, other.count) > 1
    share = NEVER_WITHIN if repeated else SAME_WITHIN
    return gap > max(measure.least, one.spread, other.spread, share * larger)


def change_of(value: float, reference: float) -> float | None:
    """The relative difference of a value from a reference; None where the reference is 0."""
    return None if reference == 0 else value / reference - 1


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
        if (one.watched is None) != (other.watched is None):
            watched, load = (b, a) if one.watched is None else (a, b)
            sentences.append(
                f"{watched} was the load of an application, {load} that of the harness: their "
                "operations and their pace differ."
            )
        sizes, known = (one.entity.stored_bytes, other.entity.stored_bytes), ""
        if 0 in sizes:
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
    off_size = [one.letter for one in subjects if indicative(one.records[0].entity.stored_bytes)]
    if off_size:
        sentences.append(
            f"Indicative only: targets hold for 1 KiB entities, and entities of {listed(off_size)} "
            "have another size."
        )
    return sentences


def _apart(one: float, other: float, factor: float) -> bool:
    return max(one, other) > factor * min(one, other)
