"""Keys in order are grouped into ranges, and each range lives on one server.

Source: partitioning strategy, "Range partitions". When and how ranges are made is not published;
here a table begins as one range, and a range with too many keys is split in the middle. The half
that is still growing stays where it is, so that keys which only ever grow (append-only) or shrink
(prepend-only) all meet the server of the last or the first range, whatever their number.
"""

from __future__ import annotations

import bisect
import dataclasses
import math
from collections.abc import Iterator

_HALF_LIFE_S = 5.0
MOST_RANGES = 1000
"""Ranges of all tables together. Above it none is split, so that memory stays bounded."""

Bound = tuple[str, str]
"""Table and PartitionKey."""


class Faded:
    """An amount that fades by half every 5 s."""

    __slots__ = ("_amount", "_then_s")

    def __init__(self) -> None:
        self._amount = 0.0
        self._then_s = 0.0

    def add(self, amount: float, now_s: float) -> None:
        """More, or less, of it."""
        self._amount = self.at(now_s) + amount
        self._then_s = now_s

    def at(self, now_s: float) -> float:
        """What is left of it."""
        if self._amount == 0.0 or now_s <= self._then_s:
            return self._amount
        return self._amount * math.exp2((self._then_s - now_s) / _HALF_LIFE_S)


@dataclasses.dataclass(slots=True, kw_only=True)
class Range:
    """Partitions from ``first`` up to the next range.

    Attributes:
        first: Where it begins.
        server: Number of the server it lives on.
        keys: Some of its keys, in order: all that were written, until it can be split no more.
        offline_until_s: It serves nothing before.
        hot_since_s: When it began to be refused; None where it is not hot.
        refused_s: When it was refused last.
        load: Entities that it served lately.
    """

    first: Bound
    server: int
    keys: list[Bound] = dataclasses.field(default_factory=list)
    offline_until_s: float = -math.inf
    hot_since_s: float | None = None
    refused_s: float = -math.inf
    load: Faded = dataclasses.field(default_factory=Faded)


@dataclasses.dataclass(slots=True)
class _Home:
    """What lives on one server."""

    ranges: int = 0
    load: Faded = dataclasses.field(default_factory=Faded)


class Ranges:
    """All ranges of the account, in the order of tables and keys.

    Args:
        keys_per_range: A range with more is split.
        servers: How many servers there are.
    """

    def __init__(self, keys_per_range: int, servers: int) -> None:
        self._keys_per_range = keys_per_range
        self._homes = [_Home() for _ in range(servers)]
        self._bounds: list[Bound] = []
        self._ranges: list[Range] = []
        self._insert(0, Range(first=("", ""), server=0))

    def __len__(self) -> int:
        return len(self._ranges)

    def __iter__(self) -> Iterator[Range]:
        return iter(self._ranges)

    def find(self, table: str, key: str) -> Range:
        """The range that a partition is in."""
        return self._ranges[bisect.bisect_right(self._bounds, (table, key)) - 1]

    def open_table(self, table: str, now_s: float) -> None:
        """Give a table a range of its own."""
        bound = (table, "")
        at = bisect.bisect_left(self._bounds, bound)
        if (at < len(self._bounds) and self._bounds[at] == bound) or len(self) >= MOST_RANGES:
            return
        self._insert(at, Range(first=bound, server=self.emptiest(now_s)))

    def drop_table(self, table: str) -> None:
        """The table is gone, and its ranges are."""
        begin = bisect.bisect_left(self._bounds, (table, ""))
        end = bisect.bisect_left(self._bounds, (table + "\0", ""))
        for place in self._ranges[begin:end]:
            self._homes[place.server].ranges -= 1
        del self._bounds[begin:end], self._ranges[begin:end]

    def write(self, table: str, key: str, now_s: float) -> None:
        """A partition is written to; a range that has too many keys by it is split."""
        bound = (table, key)
        place = self.find(table, key)
        keys = place.keys
        at = bisect.bisect_left(keys, bound)
        if (at < len(keys) and keys[at] == bound) or len(self) >= MOST_RANGES:
            return
        keys.insert(at, bound)
        if len(keys) > self._keys_per_range:
            self._split(place, at, now_s)

    def served(self, place: Range, entities: int, now_s: float) -> None:
        """Remember what a range served."""
        place.load.add(entities, now_s)
        self._homes[place.server].load.add(entities, now_s)

    def move(self, place: Range, server: int, now_s: float) -> None:
        """A range lives on another server from now on."""
        load = place.load.at(now_s)
        for home, one in ((self._homes[place.server], -1), (self._homes[server], 1)):
            home.ranges += one
            home.load.add(one * load, now_s)
        place.server = server

    def next_border(self, table: str, key: str) -> str | None:
        """The first key of the table's next range that lives on another server, or None."""
        at = bisect.bisect_right(self._bounds, (table, key))
        server = self._ranges[at - 1].server
        while at < len(self._bounds) and self._bounds[at][0] == table:
            if self._ranges[at].server != server:
                return self._bounds[at][1]
            at += 1
        return None

    def emptiest(self, now_s: float, *, other_than: int | None = None) -> int:
        """The server that served least lately, and of those the one with the fewest ranges.

        Args:
            now_s: Now.
            other_than: A server that does not count, unless it is the only one.
        """
        return min(
            (
                (round(home.load.at(now_s)), home.ranges, server)
                for server, home in enumerate(self._homes)
                if server != other_than
            ),
            default=(0, 0, 0),
        )[2]

    def _split(self, place: Range, grown_at: int, now_s: float) -> None:
        middle = len(place.keys) // 2
        lower, upper = place.keys[:middle], place.keys[middle:]
        server = self.emptiest(now_s, other_than=place.server)
        at = bisect.bisect_left(self._bounds, place.first)
        if grown_at < middle:
            place.keys = lower
            self._insert(at + 1, Range(first=upper[0], server=server, keys=upper))
            return
        quiet = Range(first=place.first, server=server, keys=lower)
        place.first, place.keys = upper[0], upper
        self._bounds[at] = place.first
        self._insert(at, quiet)

    def _insert(self, at: int, place: Range) -> None:
        self._bounds.insert(at, place.first)
        self._ranges.insert(at, place)
        self._homes[place.server].ranges += 1
