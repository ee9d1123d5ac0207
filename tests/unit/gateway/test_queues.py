"""Requests to queues: how the gateway reads, counts, limits and answers them."""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.endpoint.protocol.responses import read_error
from harness.gateway import answers
from harness.gateway.answers import GatewayAnswer, Unpassed
from harness.gateway.demand import Place
from harness.gateway.headers import Headers
from harness.gateway.large_bodies import MessageScan
from harness.gateway.limits import GatewayLimits, Moving, Rate, Servers
from harness.gateway.model import Decision, Model
from harness.gateway.queue_requests import (
    QueueDialect,
    is_about_messages,
    oldest_age_s,
    read_queue_request,
)
from harness.gateway.reading import Answered, read_answer
from harness.gateway.requests import NOTHING, Asked
from harness.gateway.rules.partition import PartitionRule
from harness.model.operation import Kind
from harness.model.outcome import Scope, throttling_scope
from harness.model.services import beside_at, server_answering
from harness.model.services.queues import QUEUES
from harness.model.services.service import Targets
from tests.support.asked import about_entity

NOW = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
WIDE = Rate(entities_per_s=1e9)
ID = "messages/0b7c9c4e-0000-4000-8000-000000000000"


def limits(**parts: Any) -> GatewayLimits:
    """Limits of which only the named ones are met."""
    wide: dict[str, Any] = {"partition": WIDE, "account": WIDE}
    wide |= {"servers": Servers(entities_per_s=1e9), "moving": Moving(hot_after_s=86_400.0)}
    return GatewayLimits(**{**wide, **parts})


def put(queue: str = "orders") -> Asked:
    """A request that puts a message."""
    return read_queue_request("POST", f"/account/{queue}/messages")


def get(most: object = 32, queue: str = "orders") -> Asked:
    """A request that gets messages."""
    return read_queue_request("GET", f"/account/{queue}/messages?numofmessages={most}")


def page(messages: int, **headers: str) -> GatewayAnswer:
    """The answer with so many messages."""
    body = b"<QueueMessage><MessageText>&lt;QueueMessage></MessageText></QueueMessage>" * messages
    whole = b"<QueueMessagesList>" + body + b"</QueueMessagesList>"
    fields = {name.replace("_", "-"): text for name, text in headers.items()}
    return GatewayAnswer(200, fields, whole)


def served(model: Model, asked: Asked, at_s: float, messages: int = 1) -> Decision:
    """The decision about a request, which the endpoint executes if it passes."""
    decision = model.decide(asked, at_s)
    if not decision.rule:
        answered = Answered(status=201)
        if asked.receives:
            answered = read_answer(asked, page(messages))
        model.answered(asked, answered, at_s)
    return decision


@pytest.mark.parametrize(
    ("method", "path", "kind", "top"),
    [
        ("POST", "messages", Kind.PUT_MESSAGE, None),
        ("POST", "messages?messagettl=-1&visibilitytimeout=5", Kind.PUT_MESSAGE, None),
        ("GET", "messages", Kind.GET_MESSAGES, 1),
        ("GET", "messages?numofmessages=32&visibilitytimeout=30", Kind.GET_MESSAGES, 32),
        ("GET", "messages?peekonly=true&numofmessages=7", Kind.PEEK_MESSAGES, 7),
        ("GET", "messages?NumOfMessages=2&PeekOnly=True", Kind.PEEK_MESSAGES, 2),
        ("GET", "messages?peekonly=false", Kind.GET_MESSAGES, 1),
        ("GET", "messages?numofmessages=0", Kind.GET_MESSAGES, 0),
        ("GET", "messages?numofmessages=33", Kind.GET_MESSAGES, 33),
        ("GET", "messages?numofmessages=abc", Kind.GET_MESSAGES, 1),
        ("GET", f"messages?numofmessages={'9' * 5000}", Kind.GET_MESSAGES, 1),
        ("PUT", f"{ID}?popreceipt=a%2Fb&visibilitytimeout=0", Kind.UPDATE_MESSAGE, None),
        ("DELETE", f"{ID}?popreceipt=a", Kind.DELETE_MESSAGE, None),
        ("DELETE", "messages", None, None),
        ("PUT", "", None, None),
        ("DELETE", "", None, None),
        ("GET", "?comp=metadata", None, None),
        ("PUT", "?comp=acl", None, None),
        ("PATCH", "messages", None, None),
    ],
)
@pytest.mark.parametrize("account", ["/account", ""])
@pytest.mark.parametrize("queue", ["orders", "a-1", "$logs", "%20", "Ünï", "-"])
def test_forms_of_requests(
    method: str, path: str, kind: Kind | None, top: int | None, account: str, queue: str
) -> None:
    """The account is in the path or in the host; every request about a queue names it."""
    slash = "/" if path and not path.startswith("?") else ""
    asked = read_queue_request(method, f"{account}/{quote(queue, safe='%')}{slash}{path}")
    assert (asked.kind, asked.top) == (kind, top)
    assert asked.partition_key == queue.replace("%20", " ")
    assert asked.table == QUEUES.beside
    assert asked.entities == (0 if kind is None else 1)
    assert asked.writes is (kind in (Kind.PUT_MESSAGE, Kind.UPDATE_MESSAGE, Kind.DELETE_MESSAGE))


