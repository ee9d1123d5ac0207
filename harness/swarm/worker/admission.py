"""Paces the operations of a worker: each waits for its turn in the schedule, or in a replay."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, Self, TypeVar

import gevent
import gevent.event
import gevent.lock
from gevent import GreenletExit
from locust.exception import StopUser

from harness.measure.counts.ledger import Ledger
from harness.model.operation import Operation
from harness.model.process import Clock
from harness.profile.settings.schema import Profile
from harness.swarm.messages import Share
from harness.trace.replay.source import DueOperation, ReplaySource
from harness.workload.budget import Budgets
from harness.workload.lanes import Claim, Lanes
from harness.workload.pacing import STOP, Pacer

_MAX_SLEEP_S = 60.0
_T = TypeVar("_T")
_DECIDED_BEFORE_S = 0.2
"""A worker decides at this time before an operation is due whether it sends the operation, because
its share may change; less than the notice of a change."""
_LONGEST_WAIT_S = 10.0


class Admission:
    """Gives operations their turn, for all users of a worker.

    No operation is sent when one of the ``budgets`` is used up. ``ledger`` counts the dropped
    operations. The schedule counts entities, or ``by_operation`` operations.
    """

    def __init__(
        self, profile: Profile, pacer: Pacer, clock: Clock, budgets: Budgets, ledger: Ledger
    ) -> None:
        self._all_workers = pacer
        self._clock = clock
        self._budgets = budgets
        self._ledger = ledger
        self._give_up_after_s = profile.load.give_up_after_s
        self.by_operation = profile.load_model.by_operation
        self._share: Share | None = None
        self._shares: list[Share] = []
        self._pacer: Pacer | None = None
        self._epoch_s = 0.0
        self._fresh_s = 0.0
        self._shared = gevent.event.Event()
        self._changed = gevent.event.Event()
        # One user at a time waits for its turn, so that a new share applies at once.
        self._turn = gevent.lock.Semaphore(1)
        self._stopped_s: float | None = None
        self._handed_out = 0
        self._operations = 0
        self._lag_s = 0.0

    def take_share(self, share: Share) -> None:
        """Follow a new share of the load. Repeating a share changes nothing."""
        earlier, self._share = self._share, share
        if not self._shares or self._shares[-1].from_s != share.from_s:
            self._shares.append(share)
        pacer = self._pacer
        if pacer is None or earlier is None:
            pacer = self._pacer = self._all_workers.share(share.rank, share.count, share.from_s)
        elif (share.count, share.from_s) != (earlier.count, earlier.from_s):
            pacer.reshare(share.count, share.from_s)
        if share.hold is not None and (earlier is None or share.hold != earlier.hold):
            from_s, per_s = share.hold
            pacer.hold(max(from_s, share.from_s), per_s)
            # What a step of a search left unsent must not be sent in the next step.
            self._fresh_s = share.epoch_s + from_s
        self._epoch_s = share.epoch_s
        if share.window is not None:
            pacer.end(share.window[1] - share.epoch_s)
        self._shared.set()
        self._changed.set()

    def stop(self, at_s: float) -> float:
        """Stop at ``at_s``, UTC, or at the window's end if that is earlier; return the time."""
        if self._share is not None and self._share.window is not None:
            at_s = min(at_s, self._share.window[1])
        if self._pacer is not None:
            self._pacer.end(at_s - self._epoch_s)
        self._stopped_s = at_s
        self._shared.set()
        self._changed.set()
        return at_s

    def wait(self, entities: int) -> float | None:
        """Wait for the turn of an operation; skip and drop turns that are too late.

        Returns when the operation was due, UTC seconds, or None in a closed loop. After the end of
        the run it raises `StopUser`.
        """
        if self._pacer is None:
            self._shared.wait()
        units = 1 if self.by_operation else entities
        while True:
            at_s, now_s = self._turn_at()
            # Greenlets switch only while one waits; if none waits, the semaphore is not needed.
            if at_s > now_s or self._turn.locked():
                at_s, now_s = self._wait_in_turn()
            self._handed_out += units
            self._operations += 1
            if self._pacer is None or not self._pacer.scheduled:
                return None
            if now_s - at_s <= self._give_up_after_s and not at_s < self._fresh_s <= now_s:
                return at_s
            self._ledger.note_due()
            self._ledger.note_dropped(now_s)

    def wait_for_place(self, place: int) -> float | None:
        """Wait for the turn of the operation at a place of a recording; see `RecordedOrder`.

        Returns when the operation was due, UTC seconds; None if it was dropped because it is too
        late. After the end of the run it raises `StopUser`.
        """
        self._handed_out = place
        at_s, now_s = self._turn_at()
        if at_s > now_s:
            at_s, now_s = self._wait_in_turn()
        self._operations += 1
        if now_s - at_s <= self._give_up_after_s and not at_s < self._fresh_s <= now_s:
            return at_s
        self._ledger.note_due()
        self._ledger.note_dropped(now_s)
        return None

    def due_in_s(self, place: int) -> float:
        """Seconds until the operation at a place of a recording is due; `StopUser` at the end."""
        self._handed_out = place
        at_s, now_s = self._turn_at()
        return at_s - now_s

    def due_at(self, place: int) -> float | None:
        """Second of the schedule at which a place of a recording is due; None after the end."""
        due_s = STOP if self._pacer is None else self._pacer.next(0.0, place)
        return None if due_s is STOP else due_s

    def sends(self, owner: int, due_s: float) -> bool:
        """Whether this worker sends what is due then for ``owner``, by the share at that time."""
        mine = False
        for share in self._shares:
            if share.from_s <= due_s:
                mine = owner % share.count == share.rank
        return mine

    def wait_for_share(self) -> None:
        """Wait until the share of this worker is known, or the run ends."""
        self._shared.wait()

    def wait_for_change(self, at_most_s: float) -> None:
        """Wait for a new share or the end of the run, or so many seconds."""
        self._changed.clear()
        self._changed.wait(at_most_s)

    def scanned(self, entities: int) -> None:
        """A query scanned this many entities more than were known before."""
        if not self.by_operation:
            self._handed_out += entities

    def wait_page(self) -> None:
        """Wait until the schedule has reached all entities handed out and scanned.

        If the schedule counts operations, the page counts as one operation. If the run ends first,
        this raises `GreenletExit`, and the query counts as in flight.
        """
        if self.by_operation:
            self._handed_out += 1
        try:
            at_s, now_s = self._turn_at()
            if at_s > now_s:
                self._wait_in_turn()
        except StopUser:
            # A page beyond the budget is refused when it is sent, which ends its query.
            if not self._budgets.exhausted:
                raise GreenletExit from None

    def waiting(self) -> int:
        """Return the number of due operations that are not handed out, by their mean size."""
        if self._pacer is None or not self._operations or not self._handed_out:
            return 0
        now = self._clock() if self._stopped_s is None else self._stopped_s
        behind = self._pacer.behind(now - self._epoch_s, self._handed_out)
        return round(behind * self._operations / self._handed_out)

    def take_lag(self) -> float:
        """Return the longest delay behind a turn since the last call, in seconds."""
        lag_s, self._lag_s = self._lag_s, 0.0
        return lag_s

    def _wait_in_turn(self) -> tuple[float, float]:
        with self._turn:
            at_s, now_s = self._turn_at()
            while at_s > now_s:
                # A new share or the end interrupts the wait.
                self._changed.clear()
                if not self._changed.wait(min(at_s - now_s, _MAX_SLEEP_S)):
                    self._lag_s = max(self._lag_s, self._clock() - at_s)
                at_s, now_s = self._turn_at()
            return at_s, now_s

    def _turn_at(self) -> tuple[float, float]:
        """When the next operation may leave, and now; `StopUser` after the end of the run."""
        now_s, pacer = self._clock(), self._pacer
        if pacer is None or self._stopped_s is not None or self._budgets.exhausted:
            raise StopUser
        due_s = pacer.next(now_s - self._epoch_s, self._handed_out)
        if due_s is STOP:
            raise StopUser
        return self._epoch_s + due_s, now_s


