"""The heat map: key range x time, for entities, throttled attempts, bytes and latencies.

A hot key shows as a line, an append-only load as a diagonal, a good spread as an even field. Memory
is bounded for any number of keys and any length of the run: partitions are gathered into bands of
key order, and time into columns whose width doubles. Sums stay exact. Counts that were gathered are
never separated again: a worker's band that crosses an edge of the master's bands counts where its
first key is, and a band that grows from within is split for later counts only.

Outputs show ranges of neighbouring bands. Ranges have about the same weight, unless a single key is
heavier, and keep their edges as long as that holds, so that a reader can follow them.
"""

from __future__ import annotations

import bisect
import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from harness.measure.counts.time_course import Columns
from harness.measure.record.over_time import HeatPart, KeyRangePart
from harness.model.operation import WHOLE_TABLE
from harness.model.partition import Partition

MOST_RANGES = 64
_MOST_BANDS = 256
"""More than are shown, so that ranges of equal weight can be made of them and the edges of several
workers' bands hardly matter."""
_LEFT_FREE = 4
"""When bands are gathered, one place in this many is left free for new keys."""
_HEAVY = 4.0
"""A band of several keys with this many times the average weight is split where it grows."""
_MOST_PENDING = 20_000
_LIGHTEST, _HEAVIEST = 0.5, 1.75
"""A range is left unchanged if its weight is between these multiples of an equal part."""

_ENTITIES, _THROTTLED, _WRITTEN, _OPERATIONS, _BYTES, _TOOK_US = range(6)
"""Places of a cell. The last four are those of operations with entities."""
_Cells = dict[int, list[int]]
"""Cells by second, or by column of time."""
PartitionCells = dict[str, list[int]]
"""Cells of one second by partition."""


def count_operation(
    cells: PartitionCells, key: str, entities: int, written: int, transferred: int, took_us: int
) -> None:
    """Count an operation, its bytes in both directions and its service latency."""
    cell = cells.get(key)
    if cell is None:
        cells[key] = [entities, 0, written, 1, transferred, took_us]
        return
    # Numbers in place of names: this is called for every operation.
    cell[0] += entities
    cell[2] += written
    cell[3] += 1
    cell[4] += transferred
    cell[5] += took_us


def _add(cell: list[int], counts: Sequence[int]) -> None:
    # A loop takes twice as long.
    cell[0] += counts[0]
    cell[1] += counts[1]
    cell[2] += counts[2]
    cell[3] += counts[3]
    cell[4] += counts[4]
    cell[5] += counts[5]


