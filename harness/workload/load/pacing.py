"""When the next operation is sent.

A pacer is asked with the time since the schedule began and what was handed out so far, and
answers with an instant, or with STOP. It reads no clock. Amounts are units: entities, so that a
transaction of 100 uses up 100, or operations, where the load is counted in them.

A closed loop waits for answers, an open one does not: what is due is due, however late the answers
before it are. An operation that leaves later than it was due keeps its instant, so that its
response latency holds the wait, and a stall of the endpoint is seen by all that it held up.

A worker has a part of the whole. From an agreed instant on the part or the whole may be another;
what the worker owed before it stays owed. So the parts of all workers that were told the same
instants add up to the whole at any time, within an operation a worker, however often they change.
"""

from __future__ import annotations

import enum
import math
import random
from typing import ClassVar, Protocol, Self

from harness.workload.load.schedule import Schedule


class Stop(enum.Enum):
    """The type of `STOP`."""

    STOP = "stop"


STOP = Stop.STOP
"""The pacer's answer when nothing more is to be sent."""


class Pacer(Protocol):
    """Decides when operations leave.

    Attributes:
        scheduled: True where instants do not depend on earlier answers (open model), so that a
            response latency can be measured from them.
    """

    scheduled: ClassVar[bool]

    def next(self, elapsed_s: float, sent: int) -> float | Stop:
        """When the next operation leaves, in seconds of the schedule; past where it is late.

        The same answer until that operation is handed out.

        Args:
            elapsed_s: Seconds since the schedule began.
            sent: Units of all operations that this worker was handed out before.
        """

    def behind(self, elapsed_s: float, sent: int) -> float:
        """Units that are due by now and were not handed out yet."""

    def share(self, rank: int, count: int, from_s: float = 0.0) -> Self:
        """The part, from ``from_s`` on, of worker ``rank`` (0 to count-1).

        All parts add up to the whole rate.

        Raises:
            ValueError: there is no such worker.
        """

    def reshare(self, count: int, from_s: float) -> None:
        """From ``from_s`` on this is one of ``count`` equal parts.

        Raises:
            ValueError: there is no worker, or an earlier change begins later.
        """

    def hold(self, from_s: float, per_s: float) -> None:
        """From ``from_s`` on the rate of all workers together is ``per_s``.

        Raises:
            ValueError: the rate cannot be held, or an earlier change begins later.
        """

    def end(self, at_s: float) -> None:
        """From ``at_s`` seconds of the schedule on, the answer is STOP."""


CATCH_UP_S = 0.25
"""So far a capped load may be behind its spacing and still catch up."""


class ClosedLoop:
    """Every user sends its next operation when the last was answered; a cap bounds the rate.

    The cap spaces operations out. `CATCH_UP_S` of lost time is made up for, so that a moment in
    which the generator was not scheduled does not lower the rate; more is not, so that a stall
    is not followed by a burst.

    Nothing is ever owed here, so that a change of the cap holds when it is told.

    Args:
        entities_per_s: The cap; None is none.
    """

    __slots__ = ("_count", "_last_at_s", "_last_sent", "_stop_at_s", "_whole_per_s")
    scheduled: ClassVar[bool] = False

    def __init__(self, entities_per_s: float | None = None) -> None:
        self._whole_per_s = entities_per_s
        self._count = 1
        self._stop_at_s = math.inf
        self._last_at_s = 0.0
        self._last_sent: int | None = None

    @property
    def entities_per_s(self) -> float | None:
        """The cap of this part; None is none."""
        return None if self._whole_per_s is None else self._whole_per_s / self._count

    def next(self, elapsed_s: float, sent: int) -> float | Stop:
        """Now, or when the cap allows it."""
        at_s = leaves_s = elapsed_s
        whole_per_s, last_sent = self._whole_per_s, self._last_sent
        if whole_per_s is not None and last_sent is not None:
            at_s = self._last_at_s + (sent - last_sent) * self._count / whole_per_s
            if at_s >= elapsed_s:
                leaves_s = at_s
            elif at_s < elapsed_s - CATCH_UP_S:
                at_s = elapsed_s - CATCH_UP_S
        if leaves_s >= self._stop_at_s:
            return STOP
        self._last_at_s = at_s
        self._last_sent = sent
        return leaves_s

    def behind(self, elapsed_s: float, sent: int) -> float:
        """Nothing: what waits for an answer is not due."""
        return 0.0

    def share(self, rank: int, count: int, from_s: float = 0.0) -> ClosedLoop:
        """An equal part of the cap."""
        _require_worker(rank, count)
        part = ClosedLoop(self._whole_per_s)
        part._count = count
        part._stop_at_s = self._stop_at_s
        return part

    def reshare(self, count: int, from_s: float) -> None:
        """Another equal part of the cap."""
        _require_worker(0, count)
        self._count = count

    def hold(self, from_s: float, per_s: float) -> None:
        """Another cap."""
        if not 0.0 < per_s < math.inf:
            raise ValueError(f"a cap of {per_s:g} a second cannot be held")
        self._whole_per_s = per_s

    def end(self, at_s: float) -> None:
        """Stop at ``at_s``."""
        self._stop_at_s = at_s


