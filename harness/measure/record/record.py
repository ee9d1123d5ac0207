"""The record of a run: versioned JSON from which every report can be made again, years later.

The shapes here are the format. A field is never renamed or given another meaning without a new
``schema_version``; fields may be added.
"""

from __future__ import annotations

from typing import Any

import pydantic

from harness.measure.findings import (
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
from harness.measure.over_time import HeatPart, LatencyCoursePart, SeriesPart

SCHEMA_VERSION = 1


class RecordError(ValueError):
    """A record cannot be read; the message says why."""


class RatesPart(RecordPart):
    """Entities a second over the measured window."""

    mean: float
    best_1s: float
    best_10s: float


class LatencyPart(RecordPart):
    """Milliseconds over the measured window."""

    count: int
    mean: float
    p50: float
    p90: float
    p99: float
    max: float


class EndpointPart(RecordPart):
    """Who answered. ``described`` is the name that every output uses."""

    kind: str
    described: str
    host: str
    table: str


class CountsPart(RecordPart):
    """Operations by where they are, and what they moved. Whole run under load."""

    due: int
    sent: int
    waiting: int
    dropped: int
    in_flight: int
    operations: int
    attempts: int
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
    target: float | None
    ratio: float | None


class EstimatePart(RecordPart):
    """Bounds of the entities of a key that was not told apart from the start."""

    at_least: int
    at_most: int


class PartitionPart(RecordPart):
    """One partition."""

    key: str
    exact: bool
    since: float | None
    estimate: EstimatePart | None
    entities: int
    entities_by_kind: dict[str, int] = pydantic.Field(default_factory=dict)
    entities_per_s: RatesPart
    target: float | None
    ratio: float | None
    attempts_by_status: dict[str, int]
    throttled_ratio: float
    service_ms: LatencyPart | None
    response_ms: LatencyPart | None


class OperationPart(RecordPart):
    """The operations of one name, which ``kind`` holds.

    ``type`` is what all of them do. ``entities`` of a query are those it scanned;
    ``entities_estimated`` of them, by ``uncertain`` operations, are the least it can have been.
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
    profile: dict[str, Any]
    endpoint: EndpointPart
    session: str
    started_at: str
    ended_at: str
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
    throttled: dict[str, int]
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
            return cls.model_validate(content)
        except pydantic.ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"]) or "the file"
            raise RecordError(f"no record of a run: {place}: {first['msg']}") from error
