"""The record of a run: versioned JSON from which every report can be made again, years later.

The shapes here are the format. A field is never renamed or given another meaning without a new
``schema_version``; fields may be added.

A record that could be read makes every output: what a function of records could fail on (a type, a
number out of range, a name that is missing) is refused by `RunRecord.from_json`.
"""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any

import pydantic
from pydantic import Strict

from harness.measure.record.findings import (
    AuditPart,
    ConditionPart,
    MachinePart,
    PointersPart,
    PredictionPart,
    RecordPart,
    SearchPart,
    ThrottlingPart,
    VerdictPart,
)
from harness.measure.record.over_time import HeatPart, LatencyCoursePart, SeriesPart
from harness.model.errors import cut
from harness.model.outcome import AttemptKey, Scope, throttled_of

# What a profile calls no cap is infinity, in a record that was not read.
_Rate = Annotated[float, Strict()]
_Users = Annotated[int, Strict(), pydantic.Field(ge=0, le=10**9)]
_Text = Annotated[str, Strict()]


class _Load(RecordPart):
    users: _Users = 0
    max_entities_per_s: _Rate | None = None
    emulator_max_entities_per_s: _Rate | None = None
    entities_per_s: _Rate | None = None
    operations_per_s: _Rate | None = None
    arrivals: _Text = ""


class _Stage(RecordPart):
    to_entities_per_s: _Rate | None = None
    to_operations_per_s: _Rate | None = None
    to_users: _Users | None = None


class _Search(RecordPart):
    start_per_s: _Rate
    max_per_s: _Rate


class _Read(RecordPart):
    """What outputs read of a profile."""

    load: _Load = _Load()
    stage: tuple[_Stage, ...] | None = None
    search: _Search | None = None


def _readable(profile: dict[str, Any]) -> dict[str, Any]:
    """``profile`` itself, as it is.

    Raises:
        ValueError: outputs could not read it.
    """
    _Read.model_validate(profile)
    return profile


Settings = Annotated[dict[str, Any], pydantic.AfterValidator(_readable)]


SCHEMA_VERSION = 1

_MEASURED = (1e-15, 1e18)
_SETTINGS = (0.0, 1e300)
"""Sizes of numbers, 0 apart, between which what is calculated of them stays finite."""
_MOST_DEPTH = 20
_LAST_INSTANT_S = dt.datetime(9999, 12, 31, tzinfo=dt.UTC).timestamp()

_Instant = Annotated[float, pydantic.Field(ge=0, le=_LAST_INSTANT_S)]
"""UTC seconds."""
_Target = Annotated[float, pydantic.Field(ge=1)]
"""Entities a second."""


def rounded(value: float) -> float:
    """With the precision that a record keeps: three decimal digits."""
    return round(value, 3)


def share(value: float, target: float | None) -> float | None:
    """``value`` of ``target``; None where there is none."""
    return None if target is None else round(value / target, 4)


class RecordError(ValueError):
    """A record cannot be read; the message says why."""


def _moment(text: str) -> str:
    if dt.datetime.fromisoformat(text).tzinfo is None:
        raise ValueError("a moment has an offset from UTC")
    return text


def _by_scope(counts: dict[str, int]) -> dict[str, int]:
    if missing := {Scope.PARTITION, Scope.ACCOUNT} - counts.keys():
        raise ValueError(f"{' and '.join(sorted(missing))} must be there")
    return counts


_Moment = Annotated[str, pydantic.AfterValidator(_moment)]
"""ISO 8601."""
_ByScope = Annotated[dict[str, int], pydantic.AfterValidator(_by_scope)]


class RatesPart(RecordPart):
    """Entities a second over the measured window: mean, best second, best ten seconds in a row."""

    mean: float = 0.0
    best_1s: float = 0.0
    best_10s: float = 0.0

    def rounded(self) -> RatesPart:
        """With the precision that a record keeps."""
        return RatesPart(
            mean=rounded(self.mean),
            best_1s=rounded(self.best_1s),
            best_10s=rounded(self.best_10s),
        )


