"""The load of a worker in a replay: the operations of a trace in their order."""

from __future__ import annotations

from collections.abc import Iterator

import gevent.event
import gevent.lock
from locust.exception import StopUser

from harness.endpoint.http.exchange import Clock
from harness.model.operation import Operation
from harness.swarm.worker.departures import Departures
from harness.trace.replay.source import DueOperation, ReplaySource
from harness.workload.lanes import Claim, Lanes

_DECIDED_BEFORE_S = 0.2
"""A worker decides at this time before an operation is due whether it sends the operation, because
its share may change; less than the notice of a change."""
_LONGEST_WAIT_S = 10.0


class ReplayedLoad:
    """Hands the operations of this worker to its users, in the order of the trace.

    One user at a time takes an operation and waits for its turn. Then the operation waits for the
    earlier ones that it depends on, but not for their retries: a throttled partition must not stop
    an open load.

    Attributes:
        finished_s: When the last operation of this worker ended, UTC seconds; None before.
    """

    def __init__(self, source: ReplaySource, departures: Departures, clock: Clock) -> None:
        self._source = source
        self._departures = departures
        self._clock = clock
        self._due: Iterator[DueOperation] = source.due()
        self._next: DueOperation | None = None
        self._taking = gevent.lock.Semaphore(1)
        self._lanes = Lanes()
        self._held: set[gevent.event.Event] = set()
        self._stopped = False
        self._unsent = 0
        self._exhausted = False
        self._in_flight = 0
        # By the identity of an operation in flight.
        self._claims: dict[int, Claim] = {}
        self.finished_s: float | None = None

    def take(self) -> tuple[Operation, float]:
        """The next operation, and when it was due, UTC seconds.

        Raises:
            StopUser: the run is over.
        """
        with self._taking:
            taken, due_s = self._take()
            operation, claim = self._source.operation(taken.row), self._source.claim(taken.row)
            self._in_flight += 1
            leaves = gevent.event.Event()
            if self._lanes.enter(claim, leaves):
                self._claims[id(operation)] = claim
                return operation, due_s
            self._held.add(leaves)
        leaves.wait()
        self._held.discard(leaves)
        if self._stopped:
            raise StopUser
        self._claims[id(operation)] = claim
        return operation, due_s

    def let_others_pass(self, operation: Operation) -> None:
        """Other operations need not wait for one in flight any longer: it failed or ended."""
        claim = self._claims.pop(id(operation), None)
        if claim is None:
            return
        for leaves in self._lanes.leave(claim):
            assert isinstance(leaves, gevent.event.Event)
            leaves.set()

    def done(self, operation: Operation) -> None:
        """The operation that `take` returned has ended."""
        self.let_others_pass(operation)
        self._in_flight -= 1
        self._note_finished()

    def waiting(self) -> int:
        """Operations that were due, and wait for others that they depend on."""
        return len(self._held)

    def stop(self) -> None:
        """Let no more operations leave."""
        self._unsent = len(self._held)
        self._stopped = True
        for leaves in tuple(self._held):
            leaves.set()

    def unsent(self) -> int:
        """The operations of this worker that were due before the stop and were not sent."""
        while (due := self._next or next(self._due, None)) is not None:
            self._next = None
            second = self._departures.due_at(due.place)
            if second is None:
                break
            self._unsent += self._departures.sends(due.owner, second)
        return self._unsent

    def _take(self) -> tuple[DueOperation, float]:
        departures = self._departures
        departures.wait_for_share()
        while True:
            due = self._next or next(self._due, None)
            if due is None:
                self._exhausted = True
                self._note_finished()
                while True:
                    # Only the end of the run ends a user.
                    departures.due_in_s(self._source.units)
                    departures.wait_for_change(_LONGEST_WAIT_S)
            self._next = due
            early_s = departures.due_in_s(due.place) - _DECIDED_BEFORE_S
            if early_s > 0:
                departures.wait_for_change(min(early_s, _LONGEST_WAIT_S))
                continue
            second = departures.due_at(due.place)
            if second is not None and departures.sends(due.owner, second):
                due_s = departures.wait_for_place(due.place)
                self._next = None
                if due_s is not None:
                    return due, due_s
            self._next = None

    def _note_finished(self) -> None:
        if self._exhausted and not self._in_flight:
            self.finished_s = self._clock()
