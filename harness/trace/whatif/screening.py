"""The load of a trace under many key schemes, by aggregation and without the limits' decisions.

A screening finds which schemes are worth an exact calculation. DuckDB reads the columns, each
different key is looked at once for all schemes, and partitions are told apart by the digests of
their keys. Loads are in entities, whatever the limits are. A query that a scheme widens counts the
entities that it scanned when it was recorded, and one that it narrows those that it returned.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from harness.measure.record.whatif import PricePart
from harness.measure.verdict.ranking import Standing, breaks
from harness.trace.operations import TracedQuery
from harness.trace.reader import Trace
from harness.trace.schema import PART, PROPERTIES, WANTED, part_of
from harness.trace.whatif.digests import Array, digests_of
from harness.trace.whatif.key_columns import Columns, KeyColumns, NewKeys, column_of
from harness.trace.whatif.load_sums import MOST_SECONDS, SEVERAL, LoadSums, PartitionLoads
from harness.trace.whatif.queries import TreatedQuery, treated
from harness.trace.whatif.scheme import PARTITION_KEY, Scheme

_MOST_TRACKED = 50_000
"""Entities that are compared for collisions, and queries whose treatment is remembered."""

_PLACE = """
    hash(table_name) AS "table", epoch_ms(sent_at) AS "at", partition_key AS "key"
"""
_AMOUNT = f"""
    (CASE WHEN entities = 0 AND outcome IN ({WANTED}) THEN 1
          ELSE coalesce(entities, 0) END)::DOUBLE AS amount
"""
_SINGLES = f"""
SELECT {_PLACE}, row_key AS "row", {_AMOUNT}%s FROM %s AND kind NOT IN ('query', 'transaction')
"""
_PARTS = f"""
SELECT * EXCLUDE ("rows", "row"), "row".row_key AS "row"%s FROM (
SELECT "table", "at", "key", "number", "rows", unnest("rows") AS "row",
    (CASE WHEN entities = 0 AND wanted THEN len("rows") ELSE coalesce(entities, 0) END)::DOUBLE
        / len("rows") AS amount
FROM (
    SELECT {_PLACE}, row_number() OVER () AS "number", entities,
        outcome IN ({WANTED}) AS wanted,
        CASE WHEN len(parts) > 0 THEN parts ELSE [NULL] END AS "rows"
    FROM %s AND kind = 'transaction'
))
"""
_QUERIES = f"""
SELECT {_PLACE}, query.partition_from AS partition_from,
    query.partition_before AS partition_before, query.row_from AS row_from,
    query.row_before AS row_before, coalesce(returned, 0)::DOUBLE AS returned, {_AMOUNT}%s
