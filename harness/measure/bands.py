"""Ranges of keys with their counts over time, and how neighbours are gathered by weight."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Self

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
