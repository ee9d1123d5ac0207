"""Parts of a record: what a run found."""

from __future__ import annotations

import functools
from typing import Annotated, Any, Self, get_args

import pydantic

from harness.model.partition import Partition


def rounded(value: float) -> float:
    """``value`` with the precision of a record: three decimal digits."""
    return round(value, 3)


class RecordPart(pydantic.BaseModel):
    """A part of a record. Fields of later versions are ignored."""

    model_config = pydantic.ConfigDict(frozen=True, extra="ignore")

    @classmethod
    def recorded(cls, counted: Self, **changes: Any) -> Self:
        """``counted`` as a record keeps it, with ``changes``.

        Other fractions are `rounded`. What a subclass has beside the fields of this class is left
        out: a snapshot has more than a record.
        """
        kept: dict[str, Any] = {}
        for name, kind in _part_classes(cls).items():
            value = getattr(counted, name)
            if isinstance(value, float):
                value = rounded(value)
            elif isinstance(value, tuple) and value and isinstance(value[0], float):
                value = tuple(map(rounded, value))
            elif kind is not None and isinstance(value, RecordPart):
                value = kind.recorded(value)
            kept[name] = value
        return cls.model_construct(**kept | changes)


@functools.cache
def _part_classes(of: type[RecordPart]) -> dict[str, type[RecordPart] | None]:
    """The class of each field that is a part itself or a tuple of parts, or None for others."""
    found: dict[str, type[RecordPart] | None] = {}
    for name, field in of.model_fields.items():
        either = (field.annotation, *get_args(field.annotation))
        parts = (one for one in either if isinstance(one, type) and issubclass(one, RecordPart))
        found[name] = next(parts, None)
    return found


IF_ANY = pydantic.Field(exclude_if=lambda value: not value)
"""Annotates a field that is not in the JSON where it is empty, as in earlier versions."""


class AdvicePart(RecordPart):
    """What a section of a document advises, and why: a finding of `harness check --record`.

    Attributes:
        text: What to change; in records of earlier versions the reason too.
        practice: The practice that was violated, as `harness check` names it.
    """

    text: str
    document: str
    section: str
    why: Annotated[str, IF_ANY] = ""
    practice: Annotated[str, IF_ANY] = ""


class VerdictPart(RecordPart):
    """What the run means.

    Attributes:
        result: Such as ``within_target`` or ``throttled``.
        limited_by: What kept the rate from being higher: partition, account, server, generator,
            machine (other processes used it up), endpoint, load (the profile asked for no more),
            users (too few, or pausing), or unknown. At Cosmos DB also throughput (provisioned),
            operation (too costly) and size (a PartitionKey is full), of an application also gateway
            and application.
        bounded: Nothing is over its target as far as is known: a rate is a lower bound, or a limit
            the highest one that there can be.
        by_best: The best 10 s were compared with targets, and not the mean.
        why: The reason with its figures, where the headline of a page does not say it.
        footnote: What restricts the figures: what answered in place of the service, lower bounds.
        failures: Those that no headline may leave out, in a sentence.
        evidence: What was measured; what decided the verdict comes first.
    """

    result: str
    limited_by: str
    sentence: str
    bounded: Annotated[bool, IF_ANY] = False
    by_best: Annotated[bool, IF_ANY] = False
    why: Annotated[str, IF_ANY] = ""
    footnote: str = ""
    failures: str = ""
    evidence: tuple[str, ...] = ()
    advice: tuple[AdvicePart, ...] = ()

    @property
    def whole(self) -> str:
        """The sentence with its footnote."""
        return f"{self.sentence} {self.footnote}" if self.footnote else self.sentence


class GapPart(RecordPart):
    """Consecutive seconds with attempts and without any success.

    Seconds without attempts, in which all users back off, belong to the gap around them. A gap ends
    at the next success, or at the last attempt.

    Attributes:
        start_s: Its first second, from the start of the load.
        recovered_s: Seconds from its start until 90 % of the rate before it was reached again; None
            if it was not, or if there was no rate before it.
    """

    start_s: int
    length_s: int
    recovered_s: int | None


class StallPart(RecordPart):
    """Consecutive seconds with throttling in which the rate fell to a small part of what it was.

    Attributes:
        waited: The most operations that were being retried after throttling, in one of its seconds.
        keys: The partitions of these operations, the most operations first, with their number.
    """

    start_s: int
    length_s: int
    before_per_s: float
    rate_per_s: float
    waited: int = 0
    keys: tuple[tuple[str, int], ...] = ()


class SilencesPart(RecordPart):
    """Times without any answer while requests waited for one, within the measured window.

    No worker got an answer meanwhile, and a request of one of them waited all the time. Lengths are
    lower bounds: at most 40 ms of each are missing.

    Attributes:
        longest_at_s: Start of the longest, from the start of the load.
    """

    count: int
    longest_s: float
    longest_at_s: float
    total_s: float


class ThrottlingPart(RecordPart):
    """The course of throttling under load, in whole seconds.

    Attributes:
        first_s: The first second with a throttled attempt, from the start of the load.
        stretches: How often throttling began. A stretch ends in a second with attempts of which
            none was throttled.
        gap_count: Number of gaps, throttled or not.
        gaps: The longest of them, in order of time.
        stalls: The longest stalls, in order of time.
    """

    first_s: int | None = None
    seconds: int = 0
    stretches: int = 0
    longest_s: int = 0
    gap_count: int = 0
    gaps: tuple[GapPart, ...] = ()
    stalls: tuple[StallPart, ...] = ()
    silences: Annotated[SilencesPart | None, IF_ANY] = None

    @property
    def longest_gap(self) -> GapPart | None:
        """The longest gap; the first one of several."""
        return max(self.gaps, key=lambda gap: (gap.length_s, -gap.start_s), default=None)


