"""A query has as many pages as the gateway would make of it, under any keys."""

from __future__ import annotations

import base64
import dataclasses
import itertools
import json
import random
from typing import Any
from urllib.parse import quote

import pytest

from harness.gateway.answers import GatewayAnswer
from harness.gateway.demand import Demand
from harness.gateway.limits import GatewayLimits, Rate, Servers
from harness.gateway.model import Model
from harness.gateway.reading import Answered, read_answer
from harness.model.entity import MAX_PAGE_ENTITIES
from harness.model.operation import WHOLE_TABLE, Kind
from harness.trace.operations import Answer, Batch, TracedOperation, TracedQuery
from harness.trace.whatif.queries import BETWEEN, NewRange
from harness.trace.whatif.rekeying import Rekeying
from harness.trace.whatif.rows_before import RowsBefore
from harness.trace.whatif.scanned_rows import ScannedRange
from harness.trace.whatif.scheme import parse_scheme
from harness.trace.whatif.simulation import FIRST, Request, Simulation
from harness.trace.whatif.stored_rows import StoredRows
from harness.trace.whatif.units import PagedScan, Scanned, ScanPage
from tests.support.asked import about_entity, query
from tests.support.gateways import ranges_of
from tests.support.traced import shape

LIMITS = GatewayLimits(servers=Servers(count=4, keys_per_range=4))
WRITTEN = Answered(status=204)


def made_by(model: Model, keys: list[str]) -> int:
    """The pages in which the gateway answers a query that returns an entity for each key."""
    asked, at, pages = query(), 0, 0
    while at < len(keys):
        page = keys[at : at + MAX_PAGE_ENTITIES]
        body = json.dumps({"value": [{"PartitionKey": key, "RowKey": "r"} for key in page]})
        answer = GatewayAnswer(status=200, headers={}, body=body.encode())
        at += model.cut(asked, read_answer(asked, answer)) or len(page)
        pages += 1
        if at < len(keys):
            token = quote(base64.b64encode(keys[at].encode()).decode())
            asked = query("", f"&NextPartitionKey={token}&NextRowKey=cg==")
    return pages


