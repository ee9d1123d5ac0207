"""What a run would do and cost, worked out without sending anything.

Expected is what happens where every rate that is wanted is held and nothing is sent again. A price
is not worked out: prices differ by region and change.
"""

from __future__ import annotations

import dataclasses
import math

from harness.model.operation import Kind
from harness.model.target import PUBLISHED, EndpointKind
from harness.profile.build.pace import (
    capped_rate,
    counts_operations,
    schedule_of,
    staged,
    window_s,
)
from harness.profile.build.workload import entity_sizes, loading_transactions, most_transactions
from harness.profile.checks.observed import observe
from harness.profile.checks.observed_operations import Sent
from harness.profile.settings.part import EXAMPLE_RUN_ID
from harness.profile.settings.schema import Profile
from harness.workload.prediction import SAMPLE

_REQUEST_BYTES = 460
"""Head of a request and of its answer, part of a transaction and of its answer, about: as
azure-data-tables sends them with a shared key and Azurite answers them."""
_ANSWER_BYTES = 350
_TRANSACTION_BYTES = 260
_PART_BYTES = 465
_PART_ANSWER_BYTES = 295
_NOT_RETURNED_BYTES = 100
"""An entity is so much smaller in an answer than in a request."""
_SELECTED_BYTES = 40
"""A property in an answer, where not all are asked for."""
_TABLE_REQUESTS = 2
"""Each table is created and deleted."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A part of a run.

    Attributes:
        name: Which.
        seconds: How long; None is not known.
        at_most: Whether it may be shorter.
    """

    name: str
    seconds: float | None
    at_most: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlannedKind:
    """Operations of one name, under load. All but the first three are of one operation.

    Attributes:
        label: Their name.
        kind: What they do.
        share: Share of all operations.
        entities: What it counts for, on average.
        requests: The fewest it takes.
        sent_bytes: About.
        received_bytes: About.
    """

    label: str
    kind: Kind
    share: float
    entities: float
    requests: float
    sent_bytes: float
    received_bytes: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What the reads of a load, or its writes, would do.

    Attributes:
        operations: How many.
        entities: What they count for.
        entities_per_s: Mean over the load.
        requests: Billable transactions.
        sent_bytes: About.
        received_bytes: About.
    """

    operations: float
    entities: float
    entities_per_s: float
    requests: float
    sent_bytes: float
    received_bytes: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run would do.

    Attributes:
        endpoint: Who would answer.
        tables: Endings of the names of its tables.
        loaded_entities: Into all tables together.
        loading_requests: That load them.
        loading_bytes: Of these requests, about.
        phases: One after the other.
        kinds: Operations under load, those that count for most first.
        operations: Expected under load; None where no rate is wanted.
        seconds: Length of the load.
        most_loading: Billable transactions of loading, if every request is sent as often as can be.
        most_load: The same of the load; may be infinite.
        budget: ``limits.billable_transactions``; None is none.
        may_end_early: Why the run may end before its time, and what to do; empty where it may not.
    """

    endpoint: EndpointKind
    tables: tuple[str, ...]
    loaded_entities: int
    loading_requests: int
    loading_bytes: float
    phases: tuple[Phase, ...]
    kinds: tuple[PlannedKind, ...]
    operations: float | None
    seconds: float
    most_loading: float
    most_load: float
    budget: int | None
    may_end_early: str

    @property
    def table_requests(self) -> int:
        """Billable transactions that make and delete the tables."""
        return _TABLE_REQUESTS * len(self.tables)

    def cost(self, *, reads: bool) -> Cost | None:
        """What reads, or writes, would do under load; None where no rate is wanted."""
        if self.operations is None:
            return None
        kinds = [
            (planned, planned.share * self.operations)
            for planned in self.kinds
            if planned.kind.reads is reads
        ]
        entities = sum(count * planned.entities for planned, count in kinds)
        return Cost(
            operations=sum(count for _, count in kinds),
            entities=entities,
            entities_per_s=entities / self.seconds,
            requests=sum(count * planned.requests for planned, count in kinds),
            sent_bytes=sum(count * planned.sent_bytes for planned, count in kinds),
            received_bytes=sum(count * planned.received_bytes for planned, count in kinds),
        )

    @property
    def expected_transactions(self) -> float | None:
        """Billable transactions of all; None where no rate is wanted."""
        reads, writes = self.cost(reads=True), self.cost(reads=False)
        if reads is None or writes is None:
            return None
        return self.loading_requests + reads.requests + writes.requests + self.table_requests

    @property
    def most_transactions(self) -> float:
        """The same with every retry there may be, as far as the budget allows."""
        most = self.most_loading + self.most_load + self.table_requests
        return most if self.budget is None else min(most, self.budget)


