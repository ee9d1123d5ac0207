"""Answers that no table service gives: without end, out of form, of another status."""

from __future__ import annotations

import itertools
import json
import socket
import time
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from harness.endpoint.accounts import Accounts
from harness.endpoint.admin.listing import round_trips
from harness.endpoint.admin.probe import check
from harness.endpoint.admin.tables import (
    create_table,
    delete_run_entities,
    delete_table,
    follow,
    list_tables,
    require_empty_table,
)
from harness.endpoint.http.exchange import MAX_RESPONSE_BYTES
from harness.model.errors import SetupError
from harness.model.operation import Kind, Operation, transaction
from harness.model.outcome import Fault, Outcome, Result
from harness.workload.budget import Budget
from harness.workload.scenarios.scenario import Pointers

READ = Operation(kind=Kind.POINT_QUERY, partition_key="p", row_key="r")
QUERY = Operation(kind=Kind.QUERY, partition_key="p")
WRITE = Operation(kind=Kind.INSERT, partition_key="p", row_key="r", properties={"A": 1})
BATCH = transaction((WRITE, Operation(kind=Kind.INSERT, partition_key="p", row_key="s")))

_OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
_CHUNKED = _OK + b"Transfer-Encoding: chunked\r\n\r\n"
_LONG = b"x" * 65536
_SENT_AT_MOST = 4 * MAX_RESPONSE_BYTES
"""A server that nobody stops does not send for ever either."""


def whole(body: bytes, head: bytes = _OK) -> bytes:
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


def status(code: int) -> bytes:
    return whole(b"", b"HTTP/1.1 %d Whatever\r\nLocation: http://127.0.0.1:9/\r\n" % code)


