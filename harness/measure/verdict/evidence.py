"""What a verdict is reached from, and whether it is enough."""

from __future__ import annotations

import dataclasses

from harness.measure.counts.generator import BUSY_PERCENT, GeneratorView
from harness.measure.counts.snapshot import Snapshot
from harness.measure.figures import agreed, counted
from harness.measure.record.record import PartitionPart
from harness.model.operation import Kind
from harness.model.outcome import Outcome
from harness.model.target import EndpointKind, Targets

SHORTEST_S = 5
"""A measured window below it says nothing about a rate."""
FEWEST_OPERATIONS = 100
"""Fewer operations have no 99th percentile."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Walked:
    """What queries did in the whole run: so many of them, and the entities they walked.

    Attributes:
        returned: Of the entities, those that came back.
        uncertain: Queries of whose entities only the least is known.
    """

    operations: int = 0
    entities: int = 0
    returned: int = 0
    uncertain: int = 0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a verdict is reached from. Figures of several workers are of all together.

    Attributes:
        wanted_per_s: Entities a second that the profile's load allows, over the measured window;
            None is as many as come.
        entity_bytes: Stored size of the written entities.
        all_reported: False where a worker's last report did not come.
        cut_short_by: What ended the run where that was not the run's own end; else empty.
        scheduled: True where operations were due at instants that no answer changes.
        waiting: Operations that were due at the end and neither sent nor dropped.
        connections: So many there could be; None is not known.
        connections_in_use: The most that were in use at once; None is not known.
        light_latency_s: Mean service latency of the same operations under little load; None is
            not known.
        retry: The profile's retry strategy.
        growing_keys: True where new PartitionKeys always come last, or first.
        searched: True where a search stepped the rate up and down: figures are of all its steps.
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
        service = self.snapshot.service_ms
        return 0 if service is None else service.count

    @property
    def latency_s(self) -> float | None:
        """Mean service latency; None where nothing was measured."""
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
        """So many times the service latency is what it was under little load, if that is known."""
        latency_s, light_s = self.latency_s, self.light_latency_s
        return None if latency_s is None or not light_s else latency_s / light_s

    @property
    def walked(self) -> Walked:
        """What queries walked."""
        queries = [view for view in self.snapshot.operations if view.type == Kind.QUERY]
        return Walked(
            operations=sum(view.count for view in queries),
            entities=sum(view.entities for view in queries),
            returned=sum(view.entities_returned for view in queries),
            uncertain=sum(view.uncertain for view in queries),
        )

    @property
    def queries_are_most(self) -> bool:
        """Whether what queries walked is more than half of all that counted."""
        return self.walked.entities * 2 > self.snapshot.counts.entities

    @property
    def most_throttled(self) -> PartitionPart | None:
        """The partition with the most throttled attempts."""
        return max(self.snapshot.partitions, key=lambda view: view.throttled, default=None)


def shortcoming(evidence: Evidence) -> str | None:
    """Why the run is too little to judge, or None where it is enough."""
    if not evidence.all_reported:
        return "a worker's last report is missing"
    if evidence.cut_short_by:
        return f"the run was cut short by {evidence.cut_short_by}"
    if evidence.length_s < SHORTEST_S:
        return f"the measured window of {evidence.length_s} s is shorter than {SHORTEST_S} s"
    operations = evidence.measured_operations
    if operations < FEWEST_OPERATIONS:
        are = agreed(operations, "is", "are")
        return f"{counted(operations, 'measured operation')} {are} fewer than {FEWEST_OPERATIONS}"
    return None


def service_failures(snapshot: Snapshot) -> dict[Outcome, int]:
    """Operations that failed, throttled ones aside, by how."""
    return {
        outcome: count
        for outcome, count in snapshot.outcomes.items()
        if outcome.failed and outcome is not Outcome.THROTTLED
    }


REACHED_FROM = 0.95
"""Share of the wanted rate from which it counts as held."""
GROWN_FROM = 2.0
"""Service latency so many times that under little load has grown with the load."""
_BUSY_USERS = 0.8
"""Share of users that wait for an answer on average, from which they could not send more."""
_UNSENT_FROM = 0.01
"""Share of due operations that were not sent, from which a schedule was not kept."""
_BUSY_SHARE = 0.2
"""Share of busy seconds from which the generator had no reserve."""
_SATURATED_PERCENT = 97.0
"""Of one core on average: nothing measured by such a worker can be trusted."""
_LATE_S = 0.5
"""An operation that leaves so much later than it might was held up by the generator."""


def reached(evidence: Evidence) -> bool:
    """Whether the wanted rate was held; False where none was wanted."""
    held = evidence.held_ratio
    return held is not None and held >= REACHED_FROM


def missed(evidence: Evidence) -> bool:
    """Whether a rate was wanted and not held."""
    return evidence.held_ratio is not None and not reached(evidence)


def behind(evidence: Evidence) -> bool:
    """Whether a schedule had more due than was sent."""
    unsent = evidence.unsent
    return evidence.scheduled and unsent >= max(1, _UNSENT_FROM * evidence.snapshot.counts.due)


def users_are_busy(evidence: Evidence) -> bool:
    """Whether most users waited for answers, by Little's law, and not for themselves."""
    return evidence.length_s > 0 and evidence.on_the_way >= _BUSY_USERS * evidence.users


def latency_grew(evidence: Evidence) -> bool | None:
    """Whether answers took much longer than under little load; None is not known."""
    return None if evidence.growth is None else evidence.growth >= GROWN_FROM


def connections_used_up(evidence: Evidence) -> bool:
    """Whether users had to wait for a connection."""
    limit, in_use = evidence.connections, evidence.connections_in_use
    return limit is not None and in_use is not None and in_use >= limit < evidence.users


def generator_limit(evidence: Evidence) -> str | None:
    """Why the generator was the limit, as a part of a sentence; None where it was not."""
    limit = limit_of(evidence.generator, evidence.kind, held=reached(evidence))
    if limit is None and connections_used_up(evidence) and not reached(evidence):
        all_were = f"all {evidence.connections:,} connections were"
        if evidence.connections == 1:
            all_were = "the only connection was"
        return f"{all_were} in use, and users waited for one"
    return limit


def limit_of(generator: GeneratorView, kind: EndpointKind, *, held: bool) -> str | None:
    """Why this generator was the limit, as a part of a sentence; None where it was not.

    Args:
        generator: Over the seconds that are looked at.
        kind: Who answered.
        held: Whether the wanted rate was held all the same.
    """
    if generator.cpu_percent_mean >= _SATURATED_PERCENT:
        return f"a worker used {generator.cpu_percent_mean:.0f}% of a core on average"
    if held:
        return None
    if generator.busy_share >= _BUSY_SHARE:
        return (
            f"a worker used over {BUSY_PERCENT:.0f}% of a core in {generator.busy_share:.0%} of "
            "the seconds"
        )
    if generator.machine_busy_share >= _BUSY_SHARE:
        shares = ", which also runs the emulator," if kind is EndpointKind.AZURITE else ""
        return (
            f"the machine{shares} was saturated in {generator.machine_busy_share:.0%} of the "
            "seconds"
        )
    if generator.lag_s_max >= _LATE_S:
        return f"operations were sent up to {generator.lag_s_max:.1f} s late"
    return None
