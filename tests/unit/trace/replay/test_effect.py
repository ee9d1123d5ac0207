"""The order in which overlapping operations took effect."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from harness.model.operation import WHOLE_TABLE, Kind
from harness.trace.operations import TracedOperation
from harness.trace.replay.preparation import in_order_of_effect
from tests.support.traced import traced


def row(kind: Kind, at_ms: int, done_ms: int, key: str = "p", name: str = "") -> TracedOperation:
    return traced(kind, key, name, at_ms=at_ms, done_ms=done_ms)


def order(*rows: TracedOperation) -> list[tuple[str | None, int]]:
    return [(one.row_key, one.at_ms) for one in in_order_of_effect(rows)]


def test_a_write_that_was_answered_after_a_query_comes_after_it() -> None:
    """It is due with the query that did not see it; one that was answered before stays."""
    assert order(
        row(Kind.INSERT, 10, 90, name="late"),
        row(Kind.INSERT, 20, 30, name="early"),
        row(Kind.QUERY, 25, 40, name="query"),
        row(Kind.POINT_QUERY, 50, 51, name="read"),
    ) == [("early", 20), ("query", 25), ("late", 25), ("read", 50)]


def test_it_may_be_moved_again() -> None:
    """Two queries, of its partition and of the table, that a write overlapped."""
    assert order(
        row(Kind.INSERT, 10, 90, name="late"),
        row(Kind.QUERY, 25, 40, name="first"),
        row(Kind.QUERY, 60, 70, key=WHOLE_TABLE, name="second"),
    ) == [("first", 25), ("second", 60), ("late", 60)]


def test_others_do_not_move() -> None:
    """Neither updates, nor writes to another partition, nor those that took very long."""
    rows = (
        row(Kind.UPDATE_MERGE, 1, 90, name="update"),
        row(Kind.INSERT, 2, 90, key="q", name="elsewhere"),
        row(Kind.INSERT, 3, 20_000, name="long"),
        row(Kind.QUERY, 25, 40, name="query"),
    )
    assert order(*rows) == [(one.row_key, one.at_ms) for one in rows]


@given(seed=st.integers(0, 10**9), count=st.integers(0, 80))
def test_nothing_is_lost_and_instants_never_go_back(seed: int, count: int) -> None:
    """Every operation comes once, in order of instants, none earlier than it was."""
    rng = random.Random(seed)
    rows, at_ms = [], 0
    for number in range(count):
        at_ms += rng.randrange(20)
        took_ms = rng.choice((1, 30, 200, 6000))
        kind = rng.choice((Kind.INSERT, Kind.UPDATE_MERGE, Kind.POINT_QUERY, Kind.QUERY))
        keys = ("p", "q", WHOLE_TABLE) if kind is Kind.QUERY else ("p", "q")
        rows.append(row(kind, at_ms, at_ms + took_ms, rng.choice(keys), str(number)))
    found = list(in_order_of_effect(rows))
    assert sorted(int(one.row_key or 0) for one in found) == list(range(count))
    assert [one.at_ms for one in found] == sorted(one.at_ms for one in found)
    for one in found:
        assert rows[int(one.row_key or 0)].at_ms <= one.at_ms <= one.done_ms