def endless(begin: bytes, again: bytes) -> Callable[[socket.socket], bool]:
    """Send ``begin``, then ``again`` until nobody listens."""

    def step(connection: socket.socket) -> bool:
        connection.sendall(begin)
        block = again * (len(_LONG) // len(again) + 1)
        for _ in range(_SENT_AT_MOST // len(block)):
            connection.sendall(block)
        return False

    return step


ENDLESS = {
    "one body": (_OK + b"Content-Length: 1073741824\r\n\r\n", _LONG),
    "a body of no length": (_OK + b"\r\n", _LONG),
    "chunks": (_CHUNKED, b"10\r\n0123456789abcdef\r\n" * 64),
    "one chunk": (_CHUNKED + b"40000000\r\n", _LONG),
    "an extension of a chunk": (_CHUNKED + b"10;", _LONG),
    "trailers": (_CHUNKED + b"0\r\n", b"A: b\r\n"),
    "headers": (_OK, b"A: b\r\n"),
    "one header": (_OK + b"A: ", _LONG),
    "a name of a header": (_OK, _LONG),
    "a reason": (b"HTTP/1.1 200 ", _LONG),
    "interim answers": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "interim answers without words": (b"", b"HTTP/1.1 103 \r\n\r\n"),
}


@pytest.mark.parametrize("what", ENDLESS)
def test_an_answer_without_end_is_given_up(
    service: Any, scripted: Callable[..., Any], what: str
) -> None:
    """Head and body have a largest size; behind it the connection is closed, and nothing resent."""
    session = scripted(endless(*ENDLESS[what]), service.no_content)
    result = session.execute(READ)
    assert (result.outcome, faults(result)) == (Outcome.UNEXPECTED, [Fault.TOO_LARGE])
    assert result.bytes_received <= MAX_RESPONSE_BYTES + len(_LONG)
    assert session.execute(WRITE).outcome is Outcome.SUCCESS
    assert (service.connections, session.connections_in_use) == (2, 0)


def drip(connection: socket.socket) -> bool:
    """Send byte by byte, each in time, for 8 s."""
    connection.sendall(_OK + b"\r\n")
    for _ in range(400):
        connection.sendall(b"A")
        time.sleep(0.02)
    return False


def test_an_answer_that_drips_ends(scripted: Callable[..., Any]) -> None:
    """An answer whose bytes each come in time, and never end, is a time-out."""
    result = scripted(drip, retries=0, read_timeout_s=0.1).execute(READ)
    assert (result.outcome, faults(result)) == (Outcome.TIMEOUT, [Fault.READ_TIMEOUT])
    assert 0.1 <= result.service_s < 4.0


# Not the shortest chunks: each of them costs the SDK as much time as a long one.
UNTOUCHED = {
    **{what: ENDLESS[what] for what in ("one body", "a body of no length", "one chunk")},
    "chunks": (_CHUNKED, b"400\r\n%b\r\n" % _LONG[:1024]),
}


@pytest.mark.parametrize("of", [WRITE, BATCH], ids=lambda of: of.kind)
@pytest.mark.parametrize("what", UNTOUCHED)
def test_the_untouched_sdk_reads_no_body_without_end(
    service: Any, open_to: Callable[..., Any], of: Operation, what: str
) -> None:
    """Bodies have the same bound there, by a hook of ``requests``."""
    begin, again = UNTOUCHED[what]
    service.script = [endless(begin.replace(b"200 OK", b"202 Accepted"), again)]
    result = open_to("sdk-default", service.endpoint).execute(of)
    assert (result.outcome, faults(result)) == (Outcome.UNEXPECTED, [Fault.TOO_LARGE])


def test_a_page_has_at_most_a_thousand_entities(scripted: Callable[..., Any]) -> None:
    """A page of 1,001 entities is too large, however small they are."""
    page = whole(json.dumps({"value": [{"RowKey": "r"}] * 1001}).encode())
    result = scripted(page).execute(QUERY)
    assert (result.outcome, faults(result)) == (Outcome.UNEXPECTED, [Fault.TOO_LARGE])


@pytest.mark.parametrize("of", [READ, QUERY, WRITE, BATCH], ids=lambda of: of.kind)
@pytest.mark.parametrize("code", [300, 301, 302, 303, 304, 307, 308, 399, 600, 999])
def test_a_status_of_no_table_service_is_unexpected(
    scripted: Callable[..., Any], of: Operation, code: int
) -> None:
    """Redirects and statuses that do not exist are unexpected answers, not retried."""
    result = scripted(status(code)).execute(of)
    assert result.outcome is Outcome.UNEXPECTED
    assert [attempt.status for attempt in result.attempts] == [code]


DEEP = b"[" * 200_000
ENTITIES = [
    {"odata.etag": 7},
    {"odata.etag": "W/é"},
    {"odata.etag": "a\r\nX-Injected: b"},
    {"odata.etag": ["W/"]},
]
ODD = [{"A": [1]}, {"A": {"B": 1}}, {"A@odata.type": "Edm.Guid", "A": 1}, {"A@odata.type": []}]
DOCUMENTS = [
    DEEP,
    b'{"value":' + DEEP,
    b"\xff\xfe{}",
    b'{"PartitionKey":"\\ud800"}',
    b'{"A":' + b"1" * 5000 + b"}",
    b"null",
    b"[]",
    b'"value"',
    b"7",
    b"NaN",
]
LISTED: list[object] = ["text", {}, {"a": 1}, 5, None, ["text"], [5], [None], [[]], True]


def read_of(entity: Any) -> bytes:
    return json.dumps({"PartitionKey": "p", "RowKey": "r", "A": 1, **entity}).encode()


@pytest.mark.parametrize(
    ("of", "body"),
    [
        *((of, body) for of in (READ, QUERY) for body in DOCUMENTS),
        *((READ, read_of(entity)) for entity in ENTITIES),
        (READ, b'{"value":[{}]}'),
        *((QUERY, json.dumps({"value": listed}).encode()) for listed in LISTED),
    ],
)
def test_a_document_out_of_form_is_unexpected(
    scripted: Callable[..., Any], of: Operation, body: bytes
) -> None:
    """Whatever is in a success: what cannot be read is a bad answer, never a defect."""
    result = scripted(whole(body), retries=0).execute(of)
    assert (result.outcome, faults(result)) == (Outcome.UNEXPECTED, [Fault.BAD_ANSWER])


@pytest.mark.parametrize("entity", ODD)
@pytest.mark.parametrize("of", [READ, QUERY], ids=lambda of: of.kind)
def test_an_odd_value_raises_nothing(
    scripted: Callable[..., Any], of: Operation, entity: dict[str, object]
) -> None:
    """A value that is not of its type is a bad answer, or can be looked at as it came."""
    body = read_of(entity)
    body = b'{"value":[' + body + b"]}" if of is QUERY else body
    result = scripted(whole(body), retries=0).execute(of)
    assert result.outcome in (Outcome.UNEXPECTED, Outcome.SUCCESS)
    for value in result.value if isinstance(result.value, list) else [result.value]:
        assert value is None or str(dict(value))


ERRORS = [
    DEEP,
    b'{"odata.error":' + DEEP,
    b'{"odata.error":[]}',
    b'{"odata.error":{"code":[1],"message":5}}',
    b'{"odata.error":{"code":"' + b"C" * 5000 + b'","message":{"value":{"a":"\\ud800"}}}}',
    b'{"odata.error":{"code":"A\\u001b[31m","message":{"value":"\\u001b[31m\\ud800"}}}',
    b"<code" * 100_000,
    b"\xff" * 100,
]


@pytest.mark.parametrize("body", ERRORS)
def test_an_error_out_of_form_is_what_its_status_says(
    scripted: Callable[..., Any], body: bytes
) -> None:
    """An error that cannot be read has no code, and a message that can be printed."""
    head = (
        b"HTTP/1.1 400 Bad\r\nRetry-After: " + b"9" * 5000 + b"\r\n"
        b"x-ms-request-id: " + b"\xe4" * 5000 + b"\r\n"
    )
    result = scripted(whole(body, head)).execute(WRITE)
    (attempt,) = result.attempts
    assert (result.outcome, attempt.error_code) == (Outcome.REJECTED, "")
    assert attempt.message.isprintable()
    assert max(len(attempt.message), len(attempt.request_id)) <= 200
    assert attempt.retry_after_s == 0.0


_MIXED = b"HTTP/1.1 202 Accepted\r\nContent-Type: multipart/mixed; boundary="
_PART = b"--b\r\nContent-Type: application/http\r\n\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        whole(b"--b\r\n\r\n" * 300_000, _MIXED + b"b\r\n"),
        whole(b"--b\r\n" + b"a: b\r\n" * 300_000, _MIXED + b"b\r\n"),
        whole(
            b"".join(
                b"--b%d\r\nContent-Type: multipart/mixed; boundary=b%d\r\n\r\n" % (n, n + 1)
                for n in range(3000)
            ),
            _MIXED + b"b0\r\n",
        ),
        whole(_PART + b"HTTP/1.1 600 Z\r\n\r\n\r\n--b--", _MIXED + b"b\r\n"),
        whole(_PART + b"HTTP/1.1 307 Z\r\n\r\n\r\n--b--", _MIXED + b"b\r\n"),
        whole(_PART + b"HTTP/1.1 100 Z\r\n\r\n\r\n--b--", _MIXED + b"b\r\n"),
        whole(b"--b--", _MIXED + b"\xff\xfe\r\n"),
        whole(b"--b--", b"HTTP/1.1 202 Accepted\r\nContent-Type: \xff\r\n"),
        whole(b"--b--", b"HTTP/1.1 202 Accepted\r\n"),
    ],
    ids=itertools.count(),
)
def test_a_transactions_answer_out_of_form_is_unexpected(
    scripted: Callable[..., Any], answer: bytes
) -> None:
    """Parts without number, without end, in each other, and of odd statuses; soon told."""
    session = scripted(answer, retries=0)
    began_s = time.monotonic()
    assert session.execute(BATCH).outcome is Outcome.UNEXPECTED
    assert time.monotonic() - began_s < 10.0


