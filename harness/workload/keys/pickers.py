"""Pickers: the distribution of draws over the values of a field, numbered from 0."""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import random
from array import array
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Protocol


class Picker(Protocol):
    """Draws the number of the next value."""

    def draw(self, rng: random.Random) -> int:
        """A number from 0 to count-1."""

    def shares(self) -> Iterable[float]:
        """The probability of each number, in order; exact."""


@dataclasses.dataclass(frozen=True, slots=True)
class Uniform:
    """All values equally often."""

    count: int

    def draw(self, rng: random.Random) -> int:
        return int(rng.random() * self.count)

    def shares(self) -> Iterable[float]:
        return itertools.repeat(1 / self.count, self.count)


class Weighted:
    """Each value as often as its weight says, such as a share that was measured."""

    __slots__ = ("_cumulated", "_last", "_total")

    def __init__(self, weights: Iterable[float]) -> None:
        self._cumulated = array("d", itertools.accumulate(weights))
        self._total: float = self._cumulated[-1]
        self._last = len(self._cumulated) - 1

    def draw(self, rng: random.Random) -> int:
        place = bisect.bisect_right(self._cumulated, rng.random() * self._total)
        return place if place < self._last else self._last

    def shares(self) -> Iterable[float]:
        before = 0.0
        for cumulated in self._cumulated:
            yield (cumulated - before) / self._total
            before = cumulated


class Zipfian(Weighted):
    """Value k (from 0) with a probability proportional to 1 / (k+1)^theta: the first is hottest.

    The skew theta is 0 for uniform, 0.99 is the usual model of popularity.
    """

    __slots__ = ()

    def __init__(self, count: int, theta: float) -> None:
        super().__init__(1.0 / (number**theta) for number in range(1, count + 1))


class Latest(Zipfian):
    """Zipfian by age: the last value, which is the newest, is the hottest."""

    __slots__ = ()

    def draw(self, rng: random.Random) -> int:
        return self._last - super().draw(rng)

    def shares(self) -> Iterable[float]:
        return reversed(list(super().shares()))


class Hot:
    """A share of the draws goes to so many first values; the rest evenly to the others."""

    __slots__ = ("_cold", "_hot", "_hot_draws", "_last")

    def __init__(self, count: int, share: float, values: int) -> None:
        self._hot = min(count, values)
        self._cold = count - self._hot
        self._hot_draws = share if self._cold else 1.0
        self._last = count - 1

    def draw(self, rng: random.Random) -> int:
        chance, hot_draws = rng.random(), self._hot_draws
        if chance < hot_draws:
            return int(chance / hot_draws * self._hot)
        place = self._hot + int((chance - hot_draws) / (1.0 - hot_draws) * self._cold)
        return place if place < self._last else self._last

    def shares(self) -> Iterable[float]:
        yield from itertools.repeat(self._hot_draws / self._hot, self._hot)
        yield from itertools.repeat((1 - self._hot_draws) / (self._cold or 1), self._cold)


class Sequential:
    """One value after the other, starting again after the last.

    The ``start`` differs by worker, so that workers do not use a value at the same time.
    """

    __slots__ = ("_count", "_next")

    def __init__(self, count: int, start: int = 0) -> None:
        self._count = count
        self._next = start % count

    def draw(self, rng: random.Random) -> int:
        drawn = self._next
        self._next = drawn + 1 if drawn + 1 < self._count else 0
        return drawn

    def shares(self) -> Iterable[float]:
        return Uniform(self._count).shares()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Parameters of the pickers; ``start`` is the first of `Sequential`."""

    theta: float = 0.99
    hot_share: float = 0.8
    hot_values: int = 1
    start: int = 0


PICKERS: Mapping[str, Callable[[int, Shape], Picker]] = MappingProxyType(
    {
        "uniform": lambda count, _: Uniform(count),
        "zipfian": lambda count, shape: Zipfian(count, shape.theta),
        "hot": lambda count, shape: Hot(count, shape.hot_share, shape.hot_values),
        "latest": lambda count, shape: Latest(count, shape.theta),
        "sequential": lambda count, shape: Sequential(count, shape.start),
    }
)
"""Makes the picker for a number of values, by its name in ``distribution``."""
