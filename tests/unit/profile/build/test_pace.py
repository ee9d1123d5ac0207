"""What a profile says of when operations leave: schedules, rates, windows, and the most of it."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.target import EndpointKind
from harness.profile.build.pace import (
    capped_rate,
    counts_operations,
    loading_pacer_of,
    most_units,
    pacer_of,
    schedule_of,
    scheduled,
    search_bounds,
    staged,
    window_s,
)
from harness.profile.profile_loader import parse
from harness.profile.settings.schema import Profile
from harness.workload.load.pacing import ClosedLoop, OpenLoop

AZURITE, STORAGE = EndpointKind.AZURITE, EndpointKind.STORAGE
USERS = {"users": 20, "spawn_rate_per_s": 10.0, "settle_s": 3.0, "run_time_s": 30}
STAIRS = (
    {"for_s": 10, "to_entities_per_s": 100},
    {"for_s": 5, "to_entities_per_s": 100},
    {"for_s": 5, "to_entities_per_s": 300, "jump": True},
    {"for_s": 10, "to_entities_per_s": 0},
)
USER_STAGES = ({"for_s": 2.5, "to_users": 5}, {"for_s": 2, "to_users": 1})


def made(**parts: Any) -> Profile:
    return parse({"question": "Why?", **parts}, source="a test")


def open_load(**load: Any) -> Profile:
    return made(load={**USERS, **load})


@pytest.mark.parametrize(
    ("parts", "open_model", "stages", "by_operations"),
    [
        ({}, False, False, False),
        ({"load": {"entities_per_s": 5}}, True, False, False),
        ({"load": {"operations_per_s": 5}}, True, False, True),
        ({"stage": STAIRS}, True, True, False),
        ({"stage": ({"for_s": 1, "to_operations_per_s": 5},)}, True, True, True),
        ({"stage": USER_STAGES}, False, False, False),
        ({"search": {}}, True, False, False),
    ],
)
def test_the_load_model_is_read_off_the_profile(
    parts: dict[str, Any], open_model: bool, stages: bool, by_operations: bool
) -> None:
    """A rate, stages of rates and a search are open; users and their stages are closed."""
    profile = made(**parts)
    assert scheduled(profile) is open_model
    assert staged(profile) is stages
    assert counts_operations(profile) is by_operations
    assert isinstance(pacer_of(profile, AZURITE, random.Random(1)), OpenLoop) is open_model


def test_a_rate_is_reached_while_the_users_come() -> None:
    """A slow ramp is the default: it takes as long as the users take to come, then it is held."""
    schedule = schedule_of(open_load(entities_per_s=100))
    assert schedule is not None
    assert [schedule.per_s(at_s) for at_s in (0, 1, 2, 1000)] == [0, 50, 100, 100]
    assert schedule.due_by(12.0) == pytest.approx(100 + 10 * 100)


def test_users_that_come_at_once_ramp_up_all_the_same() -> None:
    """However fast users are started, a schedule begins with a ramp of some length."""
    schedule = schedule_of(open_load(entities_per_s=100, users=1, spawn_rate_per_s=1000.0))
    assert schedule is not None
    assert schedule.per_s(0.0) == 0.0
    assert schedule.per_s(0.1) == 100


def test_stages_follow_each_other() -> None:
    """A ramp is linear, a hold is flat, a jump is at once, and the last rate stays."""
    schedule = schedule_of(made(stage=STAIRS))
    assert schedule is not None
    rates = [schedule.per_s(at_s) for at_s in (0, 5, 10, 14.9, 15, 19.9, 25, 30, 99)]
    assert rates == pytest.approx([0, 50, 100, 100, 300, 300, 150, 0, 0])


def test_a_search_begins_at_its_start() -> None:
    """Until its first step is told, the rate of a search is that of its start."""
    schedule = schedule_of(made(search={"start_per_s": 70}))
    assert schedule is not None
    assert schedule.per_s(1.0) == 70


@pytest.mark.parametrize(
    ("load", "kind", "cap"),
    [
        ({}, STORAGE, 2000.0),
        ({"max_entities_per_s": 5000.0}, STORAGE, 5000.0),
        ({"max_entities_per_s": math.inf}, STORAGE, None),
        ({"emulator_max_entities_per_s": 10.0}, STORAGE, 2000.0),
        ({}, AZURITE, 500.0),
        ({}, EndpointKind.GATEWAY, 500.0),
        ({"max_entities_per_s": 300.0}, AZURITE, 300.0),
        ({"max_entities_per_s": 9000.0}, AZURITE, 500.0),
        ({"emulator_max_entities_per_s": math.inf}, AZURITE, None),
    ],
)
def test_a_closed_load_is_capped_by_the_kind_of_endpoint(
    load: dict[str, float], kind: EndpointKind, cap: float | None
) -> None:
    """An account is held to one partition's target, an emulator to a cap of its own."""
    profile = made(load=load)
    assert capped_rate(profile, kind) == cap
    pacer = pacer_of(profile, kind, random.Random(1))
    assert isinstance(pacer, ClosedLoop)
    assert pacer.entities_per_s == cap