@pytest.mark.parametrize(
    "target",
    [
        "/",
        "/account?comp=list",
        "/account/?restype=service&comp=properties",
        "/account/orders/messages?comp=list",
        "/account/orders/other/more",
        "*",
    ],
)
def test_requests_about_no_queue(target: str) -> None:
    """They name none."""
    assert read_queue_request("GET", target).partition_key is None


def test_a_queue_may_be_called_messages() -> None:
    """With the account in the path its name is not taken for the word."""
    for method, path in (("PUT", ""), ("POST", "/messages"), ("DELETE", f"/{ID}")):
        asked = read_queue_request(method, f"/account/messages{path}")
        assert asked.partition_key == "messages"


@given(st.text(max_size=60), st.sampled_from(["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS"]))
def test_any_target_is_read(text: str, method: str) -> None:
    """No form is an error; what is read has a kind only with a queue."""
    for target in (text, f"/{quote(text, safe='/?&=%')}", f"/account/{text}/messages?{text}"):
        asked = read_queue_request(method, target)
        assert asked.kind is None or asked.partition_key is not None
        is_about_messages(target)


def test_hosts_and_servers_of_queues() -> None:
    """A queue service is known by its names in Azure, that of an emulator, and its answers."""
    for host in ("acme.queue.core.windows.net:443", "ACME.z07.queue.storage.azure.net"):
        assert beside_at(host) is QUEUES
    assert beside_at("acme.queue.localhost:10001") is QUEUES
    for host in ("acme.table.core.windows.net", "127.0.0.1:10001", "my.queue.example", ""):
        assert beside_at(host) is None
    for server in ("Azurite-Queue/3.36.0", "Windows-Azure-Queue/1.0 Microsoft-HTTPAPI/2.0"):
        assert server_answering(server) == "queue"
    assert server_answering("Azurite-Table/3.36.0") == "table"
    assert server_answering("") is None


def test_requests_about_tables_are_not_about_messages() -> None:
    """A table may be called messages, and a key may contain the word."""
    for target in (
        "/account/messages",
        "/account//messages",
        "/account/table(PartitionKey='a',RowKey='messages')",
        "/account/table()?$filter=a/b/messages",
        "/messages",
    ):
        assert not is_about_messages(target)
    assert is_about_messages("/account/orders/messages?numofmessages=2")


def test_a_queue_over_its_rate_is_refused() -> None:
    """2,000 messages of a second pass; other queues and partitions of tables are not concerned."""
    model = Model(limits(partition=Rate(entities_per_s=2000.0)), 0.0)
    decisions = [served(model, put(), number / 4000) for number in range(4000)]
    passed = [one for one in decisions if not one.rule]
    # The burst of a second, and what flows in meanwhile.
    assert len(passed) == pytest.approx(3999, abs=2)
    refused = [served(model, put(), 1.0) for _ in range(3000)][-1]
    assert (refused.status, refused.scope, refused.rule) == (503, Scope.PARTITION, "partition")
    assert not served(model, put("other"), 1.0).rule
    assert not served(model, about_entity("PUT", "orders"), 1.0).rule