def faults(result: Result) -> list[Fault | None]:
    return [attempt.fault for attempt in result.attempts]


def around_a_run(service: Any) -> Iterable[tuple[str, Callable[[], object]]]:
    endpoint = service.endpoint
    yield "cannot be created", lambda: create_table(endpoint, "sometable")
    yield "cannot be read", lambda: require_empty_table(endpoint, "sometable")
    yield "cannot be deleted", lambda: delete_table(endpoint, "sometable")
    yield "cannot be listed", lambda: list_tables(endpoint)
    yield (
        "cannot be deleted",
        lambda: delete_run_entities(endpoint, "sometable", "run", lambda gone: None),
    )
    yield (
        "cannot be listed",
        lambda: follow(Accounts((endpoint,)), "t", Pointers(table="A", to="B")),
    )


@pytest.mark.parametrize(
    "answer",
    [
        status(307),
        status(302),
        status(304),
        whole(DEEP),
        whole(DEEP, b"HTTP/1.1 400 Bad\r\nContent-Type: application/json\r\n"),
        whole(b'{"value":5}'),
        whole(b'{"value":[5]}'),
        whole(b"{"),
        whole(b"<a>" * 1000, b"HTTP/1.1 409 Bad\r\nContent-Type: application/xml\r\n"),
        whole(b'{"odata.error":[]}', b"HTTP/1.1 409 Bad\r\nContent-Type: application/json\r\n"),
    ],
    ids=itertools.count(),
)
def test_around_a_run_every_answer_is_a_sentence(service: Any, answer: bytes) -> None:
    """Making, looking into, listing and deleting tables: no answer comes as a traceback."""
    for doing, ask in around_a_run(service):
        service.script = [answer] * 8
        with pytest.raises(SetupError, match=doing) as caught:
            ask()
        assert str(caught.value).isprintable()


