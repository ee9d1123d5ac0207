"""Queries over more than one entity, of every documented type, and what is known of their range.

A range of entities that were created one after the other is a range of keys only where the scheme
keeps that order. Where it does not, the same question walks a whole partition or a whole table:
that is the price of scattered keys, and it is counted.
"""

from __future__ import annotations

import dataclasses
import random

from harness.model.operation import WHOLE_TABLE, Kind, Operation, Range, new_operation
from harness.workload.entities import GROUP_PROPERTY, GROUPS, NUMBER_PROPERTY
from harness.workload.keys import KeyScheme


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class QueryShape:
    """What the queries of a mix ask for.

    Attributes:
        rows: Rows of a row range scan.
        partitions: Partitions of a partition range scan.
        returned_share: Query density: the share of what is walked that a filter on a property
            lets through, in thousandths; 1 is no filter.
        select: Properties to return (projection); empty is all.
        top: At most so many entities a query; None is all.
    """

    rows: int = 100
    partitions: int = 10
    returned_share: float = 1.0
    select: tuple[str, ...] = ()
    top: int | None = None


class Queries:
    """Makes queries over the loaded entities of a scheme.

    Args:
        scheme: Names the keys.
        shape: What is asked for.
        moving: Whether rows come and go meanwhile.
    """

    def __init__(self, scheme: KeyScheme, shape: QueryShape, *, moving: bool) -> None:
        self._scheme = scheme
        self._shape = shape
        self._still = not moving
        share = round(shape.returned_share * GROUPS)
        self._density = f"{GROUP_PROPERTY} lt {share}" if share < GROUPS else None

    def row_range(self, partition: int, rng: random.Random) -> Operation:
        """Consecutive rows of one partition: by their RowKeys, if these keep the order."""
        scheme = self._scheme
        rows = scheme.rows.of(partition)
        count = min(self._shape.rows, rows)
        first = int(rng.random() * (rows - count + 1))
        order = scheme.row_keys.order
        if order == 0:
            number = scheme.rows.before(partition) + first
            return self._query(
                scheme.partition_key(partition),
                walks=Range(rows, self._still),
                numbers=(number, number + count),
            )
        # New rows sort before or behind all that were loaded: such a range stays as it is.
        start, end = (first, first + count) if order > 0 else (first + count - 1, first - 1)
        return self._query(
            scheme.partition_key(partition),
            walks=Range(count, True),
            row_from=scheme.row_key(partition, start),
            row_before=scheme.row_key(partition, end),
        )

    def partition(self, partition: int) -> Operation:
        """Everything of one partition."""
        walks = Range(self._scheme.rows.of(partition), self._still)
        return self._query(self._scheme.partition_key(partition), walks=walks)

    def partition_range(self, rng: random.Random) -> Operation:
        """Partitions that were created one after the other: by key, if these keep the order."""
        scheme, rows = self._scheme, self._scheme.rows
        count = min(self._shape.partitions, scheme.count)
        first = int(rng.random() * (scheme.count - count + 1))
        end = first + count
        start_number, end_number = rows.before(first), rows.before(end)
        if not scheme.in_order:
            return self._query(
                WHOLE_TABLE,
                walks=Range(rows.total, self._still),
                numbers=(start_number, end_number),
            )
        return self._query(
            WHOLE_TABLE,
            walks=Range(end_number - start_number, self._still),
            partition_from=scheme.partition_key(first),
            partition_before=scheme.partition_key(end) if end < scheme.count else None,
        )

    def table(self) -> Operation:
        """Everything."""
        return self._query(WHOLE_TABLE, walks=Range(self._scheme.rows.total, self._still))

    def _query(
        self,
        partition_key: str,
        *,
        walks: Range,
        row_from: str | None = None,
        row_before: str | None = None,
        partition_from: str | None = None,
        partition_before: str | None = None,
        numbers: tuple[int, int] | None = None,
    ) -> Operation:
        terms = [] if self._density is None else [self._density]
        if numbers is not None:
            terms.append(f"{NUMBER_PROPERTY} ge {numbers[0]} and {NUMBER_PROPERTY} lt {numbers[1]}")
        return new_operation(
            kind=Kind.QUERY,
            partition_key=partition_key,
            row_from=row_from,
            row_before=row_before,
            partition_from=partition_from,
            partition_before=partition_before,
            filter=" and ".join(terms) or None,
            select=self._shape.select,
            top=self._shape.top,
            walks=walks,
        )
