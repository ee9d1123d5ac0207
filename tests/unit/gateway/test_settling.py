"""What a request leaves behind in the limits, once its answer is known."""

from __future__ import annotations

import base64
import itertools
import json
from urllib.parse import quote

import pytest

from harness.gateway.answers import GatewayAnswer
from harness.gateway.limits import GatewayLimits, Rate, Servers
from harness.gateway.model import Model
from harness.gateway.reading import Answered, read_answer
from harness.gateway.requests import Asked, read_request
from harness.gateway.rules.ranges import MOST_RANGES
from harness.model.entity import sort_key
from tests.support.asked import about_entity, query
from tests.support.gateways import ranges_of

DONE = Answered(status=204)


def write(key: str, row: str = "r", table: str = "table") -> Asked:
    """An upsert."""
    return about_entity("PUT", key, row, table)


def passes(model: Model, asked: Asked, at_s: float = 0.0, answered: Answered = DONE) -> bool:
    """Whether a request passes; then it gets this answer."""
    if model.decide(asked, at_s).rule:
        return False
    model.answered(asked, answered, at_s)
    return True


@pytest.mark.parametrize(
    "answered",
    [
        Answered(status=403, error_code="AuthenticationFailed"),
        Answered(status=404, error_code="TableNotFound"),
        Answered(status=409, error_code="EntityAlreadyExists"),
        Answered(status=400, error_code="InvalidInput"),
        Answered(status=500),
    ],
)
@pytest.mark.parametrize("asked", [write("p"), query("PartitionKey eq 'p'"), query("Count eq 1")])
def test_what_the_service_refused_uses_up_no_limit(asked: Asked, answered: Answered) -> None:
    """After any number of refused requests the partition and the account have all they had."""
    rate = Rate(entities_per_s=10)
    model = Model(GatewayLimits(partition=rate, account=rate), 0.0)
    assert all(passes(model, asked, answered=answered) for _ in range(1000))
    assert [passes(model, write("p")) for _ in range(11)] == [True] * 10 + [False]


def test_a_point_query_that_finds_nothing_uses_up_the_limit() -> None:
    """A missing entity was looked for; a missing table was not."""
    model = Model(GatewayLimits(partition=Rate(entities_per_s=10)), 0.0)
    asked = about_entity("GET", "p")
    missing = Answered(status=404, error_code="ResourceNotFound")
    assert [passes(model, asked, answered=missing) for _ in range(11)] == [True] * 10 + [False]


def test_a_request_that_was_not_sent_uses_up_no_limit() -> None:
    """What never reached the endpoint is given back; what was lost on the way is not."""
    model = Model(GatewayLimits(partition=Rate(entities_per_s=10)), 0.0)
    for _ in range(100):
        assert not model.decide(write("p"), 0.0).rule
        model.not_done(write("p"), 0.0)
    for _ in range(10):
        assert not model.decide(write("p"), 0.0).rule
        model.lost(write("p"))
    assert model.decide(write("p"), 0.0).rule


def test_a_table_has_one_limit_whatever_the_case_of_its_name() -> None:
    """``tab``, ``Tab`` and ``TAB`` share the limit of a partition."""
    model = Model(GatewayLimits(partition=Rate(entities_per_s=10)), 0.0)
    names = itertools.cycle(["tab", "Tab", "TAB"])
    assert sum(passes(model, write("p", table=next(names))) for _ in range(30)) == 10


@pytest.mark.parametrize(
    "text",
    [
        "PartitionKey eq 'p' and (Count eq 1 or Count eq 2)",
        "PartitionKey ge 'p' and PartitionKey lt 'p0'",
        "not (PartitionKey ne 'p')",
        "'p' eq PartitionKey",
        "((PartitionKey eq 'p') and ((Count gt 1)))",
    ],
)
def test_a_query_of_one_partition_is_held_to_its_limit(text: str) -> None:
    """However a filter names the partition, its scans use up the limit of the partition."""
    model = Model(GatewayLimits(partition=Rate(entities_per_s=100)), 0.0)
    model.answered(Asked(kind=None, table="table", makes_table=True), DONE, 0.0)
    for number in range(50):
        assert passes(model, write("p", f"r{number}"))
    empty = Answered(status=200)
    assert [passes(model, query(text), answered=empty) for _ in range(3)] == [True, False, False]
    assert not passes(model, write("p"))
    assert passes(model, write("q"))


