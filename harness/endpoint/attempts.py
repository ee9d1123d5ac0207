"""The attempts of one operation, and its result."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableTransactionError

from harness.endpoint.http.exchange import (
    UNREADABLE,
    Clock,
    Exchange,
    PartRefused,
    RequestFault,
    ResponseFault,
)
from harness.endpoint.protocol.errors import read_error, retry_after_s, shorten
from harness.endpoint.protocol.multipart import refused_part
from harness.endpoint.protocol.request_charge import charge_of
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
from harness.model.target import entity_count, scanned

_QUERY = Kind.QUERY


class OperationAttempts:
    """The attempts of one operation so far, and their bytes.

    Calls ``on_attempt`` with every attempt after which the operation goes on.

    Attributes:
        outside_s: Seconds that the operation waited for something other than the service.
    """

    __slots__ = (
        "_on_attempt",
        "_reported",
        "attempts",
        "bytes_received",
        "bytes_sent",
        "operation",
        "outside_s",
    )

    def __init__(
        self, operation: Operation, on_attempt: Callable[[Operation, Attempt], None]
    ) -> None:
        self.operation = operation
        self.attempts: list[Attempt] = []
        self.bytes_sent = 0
        self.bytes_received = 0
        self.outside_s = 0.0
        self._on_attempt = on_attempt
        self._reported = 0

    def add(self, exchange: Exchange, error: Exception | None) -> Attempt:
        """Append the attempt that ``exchange`` was; ``error`` is what it raised."""
        attempt = _attempt_of(exchange, error)
        self.attempts.append(attempt)
        self.bytes_sent += exchange.bytes_sent
        self.bytes_received += exchange.bytes_received
        return attempt

    def report(self) -> None:
        """Report the attempts so far: the operation goes on, and may yet be abandoned."""
        reported, self._reported = self._reported, len(self.attempts)
        for attempt in self.attempts[reported:]:
            self._on_attempt(self.operation, attempt)

    def wait_outside(self, wait: Callable[[], bool], clock: Clock) -> bool:
        """Report the attempts, and ``wait`` for something that is not the service's latency."""
        self.report()
        from_s = clock()
        try:
            return wait()
        finally:
            self.outside_s += clock() - from_s

    def result(
        self,
        outcome: Outcome,
        value: object,
        due_s: float | None,
        returned: int = 0,
        *,
        whole: bool = True,
    ) -> Result:
        """The result of the operation, which has ended.

        ``returned`` entities came from a query; it was read to its end if ``whole``.
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
            told=self._reported,
            outside_s=self.outside_s,
        )


def _attempt_of(exchange: Exchange, error: Exception | None) -> Attempt:
    """One request as an attempt.

    A status of 300 and more says what was refused. Otherwise ``error`` does: a refused part of a
    transaction, an unreadable success, a fault of the connection, or a defect of this client.
    """
    sent_s = exchange.sent_s
    assert sent_s is not None
    latency_s = exchange.done_s - sent_s
    status = exchange.status
    charge = charge_of(status, exchange.header, exchange.body)
    if error is None and status < 300:
        return new_attempt(status=status, sent_s=sent_s, latency_s=latency_s, request_charge=charge)
    headers, fault = exchange.headers, None
    wait_s = retry_after_s(headers)
    if error is None or status >= 300:
        code, message = read_error(headers, exchange.body)
    elif (part := _refused_part(error, exchange)) is not None:
        status = part.status
        code, message = read_error(part.headers, part.body)
        wait_s = max(wait_s, retry_after_s(part.headers))
    else:
        fault = _fault_of(error, answered=status > 0)
        status, code, message = 0, fault.value, shorten(f"{type(error).__name__}: {error}")
    return new_attempt(
        status=status,
        sent_s=sent_s,
        latency_s=latency_s,
        error_code=code,
        scope=throttling_scope(status, code, message),
        fault=fault,
        message=message,
        request_id=shorten(headers.get("x-ms-request-id", "")),
        client_request_id=exchange.client_request_id,
        retry_after_s=wait_s if fault is None else 0.0,
        request_charge=charge,
    )


def _refused_part(error: Exception, exchange: Exchange) -> PartRefused | None:
    if isinstance(error, PartRefused):
        return error
    if not isinstance(error, TableTransactionError):
        return None
    # For a part that was too large, the SDK tells neither which part nor that it was one.
    with contextlib.suppress(*UNREADABLE):
        return refused_part(exchange.headers.get("content-type", ""), exchange.body)
    return None


def _fault_of(error: Exception, *, answered: bool) -> Fault:
    if isinstance(error, (RequestFault, ResponseFault)):
        return error.fault
    # Either a whole response cannot be read, or it is a success of something else: then the
    # response does not come from a table service.
    unreadable = answered and isinstance(error, UNREADABLE)
    return Fault.BAD_ANSWER if unreadable or isinstance(error, HttpResponseError) else Fault.CLIENT
