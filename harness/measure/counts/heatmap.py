"""The heat map: key range x time, for entities and for throttled attempts.

A line is a hot key, a diagonal a load that only appends, an even field a good spread. Memory is
bounded however many keys there are and however long the run is: partitions are gathered to bands
of key order, and time to columns whose width doubles. Sums stay exact. What was counted together
is never told apart again: a worker's band that lies across an edge of the master's counts where
its first key is, and a band that grows from within is parted for what is still to come.

Shown are ranges, each some bands that are neighbours, of about the same weight where no single key
is heavier. They keep their edges as long as that holds, for those who follow them.
"""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

from harness.measure.counts.time_columns import MOST_COLUMNS, Columns
from harness.model.operation import over_partitions

MOST_RANGES = 64
_MOST_BANDS = 256
"""Kept finer than shown, so that what is shown can be cut into equal parts, and edges of several
workers' bands hardly matter."""
_LEFT_FREE = 4
"""When bands are gathered, one place in so many is left free for keys to come."""
_HEAVY = 4.0
"""A band of several keys that weighs so many times the average is parted where it grows."""
_MOST_PENDING = 20_000


Cells = dict[int, int]
"""Counts by second, or by column of time."""

_LIGHTEST, _HEAVIEST = 0.5, 1.75
"""A group between these times its part is left as it is."""


class Band:
    """The counts of the partitions from ``first`` to ``last``.

    Attributes:
        latest: The key that was counted last, or the last one of several.
    """

    __slots__ = ("entities", "first", "last", "latest", "throttled", "weight")

    def __init__(self, first: str, last: str) -> None:
        self.first = first
        self.last = last
        self.latest = last
        self.weight = 0
        self.entities: Cells = {}
        self.throttled: Cells = {}

    def take(self, other: Band) -> None:
        """Add every count of ``other``, whose cells are like these."""
        self.latest = other.latest
        self.weight += other.weight
        for into, more in ((self.entities, other.entities), (self.throttled, other.throttled)):
            for place, count in more.items():
                into[place] = into.get(place, 0) + count

    def moved(self, place_of: Callable[[int], int]) -> Band:
        """A copy with every count where ``place_of`` says."""
        copy = Band(self.first, self.last)
        copy.latest = self.latest
        copy.weight = self.weight
        for into, cells in ((copy.entities, self.entities), (copy.throttled, self.throttled)):
            for place, count in cells.items():
                there = place_of(place)
                into[there] = into.get(there, 0) + count
        return copy

    def encode(self) -> list[Any]:
        """Its content for the wire."""
        return [self.first, self.last, _flat(self.entities), _flat(self.throttled)]

    @classmethod
    def decode(cls, content: list[Any]) -> Self:
        """What `encode` gave."""
        first, last, entities, throttled = content
        made = cls(first, last)
        made.entities = dict(zip(entities[::2], entities[1::2], strict=True))
        made.throttled = dict(zip(throttled[::2], throttled[1::2], strict=True))
        made.weight = sum(made.entities.values()) + sum(made.throttled.values())
        return made


def joined(bands: Sequence[Band]) -> Band:
    """One band with every count of ``bands``, which are neighbours."""
    together = Band(bands[0].first, bands[-1].last)
    for band in bands:
        together.take(band)
    return together


def gathered(bands: Iterable[Band], limit: float) -> list[Band]:
    """Neighbours joined as long as they weigh at most ``limit`` together."""
    return [joined(group) for group in groups(bands, limit)]


def lightest_limit(bands: Iterable[Band], most: int, least: int) -> int:
    """The lowest limit, ``least`` or more, by which at most ``most`` bands are left."""
    known = list(bands)
    low, high = least, sum(band.weight for band in known)
    while low < high:
        middle = (low + high) // 2
        if sum(1 for _ in groups(known, middle)) > most:
            low = middle + 1
        else:
            high = middle
    return low


def balanced(groups: Iterable[list[Band]], part: float) -> Iterator[list[Band]]:
    """Groups of neighbours, changed only where one weighs far more or less than ``part``.

    Like the pages of a B-tree: one that is too light goes to its neighbour, one that is too heavy
    is parted in the middle. A single band that is heavy stays alone.
    """
    whole: list[list[Band]] = []
    for group in groups:
        if whole and _belong_together(whole[-1], group, part):
            whole[-1] = [*whole[-1], *group]
        else:
            whole.append(group)
    for group in whole:
        yield from _halves(group, _HEAVIEST * part)


