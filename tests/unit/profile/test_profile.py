"""Profiles: what they say, what is wrong with them, what they stand for."""

from __future__ import annotations

import math
import random
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.endpoint.sessions import BLOB, SESSION_KINDS
from harness.model.entity import stored_size
from harness.model.errors import SetupError
from harness.model.operation import Kind
from harness.model.target import EndpointKind
from harness.profile.build.pace import window_s
from harness.profile.build.scenarios import try_out
from harness.profile.build.workload import (
    loading_transactions,
    most_transactions,
    retry_of,
    source_of,
)
from harness.profile.checks.observed import observe
from harness.profile.profile_loader import (
    parse,
    question_of,
    resolve,
    shipped_directory,
    shipped_names,
)
from harness.profile.settings.parts import Session
from harness.profile.settings.schema import Profile
from harness.workload.keys.schemes import SCHEMES
from harness.workload.mix import Action
from harness.workload.retry import ExponentialBackoff, RetryPolicy, ScheduledBackoff
from tests.support.driving import first_of
from tests.support.profiles import without_trace

FIRST = {
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


def require_one_mistake(parts: dict[str, Any], place: str, said: str) -> None:
    text = problems(**parts)
    assert "1 mistake:" in text
    assert f"  {place}: " in text
    assert said in text


@pytest.mark.parametrize("name", shipped_names())
def test_a_shipped_profile_is_right_and_begins_with_its_question(name: str) -> None:
    """Every shipped profile parses, and its first line is the question it answers."""
    text = (shipped_directory() / f"{name}.toml").read_text(encoding="utf-8")
    profile = resolve(name).profile
    assert profile.question == question_of(text)
    assert profile.question.endswith("?")


@pytest.mark.parametrize("name", without_trace())
def test_a_shipped_profile_loads_what_it_says(name: str) -> None:
    """Loading makes each row once, in as many transactions as it says."""
    profile = resolve(name).profile
    source = source_of(profile, run_id="r" * 25, worker=0)
    operations = list(source.loading())
    parts = [part for operation in operations for part in operation.parts or (operation,)]
    rows = {(part.table, part.partition_key, part.row_key) for part in parts}
    assert len(rows) == len(parts) == source.loaded_entities
    assert len(operations) == loading_transactions(profile)


@pytest.mark.parametrize("name", without_trace())
def test_a_shipped_profile_can_be_tried(name: str) -> None:
    """The first operations of every shipped profile are what the service takes."""
    profile = resolve(name).profile
    try_out(source_of(profile, run_id="r" * 25, worker=0), profile)


def test_loading_makes_entities_of_the_wanted_size() -> None:
    """What is loaded has the stored size that the profile says."""
    profile = made(entity={"size_bytes": 700}, keys={"partitions": 2, "rows_per_partition": 150})
    operations = source_of(profile, run_id="r" * 25, worker=0).loading()
    parts = [part for operation in operations for part in operation.parts]
    sizes = {stored_size(part.partition_key, part.row_key, part.properties or {}) for part in parts}
    assert sizes == {700}


def test_every_mistake_is_named_with_its_place() -> None:
    """Five mistakes in one profile are five lines, each with its path in the file."""
    text = problems(
        keys={"partitions": 0, "prefix": "a/b"},
        load={"users": "many"},
        limits={"billions": 1},
        conditions=("p99(service) < soon",),
    )
    assert "5 mistakes" in text
    for place in (
        "keys.partitions",
        "keys.prefix",
        "load.users",
        "limits.billions",
        "conditions.0",
    ):
        assert f"  {place}: " in text


@pytest.mark.parametrize(
    ("parts", "places"),
    [
        (
            {
                "keys": {"scheme": "natural-key", "rows_per_partition": 9, "periods": 2,
                         "row_keys": "guid"},
                "mix": {"transaction": 1, "row_range_scan": 1},
            },
            (
                "keys: keys.row_keys",
                "keys: keys.rows_per_partition",
                "keys: keys.periods",
                "mix.transaction",
                "mix.row_range_scan",
            ),
        ),
        (
            {
                "keys": {"scheme": "single", "partitions": 2, "rows_per_partition": (5, 6, 7)},
                "mix": {"transaction": 1},
                "load": {"entities_per_s": 9.0},
                "stage": ({"for_s": 5, "to_users": 0},),
            },
            (
                "stage: every stage goes to 0",
                "stage and load",
                "keys: rows_per_partition lists",
                "keys: keys.partitions",
                "transaction.operations (10)",
            ),
        ),
        (
            {
                "seed": -1,
                "limits": {"billions": 1},
                "keys": {"scheme": "unique"},
                "mix": {"row_range_scan": 1},
                "search": {},
                "load": {"operations_per_s": 5.0},
            },
            ("seed", "limits.billions", "search", "mix.row_range_scan"),
        ),
    ],
)  # fmt: skip
def test_one_mistake_hides_no_other(parts: dict[str, Any], places: tuple[str, ...]) -> None:
    """What is wrong in one part and what does not go together are told at once, line by line."""
    text = problems(**parts)
    assert f"{len(places)} mistakes:" in text
    for place in places:
        assert f"\n  {place}" in text


def test_nothing_is_said_of_what_depends_on_a_mistake() -> None:
    """Where the scheme is misspelt nobody knows what it could have sent, or which periods."""
    text = problems(keys={"scheme": "uniqe", "periods": 4}, mix={"transaction": 1}, seed=-1)
    assert "2 mistakes:" in text
    assert "\n  keys.scheme: " in text
    assert "\n  seed: " in text


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_scheme_alone_is_a_profile(scheme: str) -> None:
    """Defaults go with every scheme: one row a partition where it has no more, and what it can."""
    profile = made(keys={"scheme": scheme})
    one_row = SCHEMES[scheme].one_row
    assert profile.keys.rows_per_partition == (1 if one_row else 1000)
    assert profile.mix.transaction == (0 if one_row else 10)
    assert profile.model_dump()["keys"]["rows_per_partition"] == profile.keys.rows.total
    try_out(source_of(profile, run_id="r" * 25, worker=0), profile)


def test_a_run_time_bounds_a_search() -> None:
    """With -t a search ends then at the latest; other profiles measure so long."""

    def resolved(name: str, *overrides: str, run_time_s: int) -> Profile:
        return resolve(name, overrides, run_time_s=run_time_s).profile

    whole = resolve("find-limit").profile
    assert whole.search is not None
    assert window_s(whole) == whole.search.most_steps * 27
    bounded = resolved("find-limit", run_time_s=90)
    assert bounded.search is not None
    assert (bounded.search.most_s, window_s(bounded)) == (90, 90)
    assert window_s(resolved("find-limit", run_time_s=10**6)) == window_s(whole)
    assert window_s(resolved("key-spread", run_time_s=90)) == 90
    assert window_s(resolved("key-spread", "search.hold_s=5", run_time_s=90)) == 90


def test_a_run_time_is_refused_where_stages_have_theirs() -> None:
    """-t is not silently ignored: the sentence says what counts in its place."""
    stages = "stage=[{for_s = 5, to_users = 3}]"
    with pytest.raises(SetupError, match="change for_s of the stages"):
        resolve("single-partition", [stages], run_time_s=90)


def test_a_setting_that_is_not_there_is_a_mistake() -> None:
    """A misspelt setting is refused, not ignored."""
    assert "load.user: there is no such setting" in problems(load={"user": 20})


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"transaction": {"operations": 101}}, "transaction.operations"),
        ({"entity": {"size_bytes": 1024 * 1024 + 1}}, "entity.size_bytes"),
        ({"entity": {"size_bytes": 50}}, "too small"),
        (
            {"entity": {"size_bytes": 100_000}, "transaction": {"operations": 100}},
            "over the 4 MiB",
        ),
        (
            {"keys": {"rows_per_partition": 5}, "transaction": {"operations": 10}},
            "names each RowKey once",
        ),
        (
            {
                "keys": {"partitions": 2, "rows_per_partition": (40, 5)},
                "transaction": {"operations": 10},
            },
            "more than keys.rows_per_partition (5)",
        ),
        ({"keys": {"prefix": "k" * 1020}}, "at most 1,024"),
        ({"keys": {"prefix": "a\u0000"}}, "U+0000"),
        ({"mix": {"point_query": 0}}, "nothing would be sent"),
        ({"load": {"run_time_s": 0}}, "load.run_time_s"),
        ({"load": {"max_entities_per_s": 0}}, "load.max_entities_per_s"),
        ({"session": {"kind": "telnet"}}, "session.kind"),
        ({"user_class": "not a class"}, "user_class"),
    ],
)
def test_what_the_service_would_refuse_is_refused(parts: dict[str, Any], said: str) -> None:
    """A limit of the service is held when the profile is read."""
    assert said in problems(**parts)


