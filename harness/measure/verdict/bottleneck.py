"""What kept the rate from being higher: thresholds, and the tests that apply them."""

from __future__ import annotations

from harness.measure.counts.generator import BUSY_PERCENT, GeneratorView
from harness.measure.verdict.evidence import Evidence
from harness.model.target import EndpointKind

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
