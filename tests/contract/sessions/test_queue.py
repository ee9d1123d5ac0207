"""The queue session against Azurite's queue server, and beside azure-storage-queue."""

from __future__ import annotations

import dataclasses
import datetime as dt
import random
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.queue import (
    AccountSasPermissions,
    QueueClient,
    QueueServiceClient,
    ResourceTypes,
    generate_account_sas,
)
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from harness.endpoint.accounts import accounts_from
from harness.endpoint.admin.probe import check
from harness.endpoint.admin.stores import create_store, delete_store, leftovers
from harness.endpoint.azurite.process import start_azurite
from harness.endpoint.credential import Sas, SharedKey
from harness.endpoint.endpoint import Endpoint, as_kind
from harness.endpoint.entra.login import Login
from harness.endpoint.entra.token import Token, identity_of
from harness.endpoint.sessions.queue import queue_problem
from harness.model.errors import SetupError
from harness.model.operation import HIDDEN_S, MESSAGE_TEXT, Kind, Message, Operation
from harness.model.outcome import Outcome
from harness.model.services.queues import AZURITE_QUEUES
from harness.workload.budget import Budget
from harness.workload.entity_factory import EntityFactory
from harness.workload.operation_factory import OperationFactory, messages_of
from harness.workload.retry import ScheduledBackoff
from tests.contract.conftest import ScriptedService
from tests.support.certificates import CertificateFiles
from tests.support.entra import access_token
from tests.support.examples import examples
from tests.support.sdk import account_key, named_key

pytestmark = pytest.mark.azurite

MAKE = OperationFactory(EntityFactory(1024, "run-1"))
QUEUE = "orders"


@pytest.fixture(scope="module")
def queues() -> Iterator[Endpoint]:
    with start_azurite(service="queue") as azurite:
        yield as_kind(azurite.endpoint, AZURITE_QUEUES)


@pytest.fixture
def run(queues: Endpoint) -> Iterator[str]:
    """The name of a run that has one queue."""
    name = f"contract{uuid.uuid4().hex[:16]}"
    create_store(queues, f"{name}-{QUEUE}", Budget())
    yield name
    delete_store(queues, f"{name}-{QUEUE}", Budget())


@pytest.fixture
def session(queues: Endpoint, run: str, open_to: Callable[..., Any]) -> Any:
    return open_to("queue", queues, run)


@pytest.fixture
def client(queues: Endpoint, run: str) -> Iterator[QueueClient]:
    """What an application has for the same queue."""
    name = f"{run}-{QUEUE}"
    with QueueClient(queues.url, name, credential=named_key(queues)) as client:
        yield client


def test_a_message_is_put_got_updated_and_deleted(session: Any, client: QueueClient) -> None:
    """Each counts one message, and the SDK sees the same queue after each."""
    put = session.execute(MAKE.put_message(QUEUE, "a <b> & c"))
    assert (put.outcome, put.entities) == (Outcome.SUCCESS, 1)
    assert [message.content for message in client.peek_messages()] == ["a <b> & c"]
    peeked = session.execute(MAKE.peek_messages(QUEUE, most=5))
    assert [message.text for message in messages_of(peeked)] == ["a <b> & c"]
    got = session.execute(MAKE.get_messages(QUEUE, most=5, hidden_s=60))
    [message] = messages_of(got)
    assert (message.text, message.gets, got.entities, got.entities_returned) == (
        "a <b> & c",
        1,
        1,
        1,
    )
    assert list(client.receive_messages()) == []
    empty = session.execute(MAKE.get_messages(QUEUE, most=5))
    assert (empty.outcome, empty.entities, messages_of(empty)) == (Outcome.SUCCESS, 0, [])
    updated = session.execute(MAKE.update_message(QUEUE, message, text="new", hidden_s=0))
    [now] = messages_of(updated)
    assert (updated.outcome, updated.entities) == (Outcome.SUCCESS, 1)
    assert now.receipt != message.receipt
    assert [one.content for one in client.peek_messages()] == ["new"]
    stale = session.execute(MAKE.delete_message(QUEUE, message))
    assert stale.outcome is Outcome.PRECONDITION
    assert session.execute(MAKE.delete_message(QUEUE, now)).outcome is Outcome.SUCCESS
    assert client.get_queue_properties().approximate_message_count == 0
    gone = session.execute(MAKE.delete_message(QUEUE, now))
    assert (gone.outcome, gone.entities) == (Outcome.NOT_FOUND, 0)


