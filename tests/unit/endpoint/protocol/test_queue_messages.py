"""Requests and answers of the Queue protocol."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.endpoint.endpoint import Endpoint, emulator_endpoint
from harness.endpoint.http.exchange import Exchange, ResponseFault, ResponseHeaders
from harness.endpoint.protocol.queues import QueueRequestWriter, read_messages, read_names
from harness.endpoint.sessions import operation_problem
from harness.endpoint.sessions.queue import queue_problem
from harness.model.operation import HIDDEN_S, MESSAGE_TEXT, Kind, Message, Operation

ENDPOINT: Endpoint = emulator_endpoint("http://127.0.0.1:10001")
WRITER = QueueRequestWriter(ENDPOINT)
PUT_AT, HIDDEN_UNTIL = "Thu, 26 Nov 2026 12:00:00 GMT", "Thu, 26 Nov 2026 12:00:42 GMT"
GET = Operation(kind=Kind.GET_MESSAGES, partition_key="orders", top=2, properties={HIDDEN_S: 30})


def message_xml(text: str = "t", **more: str) -> str:
    parts = {
        "MessageId": "id-1",
        "InsertionTime": PUT_AT,
        "ExpirationTime": PUT_AT,
        "PopReceipt": "r+/=",
        "TimeNextVisible": HIDDEN_UNTIL,
        "DequeueCount": "3",
        "MessageText": text,
        **more,
    }
    inner = "".join(f"<{name}>{value}</{name}>" for name, value in parts.items())
    return f"<QueueMessage>{inner}</QueueMessage>"


def answered(body: str | bytes, status: int = 200, **headers: str) -> Exchange:
    exchange = Exchange("1")
    exchange.status = status
    exchange.headers = ResponseHeaders({name.lower(): text for name, text in headers.items()})
    exchange.body = body.encode() if isinstance(body, str) else body
    return exchange


def listed(*messages: str) -> str:
    return f'<?xml version="1.0"?><QueueMessagesList>{"".join(messages)}</QueueMessagesList>'


def put(text: str) -> Operation:
    return Operation(kind=Kind.PUT_MESSAGE, partition_key="orders", properties={MESSAGE_TEXT: text})


@given(st.text(max_size=200))
def test_any_text_that_can_be_sent_arrives(text: str) -> None:
    """A parser of XML reads the text that was put; what XML cannot hold is refused before."""
    if queue_problem(put(text)) is not None:
        return
    head, _, body = WRITER.single(put(text), "q-orders", "1").partition(b"\r\n\r\n")
    assert (ElementTree.fromstring(body).findtext("MessageText") or "") == text
    assert f"Content-Length: {len(body)}".encode() in head


@given(st.text(min_size=1, max_size=30), st.text(min_size=1, max_size=30))
def test_any_receipt_and_id_stay_in_their_place(identity: str, receipt: str) -> None:
    """They are encoded, so that no text of the service becomes a header or another parameter."""
    operation = Operation(
        kind=Kind.DELETE_MESSAGE, partition_key="orders", row_key=identity, etag=receipt
    )
    head = WRITER.single(operation, f"q-{identity}", "1")
    assert head.count(b"\r\n") == 9
    method, target, _ = head.split(b"\r\n")[0].decode("ascii").split(" ")
    assert method == "DELETE"
    assert parse_qs(urlsplit(target).query, keep_blank_values=True) == {"popreceipt": [receipt]}
    assert urlsplit(target).path.count("/") == 4


def test_a_get_names_how_many_and_for_how_long() -> None:
    """The number of messages and the visibility time-out are in the query."""
    target = WRITER.single(GET, "q-orders", "1").split(b" ")[1].decode()
    assert parse_qs(urlsplit(target).query) == {"numofmessages": ["2"], "visibilitytimeout": ["30"]}
    peek = Operation(kind=Kind.PEEK_MESSAGES, partition_key="orders")
    target = WRITER.single(peek, "q-orders", "1").split(b" ")[1].decode()
    assert parse_qs(urlsplit(target).query) == {"numofmessages": ["1"], "peekonly": ["true"]}


def test_the_age_of_a_message_is_by_the_clock_of_the_service() -> None:
    """It became hidden 30 s before it is visible again, 12 s after it was put."""
    [message] = read_messages(GET, answered(listed(message_xml("a&amp;b"))))
    assert message == Message(id="id-1", receipt="r+/=", text="a&b", gets=3, age_s=12.0)


def test_an_update_has_a_new_receipt() -> None:
    """It is in a header of the answer."""
    update = Operation(kind=Kind.UPDATE_MESSAGE, partition_key="q", row_key="id-1", etag="r")
    found = read_messages(update, answered("", 204, **{"x-ms-popreceipt": "new"}))
    assert found == [Message(id="id-1", receipt="new")]
    with pytest.raises(ResponseFault, match="no pop receipt"):
        read_messages(update, answered("", 204))


def test_a_refusal_has_no_messages() -> None:
    """Its status says what it means."""
    assert read_messages(GET, answered("<Error/>", 404)) == []


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("", "not XML"),
        ("{}", "not XML"),
        ("<Queues/>", "not a QueueMessagesList"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><QueueMessagesList/>', "document type"),
        (listed("<QueueMessage/>"), "no id"),
        (listed(message_xml(InsertionTime="soon")), "not one: 'soon'"),
        (listed(*[message_xml()] * 3), "3 messages came, and 2 were asked for"),
    ],
)
def test_what_is_no_list_of_messages_is_not_read(body: str, said: str) -> None:
    """A success that another server sent, or a hostile one."""
    with pytest.raises(ResponseFault, match=said):
        read_messages(GET, answered(body))


@given(st.binary(max_size=300))
def test_no_body_breaks_the_reading(body: bytes) -> None:
    """Whatever comes is read, or is an answer that cannot be read."""
    for read in (
        lambda: read_messages(GET, answered(body)),
        lambda: read_names(answered(body), "Queues/Queue"),
    ):
        try:
            read()
        except ResponseFault:
            continue


@pytest.mark.parametrize(
    ("operation", "said"),
    [
        (put("x" * 65_537), "65,537 bytes"),
        (put("é" * 40_000), "80,000 bytes"),
        (put("a\x00b"), "XML cannot hold"),
        (put("\ud800"), "XML cannot hold"),
        (Operation(kind=Kind.GET_MESSAGES, partition_key="q", top=33), "1 to 32 messages"),
        (Operation(kind=Kind.GET_MESSAGES, partition_key="q", top=0), "1 to 32 messages"),
        (Operation(kind=Kind.INSERT, partition_key="p", row_key="r"), "not one on messages"),
    ],
)
def test_what_queues_cannot_do_is_refused(operation: Operation, said: str) -> None:
    """The sentence says what is wrong."""
    assert said in str(queue_problem(operation))


def test_each_session_sends_its_own_operations() -> None:
    """Tables take no messages, and queues nothing else; the largest message fits."""
    assert operation_problem("queue", put("x" * 65_536)) is None
    assert "session queue" in str(operation_problem("wire", put("x")))
    assert "rows of a table" in str(
        operation_problem("wire", Operation(kind=Kind.GET_BLOB, partition_key="p"))
    )
    assert operation_problem("wire", Operation(kind=Kind.DELETE, partition_key="p")) is None
