"""What a run would do and cost, computed without sending anything.

Expected figures assume that every wanted rate is held and nothing is sent again. There are no
prices: they differ by region and change.
"""

from __future__ import annotations

import dataclasses
import math

from harness.measure.record.findings import RecordPart
from harness.measure.record.origin import ReplayedKind, ReplayPart
from harness.model.operation import Kind
from harness.model.services.service import Service
from harness.profile.build.workload import entity_sizes, most_transactions
from harness.profile.checks.observed import Observed, Sent, observe
from harness.profile.checks.seen import ChargesSeen
from harness.profile.settings.parts import EXAMPLE_RUN_ID
from harness.profile.settings.schema import Profile

# Sizes as azure-data-tables sends them with a shared key and Azurite answers them, about.
_REQUEST_BYTES = 460
_ANSWER_BYTES = 350
_TRANSACTION_BYTES = 260
_PART_BYTES = 465
_PART_ANSWER_BYTES = 295
_NOT_RETURNED_BYTES = 100
"""By so many bytes an entity is smaller in an answer than in a request."""
_SELECTED_BYTES = 40
"""A property in an answer, if not all are returned."""
_TABLE_REQUESTS = 2
"""Each table is created and deleted."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPhase:
    """A part of a run; ``seconds`` is None if its length is unknown."""

    name: str
    seconds: float | None
    at_most: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlannedKind:
    """Operations of one name, and their share of all operations under load.

    Entity count, fewest requests and estimated bytes are means of one operation.
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
    """What all reads of a load, or all writes, would do; ``requests`` are billable."""

    operations: float
    entities: float
    entities_per_s: float
    requests: float
    sent_bytes: float
    received_bytes: float


class PlanFigures(RecordPart):
    """What a run would do, in numbers and names.

    Attributes:
        tables: Endings of their names.
        loading_bytes: Bytes of the loading requests; an estimate.
        kinds: Operations under load, those with the highest entity count first.
        operations: Expected under load; None if the load has no rate.
        peak_per_s: The highest wanted rate in entities/s; None if the load has no rate.
        may_end_early: Why the run may end before its time, and what to do; or empty.
        notes: What is left out of a trace, and what is not known of it, as sentences.
    """

    tables: tuple[str, ...]
    loaded_entities: int
    loading_requests: int
    loading_bytes: float
    phases: tuple[PlannedPhase, ...]
    kinds: tuple[PlannedKind, ...]
    operations: float | None
    seconds: float
    budget: int | None
    peak_per_s: float | None
    may_end_early: str
    notes: tuple[str, ...] = ()


class Plan(PlanFigures):
    """What a run would do, and what it is held against.

    Attributes:
        most_loading: Billable transactions of loading with every possible retry.
        most_load: The same of the load; may be inf.
        charges: The request units; None where the endpoint is not Cosmos DB.
        values: What the values of each field from a file are.
        without_rate: Why the expected operations are unknown, if they are.
    """

    endpoint: Service
    most_loading: float
    most_load: float
    charges: ChargesSeen | None
    without_rate: str
    values: tuple[tuple[str, str], ...] = ()

    @property
    def accounts(self) -> int | None:
        """Accounts that the wanted rate needs by the target of one; None without either."""
        targets = self.endpoint.targets
        if self.peak_per_s is None or targets is None or targets.of_account is None:
            return None
        return max(1, math.ceil(self.peak_per_s / targets.account))

    @property
    def table_requests(self) -> int:
        """Billable transactions that create and delete the tables."""
        return _TABLE_REQUESTS * len(self.tables)

    def cost(self, *, reads: bool) -> Cost | None:
        """What all reads, or all writes, would do under load; None if the load has no rate."""
        if self.operations is None:
            return None
        kinds = [planned for planned in self.kinds if planned.kind.reads is reads]
        total = dict.fromkeys(("entities", "requests", "sent_bytes", "received_bytes"), 0.0)
        for planned in kinds:
            for name in total:
                total[name] += planned.share * self.operations * getattr(planned, name)
        return Cost(
            operations=sum(planned.share for planned in kinds) * self.operations,
            entities_per_s=total["entities"] / self.seconds,
            **total,
        )

    @property
    def expected_transactions(self) -> float | None:
        """Billable transactions of the whole run; None if the load has no rate."""
        reads, writes = self.cost(reads=True), self.cost(reads=False)
        if reads is None or writes is None:
            return None
        return self.loading_requests + reads.requests + writes.requests + self.table_requests

    @property
    def most_transactions(self) -> float:
        """Billable transactions with every possible retry, as far as the budget allows."""
        most = self.most_loading + self.most_load + self.table_requests
        return most if self.budget is None else min(most, self.budget)


