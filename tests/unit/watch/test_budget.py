"""The budget of a watch, held against what reaches the endpoint."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from harness.gateway.answers import GatewayAnswer
from harness.gateway.headers import Headers
from harness.gateway.limits import GatewayLimits, Moving, Rate, Servers
from harness.gateway.messages import Request
from harness.gateway.model import Model
from harness.gateway.proxy import Proxy
from harness.watch.observer import Observer

KEYS = [f"p{number:02d}" for number in range(12)]
JSON = Headers.of({"Content-Type": "application/json"})


class Endpoint:
    """Executes writes, answers every query with one page of all keys, and counts both."""

    scheme, host, url, path = "http", "127.0.0.1:1", "http://127.0.0.1:1", ""

    def __init__(self) -> None:
        self.targets: list[str] = []

    async def ask(self, method: str, target: str, *_: Any) -> GatewayAnswer:
        self.targets.append(target)
        if method != "GET":
            return GatewayAnswer(204, JSON)
        page = [{"PartitionKey": key, "RowKey": "r"} for key in KEYS]
        return GatewayAnswer(200, JSON, json.dumps({"value": page}).encode())


class Here:
    """A client that can receive."""

    gone = ended_input = False


@pytest.mark.parametrize(
    ("more", "cut", "statuses"),
    [(2, 1, [200, 403]), (3, 1, [200, 200]), (4, 2, [200, 200])],
)
def test_a_cut_page_takes_two_requests_or_stays_whole(
    more: int, cut: int, statuses: list[int]
) -> None:
    """Two queries over several servers never cost more requests than the budget has left."""
    wide = Rate(entities_per_s=1e9)
    limits = GatewayLimits(
        partition=wide,
        account=wide,
        servers=Servers(count=4, entities_per_s=1e9, keys_per_range=4),
        moving=Moving(hot_after_s=86_400.0),
    )
    endpoint, meter = Endpoint(), Observer("gateway-1", len(KEYS) + more)
    model = Model(limits, 0.0, looks_ahead=False)
    proxy: Any = Proxy(model, endpoint, "", lambda: 1.0, lambda host: True, meter)  # type: ignore[arg-type]

    def send(method: str, place: str) -> int:
        target, headers = f"/account/table{place}", Headers.of({})
        request = Request(method, target, "127.0.0.1:2", "http", headers, b"", True, "1.1", Here())
        return int(asyncio.run(proxy.handle(request)).answer.status)

    for key in KEYS:
        assert send("PUT", f"(PartitionKey='{key}',RowKey='r')") == 204
    assert [send("GET", "()") for _ in statuses] == statuses
    meter.expire(0.0)
    assert len(endpoint.targets) == meter.books.tally.passed == len(KEYS) + more
    assert sum("$top" in target for target in endpoint.targets) == cut