class PacedItems(Generic[_T]):
    """Hands out items at the rate of ``pacer``, of which each takes ``units``, to any greenlets."""

    def __init__(
        self, items: Iterable[_T], pacer: Pacer, clock: Clock, units: Callable[[_T], int]
    ) -> None:
        self._items = iter(items)
        self._pacer = pacer
        self._clock = clock
        self._units = units
        self._began_s = clock()
        self._handed_out = 0
        self._turn = gevent.lock.Semaphore(1)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> _T:
        with self._turn:
            item = next(self._items)
            now_s = self._clock()
            due_s = self._pacer.next(now_s - self._began_s, self._handed_out)
            if due_s is STOP:
                raise StopIteration
            self._handed_out += self._units(item)
            gevent.sleep(max(0.0, self._began_s + due_s - now_s))
        return item


class ReplayedLoad:
    """Hands the operations of this worker to its users, in the order of the trace.

    One user at a time takes an operation and waits for its turn. Then the operation waits for the
    earlier ones that it depends on, but not for their retries: a throttled partition must not stop
    an open load.

    Attributes:
        finished_s: When the last operation of this worker ended, UTC seconds; None before.
    """

    def __init__(self, source: ReplaySource, admission: Admission, clock: Clock) -> None:
        self._source = source
        self._admission = admission
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
        """The next operation, and when it was due, UTC seconds; `StopUser` after the end."""
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
            second = self._admission.due_at(due.place)
            if second is None:
                break
            self._unsent += self._admission.sends(due.owner, second)
        return self._unsent

    def _take(self) -> tuple[DueOperation, float]:
        admission = self._admission
        admission.wait_for_share()
        while True:
            due = self._next or next(self._due, None)
            if due is None:
                self._exhausted = True
                self._note_finished()
                while True:
                    # Only the end of the run ends a user.
                    admission.due_in_s(self._source.units)
                    admission.wait_for_change(_LONGEST_WAIT_S)
            self._next = due
            early_s = admission.due_in_s(due.place) - _DECIDED_BEFORE_S
            if early_s > 0:
                admission.wait_for_change(min(early_s, _LONGEST_WAIT_S))
                continue
            second = admission.due_at(due.place)
            if second is not None and admission.sends(due.owner, second):
                due_s = admission.wait_for_place(due.place)
                self._next = None
                if due_s is not None:
                    return due, due_s
            self._next = None

    def _note_finished(self) -> None:
        if self._exhausted and not self._in_flight:
            self.finished_s = self._clock()
