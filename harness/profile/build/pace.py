"""When operations leave, by the profile: schedules, pacers, rates and lengths."""

from __future__ import annotations

import math
import random

from harness.measure.record.replay import ReplayPart
from harness.model.target import PUBLISHED, EndpointKind
from harness.profile.settings.schema import Profile, at_a_rate
from harness.workload.load.pacing import ClosedLoop, OpenLoop, Pacer, RecordedOrder
from harness.workload.load.schedule import RateStage, Schedule
from harness.workload.load.search import SearchBounds

LONGEST_S = 14 * 24 * 3600.0
_SHORTEST_RAMP_S = 0.1
_STEP_OVERHEAD_S = 5
"""Longest time of a search step beyond settling and measuring."""


def scheduled(profile: Profile) -> bool:
    """Whether the load is open: a schedule that does not wait for answers."""
    return schedule_of(profile) is not None


def staged(profile: Profile) -> bool:
    """Whether there are stages of rates; they begin when all users are up."""
    return bool(profile.stage) and profile.stage[0].unit != "to_users"


def at_recorded_instants(profile: Profile) -> bool:
    """Whether operations of a trace are due at their recorded instants."""
    return profile.replay is not None and not at_a_rate(profile)


def starts_with_window(profile: Profile) -> bool:
    """Whether nothing is due before all users are up and the measured window is open."""
    return staged(profile) or at_recorded_instants(profile)


def settle_s(profile: Profile) -> float:
    """Seconds between the ramp and the measured window; none if nothing is sent before it."""
    return 0.0 if at_recorded_instants(profile) else profile.load.settle_s


def found_in_trace(profile: Profile) -> ReplayPart:
    """What the trace of a replay holds, after it was read."""
    assert profile.replay is not None
    assert profile.replay.found is not None
    return profile.replay.found


def replay_s(profile: Profile) -> float:
    """Seconds from the first operation of a trace to the last by the schedule; may be inf."""
    found = found_in_trace(profile)
    if at_recorded_instants(profile):
        return replay_length_s(found)
    schedule = schedule_of(profile)
    assert schedule is not None
    return schedule.at(found.operations if counts_operations(profile) else found.units)


def replay_length_s(found: ReplayPart) -> float:
    """Seconds from the first operation of a trace to the last at its speed."""
    return found.seconds / (found.speed or 1.0)


def counts_operations(profile: Profile) -> bool:
    """Whether the rate is in operations, not in entities."""
    if profile.stage:
        return profile.stage[0].unit == "to_operations_per_s"
    return profile.load.operations_per_s is not None


def schedule_of(profile: Profile) -> Schedule | None:
    """The schedule of all workers together; None in a closed loop.

    A rate is reached while the users start: sudden load is throttled until the service has
    balanced it (performance checklist, "Targets for data operations").
    """
    load = profile.load
    if profile.search is not None:
        return Schedule.constant(profile.search.start_per_s)
    if staged(profile):
        return Schedule.of(
            RateStage(
                for_s=stage.for_s, to_per_s=stage.to, from_per_s=stage.to if stage.jump else None
            )
            for stage in profile.stage
        )
    if at_recorded_instants(profile):
        # The mean: the pacer of a replay follows the instants.
        found = found_in_trace(profile)
        return Schedule.constant(found.units / max(replay_length_s(found), 1.0))
    if load.rate_per_s is None:
        return None
    ramp_s = max(load.ramp_s, _SHORTEST_RAMP_S)
    return Schedule.of([RateStage(for_s=ramp_s, to_per_s=load.rate_per_s)])


def pacer_of(profile: Profile, kind: EndpointKind, arrivals: random.Random) -> Pacer:
    """The pacer of all workers together; ``arrivals`` is the source of random arrivals."""
    if profile.replay is not None:
        return _replay_pacer(profile)
    schedule = schedule_of(profile)
    if schedule is None:
        return ClosedLoop(capped_rate(profile, kind))
    return OpenLoop(schedule, poisson=arrivals if profile.load.arrivals == "poisson" else None)


def _replay_pacer(profile: Profile) -> RecordedOrder:
    """The unit is a millisecond of the trace, or that of the rate."""
    found = found_in_trace(profile)
    if at_recorded_instants(profile):
        per_s = 1000.0 * (found.speed or 1.0)
        return RecordedOrder(Schedule.constant(per_s), found.last_ms - found.first_ms + 1)
    schedule = schedule_of(profile)
    assert schedule is not None
    units = found.operations if counts_operations(profile) else found.units
    return RecordedOrder(schedule, units)


def loading_pacer_of(profile: Profile, kind: EndpointKind) -> ClosedLoop:
    """The pacer of loading: the cap of an account applies, an emulator has none."""
    return ClosedLoop(None if kind.emulated else capped_rate(profile, kind))


def capped_rate(profile: Profile, kind: EndpointKind) -> float | None:
    """Highest rate of a closed load, in entities/s; None without a limit.

    By default an account gets at most the target of one partition, so that nobody floods it by
    accident. An emulator, which shares the machine with its generator, has a further cap.
    """
    load = profile.load
    if kind.emulated:
        cap = min(load.max_entities_per_s or math.inf, load.emulator_max_entities_per_s)
    else:
        cap = load.max_entities_per_s or PUBLISHED.partition
    return None if math.isinf(cap) else cap


def window_s(profile: Profile) -> int:
    """Length of the measured window, in whole seconds; of a search or a replay, the longest.

    A replay ends when all of its operations have ended, or at the run time if that is set.
    """
    search = profile.search
    if search is not None:
        step_s = search.settle_s + max(search.hold_s, search.confirm_s) + _STEP_OVERHEAD_S
        every_step_s = math.ceil(search.most_steps * step_s)
        return min(every_step_s, search.most_s or every_step_s)
    if profile.stage:
        return math.ceil(sum(stage.for_s for stage in profile.stage))
    if profile.replay is not None and profile.replay.found is not None:
        late_s = math.ceil(profile.load.give_up_after_s)
        whole_s = math.ceil(min(replay_s(profile), LONGEST_S)) + late_s
        if "run_time_s" not in profile.load.model_fields_set:
            return whole_s
        return min(profile.load.run_time_s, whole_s)
    return profile.load.run_time_s


def expected_window_s(profile: Profile) -> float:
    """The length of the measured window if a replay keeps up with its schedule."""
    if profile.replay is None or profile.search is not None or profile.stage:
        return float(window_s(profile))
    before_s = 0.0 if starts_with_window(profile) else profile.load.ramp_s + settle_s(profile)
    return min(float(window_s(profile)), max(1.0, replay_s(profile) - before_s))


def most_units(profile: Profile, kind: EndpointKind) -> float:
    """Most operations or entities of the whole load, ramp and settling included; may be inf."""
    if profile.replay is not None:
        found = found_in_trace(profile)
        return found.operations if counts_operations(profile) else found.units
    load = profile.load
    whole_s = window_s(profile) + load.ramp_s + load.settle_s + 2
    if profile.search is not None:
        return profile.search.max_per_s * whole_s
    if staged(profile):
        schedule = schedule_of(profile)
        assert schedule is not None
        return schedule.due_by(window_s(profile))
    return (load.rate_per_s or capped_rate(profile, kind) or math.inf) * whole_s


def search_bounds(profile: Profile) -> SearchBounds | None:
    """The bounds of the search; None without a search."""
    search = profile.search
    if search is None:
        return None
    same = search.model_dump(exclude={"throttled_ratio", "p99_ms", "most_s"})
    return SearchBounds(**same, most_throttled=search.throttled_ratio, most_p99_ms=search.p99_ms)
