"""The fields of entities that keys are made of: a set of values, the time, and a sequence.

Each field is drawn by a distribution of its own. The time is simulated: now is half past noon on
the last day of 2025, so that the same profile makes the same keys on every day.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import itertools
from array import array
from collections.abc import Iterable, Iterator
from typing import Protocol

from harness.workload.keys.pickers import PICKERS, Picker, Shape, Weighted
from harness.workload.keys.template import PERIODS, next_period
from harness.workload.simulated_time import ticks_of

NOW = dt.datetime(2025, 12, 31, 12, 30, tzinfo=dt.UTC)
"""The time of inserts."""
UNITS = ("hours", "days", "weeks", "months", "years")
_LABELS = {"year": "%Y", "month": "%Y-%m", "day": "%Y-%m-%d", "hour": "%Y-%m-%dT%H"}


class Texts(Protocol):
    """The values of a field, by number from 0."""

    def __len__(self) -> int: ...
    def __getitem__(self, place: int) -> str: ...
    def __iter__(self) -> Iterator[str]: ...


class Numbered:
    """Values such as ``customer-000`` to ``customer-999``: in order, made when asked for."""

    __slots__ = ("_count", "prefix", "width")

    def __init__(self, prefix: str, count: int) -> None:
        self.prefix, self._count = prefix, count
        self.width = len(str(count - 1))

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: int) -> str:
        return f"{self.prefix}{str(place).zfill(self.width)}"

    def __iter__(self) -> Iterator[str]:
        return map(self.__getitem__, range(self._count))


class Packed:
    """Many values in little memory: their bytes in a row."""

    __slots__ = ("_bytes", "_ends")

    def __init__(self, values: Iterable[str]) -> None:
        encoded = [value.encode() for value in values]
        self._bytes = b"".join(encoded)
        self._ends = array("Q", itertools.accumulate(map(len, encoded), initial=0))

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, place: int) -> str:
        return self._bytes[self._ends[place] : self._ends[place + 1]].decode()

    def __iter__(self) -> Iterator[str]:
        return map(self.__getitem__, range(len(self)))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ValueSet:
    """A field with a set of values.

    Attributes:
        values: All of them.
        distribution: A name of `PICKERS`, unless there are ``weights``, one for each value.
    """

    name: str
    values: Texts
    distribution: str = "uniform"
    shape: Shape = dataclasses.field(default_factory=Shape)
    weights: array[float] | None = None

    def picker(self, worker: int = 0) -> Picker:
        """Draws the number of a value; worker by worker another start of ``sequential``."""
        if self.weights is not None:
            return Weighted(self.weights)
        shape = dataclasses.replace(self.shape, start=worker * 7919)
        return PICKERS[self.distribution](len(self.values), shape)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Time:
    """The time of an entity.

    Loaded entities are spread evenly over the history, which ends now. Inserts are now.

    Attributes:
        count, unit: Length of the history, such as 12 and ``months``; calendar months and years,
            the current one included.
        theta: Reads prefer recent times, Zipfian by age with this skew; None for no preference.
    """

    name: str
    count: int
    unit: str
    theta: float | None = 0.99

    @property
    def begin(self) -> dt.datetime:
        midnight = NOW.replace(hour=0)
        if self.unit == "hours":
            return NOW.replace(minute=0) - dt.timedelta(hours=self.count - 1)
        if self.unit in ("days", "weeks"):
            days = self.count * (7 if self.unit == "weeks" else 1)
            return midnight - dt.timedelta(days=days - 1)
        months = NOW.year * 12 + NOW.month - 1
        first = (
            months - self.count + 1 if self.unit == "months" else (NOW.year - self.count + 1) * 12
        )
        return midnight.replace(year=first // 12, month=first % 12 + 1, day=1)

    def starts(self, period: str) -> list[dt.datetime]:
        """Beginnings of all periods (see `PERIODS`) of the history, the current one last."""
        return list(itertools.takewhile(lambda moment: moment <= NOW, self._periods(period)))

    def _periods(self, period: str) -> Iterator[dt.datetime]:
        parts = PERIODS.index(period) + 1
        begin = self.begin
        month, day, hour = (*begin.timetuple()[1:parts], *(1, 1, 0)[parts - 1 :])
        moment = begin.replace(month=month, day=day, hour=hour)
        while True:
            yield moment
            moment = next_period(moment, parts)

    def picker(self, number: int) -> Picker:
        """Draws one of ``number`` moments in order: the last is the newest."""
        shape = Shape(theta=0.0 if self.theta is None else self.theta)
        return PICKERS["uniform" if self.theta is None else "latest"](number, shape)


def label(moment: dt.datetime, period: str) -> str:
    """A period as text, such as 2025-12; later periods sort last."""
    return moment.strftime(_LABELS[period])


def span(begin: dt.datetime, end: dt.datetime) -> tuple[int, int]:
    """First tick of a time span, and its length in ticks."""
    return ticks_of(begin), ticks_of(end) - ticks_of(begin)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Number:
    """A sequence: each entity has the next number, unique over all workers.

    Attributes:
        theta: Reads prefer the newest numbers, Zipfian by age with this skew; None for no
            preference.
    """

    name: str
    theta: float | None = None


Field = ValueSet | Time | Number
