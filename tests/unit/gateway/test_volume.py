"""A PartitionKey of Cosmos DB that is full, and what deletions and replacements free."""

from __future__ import annotations

import collections
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.gateway.limits import GatewayLimits, RequestUnitLimits
from harness.gateway.model import Model
from harness.gateway.reading import Answered
from harness.gateway.requests import Asked, RowWrite, Weight
from harness.gateway.rules.sizes import VolumeRule
from harness.model.operation import Kind
from harness.model.outcome import Scope

DONE = Answered(status=204)
MOST = 10_000


def model_of(**settings: Any) -> Model:
    """A model with plenty of throughput, whose PartitionKeys store 10,000 bytes each."""
    given = {"provisioned_ru_per_s": 1e6, "logical_partition_bytes": MOST, **settings}
    return Model(GatewayLimits(cosmos=RequestUnitLimits(**given)), 0.0)


def write(row: str, size: int = 1000, kind: Kind = Kind.INSERT, **more: str) -> Asked:
    """A write of one entity."""
    key, table = more.get("key", "k"), more.get("table", "table")
    rows = (RowWrite(key, row, kind is not Kind.DELETE),)
    return Asked(kind=kind, table=table, partition_key=key, rows=rows, weights=(Weight(size),))


def sent(model: Model, asked: Asked) -> str:
    """The rule that refuses a write; one that passes is executed."""
    rule = model.decide(asked, 0.0).rule
    if not rule:
        model.answered(asked, DONE, 0.0)
    return rule


def filled(**settings: Any) -> Model:
    """A model with one PartitionKey that stores all that it may: ten rows of 1,000 bytes."""
    model = model_of(**settings)
    assert not any(sent(model, write(str(number))) for number in range(10))
    return model


def test_a_full_key_refuses_what_adds_to_it() -> None:
    """403 without a wait and without a charge; the scope is not that of throttling."""
    model = filled()
    assert model.units is not None
    before = model.units.page()["request_units_hundredths"]
    refused = model.decide(write("new", 1), 0.0)
    assert (refused.rule, refused.status) == ("volume", 403)
    assert (refused.retry_after_ms, refused.scope) == (0, Scope.NONE)
    assert model.units.page()["request_units_hundredths"] == before
    assert model.units.message("volume") == "Partition key reached maximum size of 0.00001 GB"
    assert sent(model, write("new", key="other")) == ""
    assert sent(model, write("new", table="other")) == ""


@pytest.mark.parametrize("kind", [Kind.UPSERT_REPLACE, Kind.UPDATE_REPLACE])
def test_a_replacement_frees_what_it_replaces(kind: Kind) -> None:
    """A full key takes replacements that are not larger, and a smaller one makes room."""
    model = filled()
    assert sent(model, write("3", 1001, kind)) == "volume"
    assert sent(model, write("3", 1000, kind)) == ""
    assert sent(model, write("3", 400, kind)) == ""
    assert sent(model, write("new", 601)) == "volume"
    assert sent(model, write("new", 600)) == ""


def test_a_deletion_frees_the_size_of_the_entity() -> None:
    """Exactly what was written, however large the others are; twice frees nothing more."""
    model = model_of()
    assert sent(model, write("small", 100)) == sent(model, write("large", 9900)) == ""
    for _ in range(2):
        assert sent(model, write("small", kind=Kind.DELETE)) == ""
    assert sent(model, write("new", 101)) == "volume"
    assert sent(model, write("new", 100)) == ""


@pytest.mark.parametrize("kind", [Kind.UPSERT_MERGE, Kind.UPDATE_MERGE])
def test_a_merge_never_makes_an_entity_smaller(kind: Kind) -> None:
    """What it leaves of the entity is unknown: at least as much as was there."""
    model = filled()
    assert sent(model, write("3", 10, kind)) == ""
    assert sent(model, write("new", 1)) == "volume"
    assert sent(model, write("3", 1001, kind)) == "volume"


def test_a_transaction_is_refused_as_a_whole() -> None:
    """Its parts count together: what it deletes makes room for what it inserts."""
    model = filled()
    rows = (RowWrite("k", "3", False), RowWrite("k", "new"))
    kinds = (Kind.DELETE, Kind.INSERT)
    both = Asked(kind=Kind.TRANSACTION, table="table", partition_key="k", rows=rows, kinds=kinds)
    assert sent(model, both._replace(weights=(Weight(0), Weight(1001)))) == "volume"
    assert sent(model, both._replace(weights=(Weight(0), Weight(1000)))) == ""