class LatencyPart(RecordPart):
    """Milliseconds over the measured window.

    Attributes:
        buckets: Latencies at or below each bound of `BUCKETS_S`. Snapshots have them, records do
            not.
    """

    count: int
    mean: float
    p50: float
    p90: float
    p99: float
    max: float
    buckets: tuple[int, ...] = pydantic.Field(default=(), exclude=True)

    @property
    def total_s(self) -> float:
        """The sum of all latencies, in seconds."""
        return self.count * self.mean / 1000

    def rounded(self) -> LatencyPart:
        """With the precision that a record keeps, and without buckets."""
        return LatencyPart(
            count=self.count,
            mean=rounded(self.mean),
            p50=rounded(self.p50),
            p90=rounded(self.p90),
            p99=rounded(self.p99),
            max=rounded(self.max),
        )


class EndpointPart(RecordPart):
    """Who answered. ``described`` is the name that every output uses."""

    kind: str
    described: str
    host: str
    table: str


class CountsPart(RecordPart):
    """Operations by where they are, and what they moved. Whole run under load.

    ``attempts_in_flight`` of the attempts belong to operations that had not ended when the run
    did. ``waits_cut`` times the service asked for a longer wait than ``retry.maximum_s``.
    """

    due: int
    sent: int
    waiting: int
    dropped: int
    in_flight: int
    operations: int
    attempts: int
    attempts_in_flight: int = 0
    waits_cut: int = 0
    transactions: int
    entities: int
    entities_returned: int
    entities_estimated: int
    billable_transactions: int
    bytes_sent: int
    bytes_received: int


class LoadingPart(RecordPart):
    """What was put into the table before the load began."""

    entities: int
    seconds: float
    attempts: int


class AccountPart(RecordPart):
    """The whole account. ``target`` and ``ratio`` are None where no target holds."""

    entities_per_s: RatesPart
    reads_per_s: float
    writes_per_s: float
    transactions_per_s: float
    target: _Target | None
    ratio: float | None


class EstimatePart(RecordPart):
    """Bounds of the entities of a key that was not told apart from the start."""

    at_least: int
    at_most: int


class PartitionPart(RecordPart):
    """One partition, or all folded ones together.

    A snapshot has full precision, ``attempts`` and no target. A record has rounded figures and the
    target.

    Attributes:
        exact: True where every operation of the key was counted in this row.
        since: From when on the key was counted apart, UTC; None is from the start.
        estimate: For a key that is not exact, bounds of its entities in the whole run.
        entities_by_kind: By name of the operation.
        attempts_by_status: By what answered: ``204``, ``503 ServerBusy partition``,
            ``connection_reset``.
        attempts: The same by status, error code and scope.
    """

    key: str
    exact: bool
    since: _Instant | None
    estimate: EstimatePart | None
    entities: int
    entities_by_kind: dict[str, int] = pydantic.Field(default_factory=dict)
    entities_per_s: RatesPart
    target: _Target | None
    ratio: float | None
    attempts_by_status: dict[str, int]
    throttled_ratio: float
    service_ms: LatencyPart | None
    response_ms: LatencyPart | None
    attempts: dict[AttemptKey, int] = pydantic.Field(default_factory=dict, exclude=True)

    @property
    def throttled(self) -> int:
        """Throttled attempts; of a part in a snapshot only."""
        return throttled_of(self.attempts)

    def recorded(self, target: float | None) -> PartitionPart:
        """As a record holds it; ``target`` is None where none holds."""
        return self.model_copy(
            update={
                "entities_per_s": self.entities_per_s.rounded(),
                "target": target,
                "ratio": share(self.entities_per_s.mean, target),
                "service_ms": self.service_ms and self.service_ms.rounded(),
                "response_ms": self.response_ms and self.response_ms.rounded(),
                "attempts": {},
            }
        )


class OperationPart(RecordPart):
    """The operations of one name. A snapshot has full precision, a record rounded figures.

    Attributes:
        kind: Their name.
        type: What all of them do, a `Kind`.
        entities: What they count for; of a query, what it scanned.
        entities_estimated: The part of ``entities`` that is a lower bound, of ``uncertain``
            operations.
    """

    kind: str
    type: str = ""
    count: int
    entities: int
    entities_returned: int = 0
    entities_estimated: int = 0
    uncertain: int = 0
    entities_per_s: RatesPart
    outcomes: dict[str, int]
    service_ms: LatencyPart | None
    response_ms: LatencyPart | None

    def recorded(self) -> OperationPart:
        """As a record holds it."""
        return self.model_copy(
            update={
                "entities_per_s": self.entities_per_s.rounded(),
                "service_ms": self.service_ms and self.service_ms.rounded(),
                "response_ms": self.response_ms and self.response_ms.rounded(),
            }
        )


