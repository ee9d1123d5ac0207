"""Counts by UTC second, the source of rates and best seconds."""

from __future__ import annotations

import dataclasses
import itertools
import operator
from array import array
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from pydantic import PlainSerializer, PlainValidator

if TYPE_CHECKING:
    _Array = array[int]
else:
    # Python 3.11 cannot subscript the class.
    _Array = array

_Sums = Annotated[
    _Array, PlainValidator(lambda sums: array("q", sums)), PlainSerializer(lambda sums: [*sums])
]
_LONGEST_S = 14 * 24 * 3600
"""No run is longer: a time beyond it comes from a broken clock."""


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
        if not -_LONGEST_S < place < _LONGEST_S:
            raise ValueError(f"second {second} is far from the run's other seconds")
        if place < 0:
            self._counts = array("q", bytes(-8 * place)) + counts
            self._base = second
            self._counts[0] += amount
        else:
            counts.extend(array("q", bytes(8 * (place - len(counts) + 1))))
            counts[place] += amount

    def merge(self, other: PerSecond) -> None:
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
        """The sum of all seconds."""
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
