"""The record of a run: versioned JSON from which every report can be made again, years later.

These classes are the format. Fields may be added. A field is never renamed or given another meaning
without a new ``schema_version``.

Every output can be made from a record that was read: `RunRecord.from_json` refuses what an output
could fail on, such as a wrong type or a number out of range.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Self

import pydantic
from pydantic import Strict

from harness.measure.record.behaviour import BehaviourPart
from harness.measure.record.capacity import CapacityPart
from harness.measure.record.enforced import EnforcedPart
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
from harness.measure.record.watched import WatchedPart
from harness.model.errors import cut
from harness.model.outcome import AttemptKey, Scope, throttled_of

SCHEMA_VERSION = 1

_MEASURED = (1e-15, 1e18)
_SETTINGS = (0.0, 1e300)
"""Magnitudes of numbers, 0 apart, with which calculations stay finite."""
_MOST_DEPTH = 20
_LAST_INSTANT_S = dt.datetime(9999, 12, 31, tzinfo=dt.UTC).timestamp()

_Instant = Annotated[float, pydantic.Field(ge=0, le=_LAST_INSTANT_S)]
"""UTC seconds."""
_Target = Annotated[float, pydantic.Field(ge=1)]
"""Entities per second."""
# A profile that was not read may hold infinity for "no cap".
_Rate = Annotated[float, Strict()]
_Users = Annotated[int, Strict(), pydantic.Field(ge=0, le=10**9)]


class _Load(RecordPart):
    users: _Users = 0
    max_entities_per_s: _Rate | None = None
    emulator_max_entities_per_s: _Rate | None = None
    entities_per_s: _Rate | None = None
    operations_per_s: _Rate | None = None
    arrivals: Annotated[str, Strict()] = ""


class _Stage(RecordPart):
    to_entities_per_s: _Rate | None = None
    to_operations_per_s: _Rate | None = None
    to_users: _Users | None = None


class _Search(RecordPart):
    start_per_s: _Rate
    max_per_s: _Rate


class _Profile(RecordPart):
    """The settings that outputs read; the others are shown as they are."""

    load: _Load = _Load()
    stage: tuple[_Stage, ...] | None = None
    search: _Search | None = None


def _readable(profile: dict[str, Any]) -> dict[str, Any]:
    _Profile.model_validate(profile)
    return profile


def share(value: float, target: float | None) -> float | None:
    """``value`` as a share of ``target``; None without a target."""
    return None if target is None else round(value / target, 4)


class RecordError(ValueError):
    """A record cannot be read; the message is the reason."""


def _moment(text: str) -> str:
    if dt.datetime.fromisoformat(text).tzinfo is None:
        raise ValueError("a time needs an offset from UTC")
    return text


def _by_scope(counts: dict[str, int]) -> dict[str, int]:
    if missing := {Scope.PARTITION, Scope.ACCOUNT} - counts.keys():
        raise ValueError(f"{' and '.join(sorted(missing))} missing")
    return counts


_Moment = Annotated[str, pydantic.AfterValidator(_moment)]
"""ISO 8601."""


class RatesPart(RecordPart):
    """Entities per second over the measured window: mean, best second, best 10 s in a row."""

    mean: float = 0.0
    best_1s: float = 0.0
    best_10s: float = 0.0


class LatencyPart(RecordPart):
    """Milliseconds over the measured window.

    ``buckets`` has the latencies at or below each bound of `BUCKETS_S`, in snapshots only.
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
        return self.count * self.mean / 1000


class EndpointPart(RecordPart):
    """Who answered. ``described`` is the name that every output uses.

    ``signed_with`` describes the credential; empty for the emulator's own key, and in records of
    earlier versions.
    """

    kind: str
    described: str
    host: str
    table: str
    signed_with: str = ""


