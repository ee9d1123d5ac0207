"""What one operation has done so far, and its result when it has ended."""

from __future__ import annotations

import contextlib

from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableTransactionError

from harness.endpoint.exchange import Exchange, PartRefused, RequestFault, ResponseFault
from harness.endpoint.translate import read_error, retry_after_s, shorten
from harness.endpoint.wire.multipart import refused_part
from harness.model.counting import entity_count, scanned
from harness.model.operation import Kind, Operation
from harness.model.outcome import (
    Attempt,
    Fault,
    Outcome,
    Result,
    new_attempt,
    new_result,
    throttling_scope,
)

_QUERY = Kind.QUERY


class Run:
    """The attempts of one operation and what they moved."""

    __slots__ = ("attempts", "bytes_received", "bytes_sent", "operation")

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        self.attempts: list[Attempt] = []
        self.bytes_sent = 0
        self.bytes_received = 0

    def result(
        self,
        outcome: Outcome,
        value: object,
        due_s: float | None,
        returned: int = 0,
        *,
        whole: bool = True,
    ) -> Result:
        """The operation has ended so.

        Args:
            outcome: How.
            value: What a read returned.
            due_s: When it was due.
            returned: Entities that a query brought.
            whole: False where a query was given up before its last page.
        """
        attempts = tuple(self.attempts)
        last = attempts[-1]
        operation = self.operation
        walked, estimated = 0, False
        if operation.kind is _QUERY:
            walked, estimated = scanned(operation, returned, whole=whole)
        return new_result(
            operation=operation,
            outcome=outcome,
            sent_s=attempts[0].sent_s,
            done_s=last.sent_s + last.latency_s,
            attempts=attempts,
            due_s=due_s,
            entities=entity_count(operation, outcome, walked),
            entities_returned=returned,
            estimated=estimated,
            bytes_sent=self.bytes_sent,
            bytes_received=self.bytes_received,
            value=value,
        )


def attempt_of(exchange: Exchange, error: Exception | None) -> Attempt:
    """What became of one request.

    The answer's status decides where there is one; an exception tells about faults, about a
    failed part of a transaction (whose own answer is inside the whole one), and about mistakes
    of this client.

    Args:
        exchange: As the transport filled it in; its times are known.
        error: What was raised; None where all was well.
    """
    sent_s = exchange.sent_s
    assert sent_s is not None
    latency_s = exchange.done_s - sent_s
    status = exchange.status
    if status >= 300:
        code, message = read_error(exchange.headers, exchange.body)
    elif error is None:
        return new_attempt(status=status, sent_s=sent_s, latency_s=latency_s)
    elif (part := _refused(error, exchange)) is not None:
        status = part.status
        code, message = read_error(part.headers, part.body)
    else:
        fault = _fault_of(error)
        return new_attempt(
            status=0,
            sent_s=sent_s,
            latency_s=latency_s,
            error_code=fault.value,
            fault=fault,
            message=shorten(f"{type(error).__name__}: {error}"),
            request_id=exchange.headers.get("x-ms-request-id", ""),
            client_request_id=exchange.client_request_id,
        )
    return new_attempt(
        status=status,
        sent_s=sent_s,
        latency_s=latency_s,
        error_code=code,
        scope=throttling_scope(status, code, message),
        message=message,
        request_id=exchange.headers.get("x-ms-request-id", ""),
        client_request_id=exchange.client_request_id,
        retry_after_s=retry_after_s(exchange.headers),
    )


def _refused(error: Exception, exchange: Exchange) -> PartRefused | None:
    """The part that failed; None where it is none, or nobody can tell which."""
    if isinstance(error, PartRefused):
        return error
    if not isinstance(error, TableTransactionError):
        return None
    # The SDK says of a part that was too large neither which nor that it was a part.
    with contextlib.suppress(ResponseFault):
        return refused_part(exchange.headers.get("content-type", ""), exchange.body)
    return None


def _fault_of(error: Exception) -> Fault:
    if isinstance(error, (RequestFault, ResponseFault)):
        return error.fault
    # A success that is not the one the operation has: somebody else answered.
    return Fault.BAD_ANSWER if isinstance(error, HttpResponseError) else Fault.CLIENT
