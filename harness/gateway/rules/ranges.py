"""Range partitions: consecutive keys form a range, and each range is on one server.

Source: partitioning strategy, "Range partitions". How the service forms ranges is not published.
Here a table starts as one range, and a range is split in the middle when it has too many keys, or
by its load (`harness.gateway.rules.ramping`). The half that grows stays on its server, so that
append-only keys always reach the server of the last range, and prepend-only keys that of the first.
"""

from __future__ import annotations

import bisect
import dataclasses
import math
import zlib
from collections.abc import Iterable, Iterator, Sequence

from harness.model.entity import sort_key

_HALF_LIFE_S = 5.0
_RECENT_HALF_LIFE_S = 1.0
_MOST_KEYS = 200
"""Most known keys of a range that is split by load; they are spread evenly over the range."""
MOST_RANGES = 1000
"""Most ranges of all tables together. Then no range is split, so that memory stays bounded."""

Bound = tuple[str, str]
"""Table and PartitionKey, as `harness.model.entity.sort_key` has it."""


class Faded:
    """An amount that halves every few seconds."""

    __slots__ = ("_amount", "_half_life_s", "_then_s")

    def __init__(self, half_life_s: float = _HALF_LIFE_S) -> None:
        self._half_life_s = half_life_s
        self._amount = 0.0
        self._then_s = 0.0

    def add(self, amount: float, now_s: float) -> None:
        then_s = self._then_s
        if now_s > then_s:
            self._amount *= math.exp2((then_s - now_s) / self._half_life_s)
        self._amount += amount
        self._then_s = now_s

    def at(self, now_s: float) -> float:
        if self._amount == 0.0 or now_s <= self._then_s:
            return self._amount
        return self._amount * math.exp2((self._then_s - now_s) / self._half_life_s)


@dataclasses.dataclass(slots=True, kw_only=True)
class Range:
    """Partitions from ``first`` up to the next range.

    Attributes:
        first: Table and key at which the range begins.
        keys: Written keys in order; no longer complete once no range can be split.
        grown: The key that was added last.
        offline_until_s: When the range is available again.
        hot_since_s: Time of the first refusal; None if the range is not hot.
        refused_s: Time of the last refusal.
        load: Recently served entities.
        recent: The same over a shorter time.
        busy_since_s: Since when the range is busy; None if it is not.
    """

    first: Bound
    server: int
    keys: list[Bound] = dataclasses.field(default_factory=list)
    grown: Bound | None = None
    offline_until_s: float = -math.inf
    hot_since_s: float | None = None
    refused_s: float = -math.inf
    load: Faded = dataclasses.field(default_factory=Faded)
    recent: Faded = dataclasses.field(default_factory=lambda: Faded(_RECENT_HALF_LIFE_S))
    busy_since_s: float | None = None


@dataclasses.dataclass(slots=True)
class _Home:
    """The ranges and the load of one server."""

    ranges: int = 1
    load: Faded = dataclasses.field(default_factory=Faded)


