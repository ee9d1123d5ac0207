"""What a run measured: its counts, its course, the figures of accounts, partitions and operations.

The parts of a snapshot (`harness.measure.counts`) are subclasses: they have full precision, more
fields, and no target yet.

What the generator can make is measured in CPU time, not wall time: what a process makes in a second
of CPU time hardly depends on what else the machine does meanwhile.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from typing import Annotated, Any, Self

import pydantic

from harness.measure.record.findings import IF_ANY, RecordPart
from harness.measure.record.over_time import Width
from harness.model.figures import counted, number, of_core
from harness.model.operation import WHOLE_TABLE
from harness.model.outcome import THROTTLING_STATUSES
from harness.model.partition import Partition
from harness.model.services.service import CountedUnit

USEFUL_SHARE = 0.8
"""Of a core, up to which a worker sends on time; from 90 % it counts as busy."""
OTHERS = "other processes"
_Figure = Annotated[float, pydantic.Field(ge=0)]
_Count = Annotated[int, pydantic.Field(ge=0)]


class MachineLoadPart(RecordPart):
    """The mean CPU use of one machine, in percent of the cores that workers may use there.

    Attributes:
        busy_share: Share of the seconds in which the machine was saturated.
        cpu_percent: All processes.
        harness_percent: The master, where it is no worker, and the embedded emulator.
    """

    name: str
    cores: _Count
    workers: _Count
    busy_share: _Figure
    cpu_percent: _Figure
    workers_percent: _Figure
    harness_percent: _Figure = 0.0

    @property
    def others_percent(self) -> float:
        """Processes that do not belong to the run."""
        return max(0.0, self.cpu_percent - self.workers_percent - self.harness_percent)

    @property
    def mostly_used_by(self) -> str:
        """Who used more of its CPU than all others together, or the most of it."""
        if self.others_percent > self.workers_percent + self.harness_percent:
            return OTHERS
        harness = self.harness_percent > self.workers_percent
        return "the emulator or the master" if harness else "the workers"

    @property
    def described(self) -> str:
        """Who used its CPU, as a part of a sentence."""
        harness = f", emulator or master {of_core(self.harness_percent)}"
        return (
            f"workers {of_core(self.workers_percent)} of {counted(self.cores, 'core')}"
            f"{harness if self.harness_percent else ''}, {OTHERS} "
            f"{of_core(self.others_percent)}"
        )


class CapacityPart(RecordPart):
    """What worker processes make of CPU time with one session and one mix of operations.

    Attributes:
        operations_per_cpu_s: Operations that a worker completes in a second of CPU time, and so at
            most in a second on a core of its own.
    """

    session: str
    operations_per_cpu_s: _Figure
    entities_per_cpu_s: _Figure
    machines: tuple[MachineLoadPart, ...] = ()

    def described(self, unit: CountedUnit) -> str:
        """What the workers made, as a part of a sentence."""
        return (
            f"{number(self.operations_per_cpu_s)} operations ({number(self.entities_per_cpu_s)} "
            f"{unit.many}) in a second of CPU time with session {self.session!r}"
        )

    @property
    def fullest(self) -> MachineLoadPart | None:
        """The machine that was saturated for the largest share of the time."""
        return max(self.machines, key=lambda machine: machine.busy_share, default=None)

    @property
    def workers(self) -> int:
        return sum(machine.workers for machine in self.machines)

    @property
    def cores(self) -> int:
        return sum(machine.cores for machine in self.machines)

    def processes_for(self, entities_per_s: float) -> int | None:
        """Worker processes that are enough for a rate; None if nothing was counted."""
        if self.entities_per_cpu_s <= 0:
            return None
        return max(1, math.ceil(entities_per_s / (self.entities_per_cpu_s * USEFUL_SHARE)))

    def machines_for(self, entities_per_s: float, cores: int) -> int | None:
        """Machines with so many cores that are enough for a rate; None if nothing was counted."""
        processes = self.processes_for(entities_per_s)
        return None if processes is None or cores <= 0 else math.ceil(processes / cores)


_LAST_INSTANT_S = dt.datetime(9999, 12, 31, tzinfo=dt.UTC).timestamp()

_Instant = Annotated[float, pydantic.Field(ge=0, le=_LAST_INSTANT_S)]
"""UTC seconds."""
_Target = Annotated[float, pydantic.Field(ge=1)]
"""Entities per second."""


_IfKnown = Annotated[float | None, pydantic.Field(exclude_if=lambda value: value is None)]


class SeriesPart(RecordPart):
    """Means per second over ``width_s`` seconds from ``t``, UTC.

    Attributes:
        failed: Operations that did not succeed, not found, conflict and precondition included.
        throttled_by_status: Throttled attempts. In JSON each status has a field of its own, such as
            ``throttled_503``.
        waiting: Operations that were due and not sent, on average. 0 in a closed loop.
        retrying: Operations that are being retried after throttling, on average. 0 in a watch.
        offered: Entities that the load asked for; None in a closed loop.
        cpu_percent: Of the busiest worker, in percent of one core; None if unknown.
        machine_percent: Of the busiest machine of a worker, in percent of the cores that the worker
            may use; None if unknown.
        others_percent: Of processes that do not belong to the run, likewise.
        request_units: Charged by Cosmos DB; None, and not in the JSON, where none were in the run.
        costliest_request_units: Those of the partition with the highest RU/s of the window.
        backlog: Messages that the run had put and not deleted at the end of these seconds; None,
            and not in the JSON, where there were no queues, and in a stream.
        oldest_ms: Age of the oldest message that a get returned in these seconds, likewise.
    """

    t: int
    width_s: Width
    entities: float
    operations: float
    failed: float
    attempts: float
    throttled: float
    throttled_by_status: dict[int, float]
    waiting: float = 0.0
    dropped: float = 0.0
    retrying: float = 0.0
    offered: float | None = None
    cpu_percent: float | None = None
    machine_percent: float | None = None
    others_percent: float | None = None
    request_units: _IfKnown = None
    costliest_request_units: _IfKnown = None
    backlog: _IfKnown = None
    oldest_ms: _IfKnown = None

    @pydantic.model_validator(mode="before")
    @classmethod
    def _gather_statuses(cls, content: Any) -> Any:
        if not isinstance(content, dict) or "throttled_by_status" in content:
            return content
        by_status = {s: content.get(f"throttled_{s}", 0.0) for s in THROTTLING_STATUSES}
        return {**content, "throttled_by_status": by_status}

    @pydantic.model_serializer(mode="wrap")
    def _spread_statuses(self, to_dict: pydantic.SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields = {}
        for name, value in to_dict(self).items():
            if name == "throttled_by_status":
                fields.update({f"throttled_{status}": rate for status, rate in value.items()})
            else:
                fields[name] = value
        return fields


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

    def judged(self, *, by_best: bool) -> float:
        """The one that is compared with a target: see `VerdictPart.by_best`."""
        return self.best_10s if by_best else self.mean


NO_RATES = RatesPart()


class RequestUnitsPart(RecordPart):
    """Request units that Cosmos DB charged for attempts, throttled ones included.

    Attributes:
        total: Of the whole run under load.
        per_s: Over the measured window.
        target: RU/s that the partition or the account is held against; None if that is unknown.
        ratio: Mean RU/s as a share of ``target``.
    """

    total: float = 0.0
    per_s: RatesPart = NO_RATES
    target: _Target | None = None
    ratio: float | None = None

    def held_against(self, target: float | None) -> Self:
        """The same as a record keeps it, held against ``target``."""
        ratio = share(self.per_s.mean, target)
        return type(self).recorded(self, target=target, ratio=ratio)


OptionalRequestUnits = Annotated[RequestUnitsPart | None, IF_ANY]
"""None, and not in the JSON, where the service charges no request units."""


class LatencyPart(RecordPart):
    """Milliseconds over the measured window."""

    count: int
    mean: float
    p50: float
    p90: float
    p99: float
    max: float

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

    entities_per_s: RatesPart = NO_RATES
    reads_per_s: float = 0.0
    writes_per_s: float = 0.0
    transactions_per_s: float = 0.0
    target: _Target | None
    ratio: float | None = None


class AccountLoadPart(RecordPart):
    """One of several accounts over which the partitions were spread.

    Attributes:
        name: The account, or its host where another one has the same name.
    """

    name: str
    host: str = ""
    entities: int
    entities_per_s: RatesPart = NO_RATES
    transactions_per_s: float = 0.0
    target: _Target | None = None
    ratio: float | None = None
    attempts_by_status: dict[str, int]
    throttled_ratio: float
    billable_transactions: int = 0
    request_units: OptionalRequestUnits = None


class EstimatePart(RecordPart):
    """Bounds of the entities of a key that was not counted separately from the start."""

    at_least: int
    at_most: int


class MessagesPart(RecordPart):
    """The messages of a queue in the whole run, as known from answers.

    Attributes:
        got: A message counts each time that a get returns it.
        oldest_ms: Age of the oldest message that a get returned, by the clock of the service, which
            tells whole seconds.
    """

    put: _Count = 0
    got: _Count = 0
    deleted: _Count = 0
    oldest_ms: _Count = 0

    @property
    def backlog(self) -> int:
        """Messages that were put and not deleted by the run."""
        return self.put - self.deleted


class PartitionPart(RecordPart):
    """One partition, or all folded ones together.

    Attributes:
        account: The one of several accounts that the partition belongs to.
        exact: True if every operation of the key was counted in this row.
        since: When the key was first counted separately, UTC; None is from the start.
        estimate: For a key that is not exact, bounds of its entities in the whole run.
        operations: Those that ended, in the whole run.
        attempts_by_status: By answer: ``204``, ``503 ServerBusy partition``, ``connection_reset``.
        messages: None for what is no queue.
    """

    key: str
    account: Annotated[str, IF_ANY] = ""
    exact: bool
    since: _Instant | None
    estimate: EstimatePart | None
    operations: int = 0
    entities: int
    entities_by_kind: dict[str, int] = pydantic.Field(default_factory=dict)
    entities_per_s: RatesPart = NO_RATES
    target: _Target | None
    ratio: float | None = None
    attempts_by_status: dict[str, int]
    throttled_ratio: float
    service_ms: LatencyPart | None
    response_ms: LatencyPart | None
    request_units: OptionalRequestUnits = None
    messages: Annotated[MessagesPart | None, IF_ANY] = None

    @property
    def partition(self) -> Partition:
        return Partition.named(self.key)

    @property
    def request_units_per_s(self) -> RatesPart:
        """Request units; 0 where the service charges none."""
        return NO_RATES if self.request_units is None else self.request_units.per_s

    @property
    def attempts_per_operation(self) -> float | None:
        """Attempts, those of operations that had not ended included, by operations that ended.

        None without an operation.
        """
        attempts = sum(self.attempts_by_status.values())
        return attempts / self.operations if self.operations else None

    def scanned_besides(self, partitions: tuple[PartitionPart, ...]) -> bool:
        """Whether queries over several partitions took entities of it that are not counted here."""
        scanned = {one.partition for one in partitions if one.entities} - {self.partition}
        return self.partition._replace(key=WHOLE_TABLE) in scanned


AT_LEAST, AT_MOST, ABOUT = "≥", "≤", "~"
"""The signs of bounds, and of a share of two bounds, which may be more or less."""
INVERSE = {AT_LEAST: AT_MOST, AT_MOST: AT_LEAST, ABOUT: ABOUT, "": ""}
"""The sign of what becomes less where a figure with this sign becomes more."""


def is_lower_bound(
    operations: Sequence[OperationPart],
    partitions: tuple[PartitionPart, ...],
    part: PartitionPart | None = None,
) -> bool:
    """Whether rates of entities of a partition, or else of all together, may be too low.

    What some queries scanned is known as a lower bound only.
    """
    bounds = {one.kind for one in operations if one.uncertain}
    if part is None:
        return bool(bounds)
    if part.entities_by_kind:
        bounds &= part.entities_by_kind.keys()
    return bool(bounds) or part.scanned_besides(partitions)


class OperationPart(RecordPart):
    """The operations of one name.

    Attributes:
        kind: The name.
        type: What they are, such as ``point_query`` or ``transaction``.
        entities: Their entity count; of queries, the scanned entities.
        entities_estimated: The part of ``entities`` that is a lower bound, of ``uncertain``
            operations.
        entities_wanted: Entities that range queries by key bounds were meant to return, of which
            ``entities_missed`` were not found.
        throttled: Throttled attempts, those of operations that succeeded later included.
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
    throttled: int = 0
    entities_per_s: RatesPart = NO_RATES
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
        busy_share: The largest share of seconds in which a worker used 90 % of a core.
        machine_busy_share: The largest share of seconds in which a machine was saturated.
        lag_s_max: The largest delay between the time a pacer set for an operation and its sending.
        cpu_percents: Mean of each worker, the busiest first.
        connections_in_use: The most at once.
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
