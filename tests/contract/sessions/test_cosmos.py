"""Cosmos DB's way of answering, in every session.

The answers have the form of recorded ones in the tests of azure-data-tables (Python) and
Azure.Data.Tables (.NET). No account was asked.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from harness.endpoint.endpoint import Endpoint, as_kind
from harness.model.operation import Kind, Operation, transaction
from harness.model.outcome import Outcome
from harness.model.services.cosmos import COSMOS_EMULATOR
from harness.workload.retry import ScheduledBackoff

ROW: dict[str, Any] = {"partition_key": "p", "row_key": "r"}
READ = Operation(kind=Kind.POINT_QUERY, **ROW)
QUERY = Operation(kind=Kind.QUERY, partition_key="p")
DELETE = Operation(kind=Kind.DELETE, **ROW)
WRITES = [Operation(kind=kind, **ROW, properties={"A": 1}) for kind in Kind if kind.stores]
TOGETHER = transaction((WRITES[0], Operation(kind=Kind.DELETE, partition_key="p", row_key="s")))
EVERY = [READ, QUERY, *WRITES, DELETE, TOGETHER]
PART_DONE = b'HTTP/1.1 204 No Content\r\nETag: W/"1"\r\nContent-ID: 1\r\n\r\n'
THROTTLED = (
    'Message: {"Errors":["Request rate is large. More Request Units may be needed, so no changes '
    'were made. Please retry this request later."]}\r\nActivityId: b2efae7b-2cc4-4b86-874b-'
    "efa1d55284ff, Request URI: /apps/78ba6cb7/services/486905fb/partitions/cf89308c/replicas/1p/"
)


def chunked(status: str, content_type: str, body: bytes, **headers: str) -> bytes:
    """An answer without a length and a request id."""
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {content_type}", "Transfer-Encoding: chunked"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    head = "\r\n".join([*lines, "", ""]).encode()
    return head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)


def refused(status: str, code: str, message: str, **headers: str) -> bytes:
    error = {"odata.error": {"code": code, "message": {"lang": "en-us", "value": message}}}
    body = json.dumps(error).encode() + b"\r\n"
    return chunked(status, "application/json;odata=fullmetadata", body, **headers)


def together(*parts: bytes) -> bytes:
    """The answer to a transaction, in which some lines end with a line feed alone."""
    body = (
        b"--batchresponse_1\r\nContent-Type: multipart/mixed; boundary=changesetresponse_1\r\n\r\n"
    )
    for part in parts:
        body += b"--changesetresponse_1\nContent-Type: application/http\n"
        body += b"Content-Transfer-Encoding: binary\n\n" + part + b"\r\n"
    body += b"--changesetresponse_1--\n--batchresponse_1--\r\n"
    return chunked("202 Accepted", "multipart/mixed; boundary=batchresponse_1", body)


def refused_part(status: str, code: str, message: str) -> bytes:
    error = {"odata.error": {"code": code, "message": {"lang": "en-us", "value": message}}}
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json;odata=fullmetadata\r\n\r\n"
    return head.encode() + json.dumps(error).encode()


def page(*rows: str, **headers: str) -> bytes:
    body = json.dumps({"value": [{"PartitionKey": "p", "RowKey": row} for row in rows]}).encode()
    return chunked("200 Ok", "application/json;odata=minimalmetadata", body, **headers)


def done(operation: Operation) -> bytes:
    """The answer of success to an operation."""
    if operation.kind is Kind.POINT_QUERY:
        body = json.dumps({"odata.etag": 'W/"1"', "PartitionKey": "p", "RowKey": "r"}).encode()
        return chunked("200 Ok", "application/json;odata=minimalmetadata", body)
    if operation.kind is Kind.QUERY:
        return page("r")
    if operation.kind is Kind.TRANSACTION:
        return together(*[PART_DONE] * len(operation.parts))
    return b'HTTP/1.1 204 No Content\r\nETag: W/"1"\r\n\r\n'


@pytest.fixture
def cosmos(service: Any) -> Endpoint:
    """The scripted service as one that sessions take for Cosmos DB."""
    return as_kind(service.endpoint, COSMOS_EMULATOR)


@pytest.fixture
def opened(cosmos: Endpoint, open_to: Callable[..., Any], kind: str) -> Any:
    """A session of every kind."""
    return open_to(kind, cosmos)


def named(operation: Operation) -> str:
    return operation.kind


@pytest.mark.parametrize("operation", EVERY, ids=named)
def test_a_success_is_understood(service: Any, opened: Any, operation: Operation) -> None:
    """Chunked, without a length, a request id and a charge, and with mixed ends of lines."""
    service.script = [done(operation)]
    result = opened.execute(operation)
    assert result.outcome is Outcome.SUCCESS
    assert result.attempts[0].status in (200, 202, 204)


def test_a_page_leads_to_the_next(service: Any, opened: Any) -> None:
    """The token is text that nobody reads: it goes back as it came."""
    token = '{"token":"+iBeAJJv6IgCAAAAAAAAAA==","range":{"min":"","max":"FF"}}'
    leading = {
        "x-ms-continuation-nextpartitionkey": token,
        "x-ms-continuation-nextrowkey": "NA",
    }
    service.script = [page("a", **leading), page("b")]
    result = opened.execute(QUERY)
    assert [row["RowKey"] for row in result.value] == ["a", "b"]
    target = service.requests[1].split(b" ")[1].decode()
    assert f"NextPartitionKey={quote(token, safe='')}" in target
    assert "NextRowKey=NA" in target


REFUSALS = [
    ("404 Not Found", "ResourceNotFound", "The specified resource does not exist.", "not_found"),
    ("409 Conflict", "EntityAlreadyExists", "The specified entity already exists.", "conflict"),
    ("412 Precondition Failed", "UpdateConditionNotSatisfied", "The condition.", "precondition"),
    ("413 Payload Too Large", "RequestEntityTooLarge", "Request size is too large.", "rejected"),
    ("429 Too Many Requests", "TooManyRequests", THROTTLED, "throttled"),
    ("449 Retry With", "RetryWith", "Conflicting request.", "server_error"),
    ("401 Unauthorized", "Unauthorized", "The MAC signature found is not the same.", "forbidden"),
    ("403 Forbidden", "Forbidden", "Blocked by the firewall.", "forbidden"),
]


@pytest.mark.parametrize(("status", "code", "message", "outcome"), REFUSALS)
@pytest.mark.parametrize("in_part", [False, True])
def test_a_refusal_is_classified(
    service: Any, opened: Any, status: str, code: str, message: str, outcome: str, in_part: bool
) -> None:
    """By status and code; of a long message, the lines with ids are left out."""
    said = f"{message}\nRequestID:1b\n"
    operation, answer = WRITES[0], refused(status, code, said)
    if in_part:
        operation, answer = TOGETHER, together(refused_part(status, code, f"0:{said}"))
    service.script = [answer]
    result = opened.execute(operation)
    (attempt,) = result.attempts
    assert result.outcome is Outcome(outcome)
    assert (attempt.status, attempt.error_code) == (int(status[:3]), code)
    assert message.splitlines()[0] in attempt.message
    assert "1b" not in attempt.message
    assert "ActivityId" not in attempt.message


@pytest.mark.parametrize("told_by", ["message", "substatus", "part"])
def test_a_full_partition_is_told_from_missing_rights(
    service: Any, opened: Any, told_by: str
) -> None:
    """Both are 403 Forbidden: the message or the sub-status makes the difference, and no retry."""
    message = 'Message: {"Errors":["Partition key reached maximum size of 20 GB."]}'
    status, code, operation = "403 Forbidden", "Forbidden", WRITES[0]
    answer = refused(status, code, message)
    if told_by == "substatus":
        answer = refused(status, code, "No.", x_ms_substatus="1014")
    elif told_by == "part":
        operation, answer = TOGETHER, together(refused_part(status, code, f"0:{message}"))
    service.script = [answer]
    result = opened.execute(operation)
    (attempt,) = result.attempts
    assert result.outcome is Outcome.PARTITION_FULL
    assert (attempt.status, attempt.error_code) == (403, "PartitionKeyQuotaOverLimit")
    assert not result.outcome.wanted_again


def throttled(wait_ms: str) -> bytes:
    code = "TooManyRequests"
    return refused("429 Too Many Requests", code, THROTTLED, x_ms_retry_after_ms=wait_ms)


def throttled_part(wait_ms: str) -> bytes:
    head, _, body = refused_part("429 Too Many", "TooManyRequests", THROTTLED).partition(
        b"\r\n\r\n"
    )
    return together(head + f"\r\nx-ms-retry-after-ms: {wait_ms}\r\n\r\n".encode() + body)


@pytest.mark.parametrize("operation", [*EVERY, None], ids=lambda one: one.kind if one else "part")
def test_a_throttled_request_waits_as_long_as_it_is_told(
    service: Any,
    cosmos: Endpoint,
    open_to: Callable[..., Any],
    ours: str,
    operation: Operation | None,
) -> None:
    """Every kind of operation, in milliseconds, and never less than the profile says."""
    refusal = throttled_part if operation is None else throttled
    operation = operation or TOGETHER
    service.script = [refusal("1234"), refusal("3"), done(operation)]
    waits: list[float] = []
    session = open_to(
        ours, cosmos, retry=ScheduledBackoff(delays_s=(0.25, 0.25)), sleep=waits.append
    )
    result = session.execute(operation)
    assert result.outcome is Outcome.SUCCESS
    assert waits == [1.234, 0.25]
    assert [attempt.throttled for attempt in result.attempts] == [True, True, False]


@pytest.mark.parametrize(
    ("stored", "outcome"), [(1, Outcome.SUCCESS_AFTER_AMBIGUITY), (2, Outcome.CONFLICT)]
)
def test_a_lost_insert_is_read_back(
    service: Any,
    cosmos: Endpoint,
    open_to: Callable[..., Any],
    ours: str,
    stored: int,
    outcome: Outcome,
) -> None:
    """408 may have written it: what the conflict of the retry means is in the row."""
    body = json.dumps({"PartitionKey": "p", "RowKey": "r", "A": stored}).encode()
    service.script = [
        refused("408 Request Timeout", "OperationTimedOut", "The request timed out."),
        refused("409 Conflict", "EntityAlreadyExists", "The specified entity already exists."),
        chunked("200 Ok", "application/json;odata=minimalmetadata", body),
    ]
    retry = ScheduledBackoff(delays_s=(0.0,))
    session = open_to(ours, cosmos, retry=retry, sleep=lambda _: None)
    assert session.execute(WRITES[0]).outcome is outcome


@pytest.mark.parametrize("operation", EVERY, ids=named)
def test_the_sdk_by_itself_sends_the_same_requests(
    service: Any, cosmos: Endpoint, open_to: Callable[..., Any], operation: Operation
) -> None:
    """But for the headers of its transport, and the echo of an entity that it inserts."""
    own = (b"accept-encoding", b"connection", b"user-agent", b"prefer", b"content-length", b"date")
    varying = (b"x-ms-date", b"x-ms-client-request-id", b"authorization")

    def told(request: bytes) -> tuple[bytes, list[bytes], bytes]:
        head, _, body = request.partition(b"\r\n\r\n")
        line, *headers = head.split(b"\r\n")
        kept = [text for text in headers if text.lower().split(b":")[0] not in (*own, *varying)]
        if operation.parts:
            # Each has boundaries of its own, and an order of the headers.
            lines = body.split(b"\r\n")
            parts = [text for text in lines if not text.startswith((b"--", b"Content-Type: multi"))]
            parts = [text for text in parts if text.lower().split(b":")[0] not in (*own, *varying)]
            body = b"\n".join(sorted(parts))
            kept = [text.partition(b"; boundary")[0] for text in kept]
        lowered = [
            name.lower() + value for name, _, value in (text.partition(b":") for text in kept)
        ]
        return line, sorted(lowered), body

    seen = []
    for kind in ("sdk-default", "sdk", "wire"):
        service.requests.clear()
        service.script = [done(operation)]
        assert open_to(kind, cosmos).execute(operation).outcome is Outcome.SUCCESS
        seen.append(told(service.requests[0]))
    assert seen[1] == seen[0]
    assert seen[2] == seen[0]


def test_the_sdk_by_itself_repeats_some_methods_only(
    service: Any, cosmos: Endpoint, open_to: Callable[..., Any]
) -> None:
    """Inserts, merges and transactions are POST, which it does not repeat after 429."""
    session = open_to("sdk-default", cosmos)
    repeated = []
    for operation in EVERY:
        service.script = [throttled("1"), done(operation)]
        result = session.execute(operation)
        if result.outcome is Outcome.SUCCESS:
            repeated.append(operation.kind)
    assert repeated == [
        Kind.POINT_QUERY,
        Kind.QUERY,
        Kind.UPSERT_REPLACE,
        Kind.UPDATE_REPLACE,
        Kind.DELETE,
    ]
