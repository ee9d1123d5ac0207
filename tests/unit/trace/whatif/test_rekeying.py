"""Operations under another scheme: their loads, and what the scheme costs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.operation import WHOLE_TABLE, Kind
from harness.model.outcome import Outcome
from harness.trace.operations import (
    Batch,
    Detail,
    TracedOperation,
    TracedParts,
    TracedQuery,
)
from harness.trace.whatif.rekeying import Rekeying
from harness.trace.whatif.scheme import as_recorded, parse_scheme
from tests.support.traced import traced

UPSERT = Kind.UPSERT_REPLACE
BUCKETS = {"keys": {"partition_key": "{partition_key}-{row_key:bucket4}"}}
BY_TENANT = {
    "match": {"partition_key": "(?P<tenant>[^_]+)_.*"},
    "keys": {"partition_key": "{tenant}"},
}


def rekeyed(
    content: dict[str, Any] | None, *operations: TracedOperation
) -> tuple[Rekeying, list[tuple[str, int]]]:
    scheme = as_recorded() if content is None else parse_scheme("mine", content, "mine.toml")
    rekeying = Rekeying(scheme)
    columns = [list(column) for column in zip(*operations, strict=True)]
    loads = rekeying.loads(Batch(*columns))
    return rekeying, list(zip(loads.names, loads.amounts, strict=True))


def test_a_transaction_that_spans_partitions_is_split() -> None:
    """Its entities go to the partitions of its parts, and it counts as split."""
    rows = tuple(f"r{place}" for place in range(8))
    kinds, sizes = (Kind.INSERT,) * 8, (100,) * 8
    rekeying, loads = rekeyed(
        BUCKETS, traced(Kind.TRANSACTION, entities=8, detail=TracedParts(kinds, rows, sizes))
    )
    assert rekeying.price.split == rekeying.price.transactions == 1
    assert len(loads) > 1
    assert sum(count for _, count in loads) == 8


def test_a_transaction_that_is_not_matched_is_one_operation() -> None:
    """However many parts it has, so that no more than all operations are not matched."""
    parts = TracedParts((Kind.INSERT,) * 2, ("r1", "r2"), (100, 100))
    rekeying, loads = rekeyed(BY_TENANT, traced(Kind.TRANSACTION, entities=2, detail=parts))
    assert rekeying.price.unmatched == rekeying.price.operations == 1
    assert loads == [("p", 2)]


ROW_FIRST = {"keys": {"partition_key": "{row_key}", "row_key": "{partition_key}"}}
RANGE = TracedQuery(row_from="a", row_before="b")
TABLE_RANGE = TracedQuery(partition_from="a", partition_before="c")


@pytest.mark.parametrize(
    ("content", "key", "query", "names", "price"),
    [
        (BUCKETS, "p", RANGE, ["p-0", "p-1", "p-2", "p-3"], {"spread": 1, "most_needed": 4}),
        (ROW_FIRST, "p", TracedQuery(None, None, "a", "c"), [WHOLE_TABLE], {"scans": 1}),
        (BY_TENANT, WHOLE_TABLE, TABLE_RANGE, [WHOLE_TABLE], {"scans": 1}),
        (BY_TENANT, WHOLE_TABLE, TracedQuery(), [WHOLE_TABLE], {"scans": 0}),
        ({"keys": {"row_key": "{row_key:hash4}-{row_key}"}}, "p", RANGE, ["p"], {"unbounded": 1}),
        ({"keys": {"row_key": "{partition_key}-{row_key}"}}, "p", RANGE, ["p"], {"unbounded": 0}),
        (BY_TENANT, "other", None, ["other"], {"unmatched": 1}),
    ],
    ids=[
        "a range of rows needs every bucket that its rows may be in",
        "partitions that depend on rows of a range cannot be told",
        "a range of recorded PartitionKeys is no range of the new ones",
        "a scan of the table was one before",
        "rows in another order make a range a scan of the partition",
        "a range stays one if the recorded RowKey ends the new one",
        "a query of a partition that no pattern matches stays there",
    ],
)
def test_the_price_of_a_query(
    content: dict[str, Any], key: str, query: Detail, names: list[str], price: dict[str, int]
) -> None:
    """Its load is divided evenly over the partitions that it needs."""
    rekeying, loads = rekeyed(content, traced(Kind.QUERY, key, entities=10, detail=query))
    assert [name for name, _ in loads] == names
    amounts = [count for _, count in loads]
    assert sum(amounts) == 10
    assert max(amounts) - min(amounts) <= 1
    assert {name: getattr(rekeying.price, name) for name in price} == price


def test_two_entities_with_the_same_new_keys_collide_once() -> None:
    """The same entity twice is no collision."""
    made = (traced(UPSERT, f"t_{part}", "r") for part in (1, 2, 2))
    rekeying, loads = rekeyed(BY_TENANT, *made)
    assert loads == [("t", 1)] * 3
    assert rekeying.collisions.count == 1


@pytest.mark.parametrize("outcome", Outcome)
def test_wanted_operations_count_although_they_were_refused(outcome: Outcome) -> None:
    """An insert that was not served counts an entity; one that was answered is only a request."""
    insert = traced(Kind.INSERT, "p", "r", outcome=outcome, entities=0)
    assert rekeyed(None, insert)[1] == [("p", 1 if outcome.wanted_again else 0)]


def test_unknown_and_unmatched_keys_are_counted() -> None:
    """An operation without keys is left out; one that no pattern matches keeps its keys."""
    rekeying, loads = rekeyed(
        BY_TENANT,
        traced(UPSERT, None, None),
        traced(UPSERT, "other", "r"),
    )
    assert loads == [("other", 1)]
    assert (rekeying.price.unknown, rekeying.price.unmatched) == (1, 1)


def test_new_keys_that_the_service_refuses_are_counted() -> None:
    """With the first of them, and a reason. A transaction counts once."""
    content = {"keys": {"row_key": "{partition_key}{partition_key}_{row_key}"}}
    long = "k" * 600
    parts = TracedParts((Kind.INSERT,) * 2, ("r1", "r2"), (100, 100))
    rekeying, loads = rekeyed(
        content,
        traced(UPSERT, "p", "r"),
        traced(UPSERT, long, "r"),
        traced(Kind.TRANSACTION, long, entities=2, detail=parts),
    )
    assert rekeying.price.refused == 2
    assert "RowKey 'kkk" in rekeying.refused
    assert "has 1,202 characters; a key has at most 1,024" in rekeying.refused
    assert sum(count for _, count in loads) == 4
    content = {"keys": {"partition_key": "{partition_key}{partition_key}"}}
    rekeying, _ = rekeyed(content, traced(UPSERT, long, "r"), traced(UPSERT, "a#", "r"))
    assert (rekeying.price.refused, rekeying.refused[:16]) == (2, "PartitionKey 'kk")


@given(st.lists(st.tuples(st.text(max_size=3), st.text(max_size=3)), min_size=1, max_size=40))
def test_entities_are_kept_by_every_scheme(keys: list[tuple[str, str]]) -> None:
    """The loads of any scheme have as many entities as the operations."""
    operations = [traced(UPSERT, *key) for key in keys]
    for content in (None, BUCKETS, BY_TENANT):
        _, loads = rekeyed(content, *operations)
        assert sum(count for _, count in loads) == len(keys)


def test_an_entity_that_keeps_its_keys_may_have_the_new_ones_of_another() -> None:
    """Where a property of it is not known."""
    content = {
        "properties": ["Customer"],
        "keys": {"partition_key": "{partition_key}-{Customer:bucket4}"},
    }
    known = traced(UPSERT, "p", "r", properties={"Customer": "c"})
    _, [(taken, _)] = rekeyed(content, known)
    rekeying, _ = rekeyed(content, known, traced(UPSERT, taken, "r"))
    assert rekeying.price.unvalued == 1
    assert rekeying.collisions.count == 1


PARTS = TracedParts((Kind.INSERT,) * 2, ("r1", "r2"), (100, 100))
ANY = st.one_of(
    st.builds(
        traced,
        st.sampled_from([UPSERT, Kind.INSERT, Kind.DELETE, Kind.POINT_QUERY]),
        st.none() | st.text("ab#/é", max_size=3),
        st.none() | st.text(max_size=3),
        outcome=st.sampled_from(Outcome),
        table=st.sampled_from(["", "other"]),
        entities=st.integers(0, 2),
    ),
    st.builds(
        traced,
        st.just(Kind.TRANSACTION),
        st.none() | st.text("ab#", max_size=2),
        entities=st.integers(0, 2),
        detail=st.sampled_from([None, PARTS]),
    ),
    st.builds(traced, st.just(Kind.QUERY), st.text("ab", max_size=2), detail=st.just(RANGE)),
)


@given(
    st.lists(ANY, min_size=1, max_size=20),
    st.sampled_from(
        ["{partition_key:hash2}-{partition_key}", "t{partition_key}", "{partition_key}_"]
    ),
)
def test_keys_that_keep_partitions_are_rekeyed_as_any_others(
    operations: list[TracedOperation], template: str
) -> None:
    """A pattern that matches every key changes nothing but the way in which they are rekeyed."""
    keys = {"keys": {"partition_key": template}}
    mine, loads = rekeyed(keys, *operations)
    other, expected = rekeyed({**keys, "match": {"partition_key": "(?s:.*)"}}, *operations)
    assert mine.scheme.keeps_partitions
    assert not other.scheme.keeps_partitions
    assert (loads, mine.price, mine.refused) == (expected, other.price, other.refused)
    assert mine.collisions.count == other.collisions.count == 0
