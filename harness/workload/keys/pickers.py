"""Pickers: the distribution of operations over partitions.

A picker draws numbers; the key scheme turns a number into a key. The same picker therefore gives a
hot range with ordered keys, and scattered hot keys with hashed ones.
"""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import random
from array import array
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import ClassVar, Protocol


class Picker(Protocol):
    """Draws the number of the next partition; an age, 0 the newest, with ``newest_first``."""

    newest_first: ClassVar[bool]

    def draw(self, rng: random.Random) -> int:
        """A number from 0 to count-1."""


@dataclasses.dataclass(frozen=True, slots=True)
class Uniform:
    """All partitions equally often."""

    newest_first: ClassVar[bool] = False

    count: int

    def draw(self, rng: random.Random) -> int:
        return int(rng.random() * self.count)


class Zipfian:
    """Partition k (from 0) with a probability proportional to 1 / (k+1)^theta: 0 is the hottest.

    Args:
        theta: Skew; 0 is uniform, 0.99 the usual model of popularity.
    """

    __slots__ = ("_cumulated", "_last", "_total")
    newest_first: ClassVar[bool] = False

    def __init__(self, count: int, theta: float) -> None:
        weights = (1.0 / (number**theta) for number in range(1, count + 1))
        self._cumulated = array("d", itertools.accumulate(weights))
        self._total: float = self._cumulated[-1]
        self._last = count - 1

    def draw(self, rng: random.Random) -> int:
        place = bisect.bisect_right(self._cumulated, rng.random() * self._total)
        return place if place < self._last else self._last


class Latest(Zipfian):
    """Zipfian by age: the newest row or partition is the hottest."""

    __slots__ = ()
    newest_first: ClassVar[bool] = True


class Hotspot:
    """A share of the operations goes to a share of the partitions; the rest to the others.

    The hot partitions are the first ones, a contiguous range if the scheme keeps the order.

    Args:
        operations_share: This share of the draws, from 0 to 1, ...
        keys_share: ... goes to this share of the partitions, at least to one.
    """

    __slots__ = ("_cold", "_hot", "_hot_draws", "_last")
    newest_first: ClassVar[bool] = False

    def __init__(self, count: int, operations_share: float, keys_share: float) -> None:
        self._hot = min(count, max(1, round(count * keys_share)))
        self._cold = count - self._hot
        self._hot_draws = operations_share if self._cold else 1.0
        self._last = count - 1

    def draw(self, rng: random.Random) -> int:
        chance, hot_draws = rng.random(), self._hot_draws
        if chance < hot_draws:
            return int(chance / hot_draws * self._hot)
        place = self._hot + int((chance - hot_draws) / (1.0 - hot_draws) * self._cold)
        return place if place < self._last else self._last


class Sequential:
    """One partition after the other, starting again after the last.

    Args:
        start: The first one, modulo ``count``; different for each worker, so that workers do not
            use the same partition at the same time.
    """

    __slots__ = ("_count", "_next")
    newest_first: ClassVar[bool] = False

    def __init__(self, count: int, start: int = 0) -> None:
        self._count = count
        self._next = start % count

    def draw(self, rng: random.Random) -> int:
        drawn = self._next
        self._next = drawn + 1 if drawn + 1 < self._count else 0
        return drawn


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Parameters of the pickers, as ``[keys]`` has them; ``start`` is the first of `Sequential`."""

    theta: float
    hot_operations: float
    hot_keys: float
    start: int


PICKERS: Mapping[str, Callable[[int, Shape], Picker]] = MappingProxyType(
    {
        "uniform": lambda count, _: Uniform(count),
        "zipfian": lambda count, shape: Zipfian(count, shape.theta),
        "hotspot": lambda count, shape: Hotspot(count, shape.hot_operations, shape.hot_keys),
        "latest": lambda count, shape: Latest(count, shape.theta),
        "sequential": lambda count, shape: Sequential(count, shape.start),
    }
)
"""Makes the picker for a number of partitions, by its name in ``keys.distribution``."""
