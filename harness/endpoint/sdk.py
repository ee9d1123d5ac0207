"""The SDK session: azure-data-tables without its retries, ours around it.

One call of the SDK is one attempt is one request. A retry is a new call, signed anew.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

import gevent
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.data.tables import TableClient

from harness.endpoint.clock import Clock
from harness.endpoint.connection import Endpoint, Sas, SharedKey
from harness.endpoint.envelope import Envelope
from harness.endpoint.exchange import Exchange, ResponseFault
from harness.endpoint.lean_writes import LEAN_KINDS, LeanWrites
from harness.endpoint.readback import applied, in_order_of_evidence
from harness.endpoint.run import Run, attempt_of
from harness.endpoint.translate import Token, read_page, send
from harness.endpoint.transport import GeventTransport
from harness.model.operation import Kind, Operation
from harness.model.outcome import Fault, Outcome, Result, classify
from harness.workload.budget import Budget, BudgetSpent
from harness.workload.retry import RetryPolicy, next_delay_s

_Options = Mapping[str, Any]


def sdk_credential(credential: SharedKey | Sas) -> AzureNamedKeyCredential | AzureSasCredential:
    """A credential as the SDK takes it."""
    if isinstance(credential, Sas):
        return AzureSasCredential(credential.token)
    return AzureNamedKeyCredential(credential.account, credential.key)


class SdkSession:
    """Sends operations through azure-data-tables over a pool of gevent connections.

    Args:
        endpoint: Where to, and signed with what.
        table: Name of the table.
        run_id: Begins the client request id of every request.
        retry: Whether and when an attempt is followed by another.
        budget: Requests that may be sent; one is taken before each.
        clock: UTC seconds, for all times of results.
        rng: Source of the retry formula's random factor.
        connections: At most so many connections at once. Waiting for one is the generator's
            time and part of no latency but the response latency.
        connect_timeout_s: For each address of the host.
        read_timeout_s: For each wait for more of an answer.
        sleep: Waits between attempts, in seconds.

    Raises:
        SetupError: the environment names a bundle of certificates that cannot be read.
    """

    def __init__(
        self,
        *,
        endpoint: Endpoint,
        table: str,
        run_id: str,
        retry: RetryPolicy,
        budget: Budget,
        clock: Clock,
        rng: random.Random,
        connections: int,
        connect_timeout_s: float,
        read_timeout_s: float,
        sleep: Callable[[float], None] = gevent.sleep,
    ) -> None:
        self._run_id = run_id
        self._retry = retry
        self._budget = budget
        self._clock = clock
        self._rng = rng
        self._sleep = sleep
        self._numbers = itertools.count()
        self._transport = GeventTransport(
            url=endpoint.url,
            connections=connections,
            connect_timeout_s=connect_timeout_s,
            read_timeout_s=read_timeout_s,
            clock=clock,
        )
        self._client = TableClient(
            endpoint.url,
            table,
            credential=sdk_credential(endpoint.credential),
            transport=self._transport,
            policies=[Envelope(endpoint.credential)],
        )
        self._writes = LeanWrites(self._client)

    @property
    def connections_in_use(self) -> int:
        """Places of the pool that are taken at this moment."""
        return self._transport.connections_in_use

    def close(self) -> None:
        """Close every connection."""
        self._transport.close()

    def execute(self, operation: Operation, due_s: float | None = None) -> Result:
        """Do one operation; see `harness.endpoint.session.TableSession`.

        A query that the budget stops between two pages is a success of the pages it read.
        A killed greenlet is no result: what killed it passes through.

        Raises:
            BudgetSpent: before anything is sent, where the budget is used up.
        """
        if not self._budget.take():
            raise BudgetSpent("the budget of billable transactions is used up")
        run = Run(operation)
        if operation.kind is Kind.QUERY:
            outcome, found = self._drain(run)
            return run.result(outcome, found, due_s, len(found))
        outcome, value = self._persist(run, operation, partial(self._send, operation))
        if outcome is Outcome.UNDECIDED:
            outcome = self._read_back(run)
        return run.result(outcome, value, due_s)

    def _send(self, operation: Operation, options: _Options) -> object:
        if operation.kind in LEAN_KINDS:
            self._writes.send(operation, options)
            return None
        value = send(self._client, operation, options, lean=True)
        if operation.kind is Kind.TRANSACTION:
            if value != len(operation.parts):
                raise ResponseFault(
                    Fault.BAD_ANSWER, f"{len(operation.parts)} parts, but {value} answers"
                )
            return None
        return cast(object, value)

    def _persist(
        self, run: Run, operation: Operation, call: Callable[[_Options], object]
    ) -> tuple[Outcome, object]:
        """Send one request, and again as long as the policy and the budget say so.

        The first request has to be taken from the budget already.
        """
        first = len(run.attempts)
        while True:
            value = self._attempt(run, call)
            attempts = run.attempts[first:]
            last = attempts[-1]
            outcome = classify(
                last.status, last.error_code, last.message, last.fault, operation, attempts[:-1]
            )
            if outcome is Outcome.SUCCESS:
                return outcome, value
            delay_s = next_delay_s(self._retry, attempts, self._rng)
            if delay_s is None or not self._budget.take():
                return outcome, None
            self._sleep(delay_s)

    def _attempt(self, run: Run, call: Callable[[_Options], object]) -> object:
        """Make one attempt and enter it into ``run``. What it read, or None."""
        exchange = Exchange(f"{self._run_id}-{next(self._numbers):x}")
        begun_s = self._clock()
        value, error = None, None
        try:
            value = call({"exchange": exchange})
        except Exception as raised:
            # Nothing is hidden: what is not the service's becomes Outcome.DEFECT, with its text.
            error = raised
        run.attempts.append(attempt_of(exchange, error, begun_s, self._clock()))
        run.bytes_sent += exchange.bytes_sent
        run.bytes_received += exchange.bytes_received
        return value

    def _drain(self, run: Run) -> tuple[Outcome, list[dict[str, Any]]]:
        """Follow a query to its end; each page has its own retries."""
        query = run.operation
        found: list[dict[str, Any]] = []
        token: Token | None = None

        def page(options: _Options) -> object:
            return read_page(self._client, query, token, len(found), options)

        while True:
            outcome, value = self._persist(run, query, page)
            if outcome is not Outcome.SUCCESS:
                return outcome, found
            entities, token = cast("tuple[list[dict[str, Any]], Token | None]", value)
            found += entities
            enough = query.top is not None and len(found) >= query.top
            if token is None or enough or not self._budget.take():
                return outcome, found

    def _read_back(self, run: Run) -> Outcome:
        """Decide by point queries whether a transaction was applied whose answer was lost."""
        last = run.attempts[-1]
        refused = classify(last.status, last.error_code, last.message, last.fault, run.operation)
        for part in in_order_of_evidence(run.operation.parts):
            if not self._budget.take():
                break
            question = Operation(
                kind=Kind.POINT_QUERY, partition_key=part.partition_key, row_key=part.row_key
            )
            outcome, stored = self._persist(run, question, partial(self._send, question))
            if outcome not in (Outcome.SUCCESS, Outcome.NOT_FOUND):
                break
            decided = applied(part, cast("dict[str, Any] | None", stored))
            if decided is not None:
                return Outcome.SUCCESS_AFTER_AMBIGUITY if decided else refused
        return Outcome.UNDECIDED
