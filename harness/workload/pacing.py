"""Pacers: when the next operation is sent; and schedules: what is due over time.

Amounts are in units: entities (a transaction of 100 uses 100), or operations if the rate of the
load is in operations.

A closed loop waits for answers, an open loop does not. An operation that an open loop sends late
keeps the instant at which it was due: its response latency includes the wait, so that a stall of
the endpoint shows in every operation that it delayed.

Each worker has a share of the rate. Shares and rates change at agreed instants, and the backlog
from before the change remains. The shares of all workers therefore always add up to the whole
rate, within one operation for each worker.

The rate of a schedule changes linearly in stages. Time is seconds since the schedule began.
Nothing is due before 0; after the last stage, its final rate is held for ever.

With rate r and slope k at the beginning of a piece, q = r t + k t^2 / 2 units are due t seconds
into it. The inverse is t = 2 q / (r + sqrt(r^2 + 2 k q)), a form that loses no digits if k is
small or r is 0.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import random
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import ClassVar, NamedTuple, Protocol, Self


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RateStage:
    """A ramp, or a hold if the rate stays the same.

    Attributes:
        from_per_s: Rate at its beginning; None is the last rate of the stage before, or 0.

    Raises:
        ValueError: the length is not positive, or a rate is negative or infinite.
    """

    for_s: float
    to_per_s: float
    from_per_s: float | None = None

    def __post_init__(self) -> None:
        if not 0.0 < self.for_s < math.inf:
            raise ValueError(f"a stage of {self.for_s:g} s is invalid")
        _require_rate(self.to_per_s)
        if self.from_per_s is not None:
            _require_rate(self.from_per_s)


class _Piece(NamedTuple):
    """The rate is ``per_s + slope * seconds``, counted from ``start_s``."""

    start_s: float
    per_s: float
    slope: float


class Schedule:
    """A rate over time, and the units due by it. Immutable; made by `of` or `constant`."""

    __slots__ = ("_pieces", "_starts_s", "_units")

    def __init__(self, pieces: Iterable[_Piece]) -> None:
        self._pieces = tuple(pieces)
        self._starts_s = [piece.start_s for piece in self._pieces]
        # Units due when each piece begins.
        self._units = [0.0]
        for piece, end_s in zip(self._pieces, self._starts_s[1:], strict=False):
            self._units.append(self._units[-1] + _units_in(piece, end_s - piece.start_s))

    @classmethod
    def constant(cls, per_s: float) -> Schedule:
        """The same rate for ever; a `ValueError` if it is negative or infinite."""
        _require_rate(per_s)
        return cls([_Piece(0.0, per_s, 0.0)])

    @classmethod
    def of(cls, stages: Iterable[RateStage]) -> Schedule:
        """One stage after the other, then the last rate for ever."""
        pieces = []
        start_s = per_s = 0.0
        for stage in stages:
            if stage.from_per_s is not None:
                per_s = stage.from_per_s
            pieces.append(_Piece(start_s, per_s, (stage.to_per_s - per_s) / stage.for_s))
            start_s += stage.for_s
            per_s = stage.to_per_s
        return cls([*pieces, _Piece(start_s, per_s, 0.0)])

    def per_s(self, at_s: float) -> float:
        """The rate at an instant: after the jump if it jumps there, 0 before the start."""
        if at_s < 0.0:
            return 0.0
        return _rate(self._pieces[bisect_right(self._starts_s, at_s) - 1], at_s)

    def due_by(self, at_s: float) -> float:
        """Units that are due by ``at_s``. Never decreases."""
        if at_s <= 0.0:
            return 0.0
        index = bisect_right(self._starts_s, at_s) - 1
        piece = self._pieces[index]
        due = self._units[index] + _units_in(piece, at_s - piece.start_s)
        # Rounding must not put the end of a piece after the beginning of the next one.
        return min(due, self._units[index + 1]) if index + 1 < len(self._units) else due

    def at(self, units: float) -> float:
        """When the unit that follows ``units`` others is due: the inverse of `due_by`.

        The unit that follows a pause is due when the pause ends. Infinity if no more is ever due.
        """
        units = max(units, 0.0)
        index = bisect_right(self._units, units) - 1
        start_s, per_s, slope = self._pieces[index]
        more = units - self._units[index]
        if slope == 0.0:
            at_s = start_s + more / per_s if per_s else math.inf
        else:
            # Rounding may take a ramp down to 0 a little below 0.
            divisor = per_s + math.sqrt(max(per_s * per_s + 2.0 * slope * more, 0.0))
            at_s = start_s + (2.0 * more / divisor if divisor else 0.0)
        return min(at_s, self._starts_s[index + 1]) if index + 1 < len(self._units) else at_s

    def held(self, from_s: float, per_s: float) -> Schedule:
        """The same until ``from_s``, then ``per_s`` for ever; errors as in `constant`."""
        return self.then(from_s, Schedule.constant(per_s))

    def then(self, from_s: float, later: Schedule, part: float = 1.0) -> Schedule:
        """The same until ``from_s``, then the rate of ``later`` at that time, times ``part``."""
        from_s = max(from_s, 0.0)
        kept = self._pieces[: bisect_left(self._starts_s, from_s)]
        index = bisect_right(later._starts_s, from_s)
        current = later._pieces[index - 1]
        replaced = [_Piece(from_s, _rate(current, from_s), current.slope), *later._pieces[index:]]
        added = (
            _Piece(piece.start_s, part * piece.per_s, part * piece.slope) for piece in replaced
        )
        return Schedule([*kept, *added])


def _rate(piece: _Piece, at_s: float) -> float:
    # Rounding may take a ramp down to 0 a little below 0.
    return max(piece.per_s + piece.slope * (at_s - piece.start_s), 0.0)


def _units_in(piece: _Piece, seconds: float) -> float:
    """Units due in the first ``seconds`` of a piece."""
    return max(seconds * (piece.per_s + piece.slope * seconds / 2.0), 0.0)


def _require_rate(per_s: float) -> None:
    if not 0.0 <= per_s < math.inf:
        raise ValueError(f"a rate of {per_s:g} per second is invalid")


class Stop(enum.Enum):
    STOP = "stop"


STOP = Stop.STOP
"""Returned by a pacer when nothing more is to be sent."""


class Pacer(Protocol):
    """Decides when operations are sent. Reads no clock.

    ``scheduled``: instants do not depend on earlier answers (open model), so that response latency
    can be measured from them. A change before an earlier one, or to an invalid share or rate,
    raises a `ValueError`.
    """

    scheduled: ClassVar[bool]

    def next(self, elapsed_s: float, sent: int) -> float | Stop:
        """When the next operation is due, in seconds of the schedule; in the past if it is late.

        The result stays the same until that operation is handed out.

        Args:
            elapsed_s: Seconds since the schedule began.
            sent: Units of all operations that were handed out to this worker before.
        """

    def behind(self, elapsed_s: float, sent: int) -> float:
        """The backlog: units that are due and were not handed out yet."""

    def share(self, rank: int, count: int, from_s: float = 0.0) -> Self:
        """The share of worker ``rank`` (0 to count-1), which takes part from ``from_s`` on."""

    def reshare(self, count: int, from_s: float) -> None:
        """Change to one of ``count`` equal shares from ``from_s`` on."""

    def hold(self, from_s: float, per_s: float) -> None:
        """Change the rate of all workers together to ``per_s`` from ``from_s`` on."""

    def end(self, at_s: float) -> None:
        """Return STOP from ``at_s`` seconds of the schedule on."""


CATCH_UP_S = 0.25
"""Lost time that a capped load may catch up."""


class ClosedLoop:
    """Every user sends its next operation when the last was answered; a cap bounds the rate.

    The cap spaces operations evenly. A loop that falls behind catches up by `CATCH_UP_S` at most,
    so a short pause of the generator does not lower the rate, and no burst follows a long stall.
    There is no backlog: changes take effect at once, and ``from_s`` is ignored.
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
        """The cap of this share; None is no cap."""
        return None if self._whole_per_s is None else self._whole_per_s / self._count

    def next(self, elapsed_s: float, sent: int) -> float | Stop:
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
        return 0.0

    def share(self, rank: int, count: int, from_s: float = 0.0) -> ClosedLoop:
        _require_worker(rank, count)
        part = ClosedLoop(self._whole_per_s)
        part._count = count
        part._stop_at_s = self._stop_at_s
        return part

    def reshare(self, count: int, from_s: float) -> None:
        _require_worker(0, count)
        self._count = count

    def hold(self, from_s: float, per_s: float) -> None:
        if not 0.0 < per_s < math.inf:
            raise ValueError(f"a cap of {per_s:g} per second is invalid")
        self._whole_per_s = per_s

    def end(self, at_s: float) -> None:
        self._stop_at_s = at_s


