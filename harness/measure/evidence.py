"""What a verdict is reached from, and how it is said: short sentences with figures.

Every sentence states what was seen and concludes nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from harness.measure.generator import BUSY_PERCENT, GeneratorView
from harness.measure.quantities import FAILURES
from harness.measure.snapshot import PartitionView, Snapshot, throttled_of
from harness.measure.throttling import Gap, Throttling
from harness.model.operation import over_partitions
from harness.model.outcome import Outcome, Scope
from harness.model.target import EndpointKind, Targets

SHORTEST_S = 5
"""A measured window below it says nothing about a rate."""
FEWEST_OPERATIONS = 100
"""Fewer operations have no 99th percentile."""
SHOWN_GAP_S = 2
"""A gap of one second may be one operation that failed."""
_MOST_SHOWN = 3


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a verdict is reached from. Figures of several workers are of all together.

    Attributes:
        wanted_per_s: Entities a second that the profile's load allows, over the measured window;
            None is as many as come.
        entity_bytes: Stored size of the written entities.
        complete: False where a worker's last report did not come.
        scheduled: True where operations were due at instants that no answer changes.
        waiting: Operations that were due at the end and neither sent nor dropped.
        connections: So many there could be; None is not known.
        connections_in_use: The most that were in use at once; None is not known.
        light_latency_s: Mean service latency of the same operations under little load; None is
            not known.
        retry: The profile's retry strategy.
        growing_keys: True where new PartitionKeys always come last, or first.
        leaner_session: A session that costs the generator less than the run's; None where there
            is none.
    """

    snapshot: Snapshot
    generator: GeneratorView
    kind: EndpointKind
    targets: Targets | None
    wanted_per_s: float | None
    users: int
    entity_bytes: int
    complete: bool
    scheduled: bool = False
    waiting: int = 0
    connections: int | None = None
    connections_in_use: int | None = None
    light_latency_s: float | None = None
    retry: str = "exponential"
    growing_keys: bool = False
    leaner_session: str | None = None

    @property
    def length_s(self) -> int:
        """Seconds of the measured window."""
        return self.snapshot.end - self.snapshot.start

    @property
    def achieved_per_s(self) -> float:
        """Mean entities a second over the measured window."""
        return self.snapshot.entities_per_s.mean

    @property
    def held_ratio(self) -> float | None:
        """Achieved rate over the wanted one; None where none was wanted or nothing measured."""
        if self.wanted_per_s is None or self.length_s <= 0:
            return None
        return self.achieved_per_s / self.wanted_per_s

    @property
    def measured_operations(self) -> int:
        """Operations that were done in the measured window."""
        service = self.snapshot.service
        return 0 if service is None else service.count

    @property
    def latency_s(self) -> float | None:
        """Mean service latency; None where nothing was measured."""
        service = self.snapshot.service
        return None if service is None else service.total_s / service.count

    @property
    def on_the_way(self) -> float:
        """Operations that wait for their answer on average, by Little's law: rate x latency."""
        service = self.snapshot.service
        return 0.0 if service is None or self.length_s <= 0 else service.total_s / self.length_s

    @property
    def unsent(self) -> int:
        """Operations that were due and never sent."""
        return self.waiting + self.snapshot.counts.dropped

    @property
    def growth(self) -> float | None:
        """So many times the service latency is what it was under little load, if that is known."""
        latency_s, light_s = self.latency_s, self.light_latency_s
        return None if latency_s is None or not light_s else latency_s / light_s

    @property
    def most_throttled(self) -> PartitionView | None:
        """The partition with the most throttled attempts."""
        return max(self.snapshot.partitions, key=lambda view: view.throttled, default=None)


def shortcoming(evidence: Evidence) -> str | None:
    """Why the run is too little to judge, or None where it is enough."""
    if not evidence.complete:
        return "a worker's last report is missing"
    if evidence.length_s < SHORTEST_S:
        return f"the measured window of {evidence.length_s} s is shorter than {SHORTEST_S} s"
    operations = evidence.measured_operations
    if operations < FEWEST_OPERATIONS:
        return f"{operations} measured operations are fewer than {FEWEST_OPERATIONS}"
    return None


def named(view: PartitionView) -> str:
    """How a sentence names a partition."""
    if over_partitions(view.key):
        return "queries over several partitions"
    return f"partition {view.key!r}"


def gap_words(gap: Gap) -> str:
    """A gap as a part of a sentence."""
    words = f"nothing succeeded for {gap.length_s} s from second {gap.start_s} on"
    if gap.recovered_s is None:
        return words + ", and the rate before it was not reached again"
    return words + f", and 90% of the rate before it was back after {gap.recovered_s} s"


def service_failures(snapshot: Snapshot) -> dict[Outcome, int]:
    """Operations that failed, throttled ones aside, by how."""
    return {
        outcome: count
        for outcome, count in snapshot.outcomes.items()
        if outcome in FAILURES and outcome is not Outcome.THROTTLED
    }


def sentences(evidence: Evidence, throttling: Throttling) -> tuple[str, ...]:
    """What was seen, a sentence with figures each."""
    lines = [
        *_rates(evidence),
        *_throttled(evidence, throttling),
        *_failed(evidence.snapshot),
        *_latencies(evidence),
        *_generator(evidence),
    ]
    return tuple(line[0].upper() + line[1:] + "." for line in lines)


