"""What goes wrong, on request or by itself: a client sees it, and the counters count it."""

from __future__ import annotations

import contextlib
import http.client
import socket
import time
from collections.abc import Callable
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.data.tables import TableClient

from harness.endpoint.admin.probe import check
from harness.endpoint.endpoint import emulator_endpoint
from harness.model.errors import SetupError
from tests.contract.gateway.conftest import WIDE
from tests.support.gateways import TARGET, Connect, Told, all_of, request

pytestmark = pytest.mark.azurite

NO_RETRIES = {"retry_total": 0}
ENTITY = {"PartitionKey": "p", "RowKey": "r", "Text": "x" * 2000}


def stored(client: TableClient) -> bool:
    """Whether the entity is there."""
    with contextlib.suppress(ResourceNotFoundError):
        client.get_entity("p", "r")
        return True
    return False


def always(fault: str, more: str = "") -> str:
    """Limits under which every request has this fault."""
    return f"{WIDE}[faults]\n{fault} = 1.0\n{more}"


@pytest.mark.parametrize(
    ("fault", "status", "code"),
    [("error_500", 500, "InternalError"), ("error_503", 503, "ServerBusy")],
)
def test_an_error_of_no_limit_does_nothing(
    gateway_to: Callable[..., Any],
    client_of: Callable[..., TableClient],
    fault: str,
    status: int,
    code: str,
) -> None:
    """The write is answered by an error of the service's form, and is not done."""
    gateway = gateway_to(always(fault))
    with pytest.raises(HttpResponseError) as caught:
        client_of(gateway, **NO_RETRIES).create_entity(ENTITY)
    assert caught.value.status_code == status
    assert code in str(caught.value)
    assert not stored(client_of(None))
    assert Told(gateway).by("result", "rule", "sent", "upstream") == {
        ("fault", fault, str(status), ""): 1
    }


@pytest.mark.parametrize(("fault", "done"), [("reset", False), ("lost_answer", True)])
def test_a_reset_says_nothing_about_the_write(
    gateway_to: Callable[..., Any], client_of: Callable[..., TableClient], fault: str, done: bool
) -> None:
    """The client sees the same reset, whether the write was done or not; the counters tell."""
    gateway = gateway_to(always(fault))
    client = client_of(gateway, **NO_RETRIES)
    with pytest.raises(Exception, match=r"(?i)reset|aborted|closed"):
        client.create_entity(ENTITY)
    assert stored(client_of(None)) is done
    upstream = "201" if done else ""
    assert Told(gateway).by("result", "rule", "sent", "upstream") == {
        ("fault", fault, "reset", upstream): 1
    }


def test_a_reset_is_a_reset_on_the_wire(gateway_to: Callable[..., Any], connect: Connect) -> None:
    """Not a byte comes before the connection is reset."""
    connection = connect(gateway_to(always("reset")))
    connection.sendall(request())
    assert all_of(connection) == (b"", "reset")


def test_half_an_answer_ends_in_the_middle(
    gateway_to: Callable[..., Any], client_of: Callable[..., TableClient]
) -> None:
    """The write is done, and the client gets a head and less than the body it promises."""
    direct = client_of(None)
    direct.create_entity(ENTITY)
    gateway = gateway_to(always("half_answer"))
    with pytest.raises(Exception, match=r"(?i)incomplete|broken|reset|closed|more expected"):
        client_of(gateway, **NO_RETRIES).get_entity("p", "r")
    assert Told(gateway).by("rule", "sent", "upstream") == {("half_answer", "half", "200"): 1}


def test_a_slow_answer_is_the_answer(
    gateway_to: Callable[..., Any], client_of: Callable[..., TableClient]
) -> None:
    """It comes whole, so much later."""
    client = client_of(gateway_to(always("slow_answer", "slow_s = 0.5\n")))
    began_s = time.monotonic()
    client.create_entity(ENTITY)
    assert time.monotonic() - began_s >= 0.5
    assert client.get_entity("p", "r")["Text"] == ENTITY["Text"]


def test_an_acknowledged_write_may_not_be_done(
    gateway_to: Callable[..., Any], client_of: Callable[..., TableClient]
) -> None:
    """The SDK takes inserts, upserts, deletes and transactions for done; nothing is stored."""
    gateway = gateway_to(always("unapplied_write"))
    client = client_of(gateway)
    client.create_entity(ENTITY)
    assert client.upsert_entity(ENTITY)["etag"]
    assert (
        len(client.submit_transaction([("upsert", ENTITY), ("create", {**ENTITY, "RowKey": "s"})]))
        == 2
    )
    client.delete_entity("p", "r")
    assert not stored(client_of(None))
    counts = Told(gateway).by("rule", "upstream")
    assert counts == {("unapplied_write", ""): 4}


def test_a_stall_holds_everything(
    gateway_to: Callable[..., Any], client_of: Callable[..., TableClient]
) -> None:
    """A request that comes during a stall is answered after its end."""
    client = client_of(gateway_to(f"{WIDE}[faults]\nstalls = [{{ at_s = 0, for_s = 2.5 }}]\n"))
    began_s = time.monotonic()
    client.upsert_entity(ENTITY)
    first_s = time.monotonic() - began_s
    client.upsert_entity(ENTITY)
    assert first_s > 0.5
    assert stored(client)


def test_for_a_while_nothing_listens(gateway_to: Callable[..., Any], connect: Connect) -> None:
    """In a closed window connections end and are refused; afterwards they are taken again."""
    gateway = gateway_to(f"{WIDE}[faults]\nclosed = [{{ at_s = 1.0, for_s = 1.0 }}]\n")
    early = connect(gateway)
    assert all_of(early) in ((b"", "closed"), (b"", "reset"))
    with pytest.raises(ConnectionRefusedError):
        connect(gateway)
    deadline = time.monotonic() + 10.0
    while time.monotonic() < deadline:
        with contextlib.suppress(ConnectionRefusedError):
            late = connect(gateway)
            break
        time.sleep(0.05)
    late.sendall(request(target="/-/truth", Connection="close"))
    assert all_of(late)[0].startswith(b"HTTP/1.1 200")