def test_tables_that_do_not_exist_take_no_range() -> None:
    """After 1,100 reads of missing tables the keys of a real one still spread over servers."""
    model = Model(GatewayLimits(servers=Servers(count=8, entities_per_s=200.0)), 0.0)
    missing = Answered(status=404, error_code="TableNotFound")
    for number in range(MOST_RANGES + 100):
        asked = read_request("GET", f"/account/missing{number}()", {}, b"")
        assert passes(model, asked, number / 1000, answered=missing)
    assert model.storage is not None
    assert ranges_of(model.storage) == []
    keys = (f"{number * 7919 % 500:03d}" for number in itertools.count())
    done = [passes(model, write(next(keys)), 2 + number / 1000) for number in range(2000)]
    assert done.count(False) < 100


def test_without_ranges_left_a_table_has_a_server_all_the_same() -> None:
    """Tables above the cap share ranges, spread over the servers, and no other table's."""
    model = Model(GatewayLimits(servers=Servers(count=8, entities_per_s=1000.0)), 0.0)
    for number in range(MOST_RANGES + 500):
        assert passes(model, write("p", table=f"table{number:05d}"), number / 1000)
    assert model.storage is not None
    assert len(ranges_of(model.storage)) == MOST_RANGES
    refused = [
        table
        for table in (f"table{number:05d}" for number in range(MOST_RANGES, MOST_RANGES + 500))
        if not passes(model, write("q", table=table), 10.0)
    ]
    assert refused == []


def test_a_gateway_without_an_endpoint_forgets_deleted_tables() -> None:
    """Making, filling and deleting tables for ever leaves nothing behind."""
    model = Model(GatewayLimits(), 0.0, stored=False)
    for number in range(3000):
        at_s = number / 100
        made = read_request(
            "POST", "/account/Tables", {}, json.dumps({"TableName": f"T{number}x"}).encode()
        )
        gone = read_request("DELETE", f"/account/Tables('t{number}X')", {}, b"")
        for asked in (made, write("p", table=f"t{number}x"), gone):
            assert passes(model, asked, at_s)
    assert model.storage is not None
    assert ranges_of(model.storage) == []


def page(keys: list[str]) -> Answered:
    """The page of a query with one entity for each key."""
    rows = [{"PartitionKey": key, "RowKey": "r"} for key in keys]
    body = json.dumps({"value": rows}).encode()
    return read_answer(query(), GatewayAnswer(status=200, headers={}, body=body))


@pytest.mark.parametrize(
    "keys",
    [
        ["", *(f"p{number:02d}" for number in range(1, 60))],
        # Surrogate pairs come before what is above them, as in the order of the service.
        [*(chr(0x1F600 + number) for number in range(30)), *map(chr, range(0xFF21, 0xFF3F))],
    ],
)
def test_a_page_is_cut_at_each_border(keys: list[str]) -> None:
    """A query over several servers ends a page at each, also after a stretch without a match."""
    model = Model(GatewayLimits(servers=Servers(count=4, keys_per_range=4)), 0.0)
    for key in keys:
        assert passes(model, write(key))
    assert model.storage is not None
    ranges = ranges_of(model.storage)[::-1]
    servers = [
        next(server for _, first, server in ranges if sort_key(first) <= sort_key(key))
        for key in keys
    ]
    wanted = [
        number for number, (one, other) in enumerate(itertools.pairwise(servers), 1) if one != other
    ]
    assert len(wanted) > 3
    cuts, asked, at = [], query(), 0
    while (rows := model.cut(asked, page(keys[at:]))) is not None:
        at += rows
        cuts.append(at)
        token = quote(base64.b64encode(keys[at].encode()).decode())
        asked = query("", f"&NextPartitionKey={token}&NextRowKey=cg==")
    assert cuts == wanted
    # The first match is behind the first border: the cut is at the second.
    assert model.cut(query(), page(keys[wanted[0] :])) == wanted[1] - wanted[0]
    assert model.cut(query(), page(keys[: wanted[0]])) is None
