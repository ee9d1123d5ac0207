"""The baseline: azure-data-tables as it comes, with its attempts counted from outside.

Its own transport (``requests``), policies and retries are at work: what an application does that
just calls the SDK. The client's two raw hooks show each attempt's beginning and each answer.
What they cannot show is said at `SdkDefaultSession`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

from azure.core.exceptions import (
    AzureError,
    IncompleteReadError,
    ServiceRequestError,
    ServiceRequestTimeoutError,
    ServiceResponseError,
    ServiceResponseTimeoutError,
)
from azure.core.pipeline import PipelineRequest, PipelineResponse
from azure.data.tables import TableClient

from harness.endpoint.exchange import AnswerHeaders, Exchange, ResponseFault
from harness.endpoint.run import Run, attempt_of
from harness.endpoint.sdk import sdk_credential
from harness.endpoint.session import SessionOptions
from harness.endpoint.translate import Token, read_page, send
from harness.model.operation import Kind, Operation
from harness.model.outcome import Attempt, Fault, Outcome, Result, classify
from harness.workload.budget import BudgetSpent

_REQUEST_ID = "x-ms-client-request-id"


class _Call:
    """The attempts that the SDK makes of one call, oldest first."""

    __slots__ = ("context", "exchanges")

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []
        self.context: dict[str, Any] = {}


class SdkDefaultSession:
    """Sends operations through azure-data-tables, untouched.

    Of its options ``retry``, ``rng``, ``connections`` and ``sleep`` are ignored: the SDK retries
    by its own rules, waits in its own way, and its pool has no bound. Time-outs are handed to it.

    What is known of attempts, and what is not:

    - Every attempt is counted. One that was answered has its status, code and identifiers.
    - A connection fault that the SDK retried is told by its own history when an answer came in
      the end; when none came, it is taken for the same as the last one.
    - Latency of an attempt begins when the SDK hands it to its transport, so it has the time
      to connect, or to wait for a thread of it, in it.
    - Retries of one call have the same client request id.
    - The budget is taken from for every attempt, but cannot stop the SDK's own retries.
    - Bytes are those of bodies only; heads are not seen.
    - After an ambiguous attempt a transaction that is refused stays undecided: the SDK reads
      nothing back.
    """

    def __init__(self, options: SessionOptions) -> None:
        self._run_id = options.run_id
        self._budget = options.budget
        self._clock = options.clock
        self._numbers = itertools.count()
        self._calls: dict[str, _Call] = {}
        self._table = options.table
        self._clients: dict[str, TableClient] = {}
        self._new_client = partial(
            TableClient,
            options.endpoint.url,
            credential=sdk_credential(options.endpoint.credential),
            connection_timeout=options.connect_timeout_s,
            read_timeout=options.read_timeout_s,
            raw_request_hook=self._on_request,
            raw_response_hook=self._on_response,
        )

    @property
    def connections_in_use(self) -> int:
        """Not known: 0."""
        return 0

    def close(self) -> None:
        """Close every connection."""
        for client in self._clients.values():
            client.close()

    def _of(self, operation: Operation) -> TableClient:
        """The client of the table that an operation is about."""
        client = self._clients.get(operation.table)
        if client is None:
            client = self._clients[operation.table] = self._new_client(
                self._table + operation.table
            )
        return client

    def execute(self, operation: Operation, due_s: float | None = None) -> Result:
        """Do one operation; see `harness.endpoint.session.TableSession`.

        Raises:
            BudgetSpent: before anything is sent, where the budget is used up.
        """
        if self._budget.exhausted:
            raise BudgetSpent("the budget of billable transactions is used up")
        run = Run(operation)
        if operation.kind is Kind.QUERY:
            outcome, found, whole = self._drain(run)
            return run.result(outcome, found, due_s, len(found), whole=whole)
        outcome, value = self._call(run, lambda options: self._send(operation, options))
        return run.result(outcome, value, due_s)

    def _send(self, operation: Operation, options: Mapping[str, Any]) -> object:
        value = send(self._of(operation), operation, options, lean=False)
        return None if operation.kind is Kind.TRANSACTION else cast(object, value)

    def _drain(self, run: Run) -> tuple[Outcome, list[dict[str, Any]], bool]:
        """Follow a query to its end. Last, whether it got there."""
        query = run.operation
        client = self._of(query)
        found: list[dict[str, Any]] = []
        token: Token | None = None

        def page(options: Mapping[str, Any]) -> object:
            return read_page(client, query, token, len(found), options)

        while True:
            outcome, value = self._call(run, page)
            if outcome is not Outcome.SUCCESS:
                return outcome, found, False
            entities, token = cast("tuple[list[dict[str, Any]], Token | None]", value)
            found += entities
            enough = query.top is not None and len(found) >= query.top
            if token is None or enough or self._budget.exhausted:
                return outcome, found, token is None or enough

    def _call(
        self, run: Run, call: Callable[[Mapping[str, Any]], object]
    ) -> tuple[Outcome, object]:
        """Call the SDK once and enter the attempts it made into ``run``."""
        request_id = f"{self._run_id}-{next(self._numbers):x}"
        watched = self._calls[request_id] = _Call()
        begun_s = self._clock()
        value, error = None, None
        try:
            value = call({"request_id": request_id})
        except Exception as raised:
            # Nothing is hidden: what is not the service's becomes Outcome.DEFECT, with its text.
            error = raised
        finally:
            del self._calls[request_id]
        attempts = self._attempts(watched, error, begun_s)
        run.attempts += attempts
        for exchange in watched.exchanges:
            run.bytes_sent += exchange.bytes_sent
            run.bytes_received += exchange.bytes_received
        last = attempts[-1]
        outcome = classify(
            last.status, last.error_code, last.message, last.fault, run.operation, attempts[:-1]
        )
        return outcome, value if outcome is Outcome.SUCCESS else None

    def _attempts(self, call: _Call, error: Exception | None, begun_s: float) -> list[Attempt]:
        now_s = self._clock()
        if not call.exchanges:
            unsent = Exchange("")
            unsent.sent_s, unsent.done_s = begun_s, now_s
            return [attempt_of(unsent, error)]
        history = [entry.error for entry in call.context.get("history", ()) if entry.error]
        attempts = []
        for exchange in call.exchanges:
            if exchange is call.exchanges[-1]:
                told = error
            elif exchange.status == 0:
                told = history.pop(0) if history else error
            else:
                told = None
            if exchange.status == 0 and not exchange.done_s:
                exchange.done_s = now_s
            attempts.append(attempt_of(exchange, _as_fault(told)))
        return attempts

    def _on_request(self, request: PipelineRequest[Any]) -> None:
        call = self._calls.get(request.http_request.headers.get(_REQUEST_ID, ""))
        if call is None:
            return
        self._budget.take()
        now_s = self._clock()
        if call.exchanges and not call.exchanges[-1].done_s:
            call.exchanges[-1].done_s = now_s
        exchange = Exchange(request.http_request.headers[_REQUEST_ID])
        exchange.sent_s = now_s
        exchange.bytes_sent = len(request.http_request.content or b"")
        call.exchanges.append(exchange)
        call.context = request.context

    def _on_response(self, response: PipelineResponse[Any, Any]) -> None:
        call = self._calls.get(response.http_request.headers.get(_REQUEST_ID, ""))
        if call is None:
            return
        exchange = call.exchanges[-1]
        exchange.done_s = self._clock()
        answer = response.http_response
        exchange.status = answer.status_code
        exchange.headers = AnswerHeaders()
        for name, value in answer.headers.items():
            exchange.headers.add(name, value)
        exchange.body = answer.read()
        exchange.bytes_received = len(exchange.body)


def _as_fault(error: Exception | None) -> Exception | None:
    """The SDK's error about a connection as one that names the fault; others as they are."""
    if not isinstance(error, AzureError):
        return error
    fault = _fault_of(error)
    return error if fault is None else ResponseFault(fault, str(error))


def _fault_of(error: AzureError) -> Fault | None:
    text = str(error)
    if isinstance(error, ServiceRequestTimeoutError):
        return Fault.CONNECT_TIMEOUT
    if isinstance(error, ServiceRequestError):
        # requests has no class of its own for it that survives the SDK's wrapping.
        return Fault.TLS if "SSLError" in text or "CERTIFICATE_VERIFY" in text else Fault.REFUSED
    if isinstance(error, ServiceResponseTimeoutError):
        return Fault.READ_TIMEOUT
    if isinstance(error, IncompleteReadError):
        return Fault.RESET
    if isinstance(error, ServiceResponseError):
        return Fault.BAD_ANSWER if "BadStatusLine" in text else Fault.RESET
    return None
