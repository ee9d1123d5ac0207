"""What one operation has done so far, and its result when it has ended."""

from __future__ import annotations

from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableTransactionError

from harness.endpoint.exchange import Exchange, RequestFault, ResponseFault
from harness.endpoint.translate import read_error, retry_after_s, shorten
from harness.model.counting import entity_count
from harness.model.operation import Kind, Operation
from harness.model.outcome import Attempt, Fault, Outcome, Result, throttling_scope


class Run:
    """The attempts of one operation and what they moved."""

    __slots__ = ("attempts", "bytes_received", "bytes_sent", "operation")

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        self.attempts: list[Attempt] = []
        self.bytes_sent = 0
        self.bytes_received = 0

    def result(
        self, outcome: Outcome, value: object, due_s: float | None, returned: int = 0
    ) -> Result:
        """The operation has ended so.

        Args:
            outcome: How.
            value: What a read returned.
            due_s: When it was due.
            returned: Entities that a query brought; it scanned at least as many.
        """
        first, last = self.attempts[0], self.attempts[-1]
        operation = self.operation
        return Result(
            operation=operation,
            outcome=outcome,
            sent_s=first.sent_s,
            done_s=last.sent_s + last.latency_s,
            attempts=tuple(self.attempts),
            due_s=due_s,
            entities=entity_count(operation, outcome, returned),
            entities_returned=returned,
            estimated=operation.kind is Kind.QUERY,
            bytes_sent=self.bytes_sent,
            bytes_received=self.bytes_received,
            value=value,
        )


def attempt_of(
    exchange: Exchange, error: Exception | None, begun_s: float, now_s: float
) -> Attempt:
    """What became of one request.

    The answer's status decides where there is one; an exception tells about faults, about a
    failed part of a transaction (whose own answer is inside the whole one), and about mistakes
    of this client.

    Args:
        exchange: As the transport filled it in.
        error: What the SDK raised; None where it was content.
        begun_s: When the request was begun: its time of sending, if it never left.
        now_s: When the SDK came back.
    """
    sent_s = begun_s if exchange.sent_s is None else exchange.sent_s
    latency_s = (now_s if exchange.sent_s is None else exchange.done_s) - sent_s
    status = exchange.status
    if status >= 300:
        code, message = read_error(exchange.headers, exchange.body)
    elif error is None:
        return Attempt(status=status, sent_s=sent_s, latency_s=latency_s)
    elif isinstance(error, TableTransactionError) and error.status_code:
        status = error.status_code
        code, message = _part_error(error)
    else:
        fault = _fault_of(error)
        return Attempt(
            status=0,
            sent_s=sent_s,
            latency_s=latency_s,
            error_code=fault.value,
            fault=fault,
            message=shorten(f"{type(error).__name__}: {error}"),
            request_id=exchange.headers.get("x-ms-request-id", ""),
            client_request_id=exchange.client_request_id,
        )
    return Attempt(
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


def _part_error(error: TableTransactionError) -> tuple[str, str]:
    """Code and message of the part that failed."""
    # The SDK sets the attribute from outside, to one of its enum's members where it knows it.
    code = getattr(error, "error_code", None)
    return str(getattr(code, "value", code) or ""), shorten(str(error.message))


def _fault_of(error: Exception) -> Fault:
    if isinstance(error, (RequestFault, ResponseFault)):
        return error.fault
    # A success that is not the one the operation has: somebody else answered.
    return Fault.BAD_ANSWER if isinstance(error, HttpResponseError) else Fault.CLIENT
