"""Tables around a run: what is not the run's own is refused or left alone."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import random
from collections.abc import Iterator

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.cli import main
from harness.commands.schema import schema_of
from harness.endpoint.admin.stores import leftovers
from harness.endpoint.admin.tables import (
    create_table,
    delete_run_entities,
    delete_table,
    list_tables,
    made_at,
    new_table_name,
    require_empty_table,
    table_client,
)
from harness.endpoint.credential import SharedKey
from harness.endpoint.endpoint import Endpoint
from harness.model.errors import SetupError
from harness.workload.budget import Budget, BudgetSpent
from harness.workload.entity_factory import RUN_PROPERTY
from tests.support.command import Command

pytestmark = pytest.mark.azurite

NOW = dt.datetime(2026, 11, 21, 0, 45, 12, tzinfo=dt.UTC)


@pytest.fixture
def table(endpoint: Endpoint) -> Iterator[str]:
    """A table of its own for each test."""
    name = new_table_name(dt.datetime.now(dt.UTC), random.SystemRandom())
    create_table(endpoint, name)
    yield name
    delete_table(endpoint, name)


def fill(endpoint: Endpoint, table: str, partition: str, rows: range, run: str) -> None:
    with table_client(endpoint, table) as client:
        client.submit_transaction(
            (
                "upsert",
                {"PartitionKey": partition, "RowKey": f"{partition}{row:04}", RUN_PROPERTY: run},
            )
            for row in rows
        )


@given(
    moment=st.datetimes(
        min_value=dt.datetime(2000, 1, 1),
        max_value=dt.datetime(2200, 1, 1),
    ),
    seed=st.integers(),
)
def test_a_name_tells_when_it_was_made(moment: dt.datetime, seed: int) -> None:
    """Each name is one that the service takes, and gives back its second."""
    utc = moment.replace(tzinfo=dt.UTC)
    name = new_table_name(utc, random.Random(seed))
    assert name.isalnum()
    assert 3 <= len(name) <= 63
    assert made_at(name) == utc.replace(microsecond=0)


@pytest.mark.parametrize(
    "name",
    [
        "stress",
        "orders",
        "stress20261121T004512Z1a2b3c4",
        "stress20261321T004512Z1a2b3c4d",
        "stress20261121T004512Z1a2b3c4dx",
        "mystress20261121T004512Z1a2b3c4d",
    ],
)
def test_other_names_are_not_ours(name: str) -> None:
    """A name that only looks like ours is left alone."""
    assert made_at(name) is None


def test_a_table_that_exists_is_refused(endpoint: Endpoint, table: str) -> None:
    """Creating a table a second time is a sentence, and the table stays."""
    with pytest.raises(SetupError, match="exists already"):
        create_table(endpoint, table)
    assert table in list_tables(endpoint)


@pytest.mark.parametrize("name", ["", "ab", "1abc", "with-dash", "a" * 64])
def test_a_name_that_no_table_can_have_is_told(endpoint: Endpoint, name: str) -> None:
    """The service's rule for names is told before anything is sent."""
    budget = Budget()
    with pytest.raises(SetupError, match="3 to 63 letters and digits"):
        require_empty_table(endpoint, name, budget)
    assert budget.spent == 0


def test_only_an_empty_table_is_taken(endpoint: Endpoint, table: str) -> None:
    """An empty table passes; one that holds an entity is refused with the entity's keys."""
    require_empty_table(endpoint, table)
    fill(endpoint, table, "p", range(2), "earlier")
    with pytest.raises(SetupError, match=r"not empty.*PartitionKey 'p', RowKey 'p0000'"):
        require_empty_table(endpoint, table)


def test_a_table_that_is_not_there_is_told(endpoint: Endpoint) -> None:
    """A missing table is named, with what to do."""
    with pytest.raises(SetupError, match="there is no table nosuchtable"):
        require_empty_table(endpoint, "nosuchtable")