class GeneratorPart(RecordPart):
    """How busy the generator was in the measured window."""

    cpu_percent_max: float
    cpu_percent_mean: float
    busy_share: float
    machine_percent_max: float
    machine_busy_share: float
    lag_s_max: float
    cpu_percents: tuple[float, ...] = ()
    connections: int | None = None
    connections_in_use: int | None = None


class EntityPart(RecordPart):
    """Size of a written entity: as stored, by Microsoft's formula, and about as sent in JSON."""

    stored_bytes: int
    wire_bytes: int


class RunRecord(RecordPart):
    """A whole run.

    Where it is ``redacted``, aliases stand for the PartitionKeys.
    """

    schema_version: int
    harness_version: str
    run_id: str
    profile: Settings
    endpoint: EndpointPart
    session: str
    started_at: _Moment
    ended_at: _Moment
    ended_by: str
    window_start: int
    measured_s: int
    workers: int
    users: int
    complete: bool
    invariants: tuple[str, ...]
    exit_code: int
    entity: EntityPart
    loading: LoadingPart
    counts: CountsPart
    outcomes: dict[str, int]
    attempts_by_status: dict[str, int]
    throttled: _ByScope
    throttled_ratio: float
    service_ms: LatencyPart | None
    response_ms: LatencyPart | None
    account: AccountPart
    partitions: tuple[PartitionPart, ...]
    partitions_folded: PartitionPart | None
    operations: tuple[OperationPart, ...]
    series: tuple[SeriesPart, ...]
    generator: GeneratorPart
    verdict: VerdictPart
    conditions: tuple[ConditionPart, ...]
    pointers: tuple[PointersPart, ...] = ()
    throttling: ThrottlingPart = ThrottlingPart()
    search: SearchPart | None = None
    audit: AuditPart | None = None
    prediction: PredictionPart | None = None
    redacted: bool = False
    machine: MachinePart | None = None
    heat: HeatPart | None = None
    service_over_time: LatencyCoursePart | None = None
    response_over_time: LatencyCoursePart | None = None

    def to_json(self) -> str:
        """The record as it is kept in ``run.json``."""
        return self.model_dump_json(indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> RunRecord:
        """The record that was kept.

        Raises:
            RecordError: it is no record, or one of a later version of the harness.
        """
        try:
            content = pydantic.TypeAdapter(dict[str, Any]).validate_json(text)
            version = content.get("schema_version")
            if isinstance(version, int) and version > SCHEMA_VERSION:
                raise RecordError(
                    f"the record has version {version}; this harness reads up to {SCHEMA_VERSION}"
                )
            _require_figures(content, ())
            return cls.model_validate(content)
        except pydantic.ValidationError as error:
            first = error.errors()[0]
            place = cut(".".join(str(part) for part in first["loc"])) or "the file"
            raise RecordError(f"no record of a run: {place}: {first['msg']}") from error


def _require_figures(value: Any, place: tuple[str, ...]) -> None:
    """See to it that outputs can show every number in ``value``.

    Raises:
        RecordError: they cannot show one, such as an infinity; or it is nested too deeply.
    """
    if len(place) > _MOST_DEPTH:
        raise RecordError(f"no record of a run: {place[0]}: it is nested too deeply")
    if isinstance(value, dict):
        for name, part in value.items():
            _require_figures(part, (*place, name))
    elif isinstance(value, list):
        for number, part in enumerate(value):
            _require_figures(part, (*place, str(number)))
    elif isinstance(value, int | float) and value:
        least, most = _SETTINGS if place[:1] == ("profile",) else _MEASURED
        if not least <= abs(value) <= most:
            where = cut(".".join(place))
            raise RecordError(f"no record of a run: {where}: no run has a number of this size")
