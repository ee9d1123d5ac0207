"""Columns of time: a bounded number of them, all of one width, which doubles when all are taken.

Columns begin at multiples of their width in UTC seconds, so that sums are the same in whatever
order they come: two columns of one width always become one of twice the width.
"""

from __future__ import annotations

from typing import Self

MOST_COLUMNS = 120


class Columns:
    """Where the columns are that have something in them.

    Args:
        most: So many are kept.

    Attributes:
        width_s: Seconds that a column is wide, a power of two.
        first: Number of the first one with something in it.
        last: Number of the last one.
    """

    __slots__ = ("_most", "first", "last", "width_s")

    def __init__(self, most: int = MOST_COLUMNS) -> None:
        self._most = most
        self.width_s = 1
        self.first = 0
        self.last = -1

    def __len__(self) -> int:
        return self.last - self.first + 1

    def at(self, second: int) -> int:
        """Number of the column that UTC second ``second`` is in."""
        return second // self.width_s

    def cover(self, second: int) -> int:
        """Make room for UTC second ``second``; how many times the width had to double for it."""
        column = self.at(second)
        if not len(self):
            self.first = self.last = column
            return 0
        self.first = min(self.first, column)
        self.last = max(self.last, column)
        doubled = 0
        while len(self) > self._most:
            self.double()
            doubled += 1
        return doubled

    def encode(self) -> list[int]:
        """Their content for the wire."""
        return [self.width_s, self.first, self.last]

    @classmethod
    def decode(cls, content: list[int]) -> Self:
        """What `encode` gave."""
        made = cls()
        made.width_s, made.first, made.last = content
        return made

    def double(self) -> None:
        """Make every column twice as wide."""
        self.width_s *= 2
        if len(self):
            self.first //= 2
            self.last //= 2
