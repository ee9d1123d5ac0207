"""The plan of a run survives Locust's transport; and users by stages."""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from locust.rpc import Message

from harness.endpoint.accounts import Accounts
from harness.endpoint.endpoint import emulator_endpoint
from harness.model.errors import SetupError
from harness.model.target import EndpointKind
from harness.profile.profile_loader import NamedProfile, parse
from harness.swarm.master.load_monitor import users_at
from harness.swarm.master.master_run import Cause, Ending
from harness.swarm.plan import RunPlan, new_plan


def sent(content: Any) -> Any:
    """What arrives of it at a worker."""
    return Message.unserialize(Message("spawn", content, "master").serialize()).data


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"load": {"operations_per_s": 40.0, "arrivals": "poisson"}},
        {"load": {"max_entities_per_s": math.inf}},
        {"stage": ({"for_s": 5, "to_entities_per_s": 50}, {"for_s": 5, "to_entities_per_s": 0})},
        {"search": {"start_per_s": 7, "p99_ms": math.inf}},
        {"scenario": "blog", "keys": {"partitions": 5}, "actions": {"read_post": 3}},
        {"keys": {"partitions": 2, "rows_per_partition": (30, 40)}},
    ],
)
def test_a_plan_arrives_as_it_was_made(parts: dict[str, Any]) -> None:
    """Profile, tables and all, also of a scenario, and what was not set stays unset."""
    plan = made(parts)
    arrived = RunPlan.from_options(sent(plan.to_options()))
    assert arrived == plan
    assert arrived.profile.model_fields_set == plan.profile.model_fields_set
    assert arrived.table_names == ("stress1", "stress1Index")


def test_an_own_class_is_recorded_without_the_settings_that_it_replaces() -> None:
    """A mix that nobody sends is no setting of the run, nor keys that were not loaded."""
    plan = made({})
    assert plan.recorded_settings().keys() >= {"question", "mix", "keys", "load"}
    own = dataclasses.replace(plan, own_class="Mine", loads=True).recorded_settings()
    assert own.keys() >= {"keys", "entity", "load"}
    assert own.keys().isdisjoint({"question", "mix", "query", "transaction"})
    assert (own["name"], own["profile"]) == ("Mine", "mine")
    unloaded = dataclasses.replace(plan, own_class="Mine", loads=False).recorded_settings()
    assert unloaded.keys().isdisjoint({"keys", "entity", "loading", "mix"})
    assert unloaded["load"] == own["load"]


def test_an_own_class_and_a_replay_do_not_go_together() -> None:
    """The class would send its own operations, and the record would name those of the trace."""
    profile = {"question": "q", "replay": {"trace": "app.trace"}}
    with pytest.raises(SetupError, match="user class Mine makes its own operations, and profile r"):
        new_plan(
            NamedProfile(name="replayed", given="r", profile=parse(profile, source="a test")),
            dt.datetime.now(dt.UTC),
            session=None,
            table=None,
            tables=("",),
            accounts=Accounts((emulator_endpoint("http://127.0.0.1:1"),)),
            embedded=False,
            own_class="Mine",
        )


def made(parts: dict[str, Any]) -> RunPlan:
    """A plan of a profile with these parts."""
    return RunPlan(
        run_id="20260101T000000Z-00000000",
        profile_name="mine",
        profile=parse({"question": "Why?", **parts}, source="a test"),
        table="stress1",
        tables=("", "Index"),
        scenario_hash="",
        own_table=True,
        session="sdk",
        fingerprint="f",
        embedded=True,
        kind=EndpointKind.COSMOS_EMULATOR,
    )


STAGES = [(4.0, 10.0, False), (2.0, 10.0, False), (3.0, 30.0, True), (5.0, 0.0, False)]


@pytest.mark.parametrize(
    ("at_s", "users"),
    [(-1, 2), (0, 2), (2, 6), (3.99, 9), (4, 10), (6, 30), (8.9, 30), (9, 30), (11.5, 15), (99, 0)],
)
def test_users_follow_their_stages(at_s: float, users: int) -> None:
    """From 2 users up to 10, held, a jump to 30, down to nobody; the last stage stays."""
    assert users_at(STAGES, 2.0, at_s) == users


@given(
    stages=st.lists(
        st.tuples(
            st.floats(min_value=0.1, max_value=100),
            st.integers(min_value=0, max_value=1000).map(float),
            st.booleans(),
        ),
        min_size=1,
        max_size=6,
    ),
    start=st.integers(min_value=0, max_value=1000),
    at_s=st.floats(min_value=-10, max_value=1000),
)
def test_there_are_never_more_users_than_a_stage_has(
    stages: list[tuple[float, float, bool]], start: int, at_s: float
) -> None:
    """Between the fewest and the most of all stages, and at the end as many as the last has."""
    levels = [start, *(int(to) for _, to, _ in stages)]
    assert min(levels) <= users_at(stages, float(start), at_s) <= max(levels)
    assert users_at(stages, float(start), sum(for_s for for_s, _, _ in stages) + 1) == levels[-1]


def test_a_throttled_account_is_named_as_the_end_of_a_run() -> None:
    """Of several accounts; a single one needs no name."""
    assert str(Ending(Cause.ACCOUNT_THROTTLED)) == "throttling of the account"
    named = Ending(Cause.ACCOUNT_THROTTLED, account="orders1")
    assert str(named) == "throttling of the account orders1"
