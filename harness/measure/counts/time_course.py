"""Counts over time: by UTC second, and in a bounded number of columns.

Rates and best seconds come from the seconds; latencies over time are in columns. All columns
have the same width, which doubles when there are too many of them. They begin at multiples of their
width in UTC seconds, so that sums do not depend on the order of counting: two columns always become
one of twice the width.
"""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import math
import operator
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

from pydantic import PlainSerializer, PlainValidator

from harness.measure.record.findings import rounded
from harness.measure.record.over_time import LatencyCoursePart

if TYPE_CHECKING:
    _Array = array[int]
else:
    # Python 3.11 cannot subscript the class.
    _Array = array

_Sums = Annotated[
    _Array, PlainValidator(lambda sums: array("q", sums)), PlainSerializer(lambda sums: [*sums])
]
LONGEST_S = 14 * 24 * 3600
"""No run is longer: a time beyond it comes from a broken clock."""


SLOTS = 50
"""Equal parts of a second: each is 20 ms."""
MOST_COLUMNS = 120

_LOWEST_S = 1e-4
_PER_DECADE = 10
_ROWS = 62
"""Up to 126 s."""
BOUNDS_S = tuple(_LOWEST_S * 10 ** (row / _PER_DECADE) for row in range(_ROWS))
"""Upper bound of each row; shorter latencies are in the first row, longer ones in the last."""
# Half a microsecond more, because a difference of two times is not exact.
_LIMITS_S = tuple(bound_s + 5e-7 for bound_s in BOUNDS_S)


@dataclasses.dataclass(slots=True)
class PerSecond:
    """A sum for each UTC second. It takes 8 bytes per second of the run."""

    _base: int = 0
    _counts: _Sums = dataclasses.field(default_factory=lambda: array("q"))

    def add(self, second: int, amount: int) -> None:
        """Add to the sum of a second; a `ValueError` if it is two weeks from the others."""
        place = second - self._base
        counts = self._counts
        if place >= 0:
            try:
                counts[place] += amount
            except IndexError:
                pass  # A second after the last one.
            else:
                return
        if not counts:
            self._base = second
            counts.append(amount)
            return
        if not -LONGEST_S < place < LONGEST_S:
            raise ValueError(f"second {second} is far from the run's other seconds")
        if place < 0:
            self._counts = array("q", bytes(-8 * place)) + counts
            self._base = second
            self._counts[0] += amount
        else:
            counts.extend(array("q", bytes(8 * (place - len(counts) + 1))))
            counts[place] += amount

    def add_all(self, seconds: Sequence[int], amounts: Sequence[int]) -> None:
        """Add an amount to the sum of each of several seconds; a `ValueError` as in `add`."""
        if seconds:
            PerSecond.add(self, min(seconds), 0)
            PerSecond.add(self, max(seconds), 0)
            base, counts = self._base, self._counts
            for second, amount in zip(seconds, amounts, strict=True):
                counts[second - base] += amount

    def merge(self, other: PerSecond) -> None:
        if not self._counts:
            self._base, self._counts = other._base, other._counts[:]
            return
        for second, amount in other.items():
            self.add(second, amount)

    def items(self) -> Iterator[tuple[int, int]]:
        """The seconds whose sum is not 0, and their sums, in order."""
        return ((self._base + place, amount) for place, amount in enumerate(self._counts) if amount)

    def at(self, second: int) -> int:
        place = second - self._base
        return self._counts[place] if 0 <= place < len(self._counts) else 0

    @property
    def sum(self) -> int:
        return sum(self._counts)

    def total(self, start: int, end: int) -> int:
        """The sum of the seconds from ``start`` to before ``end``."""
        first = max(0, start - self._base)
        return sum(self._counts[first : max(first, end - self._base)])

    def best(self, width: int, start: int, end: int) -> float:
        """The highest mean over ``width`` consecutive seconds from ``start`` to before ``end``.

        If there are fewer seconds, it is the mean over all of them.
        """
        length = end - start
        if length <= 0:
            return 0.0
        width = min(width, length)
        # No sum is negative, so that a window beyond the known seconds cannot have more.
        known = self._counts[max(0, start - self._base) : max(0, end - self._base)]
        if len(known) <= width:
            return sum(known) / width
        sums = list(itertools.accumulate(known, initial=0))
        most: int = max(map(operator.sub, sums[width:], sums))
        return most / width

    def busiest(self, width: int) -> tuple[int, float]:
        """The first second of the ``width`` in a row with the highest mean, and that mean.

        Seconds before the first known one, and after the last, count as 0.
        """
        sums = list(itertools.accumulate(self._counts, initial=0))
        places = range(max(1, len(sums) - width))
        best = max(places, key=lambda place: sums[min(place + width, len(sums) - 1)] - sums[place])
        return self._base + best, (sums[min(best + width, len(sums) - 1)] - sums[best]) / width