@pytest.mark.parametrize(("target", "lower"), [(500.0, "(files)"), (8000.0, "table")])
def test_partitions_beside_tables_have_the_target_of_their_service(
    target: float, lower: str
) -> None:
    """Of the lower limit, fewer entities are too many to pass without a look at the bucket."""
    files = dataclasses.replace(QUEUES, beside="(files)", targets=Targets(partition=target))
    rule = PartitionRule(Rate(entities_per_s=2000.0, burst_s=1.0), (files,))
    assert (rule.capacity("table"), rule.capacity("(files)")) == (2000, target)
    least = min(target, 2000.0)
    held = {one: rule.holds(one, "a", round(least / 20) + 1, 0.0) for one in ("table", "(files)")}
    assert held == {one: one != lower for one in held}
    asked: dict[Place, int] = {(one, "a"): round(least / 100) + 1 for one in held}
    assert [table for table, _, _ in rule.metered(asked, 1.0)] == [lower]


def test_each_message_of_a_get_counts() -> None:
    """A get takes what it returned: thirty-two messages as many as thirty-two puts."""
    model = Model(limits(partition=Rate(entities_per_s=10.0, burst_s=10.0)), 0.0)
    for _ in range(3):
        assert not served(model, get(), 0.0, messages=32).rule
    for _ in range(10):
        # An empty queue gives back what the request took.
        assert not served(model, get(), 0.0, messages=0).rule
    assert [served(model, put(), 0.0).rule for _ in range(5)] == ["", "", "", "", "partition"]


def test_queues_share_the_limit_of_the_account_with_tables() -> None:
    """The account's refusal has the scope of the account."""
    rate = Rate(entities_per_s=10.0)
    model = Model(limits(account=rate), 0.0)
    for number in range(5):
        assert not served(model, about_entity("PUT", f"p{number}"), 0.0).rule
        assert not served(model, put(f"queue-{number}"), 0.0).rule
    refused = served(model, put("another"), 0.0)
    assert (refused.rule, refused.scope) == ("account", Scope.ACCOUNT)


def test_queues_are_on_different_servers() -> None:
    """A server that carries one queue does not limit the next one."""
    servers = Servers(count=4, entities_per_s=100.0)
    model = Model(limits(servers=servers), 0.0)
    for queue in ("a", "b", "c"):
        rules = [served(model, put(queue), 0.0).rule for _ in range(120)]
        assert 95 <= rules.count("") <= 105
        assert rules[-1] == "server"


@given(
    st.integers(0, 40),
    st.lists(st.integers(1, 60), max_size=30),
)
def test_messages_of_a_large_answer_are_counted_in_pieces(count: int, sizes: list[int]) -> None:
    """However the answer is cut, each message counts once; its text does not."""
    body, scan, at = page(count).body, MessageScan(), 0
    for size in sizes:
        scan.add(body[at : at + size])
        at += size
    scan.add(body[at:])
    assert sum(scan.found.values()) == count
    asked = get(3)
    counted = Model(limits(), 0.0).answered(asked, read_answer(asked, page(count), scan.found), 0.0)
    assert (counted.entities, counted.estimated) == (count, 0)


def test_an_answer_that_is_not_read_counts_the_most_it_can_have() -> None:
    """It is marked as estimated."""
    for asked, answer in (
        (get(7), page(3, Content_Encoding="br")),
        (get(7), page(3, Content_Encoding="gzip")),
    ):
        counted = Model(limits(), 0.0).answered(asked, read_answer(asked, answer), 0.0)
        assert (counted.entities, counted.returned, counted.estimated) == (7, 7, 7)


@pytest.mark.parametrize("scope", [Scope.PARTITION, Scope.ACCOUNT])
def test_a_refusal_is_xml(scope: Scope) -> None:
    """Code and message are in the body, the code in a header too, as a client reads them."""
    made = answers.refusal(503, scope, {"x-ms-version": "2024-05-04"}, NOW, retry_after_ms=5)
    answer = QueueDialect().own(made)
    root = ElementTree.fromstring(answer.body)
    assert root.tag == "Error"
    assert root.findtext("Code") == answer.headers["x-ms-error-code"] == "ServerBusy"
    assert answer.headers["Content-Type"] == "application/xml"
    assert answer.headers["x-ms-retry-after-ms"] == "5"
    code, message = read_error(answer.headers, answer.body)
    assert throttling_scope(503, code, message) is scope


