"""Profiles: what they say, what is wrong with them, what they stand for."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.entity import stored_size
from harness.model.errors import SetupError
from harness.model.operation import Kind
from harness.model.services.storage import STORAGE
from harness.model.sessions import TABLE_SESSIONS
from harness.profile.build.scenarios import try_out
from harness.profile.build.workload import (
    most_transactions,
    retry_of,
    source_of,
)
from harness.profile.checks.observed import observe
from harness.profile.designs import GROUPS, group_of, question_of
from harness.profile.profile_loader import parse, resolve, shipped_directory, shipped_names
from harness.profile.settings.schema import Profile
from harness.workload.mix import Action
from harness.workload.retry import ExponentialBackoff, RetryPolicy, ScheduledBackoff
from tests.support.driving import first_of
from tests.support.keys import DOCUMENTED, NAMES
from tests.support.profiles import shipped, without_trace

FIRST = {
    Action.UPDATE_MESSAGE: (Kind.UPDATE_MESSAGE, Kind.GET_MESSAGES),
    Action.DELETE_MESSAGE: (Kind.DELETE_MESSAGE, Kind.GET_MESSAGES),
    **dict.fromkeys(
        (
            Action.ROW_RANGE_SCAN,
            Action.PARTITION_SCAN,
            Action.PARTITION_RANGE_SCAN,
            Action.FULL_TABLE_SCAN,
        ),
        (Kind.QUERY,),
    ),
    Action.DELETE: (Kind.DELETE, Kind.INSERT),
    Action.SERIES_MERGE: (Kind.UPSERT_MERGE,),
    Action.CONDITIONAL_UPDATE: (Kind.POINT_QUERY,),
    Action.READ_THEN_WRITE: (Kind.POINT_QUERY,),
    Action.KEY_CHANGE: (Kind.DELETE, Kind.INSERT),
}
"""The first operation of what is not an operation itself."""
SMALLEST: dict[str, Any] = {"question": "Why?", "user_class": "SinglePartitionUser"}


def made(**parts: Any) -> Profile:
    return parse({**SMALLEST, **parts}, source="a test")


def problems(**parts: Any) -> str:
    with pytest.raises(SetupError) as caught:
        made(**parts)
    return str(caught.value)


@pytest.mark.parametrize("name", shipped_names())
def test_a_shipped_profile_is_right_and_begins_with_its_question(name: str) -> None:
    """Every shipped profile parses, and its first line is the question it answers."""
    text = (shipped_directory() / f"{name}.toml").read_text(encoding="utf-8")
    profile = shipped(name)
    assert profile.question == question_of(text)
    assert profile.question.endswith("?")
    assert len(profile.question) <= 110
    assert group_of(text) in GROUPS


@pytest.mark.parametrize("name", without_trace())
def test_a_shipped_profile_loads_what_it_says(name: str) -> None:
    """Loading makes each row once, in as many transactions as it says."""
    profile = shipped(name)
    source = source_of(profile, run_id="r" * 25, worker=0)
    operations = list(source.loading())
    parts = [part for operation in operations for part in operation.parts or (operation,)]
    rows = {(part.table, part.partition_key, part.row_key) for part in parts}
    assert len(rows) == len(parts) == source.loaded_entities
    assert len(operations) == source.loading_requests


@pytest.mark.parametrize(
    "name", [name for name in without_trace() if shipped(name).session.kind not in TABLE_SESSIONS]
)
def test_a_shipped_profile_can_be_tried(name: str) -> None:
    """The first operations of those beside tables are what the service takes; those of the others
    are sent to it in `tests/contract/sessions/test_profiles.py`.
    """
    profile = shipped(name)
    try_out(source_of(profile, run_id="r" * 25, worker=0), profile)


def test_loading_makes_entities_of_the_wanted_size() -> None:
    """What is loaded has the stored size that the profile says."""
    profile = made(entity={"size_bytes": 700}, keys={"rows_per_partition": 150})
    operations = source_of(profile, run_id="r" * 25, worker=0).loading()
    parts = [part for operation in operations for part in operation.parts]
    sizes = {stored_size(part.partition_key, part.row_key, part.properties or {}) for part in parts}
    assert sizes == {700}


@pytest.mark.parametrize("name", NAMES)
def test_keys_alone_are_a_profile(name: str) -> None:
    """Defaults go with all keys: about 20,000 rows, or 2,000 partitions, and a mix that fits."""
    settings = DOCUMENTED[name].settings
    for size in ("rows_per_partition", "partitions"):
        settings["keys"].pop(size, None)
    profile = made(**settings)
    design = profile.design
    assert (design.rows.total, design.rows.most) == (2000, 1) or not design.one_row
    assert 1000 <= design.rows.total <= 20_000
    assert profile.mix.transaction == (0 if design.one_row else 10)
    try_out(source_of(profile, run_id="r" * 25, worker=0), profile)


def test_a_run_time_bounds_a_search() -> None:
    """With -t a search ends then at the latest; other profiles measure so long."""

    def resolved(name: str, *overrides: str, run_time_s: int) -> Profile:
        return resolve(name, overrides, run_time_s=run_time_s).profile

    whole = shipped("find-limit")
    assert whole.search is not None
    assert whole.load_model.window_s == whole.search.most_steps * 26 + 2 * 120
    bounded = resolved("find-limit", run_time_s=90)
    assert bounded.search is not None
    assert (bounded.search.most_s, bounded.load_model.window_s) == (90, 90)
    assert resolved("find-limit", run_time_s=10**6).load_model.window_s == whole.load_model.window_s
    assert resolved("key-spread", run_time_s=90).load_model.window_s == 90
    assert resolved("key-spread", "search.hold_s=5", run_time_s=90).load_model.window_s == 90


def test_a_run_time_is_refused_where_stages_have_theirs() -> None:
    """-t is not silently ignored: the sentence says what counts in its place."""
    stages = "stage=[{for_s = 5, to_users = 3}]"
    with pytest.raises(SetupError, match="change for_s of the stages"):
        resolve("single-partition", [stages], run_time_s=90)


RAMP = {"for_s": 5, "to_entities_per_s": 50}


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"scenario": "blogg"}, "there is no scenario 'blogg'; the scenarios are:"),
        (
            {"scenario": "blog", "actions": {"sing": 1}},
            "unknown actions: sing; the actions of scenario blog are",
        ),
        (
            {"scenario": "iot-telemetry", "fields": {"city": {"values": 5}}},
            "fields.city: scenario iot-telemetry draws [fields.device]; name it so",
        ),
    ],
)
def test_a_scenario_that_is_not_there_is_refused(parts: dict[str, Any], said: str) -> None:
    """An unknown scenario, or something it does not do or draw, names what there is."""
    with pytest.raises(SetupError) as caught:
        source_of(made(**parts), run_id="r" * 25, worker=0)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {
            "load": {"entities_per_s": 40.0, "arrivals": "poisson"},
            "conditions": ("held_rate > 95%",),
        },
        {"load": {"max_entities_per_s": math.inf}},
        {"keys": {"partition_key": "{row:guid}", "row_key": ""}},
        {"fields": {"city": {"values": ("a", "b")}}, "keys": {"partition_key": "{city}"}},
        {
            "fields": {"time": {"history": "3 days"}},
            "keys": {
                "partition_key": "{time:day}",
                "index": {"partition_key": "{row}", "row_key": ""},
            },
        },
        {"stage": (RAMP, {**RAMP, "jump": True})},
        {"stage": ({"for_s": 5, "to_users": 3},), "fail_fast": True},
        {"search": {"start_per_s": 7, "p99_ms": math.inf}},
        {"scenario": "blog", "fields": {"month": {"values": 5}}, "actions": {"read_post": 3}},
        {
            "fields": {"key": {"values": 2, "prefix": "p"}},
            "keys": {"partition_key": "{key}", "rows_per_partition": (30, 40)},
            "transaction": {"kinds": ("insert", "delete"), "operations": 2},
            "query": {"select": ("A", "B"), "top": 3},
            "audit": {"enabled": True},
        },
    ],
)
def test_a_profile_survives_the_way_to_the_workers(parts: dict[str, Any]) -> None:
    """What was set, as JSON has it, is the same profile again; what was not set stays so."""
    profile = made(**parts)
    sent = profile.model_dump(mode="json", exclude_unset=True)
    assert parse(sent, source="a worker") == profile
    assert parse(sent, source="a worker").model_fields_set == profile.model_fields_set


def test_the_price_counts_loading_and_every_retry() -> None:
    """The stated bound covers loading and load, each with all retries; loading has eight."""
    profile = made(
        fields={"key": {"values": 3}},
        keys={"partition_key": "{key}", "rows_per_partition": 150},
        load={"users": 10, "spawn_rate_per_s": 10.0, "settle_s": 2.0, "run_time_s": 95},
        retry={"retries": 2},
    )
    source = source_of(profile, run_id="r" * 25, worker=0)
    assert most_transactions(profile, STORAGE, source.loading_requests) == (6 * 9, 2000 * 100 * 3)


@pytest.mark.parametrize(
    ("retry", "policy"),
    [
        ({"strategy": "none"}, ScheduledBackoff()),
        (
            {"strategy": "fixed", "retries": 2, "backoff_s": 0.5},
            ScheduledBackoff(delays_s=(0.5, 0.5)),
        ),
        (
            {"strategy": "exponential", "retries": 2, "backoff_s": 0.5},
            ExponentialBackoff(retries=2, backoff_s=0.5, minimum_s=0.1, maximum_s=8.0),
        ),
        ({"strategy": "schedule", "delays_s": (1.0, 2.0)}, ScheduledBackoff(delays_s=(1.0, 2.0))),
    ],
)
def test_a_strategy_names_its_policy(retry: dict[str, Any], policy: RetryPolicy) -> None:
    """Each retry strategy of a profile is a policy with its parameters."""
    assert retry_of(made(retry=retry)) == policy


@given(
    weights=st.dictionaries(
        st.sampled_from(list(Action)), st.floats(min_value=0.1, max_value=10), min_size=1
    ),
    seed=st.integers(min_value=0, max_value=2**32),
)
def test_a_mix_sends_only_what_it_names(weights: dict[Action, float], seed: int) -> None:
    """Whatever the weights, only kinds with a weight are sent; a delete without a row inserts,
    and one without a message gets one."""
    profile = made(mix={str(action): weight for action, weight in weights.items()})
    source = source_of(profile, run_id="r", worker=0)
    rng = random.Random(seed)
    sent = {first_of(source.next_task(rng)).kind for _ in range(50)}
    allowed = {kind for action in weights for kind in FIRST.get(action, (str(action),))}
    assert sent <= allowed


def test_a_scenario_is_refused_if_its_transactions_are_too_large() -> None:
    """Ten readings of 1 MB are over 4 MiB; the two sides of a transfer are not."""
    large: dict[str, Any] = {"keys": {"rows_per_partition": 2}, "entity": {"size_bytes": 1_000_000}}
    assert observe(made(scenario="bank-transfers", **large), 100).sent
    with pytest.raises(SetupError, match=r"^scenario iot-telemetry: a transaction .* the 4 MiB"):
        observe(made(scenario="iot-telemetry", **large), 100)