class Ranges:
    """All ranges of the account, in the order of tables and keys.

    A range with more than ``keys_per_range`` is split; None if ranges are split by load only.
    """

    def __init__(self, keys_per_range: int | None, servers: int) -> None:
        self._keys_per_range = keys_per_range
        self._homes = [_Home() for _ in range(servers)]
        self._opened: set[str] = set()
        # Keys that are in a range already. Once no range can be split, none is added.
        self._written: set[Bound] = set()
        self._bounds: list[Bound] = []
        self._ranges: list[Range] = []
        # The ranges of tables without a range of their own. They are not listed.
        self._shared = [Range(first=("", ""), server=server) for server in range(servers)]

    def __len__(self) -> int:
        return len(self._ranges)

    def __iter__(self) -> Iterator[Range]:
        return iter(self._ranges)

    def find(self, table: str, key: str) -> Range:
        """Return the range of a partition; a shared one if the table has no range."""
        if table in self._opened:
            return self._ranges[bisect.bisect_right(self._bounds, (table, sort_key(key))) - 1]
        return self._shared[zlib.crc32(table.encode()) % len(self._shared)]

    def spans(self, table: str, keys: Sequence[str]) -> Iterator[tuple[Range, int, int]]:
        """The ranges of keys in order, each with the places of its first key and after its last."""
        if table not in self._opened:
            yield self.find(table, ""), 0, len(keys)
            return
        bounds, start = self._bounds, 0
        keys = [*map(sort_key, keys)]
        at = bisect.bisect_right(bounds, (table, keys[0])) if keys else 0
        while start < len(keys):
            end = len(keys)
            if at < len(bounds) and bounds[at][0] == table:
                end = bisect.bisect_left(keys, bounds[at][1], start)
            yield self._ranges[at - 1], start, end
            start, at = end, at + 1
            # Often the next range has keys.
            if end < len(keys) and at < len(bounds) and bounds[at] <= (table, keys[end]):
                at = bisect.bisect_right(bounds, (table, keys[end]), at)

    def open_table(self, table: str, now_s: float) -> None:
        """Give a table that exists a range of its own, unless there are too many ranges."""
        if table in self._opened or len(self) >= MOST_RANGES:
            return
        bound = (table, "")
        self._opened.add(table)
        self._insert(
            bisect.bisect_left(self._bounds, bound),
            Range(first=bound, server=self.emptiest(now_s)),
        )

    def drop_table(self, table: str) -> None:
        self._opened.discard(table)
        self._written = {bound for bound in self._written if bound[0] != table}
        begin = bisect.bisect_left(self._bounds, (table, ""))
        end = bisect.bisect_left(self._bounds, (table + "\0", ""))
        for place in self._ranges[begin:end]:
            self._homes[place.server].ranges -= 1
        del self._bounds[begin:end], self._ranges[begin:end]

    def write(self, table: str, key: str, now_s: float) -> None:
        """Note a written partition; split its range if it has too many keys."""
        bound = (table, sort_key(key))
        if bound in self._written or table not in self._opened or len(self) >= MOST_RANGES:
            return
        place = self.find(table, key)
        keys = place.keys
        at = bisect.bisect_left(keys, bound)
        if at < len(keys) and keys[at] == bound:
            return
        keys.insert(at, bound)
        place.grown = bound
        if self._keys_per_range is None:
            if len(keys) > _MOST_KEYS:
                del keys[1:-1:2]
            return
        self._written.add(bound)
        if len(keys) > self._keys_per_range:
            self.split(place, now_s)

    def write_all(self, keys: Iterable[tuple[str, str | None]], now_s: float) -> None:
        """Note written partitions; None is no partition."""
        if len(self) >= MOST_RANGES:
            return
        known = self._written
        for table, key in [bound for bound in keys if bound not in known]:
            if key is not None:
                self.write(table, key, now_s)

    def split(self, place: Range, now_s: float) -> None:
        """Split a range in the middle; the half that does not grow goes to another server."""
        if len(place.keys) < 2 or len(self) >= MOST_RANGES:
            return
        middle = len(place.keys) // 2
        lower, upper = place.keys[:middle], place.keys[middle:]
        server = self.emptiest(now_s, other_than=place.server)
        at = bisect.bisect_left(self._bounds, place.first)
        if place.grown is not None and place.grown < upper[0]:
            place.keys = lower
            self._insert(at + 1, self._halved(place, upper[0], server, upper, now_s))
            return
        quiet = self._halved(place, place.first, server, lower, now_s)
        place.first, place.keys = upper[0], upper
        self._bounds[at] = place.first
        self._insert(at, quiet)

    def _halved(
        self, place: Range, first: Bound, server: int, keys: list[Bound], now_s: float
    ) -> Range:
        """Return a new range that takes half of the recent load of another."""
        half = Range(first=first, server=server, keys=keys)
        load, recent = place.load.at(now_s) / 2, place.recent.at(now_s) / 2
        place.load.add(-load, now_s)
        place.recent.add(-recent, now_s)
        half.load.add(load, now_s)
        half.recent.add(recent, now_s)
        self._homes[place.server].load.add(-load, now_s)
        self._homes[server].load.add(load, now_s)
        return half

    def served(self, place: Range, entities: int, now_s: float) -> None:
        place.load.add(entities, now_s)
        self._homes[place.server].load.add(entities, now_s)

    def served_together(self, loads: Iterable[tuple[Range, int]], now_s: float) -> dict[int, int]:
        """Note the entities that several ranges served; returns those of each server."""
        by_server: dict[int, int] = {}
        for place, entities in loads:
            place.load.add(entities, now_s)
            server = place.server
            by_server[server] = by_server.get(server, 0) + entities
        for server, entities in by_server.items():
            self._homes[server].load.add(entities, now_s)
        return by_server

    def move(self, place: Range, server: int, now_s: float) -> None:
        load = place.load.at(now_s)
        for home, one in ((self._homes[place.server], -1), (self._homes[server], 1)):
            home.ranges += one
            home.load.add(one * load, now_s)
        place.server = server

    def borders(self, table: str, key: str) -> Sequence[str]:
        """Return the keys above ``key`` at which the table continues on another server.

        They are as `harness.model.entity.sort_key` has them.
        """
        at = bisect.bisect_right(self._bounds, (table, sort_key(key)))
        server = self.find(table, key).server
        borders = []
        while at < len(self._bounds) and self._bounds[at][0] == table:
            if self._ranges[at].server != server:
                server = self._ranges[at].server
                borders.append(self._bounds[at][1])
            at += 1
        return borders

    def emptiest(self, now_s: float, *, other_than: int | None = None) -> int:
        """Return the server with the least recent load, and among equals with the fewest ranges.

        It is not ``other_than``, unless that is the only one.
        """
        return min(
            (
                (round(home.load.at(now_s)), home.ranges, server)
                for server, home in enumerate(self._homes)
                if server != other_than
            ),
            default=(0, 0, 0),
        )[2]

    def _insert(self, at: int, place: Range) -> None:
        self._bounds.insert(at, place.first)
        self._ranges.insert(at, place)
        self._homes[place.server].ranges += 1
