"""What a run measured: its counts, and the figures of each account, partition and operation.

A snapshot is made of the same classes, with figures in full precision.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Annotated, Self

import pydantic

from harness.measure.record.capacity import CapacityPart
from harness.measure.record.findings import RecordPart
from harness.model.outcome import AttemptKey, Scope, throttled_of

_LAST_INSTANT_S = dt.datetime(9999, 12, 31, tzinfo=dt.UTC).timestamp()

_Instant = Annotated[float, pydantic.Field(ge=0, le=_LAST_INSTANT_S)]
"""UTC seconds."""
_Target = Annotated[float, pydantic.Field(ge=1)]
"""Entities per second."""


def share(value: float, target: float | None) -> float | None:
    """``value`` as a share of ``target``; None without a target."""
    return None if target is None else round(value / target, 4)


class RatesPart(RecordPart):
    """Rates per second over the measured window: mean, best second, best 10 s in a row.

    They are rates of entities, and in a `RequestUnitsPart` of request units.
    """

    mean: float = 0.0
    best_1s: float = 0.0
    best_10s: float = 0.0


class RequestUnitsPart(RecordPart):
    """Request units that Cosmos DB charged for attempts, throttled ones included.

    In a snapshot figures have full precision, and there is no target.

    Attributes:
        total: Of the whole run under load.
        per_s: Over the measured window.
        target: RU/s that the partition or the account is held against; None if that is unknown.
        ratio: Mean RU/s as a share of ``target``.
    """

    total: float = 0.0
    per_s: RatesPart = RatesPart()
    target: _Target | None = None
    ratio: float | None = None

    def held_against(self, target: float | None) -> Self:
        """The same as a record keeps it, held against ``target``."""
        return self.recorded(target=target, ratio=share(self.per_s.mean, target))


OptionalRequestUnits = Annotated[
    RequestUnitsPart | None, pydantic.Field(exclude_if=lambda part: part is None)
]
"""None, and not in the JSON, where the service charges no request units."""


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
    request_units: OptionalRequestUnits = None
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
        operations: Those that ended, in the whole run; 0 in records of earlier versions.
        entities_by_kind: By name of the operation.
        attempts_by_status: By answer: ``204``, ``503 ServerBusy partition``, ``connection_reset``.
        attempts: The same by status, error code and scope. Only snapshots have them.
        retrying: Operations that were throttled and go on, by UTC second. Likewise.
    """

    key: str
    account: str = pydantic.Field(default="", exclude_if=lambda name: not name)
    exact: bool
    since: _Instant | None
    estimate: EstimatePart | None
    operations: int = 0
    entities: int
    entities_by_kind: dict[str, int] = pydantic.Field(default_factory=dict)
    entities_per_s: RatesPart
    target: _Target | None
    ratio: float | None
    attempts_by_status: dict[str, int]
    throttled_ratio: float
    service_ms: LatencyPart | None
    response_ms: LatencyPart | None
    request_units: OptionalRequestUnits = None
    attempts: dict[AttemptKey, int] = pydantic.Field(default_factory=dict, exclude=True)
    retrying: dict[int, int] = pydantic.Field(default_factory=dict, exclude=True)

    @property
    def throttled(self) -> int:
        """Throttled attempts; in a snapshot only."""
        return throttled_of(self.attempts)

    @property
    def attempts_per_operation(self) -> float | None:
        """Attempts, those of operations that had not ended included, by operations that ended.

        None without an operation.
        """
        attempts = sum(self.attempts_by_status.values())
        return attempts / self.operations if self.operations else None


class OperationPart(RecordPart):
    """The operations of one name. In a snapshot figures have full precision.

    Attributes:
        kind: The name.
        type: Their `Kind`.
        entities: Their entity count; of queries, the scanned entities.
        entities_estimated: The part of ``entities`` that is a lower bound, of ``uncertain``
            operations.
        entities_wanted: Entities that queries with `KeyRange.wanted` were meant to return.
        entities_missed: Those of them that were not returned.
    """

    kind: str
    type: str = ""
    count: int
    entities: int
    entities_returned: int = 0
    entities_estimated: int = 0
    uncertain: int = 0
    entities_wanted: int = 0
    entities_missed: int = 0
    entities_per_s: RatesPart
    outcomes: dict[str, int]
    service_ms: LatencyPart | None
    response_ms: LatencyPart | None
    request_units: OptionalRequestUnits = None

    @property
    def request_units_each(self) -> float | None:
        """Mean request units of an operation, its retries and pages included; None if unknown."""
        return self.request_units.total / self.count if self.request_units and self.count else None


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
        machine_by_second: CPU of the busiest machine, likewise.
        others_by_second: The part of a machine's CPU that other processes used, likewise.
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
    machine_by_second: Mapping[int, float] = pydantic.Field(default_factory=dict, exclude=True)
    others_by_second: Mapping[int, float] = pydantic.Field(default_factory=dict, exclude=True)