def test_a_hidden_message_comes_back_and_is_older(session: Any) -> None:
    """After its time-out another get returns it, with its age and the number of gets."""
    session.execute(MAKE.put_message(QUEUE))
    first = session.execute(MAKE.get_messages(QUEUE, hidden_s=1))
    assert [message.gets for message in messages_of(first)] == [1]
    deadline = time.monotonic() + 10
    again = session.execute(MAKE.get_messages(QUEUE, hidden_s=30))
    while not messages_of(again) and time.monotonic() < deadline:
        time.sleep(0.2)
        again = session.execute(MAKE.get_messages(QUEUE, hidden_s=30))
    [message] = messages_of(again)
    assert message.gets == 2
    assert 1 <= message.age_s == again.oldest_s <= 12


def test_a_missing_queue_is_no_missing_message(
    queues: Endpoint, open_to: Callable[..., Any]
) -> None:
    """The operation is rejected, as with a table that does not exist."""
    session = open_to("queue", queues, "nothing")
    for operation in (MAKE.put_message(QUEUE), MAKE.get_messages(QUEUE)):
        result = session.execute(operation)
        assert (result.outcome, result.attempts[-1].error_code) == (
            Outcome.REJECTED,
            "QueueNotFound",
        )


TEXTS = st.text(min_size=1, max_size=60).filter(
    # Azurite's parser of XML trims texts.
    lambda text: text == text.strip() and "\r" not in text
)


@examples(40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=TEXTS)
def test_what_is_put_is_what_the_sdk_reads_and_the_reverse(
    session: Any, client: QueueClient, text: str
) -> None:
    """Differential: any text through our requests and through azure-storage-queue."""
    ours = MAKE.put_message(QUEUE, text)
    if queue_problem(ours) is not None:
        return
    assert session.execute(ours).outcome is Outcome.SUCCESS
    theirs = client.receive_message(visibility_timeout=60)
    assert theirs is not None
    assert theirs.content == text
    client.delete_message(theirs)
    client.send_message(text)
    [message] = messages_of(session.execute(MAKE.get_messages(QUEUE, hidden_s=60)))
    assert message.text == text
    # The SDK takes the receipt that our session read.
    client.delete_message(message.id, message.receipt)


def test_the_answers_are_those_that_the_sdk_reads(session: Any, client: QueueClient) -> None:
    """Differential: ids, receipts, counts and refusals of a series of random steps."""
    rng = random.Random(5)
    for number in range(60):
        client.send_message(f"message {number}")
    held: list[Message] = []
    left = 60
    for _ in range(120):
        step = rng.random()
        if step < 0.4:
            asked = rng.randint(1, 32)
            result = session.execute(MAKE.get_messages(QUEUE, most=asked, hidden_s=300))
            found = messages_of(result)
            assert result.entities == len(found) <= asked
            held += found
        elif step < 0.7 and held:
            message = held.pop()
            wrong = dataclasses.replace(message, receipt="bm90IGEgcmVjZWlwdA==")
            refused = session.execute(MAKE.delete_message(QUEUE, wrong))
            with pytest.raises(HttpResponseError) as error:
                client.delete_message(wrong.id, wrong.receipt)
            attempt = refused.attempts[-1]
            assert (attempt.status, attempt.error_code) == (
                error.value.status_code,
                cast(Any, error.value.response).headers["x-ms-error-code"],
            )
            assert session.execute(MAKE.delete_message(QUEUE, message)).outcome is Outcome.SUCCESS
            left -= 1
        else:
            peeked = messages_of(session.execute(MAKE.peek_messages(QUEUE, most=32)))
            theirs = client.peek_messages(max_messages=32)
            assert [(one.id, one.text, one.gets) for one in peeked] == [
                (one.id, one.content, one.dequeue_count) for one in theirs
            ]
    assert client.get_queue_properties().approximate_message_count == left