def test_a_failed_write_stores_nothing() -> None:
    """Neither an insert that meets a conflict, nor a deletion that finds nothing."""
    model = filled()
    model.answered(write("3", kind=Kind.DELETE), Answered(status=404), 0.0)
    assert sent(model, write("new", 1)) == "volume"
    other = model_of()
    other.answered(write("1", 9999), Answered(status=409), 0.0)
    assert sent(other, write("1", MOST)) == ""


def test_a_dropped_table_frees_everything() -> None:
    """Also in the physical partitions, which stay split."""
    model = filled(partition_bytes=10_000, physical_partitions=1)
    for number in range(20):
        assert sent(model, write("1", key=f"other-{number}")) == ""
    assert model.units is not None
    splits = len(model.units.splits)
    assert splits > 0
    model.answered(Asked(kind=None, table="table", drops_table=True), DONE, 0.0)
    page = model.units.page()
    assert [part["stored_bytes"] for part in page["physical_partitions"]] == [0] * (splits + 1)
    assert page["largest_logical_partition"]["stored_bytes"] == 0
    assert sent(model, write("new", MOST)) == ""


def test_throttling_comes_before_the_size() -> None:
    """A request that is refused for now says nothing of what is stored."""
    # Ten inserts cost 49.5 RU, and a physical partition has 49.
    model = filled(provisioned_ru_per_s=147.0)
    assert model.decide(write("new"), 0.0).rule == "throughput"
    assert model.decide(write("new"), 1e6).rule == "volume"


def test_rows_beyond_the_memory_have_the_mean_size() -> None:
    """The sums stay right while nothing is updated or deleted, and about right afterwards."""
    rule = VolumeRule(RequestUnitLimits(logical_partition_bytes=MOST), most_rows=4)
    for number in range(10):
        rule.wrote(write(str(number)))
    assert rule.largest == ("table", "k", 10_000)
    assert rule.exceeds(write("new", 1))
    assert rule.wrote(write("9", kind=Kind.DELETE)) == {"k": -1000}
    assert rule.wrote(write("8", 1500, Kind.UPDATE_REPLACE)) == {"k": 500}
    assert rule.wrote(write("0", kind=Kind.DELETE)) == {"k": -1000}


def test_keys_beyond_the_memory_are_never_full() -> None:
    """They grow only; a key that stores nothing any more makes room for another."""
    rule = VolumeRule(RequestUnitLimits(logical_partition_bytes=MOST), most_rows=2)
    for key in "abc":
        assert rule.wrote(write("1", key=key)) == {key: 1000}
    assert rule.exceeds(write("2", MOST, key="b"))
    assert not rule.exceeds(write("2", MOST, key="c"))
    assert rule.wrote(write("1", kind=Kind.DELETE, key="c")) == {"c": 0}
    assert rule.wrote(write("1", kind=Kind.DELETE, key="a")) == {"a": -1000}
    rule.wrote(write("2", key="c"))
    assert rule.exceeds(write("3", MOST, key="c"))


KINDS = st.sampled_from([Kind.INSERT, Kind.UPSERT_REPLACE, Kind.UPSERT_MERGE, Kind.DELETE])


@given(
    st.lists(
        st.tuples(KINDS, st.sampled_from("ab"), st.sampled_from("123456"), st.integers(1, 4000)),
        max_size=80,
    )
)
def test_the_sums_are_those_of_the_rows(steps: list[tuple[Kind, str, str, int]]) -> None:
    """Of each key, never above the limit; physical partitions store the same bytes together."""
    model = model_of(partition_bytes=10_000)
    there: dict[str, dict[str, int]] = collections.defaultdict(dict)
    for kind, key, row, size in steps:
        asked, rows = write(row, size, kind, key=key), there[key]
        if (kind is Kind.INSERT and row in rows) or (kind is Kind.DELETE and row not in rows):
            continue
        after = dict(rows)
        after[row] = max(size, rows.get(row, 0)) if kind is Kind.UPSERT_MERGE else size
        if kind is Kind.DELETE:
            del after[row]
        total, before = sum(after.values()), sum(rows.values())
        assert (sent(model, asked) == "volume") is (total > max(MOST, before))
        if total <= max(MOST, before):
            there[key] = after
    assert model.units is not None
    page = model.units.page()
    stored = [sum(rows.values()) for rows in there.values()]
    assert page["largest_logical_partition"]["stored_bytes"] == max(stored, default=0)
    assert sum(part["stored_bytes"] for part in page["physical_partitions"]) == sum(stored)
