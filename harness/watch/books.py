"""The books of a watched application: attempts become operations, and both are counted.

An operation of an application is sent in several requests if its SDK retries. SDKs repeat
``x-ms-client-request-id`` when they send a request again, so that these attempts can be joined to
one operation. A page of a query is an operation of its own, because each page has its own id.

Several metering processes can see the attempts of one operation. Then a process hands over each
attempt that may be followed by another one elsewhere, and each that may follow one. They are
counted here, in the order in which they ended. All processes know which requests failed: a process
marks a failed request before the client has the answer, so that the process with the retry, over a
new connection, finds the mark.
"""

from __future__ import annotations

import dataclasses
import mmap
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from harness.measure.counts.behaviour import Behaviour, is_hopeless
from harness.measure.counts.ledger import Delta, Ledger
from harness.measure.counts.tally import add_counts
from harness.measure.record.origin import ClientPart
from harness.model.operation import FOLDED, Operation
from harness.model.outcome import SUCCESS, Attempt, Fault, Outcome, Result, classify, is_repeated
from harness.trace.logs.joining import JOINED_WITHIN_S, MOST_PENDING
from harness.trace.operations import TracedParts, TracedQuery
from harness.trace.recorder import Recorder

MOST_HOPELESS = 1_000
MOST_CLIENTS = 20

Identity = tuple[str, str, str]
"""What a repeated request has in common with the first one: ``x-ms-client-request-id``, method,
target, and rows that the target does not name. An application may use one id for several
operations, so that the id alone is not enough. Without an id it begins with an empty text."""


@dataclasses.dataclass(slots=True, kw_only=True)
class WatchTally:
    """What is known of an application beside its operations.

    Attributes:
        requests: All requests, refused ones included.
        passed: Requests that reached the endpoint: these are billed.
        others: Requests that are not about entities, such as the creation of a table.
        unreadable: Those of them that are no HTTP.
        clients: Requests by user agent.
        succeeded_after: Operations that succeeded, by the number of their attempts, from 2.
        unjoined: Requests that failed and may be sent again, without an id to recognize that.
        over_budget: Requests that the budget refused.
        beside: Operations beside tables. A trace and `Behaviour` have none of them.
    """

    requests: int = 0
    passed: int = 0
    others: int = 0
    unreadable: int = 0
    clients: dict[str, int] = dataclasses.field(default_factory=dict)
    succeeded_after: dict[int, int] = dataclasses.field(default_factory=dict)
    unjoined: int = 0
    over_budget: int = 0
    beside: int = 0

    def merge(self, other: WatchTally) -> None:
        sums = ("requests", "passed", "others", "unreadable", "unjoined", "over_budget", "beside")
        for name in sums:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        add_counts(self.succeeded_after, other.succeeded_after)
        for client, count in other.clients.items():
            self.count_client(client, count)

    def count_client(self, client: str, count: int = 1) -> None:
        """Count requests of a client; those after the first `MOST_CLIENTS` are counted together."""
        if client not in self.clients and len(self.clients) >= MOST_CLIENTS:
            client = FOLDED
        self.clients[client] = self.clients.get(client, 0) + count

    @property
    def client_parts(self) -> tuple[ClientPart, ...]:
        """Those with the most requests first."""
        ordered = sorted(self.clients.items(), key=lambda item: -item[1])
        return tuple(ClientPart(user_agent=agent, requests=count) for agent, count in ordered)


class Course(NamedTuple):
    """What became of an operation of ``client`` so far, as if its last attempt had ended it.

    ``detail`` is what only a trace holds: see `harness.trace.recorder.Recorder.add`.
    """

    result: Result
    client: str
    detail: TracedQuery | TracedParts | None = None

    @property
    def left(self) -> bool:
        """Whether the client closed its connection before the last attempt had its answer."""
        return self.result.attempts[-1].fault is Fault.READ_TIMEOUT

    def followed_by(self, later: Course) -> Course:
        """The same operation after its next attempt; those before that are counted already.

        An attempt without a whole answer may have been executed; the endpoint served it.
        """
        before, last = self.result, later.result
        attempts = (*before.attempts, *last.attempts)
        result = dataclasses.replace(
            last,
            operation=before.operation,
            outcome=outcome_after(before.operation, attempts),
            sent_s=before.sent_s,
            attempts=attempts,
            entities=before.entities + last.entities,
            entities_returned=before.entities_returned + last.entities_returned,
            estimated=before.estimated or last.estimated,
            bytes_sent=before.bytes_sent + last.bytes_sent,
            bytes_received=before.bytes_received + last.bytes_received,
            reported=len(before.attempts),
        )
        return Course(result, later.client, self.detail)