def test_an_endpoint_that_is_not_there_is_named(gateway_to: Callable[..., Any]) -> None:
    """A run's first question is refused with both addresses; the gateway answers 502."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        upstream = f"http://127.0.0.1:{taken.getsockname()[1]}"
        gateway = gateway_to(upstream=upstream)
        with pytest.raises(SetupError) as caught:
            check(emulator_endpoint(gateway.url))
    said = str(caught.value)
    assert gateway.url.removeprefix("http://") in said
    assert upstream in said
    assert "502" in said
    assert Told(gateway).by("rule", "sent") == {("upstream", "502"): 1}


def test_a_malformed_batch_is_the_endpoints_business(
    gateway_to: Callable[..., Any], endpoint: Any, service: Any, connect: Callable[..., Any]
) -> None:
    """Bytes that are no batch reach the endpoint untouched, and its answer comes back."""
    service.script = [service.answer(400, "InvalidInput")]
    connection = connect(gateway_to(upstream=f"http://{service.endpoint.host}"))
    body = b"--no batch\r\n\r\nat all\xff"
    connection.sendall(
        request("POST", "/account/$batch", body, Content_Type="multipart/mixed; boundary=x")
    )
    assert connection.recv(65536).startswith(b"HTTP/1.1 400 ")
    assert service.requests[0].endswith(b"\r\n\r\n" + body)
    assert service.requests[0].startswith(b"POST /account/$batch HTTP/1.1\r\n")


def test_a_client_that_goes_away_disturbs_nobody(
    gateway_to: Callable[..., Any],
    client_of: Callable[..., TableClient],
    connect: Callable[..., Any],
) -> None:
    """Gone in the middle of its request or before its answer, it is counted; others go on."""
    gateway = gateway_to(always("slow_answer", "slow_s = 0.3\n"))
    half = connect(gateway)
    half.sendall(request("PUT", body=b"x" * 1000)[:-500])
    half.close()
    whole = connect(gateway)
    whole.sendall(request())
    whole.close()
    client_of(gateway).create_entity(ENTITY)
    deadline = time.monotonic() + 5.0
    while time.monotonic() < deadline and sum(Told(gateway).by("sent").values()) < 3:
        time.sleep(0.05)
    assert Told(gateway).by("result", "sent")["fault", "gone"] >= 1
    assert Told(gateway).page["requests"] == 3


def test_a_client_that_waits_to_be_asked_is_asked(
    gateway_to: Callable[..., Any], service: Any, connect: Callable[..., Any]
) -> None:
    """A body that is announced by Expect, or sent in chunks, arrives whole."""
    service.script = [service.no_content, service.no_content]
    connection = connect(gateway_to(upstream=f"http://{service.endpoint.host}"))
    head, _, body = request("PUT", body=b"{}", Expect="100-continue").partition(b"\r\n\r\n")
    connection.sendall(head + b"\r\n\r\n")
    assert connection.recv(1000).startswith(b"HTTP/1.1 100 ")
    connection.sendall(body)
    assert connection.recv(1000).startswith(b"HTTP/1.1 204 ")
    connection.sendall(
        f"PUT {TARGET} HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        + b"2\r\n{}\r\n0\r\n\r\n"
    )
    assert connection.recv(1000).startswith(b"HTTP/1.1 204 ")
    assert [sent.partition(b"\r\n\r\n")[2] for sent in service.requests] == [b"{}", b"{}"]


def test_with_nothing_behind_writes_are_acknowledged(
    gateway_to: Callable[..., Any], client_of: Callable[..., TableClient]
) -> None:
    """The SDK writes, finds nothing, and the limits hold all the same."""
    # A hundred entities, and hardly another one however slow the machine is.
    limits = "[partition]\nentities_per_s = 0.1\nburst_s = 1000.0\n"
    gateway = gateway_to(limits, upstream="none")
    check(emulator_endpoint(gateway.url))
    client = client_of(gateway, **NO_RETRIES)
    client.create_entity(ENTITY)
    client.submit_transaction([("upsert", {**ENTITY, "RowKey": str(n)}) for n in range(90)])
    with pytest.raises(ResourceNotFoundError):
        client.get_entity("p", "r")
    assert list(client.query_entities("PartitionKey eq 'p'")) == []
    with pytest.raises(HttpResponseError, match="ServerBusy"):
        client.submit_transaction([("upsert", {**ENTITY, "RowKey": str(n)}) for n in range(90)])
    assert not stored(client_of(None))
    entities = sum(row["entities"] for row in Told(gateway).rows())
    assert entities == 1 + 90 + 1


def test_the_counts_are_a_page_for_prometheus_too(
    gateway_to: Callable[..., Any], client_of: Callable[..., TableClient]
) -> None:
    """The same requests are a counter with partition, scope and status as labels."""
    gateway = gateway_to()
    client_of(gateway).create_entity(ENTITY)
    connection = http.client.HTTPConnection(gateway.url.removeprefix("http://"), timeout=10.0)
    try:
        connection.request("GET", "/-/metrics")
        answer = connection.getresponse()
        text = answer.read().decode()
    finally:
        connection.close()
    assert answer.headers["Content-Type"].startswith("text/plain")
    (line,) = [line for line in text.splitlines() if line.startswith("gateway_requests_total{")]
    assert 'partition="p",result="passed",scope="",rule="",sent="201"' in line
    assert line.endswith("} 1")
