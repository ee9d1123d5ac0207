"""Runs that are compared, and when they differ in a measure: the one rule of all comparisons."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from harness.measure.record.measured import ABOUT, AT_LEAST, AT_MOST
from harness.measure.record.record import RunRecord
from harness.measure.scatter import student
from harness.measure.verdict.client_limit import latency_doubt
from harness.measure.verdict.verdict import VerdictResult
from harness.model.figures import counted, percent
from harness.model.operation import Kind
from harness.model.outcome import Outcome
from harness.model.sessions import session_named
from harness.report.compare.measures import Measure

SAME_WITHIN = 0.05
"""A difference of single runs below this share of the larger value counts as none."""
NEVER_WITHIN = 0.01
"""With repeats, a smaller share counts as none, however steady the runs were."""
FAR_APART = 2
"""More than so many times as much is a difference, where how far values scatter is not known, or
where all repeats of one are that far from those of the other."""
FEW_REPEATS = 3
UNKNOWN = "it takes repeats to tell how far it scatters"
BOUNDED = "a bound does not tell how far it is from the true figure"
OTHER_MIX = "their mixes of operations differ"
OTHER_SCANS = "their queries scanned other numbers of entities"
ASKED = "the load of the lower one asked for no more"
_OTHER_LOAD = 0.1
"""Of the machine: where the load of other processes differs by more, so may latencies."""
_OTHER_WORK = 0.1
"""Of operations or entities: where more of them are others, a mean is one of these."""
_OTHER_SCAN = 1.25
_OF_ENTITIES = ("entities_per_s", "sustained_per_s", "billable_per_1000")
_KINDS = {kind.value: kind for kind in Kind}

Work = Mapping[tuple[bool, bool], tuple[float, float]]
"""Operations that were asked for, and their entities: reads or writes, of one or of several."""


def work_of(records: Sequence[RunRecord]) -> Work:
    """What ``records`` did; empty where they do not tell."""
    found: dict[tuple[bool, bool], tuple[float, float]] = {}
    for part in (one for record in records for one in record.operations):
        kind = _KINDS.get(part.type)
        served = part.count - sum(part.outcomes.get(one, 0) for one in Outcome if one.failed)
        if kind is None or served <= 0:
            return {}
        each = part.entities / served
        of = kind.reads, kind in (Kind.QUERY, Kind.TRANSACTION) or each >= 2
        count, entities = found.get(of, (0.0, 0.0))
        # Also those that failed were asked for.
        found[of] = count + part.count, entities + part.count * each
    return found


def other_work(measure: Measure, one: Work, other: Work) -> str:
    """Why a figure is of other operations or entities in one run than in the other; or empty."""
    if measure.unit == "%" or not (one and other):
        return ""
    counted_in = int(measure.name in _OF_ENTITIES)
    mine, theirs = (_shares(work, counted_in) for work in (one, other))
    if not counted_in:
        apart = sum(max(0.0, share - theirs.get(of, 0.0)) for of, share in mine.items())
        return OTHER_MIX if apart > _OTHER_WORK else ""
    less, more = sorted(sum(each[of] for of in each if of[0]) for each in (mine, theirs))
    if more - less > _OTHER_WORK:
        return f"between {percent(less)} and {percent(more)} of the load were reads"
    scans = (work.get((True, True), (1.0, 0.0)) for work in (one, other))
    low, high = sorted(entities / count for count, entities in scans)
    return OTHER_SCANS if less > _OTHER_WORK and 0 < low < high / _OTHER_SCAN else ""


def _shares(work: Work, place: int) -> dict[tuple[bool, bool], float]:
    everything = sum(figures[place] for figures in work.values()) or 1.0
    return {of: figures[place] / everything for of, figures in work.items()}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """The mean, the least and the most of repeats in one measure.

    Attributes:
        low: How far down the mean could be by the scatter inside of each run; None if unknown.
        high: How far up.
        squares: Squared distances of the repeats from their mean.
        others: The load of other processes, as a share of the machine; None if unknown.
        sign: Of a bound: ``≥`` or ``≤``.
        asked: Whether the load asked for no more, so that a higher value was not tried.
        doubt: Why the values decide nothing; empty if they do.
        work: What they are figures of; empty if it is unknown.
    """

    mean: float
    least: float
    most: float
    count: int
    low: float | None = None
    high: float | None = None
    squares: float = 0.0
    others: float | None = None
    sign: str = ""
    asked: bool = False
    doubt: str = ""
    work: Work = dataclasses.field(default_factory=dict)

    @property
    def spread(self) -> float:
        """From the least to the most; 0 for a single run."""
        return self.most - self.least


def values_of(measure: Measure, records: Sequence[RunRecord], name: str = "") -> Values | None:
    """The values of the repeats called ``name``; None where one of them was not measured."""
    read = [measure.read(record) for record in records]
    known = [value for value in read if value is not None]
    if len(known) < len(read):
        return None
    mean, low, high = statistics.fmean(known), None, None
    ranges = [found for record in records if (found := measure.scatter(record)) is not None]
    if len(ranges) == len(known):
        each = [*zip(known, ranges, strict=True)]
        low = mean - math.hypot(*(value * (1 - down) for value, (down, _) in each)) / len(each)
        high = mean + math.hypot(*(value * (up - 1) for value, (_, up) in each)) / len(each)
    others = [
        point.others_percent / 100
        for record in records
        for point in record.series
        if point.others_percent is not None
    ]
    return Values(
        mean=mean,
        least=min(known),
        most=max(known),
        count=len(known),
        low=low,
        high=high,
        squares=sum((value - mean) ** 2 for value in known),
        others=statistics.fmean(others) if others and measure.timed else None,
        sign=max(map(measure.sign, records)),
        asked=measure.more_is_better is True
        and all(record.verdict.limited_by == "load" for record in records),
        doubt=[*doubts(records, name), *_of_machine(measure, records, name), ""][0],
        work=work_of(records),
    )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A trace or a log that is compared in place of a record.

    Attributes:
        fingerprint: Hash of the file: see `ReplayPart.fingerprint`.
        described: What was recorded, in words.
        counts_whole: Whether bytes are those of whole requests and answers, not of their bodies.
        entities: Entities of every partition, more than a record lists; None if they are too many.
    """

    fingerprint: str
    described: str
    counts_whole: bool
    entities: Mapping[str, int] | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A run, or its repeats, and the path that the user named.

    Attributes:
        name: In all outputs, and no other's; empty until `named` gives one.
        recording: What the record was made of, if it is that of a trace.
    """

    source: str
    records: tuple[RunRecord, ...]
    recording: Recording | None = None
    name: str = ""

    @property
    def counts_whole(self) -> bool:
        """Whether bytes are those of whole requests and answers, not only of their bodies."""
        if self.recording is not None:
            return self.recording.counts_whole
        record = self.records[0]
        return record.watched is None and not session_named(record.session).as_is

    def values(self, measure: Measure) -> Values | None:
        """The values of all repeats; None where one of them was not measured."""
        return values_of(measure, self.records, self.name)


class Judgement(NamedTuple):
    """Whether two differ, or None and the reasons why that cannot be told."""

    differ: bool | None
    reasons: tuple[str, ...] = ()

    @property
    def why(self) -> str:
        return "; ".join(self.reasons)


def judge(measure: Measure, one: Values, other: Values) -> Judgement:
    """Whether two differ by more than their scatter explains.

    Three repeats of each tell how far they scatter. Of fewer, the seconds of each run do; the
    difference has to exceed the spread of the repeats too.
    """
    if doubts_found := sorted(filter(None, (one.doubt, other.doubt))):
        return Judgement(None, tuple(doubts_found))
    gap = abs(one.mean - other.mean)
    repeated = max(one.count, other.count) > 1
    share = NEVER_WITHIN if repeated else SAME_WITHIN
    same = gap <= max(measure.least, share * max(abs(one.mean), abs(other.mean)))
    if same and one.sign == other.sign:
        return Judgement(False)
    if others := other_work(measure, one.work, other.work):
        return Judgement(None, (others,))
    if None not in (one.others, other.others):
        loads = one.others or 0.0, other.others or 0.0
        if abs(loads[0] - loads[1]) > _OTHER_LOAD:
            used = f"{percent(loads[0])} and {percent(loads[1])}"
            return Judgement(None, (f"other processes used {used} of the machine",))
    low, high = sorted((one, other), key=lambda values: values.mean)
    if same or ABOUT in (low.sign, high.sign) or low.sign == AT_LEAST or high.sign == AT_MOST:
        return Judgement(None, (BOUNDED,))
    far = high.least > FAR_APART * low.most
    if min(one.count, other.count) >= FEW_REPEATS:
        freedom = one.count + other.count - 2
        error = math.sqrt((one.squares + other.squares) / freedom)
        widest = student(freedom) * error * math.sqrt(1 / one.count + 1 / other.count)
        differ = far or gap > widest
    elif low.high is not None and high.low is not None:
        widest = math.hypot(low.high - low.mean, high.mean - high.low)
        differ = gap > max(widest, one.spread, other.spread)
    elif far and not measure.timed:
        differ = True
    else:
        return Judgement(None, (UNKNOWN,))
    return Judgement(None, (ASKED,)) if differ and low.asked else Judgement(differ)


_OF_GENERATOR = "its rates are those of the generator, not of the endpoint"
_OF_APPLICATION = "its rates are those of the application or of its machine, not of the endpoint"
_BY_CLIENT = {
    "machine": "other processes kept its machine busy",
    "users": "its users were too few for the requested rate",
}


def _doubts_of(run: RunRecord) -> Iterator[str]:
    """Why the figures of a run are unreliable: ends of sentences."""
    if run.invariants:
        yield "is not valid: its counts contradict each other"
    if run.outcomes.get("defect", 0):
        yield "had operations that failed because of a defect in the harness or its user class"
    if not run.complete:
        yield "is incomplete: its counts may be too low"
    if run.verdict.result == VerdictResult.CLIENT_LIMITED:
        whose = _OF_GENERATOR if run.watched is None else _OF_APPLICATION
        yield f"was client-limited: {_BY_CLIENT.get(run.verdict.limited_by, whose)}"
    if run.verdict.result == VerdictResult.FAILING:
        yield "met failures of its endpoint, or of the way to it"
    if run.verdict.result == VerdictResult.INCONCLUSIVE:
        yield "was inconclusive"


def doubts(records: Sequence[RunRecord], name: str) -> list[str]:
    """Why the figures of a run, or of its repeats, are unreliable."""
    found = Counter(reason for record in records for reason in _doubts_of(record))
    of = counted(len(records), "run")
    return [
        f"{name} {reason}{f' ({count} of {of})' if len(records) > 1 else ''}"
        for reason, count in found.items()
    ]


def _of_machine(measure: Measure, records: Sequence[RunRecord], name: str) -> list[str]:
    """Why the value may be that of a busy machine."""
    found = []
    for record in records:
        doubt = latency_doubt(record.generator, record.watched)
        rate = measure.more_is_better is not False and measure.unit != "%"
        verdict = record.verdict
        # Neither the load that was asked for nor throttling was the limit of the rate.
        free = verdict.limited_by != "load" and verdict.result != VerdictResult.THROTTLED
        if doubt is not None and (measure.timed or (rate and free)):
            found.append(f"in {name} {doubt}")
    return found


MANY_TIMES = 10
"""From here on a ratio is easier to read than a percentage."""


def change_of(value: float, reference: float) -> float | None:
    """The relative difference of a value from a reference; None where the reference is 0."""
    return None if reference == 0 else value / reference - 1


def change_words(value: float, reference: float, *, bounded: bool = False) -> str:
    """``55% less``, ``at least 12 times as much`` of a bound; empty where the reference is 0."""
    change, least = change_of(value, reference), "at least " * bounded
    if change is None:
        return ""
    if change + 1 >= MANY_TIMES:
        return f"{least}{change + 1:,.0f} times as much"
    return f"{least}{percent(abs(change))} {'more' if change > 0 else 'less'}"


def in_brackets(words: str) -> str:
    return f" ({words})" if words else ""