class OpenLoop:
    """Operations are due by a schedule, independent of answers.

    The operation that follows ``sent`` units is due when that many units of the schedule are due.
    The workers take turns, in the order of their ranks.

    Arrivals are evenly spaced or, with a random source, a Poisson process: an operation of k units
    is followed by an exponentially distributed gap with a mean of k units. The shares of all
    workers together are again a Poisson process with the rate of the schedule.

    Args:
        poisson: The source of random gaps; None is evenly spaced.
    """

    __slots__ = (
        "_changed_s",
        "_count",
        "_drawn_for",
        "_offset",
        "_own",
        "_poisson",
        "_stop_at_s",
        "_whole",
    )
    scheduled: ClassVar[bool] = True

    def __init__(self, schedule: Schedule, *, poisson: random.Random | None = None) -> None:
        self._whole = self._own = schedule
        self._poisson = poisson
        self._count = 1
        self._changed_s = 0.0
        self._stop_at_s = math.inf
        # Distance of the next operation's place in the schedule from the units handed out before
        # it: constant if evenly spaced, changed by each random gap otherwise.
        self._offset = 0.0 if poisson is None else poisson.expovariate(1.0)
        self._drawn_for = 0

    def next(self, elapsed_s: float, sent: int) -> float | Stop:
        at_s = self._own.at(self._place(sent))
        if at_s >= self._stop_at_s or elapsed_s >= self._stop_at_s:
            return STOP
        return at_s

    def behind(self, elapsed_s: float, sent: int) -> float:
        due = self._own.due_by(min(elapsed_s, self._stop_at_s))
        return max(due - self._place(sent), 0.0)

    def share(self, rank: int, count: int, from_s: float = 0.0) -> OpenLoop:
        _require_worker(rank, count)
        part = OpenLoop(self._whole, poisson=self._poisson)
        part._own = Schedule.constant(0.0).then(from_s, self._whole, 1.0 / count)
        part._count = count
        part._changed_s = from_s
        part._stop_at_s = self._stop_at_s
        if self._poisson is None:
            part._offset = rank / count
        return part

    def reshare(self, count: int, from_s: float) -> None:
        _require_worker(0, count)
        self._change(from_s, self._whole, count)

    def hold(self, from_s: float, per_s: float) -> None:
        self._change(from_s, self._whole.held(from_s, per_s), self._count)

    def end(self, at_s: float) -> None:
        self._stop_at_s = at_s

    def _change(self, from_s: float, whole: Schedule, count: int) -> None:
        if from_s < self._changed_s:
            raise ValueError(
                f"a change at {from_s:g} s cannot follow a change at {self._changed_s:g} s"
            )
        self._changed_s = from_s
        self._whole, self._count = whole, count
        self._own = self._own.then(from_s, whole, 1.0 / count)

    def _place(self, sent: int) -> float:
        """Place in this share's schedule of the operation that follows ``sent`` units."""
        if self._poisson is not None and sent != self._drawn_for:
            used = sent - self._drawn_for
            self._offset += used * (self._poisson.expovariate(1.0) - 1.0)
            self._drawn_for = sent
        return sent + self._offset


def _require_worker(rank: int, count: int) -> None:
    if not 0 <= rank < count:
        raise ValueError(f"rank {rank} of {count} workers")


class RecordedOrder(OpenLoop):
    """Operations of a recording, due by one schedule in their order.

    Every worker follows the whole schedule and sends its part of the operations, so that shares
    change nothing here. ``sent`` is the place of the next operation in the recording: the units of
    all operations before it, whoever sends them.
    """

    __slots__ = ("_units",)

    def __init__(self, schedule: Schedule, units: int) -> None:
        super().__init__(schedule)
        self._units = units

    def behind(self, elapsed_s: float, sent: int) -> float:
        return min(super().behind(elapsed_s, sent), max(self._units - sent, 0.0))

    def share(self, rank: int, count: int, from_s: float = 0.0) -> RecordedOrder:
        _require_worker(rank, count)
        part = RecordedOrder(self._whole, self._units)
        part._stop_at_s = self._stop_at_s
        return part

    def reshare(self, count: int, from_s: float) -> None:
        _require_worker(0, count)
