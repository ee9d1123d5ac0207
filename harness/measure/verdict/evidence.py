"""The evidence of a verdict: whether it is sufficient, and which bottleneck it shows."""

from __future__ import annotations

import dataclasses
from functools import cached_property

from harness.measure.counts.generator import BUSY_PERCENT
from harness.measure.counts.snapshot import Snapshot
from harness.measure.record.findings import ThrottlingPart
from harness.measure.record.measured import AccountLoadPart, GeneratorPart, PartitionPart, RatesPart
from harness.measure.record.watched import WatchedPart
from harness.measure.verdict.throttling import throttling_of
from harness.model.figures import agreed, counted, milliseconds, of_core, percent
from harness.model.operation import Kind, over_partitions
from harness.model.outcome import Outcome, Scope
from harness.model.target import UNKNOWN_THROUGHPUT, EndpointKind, Targets, Throughput

SHORTEST_S = 5
"""A shorter measured window says nothing about a rate."""
FEWEST_OPERATIONS = 100
"""Fewer operations have no 99th percentile."""
REACHED_FROM = 0.95
"""Share of the wanted rate from which the rate counts as reached."""
GROWN_FROM = 2.0
"""Service latency has grown from this multiple of the latency under light load."""
_BUSY_USERS = 0.8
"""Share of users that wait for an answer on average, from which users could not send more."""
_UNSENT_FROM = 0.01
"""Share of due operations that were not sent, from which a schedule was not kept."""
BUSY_SHARE = 0.2
"""Share of busy seconds from which the generator had no reserve."""
_SATURATED_PERCENT = 97.0
"""Mean CPU of one core from which no measurement of a worker can be trusted."""
_LATE_S = 0.5
"""An operation sent this much later than its pacer allowed was delayed by the generator."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Scans:
    """The queries of the whole run and their entities; ``uncertain`` ones have a lower bound.

    ``wanted`` and ``missed`` are of the queries whose missing entities are known.
    """

    queries: int
    entities: int
    returned: int
    uncertain: int
    wanted: int = 0
    missed: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Evidence:
    """The input of a verdict. Figures of several workers are sums over all of them.

    Attributes:
        watched: The application that made the load; None where the harness made it. The samples of
            the generator are then those of the application: its busiest thread.
        wanted_per_s: Entities per second that the load asked for in the measured window; None in a
            closed loop without a cap.
        cut_short_by: What ended the run before its own end; else empty.
        scheduled: True if operations were due at times that no answer changes.
        waiting: Operations that were due at the end and neither sent nor dropped.
        light_latency_s: Mean service latency of the same operations under light load.
        growing_keys: True if a new PartitionKey always sorts last, or always first.
        searched: True if a search changed the rate: figures cover all of its steps.
        throughput: What is known to be provisioned at Cosmos DB, for each account.
    """

    snapshot: Snapshot
    generator: GeneratorPart
    kind: EndpointKind
    targets: Targets | None
    wanted_per_s: float | None
    users: int
    entity_bytes: int
    all_reported: bool
    cut_short_by: str = ""
    scheduled: bool = False
    waiting: int = 0
    connections: int | None = None
    connections_in_use: int | None = None
    light_latency_s: float | None = None
    retry: str = "exponential"
    growing_keys: bool = False
    searched: bool = False
    leaner_session: str | None = None
    watched: WatchedPart | None = None
    throughput: Throughput = UNKNOWN_THROUGHPUT

    @property
    def length_s(self) -> int:
        return self.snapshot.length_s

    @property
    def achieved_per_s(self) -> float:
        """Mean entities per second over the measured window."""
        return self.snapshot.entities_per_s.mean

    @property
    def held_ratio(self) -> float | None:
        """Achieved rate over wanted rate; None without a wanted rate or a measurement."""
        if self.wanted_per_s is None or self.length_s <= 0:
            return None
        return self.achieved_per_s / self.wanted_per_s

    @property
    def latency_s(self) -> float | None:
        """Mean service latency; None without a measurement."""
        service = self.snapshot.service_ms
        return None if service is None else service.mean / 1000

    @property
    def on_the_way(self) -> float:
        """Operations that wait for their answer on average, by Little's law: rate x latency."""
        service = self.snapshot.service_ms
        return 0.0 if service is None or self.length_s <= 0 else service.total_s / self.length_s

    @property
    def unsent(self) -> int:
        """Operations that were due and never sent."""
        return self.waiting + self.snapshot.counts.dropped

    @property
    def growth(self) -> float | None:
        """Service latency as a multiple of the latency under light load; None if unknown."""
        latency_s, light_s = self.latency_s, self.light_latency_s
        return None if latency_s is None or not light_s else latency_s / light_s

    @cached_property
    def throttling(self) -> ThrottlingPart:
        snapshot = self.snapshot
        return throttling_of(snapshot.series, snapshot.partitions, end=snapshot.end or None)

    @cached_property
    def scans(self) -> Scans:
        queries = [part for part in self.snapshot.operations if part.type == Kind.QUERY]
        return Scans(
            queries=sum(part.count for part in queries),
            entities=sum(part.entities for part in queries),
            returned=sum(part.entities_returned for part in queries),
            wanted=sum(part.entities_wanted for part in queries),
            missed=sum(part.entities_missed for part in queries),
            uncertain=sum(part.uncertain for part in queries),
        )

    @property
    def queries_are_most(self) -> bool:
        """Whether scanned entities are more than half of all counted entities."""
        return self.scans.entities * 2 > self.snapshot.counts.entities

    @property
    def most_throttled_account(self) -> AccountLoadPart | None:
        """The one of several accounts whose own limit throttled most attempts."""
        accounts = self.snapshot.accounts
        return max(accounts, key=lambda part: part.throttled(Scope.ACCOUNT), default=None)

    @property
    def most_throttled(self) -> PartitionPart | None:
        return max(self.snapshot.partitions, key=lambda part: part.throttled, default=None)

    @property
    def service_failures(self) -> dict[Outcome, int]:
        """Failed operations by outcome, without throttled ones."""
        return {
            outcome: count
            for outcome, count in self.snapshot.outcomes.items()
            if outcome.failed and outcome is not Outcome.THROTTLED
        }

    @property
    def reached(self) -> bool:
        """Whether the wanted rate was reached; False without a wanted rate."""
        held = self.held_ratio
        return held is not None and held >= REACHED_FROM

    @property
    def missed(self) -> bool:
        """Whether there was a wanted rate, and it was not reached."""
        return self.held_ratio is not None and not self.reached

    @property
    def behind(self) -> bool:
        """Whether a schedule was not kept."""
        due = self.snapshot.counts.due
        return self.scheduled and self.unsent >= max(1, _UNSENT_FROM * due)

    @property
    def users_are_busy(self) -> bool:
        """Whether most users were waiting for answers, by Little's law."""
        return self.length_s > 0 and self.on_the_way >= _BUSY_USERS * self.users

    @property
    def latency_grew(self) -> bool | None:
        """Whether latency was much higher than under light load; None if unknown."""
        return None if self.growth is None else self.growth >= GROWN_FROM

    @property
    def connections_used_up(self) -> bool:
        """Whether users had to wait for a connection."""
        limit, in_use = self.connections, self.connections_in_use
        return limit is not None and in_use is not None and in_use >= limit < self.users

    @property
    def generator_limit(self) -> str | None:
        """Why the generator was the limit, as a part of a sentence; None if it was not."""
        if self.watched is not None:
            return _application_limit(self.generator)
        limit = limit_of(self.generator, self.kind, held=self.reached)
        if limit is None and self.connections_used_up and not self.reached:
            all_were = f"all {self.connections:,} connections were"
            if self.connections == 1:
                all_were = "the only connection was"
            return f"{all_were} in use, and users waited for one"
        return limit

    @property
    def gateway_limit(self) -> str | None:
        """Why the gateway of a watched application was the limit, as a part of a sentence."""
        watched = self.watched
        if watched is None or watched.gateway_busy_share < BUSY_SHARE:
            return None
        return (
            f"the gateway used over {of_core(BUSY_PERCENT)} of a core in "
            f"{percent(watched.gateway_busy_share)} of the seconds"
        )

    def rate(self, rates: RatesPart) -> float:
        """The rate that is compared with a target.

        A load has one rate, its mean. An application has its own course, so that its best 10 s
        count.
        """
        return rates.mean if self.watched is None else rates.best_10s

    @property
    def busiest(self) -> PartitionPart | None:
        """The partition with the highest rate; None without one."""
        named = [part for part in self.snapshot.partitions if not over_partitions(part.key)]
        if self.watched is None:
            return self.snapshot.hottest
        return max(named, key=lambda part: part.entities_per_s.best_10s, default=None)

    @property
    def costliest(self) -> PartitionPart | None:
        """The partition with the highest RU/s; None without one."""
        if self.watched is None:
            return self.snapshot.costliest
        charged = [part for part in self.snapshot.partitions if not over_partitions(part.key)]
        return max(charged, key=_best_units_per_s, default=None)

    @property
    def shortcoming(self) -> str | None:
        """Why the run is not enough for a verdict, as a part of a sentence; None if it is."""
        if self.cut_short_by:
            return f"the run was cut short by {self.cut_short_by}"
        if not self.all_reported:
            return "a worker's last report is missing"
        if self.watched is not None and not self.watched.requests:
            return (
                "no request reached the gateway. The application has to take its connection string "
                "from AZURE_STORAGE_CONNECTION_STRING, or its address from AZURE_TABLES_ENDPOINT"
            )
        if self.length_s < SHORTEST_S:
            return f"the measured window of {self.length_s} s is shorter than {SHORTEST_S} s"
        service = self.snapshot.service_ms
        operations = 0 if service is None else service.count
        if operations < FEWEST_OPERATIONS:
            are = agreed(operations, "is", "are")
            return (
                f"{counted(operations, 'measured operation')} {are} fewer than {FEWEST_OPERATIONS}"
            )
        return None