class OpenLoop:
    """Operations are due by a schedule, whatever became of the ones before.

    The operation that follows ``sent`` units is due when the schedule has come to so many: k units
    of an operation use up k units of schedule. The parts of several workers take turns, rank by
    rank, from their common beginning on.

    Arrivals are evenly spaced, or with a random source a Poisson process: an operation of k units
    is followed by an exponentially distributed gap with a mean of k units, so that the mean rate
    is the schedule's, and the parts of several workers together are such a process again.

    STOP is also the answer where the schedule has no more to come, its last rate being 0.

    Args:
        schedule: Of all workers together.
        poisson: The source of random gaps; None is evenly spaced.
        operation_units: Units of an operation, on average. It matters only for the instant of
            each worker's first operation, so that workers take turns by operations.
    """

    __slots__ = (
        "_changed_s",
        "_count",
        "_drawn_for",
        "_offset",
        "_operation_units",
        "_own",
        "_poisson",
        "_stop_at_s",
        "_whole",
    )
    scheduled: ClassVar[bool] = True

    def __init__(
        self,
        schedule: Schedule,
        *,
        poisson: random.Random | None = None,
        operation_units: float = 1.0,
    ) -> None:
        self._whole = self._own = schedule
        self._poisson = poisson
        self._operation_units = operation_units
        self._count = 1
        self._changed_s = 0.0
        self._stop_at_s = math.inf
        # How far the next operation's place in the schedule is from what was handed out before
        # it. Evenly spaced ones keep their distance; each random gap adds its own.
        self._offset = 0.0 if poisson is None else poisson.expovariate(1.0) * operation_units
        self._drawn_for = 0

    def next(self, elapsed_s: float, sent: int) -> float | Stop:
        """When the schedule says, also where that is past."""
        at_s = self._own.at(self._place(sent))
        if at_s >= self._stop_at_s or elapsed_s >= self._stop_at_s:
            return STOP
        return at_s

    def behind(self, elapsed_s: float, sent: int) -> float:
        """The backlog; what would have come due after the end is none."""
        due = self._own.due_by(min(elapsed_s, self._stop_at_s))
        return max(due - self._place(sent), 0.0)

    def share(self, rank: int, count: int, from_s: float = 0.0) -> OpenLoop:
        """The part of a worker that takes part from ``from_s`` on and owes nothing before."""
        _require_worker(rank, count)
        part = OpenLoop(self._whole, poisson=self._poisson, operation_units=self._operation_units)
        part._own = Schedule.constant(0.0).then(from_s, self._whole, 1.0 / count)
        part._count = count
        part._changed_s = from_s
        part._stop_at_s = self._stop_at_s
        if self._poisson is None:
            part._offset = self._operation_units * rank / count
        return part

    def reshare(self, count: int, from_s: float) -> None:
        """Another part from an agreed instant on; what was owed before it stays owed."""
        _require_worker(0, count)
        self._change(from_s, self._whole, count)

    def hold(self, from_s: float, per_s: float) -> None:
        """Another rate from an agreed instant on; what was owed before it stays owed."""
        self._change(from_s, self._whole.held(from_s, per_s), self._count)

    def end(self, at_s: float) -> None:
        """Stop at ``at_s``; what is late by then is handed out no more."""
        self._stop_at_s = at_s

    def _change(self, from_s: float, whole: Schedule, count: int) -> None:
        if from_s < self._changed_s:
            raise ValueError(
                f"a change from {from_s:g} s on came after one from {self._changed_s:g} s on"
            )
        self._changed_s = from_s
        self._whole, self._count = whole, count
        self._own = self._own.then(from_s, whole, 1.0 / count)

    def _place(self, sent: int) -> float:
        """Where in this part's schedule the operation is that follows ``sent`` units."""
        if self._poisson is not None and sent != self._drawn_for:
            used = sent - self._drawn_for
            self._offset += used * (self._poisson.expovariate(1.0) - 1.0)
            self._drawn_for = sent
        return sent + self._offset


def _require_worker(rank: int, count: int) -> None:
    if not 0 <= rank < count:
        raise ValueError(f"rank {rank} of {count} workers")
