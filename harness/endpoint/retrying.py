"""The loop that the harness's own sessions share: retries, pages, budget, read-back."""

from __future__ import annotations

import abc
import datetime as dt
import functools
import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from harness.endpoint.attempts import Entity, OperationAttempts, Page, drain
from harness.endpoint.http.channel import Channel
from harness.endpoint.http.exchange import Exchange
from harness.endpoint.http.pool import LimitedPool
from harness.endpoint.protocol.requests import Token
from harness.endpoint.session import SessionOptions
from harness.model.entity import ETAG, Int64
from harness.model.operation import Kind, Operation
from harness.model.outcome import SUCCESS, Outcome, Result, classify
from harness.workload.budget import BudgetSpent
from harness.workload.retry import next_delay_s

_QUERY = Kind.QUERY
_AMBIGUOUS = Outcome.AMBIGUOUS


class RetryingSession(abc.ABC):
    """A `harness.endpoint.session.TableSession` around a way to send one request."""

    def __init__(self, options: SessionOptions) -> None:
        self._run_id = options.run_id
        self._retry = options.retry
        self._longest_wait_s = options.longest_wait_s
        self._on_attempt = options.on_attempt
        self._pace = options.pace
        self._clock = options.clock
        self._rng = options.rng
        self._sleep = options.sleep
        self._number = itertools.count().__next__
        self._login = options.endpoint.login
        pool = LimitedPool(
            options.endpoint.url,
            connections=options.connections,
            connect_timeout_s=options.connect_timeout_s,
            read_timeout_s=options.read_timeout_s,
        )
        self._channel = Channel(pool, clock=options.clock, budget=options.budget)

    @property
    def connections_in_use(self) -> int:
        return self._channel.connections_in_use

    def close(self) -> None:
        self._channel.close()

    @abc.abstractmethod
    def _send(self, operation: Operation, exchange: Exchange) -> object:
        """Send one request of an operation that is not a query; return what a point query read.

        Fills in ``exchange``, also if this method raises. A refusal may be returned or raised.
        """

    @abc.abstractmethod
    def _page(self, query: Operation, exchange: Exchange, token: Token | None, found: int) -> Page:
        """Send the request for the page that begins at ``token``, after ``found`` entities."""

    def execute(
        self, operation: Operation, due_s: float | None = None, *, keep: bool = True
    ) -> Result:
        attempts = OperationAttempts(operation, self._on_attempt)
        if operation.kind is _QUERY:

            def page(token: Token | None, found: int) -> tuple[Outcome, object]:
                send = functools.partial(self._page, token=token, found=found)
                return self._attempt(attempts, operation, send)

            outcome, found, returned, whole = drain(attempts, page, self._pace, keep=keep)
            return attempts.result(outcome, found, due_s, returned, whole=whole)
        outcome, value = self._attempt(attempts, operation, self._send)
        if outcome is _AMBIGUOUS:
            outcome = self._read_back(attempts)
        return attempts.result(outcome, value, due_s)

    def abandon(self) -> None:
        self._channel.refuse()

    def _attempt(
        self,
        made: OperationAttempts,
        operation: Operation,
        send: Callable[[Operation, Exchange], object],
        *,
        resend_lost: bool = True,
    ) -> tuple[Outcome, object]:
        """Send one request, and again as long as the retry policy and the budget allow.

        ``resend_lost`` is False for a write that must not be made twice: it is not sent again after
        an attempt that may have been executed. After the first 401 the request is sent once more
        with a new token, if there is one. Adds each attempt to ``made``, and reports it where
        another one follows. After `BudgetSpent` nothing was sent.
        """
        attempts = made.attempts
        login = self._login
        first = len(attempts)
        outcome: Outcome | None = None
        while True:
            exchange = Exchange(f"{self._run_id}-{self._number():x}")
            value, error = None, None
            authorization = "" if login is None else login.header
            try:
                value = send(operation, exchange)
            except BudgetSpent:
                if outcome is None:
                    raise
                return outcome, None
            except Exception as raised:
                # Nothing is hidden: an error of this client becomes Outcome.DEFECT, with its text.
                error = raised
            if exchange.sent_s is None:
                # The request never left; the time spent on it is the generator's.
                exchange.sent_s = exchange.done_s = self._clock()
            last = made.add(exchange, error)
            outcome = classify(operation, last, attempts[first:-1] if len(attempts) > 1 else ())
            if outcome is SUCCESS:
                return outcome, value
            if last.status == 401 and login is not None:
                renewed = functools.partial(login.renewed_after, authorization)
                if made.wait_outside(renewed, self._clock):
                    login = None
                    continue
            if last.ambiguous and not resend_lost:
                return outcome, None
            delay_s = next_delay_s(self._retry, attempts[first:], self._rng, self._longest_wait_s)
            if delay_s is None:
                return outcome, None
            made.report()
            self._sleep(delay_s)

    def _read_back(self, made: OperationAttempts) -> Outcome:
        """Find out by point queries whether a write whose response was lost was applied."""
        operation = made.operation
        refused = classify(operation, made.attempts[-1])
        for part in in_order_of_evidence(operation.parts or (operation,)):
            made.report()
            question = Operation(
                kind=Kind.POINT_QUERY,
                partition_key=part.partition_key,
                row_key=part.row_key,
                table=part.table,
            )
            try:
                outcome, stored = self._attempt(made, question, self._send)
            except BudgetSpent:
                break
            if outcome not in (Outcome.SUCCESS, Outcome.NOT_FOUND):
                break
            decided = applied(part, cast("Entity | None", stored), alone=not operation.parts)
            if decided is not None:
                return Outcome.SUCCESS_AFTER_AMBIGUITY if decided else refused
        return _AMBIGUOUS


