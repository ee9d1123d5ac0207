"""Parts of a record about what a run found: its verdict, its conditions, its search, its audit."""

from __future__ import annotations

from typing import Self

import pydantic


class RecordPart(pydantic.BaseModel):
    """A part of a record. Fields of later versions are passed over."""

    model_config = pydantic.ConfigDict(frozen=True, extra="ignore")


class AdvicePart(RecordPart):
    """What a document advises, where the run gives cause for it."""

    text: str
    document: str
    section: str


class VerdictPart(RecordPart):
    """What the run means, what was seen, and what may be done about it."""

    result: str
    limited_by: str
    sentence: str
    evidence: tuple[str, ...] = ()
    advice: tuple[AdvicePart, ...] = ()


class GapPart(RecordPart):
    """Seconds without any success, from the start of the load."""

    start_s: int
    length_s: int
    recovered_s: int | None


class ThrottlingPart(RecordPart):
    """The course of throttling, in seconds from the start of the load."""

    first_s: int | None = None
    seconds: int = 0
    stretches: int = 0
    longest_s: int = 0
    gap_count: int = 0
    gaps: tuple[GapPart, ...] = ()


class StepPart(RecordPart):
    """One step of a search; ``failed`` says why it did, None where it passed."""

    rate_per_s: float
    achieved_per_s: float
    throttled_ratio: float
    p99_ms: float | None
    hold_s: float
    confirming: bool
    billable_transactions: int
    failed: str | None


class SearchPart(RecordPart):
    """What a search for the highest sustainable rate found; entities a second."""

    rate_per_s: float | None
    at_least: bool
    confirmed: bool
    limited_by: str
    sentence: str
    steps: tuple[StepPart, ...]


class AuditPart(RecordPart):
    """What was stored after the run, beside what was written under load.

    A row that several workers wrote is looked up by, and counted for, each of them. All but the
    first two count writes: a transaction has as many as it has parts.

    Attributes:
        written: Rows that were written.
        rows: Rows that were looked up.
        acknowledged: Writes of the rows looked up that ended in success: those below, up to
            ``covered``.
        kept: What they wrote is there.
        lost: What they wrote is not there, and nothing that came after explains it.
        covered: It cannot be seen any more whether they were done: a later write, or another
            worker's, covers them.
        unacknowledged: Other writes that may have been done: those below, up to ``undecided``.
        applied: They were done.
        not_applied: They were not done.
        undecided: It cannot be seen.
        exact: Whether ``written`` is exact; else it is an estimate from the sample.
        unread: Rows that could not be read. They are none of those looked up.
        given_up: Rows with more writes than could be kept in mind. Nor are they.
        cut_short: Why rows that were to be looked up were not; empty where they were.
        examples: Some lost writes, a sentence each.
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
    """Where the load was expected to fall, from the mix and the keys alone; shares from 0 to 1.

    The fields are those of `harness.workload.prediction.Prediction`.
    """

    hottest: str
    hottest_share: float
    ranges: tuple[tuple[str, str], ...]
    hottest_range: int | None
    hottest_range_share: float
    over_partitions_share: float

    @pydantic.model_validator(mode="after")
    def _names_a_range(self) -> Self:
        if self.hottest_range is not None and not 0 <= self.hottest_range < len(self.ranges):
            raise ValueError("hottest_range is not the number of a range")
        return self


class ConditionPart(RecordPart):
    """A pass condition; ``passed`` is None where it could not be told."""

    text: str
    value: float | None
    passed: bool | None
    note: str = ""
    unit: str = ""


class MachinePart(RecordPart):
    """What the master ran on; workers may have run on others.

    Attributes:
        cpus: Logical ones of the machine.
        platform: Operating system, its release, and the kind of machine.
        python: Which one, and its version.
        packages: Versions by name.
    """

    cpus: int
    platform: str
    python: str
    packages: dict[str, str] = pydantic.Field(default_factory=dict)


class PointersPart(RecordPart):
    """Rows of an index table that name rows of another, counted by listing both after the run.

    Nobody but the application keeps such tables in step: ``dangling`` rows name a row that is not
    there, ``unnamed`` rows of the other table are named by none.
    """

    table: str
    to: str
    rows: int
    dangling: int
    unnamed: int
