"""What on the side of the client limited a run, and what that does to its latencies."""

from __future__ import annotations

import dataclasses

from harness.measure.counts.generator import BUSY_PERCENT
from harness.measure.record.measured import OTHERS, GeneratorPart
from harness.measure.record.origin import WatchedPart
from harness.model.figures import milliseconds, of_core, percent
from harness.model.services.service import Service

BUSY_SHARE = 0.2
"""Share of busy seconds from which the generator had no reserve."""
_SATURATED_PERCENT = 97.0
"""Mean CPU of one core from which no measurement of a worker can be trusted."""
DOUBTFUL_FROM = 0.1
"""From a larger share of saturated seconds on, latencies are only upper bounds."""
LATE_S = 0.5
"""An operation sent this much later than its pacer allowed was delayed by the generator."""


@dataclasses.dataclass(frozen=True, slots=True)
class ClientLimit:
    """What on the side of the client was the limit, and why, as a part of a sentence.

    ``by`` is generator, machine (other processes used it up), application or gateway.
    """

    by: str
    why: str


def limit_of_application(application: GeneratorPart, watched: WatchedPart) -> ClientLimit | None:
    """Why an application asked for no more; None if it is unknown.

    A machine that others saturate is no limit of an application that waits most of the time.
    """
    if watched.gateway_busy_share >= BUSY_SHARE:
        return ClientLimit("gateway", _busy("the gateway", watched.gateway_busy_share))
    if application.busy_share >= BUSY_SHARE:
        busiest = "the busiest thread of the application"
        return ClientLimit("application", _busy(busiest, application.busy_share))
    return None


def limit_of(generator: GeneratorPart, kind: Service, *, held: bool) -> ClientLimit | None:
    """Why this generator was the limit; None if it was not.

    If the wanted rate was ``held``, only a saturated worker counts.
    """
    if generator.cpu_percent_mean >= _SATURATED_PERCENT:
        used = of_core(generator.cpu_percent_mean)
        return ClientLimit("generator", f"a worker used {used} of a core on average")
    if held:
        return None
    if generator.busy_share >= BUSY_SHARE:
        return ClientLimit("generator", _busy("a worker", generator.busy_share))
    late = ""
    if generator.lag_s_max >= LATE_S:
        late = f"operations were sent up to {milliseconds(generator.lag_s_max * 1000)} ms late"
    if generator.machine_busy_share >= BUSY_SHARE:
        return _full_machine(generator, kind, late)
    return ClientLimit("generator", late) if late else None


def latency_doubt(generator: GeneratorPart, watched: WatchedPart | None = None) -> str | None:
    """Why measured latencies are upper bounds, as a part of a sentence; None if they are exact.

    A worker without CPU time reads an answer late, and so does the gateway of a ``watched``
    application. What a busy machine adds is unknown, but it never takes anything away: a latency
    that was low is low, and one that was high may be the machine's.
    """
    busy, who = generator.busy_share, "a worker"
    if watched is not None:
        # The gateway measures, whatever the threads of the application do.
        busy, who = watched.gateway_busy_share, "the gateway"
    if max(busy, generator.machine_busy_share) <= DOUBTFUL_FROM:
        return None
    if busy > generator.machine_busy_share:
        return _busy(who, busy)
    full = None if generator.capacity is None else generator.capacity.fullest
    most = "" if full is None else f", mostly by {full.mostly_used_by}"
    share = percent(generator.machine_busy_share)
    return f"the machine was saturated in {share} of the seconds{most}"


def _busy(who: str, share: float) -> str:
    return f"{who} used over {of_core(BUSY_PERCENT)} of a core in {percent(share)} of the seconds"


def _full_machine(generator: GeneratorPart, kind: Service, late: str) -> ClientLimit:
    """What filled the machine; a generator that was late may have been stopped as well."""
    full = None if generator.capacity is None else generator.capacity.fullest
    shares = "" if full is None else f" ({full.described})"
    return ClientLimit(
        "machine" if full is not None and full.mostly_used_by == OTHERS else "generator",
        f"{kind.machine} was saturated in {percent(generator.machine_busy_share)} of the "
        f"seconds{shares}{late and f', and {late}'}",
    )