@pytest.mark.parametrize("kind", [AZURITE, STORAGE])
def test_an_open_load_wants_its_rate_whatever_the_caps(kind: EndpointKind) -> None:
    """Who names a rate gets that rate: the caps bound what comes of waiting users."""
    assert most_units(open_load(entities_per_s=4000), kind) == 4000 * (30 + 2 + 3 + 2)
    assert most_units(open_load(operations_per_s=7), kind) == 7 * (30 + 2 + 3 + 2)


def test_stages_want_what_is_due_whatever_the_caps() -> None:
    """The caps of an emulator do not change what stages want by their end."""
    assert most_units(made(stage=STAIRS), AZURITE) == 10 * 50 + 5 * 100 + 5 * 300 + 10 * 150


def test_a_search_begins_at_the_rate_of_its_first_step() -> None:
    """Without a ramp: the rate of a step is held from its beginning."""
    schedule = schedule_of(made(search={"start_per_s": 50}))
    assert schedule is not None
    assert schedule.due_by(10) == 500


def test_loading_an_account_is_capped_and_an_emulator_is_not() -> None:
    """An account is not flooded by loading either."""
    assert loading_pacer_of(made(), STORAGE).entities_per_s == 2000
    assert loading_pacer_of(open_load(max_entities_per_s=50.0), STORAGE).entities_per_s == 50
    assert loading_pacer_of(made(), AZURITE).entities_per_s is None


@pytest.mark.parametrize(
    ("parts", "seconds"),
    [
        ({"load": USERS}, 30),
        ({"load": {**USERS, "entities_per_s": 5}}, 30),
        ({"stage": STAIRS}, 30),
        ({"stage": USER_STAGES}, 5),
    ],
)
def test_the_window_is_the_run_time_or_all_stages(parts: dict[str, Any], seconds: int) -> None:
    """Stages have a length of their own, rounded up to whole seconds."""
    assert window_s(made(**parts)) == seconds


def test_the_window_of_a_search_is_enough_for_all_its_steps() -> None:
    """No search is cut off that takes every step it may, each settled, held and reported."""
    profile = made(search={"settle_s": 2, "hold_s": 4, "confirm_s": 9, "most_steps": 7})
    assert window_s(profile) >= 7 * (2 + 9 + 4)


@pytest.mark.parametrize(
    ("parts", "kind", "most"),
    [
        ({"load": USERS}, STORAGE, 2000 * (30 + 2 + 3 + 2)),
        ({"load": {**USERS, "entities_per_s": 10}}, STORAGE, 10 * (30 + 2 + 3 + 2)),
        ({"stage": STAIRS}, STORAGE, 10 * 50 + 5 * 100 + 5 * 300 + 10 * 150),
        ({"load": {"max_entities_per_s": math.inf}}, STORAGE, math.inf),
    ],
)
def test_the_most_that_a_load_can_want(
    parts: dict[str, Any], kind: EndpointKind, most: float
) -> None:
    """Ramp and settling included: it is what the price of a run is told by."""
    assert most_units(made(**parts), kind) == pytest.approx(most)


def test_the_most_of_a_search_is_its_highest_rate_all_the_time() -> None:
    """Nobody knows before at which step it ends, so that the price is that of the worst."""
    profile = made(search={"max_per_s": 300})
    assert most_units(profile, STORAGE) >= 300 * window_s(profile)


@given(
    rate=st.floats(min_value=0.5, max_value=1e5),
    users=st.integers(min_value=1, max_value=1000),
    spawn=st.floats(min_value=0.5, max_value=1000.0),
)
def test_the_most_is_never_less_than_what_is_due(rate: float, users: int, spawn: float) -> None:
    """By the end of the longest possible run no more is due than was said."""
    profile = open_load(entities_per_s=rate, users=users, spawn_rate_per_s=spawn)
    schedule = schedule_of(profile)
    assert schedule is not None
    longest_s = users / spawn + 3.0 + 1.3 + 30
    assert schedule.due_by(longest_s) <= most_units(profile, STORAGE) * (1 + 1e-9)


def test_random_arrivals_have_the_rate_of_the_schedule() -> None:
    """Poisson arrivals are due at random instants, as many as evenly spaced ones."""
    pacer = pacer_of(open_load(entities_per_s=100, arrivals="poisson"), AZURITE, random.Random(7))
    instants = []
    for sent in range(3000):
        due = pacer.next(0.0, sent)
        assert isinstance(due, float)
        instants.append(due)
    gaps = [later - earlier for earlier, later in itertools.pairwise(instants[1000:])]
    assert sum(gaps) / len(gaps) == pytest.approx(0.01, rel=0.15)
    assert max(gaps) > 0.03
    assert instants == sorted(instants)


def test_the_bounds_of_a_search_are_those_of_the_profile() -> None:
    """Every setting of [search] reaches the search; a profile without one searches nothing."""
    search = {
        "start_per_s": 11.0,
        "max_per_s": 22.0,
        "factor": 1.25,
        "settle_s": 1.0,
        "hold_s": 2.0,
        "confirm_s": 3.0,
        "precision": 0.1,
        "throttled_ratio": 0.05,
        "p99_ms": 400.0,
        "most_steps": 9,
    }
    bounds = search_bounds(made(search=search))
    assert bounds is not None
    renamed = {"throttled_ratio": "most_throttled", "p99_ms": "most_p99_ms"}
    for name, value in search.items():
        assert getattr(bounds, renamed.get(name, name)) == value
    assert search_bounds(made()) is None
