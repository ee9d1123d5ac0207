"""Turns the requests of an application into results, and counts them.

An operation of an application is sent in several requests if its SDK retries. SDKs repeat
``x-ms-client-request-id`` when they send a request again, so that these attempts can be joined to
one operation. A page of a query is an operation of its own, because each page has its own id.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from urllib.parse import parse_qs

from harness.endpoint.protocol.errors import read_error, retry_after_s
from harness.gateway.answers import GatewayAnswer
from harness.gateway.key_ranges import WHOLE, IndexRanges, after, key_ranges
from harness.gateway.messages import Request
from harness.gateway.proxy import Received
from harness.gateway.requests import Asked
from harness.gateway.rules.counting import Count
from harness.gateway.truth import GONE, HALF, Fate
from harness.measure.counts.behaviour import Behaviour
from harness.measure.counts.ledger import Delta, Ledger
from harness.measure.counts.tally import add_counts
from harness.model.operation import (
    ALL_KEYS,
    FOLDED,
    WHOLE_TABLE,
    KeyRange,
    Kind,
    Operation,
    new_key_range,
    new_operation,
)
from harness.model.outcome import (
    Attempt,
    Fault,
    Outcome,
    Scope,
    classify,
    is_retryable,
    new_attempt,
    new_result,
    throttling_scope,
)

JOINED_WITHIN_S = 130.0
"""An operation ends when its SDK has not sent it again for this time. The longest back-off of the
SDKs for Python and JavaScript is 120 s."""
MOST_PENDING = 10_000
MOST_CLIENTS = 20
MOST_TABLES = 1000
_TOGETHER = 256
_LARGE_BYTES = 65_536
"""A batch keeps the content of its requests in memory: never more than some megabytes."""
_CLIENT_LENGTH = 120
_QUOTED = re.compile(r"'[^']*(?:''[^']*)*'")
_WORD = re.compile(r"[A-Za-z_]\w*")
_KEY_WORDS = frozenset(
    ("PartitionKey", "RowKey", "and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge")
)
# Looked up once: access to a member of an enumeration takes several times as long as a plain name.
_QUERY, _TRANSACTION = Kind.QUERY, Kind.TRANSACTION
_CONDITIONAL = frozenset((Kind.UPDATE_MERGE, Kind.UPDATE_REPLACE, Kind.DELETE))
_SUCCESS = Outcome.SUCCESS
_NO_SCOPE = Scope.NONE


@dataclasses.dataclass(slots=True, kw_only=True)
class WatchTally:
    """What is known of an application beside its operations.

    Attributes:
        requests: All requests, refused ones included.
        passed: Requests that reached the endpoint: these are billed.
        others: Requests that are not about entities, such as the creation of a table.
        clients: Requests by user agent.
        succeeded_after: Operations that succeeded, by the number of their attempts, from 2.
        unjoined: Requests that failed and may be sent again, without an id to recognize that.
        over_budget: Requests that the budget refused.
    """

    requests: int = 0
    passed: int = 0
    others: int = 0
    clients: dict[str, int] = dataclasses.field(default_factory=dict)
    succeeded_after: dict[int, int] = dataclasses.field(default_factory=dict)
    unjoined: int = 0
    over_budget: int = 0

    def merge(self, other: WatchTally) -> None:
        """Add the counts of ``other``."""
        self.requests += other.requests
        self.passed += other.passed
        self.others += other.others
        self.unjoined += other.unjoined
        self.over_budget += other.over_budget
        add_counts(self.succeeded_after, other.succeeded_after)
        for client, count in other.clients.items():
            self.count_client(client, count)

    def count_client(self, client: str, count: int = 1) -> None:
        """Count requests of a client; those after the first `MOST_CLIENTS` are counted together."""
        if client not in self.clients and len(self.clients) >= MOST_CLIENTS:
            client = FOLDED
        self.clients[client] = self.clients.get(client, 0) + count


@dataclasses.dataclass(slots=True)
class _Pending:
    """An operation whose last attempt failed, and that may be sent again."""

    operation: Operation
    attempts: list[Attempt]
    bytes_sent: int
    bytes_received: int
    client: str
    count: Count


class Observer:
    """Counts the requests of an application in a ledger: the `Meter` of a gateway.

    Args:
        source: Name of the process.
        budget: Most requests that may reach the endpoint; None is unlimited.
    """

    def __init__(self, source: str, budget: int | None = None) -> None:
        self.ledger = Ledger(source)
        self.tally = WatchTally()
        self.behaviour = Behaviour()
        self._budget = budget
        self._taken = 0
        self._spelled: dict[str, str] = {}
        self._added: list[tuple[Received, Fate, Count, GatewayAnswer | None, float]] = []
        # In the order of their last attempts.
        self._pending: dict[tuple[str, str, str], _Pending] = {}

    @property
    def in_flight(self) -> int:
        """Operations that may be sent again."""
        return len(self._pending)

    @property
    def attempts_in_flight(self) -> int:
        """The attempts of these operations."""
        return sum(len(pending.attempts) for pending in self._pending.values())

    def take(self) -> str:
        """Take a request from the budget; return why it is refused, or an empty text."""
        if self._budget is None:
            return ""
        if self._taken >= self._budget:
            return (
                "harness watch: the budget of billable transactions is used up. The request was "
                "not passed on."
            )
        self._taken += 1
        return ""

    def refused(self) -> None:
        """Count a request that cannot be executed, such as one that is too large."""
        self.tally.requests += 1
        self.tally.others += 1

    def ended(
        self,
        received: Received,
        fate: Fate,
        count: Count,
        answer: GatewayAnswer | None,
        now_s: float,
    ) -> None:
        """Keep a request that ended at ``now_s``, UTC, to be counted.

        Requests are counted in batches, at the latest before the counts are read: counting each at
        once costs more, because of cache misses.
        """
        if self._budget is not None and not fate.upstream and fate.rule != "budget":
            # It did not reach the endpoint, so it is not billed.
            self._taken -= 1
        added = self._added
        added.append((received, fate, count, answer, now_s))
        moved = len(received.request.body) + (0 if answer is None else len(answer.body))
        if len(added) >= _TOGETHER or moved > _LARGE_BYTES:
            self._count_added()

    def _count_added(self) -> None:
        added, self._added = self._added, []
        for ended in added:
            self._count(*ended)

    def _count(
        self,
        received: Received,
        fate: Fate,
        count: Count,
        answer: GatewayAnswer | None,
        now_s: float,
    ) -> None:
        request, asked = received.request, received.asked
        tally = self.tally
        tally.requests += 1
        if fate.upstream:
            tally.passed += 1
        if fate.rule == "budget":
            tally.over_budget += 1
            return
        headers = request.headers
        client = headers.get("User-Agent", "")
        if client in tally.clients:
            tally.clients[client] += 1
        else:
            client = client[:_CLIENT_LENGTH]
            tally.count_client(client)
        if asked.kind is None:
            tally.others += 1
            return
        if len(self._spelled) < MOST_TABLES:
            spelled = self._spelled.setdefault(asked.table, asked.spelled)
            if spelled != asked.spelled:
                # Names of tables are case-insensitive.
                asked = asked._replace(spelled=spelled)
        sent, received_bytes = len(request.body), 0 if answer is None else len(answer.body)
        status = fate.sent
        if status.isdigit() and int(status) < 400:
            attempt = new_attempt(
                status=int(status), sent_s=received.arrived_s, latency_s=now_s - received.arrived_s
            )
        else:
            attempt = _failed(received, fate, answer, now_s)
        pending, key = None, None
        if self._pending:
            key = _identity(received)
            pending = self._pending.pop(key, None)
        if pending is None:
            self.ledger.note_due()
            self.ledger.note_sent()
            operation, attempts = operation_of(asked, request), [attempt]
        else:
            operation, attempts = pending.operation, [*pending.attempts, attempt]
            sent += pending.bytes_sent
            received_bytes += pending.bytes_received
            # An attempt without a whole answer may have been executed; the endpoint served it.
            count = _sum(pending.count, count)
        if (attempt.status == 0 or attempt.status >= 400) and _may_be_repeated(attempt):
            key = key or _identity(received)
            if key[0]:
                self.ledger.add_attempt(operation, attempt)
                self._pending[key] = _Pending(
                    operation, attempts, sent, received_bytes, client, count
                )
                if len(self._pending) > MOST_PENDING:
                    self._give_up(next(iter(self._pending)))
                return
            tally.unjoined += 1
        last = _Pending(operation, attempts, sent, received_bytes, client, count)
        self._end(last, len(attempts) - 1, now_s)

    def expire(self, now_s: float) -> None:
        """End the operations that were not sent again in time; ``now_s`` is UTC."""
        self._count_added()
        for key, pending in tuple(self._pending.items()):
            last = pending.attempts[-1]
            if last.sent_s + last.latency_s > now_s - JOINED_WITHIN_S:
                break
            self._give_up(key)

    def finish(self) -> None:
        """End every operation: nothing is sent again."""
        self._count_added()
        for key in tuple(self._pending):
            self._give_up(key)

    def drain(self, *, ended: bool = False) -> tuple[Delta, WatchTally, Behaviour]:
        """What was counted since the last drain; ``ended`` in the last one."""
        self._count_added()
        tally, self.tally = self.tally, WatchTally()
        return self.ledger.drain(), tally, self.behaviour.drain(ended=ended)

    def _give_up(self, key: tuple[str, str, str]) -> None:
        pending = self._pending.pop(key)
        last = pending.attempts[-1]
        self._end(pending, len(pending.attempts), last.sent_s + last.latency_s)

    def _end(self, ended: _Pending, told: int, done_s: float) -> None:
        """Count an operation whose first ``told`` attempts are counted already."""
        operation, attempts, count = ended.operation, ended.attempts, ended.count
        last = attempts[-1]
        outcome = _SUCCESS if 200 <= last.status < 300 else classify(operation, last, attempts[:-1])
        if outcome is _SUCCESS and len(attempts) > 1:
            add_counts(self.tally.succeeded_after, {len(attempts): 1})
        result = new_result(
            operation=operation,
            outcome=outcome,
            sent_s=attempts[0].sent_s,
            done_s=done_s,
            attempts=tuple(attempts),
            entities=count.entities,
            entities_returned=count.returned,
            estimated=count.estimated > 0,
            bytes_sent=ended.bytes_sent,
            bytes_received=ended.bytes_received,
            told=told,
        )
        self.ledger.add(result)
        self.behaviour.add(result, ended.client)


def _sum(one: Count, other: Count) -> Count:
    if not one.entities:
        return other
    return Count(
        entities=one.entities + other.entities,
        returned=one.returned + other.returned,
        estimated=one.estimated + other.estimated,
    )


def _identity(received: Received) -> tuple[str, str, str]:
    """What a repeated request has in common with the first one; without an id it begins empty.

    An application may use one id for several operations, so that the id alone is not enough.
    """
    request = received.request
    return request.headers.get("x-ms-client-request-id", ""), request.method, request.target


def _may_be_repeated(attempt: Attempt) -> bool:
    """Whether SDKs send a request again after this attempt: those of Azure do after 502 too."""
    return attempt.status == 502 or is_retryable(attempt)


def _failed(received: Received, fate: Fate, answer: GatewayAnswer | None, now_s: float) -> Attempt:
    """The attempt of a request that did not succeed."""
    headers, latency_s = received.request.headers, now_s - received.arrived_s
    client_request_id = headers.get("x-ms-client-request-id", "")
    if answer is None or not fate.sent.isdigit():
        # A client that is gone has given up waiting, or has ended.
        fault = Fault.READ_TIMEOUT if fate.sent == GONE else Fault.RESET
        if fate.sent == HALF:
            fault = Fault.BAD_ANSWER
        return new_attempt(
            status=0,
            sent_s=received.arrived_s,
            latency_s=latency_s,
            error_code=fault.value,
            fault=fault,
            client_request_id=client_request_id,
        )
    status = int(fate.sent)
    body = answer.body
    if body.startswith(b"--") and b"{" in body:
        # The part of a transaction that failed.
        body = body[body.index(b"{") : body.rindex(b"}") + 1]
    code, message = read_error(answer.headers, body)
    scope = fate.scope
    if scope is _NO_SCOPE:
        scope = throttling_scope(status, code, message)
    return new_attempt(
        status=status,
        sent_s=received.arrived_s,
        latency_s=latency_s,
        error_code=code,
        scope=scope,
        message=message,
        request_id=answer.headers.get("x-ms-request-id", ""),
        client_request_id=client_request_id,
        retry_after_s=retry_after_s(answer.headers),
    )


def operation_of(asked: Asked, request: Request) -> Operation:
    """The operation of a request about entities."""
    kind, key = asked.kind, asked.partition_key
    assert kind is not None
    if kind is _QUERY:
        return _query(asked, request.target)
    partition_key = WHOLE_TABLE if key is None else key
    if kind is _TRANSACTION:
        parts = tuple(
            [
                new_operation(
                    kind=part,
                    partition_key=partition_key,
                    row_key=row.row_key or "",
                    table=asked.spelled,
                )
                for part, row in zip(asked.kinds, asked.rows, strict=True)
            ]
        )
        return new_operation(
            kind=kind, partition_key=partition_key, table=asked.spelled, parts=parts
        )
    etag = request.headers.get("If-Match") if kind in _CONDITIONAL else None
    return new_operation(
        kind=kind,
        partition_key=partition_key,
        row_key=asked.row_key,
        table=asked.spelled,
        etag=None if etag == "*" else etag,
    )


def _query(asked: Asked, target: str) -> Operation:
    parameters = parse_qs(target.partition("?")[2])
    text = parameters.get("$filter", [""])[0]
    select = parameters.get("$select", [""])[0]
    key, keys = asked.partition_key, asked.keys
    if "NextPartitionKey" in parameters:
        # A further page is named as its query, not by the keys that are left.
        keys = key_ranges(text)
    return new_operation(
        kind=_QUERY,
        partition_key=WHOLE_TABLE if key is None else key,
        table=asked.spelled,
        key_range=_key_range(key, keys),
        filter=text if names_properties(text) else None,
        select=tuple(select.split(",")) if select else (),
        top=asked.top,
    )


def _key_range(partition_key: str | None, keys: IndexRanges | None) -> KeyRange:
    if keys is None or keys == WHOLE or not keys.ranges:
        return ALL_KEYS
    (first, first_row), end = keys.ranges[0].first, keys.ranges[-1].end
    if partition_key is None:
        return new_key_range(partition_from=first, partition_before=None if end is None else end[0])
    whole = end is None or end == (after(first), "")
    return new_key_range(
        row_from=first_row or None, row_before=None if whole or end is None else end[1]
    )


def names_properties(text: str) -> bool:
    """Whether a filter compares other properties than the keys."""
    words: Iterable[str] = _WORD.findall(_QUOTED.sub("", text)) if text else ()
    return any(word not in _KEY_WORDS for word in words)
