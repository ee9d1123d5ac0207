"""Two SDKs of queues, directly at an Azurite and through a gateway to another: equal answers."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Generator
from http.client import HTTPConnection
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from azure.core.exceptions import AzureError
from azure.storage.queue import (
    AccountSasPermissions,
    QueueClient,
    QueueServiceClient,
    ResourceTypes,
    generate_account_sas,
)

from harness.model.services.queues import QUEUES
from tests.support.differential import (
    Answer,
    Recorder,
    SyncTransport,
    azurite_and_gateway,
    gateway_counts,
    own_counts,
    played_through,
)
from tests.support.npm_packages import JS_QUEUE_SDK
from tests.support.python_script import Step
from tests.support.sdk import account_key

pytestmark = [pytest.mark.azurite, pytest.mark.long]

QUEUE = "differential"
RAISED = (AzureError, ValueError, TypeError)
TEXTS = ("", " ", "x", "<a> & ]]> 'b'", "ünïcödé 日本語 😀", "\t\n\r", "\0", "\x0b", "\ufffe")
# Azurite takes a character apart whose bytes arrive in two pieces, as those of a longer text may.
LONG = ("x" * 65_536, "x" * 65_537, "ü" * 16_384, "&" * 65_536)
NAMES = ("ab", "a" * 63, "a" * 64, "UPPER", "a--b", "-a", "a_b", "ünï", "a b", "$root")


def steps(service: QueueServiceClient, queue: QueueClient) -> Generator[Step, Any, None]:
    """Yield each step, and receive what its call returned or raised."""

    def step(label: str, call: Callable[[], Any], name: str = QUEUE) -> Step:
        return Step(label, QUEUES.beside, name, call)

    yield Step("service", "", None, service.get_service_properties)
    yield step("create", lambda: queue.create_queue(metadata={"owner": "tests"}))
    yield step("create again", queue.create_queue)
    yield step("metadata", queue.get_queue_properties)
    yield step("access policy", queue.get_queue_access_policy)
    for number, text in enumerate((*TEXTS, *LONG)):
        yield step(f"put {number}", lambda text=text: queue.send_message(text))  # type: ignore[misc]
    times: dict[str, Any] = {"time_to_live": -1, "visibility_timeout": 3}
    yield step("put with times", lambda: queue.send_message("later", **times))
    for most in (None, 1, 2, 32, 0, 33, -1):
        yield step(f"peek {most}", lambda most=most: queue.peek_messages(most))  # type: ignore[misc]
    got = yield step(
        "get two",
        lambda: list(queue.receive_messages(max_messages=2, visibility_timeout=60)),
    )
    one, other = got
    changed = yield step(
        "update", lambda: queue.update_message(one, content="changed", visibility_timeout=60)
    )
    yield step("update text only", lambda: queue.update_message(other, content="other"))
    yield step("update with an old receipt", lambda: queue.update_message(other, content="x"))
    yield step("delete with an old receipt", lambda: queue.delete_message(other))
    yield step("delete", lambda: queue.delete_message(changed))
    yield step("delete again", lambda: queue.delete_message(changed))
    for page in (32, 0, 33):
        said: dict[str, Any] = {"messages_per_page": page, "visibility_timeout": 60}
        yield step(f"get by {page}", lambda said=said: list(queue.receive_messages(**said)))  # type: ignore[misc]
    yield step("count", queue.get_queue_properties)
    yield step("clear", queue.clear_messages)
    yield step("get nothing", queue.receive_message)
    for name in NAMES:
        named = service.get_queue_client(name)
        yield step(f"create {name}", named.create_queue, name)
        yield step(f"put in {name}", lambda named=named: named.send_message("x"), name)  # type: ignore[misc]
        yield step(f"get from {name}", named.receive_message, name)
        yield step(f"delete {name}", named.delete_queue, name)
    yield Step("list", "", None, lambda: [found.name for found in service.list_queues()])
    yield step("delete queue", queue.delete_queue)
    yield step("put in no queue", lambda: queue.send_message("x"))


def run_in_python(script: Recorder) -> None:
    """Run the script with the clients for Python."""
    url, key = script.endpoint.url, account_key(script.endpoint)
    credential = {"account_name": script.endpoint.account, "account_key": key}
    said: dict[str, Any] = {"credential": credential, "retry_total": 0}
    with (
        QueueServiceClient(url, transport=SyncTransport(script), **said) as service,
        QueueClient(url, QUEUE, transport=SyncTransport(script), **said) as queue,
    ):
        script.play(steps(service, queue), RAISED)


FORMS: list[tuple[str, str, bytes]] = [
    ("GET", f"{QUEUE}/messages?numofmessages={number}", b"")
    for number in ("0", "33", "abc", "-1", "1e1", "", "1&numofmessages=2", "9" * 400)
] + [
    ("POST", f"{QUEUE}/messages", body)
    for body in (
        b"",
        b"<",
        b"<QueueMessage/>",
        b"<QueueMessage><MessageText/></QueueMessage>",
        b"<QueueMessage><MessageText>a</MessageText><MessageText>b</MessageText></QueueMessage>",
        b"<Other><MessageText>a</MessageText></Other>",
        b"<QueueMessage><MessageText>\xff\xfe</MessageText></QueueMessage>",
        b"<QueueMessage><MessageText><![CDATA[<QueueMessage>]]></MessageText></QueueMessage>",
        b'<!DOCTYPE a [<!ENTITY b "bb">]><QueueMessage><MessageText>&b;</MessageText>'
        b"</QueueMessage>",
        b"{}",
        b"\0" * 1000,
    )
]
FORMS += [
    ("GET", f"{QUEUE}/messages?numofmessages=32&peekonly=true", b""),
    ("GET", f"{QUEUE}/messages?numofmessages=32&peekonly=abc", b""),
    ("GET", f"{QUEUE}/messages/", b""),
    ("GET", f"{QUEUE}/MESSAGES", b""),
    ("PUT", f"{QUEUE}/messages/{quote('<id>/', safe='')}?popreceipt=%00", b"<QueueMessage/>"),
    ("DELETE", f"{QUEUE}/messages/x", b""),
    ("DELETE", f"{QUEUE}/messages?popreceipt=x", b""),
    ("PATCH", f"{QUEUE}/messages", b""),
    ("POST", quote("a\nb/messages"), b""),
    ("POST", f"{'x' * 3000}/messages", b""),
]


def run_by_hand(script: Recorder) -> None:
    """Send requests as no SDK does, with a SAS."""
    endpoint = script.endpoint
    sas = generate_account_sas(
        endpoint.account,
        account_key(endpoint),
        ResourceTypes(service=True, container=True, object=True),
        AccountSasPermissions.from_string("rwdlacup"),
        "2090-01-01T00:00:00Z",
    )
    with contextlib.closing(HTTPConnection(endpoint.host, timeout=20)) as connection:
        for method, path, body in [("PUT", QUEUE, b""), *FORMS]:
            sign = "&" if "?" in path else "?"
            target = f"{urlsplit(endpoint.url).path}/{path}{sign}{sas}"
            connection.request(method, target, body, {"Content-Type": "application/xml"})
            answer = connection.getresponse()
            headers = tuple(answer.getheaders())
            script.answers.append(
                Answer(
                    label=f"{method} {path} {body[:60]!r}",
                    table="",
                    partition=None,
                    status=answer.status,
                    headers=headers,
                    body=answer.read(),
                )
            )


RUNS: dict[str, Callable[[Recorder], None]] = {
    "python": run_in_python,
    "javascript": lambda script: script.play_in_javascript(JS_QUEUE_SDK),
    "by hand": run_by_hand,
}


@pytest.mark.parametrize("client", RUNS)
def test_queues_answer_the_same_through_the_gateway(client: str) -> None:
    """Status, headers, body and result of each call are equal, and the counts are the client's.

    Bounds: some hundred requests, about ten seconds.
    """
    if client == "javascript" and not JS_QUEUE_SDK.installed:
        pytest.skip("the queue SDK for JavaScript is not installed: run `make dev`")
    with azurite_and_gateway("queue") as (endpoint, gateway):
        answers = played_through(endpoint, gateway, RUNS[client])
        told = gateway.counters()
    rows = json.loads(told)["counts"]
    assert sum(row["requests"] for row in rows) == len(answers)
    if client != "by hand":
        assert own_counts(answers) == gateway_counts(told)
    messages = sum(answer.body.count(b"<QueueMessage>") for answer in answers)
    changed = [one for one in answers if one.status == 204 and one.label in CHANGES]
    assert sum(row["entities"] for row in rows) == messages + len(changed)
    assert messages > 10


CHANGES = ("update", "update text only", "update without text", "delete")
