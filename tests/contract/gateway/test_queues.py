"""azure-storage-queue as it comes, through a gateway: refusals, retries, faults and counts."""

from __future__ import annotations

import contextlib
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from xml.etree import ElementTree

import pytest
from azure.core.exceptions import AzureError, HttpResponseError
from azure.core.pipeline.transport import RequestsTransport
from azure.storage.queue import LinearRetry, QueueClient

from harness.endpoint.azurite.process import AzuriteProcess, start_azurite
from harness.endpoint.endpoint import emulator_endpoint
from harness.model.services.queues import QUEUES
from tests.contract.gateway.conftest import WIDE
from tests.support.gateways import Gateway, Told
from tests.support.sdk import account_key

pytestmark = pytest.mark.azurite

RAISED = (AzureError, ElementTree.ParseError)
NO_RETRIES = {"retry_total": 0}


class Counting(RequestsTransport):  # type: ignore[misc]
    """The transport of the SDK; it counts what each request ended in, and the messages."""

    def __init__(self) -> None:
        super().__init__()
        self.ends: Counter[str] = Counter()
        self.messages = 0

    def send(self, request: Any, **said: Any) -> Any:
        try:
            response = super().send(request, **said)
        except AzureError:
            self.ends["broken"] += 1
            raise
        headers, length = response.headers, len(response.content)
        # The SDK takes half an answer for the answer, even one that ends in its head.
        if "Date" not in headers or int(headers.get("Content-Length", length)) != length:
            self.ends["broken"] += 1
            return response
        self.ends[str(response.status_code)] += 1
        self.messages += response.content.count(b"<QueueMessage>")
        return response


@pytest.fixture(scope="module")
def queues() -> Iterator[AzuriteProcess]:
    """An Azurite with queues."""
    with start_azurite(service="queue") as process:
        yield process


@pytest.fixture
def queue_of(queues: AzuriteProcess) -> Iterator[Callable[..., QueueClient]]:
    """Opens the SDK's client of one queue of the test, over a gateway or without one."""
    name = f"gateway-{uuid.uuid4().hex[:16]}"
    endpoint = queues.endpoint
    credential = {"account_name": endpoint.account, "account_key": account_key(endpoint)}
    opened: list[QueueClient] = []

    def open_it(gateway: Gateway | None, **said: Any) -> QueueClient:
        url = endpoint.url if gateway is None else emulator_endpoint(gateway.url).url
        opened.append(QueueClient(url, name, credential=credential, **said))
        return opened[-1]

    open_it(None).create_queue()
    yield open_it
    opened[0].delete_queue()
    for client in opened:
        client.close()


@pytest.mark.parametrize(
    ("scope", "message"),
    [
        ("partition", "The server is busy."),
        ("account", "Operations per second is over the account limit."),
    ],
)
def test_a_refused_request_raises_as_from_the_service(
    gateway_to: Callable[..., Any],
    queue_of: Callable[..., QueueClient],
    queues: AzuriteProcess,
    scope: str,
    message: str,
) -> None:
    """Status, code and message of a refusal, of a queue or of the account, are read by the SDK."""
    limits = f"[{scope}]\nentities_per_s = 0.1\nburst_s = 50.0\n"
    gateway = gateway_to(limits, upstream=f"http://{queues.endpoint.host}")
    queue = queue_of(gateway, **NO_RETRIES)
    for number in range(5):
        queue.send_message(f"{number}")
    for call in (
        lambda: queue.send_message("x"),
        lambda: queue.receive_message(),
        lambda: queue.peek_messages(),
    ):
        with pytest.raises(HttpResponseError) as caught:
            call()
        error = caught.value
        assert (error.status_code, getattr(error, "error_code", "")) == (503, "ServerBusy")
        assert message in error.message
    told = Told(gateway)
    assert told.by("partition", "result", "sent", "scope", table=QUEUES.beside) == {
        (queue.queue_name, "passed", "201", ""): 5,
        (queue.queue_name, "refused", "503", scope): 3,
    }


def test_retries_of_the_sdk_recover(
    gateway_to: Callable[..., Any], queue_of: Callable[..., QueueClient], queues: AzuriteProcess
) -> None:
    """A put that meets an empty bucket is refused, sent again by the SDK, and done."""
    limits = "[partition]\nentities_per_s = 5.0\nburst_s = 0.4\n"
    gateway = gateway_to(limits, upstream=f"http://{queues.endpoint.host}")
    patience = LinearRetry(backoff=1, retry_total=5, random_jitter_range=0)
    queue = queue_of(gateway, retry_policy=patience)
    for _ in range(3):
        queue.send_message("x")
    results = Told(gateway).by("result", table=QUEUES.beside)
    assert results["passed",] == 3
    assert results["refused",] >= 1


def test_under_faults_the_counts_are_those_of_the_client(
    gateway_to: Callable[..., Any], queue_of: Callable[..., QueueClient], queues: AzuriteProcess
) -> None:
    """With a tenth of the requests failing, requests and messages are equal on both sides.

    Bounds: some four hundred requests, about ten seconds.
    """
    faults = "[faults]\nerror_500 = 0.03\nerror_503 = 0.03\nreset = 0.02\nhalf_answer = 0.02\n"
    gateway = gateway_to(f"{WIDE}{faults}", upstream=f"http://{queues.endpoint.host}")
    transport = Counting()
    queue = queue_of(gateway, transport=transport, **NO_RETRIES)
    for number in range(120):
        with contextlib.suppress(*RAISED):
            queue.send_message(f"message {number}")
        with contextlib.suppress(*RAISED):
            queue.peek_messages(max_messages=number % 32 + 1)
        with contextlib.suppress(*RAISED):
            for message in queue.receive_messages(messages_per_page=2, max_messages=2):
                if number % 2:
                    queue.delete_message(message)
    rows = Told(gateway).rows(QUEUES.beside)
    counted: Counter[str] = Counter()
    for row in rows:
        counted[row["sent"] if row["sent"].isdigit() else "broken"] += row["requests"]
    assert counted == transport.ends
    assert counted["broken"] > 0
    assert counted["500"] > 0
    whole = [row for row in rows if row["sent"].isdigit()]
    deleted = sum(row["entities"] for row in whole if row["sent"] == "204")
    assert deleted == transport.ends["204"]
    assert sum(row["entities"] for row in whole) - deleted == transport.messages
    # What the endpoint did, whether or not the client learned it, is what is there.
    put = sum(row["entities"] for row in rows if row["upstream"] == "201")
    gone = sum(row["entities"] for row in rows if row["upstream"] == "204")
    assert queue_of(None).get_queue_properties().approximate_message_count == put - gone


def test_without_an_endpoint_the_sdk_is_content(
    gateway_to: Callable[..., Any], queue_of: Callable[..., QueueClient]
) -> None:
    """Queues and messages are acknowledged and not stored."""
    queue = queue_of(gateway_to(WIDE, upstream="none"))
    queue.create_queue()
    message = queue.send_message("x")
    assert message.id
    assert queue.update_message(message, content="y").pop_receipt
    queue.delete_message(message)
    assert queue.receive_message() is None
    queue.delete_queue()
