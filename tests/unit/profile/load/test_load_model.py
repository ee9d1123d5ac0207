"""What a profile says of when operations leave: schedules, rates, windows, and the most of it."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.services.service import Service
from harness.model.services.storage import AZURITE, GATEWAY, STORAGE
from harness.profile.load.model import Load
from harness.profile.load.registry import recorded_load
from harness.profile.load.stages import Stage, StagesOfUsers
from harness.profile.profile_loader import parse
from harness.profile.settings.schema import Profile
from harness.workload.pacing import ClosedLoop, OpenLoop

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
    assert profile.load_model.scheduled is open_model
    assert profile.load_model.starts_with_window is stages
    assert profile.load_model.by_operation is by_operations
    assert isinstance(profile.load_model.pacer(AZURITE, random.Random(1)), OpenLoop) is open_model


def test_a_rate_is_reached_while_the_users_come() -> None:
    """A slow ramp is the default: it takes as long as the users take to come, then it is held."""
    schedule = open_load(entities_per_s=100).load_model.schedule
    assert schedule is not None
    assert [schedule.per_s(at_s) for at_s in (0, 1, 2, 1000)] == [0, 50, 100, 100]
    assert schedule.due_by(12.0) == pytest.approx(100 + 10 * 100)


def test_users_that_come_at_once_ramp_up_all_the_same() -> None:
    """However fast users are started, a schedule begins with a ramp of some length."""
    schedule = open_load(entities_per_s=100, users=1, spawn_rate_per_s=1000.0).load_model.schedule
    assert schedule is not None
    assert schedule.per_s(0.0) == 0.0
    assert schedule.per_s(0.1) == 100


def test_stages_follow_each_other() -> None:
    """A ramp is linear, a hold is flat, a jump is at once, and the last rate stays."""
    schedule = made(stage=STAIRS).load_model.schedule
    assert schedule is not None
    rates = [schedule.per_s(at_s) for at_s in (0, 5, 10, 14.9, 15, 19.9, 25, 30, 99)]
    assert rates == pytest.approx([0, 50, 100, 100, 300, 300, 150, 0, 0])


@pytest.mark.parametrize(
    ("load", "kind", "cap"),
    [
        ({}, STORAGE, 2000.0),
        ({"max_entities_per_s": 5000.0}, STORAGE, 5000.0),
        ({"max_entities_per_s": math.inf}, STORAGE, None),
        ({"emulator_max_entities_per_s": 10.0}, STORAGE, 2000.0),
        ({}, AZURITE, 500.0),
        ({}, GATEWAY, 500.0),
        ({"max_entities_per_s": 300.0}, AZURITE, 300.0),
        ({"max_entities_per_s": 9000.0}, AZURITE, 500.0),
        ({"emulator_max_entities_per_s": math.inf}, AZURITE, None),
    ],
)
def test_a_closed_load_is_capped_by_the_kind_of_endpoint(
    load: dict[str, float], kind: Service, cap: float | None
) -> None:
    """An account is held to one partition's target, an emulator to a cap of its own."""
    profile = made(load=load)
    assert profile.load_model.highest_per_s(kind) == cap
    pacer = profile.load_model.pacer(kind, random.Random(1))
    assert isinstance(pacer, ClosedLoop)
    assert pacer.entities_per_s == cap


def test_a_search_begins_at_the_rate_of_its_first_step() -> None:
    """Without a ramp: the rate of a step is held from its beginning."""
    pacer = made(search={"start_per_s": 50}).load_model.pacer(AZURITE, random.Random(1))
    assert pacer.behind(10.0, 0) == 500


def test_loading_an_account_is_capped_and_an_emulator_is_not() -> None:
    """An account is not flooded by loading either."""
    assert made().load_model.loading_pacer(STORAGE).entities_per_s == 2000
    assert open_load(max_entities_per_s=50.0).load_model.loading_pacer(STORAGE).entities_per_s == 50
    assert made().load_model.loading_pacer(AZURITE).entities_per_s is None


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
    assert made(**parts).load_model.window_s == seconds


def test_the_window_of_a_search_is_enough_for_all_its_steps() -> None:
    """No search is cut off that takes every step it may, each settled, held and reported."""
    profile = made(search={"settle_s": 2, "hold_s": 4, "confirm_s": 9, "most_steps": 7})
    assert profile.load_model.window_s >= 7 * (2 + 9 + 4)


@pytest.mark.parametrize(
    ("parts", "kind", "most"),
    [
        ({"load": USERS}, STORAGE, 2000 * (30 + 2 + 3 + 2)),
        ({"load": {**USERS, "entities_per_s": 4000}}, STORAGE, 4000 * (30 + 2 + 3 + 2)),
        ({"load": {**USERS, "operations_per_s": 700}}, AZURITE, 700 * (30 + 2 + 3 + 2)),
        ({"stage": STAIRS}, AZURITE, 10 * 50 + 5 * 100 + 5 * 300 + 10 * 150),
        ({"load": {"max_entities_per_s": math.inf}}, STORAGE, math.inf),
    ],
)
def test_the_most_that_a_load_can_want(parts: dict[str, Any], kind: Service, most: float) -> None:
    """Ramp and settling included, it is the price of a run; caps are for waiting users only."""
    assert made(**parts).load_model.most_requests(kind) == pytest.approx(most)