def plan_of(profile: Profile, endpoint: Service, seen: Observed | None = None) -> Plan:
    """What a run of ``profile`` would do, by operations that were ``seen``; None observes some."""
    endpoint = profile.endpoint.of(endpoint)
    seen = seen or observe(profile, kind=endpoint)
    each = seen.entities / seen.operations
    load = profile.load_model
    peak_per_s = load.highest_per_s(endpoint, each)
    _, entity_bytes = entity_sizes(profile, EXAMPLE_RUN_ID)
    window = load.expected_window_s
    seconds = load.before_s + window
    units = load.due_within(seconds, endpoint)
    if units is not None and not load.by_operation:
        units /= each
    kinds = tuple(_planned(sent, seen.operations, entity_bytes) for sent in seen.sent)
    if profile.replay is not None:
        found = profile.replay.content
        kinds = tuple(_recorded(kind, found) for kind in found.kinds)
        if units is not None:
            whole = load.trace_s is not None and seconds >= load.trace_s
            units = found.operations if whole else min(units, found.operations)
    requests = seen.loading_requests
    most_loading, most_load = most_transactions(profile, endpoint, requests)
    loaded_per_s = load.loading_pacer(endpoint).entities_per_s
    loading_s = None if loaded_per_s is None else seen.loaded_entities / loaded_per_s
    return Plan(
        endpoint=endpoint,
        tables=seen.tables,
        loaded_entities=seen.loaded_entities,
        loading_requests=requests,
        loading_bytes=seen.loaded_entities * (entity_bytes + _PART_BYTES)
        + requests * (_REQUEST_BYTES + _TRANSACTION_BYTES),
        phases=(
            PlannedPhase(name=f"load the {endpoint.store}s", seconds=loading_s),
            PlannedPhase(name="pause after loading", seconds=profile.loading.settle_s),
            PlannedPhase(name="start the users", seconds=profile.load.ramp_s),
            PlannedPhase(name="settle", seconds=load.settle_s),
            PlannedPhase(name="measure", seconds=window, at_most=load.searched),
        ),
        kinds=kinds,
        operations=units,
        seconds=seconds,
        most_loading=most_loading,
        most_load=most_load,
        budget=profile.limits.billable_transactions,
        may_end_early="" if endpoint.emulated else may_end_early(profile),
        peak_per_s=peak_per_s,
        without_rate=load.without_rate,
        charges=seen.charged(None if peak_per_s is None else peak_per_s / each),
        notes=() if profile.replay is None else tuple(profile.replay.content.sentences()),
        values=tuple(
            (name, field.values_found())
            for name, field in profile.fields.items()
            if field.from_ is not None
        ),
    )


def may_end_early(profile: Profile) -> str:
    """What ends a search on an account before it has found the limit; empty for other profiles."""
    return profile.load_model.may_end_early if profile.limits.stop_on_account_throttling else ""


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


def _recorded(kind: ReplayedKind, of: ReplayPart) -> PlannedKind:
    """The operations of one name in a trace."""
    requests = kind.attempts / kind.operations
    heads = 0.0 if of.counts_whole else requests
    return PlannedKind(
        label=kind.label,
        kind=kind.kind,
        share=kind.operations / of.operations,
        entities=kind.entities / kind.operations,
        requests=requests,
        sent_bytes=kind.bytes_sent / kind.operations + heads * _REQUEST_BYTES,
        received_bytes=kind.bytes_received / kind.operations + heads * _ANSWER_BYTES,
    )
