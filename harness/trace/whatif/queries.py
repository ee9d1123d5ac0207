"""What becomes of a query under the keys of a scheme: the ranges of new keys with its rows.

A what-if counts the rows in these ranges, and a replay sends a query for each. They hold every row
that the recorded query could find and whose keys the scheme matches. A range is a point, rows of
one partition, a partition, the partitions that begin with a text, or the table:

    {partition_key}_{row_key:day}   a range of a day      PK eq 'p_2026-11-20'
                                    the whole partition   PK ge 'p_' and PK lt 'p`'
    {partition_key}-{row_key:bucket4}                     PK eq 'p-0', 'p-1', 'p-2', 'p-3'
    {row_key}                                             the table
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator
from typing import NamedTuple

from harness.model.entity import sort_key
from harness.model.operation import WHOLE_TABLE
from harness.trace.operations import TracedQuery
from harness.trace.whatif.scheme import PARTITION_KEY, ROW_KEY, NewKey, Scheme
from harness.workload.keys.beginnings import (
    UNKNOWN,
    Beginning,
    after,
    end_behind,
    of_parts,
    of_range,
)
from harness.workload.keys.template import Reference

_MOST_RANGES = 1000
"""A query that would need more reads the partitions that they have in common with others."""
BETWEEN = "\0"
"""Between PartitionKey and RowKey in the text by which rows are ordered. No key contains it."""
_BEHIND = chr(ord(BETWEEN) + 1)


class NewRange(NamedTuple):
    """The keys that one query reads. Bounds are those of `harness.model.operation.KeyRange`.

    Attributes:
        partition_key: `harness.model.operation.WHOLE_TABLE` for a range of partitions.
    """

    partition_key: str
    partition_from: str | None = None
    partition_before: str | None = None
    row_from: str | None = None
    row_before: str | None = None

    @property
    def several(self) -> bool:
        """Whether it may have rows of several partitions."""
        return self.partition_key == WHOLE_TABLE

    @property
    def span(self) -> tuple[str, str | None]:
        """The rows that the service scans, in the order of `BETWEEN`: the first, and the end."""
        if self.several:
            first, before = self.partition_from, self.partition_before
            return (_place(first) if first else ""), None if before is None else _place(before)
        start, before = self.partition_key + BETWEEN, self.row_before
        end = self.partition_key + _BEHIND if before is None else start + before
        return start + (self.row_from or ""), end


def _place(bound: str) -> str:
    """The first row from a bound of PartitionKeys on. One that ends in `BETWEEN` is after a key."""
    return f"{bound[:-1]}{_BEHIND}" if bound.endswith(BETWEEN) else bound + BETWEEN


@dataclasses.dataclass(frozen=True, slots=True)
class TreatedQuery:
    """The ranges of a query, and which sums of a `PricePart` it adds to.

    Attributes:
        ranges: Empty if the query is a further page of one that is read as a whole.
        kept: It keeps its keys, and finds the same rows.
        exact: The ranges hold no other rows than those of the recorded query, but for partitions
            whose keys begin with its own.
        ordered: The rows are in the recorded order in each range, so that its first rows are those
            of the recorded query.
        ranged: It needs a range of partitions, and needed one partition before.
        narrowed: Keys are made of values that its filter demands, so that the ranges hold a part of
            the rows of the recorded query.
        in_keys: The properties of which each row of the ranges has the value that it demands.
        continued: It is a further page of a query with pages of so many entities: of each of the
            ranges, whose beginnings are read already.
    """

    ranges: tuple[NewRange, ...]
    kept: bool = False
    exact: bool = False
    ordered: bool = True
    unknown: bool = False
    unmatched: bool = False
    ranged: bool = False
    scan: bool = False
    unbounded: bool = False
    narrowed: bool = False
    in_keys: frozenset[str] = frozenset()
    continued: bool = False

    @property
    def spread(self) -> bool:
        return len(self.ranges) > 1

    @property
    def limited(self) -> bool:
        """Whether it ends after as many entities as the recorded one.

        Otherwise those may be others, so that all are read.
        """
        plain = not (self.spread or self.narrowed or self.continued)
        return self.kept or (self.exact and self.ordered and plain)

    @property
    def counted(self) -> bool:
        """Whether the rows have to be counted to know what it scans, and where."""
        return not self.limited or any(one.several for one in self.ranges)


def treated(
    scheme: Scheme, table: str, partition_key: str | None, query: TracedQuery
) -> TreatedQuery:
    """What becomes of a recorded query."""
    if partition_key is None:
        return TreatedQuery((), unknown=True)
    over = partition_key == WHOLE_TABLE
    values = None
    kept = scheme.identity or not scheme.applies_to(table)
    if not kept and not over:
        values = scheme.values(partition_key, None)
    if kept or (values is None and not over):
        return TreatedQuery((recorded_range(partition_key, query),), True, True, unmatched=not kept)
    equal = {name: value for name, value in query.equal if name in scheme.properties}
    if values is None:
        found = _of_partitions(scheme, equal, query)
    else:
        found = _of_rows(scheme, values | equal, values, query)
    if equal and not found.kept:
        parts = (*scheme.partition_template.by_row, *scheme.row_template.by_row)
        shown = frozenset(name for name in equal if any(part.is_plain(name) for part in parts))
        found = dataclasses.replace(found, narrowed=True, in_keys=shown)
    if query.continued_at is None or found.limited:
        return found
    found = treated(scheme, table, partition_key, query._replace(continued_at=None))
    if query.top is None or found.narrowed or not (found.exact and found.ordered):
        return dataclasses.replace(found, ranges=())
    return dataclasses.replace(found, continued=True)


def recorded_range(partition_key: str, query: TracedQuery) -> NewRange:
    """The keys that a recorded query scanned, or a page of it."""
    found = NewRange(partition_key, *query.bounds)
    if query.continued_at is None:
        return found
    if found.several:
        return found._replace(partition_from=query.continued_at[0])
    return found._replace(row_from=query.continued_at[1])


def _of_partitions(scheme: Scheme, equal: dict[str, str], query: TracedQuery) -> TreatedQuery:
    """Of a query over several partitions; ``equal`` are values of the properties."""
    first, before = query.partition_from, query.partition_before
    unbounded = first is None and before is None
    if (unbounded and not equal) or scheme.partition_template.text == f"{{{PARTITION_KEY}}}":
        return TreatedQuery((NewRange(WHOLE_TABLE, first, before),), kept=True, exact=True)
    known = scheme.begun(of_range(first, before), UNKNOWN) | _whole(equal)
    keys, whole = of_parts(scheme.partition_template.parts, known, _MOST_RANGES)
    if whole:
        row_keys, _ = of_parts(scheme.row_template.parts, known, 1)
        rows = row_keys[0] or None, after(row_keys[0])
        return TreatedQuery(tuple(NewRange(key, None, None, *rows) for key in keys), ordered=False)
    ranges = [_of_prefix(text) for text in keys]
    begins, *behind = scheme.partition_template.parts
    if len(ranges) == 1 and isinstance(begins, Reference) and begins.is_plain(PARTITION_KEY):
        # New PartitionKeys are the recorded ones, and something behind each.
        [shared] = ranges
        start = max(first or "", shared.partition_from or "", key=sort_key)
        ends = [] if shared.partition_before is None else [shared.partition_before]
        if before is not None:
            literal = behind[0] if behind and isinstance(behind[0], str) else ""
            found = end_behind(first or "", before, literal)
            ends += [] if found is None else [found]
        ranges = [NewRange(WHOLE_TABLE, start or None, min(ends, key=sort_key, default=None))]
    return TreatedQuery(tuple(ranges), ordered=False, scan=NewRange(WHOLE_TABLE) in ranges)


def _whole(values: dict[str, str]) -> dict[str, Beginning]:
    return {name: Beginning(value, whole=True) for name, value in values.items()}


def _of_rows(
    scheme: Scheme, values: dict[str, str], of_key: Collection[str], query: TracedQuery
) -> TreatedQuery:
    """Of a query of one partition.

    Args:
        values: Those of its PartitionKey, named ``of_key``, and of properties.
    """
    recorded = recorded_range(values[PARTITION_KEY], query)
    first, before = recorded.row_from, recorded.row_before
    bounded = first is not None or before is not None
    begun = of_range(first, before)
    known = scheme.begun(None, begun)
    known |= _whole(values)
    groups = {*of_key} - {PARTITION_KEY, ROW_KEY}
    if begun.whole:
        if not scheme.takes_row(begun.text, values):
            return TreatedQuery((recorded,), True, True, unmatched=True)
        known = _whole(values)
    partitions, rows = scheme.partition_template, scheme.row_template
    keys, whole = of_parts(partitions.parts, known, _MOST_RANGES)
    row_keys, whole_row = of_parts(rows.parts, known, 1)
    kept_order = whole_row or not bounded
    row_from, row_before = row_keys[0] or None, after(row_keys[0])
    if whole_row:
        row_from, row_before = row_keys[0], row_keys[0] + BETWEEN
    elif rows.keeps_row_order:
        start, kept_order = rows.fill({**values, ROW_KEY: ""}), True
        row_from = start + (first or "") or None
        row_before = after(start) if before is None else start + before
    # What tells the rows of a partition from those of others is in the keys that are known. A range
    # of partitions has rows whatever their RowKeys are.
    named = {*_named(partitions, whole, _MOST_RANGES)}
    if whole:
        named.update(_named(rows, whole_row, 1))
    apart = PARTITION_KEY in named or named >= groups > set()
    if whole:
        ranges = [NewRange(key, None, None, row_from, row_before) for key in keys]
        return TreatedQuery(
            tuple(ranges),
            exact=kept_order and apart,
            ordered=rows.keeps_row_order,
            unbounded=not kept_order,
        )
    ranges = [_of_prefix(key) for key in keys]
    scan = NewRange(WHOLE_TABLE) in ranges
    return TreatedQuery(
        tuple(ranges),
        exact=not bounded and apart and not scan,
        ordered=scheme.keeps_row_order and not scan,
        ranged=not scan,
        scan=scan,
    )


def _of_prefix(text: str) -> NewRange:
    return NewRange(WHOLE_TABLE, text or None, after(text))


def _named(key: NewKey, whole: bool, most: int) -> Iterator[str]:
    """The values that a key shows: of a key of which only the beginning is known, those of it.

    ``most`` is how many beginnings were made of it.
    """
    for reference in key.references:
        if not whole and reference in key.by_row:
            most //= len(reference.function.choices) or most + 1
            if not most:
                return
        yield from (name for name in reference.names if reference.is_plain(name))
