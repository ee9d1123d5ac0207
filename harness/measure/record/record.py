"""The record of a run: versioned JSON from which every report can be made again, years later.

These classes are the format. Fields may be added. A field is never renamed or given another meaning
without a new ``schema_version``.

Every output can be made from a record that was read: `RunRecord.from_json` refuses what an output
could fail on, such as a wrong type or a number out of range.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Annotated, Any, Self

import pydantic
from pydantic import Strict

from harness.measure.record.behaviour import BehaviourPart
from harness.measure.record.enforced import EnforcedPart
from harness.measure.record.findings import (
    IF_ANY,
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
from harness.measure.record.measured import (
    ABOUT,
    AT_LEAST,
    AT_MOST,
    AccountLoadPart,
    AccountPart,
    CountsPart,
    GeneratorPart,
    LatencyPart,
    MessagesPart,
    OperationPart,
    OptionalRequestUnits,
    PartitionPart,
    SeriesPart,
    is_lower_bound,
)
from harness.measure.record.origin import ReplayPart, WatchedPart
from harness.measure.record.over_time import HeatPart, LatencyCoursePart
from harness.measure.record.service_log import ServiceLogPart
from harness.model.errors import cut
from harness.model.files import mistake
from harness.model.outcome import Scope
from harness.model.services import service_beside, service_named
from harness.model.services.service import Service, Targets

SCHEMA_VERSION = 1

_MEASURED = (1e-15, 1e18)
_SETTINGS = (0.0, 1e300)
"""Magnitudes of numbers, 0 apart, with which calculations stay finite."""
_MOST_DEPTH = 20

# A profile that was not read may hold infinity for "no cap".
_Rate = Annotated[float, Strict()]
_Users = Annotated[int, Strict(), pydantic.Field(ge=0, le=10**9)]


class _Load(RecordPart):
    users: _Users = 0
    max_entities_per_s: _Rate | None = None
    emulator_max_entities_per_s: _Rate | None = None
    uncapped: Annotated[bool, Strict()] = False
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


class _Replay(RecordPart):
    trace: Annotated[str, Strict()]
    speed: _Rate = 1.0


class _Profile(RecordPart):
    """The settings that outputs read; the others are shown as they are."""

    load: _Load = _Load()
    stage: tuple[_Stage, ...] | None = None
    search: _Search | None = None
    replay: _Replay | None = None


def _readable(profile: dict[str, Any]) -> dict[str, Any]:
    _Profile.model_validate(profile)
    return profile


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


class TargetsPart(RecordPart):
    """Targets that are not the published ones, in entities/s."""

    partition: Annotated[float, pydantic.Field(gt=0)]
    account: Annotated[float, pydantic.Field(gt=0)]

    @classmethod
    def raised(cls, targets: Targets | None) -> Self | None:
        """``targets`` if they are not the published ones."""
        if targets is None or targets.origin == "published":
            return None
        return cls(partition=targets.partition, account=targets.account)


class EndpointPart(RecordPart):
    """Who answered.

    Attributes:
        kind: The service, such as ``storage``, ``azurite`` or ``cosmos``.
        signed_with: Describes the credential; empty for the emulator's own key.
        targets: Those of an account whose limits were raised; None for the published ones.
        alone: What an application used of the account, if no tables: ``(queues)`` or ``(blobs)``.
    """

    kind: str
    described: str
    host: str
    table: str
    signed_with: str = ""
    targets: TargetsPart | None = pydantic.Field(
        default=None, exclude_if=lambda targets: targets is None
    )
    alone: Annotated[str, IF_ANY] = ""

    @property
    def service(self) -> Service:
        """What answered; without targets if a later version of the harness knows it."""
        known, raised = service_named(self.kind), self.targets
        if (only := service_beside(self.alone)) is not None:
            return only.alone_at(known)
        if raised is None:
            return known
        return known.held_to(Targets(partition=raised.partition, account=raised.account))


class LoadingPart(RecordPart):
    """What was loaded before the load, how long it took, and its requests, retries included.

    ``attempts_by_status`` names them as that of the run does.
    """

    entities: int
    seconds: float
    attempts: int
    attempts_by_status: dict[str, int] = pydantic.Field(
        default_factory=dict, exclude_if=lambda attempts: not attempts
    )


class EntityPart(RecordPart):
    """Size of a written entity: as stored, by Microsoft's formula, and about as sent in JSON.

    ``content_bytes`` is the size as stored if the client did not compress; None if it did not.
    """

    stored_bytes: int
    wire_bytes: int
    content_bytes: int | None = None


_RATES = dict.fromkeys(
    ("entities_per_s", "reads_per_s", "writes_per_s", "transactions_per_s", "per_s", "ratio"), True
)
_OF_ONE = {**_RATES, "request_units": _RATES}
_UNMEASURED = {
    **dict.fromkeys(("account", "request_units", "partitions_folded"), _OF_ONE),
    **{parts: {"__all__": _OF_ONE} for parts in ("accounts", "partitions", "operations")},
}
"""The rates of a record, and their shares of targets."""


class RunRecord(RecordPart):
    """A whole run. In a ``redacted`` one aliases replace the PartitionKeys.

    Where the measured window did not open, ``measured_s`` is 0, and the JSON has no rates.

    Attributes:
        ended_by: Such as ``run time``, ``Ctrl-C`` or ``budget of billable transactions``.
        window_start: First second of the measured window, which has ``measured_s`` seconds.
        complete: Whether every worker sent its last report, and the run was not cut short.
        invariants: Counting rules that the run broke, in words.
        outcomes: Operations of the whole run by how they ended.
        throttled: Throttled attempts by scope: partition, account.
        partitions_folded: The partitions that are not counted one by one, together.
        refused_messages: What was sent to the port of the master, by whomever, and was malformed.
        service_log: What the service's own log says of the run, if `harness verify` was given it.
        light_ms: Mean service latency of the same operations under light load; None if unknown.
    """

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
    replay: Annotated[ReplayPart | None, IF_ANY] = None
    accounts: Annotated[tuple[AccountLoadPart, ...], IF_ANY] = ()
    request_units: OptionalRequestUnits = None
    refused_messages: Annotated[int, Strict(), pydantic.Field(ge=0), IF_ANY] = 0
    light_ms: Annotated[float | None, pydantic.Field(exclude_if=lambda mean: mean is None)] = None
    service_log: Annotated[ServiceLogPart | None, IF_ANY] = None

    @property
    def messages(self) -> MessagesPart | None:
        """The messages of all queues together; None if there were no queues."""
        parts = (*self.partitions, *filter(None, (self.partitions_folded,)))
        found = [part.messages for part in parts if part.messages is not None]
        if not found:
            return None
        return MessagesPart(
            put=sum(part.put for part in found),
            got=sum(part.got for part in found),
            deleted=sum(part.deleted for part in found),
            oldest_ms=max(part.oldest_ms for part in found),
        )

    @property
    def offered_per_s(self) -> float | None:
        """Mean entities/s that the load offered in the measured window; None in a closed loop."""
        start, end = self.window_start, self.window_start + self.measured_s
        points = [point for point in self.series if start <= point.t < end]
        known = [(point.offered, point.width_s) for point in points if point.offered is not None]
        seconds = sum(width for _, width in known)
        return sum(rate * width for rate, width in known) / seconds if seconds else None

    @property
    def by_best(self) -> bool:
        """As of its verdict; records of earlier versions do not say so of an application."""
        return self.verdict.by_best or self.watched is not None

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
        unmeasured: Any = _UNMEASURED if self.measured_s <= 0 else None
        return self.model_dump_json(indent=1, exclude=unmeasured) + "\n"

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
            said = mistake(error.errors()[0])
            raise RecordError(f"not a run record: {said[:300]}") from error


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


def share_sign(record: RunRecord, part: PartitionPart | None) -> str:
    """The sign before a partition's share of the load.

    Scans of a whole table are a part of the load, whatever partition they took entities of.
    """
    if part is None or record.request_units is not None or len(record.partitions) == 1:
        return ""
    parts = (*record.partitions, *filter(None, (record.partitions_folded,)))
    others = any(is_lower_bound(record.operations, (), one) for one in parts if one.key != part.key)
    if is_lower_bound(record.operations, record.partitions, part):
        return ABOUT if others else AT_LEAST
    return AT_MOST if others else ""
