"""Simulated time for keys: it begins on 2024-01-01 and advances with each write.

No clock is read, so that the same seed gives the same keys. The unit is that of .NET, ticks of
100 ns since the year 1, because the documented RowKeys are made of ticks.
"""

from __future__ import annotations

import dataclasses
import datetime as dt

from harness.model.operation import KeyRange

TICKS_AT_EPOCH = 638_396_640_000_000_000
"""Ticks of 100 ns from the year 1 to 2024-01-01, where simulated time begins."""
MAX_TICKS = 3_155_378_975_999_999_999
"""The last tick of the year 9999."""
TICKS_A_ROW = 10_000
"""Simulated time between two rows: a millisecond. Rows of different workers are ticks apart."""
SECOND = 10_000_000
HOUR = 3600 * SECOND
DAY = 24 * HOUR

_YEAR_1 = dt.datetime(1, 1, 1, tzinfo=dt.UTC)


@dataclasses.dataclass(frozen=True, slots=True)
class Instant:
    """A moment of simulated time, in ticks since the year 1."""

    ticks: int

    @property
    def utc(self) -> dt.datetime:
        """As a value of a property; digits below a microsecond are lost."""
        return moment_of(self.ticks)

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
        """Ticks until the year 9999 ends, 19 digits: a later moment sorts first."""
        return f"{MAX_TICKS - self.ticks:019d}"

    def after(self, ticks: int) -> Instant:
        return Instant(self.ticks + ticks)


def ticks_of(moment: dt.datetime) -> int:
    """A UTC time in ticks."""
    return (moment - _YEAR_1) // dt.timedelta(microseconds=1) * 10


def moment_of(ticks: int) -> dt.datetime:
    """Ticks as a UTC time; digits below a microsecond are lost."""
    return _YEAR_1 + dt.timedelta(microseconds=ticks // 10)


def day(number: int) -> Instant:
    """Beginning of the day with this number, from 0."""
    return Instant(TICKS_AT_EPOCH + number * DAY)


def month(number: int) -> Instant:
    """Beginning of the month with this number, from 0."""
    years, months = divmod(number, 12)
    days = dt.datetime(2024 + years, 1 + months, 1, tzinfo=dt.UTC) - _YEAR_1
    return Instant(days.days * DAY)


def newest_first(begin: Instant, end: Instant, *, entities: int, exact: bool = True) -> KeyRange:
    """The range of inverted RowKeys from ``begin`` to before ``end``, which has ``entities``."""
    return KeyRange(
        row_from=end.after(-1).inverted,
        row_before=begin.after(-1).inverted,
        entities=entities,
        exact=exact,
    )


@dataclasses.dataclass(frozen=True, slots=True)
class EvenSpread:
    """A number of rows, spread evenly over a span of ticks that begins with the first row."""

    rows: int
    span: int

    def at(self, number: int) -> int:
        """Ticks from the first row to the row with this number."""
        return number * (self.span // self.rows)

    def within(self, begin: int, end: int) -> int:
        """Number of rows from ``begin`` to before ``end``, in ticks after the first row."""
        every = self.span // self.rows
        first, last = -(-begin // every), -(-end // every)
        return len(range(first, min(last, self.rows)))


class Clock:
    """Simulated time of one worker (below 10,000). No two workers have a moment in common."""

    __slots__ = ("_made", "_start")

    def __init__(self, start: Instant, worker: int) -> None:
        # Moments are a millisecond apart; those of different workers are ticks apart.
        self._start = start.after(worker)
        self._made = 0

    @property
    def now(self) -> Instant:
        """The last moment that `next` returned; at first the start."""
        return self._start.after(self._made * TICKS_A_ROW)

    def next(self) -> Instant:
        """A moment later than all before."""
        self._made += 1
        return self.now