class StepPart(RecordPart):
    """One step of a search. Rates are entities/s.

    Attributes:
        p99_ms: 99th percentile of response latency; None if there were no answers.
        measuring: The rate was above the limit, to measure what is served there.
        billable_transactions: Those of the whole step, including settling.
        failed: Why it failed; None if it passed.
    """

    rate_per_s: float
    achieved_per_s: float
    throttled_ratio: float
    p99_ms: float | None
    hold_s: float
    confirming: bool
    measuring: bool = False
    billable_transactions: int
    failed: str | None


class LimitPart(RecordPart):
    """What was served while the load was throttled, and an interval that covers the limit.

    Attributes:
        high_per_s: None if too little was measured for an interval.
        confidence: How often such an interval covers the limit.
        measured_s: Seconds of throttling that were measured.
    """

    per_s: float
    low_per_s: float
    high_per_s: float | None
    confidence: float
    measured_s: int

    def within(self, share: float) -> bool:
        """Whether the interval reaches no further than this share of the limit."""
        return self.high_per_s is not None and self.high_per_s <= (1.0 + share) * self.per_s


class SearchPart(RecordPart):
    """What a search for the highest sustainable rate found; entities per second.

    Attributes:
        rate_per_s: The achieved rate of the highest step that passed; None if no step passed.
        limit: The limit, if requests above it were throttled.
        at_least: True if the endpoint may sustain more, because something else was the limit.
        confirmed: True if the rate was also held for the longer time.
    """

    rate_per_s: float | None
    at_least: bool
    confirmed: bool
    limited_by: str
    limit: Annotated[LimitPart | None, IF_ANY] = None
    sentence: str
    steps: tuple[StepPart, ...]


class AuditPart(RecordPart):
    """What was stored after the run, compared with what was written under load.

    A row that several workers wrote is looked up by, and counted for, each of them. All fields from
    ``acknowledged`` to ``undecided`` count writes; a transaction has as many as it has parts.

    Attributes:
        written: Rows that were written; an estimate if not ``exact``.
        rows: Rows that were looked up, without those ``unread`` and ``given_up``.
        acknowledged: Writes that ended in success: the sum of the next three.
        lost: Their effect is not stored, and no later write explains that.
        covered: A later write, or one of another worker, replaced what they wrote.
        unacknowledged: Other writes that may have been applied: the sum of the next three.
        given_up: Rows with too many writes to keep in memory.
        cut_short: Why rows of the sample were not looked up; empty if all were.
    """

    written: int
    rows: int
    acknowledged: int
    kept: int
    lost: int
    covered: int
    unacknowledged: int
    applied: int
    not_applied: int
    undecided: int
    exact: bool = True
    unread: int = 0
    given_up: int = 0
    cut_short: str = ""
    examples: tuple[str, ...] = ()


class PredictionPart(RecordPart):
    """Predicted shares of the load, from 0 to 1: of the entities that operations count for.

    Where the service charges request units, they are of these.

    Attributes:
        hottest: Name of the partition with the largest share; empty if every operation is a
            query over several partitions.
        ranges: First and last loaded partition of each range.
        hottest_range: Number of the range with the largest share; None if there is none.
        sampled: Operations of the sample that it was counted in; 0 if it was calculated, or is not
            known.
    """

    hottest: str
    hottest_share: float
    ranges: tuple[tuple[str, str], ...]
    hottest_range: int | None
    hottest_range_share: float
    over_partitions_share: float
    sampled: int = 0

    @pydantic.model_validator(mode="after")
    def _names_a_range(self) -> Self:
        if self.hottest_range is not None and not 0 <= self.hottest_range < len(self.ranges):
            raise ValueError("hottest_range is not the number of a range")
        return self

    @property
    def range_count(self) -> int:
        """Number of ranges of the table with the hottest range; 0 if there is none."""
        if self.hottest_range is None:
            return 0
        table, _ = Partition.named(self.ranges[self.hottest_range][0])
        return sum(Partition.named(first).table == table for first, _ in self.ranges)

    def account_rate_at(self, partition_per_s: float) -> float:
        """Entities per second of the whole account when the hottest partition has this rate."""
        return partition_per_s / self.hottest_share if self.hottest_share else float("inf")


class ConditionPart(RecordPart):
    """A pass condition and its result.

    Attributes:
        value: What was measured, in ``unit``; None if unknown.
        note: Why the value is unknown, or what it leaves out.
    """

    text: str
    value: float | None
    passed: bool | None
    note: str = ""
    unit: str = ""


class MachinePart(RecordPart):
    """The machine of the master, with its logical CPUs; workers may run on others."""

    cpus: int
    platform: str
    python: str
    packages: dict[str, str] = pydantic.Field(default_factory=dict)


class PointersPart(RecordPart):
    """Rows of an index table that name rows of another table, counted after the run.

    Only the application keeps such tables consistent. ``dangling`` rows name a row that does not
    exist. ``unnamed`` rows of the other table are named by no row.
    """

    table: str
    to: str
    rows: int
    dangling: int
    unnamed: int
