"""Counts by UTC second, from which rates and best seconds are read."""

from __future__ import annotations

import itertools
import operator
from array import array
from collections.abc import Iterator

_LONGEST_S = 14 * 24 * 3600
"""No run is longer; an instant beyond it is a broken clock."""


class PerSecond:
    """A sum for every UTC second. Grows with the length of the run, 8 bytes a second."""

    __slots__ = ("_base", "_counts")

    def __init__(self) -> None:
        self._base = 0
        self._counts: array[int] = array("q")

    def add(self, second: int, amount: int) -> None:
        """Add ``amount`` in UTC second ``second``.

        Raises:
            ValueError: the second is more than two weeks from the others.
        """
        place = second - self._base
        counts = self._counts
        if place >= 0:
            try:
                counts[place] += amount
            except IndexError:
                # A second behind the last one.
                pass
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
        """Add every second of ``other``."""
        for second, amount in other.items():
            self.add(second, amount)

    def items(self) -> Iterator[tuple[int, int]]:
        """Each second with something in it, and its sum, in order."""
        return ((self._base + place, amount) for place, amount in enumerate(self._counts) if amount)

    def at(self, second: int) -> int:
        """The sum of one second."""
        place = second - self._base
        return self._counts[place] if 0 <= place < len(self._counts) else 0

    def total(self, start: int, end: int) -> int:
        """Sum of the seconds from ``start`` up to, not including, ``end``."""
        first = max(0, start - self._base)
        return sum(self._counts[first : max(first, end - self._base)])

    def best(self, width: int, start: int, end: int) -> float:
        """The best mean a second over ``width`` seconds in a row within start to end.

        Where the time from start to end is shorter, the mean over all of it.
        """
        length = end - start
        if length <= 0:
            return 0.0
        width = min(width, length)
        # Nothing is negative: no window that reaches beyond what is known has more in it.
        known = self._counts[max(0, start - self._base) : max(0, end - self._base)]
        if len(known) <= width:
            return sum(known) / width
        sums = list(itertools.accumulate(known, initial=0))
        most: int = max(map(operator.sub, sums[width:], sums))
        return most / width

    def encode(self) -> list[int]:
        """Its content for the wire: the first second, then the sums."""
        return [self._base, *self._counts]

    @classmethod
    def decode(cls, content: list[int]) -> PerSecond:
        """What `encode` gave."""
        made = cls()
        made._base = content[0]
        made._counts = array("q", content[1:])
        return made