def test_around_a_run_answers_have_an_end(service: Any) -> None:
    """The requests around a run go over the same transport, with the same bounds."""
    service.script = [endless(*ENDLESS["headers"])] * 8
    with pytest.raises(SetupError, match="the tables cannot be listed: no response"):
        list_tables(service.endpoint)


def test_keys_that_are_none_are_a_sentence(service: Any) -> None:
    """Entities without keys, or with numbers for keys, are not deleted by guess."""
    for entity in ({}, {"PartitionKey": 1, "RowKey": 2}, {"PartitionKey": "p"}):
        service.script = [whole(json.dumps({"value": [entity]}).encode())]
        with pytest.raises(SetupError, match="cannot be deleted"):
            delete_run_entities(service.endpoint, "sometable", "run", lambda gone: None)
    service.script = [whole(b'{"value":[{}]}')]
    with pytest.raises(SetupError, match="not empty"):
        require_empty_table(service.endpoint, "sometable")


def test_a_table_of_empty_pages_is_not_read_for_ever(service: Any) -> None:
    """An endpoint that never says whether a table is empty is asked a bounded number of times."""
    more = _OK + b"x-ms-continuation-NextPartitionKey: %d\r\n"
    service.script = [whole(b'{"value":[]}', more % number) for number in range(500)]
    with pytest.raises(SetupError, match="does not say whether the table is empty"):
        require_empty_table(service.endpoint, "sometable")
    assert len(service.requests) < 200


def test_a_listing_that_leads_back_ends(service: Any) -> None:
    """A continuation token that was there before is a sentence after a few pages."""
    pages = [
        whole(b'{"value":[]}', _OK + b"x-ms-continuation-NextTableName: %b\r\n" % token)
        for token in (b"a", b"b", b"c")
    ]
    service.script = [*pages, *pages, *pages]
    with pytest.raises(SetupError, match="leads back to an earlier page"):
        list_tables(service.endpoint)
    assert len(service.requests) < 9


def test_only_throttling_answers_are_counted_as_throttled(service: Any) -> None:
    """A 500 with another code than OperationTimedOut is an error of the server."""
    service.script = [
        service.answer(503, "ServerBusy"),
        service.answer(500, "InternalError"),
        service.answer(500, "OperationTimedOut"),
        whole(b'{"value":[]}'),
    ]
    assert round_trips(service.endpoint, Budget(4)).throttled == 2


PROBED = {
    "deep": whole(DEEP),
    "a deep error": whole(DEEP, b"HTTP/1.1 403 No\r\n"),
    "a list": whole(b'{"odata.error":[]}', b"HTTP/1.1 403 No\r\n"),
    "a redirect": status(307),
    "no status": b"HTTP/1.1 9999999 A\r\n\r\n",
    "a date that is none": whole(b"{}", b"HTTP/1.1 403 No\r\nDate: Mon, 99 Foo 9 a\r\n"),
    "a date long ago": whole(b"{}", b"HTTP/1.1 403 No\r\nDate: Mon, 01 Jan 0001 00:00:00 GMT\r\n"),
    "a message to the terminal": whole(
        b'{"odata.error":{"code":"\\u001b[31m","message":{"value":"\\u001b]0;x\\u0007"}}}',
        b"HTTP/1.1 403 No\r\n",
    ),
}


@pytest.mark.parametrize("what", PROBED)
def test_the_probe_makes_one_sentence_of_every_answer(service: Any, what: str) -> None:
    """The question before a run is answered by one printable sentence, whatever comes."""
    service.script = [PROBED[what]]
    with pytest.raises(SetupError) as caught:
        check(service.endpoint, environ={})
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("what", ENDLESS)
def test_the_probe_reads_no_answer_for_ever(service: Any, what: str) -> None:
    """An answer without end is a sentence, and nothing goes on reading it."""
    service.script = [endless(*ENDLESS[what])]
    with pytest.raises(SetupError):
        check(service.endpoint, environ={}, timeout_s=0.5)
    assert service.ends_to_serve(within_s=4.0)