def plan_of(profile: Profile, endpoint: EndpointKind, sample: int = SAMPLE) -> Plan:
    """What a run of ``profile`` against that kind of endpoint would do.

    Args:
        profile: What is run.
        endpoint: Who would answer.
        sample: Operations that are looked at.

    Raises:
        SetupError: a scenario cannot be made, or its code raises.
    """
    seen = observe(profile, sample)
    _, entity_bytes = entity_sizes(profile, EXAMPLE_RUN_ID)
    seconds, units = _load(profile, endpoint)
    if units is not None and not counts_operations(profile):
        units /= seen.entities / seen.operations
    requests = loading_transactions(profile)
    most_loading, most_load = most_transactions(profile, endpoint)
    return Plan(
        endpoint=endpoint,
        tables=seen.tables,
        loaded_entities=seen.loaded_entities,
        loading_requests=requests,
        loading_bytes=seen.loaded_entities * (entity_bytes + _PART_BYTES)
        + requests * (_REQUEST_BYTES + _TRANSACTION_BYTES),
        phases=_phases(profile, endpoint, seen.loaded_entities),
        kinds=tuple(_planned(sent, seen.operations, entity_bytes) for sent in seen.sent),
        operations=units,
        seconds=seconds,
        most_loading=most_loading,
        most_load=most_load,
        budget=profile.limits.billable_transactions,
        may_end_early="" if endpoint.emulated else may_end_early(profile),
    )


def may_end_early(profile: Profile) -> str:
    """What ends a search on an account before it has found its limit; empty for other profiles."""
    if profile.search is None or not profile.limits.stop_on_account_throttling:
        return ""
    return (
        "The search ends as soon as the account throttles, even once, and then says what it found "
        "as at least; limits.stop_on_account_throttling = false lets it go on."
    )


def _planned(sent: Sent, of: int, entity_bytes: int) -> PlannedKind:
    requests, entities = sent.requests / sent.count, sent.entities / sent.count
    out, back = requests * _REQUEST_BYTES + sent.body_bytes, requests * _ANSWER_BYTES
    if sent.kind is Kind.TRANSACTION:
        out += _TRANSACTION_BYTES + entities * _PART_BYTES
        back += entities * _PART_ANSWER_BYTES
    elif sent.kind.reads:
        selected = len(sent.example.select) * _SELECTED_BYTES
        back += sent.returned / sent.count * (selected or entity_bytes - _NOT_RETURNED_BYTES)
    return PlannedKind(
        label=sent.label,
        kind=sent.kind,
        share=sent.count / of,
        entities=entities,
        requests=requests,
        sent_bytes=out,
        received_bytes=back,
    )


def _load(profile: Profile, endpoint: EndpointKind) -> tuple[float, float | None]:
    """Length of the load, and units that are wanted in it; None where no rate is wanted."""
    load = profile.load
    seconds = float(window_s(profile))
    if not staged(profile):
        seconds += load.users / load.spawn_rate_per_s + load.settle_s
    schedule = schedule_of(profile)
    if profile.search is not None:
        return seconds, None
    if schedule is not None:
        return seconds, schedule.due_by(seconds)
    cap = capped_rate(profile, endpoint)
    return seconds, None if cap is None else cap * seconds


def _phases(profile: Profile, endpoint: EndpointKind, loaded: int) -> tuple[Phase, ...]:
    load = profile.load
    cap = load.max_entities_per_s or PUBLISHED.partition
    known = not endpoint.emulated and not math.isinf(cap)
    return (
        Phase(name="load the tables", seconds=loaded / cap if known else None),
        Phase(name="rest", seconds=profile.loading.settle_s),
        Phase(name="users come", seconds=load.users / load.spawn_rate_per_s),
        Phase(name="settle", seconds=0.0 if staged(profile) else load.settle_s),
        Phase(
            name="measure",
            seconds=float(window_s(profile)),
            at_most=profile.search is not None,
        ),
    )