@pytest.mark.parametrize("returned", [1.0, 0.3, 0.02])
@pytest.mark.parametrize("most", [3, 300, 2000])
@pytest.mark.parametrize("number", [12, 60])
def test_a_scan_has_the_pages_that_the_gateway_makes(
    most: int, number: int, returned: float
) -> None:
    """A page ends at each border of servers behind an entity that it returns; the next one is as
    long as any other. What a filter returns is drawn here, so that its pages scatter.
    """
    rng = random.Random(f"{most}/{number}")
    keys, model = [f"p{number:03}" for number in range(number)], Model(LIMITS, 0.0)
    for key in rng.sample(keys, number):
        assert not model.decide(about_entity("PUT", key), 0.0).rule
        model.answered(about_entity("PUT", key), WRITTEN, 0.0)
    assert model.storage is not None
    rows = {key: rng.randint(1, most) for key in keys}
    scanned = sum(rows.values())
    every = [key for key in keys for _ in range(rows[key])]
    draws = 1 if returned == 1 else 20
    drawn = [[key for key in every if rng.random() < returned] for _ in range(draws)]
    pages = [max(1, made_by(model, found)) for found in drawn]
    known = max(1, -(-int(scanned * returned) // MAX_PAGE_ENTITIES))
    one = ScannedRange(NewRange(WHOLE_TABLE), scanned, [*rows.items()], known, returned, False)
    scan = one.in_pages(0.0, "table")
    found = scan.cut(model.storage.borders("table", *scan.keys), {}).pages
    assert len(found) == pytest.approx(
        sum(pages) / len(pages), rel=0.05, abs=0.0 if returned == 1 else 1
    )
    assert sum(page.total for page in found) == scanned


def test_ranges_of_keys_are_those_of_the_rows_before_a_trace() -> None:
    """As many as a gateway has that saw the rows written."""
    keys = random.Random(1).sample([f"p{number:03}" for number in range(60)], 60)
    model, simulation = Model(LIMITS, 0.0), Simulation(LIMITS, None)
    for key in keys:
        model.answered(about_entity("PUT", key), WRITTEN, 0.0)
    simulation.begin([("table", key) for key in keys])
    assert model.storage is not None
    assert simulation._model.storage is not None
    assert len(ranges_of(model.storage)) > 10
    assert ranges_of(simulation._model.storage) == ranges_of(model.storage)


def test_rows_whose_partitions_are_not_told_apart_are_taken_from_every_server_of_a_scan() -> None:
    """As a gateway does, which knows the partitions: not from the first server alone."""
    keys = [f"p{number:03}" for number in range(60)]
    model = Model(LIMITS, 0.0)
    for key in keys:
        model.answered(about_entity("PUT", key), WRITTEN, 0.0)
    assert model.storage is not None
    borders = model.storage.borders("table", "p030", None)
    firsts = ["p030", *borders]
    model.storage.take_spread("table", firsts, 20_000 * len(borders), 0.0)
    refused = [model.storage.admit("table", key, 1, 0.0, 0) for key in keys[30:]]
    assert set(refused) == {"server"}


ROWS = [f"{number:06}" for number in range(2500)]


def read_in_pages(
    size: int, top: int | None, readers: int = 1, **keys: Any
) -> tuple[Rekeying, list[list[int]]]:
    """All rows of a partition, read in pages, by several ``readers`` of one client at the same
    time; and the entities of each request of each page."""
    pages = []
    for first in range(0, len(ROWS), size):
        at, found = ("p", ROWS[first]) if first else None, len(ROWS[first : first + size])
        asked = TracedQuery(top=top, continued_at=at)
        page = TracedOperation(
            first, first + 1, shape(Kind.QUERY), "p", "", found, found, 0, 0, asked
        )
        pages += [page] * readers
    batches = [Batch(*[[one] for one in page]) for page in pages]  # type: ignore[arg-type]
    scheme = parse_scheme("mine", {"keys": keys}, "mine.toml")
    rekeying = Rekeying(scheme, before=RowsBefore({"": {"p": ROWS}}, frozenset(), {}))
    requests = []
    for batch in batches:
        found_of: list[int] = []
        for amount in rekeying.loads(batch).amounts:
            if isinstance(amount, PagedScan):
                found_of += [page.total for page in amount.pages]
            else:
                found_of.append(amount)
        requests.append(found_of)
    return rekeying, requests


@pytest.mark.parametrize(
    ("key", "requests"),
    [
        # The recorded pages are those of the partition.
        ("x{partition_key}", 25),
        # Each of four buckets has about 625 rows in pages of 100.
        ("{partition_key}-{row_key:bucket4}", 28),
        # A range of partitions has the rows in the same order.
        ("{partition_key}-{row_key:first1}", 25),
        # One of another order would begin with other rows: all are read, in pages of 1,000.
        ("{partition_key}-{row_key:last1}", 3),
    ],
)
def test_a_query_with_pages_of_its_own_size_reads_each_row_once(key: str, requests: int) -> None:
    """Such as a query with `$top` in each request: under any keys all of its rows are read."""
    rekeying, found = read_in_pages(100, 100, partition_key=key)
    assert rekeying.price.scanned == len(ROWS)
    assert sum(map(sum, found)) == len(ROWS)
    assert sum(map(len, found)) == requests
    assert max(map(max, filter(None, found))) == (100 if requests > 3 else 834)


@pytest.mark.parametrize("key", ["x{partition_key}", "{partition_key}-{row_key:bucket4}"])
def test_two_readings_at_the_same_time_read_each_row_twice(key: str) -> None:
    """Of one query by one client, a page of each in turn."""
    rekeying, _ = read_in_pages(100, 100, 2, partition_key=key)
    assert rekeying.price.scanned == 2 * len(ROWS)


def test_a_query_that_goes_on_has_pages_of_a_thousand() -> None:
    """Also where its first page is charged for the others, which begin at recorded keys."""
    for key in ("{partition_key}-{row_key:first1}", "x{partition_key}"):
        _, found = read_in_pages(1000, None, partition_key=key)
        every = [*itertools.chain(*found)]
        assert (len(every), sum(every)) == (3, len(ROWS))


@pytest.mark.parametrize(
    ("attempts", "pages", "on_servers"), [(1, 3, 1.0), (3, 3, 1.0), (5, 5, 0.0)]
)
def test_a_scan_of_a_table_has_at_least_the_pages_that_its_rows_need(
    attempts: int, pages: int, on_servers: float
) -> None:
    """More were recorded where pages ended at servers: then no other borders are counted."""
    of = dataclasses.replace(shape(Kind.QUERY), attempts=(Answer(200),) * attempts)
    scan = TracedOperation(0, 1, of, WHOLE_TABLE, "", 2500, 2500, 0, 0, TracedQuery())
    scheme = parse_scheme("mine", {"keys": {"partition_key": "x{partition_key}"}}, "mine.toml")
    rekeying = Rekeying(scheme, before=RowsBefore({"": {"p": ROWS}}, frozenset(), {}))
    batch = Batch(*[[one] for one in scan])  # type: ignore[arg-type]
    [found] = rekeying.loads(batch).amounts
    assert isinstance(found, PagedScan)
    assert (len(found.pages), found.returned) == (attempts, on_servers)


ON_SERVERS = GatewayLimits(
    account=Rate(entities_per_s=100.0),
    partition=Rate(entities_per_s=1e6),
    servers=Servers(entities_per_s=1e6, count=4, keys_per_range=4),
)
KEYS = [f"p{number:03}" for number in range(40)]


def test_a_refused_page_ends_a_query_before_it_took_the_rest() -> None:
    """Its pages end at servers, and a write a moment later passes."""
    simulation = Simulation(ON_SERVERS, None)
    simulation.begin([("", key) for key in KEYS])
    page = ScanPage(0, tuple((("", key), 15) for key in KEYS))
    scan = PagedScan.of((page,), 0.01, (KEYS[0], None), 1.0)
    requests: list[Request] = [
        (0.1, FIRST, ("", None), 1, scan, 0, None),
        (0.9, FIRST, ("", KEYS[0]), 1, 1, 0, None),
    ]
    demand = Demand({("", key): 16 for key in KEYS}, 600, scans=True)
    simulation.serve(0, demand, 2, {("", None)})
    simulation.simulate(0, requests)
    assert simulation.throttling.by_rule == {"account": 1}
    assert simulation.throttling.failed == 1
    assert 1 < simulation.throttling.attempts - 2 < 5
    assert sum(simulation.lost.values()) > 400


def test_queries_of_one_instant_are_there_before_their_answers() -> None:
    """None of them is refused for what another one scans; the next request is."""
    simulation = Simulation(ON_SERVERS, None)
    requests: list[Request] = [
        *((0.1, FIRST, ("", key), 1, Scanned(90), 0, None) for key in KEYS[:5]),
        (0.101, FIRST, ("", KEYS[5]), 1, 1, 0, None),
    ]
    demand = Demand({("", key): 90 for key in KEYS[:6]}, 90, scans=True)
    simulation.serve(0, demand, len(requests))
    simulation.simulate(0, requests)
    assert simulation.throttling.by_rule == {"account": 1}
    assert simulation.throttled == {("", KEYS[5]): 1}


def test_the_beginning_of_a_range_is_in_its_first_partitions() -> None:
    """Not in those with the most rows, nor in one whose rows are in others."""
    counts = StoredRows()
    for number in range(500):
        for row in range(1 if number < 400 else 9):
            counts.note("table", BETWEEN.join((f"p{number:03}", f"{row}")), stays=True)
    one, shares = counts.section("table", NewRange(WHOLE_TABLE), 2, 3)
    assert shares == [("p002", 1), ("p003", 1), ("p004", 1)]
    assert one.partition_before == "p004" + BETWEEN
    counts.nowhere("table", "p003")
    _, shares = counts.section("table", NewRange(WHOLE_TABLE), 2, 3)
    assert shares == [("p002", 1), ("p004", 1)]


def test_a_page_is_full_before_the_next_one_begins() -> None:
    """And rows that were refused need no page."""
    page = ScanPage(0, ((("", "a"), 600), (("", "b"), 412)))
    scan = PagedScan.of((page,), 0.01, ("a", None), 1.0)
    assert [one.total for one in scan.cut([], {}).pages] == [1000, 12]
    assert scan.cut([], {("", "b"): 20}) is scan


def test_a_page_that_finds_little_reads_several_servers() -> None:
    """Half of the rows are returned, so that each page has to read two servers of one row each."""
    scan = PagedScan.of((ScanPage(4),), 0.01, ("a", None), 0.5)
    pages = scan.cut(["b", "c", "d"], {}).pages
    assert [(page.own, page.firsts) for page in pages] == [(2, ("a", "b")), (2, ("c", "d"))]
