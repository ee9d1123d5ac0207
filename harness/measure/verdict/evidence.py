"""The evidence of a verdict: whether it is sufficient, and which bottleneck it shows."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator
from functools import cached_property

from harness.measure.counts.generator import (
    BUSY_PERCENT,
    MACHINE_BUSY_PERCENT,
    SampledGenerator,
)
from harness.measure.counts.snapshot import (
    CountedAccount,
    CountedOperation,
    CountedPartition,
    SeriesPoint,
    Snapshot,
)
from harness.measure.record.enforced import EnforcedPart, partition_limit_of
from harness.measure.record.findings import ThrottlingPart
from harness.measure.record.measured import RatesPart, is_lower_bound
from harness.measure.record.origin import WatchedPart
from harness.measure.verdict.client_limit import (
    LATE_S,
    ClientLimit,
    latency_doubt,
    limit_of,
    limit_of_application,
)
from harness.measure.verdict.failures import Failures, failed_share, failures_of
from harness.measure.verdict.quantities import Facts
from harness.measure.verdict.throttling import silences_of, throttling_of
from harness.model.figures import agreed, counted, listed, number, percent
from harness.model.operation import Kind
from harness.model.outcome import Scope, throttled_of
from harness.model.services import BESIDE
from harness.model.services.service import CountedUnit, Service, Targets
from harness.model.target import UNKNOWN_THROUGHPUT, Throughput

AS_KNOWN = " as far as is known"
"""Behind "within target" where rates are lower bounds, or the target is an upper bound."""
SHORTEST_S = 5
"""A shorter measured window says nothing about a rate."""
FEWEST_OPERATIONS = 100
"""Fewer operations have no 99th percentile."""
REACHED_FROM = 0.95
"""Share of the wanted rate from which the rate counts as reached."""
_OF_ONE = 0.9
"""Share of the throttled attempts from which they are those of one partition."""
GROWN_FROM = 2.0
"""Service latency has grown from this multiple of the latency under light load."""
NEAR_FROM = 0.5
"""Share of its limit that a throttled partition reached if the limit was its own."""
_BUSY_USERS = 0.8
"""Share of users that wait for an answer on average, from which users could not send more."""
_UNSENT_FROM = 0.01
"""Share of due operations that were not sent, from which a schedule was not kept."""
_LATE_SHARE = 0.1
"""Of the operations of a second, or of the seconds, from which what waits is more than chance."""
WAITING_FROM = 0.5
"""Operations in progress on average from which an application may wait for answers mostly."""


def of_one_partition(throttled: Iterable[float], everything: float) -> bool:
    """Whether hardly any attempt was throttled for a second partition.

    A server throttles all the partitions that it serves. ``throttled`` are the throttled attempts
    of each partition, ``everything`` is the sum of the run.
    """
    return max(throttled, default=0.0) >= _OF_ONE * everything


def is_near(rates: RatesPart, limit: float | None) -> bool:
    """Whether a partition was near its limit, which is in the unit of its rates; None is none."""
    return limit is not None and rates.best_1s >= NEAR_FROM * limit


def named(part: CountedPartition) -> str:
    """How a sentence names a partition."""
    if part.partition.whole_table:
        return "queries over several partitions"
    return f"partition {part.key!r}"


def best_over(length_s: int) -> str:
    """The name of the best mean of 10 seconds in a row, or of a shorter window."""
    return f"best {min(10, length_s) or 10} s"


@dataclasses.dataclass(frozen=True, slots=True)
class Untargeted:
    """What a watched application asked of services that no document names a target for.

    Attributes:
        alone: Whether it asked for nothing else.
        told: The requests, and the partition with most of them, as a sentence if any.
        refused: What was throttled, where that is not all, likewise, with a blank before it.
    """

    alone: bool = False
    told: tuple[str, ...] = ()
    refused: str = ""


NOTHING_UNTARGETED = Untargeted()


def untargeted_in(whole: Snapshot, targeted: Snapshot) -> Untargeted:
    """What ``whole`` has besides ``targeted``."""
    attempts = whole.counts.attempts - targeted.counts.attempts
    if not attempts:
        return NOTHING_UNTARGETED
    services = {one.beside: one.partitions for one in BESIDE if not one.documented}
    who = listed([*services.values()])
    parts = [part for part in whole.partitions if part.partition.table in services]
    requests = whole.counts.operations - targeted.counts.operations
    told = f"{counted(requests, 'request')} about {who}"
    # None has a row of its own if all are folded together with others.
    most = max(parts, key=lambda part: part.entities, default=None)
    if most is not None and most.entities:
        told += f", up to {number(most.entities_per_s.best_1s)} in a second for {most.key!r}"
    refused, of = whole.throttled - targeted.throttled, counted(attempts, "attempt")
    alone = not targeted.counts.attempts
    was = f" {refused:,} of {of} on {who} {agreed(refused, 'was', 'were')} throttled." * (not alone)
    return Untargeted(
        alone=alone,
        told=(f"{told}. The documents name no target for {who}.",),
        refused=f"{was} No limit of {who} is known." if refused else "",
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Evidence:
    """The input of a verdict. Figures of several workers are sums over all of them.

    Attributes:
        watched: The application that made the load; None where the harness made it. The samples of
            the generator are then those of the application: its busiest thread.
        wanted_per_s: Entities per second that the load asked for in the measured window; None in a
            closed loop without a cap.
        users: At the same time; with stages of users their mean.
        cut_short_by: What ended the run before its own end; else empty.
        scheduled: True if operations were due at times that no answer changes.
        searched: True if a search changed the rate: figures cover all of its steps.
        steady: True if the load asked for one rate.
        throughput: What is known to be provisioned at Cosmos DB, for each account.
        enforced: The limits of the stand-in that answered, and what they refused.
        untargeted: What ``snapshot`` leaves out, because no target is for it, if it has anything.
    """

    snapshot: Snapshot
    generator: SampledGenerator
    kind: Service
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
    searched: bool = False
    steady: bool = True
    watched: WatchedPart | None = None
    throughput: Throughput = UNKNOWN_THROUGHPUT
    enforced: EnforcedPart | None = None
    untargeted: Untargeted = NOTHING_UNTARGETED

    @property
    def unit(self) -> CountedUnit:
        return self.kind.unit

    @property
    def length_s(self) -> int:
        return self.snapshot.length_s

    @property
    def achieved_per_s(self) -> float:
        """Mean entities per second over the measured window."""
        return self.snapshot.entities_per_s.mean

    @property
    def held_ratio(self) -> float | None:
        """Achieved rate over wanted rate; None without a wanted rate or a measurement.

        A write that changes nothing has no entity count, and is paced as one entity.
        """
        if self.wanted_per_s is None or self.length_s <= 0:
            return None
        unchanged = sum(point.unchanged for point in self._inside) / self.length_s
        return (self.achieved_per_s + unchanged) / self.wanted_per_s

    @property
    def latency_s(self) -> float | None:
        """Mean service latency; None without a measurement."""
        service = self.snapshot.service_ms
        return None if service is None else service.mean / 1000

    @property
    def on_the_way(self) -> float:
        """Operations in progress on average, by Little's law: rate x service latency."""
        service = self.snapshot.service_ms
        return 0.0 if service is None or self.length_s <= 0 else service.total_s / self.length_s

    @cached_property
    def backing_off(self) -> float:
        """Those of them that wait on average between a failed attempt and the next one."""
        return min(self.on_the_way, self._mean_of("backing_off_us"))

    @property
    def answering(self) -> float:
        """Those of them that wait for an answer on average."""
        return self.on_the_way - self.backing_off

    @cached_property
    def queued(self) -> float:
        """Operations that wait for a connection on average, in addition to those in progress."""
        return self._mean_of("queued_us")

    @property
    def waits(self) -> dict[str, float]:
        """Users by what they wait for on average; what nobody waits for is left out."""
        waits = {
            "for an answer": self.answering,
            "in back-off before a retry": self.backing_off,
            "for a connection": self.queued,
        }
        return {what: users for what, users in waits.items() if users or what == "for an answer"}

    @property
    def _inside(self) -> Iterator[SeriesPoint]:
        snapshot = self.snapshot
        return (p for p in snapshot.series if snapshot.start <= p.second < snapshot.end)

    def _mean_of(self, microseconds: str) -> float:
        total: int = sum(getattr(point, microseconds) for point in self._inside)
        return total / 1e6 / max(1, self.length_s)

    @property
    def unsent(self) -> int:
        """Operations that were due and never sent."""
        return self.waiting + self.snapshot.counts.dropped

    @property
    def growth(self) -> float | None:
        """Latency as a multiple of that under light load, without back-off; None if unknown."""
        latency_s, light_s = self.latency_s, self.light_latency_s
        if latency_s is None or not light_s or not self.on_the_way:
            return None
        return latency_s * (self.answering / self.on_the_way) / light_s

    @cached_property
    def throttling(self) -> ThrottlingPart:
        snapshot = self.snapshot
        found = throttling_of(snapshot.series, snapshot.partitions, end=snapshot.end or None)
        silences = silences_of(snapshot, self.full_seconds)
        # A generator that was stopped reads answers late, all of them at once.
        stopped = self.generator.lag_s_max >= LATE_S
        if silences is not None and self.watched is not None:
            # Of the gateway, which reads them then, only the share of its busy seconds is known.
            stopped |= self.watched.gateway_busy_share > silences.total_s / self.length_s
        if stopped:
            silences = None
        return found.model_copy(update={"silences": silences})

    @property
    def waits_for_answers(self) -> bool:
        """Whether a watched application may have waited for answers, or repeated requests.

        How many requests it can have in progress is unknown.
        """
        waits = self.on_the_way >= WAITING_FROM or self.latency_doubt is not None
        return bool(waits or self.snapshot.throttled or self.failures.failed_attempts)

    @property
    def queries(self) -> list[CountedOperation]:
        return [part for part in self.snapshot.operations if part.type == Kind.QUERY]

    @property
    def queries_are_most(self) -> bool:
        """Whether scanned entities are more than half of all counted entities."""
        scanned = sum(part.entities for part in self.queries)
        return scanned * 2 > self.snapshot.counts.entities

    @property
    def most_throttled_account(self) -> CountedAccount | None:
        """The one of several accounts whose own limit throttled most attempts."""
        accounts = self.snapshot.accounts
        return max(accounts, key=lambda part: part.throttled(Scope.ACCOUNT), default=None)

    @property
    def most_throttled(self) -> CountedPartition | None:
        return max(self.snapshot.partitions, key=lambda part: part.throttled, default=None)

    def limit_of(self, part: CountedPartition) -> float | None:
        """Entities/s that a partition is held to: by a stand-in, or else the published target."""
        return part.partition.limit(self.targets, partition_limit_of(self.enforced))

    @cached_property
    def throttled_by(self) -> str:
        """Whose limit throttled: partition, server or account; unknown where none was near.

        A stand-in counts what each limit refused. A service tells refusals by the account's limit
        only; the others are a partition's if most of them met partitions near their limit.
        """
        snapshot = self.snapshot
        if self.enforced is not None and (rule := self.enforced.refused_by) is not None:
            return rule
        if throttled_of(snapshot.attempts, Scope.ACCOUNT) * 2 > snapshot.throttled:
            return "account"
        parts = snapshot.single_partitions
        near = sum(p.throttled for p in parts if is_near(p.entities_per_s, self.limit_of(p)))
        return "partition" if near * 2 >= throttled_of(snapshot.attempts) else "unknown"

    @cached_property
    def failures(self) -> Failures:
        return failures_of(self.snapshot, watched=self.watched is not None)

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
    def behind_s(self) -> int:
        """Seconds in which many operations were due and not sent, and the generator had time."""
        return sum(
            (point.dropped > 0 or point.waiting > _LATE_SHARE * point.operations)
            and point.second not in self.full_seconds
            for point in self._inside
        )

    @cached_property
    def full_seconds(self) -> set[int]:
        """Seconds in which a worker, or a machine, had no CPU time left."""
        # Answers to a watched application are read by the gateway.
        workers = self.generator.cpu_by_second if self.watched is None else {}
        each = ((workers, BUSY_PERCENT), (self.generator.machine_by_second, MACHINE_BUSY_PERCENT))
        return {second for used, full in each for second, cpu in used.items() if cpu >= full}

    @property
    def overrun(self) -> bool:
        """Whether a part of a load that changes asked for more than was served in time."""
        return not self.steady and self.behind_s > _LATE_SHARE * self.length_s

    @property
    def users_are_busy(self) -> bool:
        """Whether most users were waiting for answers, by Little's law."""
        return self.length_s > 0 and self.answering >= _BUSY_USERS * self.users

    @property
    def users_are_held(self) -> bool:
        """Whether most users were waiting, for whatever: an answer, a retry or a connection."""
        waiting = self.on_the_way + self.queued
        return self.length_s > 0 and waiting >= _BUSY_USERS * self.users

    @property
    def latency_grew(self) -> bool | None:
        """Whether latency was much higher than under light load; None if unknown."""
        return None if self.growth is None else self.growth >= GROWN_FROM

    @property
    def client_limit(self) -> ClientLimit | None:
        if self.watched is not None:
            return limit_of_application(self.generator, self.watched)
        found = limit_of(self.generator, self.kind, held=self.reached)
        most, in_use = self.connections, self.connections_in_use
        if self.reached or most is None or in_use is None or not in_use >= most < self.users:
            return found
        all_were = "the only connection was" if most == 1 else f"all {most:,} connections were"
        why = f"{all_were} in use, and users waited for one"
        if found is None:
            return ClientLimit("generator", why)
        return ClientLimit(found.by, f"{why}; {found.why}")

    @property
    def throttled_beside_generator(self) -> bool:
        """Whether the generator had no reserve while the throttled partition was below its limit.

        Refusals then come in bursts, and a partition that is refused now and then serves more.
        """
        client, most = self.client_limit, self.most_throttled
        limit = None if most is None else self.limit_of(most)
        if client is None or client.by != "generator" or most is None or limit is None:
            return False
        return most.entities_per_s.best_10s < REACHED_FROM * limit

    @property
    def latency_doubt(self) -> str | None:
        """Why the latencies are only upper bounds; see `latency_doubt`."""
        return latency_doubt(self.generator, self.watched)

    def facts(self, lost_writes: int | None = None) -> Facts:
        """What conditions compare beside the snapshot; ``lost_writes`` are those of an audit."""
        return Facts(lost_writes, self.held_ratio, self.latency_doubt)

    @cached_property
    def by_best(self) -> bool:
        """Whether the best 10 s are compared with a target: the load has a course, or a partition.

        A mean hides a partition that was over its target for some time only, such as one of a day.
        """
        each = self.snapshot.single_partitions
        parts = ((p.entities_per_s, p.partition.target(self.targets) or math.inf) for p in each)
        moved = any(one.mean <= most < REACHED_FROM * one.best_10s for one, most in parts)
        return self.watched is not None or not self.steady or moved

    def rate(self, rates: RatesPart) -> float:
        """The rate that is compared with a target."""
        return rates.judged(by_best=self.by_best)

    @property
    def busiest(self) -> CountedPartition | None:
        return self.snapshot.nearest(self.targets, self.rate)

    def at_least(self, part: CountedPartition | None = None) -> str:
        """What goes before a rate of a partition, or of the account, that may be a lower bound."""
        bound = is_lower_bound(self.snapshot.operations, self.snapshot.partitions, part)
        return "at least " if bound else ""

    def rate_words(self, per_s: float, part: CountedPartition | None = None) -> str:
        """A rate with its unit, of a partition or else of an account or all together."""
        return f"{self.at_least(part)}{number(per_s)} {self.unit.rate}"

    def share_words(self, per_s: float, limit: float, part: CountedPartition | None = None) -> str:
        """A rate as a share of a limit, likewise."""
        return percent(per_s / limit, "≥" * bool(self.at_least(part)))

    def judged_words(self, rates: RatesPart, part: CountedPartition | None = None) -> str:
        """The `rate` that is compared with a target, likewise."""
        return f"{self.rate_words(self.rate(rates), part)}{self.judged_over}"

    @property
    def judged_over(self) -> str:
        """The time of a `rate` that is no mean: `` in the best 10 s``, or empty."""
        return f" in the {best_over(self.length_s)}" if self.by_best else ""

    @property
    def costliest(self) -> CountedPartition | None:
        parts = self.snapshot.single_partitions
        return max(parts, key=lambda part: self.rate(part.request_units_per_s), default=None)

    @property
    def shortcoming(self) -> str | None:
        """Why the run is not enough for a verdict, as a part of a sentence; None if it is."""
        if self.cut_short_by:
            return f"the run was cut short by {self.cut_short_by}"
        if not self.all_reported:
            return "a worker's last report is missing"
        if (watched := self.watched) is not None and watched.requests == watched.others:
            no_entity = (
                "no request" if not watched.requests else f"no request about {self.kind.about}"
            )
            return f"{no_entity} reached the gateway. {watched.cause}"
        if self.searched:
            # Its steps say whether they were enough.
            return None
        if self.length_s <= 0:
            return "the measured window did not open"
        if self.length_s < SHORTEST_S:
            return f"the measured window of {self.length_s} s is shorter than {SHORTEST_S} s"
        service = self.snapshot.service_ms
        operations = 0 if service is None else service.count
        # What is throttled every time has no more operations, however long it is measured.
        lost = failed_share(self.snapshot) > 0.5 and self.snapshot.throttled >= FEWEST_OPERATIONS
        if operations < FEWEST_OPERATIONS and not (lost or self.failures.most):
            are = agreed(operations, "is", "are")
            return (
                f"{counted(operations, 'measured operation')} {are} fewer than {FEWEST_OPERATIONS}"
            )
        return None