def test_a_message_of_an_error_is_escaped() -> None:
    """What a client sent may be repeated in it."""
    made = answers.error(400, "InvalidInput", "<a> & 'b'", {}, NOW)
    root = ElementTree.fromstring(QueueDialect().own(made).body)
    assert (root.findtext("Message") or "").startswith("<a> & 'b'\nRequestId:")


def test_the_age_of_the_oldest_message_is_told_by_the_clock_of_the_service() -> None:
    """It is 0 where an answer has no messages, or no time that can be read."""
    put = b"<QueueMessage><InsertionTime>%b</InsertionTime></QueueMessage>"
    times = [b"Fri, 02 Jan 2026 03:04:05 GMT", b"Fri, 02 Jan 2026 03:03:05 GMT"]
    body = b"".join(put % time for time in times)
    now = {"Date": "Fri, 02 Jan 2026 03:04:15 GMT"}
    assert oldest_age_s(GatewayAnswer(200, now, body)) == 70.0
    for answer in (
        GatewayAnswer(200, now),
        GatewayAnswer(200, {}, body),
        GatewayAnswer(200, now, put % b"yesterday"),
    ):
        assert oldest_age_s(answer) == 0.0


def test_a_request_is_signed_with_its_headers_and_parameters() -> None:
    """The order is that of the documentation of Shared Key; parameters are decoded."""
    headers = Headers.of({"X-Ms-Version": "2024-05-04", "Content-Type": "application/xml"})
    target = "/acme/jobs/messages/1?visibilitytimeout=0&popreceipt=a%2Fb"
    text = QueueDialect().signed("PUT", "acme", target, headers, 4)
    assert text.split("\n") == [
        *("PUT", "", "", "4", "", "application/xml", "", "", "", "", "", ""),
        "x-ms-version:2024-05-04",
        *("/acme/acme/jobs/messages/1", "popreceipt:a/b", "visibilitytimeout:0"),
    ]


def test_without_an_endpoint_messages_are_acknowledged() -> None:
    """A put has an id and a receipt, an update a receipt; a get finds nothing."""
    dialect = QueueDialect()

    def answered(method: str, path: str) -> GatewayAnswer:
        target = f"/account/orders{path}"
        asked = dialect.read(method, target, {}, b"")
        return dialect.own(dialect.unstored(Unpassed(method, target, {}, b"", asked, NOW)))

    message = ElementTree.fromstring(answered("POST", "/messages").body).find("QueueMessage")
    assert message is not None
    assert [element.tag for element in message] == [
        *("MessageId", "InsertionTime", "ExpirationTime", "PopReceipt", "TimeNextVisible")
    ]
    assert answered("PUT", f"/{ID}").headers["x-ms-popreceipt"]
    assert answered("DELETE", f"/{ID}").status == 204
    empty = answered("GET", "/messages")
    assert read_answer(get(), empty).returned == 0
    assert [answered(method, "").status for method in ("PUT", "DELETE")] == [201, 204]
    assert [answered("PUT", f"?comp={of}").status for of in ("metadata", "acl")] == [204, 204]
    assert answered("GET", "?comp=metadata").headers["x-ms-approximate-messages-count"] == "0"
    assert answered("POST", "?comp=other").status == 501


@pytest.mark.parametrize(
    ("method", "query", "status"),
    [
        ("PUT", "", 201),
        ("PUT", "?timeout=9", 201),
        ("DELETE", "", 204),
        ("PUT", "?comp=acl", 501),
        ("PUT", "?timeout=9&comp=metadata", 501),
    ],
)
def test_without_an_endpoint_a_queue_is_made_by_any_request_that_may_be_about_one(
    method: str, query: str, status: int
) -> None:
    """Where nothing tells a queue from a table, what sets a property of a table stays refused."""
    asked = Unpassed(method, f"/account/orders{query}", {}, b"", NOTHING, NOW)
    assert answers.unstored(asked).status == status