FROM %s AND kind = 'query'
"""
_TABLES = f"""
SELECT hash(table_name) AS "table", first(coalesce(table_name, '')) AS "name"
FROM {PART} GROUP BY 1
"""


def _questions(properties: Sequence[str]) -> tuple[str, ...]:
    """What is asked of a trace, with the values of these properties."""

    def values(of: str) -> str:
        return "".join(f', {of}."{name}" AS "{column_of(name)}"' for name in properties)

    own, part = values(PROPERTIES), part_of(properties)
    of_parts = values(f'"row".{PROPERTIES}')
    return _TABLES, _SINGLES % (own, part), _PARTS % (of_parts, part), _QUERIES % (own, part)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ScreenedScheme:
    """The load under one scheme.

    Attributes:
        entities: All that they count; of operations that the service failed to serve one each.
        partitions: Of many an estimate, within about 3 %.
        peak_per_s: Highest rate of any one partition over 10 s.
        over: Share of the entities over the limit of their partition, or of the account, second by
            second: about what would be throttled without retries.
        price: Without what only a calculation knows, such as what queries scan. All queries are
            ``needed``: one for each partition that a query visits.
    """

    entities: float
    partitions: int
    peak_per_s: float
    over: float
    price: PricePart

    @property
    def standing(self) -> Standing:
        """What the scheme is compared by, in `harness.measure.verdict.ranking.ranks`."""
        price = self.price
        return Standing(
            breaks=breaks(price),
            throttled=self.over,
            billable=price.operations - price.queries + price.needed,
            scanned=price.scans,
            hottest=self.peak_per_s,
        )


def screen(
    trace: Trace,
    schemes: Sequence[Scheme],
    *,
    partition_per_s: float,
    account_per_s: float,
    rate: float = 1.0,
) -> list[ScreenedScheme]:
    """The load of a trace under each scheme, in the order of ``schemes``.

    The trace is read once, in slices: memory grows with the schemes, not with the operations.

    Args:
        partition_per_s: Limit of a partition in entities/s, for `ScreenedScheme.over`.
        account_per_s: The same of the account.
        rate: Multiple of the recorded traffic: the instants are divided by it.
    """
    first_ms, second_ms = trace.first_ms, 1000 * rate
    screenings = [_Screening(scheme, partition_per_s, account_per_s) for scheme in schemes]
    operations = 0
    properties = trace.properties if any(scheme.properties for scheme in schemes) else ()
    for found, rows, until_ms in trace.answers(_questions(properties)):
        names, *kinds = found
        for columns in kinds:
            second = ((columns.pop("at") - first_ms) / second_ms).astype(np.int64)
            columns["second"] = np.clip(second, 0, MOST_SECONDS - 1)
        tables = [
            KeyColumns(name, [_of_table(columns, table) for columns in kinds], properties)
            for table, name in zip(names["table"], names["name"].tolist(), strict=True)
        ]
        until = MOST_SECONDS if until_ms is None else int((until_ms - first_ms) / second_ms)
        for screening in screenings:
            screening.add(tables, until)
        operations += rows
    return [one.finish(operations) for one in screenings]


def _of_table(columns: Columns, table: int) -> Columns:
    chosen = columns["table"] == table
    return columns if chosen.all() else {name: of[chosen] for name, of in columns.items()}


def _of_whole_rows(table: KeyColumns) -> dict[str, Array]:
    """The places of entities of which both keys are known."""
    return {name: of[table.whole_rows] for name, of in table.places.items()}


class _Collisions:
    """Entities that would share both keys with another one; of many a part, by their digests."""

    def __init__(self) -> None:
        self._bits = 0
        self._new, self._recorded = np.empty(0, np.uint64), np.empty(0, np.uint64)

    @property
    def estimated(self) -> bool:
        return self._bits > 0

    @property
    def count(self) -> int:
        return (len(self._new) - len(np.unique(self._new))) << self._bits

    def add(self, new: Array, recorded: Array) -> None:
        """Note entities by numbers of their new keys, and of their recorded keys."""
        new = np.concatenate([self._new, new])
        recorded = np.concatenate([self._recorded, recorded])
        while True:
            tracked = new & np.uint64((1 << self._bits) - 1) == 0
            new, recorded = new[tracked], recorded[tracked]
            order = np.lexsort((recorded, new))
            new, recorded = new[order], recorded[order]
            other = np.ones(len(new), bool)
            other[1:] = (new[1:] != new[:-1]) | (recorded[1:] != recorded[:-1])
            new, recorded = new[other], recorded[other]
            if len(new) <= _MOST_TRACKED:
                break
            self._bits += 1
        self._new, self._recorded = new, recorded


class _Screening:
    """One scheme, and what is found of it."""

    def __init__(self, scheme: Scheme, partition_per_s: float, account_per_s: float) -> None:
        self._scheme = scheme
        self._treated: dict[tuple[str, str | None, TracedQuery], tuple[TreatedQuery, Array]] = {}
        self._sums = LoadSums(partition_per_s, account_per_s)
        self._collisions, self._may_collide = _Collisions(), not scheme.keeps_entities
        self._price = PricePart()

    def add(self, tables: Sequence[KeyColumns], until: int) -> None:
        """Add a part of the trace; later operations are not before the second ``until``."""
        loads: list[PartitionLoads] = []
        for table in tables:
            keys = NewKeys(self._scheme, table)
            self._price.transactions += table.transactions
            self._price.queries += len(table.asked)
            loads += self._by_key(table, keys) if keys.by_key else self._by_row(table, keys)
            if self._may_collide and self._scheme.applies_to(table.name):
                self._collisions.add(*keys.entities(_of_whole_rows(table)))
        self._sums.add(loads, until)

    def finish(self, operations: int) -> ScreenedScheme:
        sums, collisions = self._sums, self._collisions
        sums.add([], MOST_SECONDS)
        return ScreenedScheme(
            entities=sums.total,
            partitions=sums.partitions,
            peak_per_s=sums.peak_per_s,
            over=sums.over / max(1.0, sums.total),
            price=dataclasses.replace(
                self._price,
                operations=operations,
                collisions=collisions.count,
                collisions_estimated=collisions.estimated,
            ),
        )

    def _by_key(self, table: KeyColumns, keys: NewKeys) -> list[PartitionLoads]:
        """The loads where each recorded partition becomes one."""
        every = np.arange(len(table.keys.texts))
        numbers, unmatched, _ = keys.partitions({PARTITION_KEY: every})
        operations = np.concatenate([table.key[table.first], table.query_key])
        price = self._price
        price.unknown += int((operations < 0).sum())
        price.unmatched += int(unmatched[operations[operations >= 0]].sum())
        recorded = table.by_partition
        loads = [recorded._replace(partition=numbers[recorded.partition])]
        price.needed += int((~table.whole).sum())
        if table.whole.any():
            loads.append(self._queries(table, np.flatnonzero(table.whole)))
        return loads

    def _by_row(self, table: KeyColumns, keys: NewKeys) -> list[PartitionLoads]:
        """The loads where the new partition of an entity depends on its RowKey."""
        known, price = table.whole_rows, self._price
        places = _of_whole_rows(table)
        numbers, unmatched, unvalued = keys.partitions(places)
        if len(table.first):
            unknown = np.logical_or.reduceat(~known, table.first)
            of_all = np.zeros(len(known), numbers.dtype)
            of_all[known] = numbers
            least = np.minimum.reduceat(of_all, table.first)
            apart = least != np.maximum.reduceat(of_all, table.first)
            price.unknown += int(unknown.sum())
            price.split += int((apart & ~unknown).sum())
            of_all[known] = unmatched
            price.unmatched += int((np.maximum.reduceat(of_all, table.first) > 0).sum())
            of_all[known] = unvalued
            price.unvalued += int((np.maximum.reduceat(of_all, table.first) > 0).sum())
        loads = PartitionLoads(numbers, table.second[known], table.amount[known])
        every = np.arange(len(table.asked))
        return [loads, self._queries(table, every)] if len(every) else [loads]

    def _queries(self, table: KeyColumns, chosen: Array) -> PartitionLoads:
        """The loads of the queries at some places, divided evenly over what they read."""
        kinds, asked = np.unique(table.asked[chosen], return_inverse=True)
        found = [self._of_query(table, *table.queries[kind]) for kind in kinds]
        price, times = self._price, np.bincount(asked).tolist()
        for number, (one, _) in zip(times, found, strict=True):
            price.unknown += number * one.unknown
            price.unmatched += number * one.unmatched
            price.spread += number * one.spread
            price.scans += number * one.scan
            price.needed += number * len(one.ranges)
        numbers = np.concatenate([numbers for _, numbers in found])
        sizes = np.array([len(numbers) for _, numbers in found])
        needed = sizes[asked]
        narrowed = np.array([one.narrowed for one, _ in found], bool)[asked]
        recorded, returned = table.query_amount[chosen], table.query_returned[chosen]
        amount = np.where(narrowed, np.maximum(1, returned), recorded)
        query = np.repeat(np.arange(len(asked)), needed)
        # Places within the partitions of a query.
        within = np.arange(len(query)) - np.repeat(np.cumsum(needed) - needed, needed)
        begins = np.cumsum(sizes) - sizes
        return PartitionLoads(
            numbers[begins[asked][query] + within],
            table.query_second[chosen][query],
            (amount / np.maximum(1, needed))[query],
        )

    def _of_query(
        self, table: KeyColumns, key: str | None, asked: TracedQuery
    ) -> tuple[TreatedQuery, Array]:
        """What becomes of a query, and the numbers of its partitions."""
        query = table.name, key, asked
        if query not in self._treated:
            if len(self._treated) >= _MOST_TRACKED:
                self._treated.clear()
            found = treated(self._scheme, *query)
            keys_of = [one.partition_key for one in found.ranges]
            numbers = table.numbers(digests_of(keys_of).value)
            numbers[[one.several for one in found.ranges]] = SEVERAL
            self._treated[query] = found, numbers
        return self._treated[query]
