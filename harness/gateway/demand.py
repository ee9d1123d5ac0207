"""What partitions are asked for in some time, summed up for `Model.serve`."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from harness.model.entity import sort_key

Place = tuple[str, str | None]
"""Table and PartitionKey, which is None for several partitions."""


class TableDemand(NamedTuple):
    """The demand of one table.

    Attributes:
        keys: PartitionKeys in order; several partitions count at the first key, which is empty.
        before: Entities before each of them, and at the end all entities.
    """

    table: str
    keys: Sequence[str]
    before: Sequence[int]


class Demand:
    """Entities by place.

    Args:
        largest: The most entities of one request, retries included.
        scans: Whether a request may take more entities than it asks for, as a query does.
    """

    __slots__ = ("entities", "largest", "scans", "tables", "total")

    def __init__(self, entities: Mapping[Place, int], largest: int, *, scans: bool) -> None:
        self.entities = entities
        self.largest = largest
        self.scans = scans
        by_table: dict[str, dict[str, int]] = {}
        # Many in a row have the same table.
        latest, keys = None, {}
        for (table, key), count in entities.items():
            if table is not latest:
                latest, keys = table, by_table.setdefault(table, {})
            if key:
                keys[key] = count
            else:
                keys[""] = keys.get("", 0) + count
        self.tables = []
        for table, keys in by_table.items():
            ordered = sorted(keys, key=sort_key)
            before = list(itertools.accumulate(map(keys.__getitem__, ordered), initial=0))
            self.tables.append(TableDemand(table, ordered, before))
        self.total = sum(demand.before[-1] for demand in self.tables)
