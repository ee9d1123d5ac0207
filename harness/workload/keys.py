"""Which keys there are, and which is touched next.

A scheme numbers the partitions 0 to count-1 in key order and names their keys and rows. A picker
draws such a number. RowKeys differ between partitions too, so that one row is found by its
RowKey alone.
"""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import random
from array import array
from typing import Protocol


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NumberedKeys:
    """``count`` partitions named prefix + number, zero-padded so that key order is number order.

    Attributes:
        count: How many partitions; 1 is the single value of the stress-test procedure.
        prefix: What every PartitionKey starts with.
    """

    count: int
    prefix: str = "p"

    @property
    def width(self) -> int:
        """Digits of a number."""
        return len(str(self.count - 1))

    def partition_key(self, partition: int) -> str:
        """PartitionKey number ``partition`` in key order."""
        return f"{self.prefix}{partition:0{self.width}d}"

    def loaded_row_key(self, partition: int, row: int) -> str:
        """RowKey of the loaded row number ``row`` of a partition."""
        return f"{partition:0{self.width}d}-{row:08d}"

    def inserted_row_key(self, worker: int, number: int) -> str:
        """RowKey of the row number ``number`` that a worker inserts; no two workers share one."""
        return f"w{worker:04d}-{number:010d}"


class Picker(Protocol):
    """Draws which of the numbered things is touched next."""

    def draw(self, rng: random.Random) -> int:
        """A number from 0 to count-1."""


@dataclasses.dataclass(frozen=True, slots=True)
class Uniform:
    """Every number equally often."""

    count: int

    def draw(self, rng: random.Random) -> int:
        """A number from 0 to count-1."""
        return int(rng.random() * self.count)


class Zipfian:
    """Number k (from 0) with probability proportional to 1 / (k+1)^theta: 0 is the hottest.

    Args:
        count: How many numbers.
        theta: Skew; 0 is uniform, 0.99 the usual model of popularity.
    """

    __slots__ = ("_cumulated", "_total", "count", "theta")

    def __init__(self, count: int, theta: float) -> None:
        self.count = count
        self.theta = theta
        weights = (1.0 / (number**theta) for number in range(1, count + 1))
        self._cumulated = array("d", itertools.accumulate(weights))
        self._total = self._cumulated[-1]

    def draw(self, rng: random.Random) -> int:
        """A number from 0 to count-1."""
        place = bisect.bisect_right(self._cumulated, rng.random() * self._total)
        return min(place, self.count - 1)