def outcome_after(operation: Operation, attempts: Sequence[Attempt]) -> Outcome:
    """The outcome if the last of these attempts ends the operation."""
    *before, last = attempts
    return SUCCESS if 200 <= last.status < 300 else classify(operation, last, before)


class Drained(NamedTuple):
    """What `Books` counted since they were last drained, by ledger and apart from ledgers."""

    delta: Delta
    untargeted: Delta
    tally: WatchTally
    behaviour: Behaviour


class Books:
    """Joins attempts to operations, and counts both; ``recorder`` gets them for a trace.

    What no document names a target for has the ledger ``untargeted``, so that the verdict on the
    others is as it would be without.
    """

    def __init__(self, source: str, recorder: Recorder | None = None) -> None:
        self.ledger, self.untargeted = Ledger(source), Ledger(source)
        self.recorder = recorder
        self.tally = WatchTally()
        self.behaviour = Behaviour()
        # Operations that may be sent again, in the order of their last attempts.
        self.pending: dict[Identity, Course] = {}
        self.latest_s = 0.0
        """When the latest request arrived, of whatever kind, UTC."""
        # The latest requests with an answer that no retry changes.
        self._hopeless: dict[Identity, None] = {}

    @property
    def attempts_in_flight(self) -> int:
        """The counted attempts of the operations that may be sent again."""
        return sum(len(one.result.attempts) - one.left for one in self.pending.values())

    def add(self, course: Course, identity: Identity | None) -> None:
        """Count one attempt.

        Args:
            course: The operation, with this attempt alone.
            identity: Not needed for a success while nothing is pending.
        """
        operation, (attempt,) = course.result.operation, course.result.attempts
        ledger = self._ledger_of(operation)
        earlier = self.pending.pop(identity, None) if identity is not None else None
        if earlier is None:
            ledger.note_due()
            ledger.note_sent()
        else:
            self._count_left(earlier)
            course = earlier.followed_by(course)
        if (attempt.status == 0 or attempt.status >= 400) and is_repeated(attempt):
            assert identity is not None
            if identity[0]:
                if not course.left:
                    ledger.add_attempt(course.result.operation, attempt)
                self.pending[identity] = course
                if len(self.pending) > MOST_PENDING:
                    self._give_up(next(iter(self.pending)))
                return
            self.tally.unjoined += 1
        elif identity is not None and identity[0] and is_hopeless(attempt):
            if identity in self._hopeless:
                self.behaviour.note_in_vain()
            self._hopeless[identity] = None
            if len(self._hopeless) > MOST_HOPELESS:
                del self._hopeless[next(iter(self._hopeless))]
        self._end(course)

    def expire(self, now_s: float) -> None:
        """End the operations that were not sent again in time; ``now_s`` is UTC."""
        for identity, course in tuple(self.pending.items()):
            if course.result.done_s > now_s - JOINED_WITHIN_S:
                break
            self._give_up(identity)

    def finish(self) -> None:
        """End the operations, but for those that were in flight when the application ended.

        One that gives up an answer goes on with something: it sends a further request.
        """
        for identity, course in tuple(self.pending.items()):
            if not course.left or course.result.done_s < self.latest_s:
                self._give_up(identity)

    def open_window(self, start_s: float) -> None:
        """Measure latencies from ``start_s`` on, UTC."""
        for ledger in (self.ledger, self.untargeted):
            ledger.open_window(start_s, float("inf"))

    def drain(self, *, ended: bool = False) -> Drained:
        """What was counted since the last drain; ``ended`` in the last one."""
        tally, self.tally = self.tally, WatchTally()
        behaviour = self.behaviour.drain(ended=ended)
        return Drained(self.ledger.drain(), self.untargeted.drain(), tally, behaviour)

    def _ledger_of(self, operation: Operation) -> Ledger:
        return self.untargeted if operation.kind.untargeted else self.ledger

    def _count_left(self, course: Course) -> None:
        """Count an attempt that its client left: the application went on."""
        if course.left:
            operation, attempts = course.result.operation, course.result.attempts
            self._ledger_of(operation).add_attempt(operation, attempts[-1])

    def _give_up(self, identity: Identity) -> None:
        course = self.pending.pop(identity)
        self._count_left(course)
        result = dataclasses.replace(course.result, reported=len(course.result.attempts))
        self._end(course._replace(result=result))

    def _end(self, course: Course) -> None:
        """Count an operation that has ended."""
        result, client, detail = course
        operation, attempts = result.operation, result.attempts
        if len(attempts) > 1 and result.outcome is SUCCESS:
            add_counts(self.tally.succeeded_after, {len(attempts): 1})
        self._ledger_of(operation).add(result)
        if not operation.kind.on_rows:
            self.tally.beside += 1
            self.behaviour.note_waits(attempts)
            return
        self.behaviour.add(result, client)
        if self.recorder is not None:
            self.recorder.add(result, client, detail)