def _belong_together(left: list[Band], right: list[Band], part: float) -> bool:
    weights = [sum(band.weight for band in group) for group in (left, right)]
    alone = any(
        len(group) == 1 and weight > part
        for group, weight in zip((left, right), weights, strict=True)
    )
    return min(weights) < _LIGHTEST * part and not alone


def _halves(bands: list[Band], limit: float) -> Iterator[list[Band]]:
    """Neighbours parted in the middle of their weight until none weighs more than ``limit``."""
    whole = sum(band.weight for band in bands)
    if whole <= limit or len(bands) == 1:
        yield bands
        return
    before = 0
    place = 0
    while place < len(bands) - 1 and (not place or before + bands[place].weight <= whole / 2):
        before += bands[place].weight
        place += 1
    yield from _halves(bands[:place], limit)
    yield from _halves(bands[place:], limit)


def groups(bands: Iterable[Band], limit: float) -> Iterator[list[Band]]:
    """Neighbours that together weigh at most ``limit``; a heavier one stands alone."""
    group: list[Band] = []
    weight = 0
    for band in bands:
        if group and weight + band.weight > limit:
            yield group
            group, weight = [], 0
        group.append(band)
        weight += band.weight
    if group:
        yield group


def _flat(cells: Cells) -> list[int]:
    return [number for cell in sorted(cells.items()) for number in cell]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HeatRow:
    """The partitions from ``first`` to ``last``; counts by column, the earliest first."""

    first: str
    last: str
    entities: tuple[int, ...]
    throttled: tuple[int, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HeatView:
    """A heat map at one moment.

    Attributes:
        start: UTC second at which the first column begins.
        width_s: Seconds that a column is wide.
        columns: How many there are.
        ranges: In key order; queries over several partitions come first, a row a table.
    """

    start: int
    width_s: int
    columns: int
    ranges: tuple[HeatRow, ...]


class HeatMap:
    """Counts entities and throttled attempts by partition and UTC second.

    Args:
        columns: So many columns of time are kept.
    """

    def __init__(self, columns: int = MOST_COLUMNS) -> None:
        self._columns = Columns(columns)
        self._pending: dict[int, dict[str, int]] = {}
        self._refused: dict[int, dict[str, int]] = {}
        self._room = _MOST_PENDING
        # Queries over several partitions are in no place of key order: a row for each table.
        self._tables: dict[str, Band] = {}
        self._bands: list[Band] = []
        self._limit = 0
        self._edges: list[str] = []

    def add(self, key: str, second: int, entities: int) -> None:
        """Count ``entities`` of partition ``key`` in UTC second ``second``."""
        of_second = self._pending.get(second)
        if of_second is not None and key in of_second:
            of_second[key] += entities
        else:
            self._count(self._pending, key, second, entities)

    def add_throttled(self, key: str, second: int) -> None:
        """Count one throttled attempt."""
        self._count(self._refused, key, second, 1)

    def _count(self, pending: dict[int, dict[str, int]], key: str, second: int, count: int) -> None:
        of_second = pending.get(second)
        if of_second is None:
            of_second = pending[second] = {}
        known = of_second.get(key)
        if known is not None:
            of_second[key] = known + count
            return
        of_second[key] = count
        self._room -= 1
        if not self._room:
            self._settle()

    def merge(self, other: HeatMap) -> None:
        """Add every count of ``other``."""
        other._settle()
        self._settle()
        width_s = other._columns.width_s
        while self._columns.width_s < width_s:
            self._columns.double()
            self._widen()
        self._take([band.moved(lambda column: column * width_s) for band in other._all()])

    def view(self) -> HeatView | None:
        """What was counted; None where nothing was."""
        self._settle()
        columns = self._columns
        if not len(columns):
            return None
        places = range(columns.first, columns.last + 1)
        return HeatView(
            start=columns.first * columns.width_s,
            width_s=columns.width_s,
            columns=len(columns),
            ranges=tuple(
                HeatRow(
                    first=band.first,
                    last=band.last,
                    entities=tuple(band.entities.get(place, 0) for place in places),
                    throttled=tuple(band.throttled.get(place, 0) for place in places),
                )
                for band in (*self._by_table(), *self._ranges())
            ),
        )

    def encode(self) -> list[Any]:
        """Its content for the wire."""
        self._settle()
        return [self._columns.encode(), [band.encode() for band in self._all()]]

    @classmethod
    def decode(cls, content: list[Any]) -> Self:
        """What `encode` gave."""
        columns, rows = content
        made = cls()
        made._columns = Columns.decode(columns)
        for band in map(Band.decode, rows):
            if over_partitions(band.first):
                made._tables[band.first] = band
            else:
                made._bands.append(band)
        return made

    def _all(self) -> Iterator[Band]:
        yield from self._by_table()
        yield from self._bands

    def _by_table(self) -> Iterator[Band]:
        return (self._tables[key] for key in sorted(self._tables))

    def _ranges(self) -> list[Band]:
        """What is shown: each band where there are few, else those between two edges together."""
        bands = self._bands
        if len(bands) <= MOST_RANGES:
            self._edges = [band.first for band in bands]
            return bands
        by_edge: dict[int, list[Band]] = {}
        for band in bands:
            by_edge.setdefault(bisect.bisect_right(self._edges, band.first), []).append(band)
        few = MOST_RANGES - MOST_RANGES // _LEFT_FREE
        part = sum(band.weight for band in bands) / few
        shown = list(balanced(by_edge.values(), part))
        if len(shown) > MOST_RANGES:
            shown = list(groups(bands, lightest_limit(bands, few, 0)))
        self._edges = [group[0].first for group in shown]
        return [joined(group) for group in shown]

    def _settle(self) -> None:
        """Bring what was added since into ranges and columns."""
        if not self._pending and not self._refused:
            return
        weights: dict[str, int] = {}
        for pending in (self._pending, self._refused):
            for of_second in pending.values():
                for key, count in of_second.items():
                    weights[key] = weights.get(key, 0) + count
        placed, bands = _banded(weights)
        for second, of_second in self._pending.items():
            for key, count in of_second.items():
                cells = placed[key].entities
                cells[second] = cells.get(second, 0) + count
        for second, of_second in self._refused.items():
            for key, count in of_second.items():
                cells = placed[key].throttled
                cells[second] = cells.get(second, 0) + count
        self._pending, self._refused, self._room = {}, {}, _MOST_PENDING
        self._take(bands)

    def _take(self, news: list[Band]) -> None:
        """Add bands whose cells are seconds; they come in key order."""
        for band in news:
            for second in (*band.entities, *band.throttled):
                for _ in range(self._columns.cover(second)):
                    self._widen()
        ordered = []
        for band in (band.moved(self._columns.at) for band in news):
            if not over_partitions(band.first):
                ordered.append(band)
            elif (known := self._tables.get(band.first)) is None:
                self._tables[band.first] = band
            else:
                known.take(band)
        self._place(ordered)
        if len(self._bands) > _MOST_BANDS:
            most = _MOST_BANDS - _MOST_BANDS // _LEFT_FREE
            self._limit = lightest_limit(self._bands, most, self._limit)
            self._bands = gathered(self._bands, self._limit)

    def _place(self, news: list[Band]) -> None:
        """Add each band to the range that its first key is in, or make it one of its own."""
        firsts = [band.first for band in self._bands]
        most = _HEAVY * sum(band.weight for band in self._bands) / max(1, len(firsts))
        made: list[Band] = []
        for band in news:
            place = bisect.bisect_right(firsts, band.first) - 1
            left = self._bands[place] if place >= 0 else None
            following = firsts[place + 1] if place + 1 < len(firsts) else None
            last = band.last if following is None or band.last < following else band.first
            if made and (left is None or made[-1].first > left.last):
                left = made[-1]
            if left is not None and left.weight > most and left.first < band.first < left.last:
                # It grows from within: from now on in two.
                band.last = max(last, left.last)
                left.last = left.latest if left.latest < band.first else left.first
                made.append(band)
            elif left is not None and (
                band.first <= left.last or left.weight + band.weight <= self._limit
            ):
                left.take(band)
                left.last = max(left.last, last)
            else:
                band.last = last
                made.append(band)
        self._bands = sorted([*self._bands, *made], key=lambda band: band.first)

    def _widen(self) -> None:
        self._bands = [band.moved(_half) for band in self._bands]
        self._tables = {key: band.moved(_half) for key, band in self._tables.items()}


def _banded(weights: Mapping[str, int]) -> tuple[dict[str, Band], list[Band]]:
    """The band of each key, and all bands in key order: one a key, or fewer of like weight.

    A busy worker sees many thousands of keys a second, so that no band is made that has no place.
    """
    limit = 0
    if len(weights) > _MOST_BANDS:
        limit = 2 * sum(weights.values()) // _MOST_BANDS
    placed: dict[str, Band] = {}
    bands: list[Band] = []
    alone = False
    for key in sorted(weights):
        weight = weights[key]
        band = bands[-1] if bands else None
        apart = over_partitions(key)
        if band is None or apart or alone or band.weight + weight > limit:
            band = Band(key, key)
            bands.append(band)
        alone = apart
        band.last = band.latest = key
        band.weight += weight
        placed[key] = band
    return placed, bands


def _half(column: int) -> int:
    return column // 2
