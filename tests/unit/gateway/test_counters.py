"""The gateway's own counts, and which partitions have a row in them."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harness.gateway.counters import Counters, Disposition
from harness.gateway.requests import Asked
from harness.gateway.rules.counting import Count
from harness.gateway.rules.moving import Move
from harness.model.operation import FOLDED
from harness.model.partition import EXACT_PARTITIONS
from tests.support.asked import about_entity
from tests.support.examples import examples

PASSED = Disposition(result="passed", sent="204", upstream="204")


def point(key: str, table: str = "table") -> Asked:
    """A point query."""
    return about_entity("GET", key, table=table)


def told(counters: Counters) -> dict[str, Any]:
    """The page."""
    page: dict[str, Any] = json.loads(
        counters.to_json(address="here", upstream="there", limits={}, moves=(), moved=0)
    )
    return page


def test_counts_are_exact_in_sum_whatever_the_number_of_partitions() -> None:
    """Partitions over the cap are folded into one; nothing is lost."""
    counters = Counters()
    for number in range(3 * EXACT_PARTITIONS):
        counters.add(point(f"p{number % (2 * EXACT_PARTITIONS)}"), PASSED, Count(entities=2))
    page = told(counters)
    assert page["requests"] == 3 * EXACT_PARTITIONS
    assert sum(row["requests"] for row in page["counts"]) == 3 * EXACT_PARTITIONS
    assert sum(row["entities"] for row in page["counts"]) == 6 * EXACT_PARTITIONS
    assert len({row["partition"] for row in page["counts"]}) == EXACT_PARTITIONS + 1
    assert FOLDED in {row["partition"] for row in page["counts"]}


def test_labels_are_escaped() -> None:
    """A key with quotes, backslashes and line ends stays one Prometheus label."""
    counters = Counters()
    counters.add(point('a"b\\c\nd'), Disposition(result="passed", sent="204"), Count(entities=1))
    assert 'partition="a\\"b\\\\c\\nd"' in counters.to_prometheus(moved=0)


def test_a_partition_that_becomes_heavy_late_gets_a_row() -> None:
    """After a read of more partitions than have rows, 3,000 writes to one get a row."""
    counters = Counters()
    for number in range(EXACT_PARTITIONS + 100):
        counters.add(point(f"cold{number}"), PASSED, Count(entities=1))
    for _ in range(3000):
        counters.add(point("hot"), PASSED, Count(entities=1))
    rows = {row["partition"]: row for row in told(counters)["counts"]}
    assert rows["hot"]["requests"] > 2900
    assert not rows["hot"]["exact"]
    assert sum(row["requests"] for row in rows.values()) == EXACT_PARTITIONS + 3100
    assert len(rows) == EXACT_PARTITIONS + 1


def test_spellings_of_a_table_are_one_table() -> None:
    """Counts of ``Tab`` and ``TAB`` are in one row, under the spelling that came first."""
    counters = Counters()
    for table in ("Tab", "TAB", "tab"):
        counters.add(point("p", table), PASSED, Count(entities=1))
    (row,) = told(counters)["counts"]
    assert (row["table"], row["requests"]) == ("Tab", 3)


def test_a_move_names_its_table_as_the_counts_do() -> None:
    """The model knows tables in lower case; readers know them as clients wrote them."""
    counters = Counters()
    counters.add(point("p", "Orders"), PASSED)
    move = Move(
        at_s=1.0, until_s=2.0, table="orders", partition_key="p", from_server=0, to_server=1
    )
    page = json.loads(
        counters.to_json(address="here", upstream="there", limits={}, moves=[move], moved=1)
    )
    assert [found["table"] for found in page["moves"]] == ["Orders"]


def test_scanned_and_returned_entities_are_counted_apart() -> None:
    """A scan has what it scanned, what it returned, and what of the first is an estimate."""
    counters = Counters()
    counters.add(point("p"), PASSED, Count(entities=1000, returned=5))
    counters.add(point("p"), PASSED, Count(entities=300, returned=2, estimated=300))
    (row,) = told(counters)["counts"]
    assert (row["entities"], row["returned"], row["estimated"]) == (1300, 7, 300)
    assert 'gateway_entities_returned_total{table="table",partition="p"' in counters.to_prometheus(
        moved=0
    )


@examples(20)
@given(st.lists(st.tuples(st.integers(0, 600), st.integers(0, 50)), max_size=3000))
def test_rows_change_hands_and_no_request_is_lost(requests: list[tuple[int, int]]) -> None:
    """Whatever comes, sums are exact, rows are bounded, and an exact row has every request."""
    counters = Counters()
    sent: dict[str, int] = {}
    for number, entities in [(number, 1) for number in range(400)] + requests:
        # Squared, so that some partitions are much heavier than others.
        key = f"p{number * number // 600}"
        sent[key] = sent.get(key, 0) + 1
        counters.add(point(key), PASSED, Count(entities=entities))
    rows = told(counters)["counts"]
    assert sum(row["requests"] for row in rows) == sum(sent.values())
    assert sum(row["entities"] for row in rows) == 400 + sum(number for _, number in requests)
    assert len(rows) <= EXACT_PARTITIONS + 1
    for row in rows:
        if row["partition"] == FOLDED:
            continue
        assert row["requests"] <= sent[row["partition"]]
        if row["exact"]:
            assert row["requests"] == sent[row["partition"]]