class MostPerSecond(PerSecond):
    """The largest amount of each UTC second, in place of a sum."""

    __slots__ = ()

    def add(self, second: int, amount: int) -> None:
        """Note an amount, which is not negative."""
        PerSecond.add(self, second, max(0, amount - self.at(second)))


class Slots(PerSecond):
    """Which of the `SLOTS` of each UTC second are marked, a bit each. A mark is set once."""

    __slots__ = ()

    def add(self, second: int, amount: int) -> None:
        """Mark the slots whose bits are set in ``amount``."""
        PerSecond.add(self, second, amount & ~self.at(second))

    def mark(self, slot: int) -> None:
        """Mark one slot, counted from the epoch."""
        self.add(slot // SLOTS, 1 << slot % SLOTS)

    def mark_between(self, start_s: float, end_s: float) -> None:
        """Mark all slots that are wholly between two times."""
        self.mark_slots(math.ceil(start_s * SLOTS), int(end_s * SLOTS))

    def mark_slots(self, slot: int, end: int) -> None:
        """Mark the slots from ``slot`` to before ``end``, counted from the epoch."""
        while slot < end:
            second, place = divmod(slot, SLOTS)
            width = min(SLOTS - place, end - slot)
            self.add(second, ((1 << width) - 1) << place)
            slot += width


@dataclasses.dataclass(slots=True)
class Columns:
    """The columns ``first`` to ``last`` in use; their width is a power of two, in seconds."""

    width_s: int = 1
    first: int = 0
    last: int = -1

    def __len__(self) -> int:
        return self.last - self.first + 1

    @property
    def start(self) -> int:
        """UTC second at which the first column begins."""
        return self.first * self.width_s

    def at(self, second: int) -> int:
        """Number of the column of a UTC second."""
        return second // self.width_s

    def cover(self, second: int) -> int:
        """Make room for a UTC second. Returns how often the width doubled."""
        column = self.at(second)
        if not len(self):
            self.first = self.last = column
            return 0
        self.first = min(self.first, column)
        self.last = max(self.last, column)
        doubled = 0
        while len(self) > MOST_COLUMNS:
            self.double()
            doubled += 1
        return doubled

    def double(self) -> None:
        self.width_s *= 2
        if len(self):
            self.first //= 2
            self.last //= 2


@dataclasses.dataclass(slots=True)
class LatencyCourse:
    """Counts latencies by UTC second, in ten rows per decade of latency."""

    _columns: Columns = dataclasses.field(default_factory=Columns)
    _counts: dict[int, list[int]] = dataclasses.field(default_factory=dict)

    def add(self, second: int, latencies_s: Iterable[float], count: int = 1) -> None:
        """Count latencies of operations that were done in a UTC second, each ``count`` times."""
        counts = self._counts.get(second // self._columns.width_s)
        if counts is None:
            counts = self._of(second)
        for latency_s in latencies_s:
            counts[bisect.bisect_left(_LIMITS_S, latency_s, 0, _ROWS - 1)] += count

    def widen(self, width_s: int) -> None:
        """Make the columns at least so wide."""
        while self._columns.width_s < width_s:
            self._columns.double()
            self._join()

    def merge(self, other: LatencyCourse) -> None:
        width_s = other._columns.width_s
        self.widen(width_s)
        for column, counts in other._counts.items():
            _add(self._of(column * width_s), counts)

    def view(self) -> LatencyCoursePart | None:
        """The counts so far; None if there are none."""
        columns = self._columns
        if not self._counts:
            return None
        empty = [0] * _ROWS
        places = range(columns.first, columns.last + 1)
        rows = list(zip(*(self._counts.get(place, empty) for place in places), strict=True))
        taken = [row for row in range(_ROWS) if any(rows[row])]
        shown = slice(taken[0], taken[-1] + 1)
        return LatencyCoursePart(
            start=columns.start,
            width_s=columns.width_s,
            columns=len(columns),
            bounds_ms=tuple(rounded(bound * 1000) for bound in BOUNDS_S[shown]),
            rows=tuple(rows[shown]),
        )

    def _of(self, second: int) -> list[int]:
        for _ in range(self._columns.cover(second)):
            self._join()
        return self._counts.setdefault(self._columns.at(second), [0] * _ROWS)

    def _join(self) -> None:
        """Join each pair of columns into one."""
        joined: dict[int, list[int]] = {}
        for column, counts in self._counts.items():
            _add(joined.setdefault(column // 2, [0] * _ROWS), counts)
        self._counts = joined


def _add(into: list[int], counts: Iterable[int]) -> None:
    for row, count in enumerate(counts):
        into[row] += count
