"""Turns the entries of a log into results: one for each operation, with all its attempts.

Names of operations and status messages: "Storage Analytics logged operations and status messages".
A log has the URL of a request and not its body: the keys of an insert and the parts of a
transaction are unknown, and the entities of a query and of a transaction can only be bounded.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

from harness.gateway.operations import operation_of
from harness.gateway.requests import read_request
from harness.model.figures import counted
from harness.model.operation import Kind, Operation, new_operation
from harness.model.outcome import (
    Attempt,
    Fault,
    Result,
    classify,
    is_repeated,
    new_attempt,
    new_result,
)
from harness.model.target import entity_count
from harness.trace.logs.entries import LogEntry
from harness.trace.operations import UNKNOWN

JOINED_WITHIN_S = 130.0
"""An operation ends when it was not sent again for this time; the longest back-off of SDKs is
120 s."""
MOST_PENDING = 10_000

_KINDS = {
    **{kind.logged_as.lower(): kind for kind in Kind if kind.on_rows},
    "getentity": Kind.POINT_QUERY,
}
_SUCCESSES = ("Success", "SASSuccess", "AnonymousSuccess", "OAuthSuccess")
_CODES = {"ThrottlingError": "ServerBusy", "TimeoutError": "OperationTimedOut"}
"""Error codes by the ending of a status message. Where a log has the error code itself, as newer
ones do, it stays."""


_LEFT_OUT = {
    "unreadable": ("unreadable line", "unreadable lines"),
    "others": ("request not about entities", "requests not about entities"),
    "parts": ("further entry of a request", "further entries of requests"),
    "unnamed": ("request without a target", "requests without a target"),
}
"""What a log has beside operations. An unnamed one has no readable operation, table or keys."""


@dataclasses.dataclass(slots=True)
class _Pending:
    operation: Operation
    attempts: list[Attempt]
    bytes_sent: int
    bytes_received: int
    client: str


class Joiner:
    """Makes results of entries; ``left_out`` counts the others."""

    def __init__(self) -> None:
        self.left_out: collections.Counter[str] = collections.Counter()
        self.account = ""
        self._pending: dict[tuple[str, str, str], _Pending] = {}

    def sentences(self) -> list[str]:
        """What was left out, for a user."""
        found = ((self.left_out[name], *words) for name, words in _LEFT_OUT.items())
        return [f"Left out: {counted(*one)}." for one in found if one[0]]

    def results(self, entries: Iterable[LogEntry | None]) -> Iterator[tuple[Result, str]]:
        """Each operation, when it has ended, and its client."""
        for entry in entries:
            if entry is None:
                self.left_out["unreadable"] += 1
                continue
            self.account = self.account or entry.account
            if entry.part:
                self.left_out["parts"] += 1
                continue
            operation = operation_in(entry)
            if operation is None:
                self.left_out["unnamed" if about_entities(entry) else "others"] += 1
                continue
            yield from self._expired(entry.at_s)
            yield from self._add(entry, operation)
        for pending in self._pending.values():
            yield _result(pending), pending.client
        self._pending.clear()

    def _add(self, entry: LogEntry, operation: Operation) -> Iterator[tuple[Result, str]]:
        attempt = _attempt(entry)
        key = (entry.request_id, entry.operation, entry.url)
        pending = self._pending.pop(key, None) if entry.request_id else None
        if pending is None:
            client = " ".join(filter(None, (entry.address, entry.agent[:80])))
            pending = _Pending(operation, [], 0, 0, client)
        pending.attempts.append(attempt)
        pending.bytes_sent += entry.bytes_sent
        pending.bytes_received += entry.bytes_received
        if entry.request_id and is_repeated(attempt):
            self._pending[key] = pending
            if len(self._pending) > MOST_PENDING:
                oldest = self._pending.pop(next(iter(self._pending)))
                yield _result(oldest), oldest.client
            return
        yield _result(pending), pending.client

    def _expired(self, now_s: float) -> Iterator[tuple[Result, str]]:
        for key, pending in tuple(self._pending.items()):
            if pending.attempts[-1].sent_s > now_s - JOINED_WITHIN_S:
                break
            del self._pending[key]
            yield _result(pending), pending.client


def about_entities(entry: LogEntry) -> bool:
    """Whether an entry is a request for entities, whatever can be read of it."""
    return entry.operation.lower() in _KINDS


def operation_in(entry: LogEntry) -> Operation | None:
    """The operation of an entry; None if it is not about entities, or cannot be read."""
    kind = _KINDS.get(entry.operation.lower())
    if kind is Kind.TRANSACTION:
        # The URL is that of $batch: it names neither table nor keys.
        return new_operation(kind=Kind.TRANSACTION, partition_key=UNKNOWN)
    url = urlsplit(entry.url)
    target = f"{url.path}?{url.query}" if url.query else url.path
    if kind is not None and kind.reads:
        asked = read_request("GET", target, {}, b"")
        return None if asked.kind is None else operation_of(asked)
    if kind is Kind.INSERT:
        asked = read_request("POST", target, {}, b"")
        if not asked.table:
            return None
        return new_operation(kind=kind, partition_key=UNKNOWN, row_key=UNKNOWN, table=asked.spelled)
    asked = read_request("DELETE", target, {}, b"")
    if kind is None or asked.partition_key is None:
        return None
    return dataclasses.replace(operation_of(asked), kind=kind)


def _attempt(entry: LogEntry) -> Attempt:
    code = "" if entry.text in _SUCCESSES else entry.text
    for ending, known in _CODES.items():
        if code.endswith(ending):
            code = known
    fault = None
    if not entry.status:
        fault, code = Fault.RESET, code or Fault.RESET.value
    return new_attempt(
        status=entry.status,
        sent_s=entry.at_s,
        latency_s=entry.duration_ms / 1000,
        error_code=code if entry.status == 0 or entry.status >= 400 else "",
        fault=fault,
    )


def _result(pending: _Pending) -> Result:
    operation, attempts = pending.operation, pending.attempts
    last = attempts[-1]
    outcome = classify(operation, last, attempts[:-1])
    query = operation.kind is Kind.QUERY
    entities = entity_count(operation, outcome, scanned=1 if query and outcome.succeeded else 0)
    return new_result(
        operation=operation,
        outcome=outcome,
        sent_s=attempts[0].sent_s,
        done_s=last.ended_s,
        attempts=tuple(attempts),
        entities=entities,
        estimated=bool(entities) and (query or operation.kind is Kind.TRANSACTION),
        bytes_sent=pending.bytes_sent,
        bytes_received=pending.bytes_received,
    )