def with_credential(endpoint: Endpoint, credential: Any) -> Endpoint:
    return dataclasses.replace(endpoint, credential=credential)


def account_sas(endpoint: Endpoint, permission: str = "rwdlacup") -> str:
    token: str = generate_account_sas(
        endpoint.account,
        account_key(endpoint),
        ResourceTypes(service=True, container=True, object=True),
        AccountSasPermissions.from_string(permission),
        dt.datetime.now(dt.UTC) + dt.timedelta(hours=1),
    )
    return token


@pytest.mark.parametrize("kind", ["key", "connection string", "sas"])
def test_a_queue_is_used_with_each_credential(
    kind: str, queues: Endpoint, open_to: Callable[..., Any]
) -> None:
    """From the environment to a message: the account's key, a connection string, and a SAS."""
    table = "TableEndpoint=http://127.0.0.1:9/devstoreaccount1"
    environ = {
        "key": {
            "AZURE_STORAGE_ACCOUNT": queues.account,
            "AZURE_STORAGE_KEY": account_key(queues),
        },
        "connection string": {
            "AZURE_STORAGE_CONNECTION_STRING": f"AccountName={queues.account};{table};"
            f"AccountKey={account_key(queues)};QueueEndpoint={queues.url}"
        },
        "sas": {
            "AZURE_STORAGE_ACCOUNT": queues.account,
            "AZURE_STORAGE_SAS_TOKEN": account_sas(queues),
        },
    }[kind]
    [endpoint] = accounts_from(queues.url, environ, server="queue")
    assert endpoint.kind is AZURITE_QUEUES
    assert isinstance(endpoint.credential, Sas if kind == "sas" else SharedKey)
    used(endpoint, open_to)


def used(endpoint: Endpoint, open_to: Callable[..., Any]) -> None:
    name = f"contract{uuid.uuid4().hex[:16]}"
    check(endpoint)
    create_store(endpoint, f"{name}-{QUEUE}", Budget())
    session = open_to("queue", endpoint, name)
    assert session.execute(MAKE.put_message(QUEUE)).outcome is Outcome.SUCCESS
    [message] = messages_of(session.execute(MAKE.get_messages(QUEUE)))
    for operation in (
        MAKE.update_message(QUEUE, message),
        MAKE.peek_messages(QUEUE),
        MAKE.delete_message(QUEUE, message),
    ):
        assert session.execute(operation).outcome in (Outcome.SUCCESS, Outcome.PRECONDITION)
    delete_store(endpoint, f"{name}-{QUEUE}", Budget())
    # A queue that is gone counts as deleted.
    delete_store(endpoint, f"{name}-{QUEUE}", Budget())


def test_a_refused_credential_is_a_sentence(queues: Endpoint) -> None:
    """Before anything is created."""
    wrong = with_credential(queues, SharedKey(queues.account, "d3Jvbmc="))
    with pytest.raises(SetupError, match="refuses the key for the account"):
        check(wrong)
    weak = with_credential(queues, Sas(account_sas(queues, "r")))
    with pytest.raises(SetupError, match="the SAS lacks the permission add"):
        check(weak)


def test_a_queue_that_exists_is_not_taken(queues: Endpoint, run: str) -> None:
    """It belongs to somebody else."""
    with pytest.raises(SetupError, match="exists already and does not belong to this run"):
        create_store(queues, f"{run}-{QUEUE}", Budget())


def test_leftover_queues_are_old_and_ours(queues: Endpoint) -> None:
    """Only names of our form, and only those that are old enough."""
    now = dt.datetime.now(dt.UTC)
    old = f"stress{now - dt.timedelta(hours=2):%Y%m%dt%H%M%Sz}0badcafe-orders"
    new = f"stress{now:%Y%m%dt%H%M%Sz}0badcafe-mail"
    others = ("stress-test", "stressed-out")
    for name in (old, new, *others):
        create_store(queues, name, Budget())
    assert list(leftovers(queues, now, 3600)) == [old]
    assert list(leftovers(queues, now, 0)) == [old, new]
    for name in (old, new, *others):
        delete_store(queues, name, Budget())


