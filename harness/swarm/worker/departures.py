"""When the operations of a worker leave: each waits for its place in the schedule."""

from __future__ import annotations

import gevent.event
import gevent.lock
from locust.exception import StopUser

from harness.endpoint.clock import Clock
from harness.measure.ledger import Ledger
from harness.swarm.plan import Share
from harness.workload.budget import Budget
from harness.workload.pacing import STOP, Pacer

_LONGEST_SLEEP_S = 60.0


class Departures:
    """Lets one operation after the other leave, for all users of a worker.

    Args:
        pacer: Of all workers together.
        clock: UTC seconds.
        budget: Nothing leaves any more when it is used up.
        ledger: Told what is dropped.
        give_up_after_s: What is later than this is of no use any more.
        by_operation: Whether the schedule counts operations, not entities.
    """

    def __init__(
        self,
        pacer: Pacer,
        *,
        clock: Clock,
        budget: Budget,
        ledger: Ledger,
        give_up_after_s: float,
        by_operation: bool,
    ) -> None:
        self._all_workers = pacer
        self._clock = clock
        self._budget = budget
        self._ledger = ledger
        self._give_up_after_s = give_up_after_s
        self.by_operation = by_operation
        self._share: Share | None = None
        self._pacer: Pacer | None = None
        self._epoch_s = 0.0
        self._fresh_s = 0.0
        self._shared = gevent.event.Event()
        self._changed = gevent.event.Event()
        # One user at a time has a slot and waits for it, so that a new share holds at once.
        self._turn = gevent.lock.Semaphore(1)
        self._stopped_s: float | None = None
        self._handed_out = 0
        self._operations = 0
        self._lag_s = 0.0

    def take_share(self, share: Share) -> None:
        """Follow a new share of the load. What is repeated changes nothing."""
        earlier, self._share = self._share, share
        pacer = self._pacer
        if pacer is None or earlier is None:
            pacer = self._pacer = self._all_workers.share(share.rank, share.count, share.from_s)
        elif (share.count, share.from_s) != (earlier.count, earlier.from_s):
            pacer.reshare(share.count, share.from_s)
        if share.hold is not None and (earlier is None or share.hold != earlier.hold):
            from_s, per_s = share.hold
            pacer.hold(max(from_s, share.from_s), per_s)
            # What a step of a search left unsent would be sent on top of the next one.
            self._fresh_s = share.epoch_s + from_s
        self._epoch_s = share.epoch_s
        if share.window is not None:
            pacer.end(share.window[1] - share.epoch_s)
        self._shared.set()
        self._changed.set()

    def stop(self, at_s: float) -> float:
        """Let nothing leave any more that is due at ``at_s``, UTC, or later; when that is."""
        if self._share is not None and self._share.window is not None:
            # After the window nothing was due any more.
            at_s = min(at_s, self._share.window[1])
        if self._pacer is not None:
            self._pacer.end(at_s - self._epoch_s)
        self._stopped_s = at_s
        self._shared.set()
        self._changed.set()
        return at_s

    def wait(self, entities: int) -> float | None:
        """Wait for a place in the schedule; when that was, or None in a closed loop.

        A place that is too late to be of use is dropped, and the next one taken.

        Args:
            entities: What the operation counts for.

        Raises:
            StopUser: the run is over.
        """
        if self._pacer is None:
            self._shared.wait()
        units = 1 if self.by_operation else entities
        while True:
            at_s, now_s = self._place()
            # Users switch only where one waits: while nobody has to, no turn need be taken.
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

    def walked(self, entities: int) -> None:
        """An operation walked so many entities more than was known before."""
        if not self.by_operation:
            self._handed_out += entities

    def waiting(self) -> int:
        """Operations that are due and not handed out: units, by what one has had on average."""
        if self._pacer is None or not self._operations:
            return 0
        now = self._clock() if self._stopped_s is None else self._stopped_s
        behind = self._pacer.behind(now - self._epoch_s, self._handed_out)
        return round(behind * self._operations / self._handed_out)

    def take_lag(self) -> float:
        """By how many seconds a place was overslept at most, since this was asked last."""
        lag_s, self._lag_s = self._lag_s, 0.0
        return lag_s

    def _wait_in_turn(self) -> tuple[float, float]:
        with self._turn:
            at_s, now_s = self._place()
            while at_s > now_s:
                # A new share, or the end, is not slept through.
                self._changed.clear()
                if not self._changed.wait(min(at_s - now_s, _LONGEST_SLEEP_S)):
                    self._lag_s = max(self._lag_s, self._clock() - at_s)
                at_s, now_s = self._place()
            return at_s, now_s

    def _place(self) -> tuple[float, float]:
        """When the next operation may leave, and what time it is.

        Raises:
            StopUser: the run is over.
        """
        now_s, pacer = self._clock(), self._pacer
        if pacer is None or self._stopped_s is not None or self._budget.exhausted:
            raise StopUser
        due_s = pacer.next(now_s - self._epoch_s, self._handed_out)
        if due_s is STOP:
            raise StopUser
        return self._epoch_s + due_s, now_s