def _best_units_per_s(part: PartitionPart) -> float:
    return 0.0 if part.request_units is None else part.request_units.per_s.best_10s


def _application_limit(application: GeneratorPart) -> str | None:
    """Why an application asked for no more, as a part of a sentence; None if it is unknown."""
    if application.busy_share >= BUSY_SHARE:
        return (
            f"the busiest thread of the application used over {of_core(BUSY_PERCENT)} of a core in "
            f"{percent(application.busy_share)} of the seconds"
        )
    if application.machine_busy_share >= BUSY_SHARE:
        return (
            "the machine, which also runs the gateway, was saturated in "
            f"{percent(application.machine_busy_share)} of the seconds"
        )
    return None


def limit_of(generator: GeneratorPart, kind: EndpointKind, *, held: bool) -> str | None:
    """Why this generator was the limit, as a part of a sentence; None if it was not.

    If the wanted rate was ``held``, only a saturated worker counts.
    """
    if generator.cpu_percent_mean >= _SATURATED_PERCENT:
        return f"a worker used {of_core(generator.cpu_percent_mean)} of a core on average"
    if held:
        return None
    if generator.busy_share >= BUSY_SHARE:
        return (
            f"a worker used over {of_core(BUSY_PERCENT)} of a core in "
            f"{percent(generator.busy_share)} of "
            "the seconds"
        )
    if generator.machine_busy_share >= BUSY_SHARE:
        return _full_machine(generator, kind)
    if generator.lag_s_max >= _LATE_S:
        return f"operations were sent up to {milliseconds(generator.lag_s_max * 1000)} ms late"
    return None


def _full_machine(generator: GeneratorPart, kind: EndpointKind) -> str:
    runs_both = ", which also runs the emulator," if kind is EndpointKind.AZURITE else ""
    full = None if generator.capacity is None else generator.capacity.fullest
    shares = "" if full is None else f" ({full.described})"
    return (
        f"the machine{runs_both} was saturated in {percent(generator.machine_busy_share)} of the "
        f"seconds{shares}"
    )