PUT = MAKE.put_message(QUEUE, "text")
RETRY = ScheduledBackoff(delays_s=(0.01, 0.01))


def of_messages(status: str, *messages: str) -> bytes:
    body = f"<QueueMessagesList>{''.join(messages)}</QueueMessagesList>"
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


STORED = of_messages(
    "201 Created",
    "<QueueMessage><MessageId>1</MessageId><PopReceipt>r</PopReceipt></QueueMessage>",
)
NONE = of_messages("200 OK")


def test_a_lost_put_is_not_repeated(service: ScriptedService, open_to: Callable[..., Any]) -> None:
    """A retry could put the message twice, so it is ambiguous; a refused put is retried."""
    service.script = [service.reset, service.answer(503, "ServerBusy"), STORED]
    session = open_to("queue", service.endpoint, retry=RETRY)
    lost = session.execute(PUT)
    assert (lost.outcome, lost.entities, len(lost.attempts)) == (Outcome.AMBIGUOUS, 0, 1)
    refused = session.execute(PUT)
    assert [one.status for one in refused.attempts] == [503, 201]
    assert (refused.outcome, refused.entities) == (Outcome.SUCCESS, 1)
    assert len(service.requests) == 3


def test_a_lost_get_is_sent_again_and_a_lost_delete_is_named(
    service: ScriptedService, open_to: Callable[..., Any]
) -> None:
    """The messages of the lost get come back after their time; who deleted is not known."""
    service.script = [service.reset, NONE, service.reset, service.answer(404, "MessageNotFound")]
    session = open_to("queue", service.endpoint, retry=RETRY)
    got = session.execute(MAKE.get_messages(QUEUE))
    assert (got.outcome, len(got.attempts), got.entities) == (Outcome.SUCCESS, 2, 0)
    deleted = session.execute(MAKE.delete_message(QUEUE, Message(id="1", receipt="r")))
    assert (deleted.outcome, len(deleted.attempts)) == (Outcome.AMBIGUOUS, 2)
    assert len(service.requests) == 4


def test_a_throttled_queue_is_told_from_a_throttled_account(
    service: ScriptedService, open_to: Callable[..., Any]
) -> None:
    """Both are 503 ServerBusy; the message tells, as it does for tables."""
    service.script = [
        service.answer(503, "ServerBusy", "The server is busy."),
        service.answer(503, "ServerBusy", "Operations per second is over the account limit."),
    ]
    session = open_to("queue", service.endpoint)
    scopes = [session.execute(PUT).attempts[-1].scope for _ in range(2)]
    assert scopes == ["partition", "account"]


def test_a_login_is_accepted(
    certificates: CertificateFiles, monkeypatch: pytest.MonkeyPatch, open_to: Callable[..., Any]
) -> None:
    """The token of Entra ID, over https, for creating a queue and for its messages."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))
    value = access_token()
    issued = Token(
        value=value,
        fetched_s=time.time(),
        expires_s=time.time() + 3600,
        identity=identity_of(value),
    )
    login = Login(lambda: issued, audience="https://storage.azure.com")
    login.sign_in()
    with start_azurite(
        service="queue", cert=certificates.cert, key=certificates.key, oauth=True
    ) as azurite:
        used(with_credential(as_kind(azurite.endpoint, AZURITE_QUEUES), login), open_to)


def test_nothing_is_left(queues: Endpoint) -> None:
    """Each test deletes its queues."""
    with QueueServiceClient(queues.url, credential=named_key(queues)) as account:
        assert list(account.list_queues()) == []


def test_the_properties_of_a_message_are_the_documented_ones() -> None:
    """The factory names text and visibility as the session reads them."""
    got = MAKE.get_messages(QUEUE, most=3, hidden_s=7)
    assert (got.kind, got.top, got.properties) == (Kind.GET_MESSAGES, 3, {HIDDEN_S: 7})
    assert (
        Operation(kind=Kind.PUT_MESSAGE, partition_key=QUEUE, properties={MESSAGE_TEXT: "text"})
        == PUT
    )
