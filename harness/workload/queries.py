"""Queries over more than one entity, of every documented type, with the size of their key range.

Consecutive entities are a range of keys only if the keys keep their order. If they do not, the
same question scans a whole partition or table, and the harness counts the cost.
"""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import random
from collections.abc import Callable, Mapping

from harness.model.operation import (
    WHOLE_TABLE,
    KeyRange,
    Kind,
    Operation,
    new_key_range,
    new_operation,
)
from harness.workload.entity_factory import GROUP_PROPERTY, GROUPS, NUMBER_PROPERTY
from harness.workload.keys.design import KeyDesign
from harness.workload.mix import Action

_AFTER = "!"
"""Behind a key, it makes a bound that this key alone comes before; no key continues so."""
_REMEMBERED = 200


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class QueryShape:
    """Shape of the queries of a mix.

    Attributes:
        returned_share: Query density: the share of the scanned entities that a filter returns,
            rounded to thousandths; 1 is no filter.
        by_key_bounds: Range scans rely on the order of the keys, whether they have it or not. Such
            a query has no ``returned_share`` and no ``top``.
    """

    rows: int = 100
    partitions: int = 10
    by_key_bounds: bool = False
    returned_share: float = 1.0
    select: tuple[str, ...] = ()
    top: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class QueryType:
    """A type of query: what makes the next one, and what it scans.

    Attributes:
        make: Makes a query of a loaded partition, by its number; ignores it if the query goes
            ``cross_partition``.
        entities: Entities that a query of a partition with so many rows scans.
    """

    make: Callable[[int, random.Random], Operation]
    entities: Callable[[int], float]
    cross_partition: bool = False


class KeyOrder:
    """The loaded partitions of a design in the order of their keys."""

    def __init__(self, design: KeyDesign) -> None:
        rows = {design.partition_key(n): design.rows.of(n) for n in range(design.count)}
        self._keys = sorted(rows)
        self._before = [0, *itertools.accumulate(rows[key] for key in self._keys)]

    def between(self, first: str, end: str | None) -> int:
        """Number of loaded entities from key ``first`` to before ``end``; None is the last key."""
        place = len(self._keys) if end is None else bisect.bisect_left(self._keys, end)
        return max(0, self._before[place] - self._before[bisect.bisect_left(self._keys, first)])


class Queries:
    """Makes queries over the loaded entities; ``moving`` if the run inserts or deletes rows."""

    def __init__(self, design: KeyDesign, shape: QueryShape, *, moving: bool) -> None:
        self._design = design
        self._shape = shape
        self._still = not moving
        share = round(shape.returned_share * GROUPS)
        self._order = KeyOrder(design) if shape.by_key_bounds else None
        self._sorted: dict[int, list[str]] = {}
        self._density = f"{GROUP_PROPERTY} lt {share}" if share < GROUPS else None

    def types(self) -> Mapping[Action, QueryType]:
        """The type of query of each action that is a query over more than one entity."""
        design, shape = self._design, self._shape
        everything = design.rows.total
        # A query with a filter scans on until it found enough.
        unbounded = shape.top is None or self._density is not None
        top = everything if unbounded else min(shape.top or 0, everything)
        in_partition = min(top, shape.rows) if design.row_order else everything
        share = min(shape.partitions, design.count) / design.count
        in_range = min(top, share * everything) if design.in_order else everything
        return {
            Action.ROW_RANGE_SCAN: QueryType(
                make=self.row_range, entities=lambda rows: min(in_partition, rows)
            ),
            Action.PARTITION_SCAN: QueryType(
                make=lambda partition, _: self.partition(partition),
                entities=lambda rows: min(top, rows),
            ),
            Action.PARTITION_RANGE_SCAN: QueryType(
                make=lambda _, rng: self.partition_range(rng),
                entities=lambda _: in_range,
                cross_partition=True,
            ),
            Action.FULL_TABLE_SCAN: QueryType(
                make=lambda _, __: self.table(), entities=lambda _: top, cross_partition=True
            ),
        }

    def row_range(self, partition: int, rng: random.Random) -> Operation:
        """Consecutive rows of one partition: a range of RowKeys if these keep the order."""
        design, still = self._design, self._still
        rows, partition_key = design.rows.of(partition), design.partition_key(partition)
        count = min(self._shape.rows, rows)
        first = int(rng.random() * (rows - count + 1))
        number = design.rows.before(partition) + first
        numbers = (number, number + count)
        if design.row_order == 0 and self._order is None:
            whole = new_key_range(entities=rows, exact=still)
            return self._query(partition_key, whole, numbers=numbers)
        low, high = first, first + count - 1
        if design.row_order < 0:
            low, high = high, low
        start = design.row_key(partition, low)
        end = design.row_key(partition, high) + _AFTER
        if design.row_order:
            exact = design.rows_stay or still
            bounds = new_key_range(row_from=start, row_before=end, entities=count, exact=exact)
            return self._query(partition_key, bounds)
        keys = self._row_keys(partition)
        scanned = max(0, bisect.bisect_left(keys, end) - bisect.bisect_left(keys, start))
        bounds = new_key_range(
            row_from=start, row_before=end, entities=scanned, exact=still, wanted=count
        )
        return self._query(partition_key, bounds, numbers=numbers)

    def _row_keys(self, partition: int) -> list[str]:
        """The loaded RowKeys of a partition in order; the last few partitions are remembered."""
        keys = self._sorted.get(partition)
        if keys is None:
            if len(self._sorted) >= _REMEMBERED:
                self._sorted.clear()
            rows = range(self._design.rows.of(partition))
            keys = sorted(self._design.row_key(partition, row) for row in rows)
            self._sorted[partition] = keys
        return keys

    def partition(self, partition: int) -> Operation:
        entities = self._design.rows.of(partition)
        return self._query(
            self._design.partition_key(partition),
            new_key_range(entities=entities, exact=self._still),
        )

    def partition_range(self, rng: random.Random) -> Operation:
        """Consecutive partitions: a range of PartitionKeys if these keep the order."""
        design, rows = self._design, self._design.rows
        count = min(self._shape.partitions, design.count)
        first = int(rng.random() * (design.count - count + 1))
        end = first + count
        numbers = start_number, end_number = rows.before(first), rows.before(end)
        if not design.in_order and self._order is None:
            whole = new_key_range(entities=rows.total, exact=self._still)
            return self._query(WHOLE_TABLE, whole, numbers=numbers)
        start_key = design.partition_key(first)
        end_key = design.partition_key(end) if end < design.count else None
        order, wanted = self._order, end_number - start_number
        bounds = new_key_range(
            partition_from=start_key,
            partition_before=end_key,
            entities=wanted if order is None else order.between(start_key, end_key),
            exact=self._still,
            wanted=None if order is None else wanted,
        )
        # The filter leaves only what the application asks for: what it returns was not missed.
        return self._query(WHOLE_TABLE, bounds, numbers=None if order is None else numbers)

    def table(self) -> Operation:
        entities = self._design.rows.total
        return self._query(WHOLE_TABLE, new_key_range(entities=entities, exact=self._still))

    def _query(
        self, partition_key: str, key_range: KeyRange, *, numbers: tuple[int, int] | None = None
    ) -> Operation:
        terms = [] if self._density is None else [self._density]
        if numbers is not None:
            terms.append(f"{NUMBER_PROPERTY} ge {numbers[0]} and {NUMBER_PROPERTY} lt {numbers[1]}")
        return new_operation(
            kind=Kind.QUERY,
            partition_key=partition_key,
            key_range=key_range,
            filter=" and ".join(terms) or None,
            select=self._shape.select,
            top=self._shape.top,
        )
