"""One operation, as many requests as it takes: retries, pages, the budget, the reading back.

How one request is sent is a session's own; when the next one is, is the same for all of them.
"""

from __future__ import annotations

import abc
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from harness.endpoint.channel import Channel
from harness.endpoint.exchange import Exchange
from harness.endpoint.readback import applied, in_order_of_evidence
from harness.endpoint.run import Run, attempt_of
from harness.endpoint.session import SessionOptions
from harness.endpoint.translate import Token
from harness.model.operation import Kind, Operation
from harness.model.outcome import SUCCESS, Outcome, Result, classify
from harness.workload.budget import BudgetSpent
from harness.workload.retry import next_delay_s

Entity = Mapping[str, object]
_QUERY = Kind.QUERY
_UNDECIDED = Outcome.UNDECIDED


class PersistentSession(abc.ABC):
    """A `harness.endpoint.session.TableSession` made of a way to send one request.

    Args:
        options: What it is opened with.

    Raises:
        SetupError: the environment names a bundle of certificates that cannot be read.
    """

    def __init__(self, options: SessionOptions) -> None:
        self._run_id = options.run_id
        self._retry = options.retry
        self._budget = options.budget
        self._clock = options.clock
        self._rng = options.rng
        self._sleep = options.sleep
        self._number = itertools.count().__next__
        self._channel = Channel(
            url=options.endpoint.url,
            connections=options.connections,
            connect_timeout_s=options.connect_timeout_s,
            read_timeout_s=options.read_timeout_s,
            clock=options.clock,
        )

    @property
    def connections_in_use(self) -> int:
        """Connections that carry a request at this moment."""
        return self._channel.connections_in_use

    def close(self) -> None:
        """Close every connection."""
        self._channel.close()

    @abc.abstractmethod
    def _send(self, operation: Operation, exchange: Exchange) -> object:
        """Send one request for an operation that is no query. What a point query read, or None.

        ``exchange`` is filled in, also where this raises. A refusal need not be raised.
        """

    @abc.abstractmethod
    def _page(
        self, query: Operation, token: Token | None, found: int, exchange: Exchange
    ) -> tuple[Sequence[Entity], Token | None]:
        """Send the request for one page: its entities, and where the next page begins.

        Args:
            query: What is wanted.
            token: Where the page begins; None is the first page.
            found: Entities that earlier pages brought.
            exchange: Filled in, also where this raises. A refusal need not be raised.
        """

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
        if operation.kind is _QUERY:
            outcome, found, whole = self._drain(run)
            return run.result(outcome, found, due_s, len(found), whole=whole)
        outcome, value = self._persist(run, operation, self._send)
        if outcome is _UNDECIDED:
            outcome = self._read_back(run)
        return run.result(outcome, value, due_s)

    def _persist(
        self, run: Run, operation: Operation, call: Callable[[Operation, Exchange], object]
    ) -> tuple[Outcome, object]:
        """Send one request, and again as long as the policy and the budget say so.

        Each attempt is entered into ``run``. The first request has to be taken from the budget
        already.
        """
        attempts = run.attempts
        first = len(attempts)
        while True:
            exchange = Exchange(f"{self._run_id}-{self._number():x}")
            value, error = None, None
            try:
                value = call(operation, exchange)
            except Exception as raised:
                # Nothing is hidden: what is not the service's is Outcome.DEFECT, with its text.
                error = raised
            if exchange.sent_s is None:
                # It never left. How long it was waited for is the generator's time.
                exchange.sent_s = exchange.done_s = self._clock()
            last = attempt_of(exchange, error)
            attempts.append(last)
            run.bytes_sent += exchange.bytes_sent
            run.bytes_received += exchange.bytes_received
            outcome = classify(
                last.status,
                last.error_code,
                last.message,
                last.fault,
                operation,
                attempts[first:-1] if len(attempts) > 1 else (),
            )
            if outcome is SUCCESS:
                return outcome, value
            delay_s = next_delay_s(self._retry, attempts[first:], self._rng)
            if delay_s is None or not self._budget.take():
                return outcome, None
            self._sleep(delay_s)

    def _drain(self, run: Run) -> tuple[Outcome, list[Entity], bool]:
        """Follow a query to its end; each page has its own retries. Last, whether it got there."""
        query = run.operation
        found: list[Entity] = []
        token: Token | None = None

        def page(query: Operation, exchange: Exchange) -> object:
            return self._page(query, token, len(found), exchange)

        while True:
            outcome, value = self._persist(run, query, page)
            if outcome is not Outcome.SUCCESS:
                return outcome, found, False
            entities, token = cast("tuple[Sequence[Entity], Token | None]", value)
            found += entities
            enough = query.top is not None and len(found) >= query.top
            if token is None or enough or not self._budget.take():
                return outcome, found, token is None or enough

    def _read_back(self, run: Run) -> Outcome:
        """Decide by point queries whether a transaction was applied whose answer was lost."""
        last = run.attempts[-1]
        refused = classify(last.status, last.error_code, last.message, last.fault, run.operation)
        for part in in_order_of_evidence(run.operation.parts):
            if not self._budget.take():
                break
            question = Operation(
                kind=Kind.POINT_QUERY,
                partition_key=part.partition_key,
                row_key=part.row_key,
                table=part.table,
            )
            outcome, stored = self._persist(run, question, self._send)
            if outcome not in (Outcome.SUCCESS, Outcome.NOT_FOUND):
                break
            decided = applied(part, cast("Entity | None", stored))
            if decided is not None:
                return Outcome.SUCCESS_AFTER_AMBIGUITY if decided else refused
        return Outcome.UNDECIDED