def test_the_most_of_a_search_is_its_highest_rate_all_the_time() -> None:
    """Nobody knows before at which step it ends, so that the price is that of the worst."""
    profile = made(search={"max_per_s": 300})
    assert profile.load_model.most_requests(STORAGE) >= 300 * profile.load_model.window_s


@given(
    rate=st.floats(min_value=0.5, max_value=1e5),
    users=st.integers(min_value=1, max_value=1000),
    spawn=st.floats(min_value=0.5, max_value=1000.0),
)
def test_the_most_is_never_less_than_what_is_due(rate: float, users: int, spawn: float) -> None:
    """By the end of the longest possible run no more is due than was said."""
    profile = open_load(entities_per_s=rate, users=users, spawn_rate_per_s=spawn)
    schedule = profile.load_model.schedule
    assert schedule is not None
    longest_s = users / spawn + 3.0 + 1.3 + 30
    assert schedule.due_by(longest_s) <= profile.load_model.most_requests(STORAGE) * (1 + 1e-9)


def test_random_arrivals_have_the_rate_of_the_schedule() -> None:
    """Poisson arrivals are due at random instants, as many as evenly spaced ones."""
    load = open_load(entities_per_s=100, arrivals="poisson").load_model
    pacer = load.pacer(AZURITE, random.Random(7))
    instants = []
    for sent in range(3000):
        due = pacer.next(0.0, sent)
        assert isinstance(due, float)
        instants.append(due)
    gaps = [later - earlier for earlier, later in itertools.pairwise(instants[1000:])]
    assert sum(gaps) / len(gaps) == pytest.approx(0.01, rel=0.15)
    assert max(gaps) > 0.03
    assert instants == sorted(instants)


def users_at(stages: list[tuple[float, int, bool]], users: int, at_s: float) -> int | None:
    """The users of stages, each with its length, the users at its end, and whether it jumps."""
    each = [Stage(for_s=for_s, to_users=to, jump=jump) for for_s, to, jump in stages]
    return StagesOfUsers(Load(users=users), None, each).users_at(at_s)


STAGES = [(4.0, 10, False), (2.0, 10, False), (3.0, 30, True), (5.0, 0, False)]


@pytest.mark.parametrize(
    ("at_s", "users"),
    [(-1, 2), (0, 2), (2, 6), (3.99, 9), (4, 10), (6, 30), (8.9, 30), (9, 30), (11.5, 15), (99, 0)],
)
def test_users_follow_their_stages(at_s: float, users: int) -> None:
    """From 2 users up to 10, held, a jump to 30, down to nobody; the last stage stays."""
    assert users_at(STAGES, 2, at_s) == users


@given(
    stages=st.lists(
        st.tuples(
            st.floats(min_value=0.1, max_value=100),
            st.integers(min_value=0, max_value=1000),
            st.booleans(),
        ),
        min_size=1,
        max_size=6,
    ),
    start=st.integers(min_value=1, max_value=1000),
    at_s=st.floats(min_value=-10, max_value=1000),
)
def test_there_are_never_more_users_than_a_stage_has(
    stages: list[tuple[float, int, bool]], start: int, at_s: float
) -> None:
    """Between the fewest and the most of all stages, and at the end as many as the last has."""
    levels = [start, *(to for _, to, _ in stages)]
    users = users_at(stages, start, at_s)
    assert users is not None
    assert min(levels) <= users <= max(levels)
    assert users_at(stages, start, sum(for_s for for_s, _, _ in stages) + 1) == levels[-1]


MORE_USERS = (
    {"for_s": 2, "to_users": 2},
    {"for_s": 3, "to_users": 1200},
    {"for_s": 4, "to_users": 3, "jump": True},
)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"load": {"users": 1}}, "1 user"),
        ({"load": {"users": 20}}, "20 users"),
        ({"load": {"users": 4}, "stage": MORE_USERS}, "2 to 1,200 users (3 stages)"),
        ({"load": {"users": 1}, "stage": MORE_USERS[1:2]}, "1 to 1,200 users (1 stage)"),
        ({"load": {"users": 7}, "stage": ({"for_s": 5, "to_entities_per_s": 9},)}, "7 users"),
    ],
)
def test_stages_of_users_are_a_range(parts: dict[str, Any], said: str) -> None:
    """The number before the first stage counts too; rates of stages say nothing of users."""
    profile = parse({"question": "Why?", **parts}, source="a test")
    assert recorded_load(profile.model_dump()).users_words(profile.load.users) == said