@dataclasses.dataclass(slots=True)
class Band:
    """The counts of the partitions from ``first`` to ``last``; ``latest`` was counted last."""

    first: str
    last: str
    latest: str
    weight: int = 0
    cells: _Cells = dataclasses.field(default_factory=dict)

    def add(self, place: int, counts: Sequence[int]) -> None:
        """Add entities, throttled attempts and so on to the cell of a time."""
        known = self.cells.get(place)
        if known is None:
            self.cells[place] = [*counts]
        else:
            _add(known, counts)

    def take(self, other: Band) -> None:
        """Add all counts of ``other``, whose cells are of the same kind."""
        self.latest = other.latest
        self.weight += other.weight
        for place, counts in other.cells.items():
            self.add(place, counts)

    def moved(self, place_of: Callable[[int], int]) -> Band:
        """A copy with each count in the cell that ``place_of`` gives."""
        copy = Band(self.first, self.last, self.latest, self.weight)
        for place, counts in self.cells.items():
            copy.add(place_of(place), counts)
        return copy

    def shown(self, places: Iterable[int], *, operations: bool) -> KeyRangePart:
        """The counts at these places, those of operations only if they were counted."""
        nothing = [0] * (_TOOK_US + 1)
        cells = [self.cells.get(place, nothing) for place in places]
        rows = [*zip(*cells, strict=True)]
        more: dict[str, tuple[int, ...]] = {}
        if operations:
            means = (cell[_TOOK_US] // max(1, cell[_OPERATIONS]) for cell in cells)
            more = {"written": rows[_WRITTEN], "bytes": rows[_BYTES], "latency_us": tuple(means)}
        return KeyRangePart(
            first=self.first,
            last=self.last,
            entities=rows[_ENTITIES],
            throttled=rows[_THROTTLED],
            **more,
        )


def _weight(bands: Iterable[Band]) -> int:
    return sum(band.weight for band in bands)


def _joined(bands: Sequence[Band]) -> Band:
    """One band with all counts of ``bands``, which are neighbours."""
    together = Band(bands[0].first, bands[-1].last, bands[-1].last)
    for band in bands:
        together.take(band)
    return together


def _groups(bands: Iterable[Band], limit: float) -> Iterator[list[Band]]:
    """Neighbours that together weigh at most ``limit``; a heavier band is a group of its own."""
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


def _lightest_limit(bands: Sequence[Band], most: int, least: int) -> int:
    """The lowest limit from ``least`` on with which there are at most ``most`` groups."""
    limits = range(least, _weight(bands) + 1)
    if not limits:
        return least
    enough = bisect.bisect_left(
        limits,
        True,
        hi=len(limits) - 1,
        key=lambda limit: sum(1 for _ in _groups(bands, limit)) <= most,
    )
    return limits[enough]


def _balanced(groups: Iterable[list[Band]], part: float) -> Iterator[list[Band]]:
    """Groups of neighbours, changed only if one weighs far more or far less than ``part``.

    As in a B-tree, a group that is too light joins its neighbour, and one that is too heavy is
    split in the middle. A single heavy band stays alone.
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
    alone = any(len(group) == 1 and group[0].weight > part for group in (left, right))
    return not alone and min(_weight(left), _weight(right)) < _LIGHTEST * part


def _halves(bands: list[Band], limit: float) -> Iterator[list[Band]]:
    """Neighbours, split in the middle of their weight until none weighs more than ``limit``."""
    whole = _weight(bands)
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


@dataclasses.dataclass(slots=True)
class HeatMap:
    """Counts entities and throttled attempts by partition and UTC second."""

    _columns: Columns = dataclasses.field(default_factory=Columns)
    # Queries over several partitions have no place in the key order: a row for each table.
    _tables: dict[str, Band] = dataclasses.field(default_factory=dict)
    _bands: list[Band] = dataclasses.field(default_factory=list)
    _limit: int = 0
    _edges: list[str] = dataclasses.field(default_factory=list)
    _pending: dict[int, PartitionCells] = dataclasses.field(default_factory=dict)
    _room: int = _MOST_PENDING

    def add(self, second: int, cells: PartitionCells) -> None:
        """Add the cells of a second, which belong to the map from now on."""
        pending = self._pending.setdefault(second, {})
        self._room += len(pending)
        for key, cell in cells.items():
            known = pending.setdefault(key, cell)
            if known is not cell:
                _add(known, cell)
        self._room -= len(pending)
        if self._room <= 0:
            self.settle()

    def add_second(self, second: int, entities: Mapping[str, int]) -> None:
        """Add all entities of a second by partition."""
        self.add(second, {key: [number, 0, 0, 0, 0, 0] for key, number in entities.items()})

    def add_throttled(self, key: str, second: int, attempts: int = 1) -> None:
        self.add(second, {key: [0, attempts, 0, 0, 0, 0]})

    def merge(self, other: HeatMap) -> None:
        other.settle()
        self.add_bands([*other._all()], other._columns.width_s)

    def add_bands(self, bands: Sequence[Band], width_s: int) -> None:
        """Add bands in key order, whose cells are columns of a width."""
        self.settle()
        while self._columns.width_s < width_s:
            self._columns.double()
            self._widen()
        self._take([band.moved(lambda column: column * width_s) for band in bands])

    def view(self) -> HeatPart | None:
        """The counts so far; None if there are none."""
        self.settle()
        columns = self._columns
        if not len(columns):
            return None
        places = range(columns.first, columns.last + 1)
        cells = (cell for band in self._all() for cell in band.cells.values())
        operations = any(cell[_OPERATIONS] for cell in cells)
        bands = (*self._by_table(), *self._ranges())
        return HeatPart(
            start=columns.start,
            width_s=columns.width_s,
            columns=len(columns),
            ranges=tuple(band.shown(places, operations=operations) for band in bands),
        )

    def _all(self) -> Iterator[Band]:
        yield from self._by_table()
        yield from self._bands

    def _by_table(self) -> Iterator[Band]:
        return (self._tables[key] for key in sorted(self._tables))

    def _ranges(self) -> list[Band]:
        """The shown ranges: each band if there are few, else the bands between two edges joined."""
        bands = self._bands
        if len(bands) <= MOST_RANGES:
            self._edges = [band.first for band in bands]
            return bands
        by_edge: dict[int, list[Band]] = {}
        for band in bands:
            by_edge.setdefault(bisect.bisect_right(self._edges, band.first), []).append(band)
        few = MOST_RANGES - MOST_RANGES // _LEFT_FREE
        shown = list(_balanced(by_edge.values(), _weight(bands) / few))
        if len(shown) > MOST_RANGES:
            shown = list(_groups(bands, _lightest_limit(bands, few, 0)))
        self._edges = [group[0].first for group in shown]
        return [_joined(group) for group in shown]

    def settle(self) -> None:
        """Bring the pending counts into bands and columns, which are fewer."""
        if not self._pending:
            return
        weights: dict[str, int] = {}
        for of_second in self._pending.values():
            for key, cell in of_second.items():
                weights[key] = weights.get(key, 0) + cell[_ENTITIES] + cell[_THROTTLED]
        placed, bands = banded(weights)
        for second, of_second in self._pending.items():
            for band, keys in itertools.groupby(sorted(of_second), placed.__getitem__):
                # Without a loop over the keys in Python this takes a fraction of the time.
                cells = map(of_second.__getitem__, keys)
                band.add(second, [*map(sum, zip(*cells, strict=True))])
        self._pending, self._room = {}, _MOST_PENDING
        self._take(bands)

    def _take(self, news: list[Band]) -> None:
        """Add bands in key order, whose cells are seconds."""
        for band in news:
            for second in band.cells:
                for _ in range(self._columns.cover(second)):
                    self._widen()
        ordered = []
        for band in (band.moved(self._columns.at) for band in news):
            if not Partition.named(band.first).whole_table:
                ordered.append(band)
            elif (known := self._tables.get(band.first)) is None:
                self._tables[band.first] = band
            else:
                known.take(band)
        self._place(ordered)
        if len(self._bands) > _MOST_BANDS:
            most = _MOST_BANDS - _MOST_BANDS // _LEFT_FREE
            self._limit = _lightest_limit(self._bands, most, self._limit)
            self._bands = [_joined(group) for group in _groups(self._bands, self._limit)]

    def _place(self, news: list[Band]) -> None:
        """Add each band to the one that holds its first key, or keep it as a band of its own."""
        firsts = [band.first for band in self._bands]
        most = _HEAVY * _weight(self._bands) / max(1, len(firsts))
        made: list[Band] = []
        for band in news:
            place = bisect.bisect_right(firsts, band.first) - 1
            left = self._bands[place] if place >= 0 else None
            following = firsts[place + 1] if place + 1 < len(firsts) else None
            last = band.last if following is None or band.last < following else band.first
            if made and (left is None or made[-1].first > left.last):
                left = made[-1]
            if left is not None and left.weight > most and left.first < band.first < left.last:
                # The band grows from within: it is split for later counts.
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


def banded(weights: Mapping[str, int]) -> tuple[dict[str, Band], list[Band]]:
    """The band of each key, and all bands in key order: one per key, or fewer of similar weight.

    A busy worker counts many thousands of keys per second, so that a band per key would take too
    much time.
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
        apart = key.endswith(WHOLE_TABLE) and Partition.named(key).whole_table
        if band is None or apart or alone or band.weight + weight > limit:
            band = Band(key, key, key)
            bands.append(band)
        alone = apart
        band.last = band.latest = key
        band.weight += weight
        placed[key] = band
    return placed, bands


def _half(column: int) -> int:
    return column // 2
