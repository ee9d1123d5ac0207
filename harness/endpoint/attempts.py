"""The attempts of one operation, and its result; queries read page by page."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, cast

from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableTransactionError

from harness.endpoint.http.exchange import (
    Exchange,
    PartRefused,
    RequestFault,
    ResponseFault,
)
from harness.endpoint.protocol.multipart import refused_part
from harness.endpoint.protocol.requests import Token
from harness.endpoint.protocol.responses import charge_of, read_error, retry_after_s, shorten
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
from harness.model.process import Clock
from harness.model.target import entities_scanned, entity_count
from harness.workload.budget import BudgetSpent

_QUERY = Kind.QUERY
Entity = Mapping[str, object]
Page = tuple[Sequence[Entity], Token | None]
"""The entities of a page and where the next page begins; None after the last page."""

_SHORTEST_PAGE = 100
"""The fewest entities in a page of an expected range, on average. A full page has 1,000."""
LOOP = "ContinuationLoop"
"""Error code of a response whose continuation token leads back to an earlier page."""
LEADS_BACK = "the continuation token leads back to an earlier page"


class OperationAttempts:
    """The attempts of one operation so far, and their bytes.

    Calls ``on_attempt`` with every attempt after which the operation goes on.

    Attributes:
        outside_s: Seconds between attempts in which the operation waited for something other than
            the service.
        queued_s: Seconds that it waited for a connection.
    """

    __slots__ = (
        "_on_attempt",
        "_reported",
        "attempts",
        "bytes_received",
        "bytes_sent",
        "operation",
        "outside_s",
        "queued_s",
    )

    def __init__(
        self, operation: Operation, on_attempt: Callable[[Operation, Attempt], None]
    ) -> None:
        self.operation = operation
        self.attempts: list[Attempt] = []
        self.bytes_sent = 0
        self.bytes_received = 0
        self.outside_s = self.queued_s = 0.0
        self._on_attempt = on_attempt
        self._reported = 0

    def add(self, exchange: Exchange, error: Exception | None) -> Attempt:
        """Append the attempt that ``exchange`` was; ``error`` is what it raised."""
        attempt = _attempt_of(exchange, error)
        if exchange.queued_s:
            self.queued_s += exchange.queued_s
            if self.attempts:
                self.outside_s += exchange.queued_s
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
        oldest_s: float = 0.0,
    ) -> Result:
        """The result of the operation, which has ended.

        ``returned`` entities came from a query, or messages from a get or a peek; a query was read
        to its end if ``whole``.
        """
        attempts = tuple(self.attempts)
        last = attempts[-1]
        operation = self.operation
        scanned, estimated = returned, False
        if operation.kind is _QUERY:
            scanned, estimated = entities_scanned(operation, returned, whole=whole)
        return new_result(
            operation=operation,
            outcome=outcome,
            sent_s=attempts[0].sent_s,
            done_s=last.ended_s,
            attempts=attempts,
            due_s=due_s,
            entities=entity_count(operation, outcome, scanned),
            entities_returned=returned,
            estimated=estimated,
            bytes_sent=self.bytes_sent,
            bytes_received=self.bytes_received,
            value=value,
            reported=self._reported,
            outside_s=self.outside_s,
            queued_s=self.queued_s,
            oldest_s=oldest_s,
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
        fault = _fault_of(error)
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
    with contextlib.suppress(ResponseFault):
        return refused_part(exchange.headers.get("content-type", ""), exchange.body)
    return None


def _fault_of(error: Exception) -> Fault:
    if isinstance(error, (RequestFault, ResponseFault)):
        return error.fault
    # The SDK refuses a success: the response does not come from a table service.
    return Fault.BAD_ANSWER if isinstance(error, HttpResponseError) else Fault.CLIENT


class TokenLoop:
    """Recognizes that continuation tokens lead back to an earlier page, in constant memory."""

    def __init__(self) -> None:
        # An earlier token, replaced at every power of two: any loop comes back to it (Brent).
        self._marked: object = None
        self._pages, self._mark_again = 0, 1

    def closes(self, token: object) -> bool:
        """Whether the token of the next page is a loop; called once for each page."""
        self._pages += 1
        if token is not None and token == self._marked:
            return True
        if self._pages == self._mark_again:
            self._marked, self._mark_again = token, 2 * self._pages
        return False


class Pace(Protocol):
    """Delays the further pages of queries until the schedule of the load allows them."""

    def scanned(self, entities: int) -> None:
        """Charge the schedule for entities that a query scanned beyond its expected number."""

    def wait_page(self) -> None:
        """Wait until the schedule allows an unexpected page; `GreenletExit` if it ends before."""


class _Unpaced:
    def scanned(self, entities: int) -> None:
        pass

    def wait_page(self) -> None:
        pass


UNPACED = _Unpaced()
"""Lets every page leave at once."""


def drain(
    attempts: OperationAttempts,
    send: Callable[[Token | None, int], tuple[Outcome, object]],
    pace: Pace,
    *,
    keep: bool,
) -> tuple[Outcome, list[Entity], int, bool]:
    """Read all pages of a query.

    Pages within the expected number of entities leave at once, as those of an application do, and
    so does one further page, which is often empty. Every other page waits for the schedule. Each of
    them counts as at least one entity, so that many small pages are paced too.

    Args:
        attempts: The attempts of the query; those of a page are reported before the next page.
        send: Sends the request for the page that begins at a token, with its retries. The second
            argument is the number of entities that earlier pages returned.

    Returns:
        Outcome, kept entities, number of returned entities, and whether the end was reached. A
        query that runs out of budget between two pages is a success.

    Raises:
        BudgetSpent: the budget was used up before the first page; nothing was sent.
        GreenletExit: the schedule ended before a page could leave.
    """
    query = attempts.operation
    found: list[Entity] = []
    returned = pages = 0
    whole = False
    charged = query.entities_asked
    # Pages that are not counted: those of the expected range, and one behind it.
    uncounted = charged // _SHORTEST_PAGE + 2 - charged
    token: Token | None = None
    loop = TokenLoop()
    while True:
        try:
            outcome, value = send(token, returned)
        except BudgetSpent:
            if not pages:
                raise
            outcome = Outcome.SUCCESS
            break
        if outcome is not Outcome.SUCCESS:
            break
        entities, token = cast(Page, value)
        returned += len(entities)
        pages += 1
        if keep:
            found += entities
        whole = token is None or (query.top is not None and returned >= query.top)
        if whole:
            break
        if loop.closes(token):
            attempts.attempts[-1] = dataclasses.replace(
                attempts.attempts[-1],
                error_code=LOOP,
                message=LEADS_BACK,
            )
            outcome = Outcome.UNEXPECTED
            break
        attempts.report()
        used = max(returned, pages - uncounted)
        if used > charged:
            pace.scanned(used - charged)
            charged = used
            pace.wait_page()
    if (used := max(returned, pages - uncounted)) > charged:
        pace.scanned(used - charged)
    return outcome, found, returned, whole
