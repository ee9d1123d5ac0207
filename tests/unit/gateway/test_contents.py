"""What is known of the rows of tables, and what a query of these scans."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.gateway import contents as contents_module
from harness.gateway.answers import GatewayAnswer
from harness.gateway.contents import Contents, LookAhead
from harness.gateway.key_ranges import index_range
from harness.gateway.limits import GatewayLimits, Rate
from harness.gateway.model import Model
from harness.gateway.reading import Answered, read_answer
from harness.gateway.requests import Asked, RowWrite, read_request
from tests.support.asked import about_entity, query

KEYS = st.sampled_from(["", "a", "b", "b0", "c"])
WRITES = st.lists(st.builds(RowWrite, KEYS, KEYS, st.booleans()), max_size=60)
FILTERS = [
    "",
    "PartitionKey eq 'b'",
    "PartitionKey eq 'b' and RowKey ge 'a' and RowKey lt 'b0'",
    "PartitionKey gt 'a' and PartitionKey le 'b0'",
    "PartitionKey eq 'a' or PartitionKey eq 'c' and RowKey eq 'b'",
    "not (PartitionKey eq 'b')",
    "Count eq 5",
]


@given(WRITES, st.sampled_from(FILTERS), st.tuples(KEYS, KEYS))
def test_a_scan_is_of_the_rows_that_are_stored(
    writes: list[RowWrite], text: str, since: tuple[str, str]
) -> None:
    """After any writes a scan holds the rows in its ranges that were not deleted again."""
    known = Contents()
    known.made("table")
    stored: set[tuple[Any, Any]] = set()
    for write in writes:
        known.wrote("table", [write])
        key = (write.partition_key, write.row_key)
        stored = stored | {key} if write.stays else stored - {key}
    assert known.rows == len(stored)
    for ranges in (index_range(text), index_range(text).within(since)):
        scan = known.scan("table", ranges)
        rows = sorted(key for key in stored if key in ranges)
        assert scan.by_partition == Counter(key for key, _ in rows)
        assert scan.certain
        assert known.first_partition("table", ranges) == (rows[0][0] if rows else None)


def made(rows: int = 100) -> Model:
    """A model of a new table with so many rows in the partition ``p``."""
    model = Model(GatewayLimits(partition=Rate(entities_per_s=100, burst_s=10)), 0.0)
    table = Asked(kind=None, table="table", makes_table=True)
    model.answered(table, Answered(status=201), 0.0)
    for number in range(rows):
        insert = about_entity("PUT", "p", f"r{number:03d}")
        assert not model.decide(insert, 0.0).rule
        model.answered(insert, Answered(status=204), 0.0)
    return model


def test_a_query_counts_what_it_scans_and_not_what_it_returns() -> None:
    """Of 100 rows one is returned: 100 count, exactly, and are owed by the partition."""
    model = made()
    sparse = query("PartitionKey eq 'p' and Count eq 5")
    answered = Answered(status=200, found={"p": 1}, last=("p", "r005"))
    for _ in range(9):
        assert not model.decide(sparse, 0.0).rule
        count = model.answered(sparse, answered, 0.0)
        assert (count.entities, count.returned, count.estimated) == (100, 1, 0)
    assert model.decide(sparse, 0.0).rule


@pytest.mark.parametrize(
    ("text", "more", "answered", "scanned"),
    [
        ("PartitionKey eq 'p' and RowKey ge 'r090'", "", Answered(status=200), 10),
        ("PartitionKey eq 'p'", "", Answered(status=200, next_key=("p", "r040")), 40),
        (
            "PartitionKey eq 'p'",
            f"&NextPartitionKey=cA==&NextRowKey={base64.b64encode(b'r040').decode()}",
            Answered(status=200),
            60,
        ),
        (
            "Count eq 5",
            "&$top=1",
            Answered(status=200, found={"p": 1}, last=("p", "r005")),
            6,
        ),
        ("PartitionKey eq 'q'", "", Answered(status=200), 0),
        ("PartitionKey eq 'p'", "", Answered(status=400), 0),
    ],
)
def test_a_page_counts_its_part_of_the_scan(
    text: str, more: str, answered: Answered, scanned: int
) -> None:
    """A scan begins where the page before ended, and ends where the next begins."""
    model, asked = made(), query(text, more)
    model.decide(asked, 0.0)
    count = model.answered(asked, answered, 0.0)
    assert (count.entities, count.estimated) == (scanned, 0)


def test_what_cannot_be_known_is_an_estimate() -> None:
    """Of a table that was there before, or has a lost answer, what is known or returned counts."""
    model = Model(GatewayLimits(), 0.0)
    asked = query("PartitionKey eq 'p'")
    model.decide(asked, 0.0)
    count = model.answered(asked, Answered(status=200, found={"p": 7}), 0.0)
    assert (count.entities, count.returned, count.estimated) == (7, 7, 7)
    model = made()
    model.lost(about_entity("PUT", "p", "lost"))
    count = model.answered(asked, Answered(status=200, found={"p": 7}), 0.0)
    assert (count.entities, count.returned, count.estimated) == (100, 7, 100)


class Stored:
    """Answers queries of a table by pages of 40, in the form of Azurite."""

    def __init__(self, rows: int) -> None:
        self.keys = [("p", f"r{number:03d}") for number in range(rows)]
        self.asked = 0

    def answer(self, target: str) -> GatewayAnswer:
        """A page."""
        self.asked += 1
        parameters = parse_qs(urlsplit(target).query)
        assert parameters["$select"] == ["PartitionKey,RowKey"]
        assert parameters["sig"] == ["a+b/c="]
        assert "$filter" not in parameters
        first = base64.b64decode(parameters.get("NextRowKey", [""])[0]).decode()
        left = [key for key in self.keys if key[1] >= first]
        rows = [{"PartitionKey": key, "RowKey": row} for key, row in left[:40]]
        headers: Mapping[str, str] = {}
        if len(left) > 40:
            token = base64.b64encode(left[40][1].encode()).decode()
            headers = {
                "x-ms-continuation-NextPartitionKey": "cA==",
                "x-ms-continuation-NextRowKey": token,
            }
        return GatewayAnswer(status=200, headers=headers, body=json.dumps({"value": rows}).encode())


def test_one_look_finds_what_was_there_before() -> None:
    """The first query of an unknown table reads its keys page by page; later queries do not."""
    model, stored = Model(GatewayLimits(), 0.0), Stored(100)
    target = f"/account/table()?sig={quote('a+b/c=', safe='')}&$filter={quote('Count eq 5')}&$top=1"
    asked = read_request("GET", target, {}, b"")
    look = model.look_ahead(asked, target)
    assert look is not None
    assert model.look_ahead(asked, target) is None
    while look.target is not None:
        look.take(stored.answer(look.target))
        # Deleted while the look is on its way: the last page still shows the row.
        gone = about_entity("DELETE", "p", "r099")
        model.answered(gone, Answered(status=204), 0.0)
    assert stored.asked == 3
    assert model.look_ahead(asked, target) is None
    whole = query("Count eq 5")
    count = model.answered(whole, Answered(status=200, found={"p": 1}), 0.0)
    assert (count.entities, count.estimated) == (99, 0)


def test_a_look_that_fails_leaves_an_estimate() -> None:
    """Without the right to read every row the scan stays an estimate, and looks have an end."""
    model = Model(GatewayLimits(), 0.0)
    asked = query("PartitionKey eq 'p'")
    looks_ahead: list[LookAhead] = []
    for _ in range(contents_module.MOST_LOOK_AHEADS):
        look = model.look_ahead(asked, "/account/table()")
        assert look is not None
        look.take(GatewayAnswer(status=403, headers={}))
        assert look.target is None
        looks_ahead.append(look)
    assert model.look_ahead(asked, "/account/table()") is None
    answered = read_answer(asked, GatewayAnswer(status=200, headers={}, body=b'{"value":[]}'))
    assert model.answered(asked, answered, 0.0).estimated == 0


def test_rows_are_bounded_and_then_estimated() -> None:
    """Above the cap no row is remembered, and what is scanned is an estimate."""
    known = Contents()
    known.made("table")
    for number in range(contents_module.MOST_ROWS + 5):
        known.wrote("table", [RowWrite("p", f"{number:07d}")])
    assert known.rows == contents_module.MOST_ROWS
    assert not known.scan("table", index_range("")).certain
    known.dropped("table")
    assert known.rows == 0


def test_a_gateway_that_stores_nothing_remembers_nothing() -> None:
    """Without an endpoint a query scans nothing, which is certain."""
    known = Contents(stored=False)
    known.made("table")
    known.wrote("table", [RowWrite("p", "r")])
    assert known.rows == 0
    assert known.scan("table", index_range("")).certain