RAMP = {"for_s": 5, "to_entities_per_s": 50}


@pytest.mark.parametrize(
    ("parts", "place", "said"),
    [
        ({"load": {"entities_per_s": 0}}, "load.entities_per_s", "must be 0.001 or more (it is 0)"),
        (
            {"load": {"operations_per_s": -3}},
            "load.operations_per_s",
            "must be 0.001 or more (it is -3)",
        ),
        ({"load": {"entities_per_s": math.inf}}, "load.entities_per_s", "finite"),
        (
            {"load": {"entities_per_s": 5, "operations_per_s": 5}},
            "load",
            "entities_per_s and operations_per_s: set only one of them",
        ),
        ({"load": {"arrivals": "bursty"}}, "load.arrivals", "'constant' or 'poisson'"),
        ({"load": {"give_up_after_s": 0}}, "load.give_up_after_s", "must be more than 0"),
        (
            {"stage": (RAMP, {**RAMP, "for_s": -1})},
            "stage.1.for_s",
            "must be more than 0 (it is -1)",
        ),
        ({"stage": ({"for_s": 5},)}, "stage.0", "has one of to_entities_per_s"),
        ({"stage": ({**RAMP, "to_users": 3},)}, "stage.0", "has one of to_entities_per_s"),
        (
            {"stage": ({"for_s": 5, "to_operations_per_s": -1},)},
            "stage.0.to_operations_per_s",
            "(it is -1)",
        ),
        ({"stage": ({"for_s": 5, "to_users": 2.5},)}, "stage.0.to_users", "must be a whole number"),
        ({"stage": ({**RAMP, "hold": True},)}, "stage.0.hold", "there is no such setting"),
        ({"stage": RAMP}, "stage", "should be a list: [[stage]] instead of [stage]"),
        (
            {"stage": (RAMP, {"for_s": 5, "to_users": 3})},
            "stage",
            "all stages must change the same quantity",
        ),
        (
            {"stage": ({"for_s": 5, "to_users": 0},)},
            "stage",
            "every stage goes to 0; nothing would be sent",
        ),
        (
            {"stage": (RAMP,), "load": {"operations_per_s": 5}},
            "stage and load",
            "leave it out of [load]",
        ),
        (
            {"search": {"start_per_s": 100, "max_per_s": 50}},
            "search",
            "search.max_per_s (50) is below search.start_per_s (100)",
        ),
        (
            {"load": {"entities_per_s": 300, "max_entities_per_s": 200}},
            "load.max_entities_per_s",
            "200 is below load.entities_per_s (300)",
        ),
        (
            {"stage": (RAMP,), "load": {"max_entities_per_s": 40}},
            "load.max_entities_per_s",
            "40 is below stage.to_entities_per_s (50)",
        ),
        (
            {"search": {"max_per_s": 500}, "load": {"max_entities_per_s": 200}},
            "load.max_entities_per_s",
            "200 is below search.max_per_s (500)",
        ),
        ({"search": {"start_per_s": 0}}, "search.start_per_s", "must be 0.001 or more"),
        ({"search": {"factor": 1}}, "search.factor", "must be more than 1"),
        ({"search": {"precision": 0}}, "search.precision", "must be more than 0"),
        ({"search": {"hold_s": 0}}, "search.hold_s", "must be 2 or more"),
        ({"search": {"throttled_ratio": 1.5}}, "search.throttled_ratio", "must be 1 or less"),
        ({"search": {"p99_ms": 0}}, "search.p99_ms", "must be more than 0"),
        ({"search": {"most_steps": 1}}, "search.most_steps", "must be 2 or more"),
        ({"search": {}, "stage": (RAMP,)}, "search", "a search sets the rate"),
        ({"search": {}, "load": {"entities_per_s": 5}}, "search", "a search sets the rate"),
        ({"audit": {"most_rows": 0}}, "audit.most_rows", "must be 1 or more"),
        ({"fail_fast": "yes"}, "fail_fast", "must be true or false"),
    ],
)
def test_a_load_that_cannot_be_is_refused(parts: dict[str, Any], place: str, said: str) -> None:
    """A rate, a stage or a search that makes no sense is named with its place and its value."""
    require_one_mistake(parts, place, said)


