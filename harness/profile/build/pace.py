"""When operations leave, by the profile: its pacer, its rates, and how long it takes."""

from __future__ import annotations

import math
import random

from harness.model.target import PUBLISHED, EndpointKind
from harness.profile.settings.schema import Profile
from harness.workload.load.pacing import ClosedLoop, OpenLoop, Pacer
from harness.workload.load.schedule import RateStage, Schedule
from harness.workload.load.search import SearchBounds

_SHORTEST_RAMP_S = 0.1


def scheduled(profile: Profile) -> bool:
    """Whether the load is open: operations are due at instants that no answer changes."""
    return schedule_of(profile) is not None


def staged(profile: Profile) -> bool:
    """Whether rates go through stages, which begin when all users are up."""
    return bool(profile.stage) and profile.stage[0].unit != "to_users"


def counts_operations(profile: Profile) -> bool:
    """Whether the schedule counts operations, not entities."""
    if profile.stage:
        return profile.stage[0].unit == "to_operations_per_s"
    return profile.load.operations_per_s is not None


def schedule_of(profile: Profile) -> Schedule | None:
    """The schedule of all workers together; None in a closed loop.

    A rate is reached in the time that the users take to come: sudden load is throttled before the
    service has balanced it (performance checklist, "Targets for data operations").
    """
    load = profile.load
    if profile.search is not None:
        return Schedule.constant(profile.search.start_per_s)
    if staged(profile):
        return Schedule.of(
            RateStage(
                for_s=stage.for_s,
                to_per_s=stage.to,
                from_per_s=stage.to if stage.jump else None,
            )
            for stage in profile.stage
        )
    rate = load.entities_per_s or load.operations_per_s
    if rate is None:
        return None
    ramp_s = max(load.users / load.spawn_rate_per_s, _SHORTEST_RAMP_S)
    return Schedule.of([RateStage(for_s=ramp_s, to_per_s=rate)])


def pacer_of(profile: Profile, kind: EndpointKind, arrivals: random.Random) -> Pacer:
    """The pacer of all workers together.

    Args:
        profile: What is wanted.
        kind: Who answers; an emulator has a cap of its own.
        arrivals: Source of random arrivals.
    """
    schedule = schedule_of(profile)
    if schedule is None:
        return ClosedLoop(capped_rate(profile, kind))
    return OpenLoop(schedule, poisson=arrivals if profile.load.arrivals == "poisson" else None)


def loading_pacer_of(profile: Profile, kind: EndpointKind) -> ClosedLoop:
    """The pacer of loading: an account's cap holds for it too, an emulator is loaded at once."""
    if kind.emulated:
        return ClosedLoop(None)
    return ClosedLoop(profile.load.max_entities_per_s or PUBLISHED.partition)


def capped_rate(profile: Profile, kind: EndpointKind) -> float | None:
    """Entities a second that a closed load may reach; None is as many as come.

    An account is held to one partition's target unless the profile says otherwise, so that nobody
    floods it by accident. An emulator, which shares the machine with its generator, has a cap of
    its own on top.
    """
    load = profile.load
    if kind.emulated:
        wanted = min(load.max_entities_per_s or math.inf, load.emulator_max_entities_per_s)
    else:
        wanted = load.max_entities_per_s or PUBLISHED.partition
    return None if math.isinf(wanted) else wanted


def window_s(profile: Profile) -> int:
    """Length of the measured window in whole seconds; of a search, the most it can take."""
    search = profile.search
    if search is not None:
        a_step = search.settle_s + max(search.hold_s, search.confirm_s) + 5
        every_step_s = math.ceil(search.most_steps * a_step)
        return every_step_s if search.most_s is None else min(every_step_s, search.most_s)
    if profile.stage:
        return math.ceil(sum(stage.for_s for stage in profile.stage))
    return profile.load.run_time_s


def wanted_rate(profile: Profile, kind: EndpointKind) -> float | None:
    """Mean of what the measured window wants a second; None is as many as come.

    Entities, or operations where `counts_operations` says so.
    """
    schedule = schedule_of(profile)
    if schedule is None:
        return capped_rate(profile, kind)
    if profile.search is not None:
        return None
    if staged(profile):
        seconds = window_s(profile)
        return schedule.due_by(seconds) / seconds
    return profile.load.entities_per_s or profile.load.operations_per_s


def most_units(profile: Profile, kind: EndpointKind) -> float:
    """The most that the whole load can want, ramp and settling included; may be infinite."""
    load = profile.load
    before_s = load.users / load.spawn_rate_per_s + load.settle_s + 2
    if profile.search is not None:
        return profile.search.max_per_s * (window_s(profile) + before_s)
    if staged(profile):
        schedule = schedule_of(profile)
        assert schedule is not None
        return schedule.due_by(window_s(profile))
    wanted = wanted_rate(profile, kind)
    return math.inf if wanted is None else wanted * (window_s(profile) + before_s)


def search_bounds(profile: Profile) -> SearchBounds | None:
    """What is searched; None where the profile searches nothing."""
    search = profile.search
    if search is None:
        return None
    return SearchBounds(
        start_per_s=search.start_per_s,
        max_per_s=search.max_per_s,
        factor=search.factor,
        settle_s=search.settle_s,
        hold_s=search.hold_s,
        confirm_s=search.confirm_s,
        precision=search.precision,
        most_throttled=search.throttled_ratio,
        most_p99_ms=search.p99_ms,
        most_steps=search.most_steps,
    )