_MOST_WAITING = 200_000
"""Above it the order is given up, to bound the memory."""


class Joining:
    """Attempts that metering processes handed over, and the books that count them."""

    def __init__(self, recorder: Recorder | None = None) -> None:
        self.books = Books("joined", recorder)
        self._waiting: list[tuple[Identity, Course]] = []
        self._until_s: dict[str, float] = {}

    def take(self, process: str, handed: list[tuple[Identity, Course]], until_s: float) -> None:
        """Take what ``process`` handed over; it will hand over nothing that ended earlier."""
        self._waiting += handed
        self._until_s[process] = until_s

    def join(self, processes: int) -> None:
        """Count the attempts before which no other one is still to come.

        Args:
            processes: How many hand over.
        """
        if len(self._until_s) < processes:
            return
        until_s = min(self._until_s.values())
        if len(self._waiting) > _MOST_WAITING:
            until_s = float("inf")
        self._count(until_s)
        self.books.expire(until_s)

    def finish(self) -> None:
        """Count the rest; nothing is sent again."""
        self._count(float("inf"))
        self.books.finish()

    def _count(self, until_s: float) -> None:
        waiting = sorted(self._waiting, key=_ended_s)
        self._waiting = [handed for handed in waiting if _ended_s(handed) >= until_s]
        for handed in waiting[: len(waiting) - len(self._waiting)]:
            identity, course = handed
            self.books.add(course, identity)


def _ended_s(handed: tuple[Identity, Course]) -> float:
    return handed[1].result.done_s


_SLOTS = 1 << 16
_BYTES = 8
_EMPTY = bytes(_BYTES)


class Marks:
    """A file in memory, made by `create_marks`, with a slot for each of 65,536 identities.

    A mark is never removed: a request that has it needlessly is only joined elsewhere. A mark that
    another one replaced is lost; the attempts after it count as an operation of their own.
    """

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._slots = mmap.mmap(file.fileno(), _BYTES * (_SLOTS + 1))

    def add(self, identity: Identity) -> None:
        at, mark = _place(identity)
        self._slots[at : at + _BYTES] = mark
        self._slots[:_BYTES] = mark

    def __contains__(self, identity: Identity) -> bool:
        # The first slot is empty as long as nothing failed, which is quicker to see.
        if self._slots[:_BYTES] == _EMPTY:
            return False
        at, mark = _place(identity)
        return self._slots[at : at + _BYTES] == mark


def create_marks(path: Path) -> None:
    path.write_bytes(bytes(_BYTES * (_SLOTS + 1)))


def _place(identity: Identity) -> tuple[int, bytes]:
    """Where the mark of ``identity`` is in the file, and the mark."""
    text = "\n".join(identity).encode("utf-8", "surrogatepass")
    digest = blake2b(text, digest_size=_BYTES).digest()
    return _BYTES * (1 + int.from_bytes(digest[:2]) % _SLOTS), digest