@pytest.mark.parametrize(
    ("parts", "place", "said"),
    [
        ({"keys": {"scheme": "spraed"}}, "keys.scheme", "the values are: single, spread,"),
        ({"keys": {"scheme": "spraed"}}, "keys.scheme", "; did you mean spread?"),
        ({"load": {"usrs": 5}}, "load.usrs", "there is no such setting; did you mean users?"),
        ({"search": {"facter": 2}}, "search.facter", "did you mean factor?"),
        ({"stage": ({**RAMP, "jmp": True},)}, "stage.0.jmp", "did you mean jump?"),
        ({"lod": {"users": 5}}, "lod", "there is no such setting; did you mean load?"),
        ({"keys": {"distribution": "zipf"}}, "keys.distribution", "uniform, zipfian, hotspot"),
        ({"keys": {"row_keys": "uuid"}}, "keys.row_keys", "default, sequence, timestamp"),
        ({"keys": {"scheme": "single", "partitions": 2}}, "keys", "keys.partitions has to be 1"),
        (
            {"keys": {"scheme": "unique", "rows_per_partition": 1000}},
            "keys",
            "keys.rows_per_partition has to be 1",
        ),
        ({"keys": {"periods": 4}}, "keys", "keys.periods has to be 1"),
        (
            {"keys": {"scheme": "device-date", "partitions": 5, "periods": 2}},
            "keys",
            "keys.partitions (5) has to be a multiple of keys.periods (2)",
        ),
        (
            {"keys": {"partitions": 3, "rows_per_partition": (50, 60)}},
            "keys",
            "rows_per_partition lists 2 partitions, keys.partitions is 3",
        ),
        (
            {"keys": {"partitions": 2, "rows_per_partition": (5, 0)}},
            "keys.rows_per_partition.list.1",
            "(it is 0)",
        ),
        (
            {"keys": {"rows_per_partition": "many"}},
            "keys.rows_per_partition.number",
            "(it is 'many')",
        ),
        (
            {"keys": {"scheme": "unique", "rows_per_partition": 1}, "mix": {"transaction": 1}},
            "mix.transaction",
            "a transaction stays in one partition",
        ),
        (
            {"keys": {"scheme": "unique", "rows_per_partition": 1}, "mix": {"row_range_scan": 1}},
            "mix.row_range_scan",
            "use partition_range_scan",
        ),
        (
            {"keys": {"scheme": "date"}, "transaction": {"kinds": ("insert", "upsert_merge")}},
            "transaction.kinds",
            "new rows go to another partition",
        ),
        ({"transaction": {"kinds": ()}}, "transaction.kinds", "name at least one kind"),
        ({"transaction": {"kinds": ("merge",)}}, "transaction.kinds.0", "'upsert_merge'"),
        (
            {"query": {"by_key_bounds": True, "returned_share": 0.5}},
            "query.by_key_bounds",
            "leave out query.returned_share",
        ),
        ({"query": {"returned_share": 0}}, "query.returned_share", "(it is 0)"),
        (
            {"scenario": "blog", "mix": {"insert": 1}},
            "scenario and mix",
            "set their weights in [actions]",
        ),
        ({"actions": {"read": 1}}, "actions", "without a scenario set the weights in [mix]"),
        ({"scenario": "blog", "actions": {"read": -1}}, "actions.read", "(it is -1)"),
    ],
)
def test_keys_and_mixes_that_cannot_be_are_refused(
    parts: dict[str, Any], place: str, said: str
) -> None:
    """What a scheme cannot do is one sentence with its place, and names what there is instead."""
    require_one_mistake(parts, place, said)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"scenario": "blogg"}, "there is no scenario 'blogg'; the scenarios are:"),
        (
            {"scenario": "blog", "actions": {"sing": 1}},
            "unknown actions: sing; the actions of scenario blog are",
        ),
    ],
)
def test_a_scenario_that_is_not_there_is_refused(parts: dict[str, Any], said: str) -> None:
    """An unknown scenario, or something it does not do, names what there is."""
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
        {"keys": {"scheme": "unique"}},
        {"stage": (RAMP, {**RAMP, "jump": True})},
        {"stage": ({"for_s": 5, "to_users": 3},), "fail_fast": True},
        {"search": {"start_per_s": 7, "p99_ms": math.inf}},
        {"scenario": "blog", "keys": {"partitions": 5}, "actions": {"read_post": 3}},
        {
            "keys": {"partitions": 2, "rows_per_partition": (30, 40)},
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
        keys={"partitions": 3, "rows_per_partition": 150},
        load={"users": 10, "spawn_rate_per_s": 10.0, "settle_s": 2.0, "run_time_s": 95},
        retry={"retries": 2},
    )
    assert most_transactions(profile, EndpointKind.STORAGE) == (6 * 9, 2000 * 100 * 3)


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


def test_a_profile_can_ask_for_every_session_and_no_other() -> None:
    """The kinds of session in the schema are those that can be opened."""
    assert get_args(Session.model_fields["kind"].annotation) == (*SESSION_KINDS, BLOB)


@given(
    weights=st.dictionaries(
        st.sampled_from(list(Action)), st.floats(min_value=0.1, max_value=10), min_size=1
    ),
    seed=st.integers(min_value=0, max_value=2**32),
)
def test_a_mix_sends_only_what_it_names(weights: dict[Action, float], seed: int) -> None:
    """Whatever the weights, only kinds with a weight are sent; a delete without a row inserts."""
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