def in_order_of_evidence(parts: Iterable[Operation]) -> list[Operation]:
    """The parts of a transaction, ordered by how much their stored rows prove, strongest first.

    An inserted row proves most, then one that was updated, then one that was upserted. A row to
    delete may be gone.
    """

    def weakness(part: Operation) -> tuple[bool, bool, bool]:
        return not part.kind.stores, part.kind.upserts, part.kind.needs_row

    return sorted(parts, key=weakness)


def applied(part: Operation, stored: Mapping[str, Any] | None, *, alone: bool) -> bool | None:
    """Whether ``part`` was applied, judged by the row as it is stored now.

    A row with all the written values was written by ``part``. An inserted row has the values of
    its insert, or belongs to another writer. If other writers can change a row, it may have been
    changed again since. A row that is gone does not show who deleted it.

    Args:
        alone: True for a single write: its retry showed whether the row existed, so only another
            writer explains a change since. False for a part of a transaction: one part was refused,
            and the rows of all others are unchanged.

    Returns:
        None if the row proves neither that the write was applied nor that it was not.
    """
    if part.kind is Kind.DELETE:
        return None if stored is None or alone else False
    if stored is None:
        return None if alone else False
    wanted = part.properties or {}
    if part.etag not in (None, "*") and stored.get(ETAG) == part.etag:
        return False
    if wanted and all(name in stored and _same(wanted[name], stored[name]) for name in wanted):
        return True
    return False if wanted and part.kind is Kind.INSERT else None


def _same(sent: object, read: object) -> bool:
    if isinstance(sent, float) and isinstance(read, float) and math.isnan(sent):
        return math.isnan(read)
    if isinstance(sent, dt.datetime) and isinstance(read, dt.datetime) and sent.tzinfo is None:
        return sent.replace(tzinfo=dt.UTC) == read
    kinds_differ = isinstance(sent, bool) != isinstance(read, bool)
    kinds_differ |= isinstance(sent, Int64) != isinstance(read, Int64)
    return not kinds_differ and sent == read
