"""Profiles: what they say, what is wrong with them, what they stand for."""

from __future__ import annotations

import itertools
import math
import random
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.endpoint.sessions import SESSION_KINDS
from harness.model.entity import stored_size
from harness.model.errors import SetupError
from harness.model.operation import Kind
from harness.model.target import EndpointKind
from harness.profile.build import (
    loaded_entities,
    loading_transactions,
    most_transactions,
    retry_of,
    wanted_rate,
    workload_of,
)
from harness.profile.load import parse, question_of, resolve, shipped_directory, shipped_names
from harness.profile.schema import Profile, Session
from harness.workload.retry import (
    ExponentialBackoff,
    FixedBackoff,
    NoRetry,
    ScheduledBackoff,
)

SMALLEST: dict[str, Any] = {"question": "Why?", "user_class": "SinglePartitionUser"}


def made(**parts: Any) -> Profile:
    return parse({**SMALLEST, **parts}, source="a test")


def problems(**parts: Any) -> str:
    with pytest.raises(SetupError) as caught:
        made(**parts)
    return str(caught.value)


@pytest.mark.parametrize("name", shipped_names(shipped_directory()))
def test_a_shipped_profile_is_right_and_begins_with_its_question(name: str) -> None:
    """Every shipped profile parses, and its first line is the question it answers."""
    text = (shipped_directory() / f"{name}.toml").read_text(encoding="utf-8")
    profile = resolve(name, directory=shipped_directory()).profile
    assert profile.question == question_of(text)
    assert profile.question.endswith("?")


@pytest.mark.parametrize("name", shipped_names(shipped_directory()))
def test_a_shipped_profile_loads_what_it_says(name: str) -> None:
    """Loading makes each row once, in full transactions, of the wanted stored size."""
    profile = resolve(name, directory=shipped_directory()).profile
    operations = list(workload_of(profile, run_id="r" * 25, worker=0).loading())
    parts = [part for operation in operations for part in operation.parts]
    assert len({(part.partition_key, part.row_key) for part in parts}) == loaded_entities(profile)
    assert len(operations) == loading_transactions(profile)
    sizes = {stored_size(part.partition_key, part.row_key, part.properties or {}) for part in parts}
    assert sizes == {profile.entity.size_bytes}


def test_every_mistake_is_named_with_its_place() -> None:
    """Five mistakes in one profile are five lines, each with its path in the file."""
    text = problems(
        keys={"partitions": 0, "prefix": "a/b"},
        load={"users": "many"},
        limits={"billions": 1},
        conditions=["p99(service) < soon"],
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
        ({"keys": {"prefix": "k" * 1020}}, "at most 1,024"),
        ({"keys": {"prefix": "a\u0000"}}, "U+0000"),
        ({"mix": {"point_query": 0}}, "nothing would be sent"),
        ({"load": {"run_time_s": 0}}, "load.run_time_s"),
        ({"load": {"max_entities_per_s": 0}}, "load.max_entities_per_s"),
        ({"session": {"kind": "wire"}}, "session.kind"),
        ({"user_class": "not a class"}, "user_class"),
    ],
)
def test_what_the_service_would_refuse_is_refused(parts: dict[str, Any], said: str) -> None:
    """A limit of the service is held when the profile is read."""
    assert said in problems(**parts)


def test_an_override_changes_one_value() -> None:
    """--set changes the value at its path, with TOML's types, and quotes can be left out."""
    named = resolve(
        "single-partition",
        ["load.users=7", "keys.distribution=zipfian", "retry.delays_s=[1.0, 2.0]"],
        directory=shipped_directory(),
    )
    assert named.profile.load.users == 7
    assert named.profile.keys.distribution == "zipfian"
    assert named.profile.retry.delays_s == (1.0, 2.0)


@pytest.mark.parametrize("override", ["load.users", "=3", "load..users=3", "seed.x=1"])
def test_a_malformed_override_is_named(override: str) -> None:
    """A --set that is no path and value is refused with its own text."""
    with pytest.raises(SetupError, match="--set"):
        resolve("single-partition", [override], directory=shipped_directory())


