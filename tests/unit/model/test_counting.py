"""The counting rule: inserted, updated, deleted, scanned."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.operation import (
    ALL_KEYS,
    WHOLE_TABLE,
    KeyRange,
    Kind,
    Operation,
    transaction,
)
from harness.model.outcome import Outcome
from harness.model.target import entities_scanned, entity_count


def still(entities: int) -> KeyRange:
    """A range that nobody writes."""
    return KeyRange(entities=entities, exact=True)


STILL, MOVING = still(5000), KeyRange(entities=5000)


def query(key_range: KeyRange = ALL_KEYS, **rest: Any) -> Operation:
    return Operation(kind=Kind.QUERY, partition_key="p", key_range=key_range, **rest)


def over_all(**bounds: Any) -> Operation:
    return Operation(kind=Kind.QUERY, partition_key=WHOLE_TABLE, key_range=KeyRange(**bounds))


def parts(count: int) -> tuple[Operation, ...]:
    return tuple(
        Operation(kind=Kind.INSERT, partition_key="p", row_key=str(number))
        for number in range(count)
    )


@pytest.mark.parametrize(
    ("sentence", "operation", "returned", "whole", "expected"),
    [
        ("all of a known range came", query(STILL), 5000, True, (5000, False)),
        ("nothing came of an empty range", query(still(0)), 0, True, (0, False)),
        ("a row is missing of a known range", query(STILL), 4999, True, (4999, True)),
        ("a row more came than there are", query(STILL), 5001, True, (5001, True)),
        ("the range is being written", query(MOVING), 5000, True, (5000, True)),
        ("nothing is known of the range", query(), 50, True, (50, True)),
        ("a page is missing", query(STILL), 1000, False, (1000, True)),
        ("the first page failed", query(STILL), 0, False, (0, True)),
        ("a filter let 50 through", query(STILL, filter="A eq 1"), 50, True, (5000, False)),
        ("a filter let nothing through", query(STILL, filter="A eq 1"), 0, True, (5000, False)),
        ("a filter let all through", query(STILL, filter="A eq 1"), 5000, True, (5000, False)),
        ("a filter over what is written", query(MOVING, filter="A eq 1"), 50, True, (5000, True)),
        ("more than there were, filtered", query(STILL, filter="A eq 1"), 5001, True, (5001, True)),
        ("a filter over who knows what", query(filter="A eq 1"), 50, True, (50, True)),
        ("a filter, and a page missing", query(STILL, filter="A eq 1"), 50, False, (50, True)),
        ("an empty filter is none", query(STILL, filter=""), 5000, True, (5000, False)),
        ("$top stopped the scan", query(STILL, top=10), 10, True, (10, False)),
        ("$top stopped a moving scan", query(MOVING, top=10), 10, True, (10, True)),
        ("$top is all there is", query(still(10), top=10), 10, True, (10, False)),
        ("$top is more than there is", query(still(7), top=10), 7, True, (7, False)),
        ("$top brought too few", query(STILL, top=10), 9, True, (9, True)),
        ("$top brought more than there are", query(still(7), top=10), 10, True, (10, True)),
        ("$top stopped a filter", query(STILL, top=10, filter="A eq 1"), 10, True, (10, True)),
        ("$top over a filter to the end", query(STILL, top=10, filter="A"), 9, True, (5000, False)),
        ("a page missing under $top", query(STILL, top=2000), 1000, False, (1000, True)),
        ("a projection changes nothing", query(STILL, select=("A",)), 5000, True, (5000, False)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_a_query_scanned(
    sentence: str, operation: Operation, returned: int, whole: bool, expected: tuple[int, bool]
) -> None:
    """What was scanned follows from what is known of the range and from what came of it."""
    assert entities_scanned(operation, returned, whole=whole) == expected, sentence


counts = st.integers(0, 20_000)
ranges = st.just(ALL_KEYS) | st.builds(KeyRange, entities=counts, exact=st.booleans())
queries = st.builds(
    query,
    ranges,
    filter=st.none() | st.just("A eq 1"),
    top=st.none() | st.integers(1, 20_000),
    select=st.just(()) | st.just(("A",)),
)


@given(queries, counts, st.booleans())
def test_exact_is_known_whole_and_still(operation: Operation, returned: int, whole: bool) -> None:
    """A count is exact only where the range is known, nobody writes it, and no page is missing; it
    is never less than what came back."""
    count, estimated = entities_scanned(operation, returned, whole=whole)
    assert count >= returned
    if not estimated:
        assert whole
        present = operation.key_range.entities
        assert present is not None
        assert operation.key_range.exact
        assert count <= present
        assert count in (returned, present)


@given(st.lists(st.booleans(), max_size=300), st.none() | st.integers(1, 400), st.booleans())
def test_exact_is_what_a_service_scans(passes: list[bool], top: int | None, filtered: bool) -> None:
    """Against a service that scans row by row until it has enough: exact is equal, else less."""
    scanned = returned = 0
    for one in passes:
        if top is not None and returned >= top:
            break
        scanned += 1
        returned += one or not filtered
    operation = query(still(len(passes)), top=top, filter="A eq 1" if filtered else None)
    count, estimated = entities_scanned(operation, returned, whole=True)
    assert count == scanned or (estimated and count < scanned)
    assert estimated is (filtered and top is not None and returned >= top)


@given(ranges, st.none() | st.integers(1, 20_000), st.booleans(), counts)
def test_what_is_asked_is_what_is_scanned(
    key_range: KeyRange, top: int | None, filtered: bool, returned: int
) -> None:
    """Before a query is sent it counts for what it will have scanned, if its range is known."""
    operation = query(key_range, top=top, filter="A eq 1" if filtered else None)
    asked = operation.entities_asked
    assert asked >= 1
    if key_range.entities is None:
        assert asked == 1
    elif filtered:
        assert asked == max(1, key_range.entities)
    else:
        comes = key_range.entities if top is None else min(top, key_range.entities)
        assert asked == max(1, comes)
        assert entities_scanned(operation, comes, whole=True)[0] == comes


@pytest.mark.parametrize("size", [1, 2, 100])
def test_a_transaction_asks_for_its_parts(size: int) -> None:
    """A transaction counts each of its operations, in their partition."""
    made = transaction(parts(size))
    assert (made.entities_asked, made.partition_key) == (size, "p")


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind is not Kind.TRANSACTION])
def test_anything_else_asks_for_one(kind: Kind) -> None:
    """A single operation counts one, a query of which nothing is known too."""
    assert Operation(kind=kind, partition_key="p").entities_asked == 1


@pytest.mark.parametrize("outcome", list(Outcome))
@pytest.mark.parametrize("kind", list(Kind))
def test_an_operation_counts_by_how_it_ended(kind: Kind, outcome: Outcome) -> None:
    """Writes count with success alone, other reads also for nothing, queries for scans.

    A get and a peek of messages count what came, as queries do.
    """
    operation = (
        transaction(parts(7))
        if kind is Kind.TRANSACTION
        else Operation(kind=kind, partition_key="p", row_key="r")
    )
    expected = 0
    if kind is Kind.QUERY or kind.receives:
        expected = 33
    elif outcome.succeeded or (kind.reads and outcome is Outcome.NOT_FOUND):
        expected = 7 if kind is Kind.TRANSACTION else 1
    assert entity_count(operation, outcome, 33) == expected


@pytest.mark.parametrize(
    ("operation", "label"),
    [
        (query(), "partition_scan"),
        (query(filter="A eq 1", top=3), "partition_scan"),
        (query(KeyRange(row_from="a")), "row_range_scan"),
        (query(KeyRange(row_before="a")), "row_range_scan"),
        (over_all(), "full_table_scan"),
        (over_all(row_from="a", row_before="b"), "full_table_scan"),
        (over_all(partition_from="a"), "partition_range_scan"),
        (over_all(partition_before="a"), "partition_range_scan"),
        (query(name="by_bib"), "by_bib"),
        (Operation(kind=Kind.POINT_QUERY, partition_key="p"), "point_query"),
        (Operation(kind=Kind.INSERT, partition_key="p", name="sign_up"), "sign_up"),
        (transaction(parts(2)), "transaction"),
        (transaction(parts(2), name="transfer"), "transfer"),
    ],
)
def test_operations_are_called_by_their_documented_type(operation: Operation, label: str) -> None:
    """A query is named by what it scans, rows of a partition or of all; a name of its own wins."""
    assert operation.label == label
