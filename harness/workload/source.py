"""The seam behind which operations are made: a mix over a key scheme, or a whole application."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Protocol

from harness.model.operation import Operation


class Source(Protocol):
    """What a worker sends. Pure: the same arguments and random numbers give the same operations.

    Attributes:
        tables: Endings of the names of the tables it uses; the first one is empty as a rule.
        loaded_entities: Entities that `loading` puts into all tables together.
    """

    @property
    def tables(self) -> tuple[str, ...]:
        """See above."""

    @property
    def loaded_entities(self) -> int:
        """See above."""

    def loading(self) -> Iterator[Operation]:
        """The operations that load every table, in key order where that is easy."""

    def partitions(self) -> Iterator[str]:
        """Names of the partitions that are loaded, as `Operation.partition` gives them."""

    def next(self, rng: random.Random) -> Operation:
        """The first operation of the next task; ``then`` of each leads to the next one."""