def test_an_unknown_profile_names_those_there_are() -> None:
    """Who misspells a profile is told the names."""
    with pytest.raises(SetupError, match="key-spread, single-partition"):
        resolve("singel-partition", directory=shipped_directory())


def test_a_path_is_taken_only_where_paths_are(tmp_path: Path) -> None:
    """A profile file is taken from the command line and refused from the form."""
    file = tmp_path / "mine.toml"
    file.write_text('# Mine?\nuser_class = "Mine"\n', encoding="utf-8")
    assert resolve(str(file), directory=shipped_directory()).profile.question == "Mine?"
    with pytest.raises(SetupError, match="by its name"):
        resolve(str(file), directory=shipped_directory(), paths=False)


def test_what_is_no_toml_is_said_to_be_none(tmp_path: Path) -> None:
    """A syntax error is a sentence with its line."""
    file = tmp_path / "mine.toml"
    file.write_text("question = \n", encoding="utf-8")
    with pytest.raises(SetupError, match=r"no TOML.*line 1"):
        resolve(str(file), directory=shipped_directory())


@pytest.mark.parametrize(
    ("load", "kind", "wanted"),
    [
        ({}, EndpointKind.STORAGE, 2000.0),
        ({"max_entities_per_s": 5000.0}, EndpointKind.STORAGE, 5000.0),
        ({"max_entities_per_s": math.inf}, EndpointKind.STORAGE, None),
        ({"emulator_max_entities_per_s": 10.0}, EndpointKind.STORAGE, 2000.0),
        ({}, EndpointKind.AZURITE, 500.0),
        ({"max_entities_per_s": 300.0}, EndpointKind.AZURITE, 300.0),
        ({"max_entities_per_s": 9000.0}, EndpointKind.AZURITE, 500.0),
        ({"emulator_max_entities_per_s": math.inf}, EndpointKind.AZURITE, None),
    ],
)
def test_the_rate_is_capped_by_the_kind_of_endpoint(
    load: dict[str, float], kind: EndpointKind, wanted: float | None
) -> None:
    """An account is held to one partition's target, an emulator to a cap of its own."""
    assert wanted_rate(made(load=load), kind) == wanted


def test_the_price_counts_loading_and_every_retry() -> None:
    """The stated bound covers loading and load, each with all its retries."""
    profile = made(
        keys={"partitions": 3, "rows_per_partition": 150},
        load={"users": 10, "spawn_rate_per_s": 10.0, "settle_s": 2.0, "run_time_s": 95},
        retry={"retries": 2},
    )
    assert most_transactions(profile, EndpointKind.STORAGE) == (6 * 3, 2000 * 100 * 3)


@pytest.mark.parametrize(
    ("strategy", "policy"),
    [
        ("none", NoRetry),
        ("fixed", FixedBackoff),
        ("exponential", ExponentialBackoff),
        ("schedule", ScheduledBackoff),
    ],
)
def test_a_strategy_names_its_policy(strategy: str, policy: type) -> None:
    """Each retry strategy of a profile is the policy of that name."""
    assert isinstance(retry_of(made(retry={"strategy": strategy})), policy)


def test_a_profile_can_ask_for_every_session_and_no_other() -> None:
    """The kinds of session in the schema are those that can be opened."""
    assert get_args(Session.model_fields["kind"].annotation) == SESSION_KINDS


@given(
    weights=st.dictionaries(
        st.sampled_from([kind for kind in Kind if kind is not Kind.QUERY]),
        st.floats(min_value=0.1, max_value=10),
        min_size=1,
    ),
    seed=st.integers(min_value=0, max_value=2**32),
)
def test_a_mix_sends_only_what_it_names(weights: dict[Kind, float], seed: int) -> None:
    """Whatever the weights, only kinds with a weight are sent; a delete without a row inserts."""
    profile = made(mix={str(kind): weight for kind, weight in weights.items()})
    workload = workload_of(profile, run_id="r", worker=0)
    rng = random.Random(seed)
    sent = {
        operation.kind for operation in itertools.islice(iter(lambda: workload.next(rng), None), 50)
    }
    allowed = set(weights)
    if Kind.DELETE in allowed:
        allowed.add(Kind.INSERT)
    assert sent <= allowed