def _rates(evidence: Evidence) -> Iterator[str]:
    snapshot = evidence.snapshot
    achieved, held = evidence.achieved_per_s, evidence.held_ratio
    if held is None:
        yield f"{achieved:,.0f} entities/s came through; no rate was wanted"
    else:
        wanted = f"{evidence.wanted_per_s:,.0f}"
        yield f"{achieved:,.0f} of the wanted {wanted} entities/s came through ({held:.1%})"
    hottest, targets = snapshot.hottest, evidence.targets
    if hottest is not None and targets is not None:
        rate = hottest.entities_per_s.mean
        yield (
            f"{named(hottest)} took the most, {rate:,.0f} entities/s, "
            f"{rate / targets.partition:.0%} of its target"
        )
    if evidence.scheduled:
        yield (
            f"of {snapshot.counts.due:,} due operations {snapshot.counts.dropped:,} were dropped "
            f"and {evidence.waiting:,} still waited at the end"
        )


def _throttled(evidence: Evidence, throttling: Throttling) -> Iterator[str]:
    snapshot = evidence.snapshot
    attempts = snapshot.counts.attempts
    if not snapshot.throttled:
        yield f"none of {attempts:,} attempts was throttled"
    else:
        yield (
            f"{snapshot.throttled:,} of {attempts:,} attempts were throttled "
            f"({snapshot.throttled_ratio:.2%}): "
            f"{throttled_of(snapshot.attempts, Scope.PARTITION):,} for a partition, "
            f"{throttled_of(snapshot.attempts, Scope.ACCOUNT):,} for the account"
        )
    most = evidence.most_throttled
    if most is not None and most.throttled:
        yield f"{named(most)} was refused {most.throttled_ratio:.2%} of its attempts"
    if throttling.first_s is not None:
        times = "once" if throttling.stretches == 1 else f"{throttling.stretches:,} times"
        yield (
            f"throttling first came {throttling.first_s} s into the load, began {times}, and "
            f"lasted {throttling.longest_s} s in a row at most"
        )
    shown = [gap for gap in throttling.gaps if gap.length_s >= SHOWN_GAP_S]
    for gap in shown[:_MOST_SHOWN]:
        yield gap_words(gap)
    if len(shown) > _MOST_SHOWN:
        yield f"there were {throttling.gap_count:,} such gaps"


def _failed(snapshot: Snapshot) -> Iterator[str]:
    failed = service_failures(snapshot)
    if failed:
        heaviest = sorted(failed.items(), key=lambda item: -item[1])
        listed = ", ".join(f"{count:,} {outcome}" for outcome, count in heaviest)
        operations = sum(snapshot.outcomes.values())
        yield f"{sum(failed.values()):,} of {operations:,} operations failed: {listed}"


def _latencies(evidence: Evidence) -> Iterator[str]:
    service, response = evidence.snapshot.service, evidence.snapshot.response
    latency_s = evidence.latency_s
    if service is None or latency_s is None or evidence.length_s <= 0:
        return
    words = (
        f"service latency was {service.p50_s * 1000:,.1f} ms at the median, "
        f"{service.p99_s * 1000:,.1f} ms at p99"
    )
    if response is not None:
        words += f"; response latency {response.p99_s * 1000:,.1f} ms at p99"
    yield words
    if evidence.light_latency_s is not None and evidence.growth is not None:
        yield (
            f"its mean of {latency_s * 1000:,.1f} ms is {evidence.growth:,.1f} times the "
            f"{evidence.light_latency_s * 1000:,.1f} ms under little load"
        )
    rate = service.count / evidence.length_s
    yield (
        f"{rate:,.0f} operations/s x {latency_s * 1000:,.1f} ms = {evidence.on_the_way:,.1f} of "
        f"{evidence.users:,} users waiting for an answer (Little's law)"
    )


def _generator(evidence: Evidence) -> Iterator[str]:
    generator = evidence.generator
    if evidence.connections is not None and evidence.connections_in_use is not None:
        in_use = f"{evidence.connections_in_use:,} of {evidence.connections:,}"
        yield f"at most {in_use} connections were in use"
    if not generator.cpu_percents:
        yield "the generator's CPU is not known"
        return
    each = ", ".join(f"{mean:.0f}%" for mean in generator.cpu_percents[:_MOST_SHOWN])
    if len(generator.cpu_percents) > _MOST_SHOWN:
        each += f" and at most {generator.cpu_percents[_MOST_SHOWN]:.0f}% each by the others"
    yield (
        f"CPU of a core by worker: {each} on average, {generator.cpu_percent_max:.0f}% at most, "
        f"{BUSY_PERCENT:.0f}% or more in {generator.busy_share:.0%} of the seconds"
    )
    yield (
        f"the machine was {generator.machine_percent_max:.0f}% busy at most, without time left in "
        f"{generator.machine_busy_share:.0%} of the seconds"
    )
    yield f"operations left at most {generator.lag_s_max * 1000:,.0f} ms after their turn"
