"""Simulated time, from which keys are made: it begins on 2024-01-01 and goes on with each write.

No clock is read, so that the same seed gives the same keys. It is counted as .NET does, in ticks
of 100 ns since the year 1, because the documented RowKeys are made of them.
"""

from __future__ import annotations

import dataclasses
import datetime as dt

from harness.workload.keys.row_keys import MAX_TICKS, TICKS_A_ROW, TICKS_AT_EPOCH

SECOND = 10_000_000
HOUR = 3600 * SECOND
DAY = 24 * HOUR

_YEAR_1 = dt.datetime(1, 1, 1, tzinfo=dt.UTC)


@dataclasses.dataclass(frozen=True, slots=True)
class Instant:
    """A moment of simulated time.

    Attributes:
        ticks: Of 100 ns, since the year 1.
    """

    ticks: int

    @property
    def utc(self) -> dt.datetime:
        """As a value of a property; digits below a microsecond are lost."""
        return _YEAR_1 + dt.timedelta(microseconds=self.ticks // 10)

    @property
    def date(self) -> str:
        """``yyyy-MM-dd``."""
        return self.utc.strftime("%Y-%m-%d")

    @property
    def month(self) -> str:
        """``yyyy-MM``."""
        return self.utc.strftime("%Y-%m")

    @property
    def stamp(self) -> str:
        """``yyyy-MM-dd-HH-mm-ss``."""
        return self.utc.strftime("%Y-%m-%d-%H-%M-%S")

    @property
    def time(self) -> str:
        """``HH:mm:ss.fffffff``, with all seven digits of a tick."""
        return f"{self.utc:%H:%M:%S}.{self.ticks % SECOND:07d}"

    @property
    def inverted(self) -> str:
        """What is left of time in ticks, 19 digits: of two moments the later one sorts first."""
        return f"{MAX_TICKS - self.ticks:019d}"

    def after(self, ticks: int) -> Instant:
        """The moment so many ticks later."""
        return Instant(self.ticks + ticks)


def day(number: int) -> Instant:
    """Beginning of the day with this number, from 0."""
    return Instant(TICKS_AT_EPOCH + number * DAY)


def month(number: int) -> Instant:
    """Beginning of the month with this number, from 0."""
    years, months = divmod(number, 12)
    days = dt.datetime(2024 + years, 1 + months, 1, tzinfo=dt.UTC) - _YEAR_1
    return Instant(days.days * DAY)


def newest_first(begin: Instant, end: Instant) -> tuple[str, str]:
    """First RowKey, and the RowKey before which it ends, of ``begin`` to before ``end``.

    For rows that are named by `Instant.inverted`.
    """
    return end.after(-1).inverted, begin.after(-1).inverted


@dataclasses.dataclass(frozen=True, slots=True)
class EvenSpread:
    """Rows that come evenly over a span of time.

    Attributes:
        rows: How many.
        span: Ticks from the first row to the end.
    """

    rows: int
    span: int

    def at(self, number: int) -> int:
        """When the row with this number comes: ticks behind the first."""
        return number * (self.span // self.rows)

    def within(self, begin: int, end: int) -> int:
        """How many rows come from ``begin`` on and before ``end``, ticks behind the first."""
        every = self.span // self.rows
        first, last = -(-begin // every), -(-end // every)
        return len(range(first, min(last, self.rows)))


class Clock:
    """Simulated time of one worker. No two workers have a moment in common.

    Args:
        start: Nothing is made before it.
        worker: Number of the worker, below 10,000.
    """

    __slots__ = ("_made", "_start")

    def __init__(self, start: Instant, worker: int) -> None:
        # Moments are a millisecond apart, workers are ticks of it apart.
        self._start = start.after(worker)
        self._made = 0

    @property
    def now(self) -> Instant:
        """The moment that was given out last."""
        return self._start.after(self._made * TICKS_A_ROW)

    def next(self) -> Instant:
        """A moment later than all before."""
        self._made += 1
        return self.now