class CountsPart(RecordPart):
    """Numbers of operations, by how far they came, and what they moved. Whole run under load.

    Attributes:
        attempts_in_flight: Those of ``attempts`` whose operations had not ended with the run.
        waits_cut: How often the service asked for a longer wait than ``retry.maximum_s``.
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
    entities: int
    seconds: float
    attempts: int


class AccountPart(RecordPart):
    """The account, or all accounts together, whose ``target`` is the sum of theirs.

    ``target`` and ``ratio`` are None where no target applies.
    """

    entities_per_s: RatesPart
    reads_per_s: float
    writes_per_s: float
    transactions_per_s: float
    target: _Target | None
    ratio: float | None


class AccountLoadPart(RecordPart):
    """One of several accounts over which the partitions were spread.

    In a snapshot figures have full precision, and host, target and cost are missing.

    Attributes:
        name: The account, or its host where another one has the same name.
        attempts_by_status: As in a `PartitionPart`.
        attempts: The same by status, error code and scope. Only snapshots have them.
    """

    name: str
    host: str = ""
    entities: int
    entities_per_s: RatesPart
    transactions_per_s: float
    target: _Target | None = None
    ratio: float | None = None
    attempts_by_status: dict[str, int]
    throttled_ratio: float
    billable_transactions: int = 0
    attempts: dict[AttemptKey, int] = pydantic.Field(default_factory=dict, exclude=True)

    def throttled(self, scope: Scope | None = None) -> int:
        """Throttled attempts; in a snapshot only."""
        return throttled_of(self.attempts, scope)


class EstimatePart(RecordPart):
    """Bounds of the entities of a key that was not counted separately from the start."""

    at_least: int
    at_most: int


class PartitionPart(RecordPart):
    """One partition, or all folded ones together.

    In a snapshot figures have full precision, and there is no target.

    Attributes:
        account: The one of several accounts that the partition belongs to.
        exact: True if every operation of the key was counted in this row.
        since: When the key was first counted separately, UTC; None is from the start.
        estimate: For a key that is not exact, bounds of its entities in the whole run.
        entities_by_kind: By name of the operation.
        attempts_by_status: By answer: ``204``, ``503 ServerBusy partition``, ``connection_reset``.
        attempts: The same by status, error code and scope. Only snapshots have them.
    """

    key: str
    account: str = pydantic.Field(default="", exclude_if=lambda name: not name)
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
        """Throttled attempts; in a snapshot only."""
        return throttled_of(self.attempts)


class OperationPart(RecordPart):
    """The operations of one name. In a snapshot figures have full precision.

    Attributes:
        kind: The name.
        type: Their `Kind`.
        entities: Their entity count; of queries, the scanned entities.
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


class GeneratorPart(RecordPart):
    """CPU and punctuality of the generator in the measured window.

    Attributes:
        cpu_percent_max: The busiest second of any worker, in percent of one core.
        cpu_percent_mean: Mean of the busiest worker.
        busy_share: The largest share of seconds in which a worker was busy (`BUSY_PERCENT`).
        machine_busy_share: The largest share of seconds in which a machine was saturated.
        lag_s_max: The largest delay between the time a pacer set for an operation and its sending.
        cpu_percents: Mean of each worker, the busiest first.
        connections_in_use: The most at once.
        capacity: What the workers made of their CPU time; None if unknown.
        offered: Entities that the load asked for, by UTC second of the whole run; empty in a
            closed loop. Not in the JSON.
        cpu_by_second: CPU of the busiest worker, likewise.
    """

    cpu_percent_max: float
    cpu_percent_mean: float
    busy_share: float
    machine_percent_max: float
    machine_busy_share: float
    lag_s_max: float
    cpu_percents: tuple[float, ...] = ()
    connections: int | None = None
    connections_in_use: int | None = None
    capacity: CapacityPart | None = None
    offered: Mapping[int, float] = pydantic.Field(default_factory=dict, exclude=True)
    cpu_by_second: Mapping[int, float] = pydantic.Field(default_factory=dict, exclude=True)


class EntityPart(RecordPart):
    """Size of a written entity: as stored, by Microsoft's formula, and about as sent in JSON."""

    stored_bytes: int
    wire_bytes: int


class RunRecord(RecordPart):
    """A whole run. In a ``redacted`` one aliases replace the PartitionKeys."""

    schema_version: int
    harness_version: str
    run_id: str
    profile: Annotated[dict[str, Any], pydantic.AfterValidator(_readable)]
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
    throttled: Annotated[dict[str, int], pydantic.AfterValidator(_by_scope)]
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
    enforced: EnforcedPart | None = None
    behaviour: BehaviourPart | None = None
    watched: WatchedPart | None = None
    accounts: Annotated[
        tuple[AccountLoadPart, ...], pydantic.Field(exclude_if=lambda parts: not parts)
    ] = ()

    def billed(self, by_account: Sequence[int]) -> Self:
        """The same record with the billable transactions of the whole run, by account."""
        counts = self.counts.model_copy(update={"billable_transactions": sum(by_account)})
        accounts = tuple(
            part.model_copy(update={"billable_transactions": billed})
            # A single account has no part of its own.
            for part, billed in zip(self.accounts, by_account, strict=bool(self.accounts))
        )
        return self.model_copy(update={"counts": counts, "accounts": accounts})

    def to_json(self) -> str:
        """The content of ``run.json``."""
        return self.model_dump_json(indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> RunRecord:
        """The record in a ``run.json``; a `RecordError` for anything else, or a later version."""
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
            raise RecordError(f"not a run record: {place}: {cut(first['msg'])}") from error


def _require_figures(value: Any, place: tuple[str, ...]) -> None:
    """Raise a `RecordError` if ``value`` has a number out of range, or too deep nesting."""
    if len(place) > _MOST_DEPTH:
        raise RecordError(f"not a run record: {place[0]}: nested too deeply")
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
            raise RecordError(f"not a run record: {where}: the number is out of range")