def test_cleaning_deletes_the_runs_own_entities_alone(endpoint: Endpoint, table: str) -> None:
    """Over several partitions and pages the run's entities go, in transactions; others stay."""
    for partition in ("a", "b", "c"):
        for start in range(0, 500, 100):
            fill(endpoint, table, partition, range(start, start + 100), "mine")
    fill(endpoint, table, "b", range(1000, 1010), "another")
    fill(endpoint, table, "single", range(1), "mine")
    seen: list[int] = []
    budget = Budget()
    delete_run_entities(endpoint, table, "mine", seen.append, budget)
    assert seen[-1] == 1501
    assert seen == sorted(seen)
    # Pages of 1,000 split partition b once; each transaction but the split ones takes 100.
    assert 18 <= budget.spent <= 22
    with table_client(endpoint, table) as client:
        left = [entity[RUN_PROPERTY] for entity in client.list_entities()]
    assert left == ["another"] * 10


def test_deleting_twice_is_no_failure(endpoint: Endpoint) -> None:
    """A table that is gone counts as deleted."""
    name = new_table_name(NOW, random.SystemRandom())
    create_table(endpoint, name)
    delete_table(endpoint, name)
    delete_table(endpoint, name)
    assert name not in list_tables(endpoint)


def test_every_request_is_taken_from_the_budget(endpoint: Endpoint, table: str) -> None:
    """Requests are counted, and none is sent when the budget is used up."""
    budget = Budget(1)
    require_empty_table(endpoint, table, budget)
    assert budget.exhausted
    with pytest.raises(BudgetSpent):
        require_empty_table(endpoint, table, budget)


def test_refusals_are_sentences(endpoint: Endpoint) -> None:
    """A wrong key says what could not be done, and why, without showing the key."""
    wrong = dataclasses.replace(endpoint, credential=SharedKey(endpoint.account, "d3Jvbmc="))
    with pytest.raises(SetupError, match=r"cannot be created.*refuses the key") as caught:
        create_table(wrong, "sometable")
    assert "d3Jvbmc=" not in str(caught.value)


@pytest.fixture
def old_and_new(endpoint: Endpoint) -> Iterator[tuple[str, str, str]]:
    """A table made two hours ago, one made now, and one that is not ours."""
    now = dt.datetime.now(dt.UTC)
    rng = random.SystemRandom()
    names = (
        new_table_name(now - dt.timedelta(hours=2), rng),
        new_table_name(now, rng),
        "orders",
    )
    for name in names:
        create_table(endpoint, name)
    yield names
    for name in names:
        delete_table(endpoint, name)


def test_leftovers_are_old_and_ours(endpoint: Endpoint, old_and_new: tuple[str, str, str]) -> None:
    """Only tables of our form, and only those that are old enough, are leftovers."""
    old, new, _ = old_and_new
    now = dt.datetime.now(dt.UTC)
    assert list(leftovers(endpoint, now, 3600)) == [old]
    assert list(leftovers(endpoint, now, 0)) == [old, new]


def test_sweep_deletes_what_is_named_and_listed(
    endpoint: Endpoint, old_and_new: tuple[str, str, str], command: Command
) -> None:
    """The command lists leftovers, and deletes one of them when told its name."""
    old, new, other = old_and_new
    listed = command("sweep", "-H", endpoint.url)
    assert old in listed
    assert new not in listed
    swept = json.loads(command("sweep", "-H", endpoint.url, "--json"))
    jsonschema.validate(swept, schema_of("sweep"))
    assert [(part["table"], part["deleted"]) for part in swept["tables"]] == [(old, False)]
    assert old in list_tables(endpoint)
    assert "deleted" in command("sweep", "-H", endpoint.url, "--delete", old)
    assert sorted(list_tables(endpoint)) == sorted([new, other])


@pytest.mark.parametrize("named", [1, 2])
def test_sweep_deletes_nothing_where_one_name_is_no_leftover(
    endpoint: Endpoint,
    old_and_new: tuple[str, str, str],
    named: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A young table or a stranger among the names: exit code 2, everything stays."""
    old = old_and_new[0]
    assert main(["sweep", "-H", endpoint.url, "--delete", old, old_and_new[named]]) == 2
    wanted = f"no leftover table older than 3600 s has the name {old_and_new[named]}"
    assert wanted in capsys.readouterr().err
    assert set(old_and_new) <= set(list_tables(endpoint))


def test_sweep_asks_no_remote_host_without_consent(capsys: pytest.CaptureFixture[str]) -> None:
    """A remote account has to be said again before anything is sent to it."""
    code = main(["sweep", "-H", "https://127.0.0.1.invalid/devstoreaccount1"])
    assert code == 2
    assert capsys.readouterr().err.startswith("harness: the environment has no credential")
