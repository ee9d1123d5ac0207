"""azure-data-tables as it comes, through the gateway: what it answers, retries, and raises."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, cast

import pytest
from azure.core.exceptions import HttpResponseError
from azure.core.pipeline import PipelineResponse
from azure.core.rest import HttpResponse
from azure.data.tables import TableClient

from tests.support.gateways import Told

pytestmark = pytest.mark.azurite

NARROW = "[partition]\nentities_per_s = 100.0\n"
NO_RETRIES = {"retry_total": 0}


def entity(number: int, key: str = "p", **more: Any) -> dict[str, Any]:
    """An entity."""
    return {"PartitionKey": key, "RowKey": f"{number:04d}", "Number": number, **more}


def upserts(count: int, key: str = "p") -> list[tuple[str, dict[str, Any]]]:
    """The operations of a transaction."""
    return [("upsert", entity(number, key)) for number in range(count)]


def test_its_own_retries_recover_from_a_throttled_second(
    gateway_to: Callable[..., Any], client_of: Callable[..., TableClient]
) -> None:
    """A transaction that meets an empty bucket is refused, sent again by the SDK, and done."""
    gateway = gateway_to(NARROW)
    client = client_of(gateway)
    client.submit_transaction(upserts(100))
    client.submit_transaction(upserts(100))
    statuses = Told(gateway).by("result", "sent", "scope", "rule", table=client.table_name)
    assert statuses["passed", "202", "", ""] == 2
    assert statuses["refused", "503", "partition", "partition"] >= 1
    assert set(statuses) == {
        ("passed", "202", "", ""),
        ("refused", "503", "partition", "partition"),
    }


SPENT = "[partition]\nentities_per_s = 0.1\nburst_s = 1000.0\n"
"""A hundred entities, and no other for ten seconds."""

REFUSALS = [
    (SPENT, 503, "ServerBusy", "The server is busy."),
    (
        SPENT.replace("partition", "account"),
        503,
        "ServerBusy",
        "Operations per second is over the account limit.",
    ),
    (
        f"{SPENT}[refusal]\ntimeout_share = 1.0\ntimeout_after_s = 0.3\n",
        500,
        "OperationTimedOut",
        "Operation could not be completed within the specified time.",
    ),
    (
        f"{SPENT}[refusal]\ntimeout_share = 1.0\ntimeout_after_s = 0.3\ntimeout_statuses = [504]\n",
        504,
        "OperationTimedOut",
        "Operation could not be completed within the specified time.",
    ),
    (
        f"{SPENT}[refusal]\nstatus = 429\nretry_after_ms = 50\n",
        429,
        "TooManyRequests",
        "The request rate is too large.",
    ),
]


@pytest.mark.parametrize(("limits", "status", "code", "message"), REFUSALS)
def test_without_retries_it_raises_its_own(
    gateway_to: Callable[..., Any],
    client_of: Callable[..., TableClient],
    limits: str,
    status: int,
    code: str,
    message: str,
) -> None:
    """Point requests and transactions raise with the service's status, code and message."""
    client = client_of(gateway_to(limits), **NO_RETRIES)
    client.submit_transaction(upserts(100))
    for call in (
        lambda: client.get_entity("p", "0001"),
        lambda: client.submit_transaction(upserts(100)),
        lambda: list(client.query_entities("PartitionKey eq 'p'")),
    ):
        with pytest.raises(HttpResponseError) as caught:
            call()
        error = caught.value
        assert (error.status_code, code in str(error)) == (status, True)
        assert message in str(error)
        assert error.response is not None
        assert cast(HttpResponse, error.response).headers["x-ms-request-id"]


def test_a_query_over_servers_comes_in_pages(
    gateway_to: Callable[..., Any], client_of: Callable[..., TableClient]
) -> None:
    """Where ranges live on several servers a query gets continuation tokens, and every entity."""
    through, direct = client_of(gateway_to()), client_of(None)
    for number in range(40):
        through.upsert_entity(entity(number, f"key{number:02d}"))
    pages = [list(page) for page in through.list_entities().by_page()]
    assert len(pages) > 1
    assert list(itertools.chain(*pages)) == list(direct.list_entities())
    found = list(through.query_entities("PartitionKey ge 'key10' and PartitionKey lt 'key30'"))
    assert [row["Number"] for row in found] == list(range(10, 30))
    assert len(list(through.query_entities("PartitionKey eq 'key07'").by_page())) == 1


def test_a_moved_partition_is_gone_for_a_while(
    gateway_to: Callable[..., Any], client_of: Callable[..., TableClient]
) -> None:
    """A client without retries sees a gap of the stated length, then answers again."""
    moving = "[moving]\nhot_after_s = 0.5\ncool_after_s = 5.0\noffline_s = 1.0\n"
    gateway = gateway_to(f"[partition]\nentities_per_s = 10.0\n{moving}")
    client = client_of(gateway, **NO_RETRIES)
    passed_at: list[float] = []
    deadline = time.monotonic() + 20.0
    while time.monotonic() < deadline:
        try:
            client.upsert_entity(entity(1))
            passed_at.append(time.monotonic())
        except HttpResponseError:
            time.sleep(0.005)
        page = Told(gateway).page
        # The gap is over a second after the move; a slow machine comes to the move late.
        if page["moves"] and passed_at and time.time() - page["moves"][0]["until_s"] > 0.5:
            break
    longest = max(b - a for a, b in itertools.pairwise(passed_at))
    assert 0.9 < longest < 3.0
    move = page["moves"][0]
    assert move["partition_key"] == "p"
    assert move["until_s"] - move["at_s"] == pytest.approx(1.0)
    assert move["from_server"] != move["to_server"]


def test_two_clients_together_meet_what_the_counters_counted(
    gateway_to: Callable[..., Any], client_of: Callable[..., TableClient]
) -> None:
    """Each request of two clients, retries included, is on the page, by partition and status."""
    gateway = gateway_to("[partition]\nentities_per_s = 20.0\n")
    seen: list[tuple[str, int]] = []

    def stress(key: str) -> None:
        def look(response: PipelineResponse[Any, Any]) -> None:
            seen.append((key, response.http_response.status_code))

        client = client_of(gateway, retry_total=1, retry_backoff_factor=0.01)
        for number in range(40):
            with contextlib.suppress(HttpResponseError):
                client.upsert_entity(entity(number, key), raw_response_hook=look)
                client.submit_transaction(upserts(5, key), raw_response_hook=look)

    threads = [threading.Thread(target=stress, args=(key,)) for key in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counted = Told(gateway).by("partition", "sent")
    assert counted == Counter((key, str(status)) for key, status in seen)
    assert {status for _, status in seen} == {202, 204, 503}
