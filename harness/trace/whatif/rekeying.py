"""The operations of a trace under another key scheme, and what the scheme costs.

An operation becomes loads: entities, or request units, of one partition at one instant. A
transaction that would span partitions, and a query that would need several, become a load for each.
"""

from __future__ import annotations

import collections
import zlib
from collections.abc import Collection, Iterator, Sequence
from itertools import compress, islice
from typing import NamedTuple

from harness.gateway.demand import Place
from harness.measure.record.whatif import PricePart
from harness.model.errors import echoed
from harness.model.operation import WHOLE_TABLE, Kind
from harness.trace.operations import (
    Batch,
    Detail,
    RecordedValues,
    TracedParts,
    TracedQuery,
    TracedShape,
)
from harness.trace.whatif.digests import Collisions, digest_of
from harness.trace.whatif.queries import BETWEEN, TreatedQuery, treated
from harness.trace.whatif.rows import Effects, KnownRows
from harness.trace.whatif.rows_before import RowsBefore
from harness.trace.whatif.scanned_rows import ScannedRows, pages_of
from harness.trace.whatif.scheme import ROW_KEY, Scheme
from harness.trace.whatif.units import (
    ENTITIES,
    NOTHING,
    Loads,
    LoadUnit,
    PagedScan,
    Places,
    Scanned,
    divided,
)

_KEPT = 50_000
"""Keys and queries whose treatment is remembered."""
_MOST_SAMPLES = 5
_QUERY, _TRANSACTION = Kind.QUERY, Kind.TRANSACTION
_POINT_QUERY, _DELETE, _INSERT = Kind.POINT_QUERY, Kind.DELETE, Kind.INSERT


_Columns = tuple[Sequence[int], Sequence[str], Sequence[int], Sequence[int]]
"""The first four columns of `Loads`."""


class _Placed(NamedTuple):
    """Where an entity belongs: its partition as named in counts, and the digest of that name.

    Attributes:
        key: The PartitionKey.
        unmatched: It keeps its keys, because no pattern matches them.
        unvalued: It keeps its keys, because a property is not known.
        problem: Why the service would refuse one of the keys; empty if it would not.
        notable: Whether one of these is the case.
    """

    name: str
    digest: int
    key: str
    unmatched: bool = False
    unvalued: bool = False
    problem: str = ""
    notable: bool = False


class _Known(NamedTuple):
    """What is known of a recorded PartitionKey.

    Attributes:
        placed: Where all of its entities belong; None if that depends on their RowKeys.
        values: The values of the groups; those of the RowKey are filled in for each entity. None
            if the entities keep their keys.
        by_row: Where entities belong, by the parts of the new PartitionKey that depend on RowKeys.
    """

    placed: _Placed | None
    values: dict[str, str] | None
    by_row: dict[str | tuple[str, ...], _Placed]


class _Names(dict[str, str]):
    """Names in counts by recorded PartitionKey, of one table."""

    def __init__(self, rekeying: Rekeying, table: str) -> None:
        super().__init__()
        self._rekeying, self._table = rekeying, table

    def __missing__(self, partition_key: str) -> str:
        if len(self) >= _KEPT:
            self.clear()
        name = self[partition_key] = self._rekeying.named(self._table, partition_key)
        return name


class Rekeying:
    """Applies one scheme to the operations of a trace.

    Args:
        rows: Whether it matters which rows are there: not if no query scans them.
        before: The rows that were there before the trace; None if the rows that queries scan are
            not to be counted.

    Attributes:
        samples: A few recorded keys: PartitionKey and RowKey, and what is known of properties.
        places: Table and PartitionKey of the names in `loads`.
        cross_partition: The names that stand for several partitions.
    """

    def __init__(
        self,
        scheme: Scheme,
        unit: LoadUnit = ENTITIES,
        *,
        rows: bool = True,
        before: RowsBefore | None = None,
    ) -> None:
        self.scheme = scheme
        self.unit, self._valid_key, self._sure_length = unit, unit.valid_key, unit.sure_length
        self.price = PricePart()
        self.collisions = Collisions()
        self.samples: list[tuple[str, str, RecordedValues]] = []
        self.refused = ""
        self.places = Places()
        self.cross_partition: set[str] = set()
        self._rows = KnownRows() if rows else None
        # By table and recorded PartitionKey.
        self._known: dict[str, dict[str, _Known]] = {}
        self._names: dict[str, _Names] = {}
        self._notable = False
        self._kept = 0
        self._queries: dict[tuple[str, str | None, Detail], TreatedQuery] = {}
        self._scanned_rows = ScannedRows(scheme, before)
        # Whether it matters which rows are where.
        self._counted = before is not None

    @property
    def places_before(self) -> Collection[Place]:
        """The partitions that are known to have had rows before the trace."""
        return self._scanned_rows.places_before

    def loads(self, batch: Batch) -> Loads:
        """What the operations ask for.

        Operations that the service failed to serve count as if it had served them.
        """
        self.price.operations += len(batch)
        if not self.samples:
            self._sample(batch)
        known = [] if self._rows is None else self._rows.known(batch)
        amounts = self.unit.amounts(batch, known)
        # Azure Storage took the recorded keys. A query with several pages takes several requests.
        scheme = self.scheme
        plain = (
            scheme.keeps_partitions
            and self.unit is ENTITIES
            and not self._counted
            and not any(
                of.kind is _QUERY and (len(of.attempts) > 1 or not scheme.identity)
                for of in set(batch.shapes)
            )
        )
        columns = self._renamed(batch, amounts) if plain else self._replaced(batch, amounts)
        effects = None
        if self._rows is not None:
            effects = Effects(
                batch,
                known,
                amounts,
                self.unit.without_row,
                self.unit.more_scanned(1),
                self.scheme.row_template.keeps_row_order,
            )
        paged = () if plain else [at for at, one in enumerate(columns[2]) if type(one) is PagedScan]
        return Loads(*columns, effects, paged)

    def _renamed(self, batch: Batch, amounts: list[int]) -> _Columns:
        """The loads in entities where partitions stay whole: one for each operation."""
        shapes, counts, entities = batch.shapes, amounts, batch.entities
        instants, keys = batch.at_ms, batch.partition_keys
        origins: Sequence[int] = range(len(batch))
        numbers = collections.Counter(shapes)
        if any(shape.outcome.wanted_again for shape in numbers):
            counts = list(map(_wanted, shapes, counts, batch.details))
        unknown = 0
        if None in keys:
            known = [key is not None for key in keys]
            unknown = known.count(False)
            instants, shapes = list(compress(instants, known)), list(compress(shapes, known))
            counts, entities = list(compress(counts, known)), list(compress(entities, known))
            keys, origins = list(compress(keys, known)), list(compress(origins, known))
        if len(self._names) >= _KEPT:
            self._names.clear()
        for table in {shape.table for shape in numbers} - self._names.keys():
            self._names[table] = _Names(self, table)
        named = {shape: self._names[shape.table] for shape in numbers}
        names = [named[shape][key or ""] for shape, key in zip(shapes, keys, strict=True)]
        if self._notable:
            return self._replaced(batch, amounts)
        self.price.unknown += unknown
        self.price.transactions += sum(numbers[of] for of in numbers if of.kind is _TRANSACTION)
        if asked := {shape for shape in numbers if shape.kind is _QUERY}:
            self.price.queries += sum(numbers[shape] for shape in asked)
            self.price.scanned_is_lower_bound |= any(shape.estimated for shape in asked)
            self.price.scanned += sum(
                count for shape, count in zip(shapes, entities, strict=True) if shape in asked
            )
            counts = [
                Scanned(count) if shape in asked else count
                for shape, count in zip(shapes, counts, strict=True)
            ]
        if 0 in counts:
            counts = [count or NOTHING for count in counts]
        return instants, names, counts, origins

    def _replaced(self, batch: Batch, amounts: list[int]) -> _Columns:
        loads: list[tuple[int, str, int, int]] = []
        price, entity, counted = self.price, self._entity, self._counted
        asked = zip(
            batch.at_ms,
            batch.shapes,
            batch.partition_keys,
            batch.row_keys,
            amounts,
            batch.details,
            batch.properties,
            strict=True,
        )
        for origin, (at_ms, shape, partition_key, row_key, entities, detail, of) in enumerate(
            asked
        ):
            entities = entities or _wanted(shape, entities, detail)
            kind, table = shape.kind, shape.table
            if kind is _QUERY:
                loads += [(at_ms, *load) for load in self._query(batch, origin, entities)]
                continue
            if kind is _TRANSACTION:
                price.transactions += 1
                parts = self._parts(shape, partition_key, detail, entities)
                at = origin if len(parts) == 1 else -1
                loads += [(at_ms, *part, at) for part in parts]
                continue
            shown = _shown(shape, kind) if counted else None
            placed = entity(table, partition_key, row_key, shown, of)
            if placed is None:
                price.unknown += 1
                continue
            if placed.notable:
                self._note(placed)
            loads.append((at_ms, placed.name, entities or NOTHING, origin))
        instants, names, counts, origins = zip(*loads, strict=True) if loads else ((),) * 4
        return instants, names, counts, origins

    def _entity(
        self,
        table: str,
        partition_key: str | None,
        row_key: str | None,
        shown: Kind | None,
        properties: RecordedValues,
    ) -> _Placed | None:
        """Where an entity belongs, which is noted for collisions; None if that cannot be told.

        ``shown``: the kind of an operation that shows whether the row is there from now on; None if
        it does not, or if that does not matter.
        """
        if partition_key is None:
            return None
        of_table = self._known.get(table)
        known = None if of_table is None else of_table.get(partition_key)
        if known is None:
            known = self._learned(table, partition_key)
        scheme, (placed, values, by_row) = self.scheme, known
        if row_key is None:
            # Of an insert in a log, the PartitionKey may be enough.
            return placed
        new_row_key = row_key
        if values is not None:
            values[ROW_KEY] = row_key
            if scheme.matches_row_key and not scheme.takes_row(row_key, values):
                placed = self._placed(table, partition_key, unmatched=True)
            elif scheme.properties and not scheme.takes_properties(properties, values):
                placed = self._placed(table, partition_key, unvalued=True)
            elif not scheme.keeps_row_key:
                new_row_key = scheme.row_template.fill(values)
        if placed is None:
            assert values is not None
            part = scheme.row_part(values)
            if part in by_row:
                placed = by_row[part]
            else:
                new = scheme.partition_template.fill(values)
                placed = by_row[part] = self._placed(table, new)
                self._kept += 1
        sure = new_row_key is row_key and len(row_key) <= self._sure_length
        if not sure and self._valid_key.fullmatch(new_row_key) is None:
            problem = self.unit.key_problem(new_row_key, row=True)
            if problem and not placed.problem:
                problem = f"RowKey {echoed(new_row_key)} {problem}"
                placed = placed._replace(problem=problem, notable=True)
        if shown is not None:
            row = placed.key + BETWEEN + new_row_key
            self._scanned_rows.note(table, row, stays=shown is not _DELETE, new=shown is _INSERT)
        if scheme.keeps_entities:
            return placed
        digest = zlib.crc32(new_row_key.encode("utf-8", "surrogatepass"), placed.digest)
        if not digest & self.collisions.mask:
            self.collisions.add((placed.name, new_row_key), (partition_key, row_key))
        return placed

    def _note(self, *placed: _Placed) -> None:
        """Count what is notable of the entities of one operation."""
        self.price.unmatched += any(one.unmatched for one in placed)
        self.price.unvalued += any(one.unvalued for one in placed)
        if problems := [one.problem for one in placed if one.problem]:
            self.price.refused += 1
            self.refused = self.refused or problems[0]

    def _learned(self, table: str, partition_key: str) -> _Known:
        scheme = self.scheme
        if self._kept >= _KEPT:
            self._known.clear()
            self._kept = 0
        values = None
        if not scheme.applies_to(table):
            placed: _Placed | None = self._placed(table, partition_key)
        elif (values := scheme.values(partition_key, None)) is None:
            placed = self._placed(table, partition_key, unmatched=True)
        elif scheme.by_partition_key:
            placed = self._placed(table, scheme.partition_template.fill(values))
        else:
            placed = None
        known = _Known(placed, values, {})
        self._known.setdefault(table, {})[partition_key] = known
        self._kept += 1
        return known

    def _placed(
        self, table: str, partition_key: str, unmatched: bool = False, unvalued: bool = False
    ) -> _Placed:
        name = self.name(table, partition_key)
        problem = ""
        if self._valid_key.fullmatch(partition_key) is None:
            problem = self.unit.key_problem(partition_key, row=False) or ""
            if problem:
                problem = f"PartitionKey {echoed(partition_key)} {problem}"
        notable = unmatched or unvalued or bool(problem)
        return _Placed(name, digest_of(name), partition_key, unmatched, unvalued, problem, notable)

    def _sample(self, batch: Batch) -> None:
        """Keep a few recorded keys, of different partitions."""
        for shape, partition_key, row_key, properties in zip(
            batch.shapes, batch.partition_keys, batch.row_keys, batch.properties, strict=True
        ):
            if partition_key is None or not row_key or not self.scheme.applies_to(shape.table):
                continue
            properties = properties if self.scheme.properties else None
            if all((partition_key, properties) != (one, of) for one, _, of in self.samples):
                self.samples.append((partition_key, row_key, properties))
                if len(self.samples) == _MOST_SAMPLES:
                    return

    def _parts(
        self, shape: TracedShape, partition_key: str | None, detail: Detail, entities: int
    ) -> list[tuple[str, int]]:
        """Entities of a transaction by new partition; it counts whole or not at all."""
        parts: list[tuple[str | None, Kind | None, RecordedValues]] = [(None, None, None)]
        if isinstance(detail, TracedParts):
            counted = self._counted
            parts = [
                (one.row_key, _shown(shape, one.kind) if counted else None, one.properties)
                for one in detail.each()
            ]
        placed = [self._entity(shape.table, partition_key, *part) for part in parts]
        known = [one for one in placed if one is not None]
        self._note(*known)
        if len(known) < len(parts):
            self.price.unknown += 1
            return []
        found = collections.Counter(one.name for one in known)
        if len(found) > 1:
            self.price.split += 1
            return [
                (name, entities * count // len(parts) or NOTHING) for name, count in found.items()
            ]
        return [(name, entities or NOTHING) for name in found]

    def _query(self, batch: Batch, at: int, amount: int) -> Iterator[tuple[str, int, int]]:
        """Names, amounts and origins of the loads of a query, one for each of its ranges.

        ``amount`` is what it took when it was recorded.
        """
        price, unit = self.price, self.unit
        shape, detail, recorded = batch.shapes[at], batch.details[at], batch.entities[at]
        key = (shape.table, batch.partition_keys[at], detail)
        found = self._queries.get(key)
        query = detail if isinstance(detail, TracedQuery) else TracedQuery()
        if found is None:
            if len(self._queries) >= _KEPT:
                self._queries.clear()
            found = self._queries[key] = treated(self.scheme, key[0], key[1], query)
        scanned, sure = self._scanned_rows.of(
            shape, key[1], found, query, recorded, batch.returned[at]
        )
        if not scanned and not found.unknown:
            # A page of a query that is counted already.
            return
        price.queries += 1
        price.unknown += found.unknown
        price.unmatched += found.unmatched
        price.ranged += found.ranged
        price.scans += found.scan
        price.unbounded += found.unbounded
        if found.spread:
            price.spread += 1
            price.needed += len(scanned)
            price.most_needed = max(price.most_needed, len(scanned))
        price.scanned_is_lower_bound |= not sure
        entities = sum(one.entities for one in scanned)
        price.scanned += entities
        more = unit.more_scanned(entities - recorded) if entities > recorded else 0
        page_s = (batch.done_ms[at] - batch.at_ms[at]) / 1000 / pages_of(shape)
        parts = [one.entities for one in scanned]
        if unit is not ENTITIES:
            if found.narrowed and recorded:
                amount = max(1, amount * entities // recorded)
            parts = divided(amount + more, parts)
        for one, part in zip(scanned, parts, strict=True):
            name = self.name(shape.table, one.one.partition_key)
            if unit is not ENTITIES:
                each = unit.each_page(shape, all_partitions=one.one.several)
                yield name, Scanned(part + one.pages * each), at
            elif one.pages > 1 or (one.one.several and one.shares):
                paged = one.in_pages(page_s, shape.table)
                yield name, paged, -1 if one.one.several or len(scanned) > 1 else at
            else:
                yield name, Scanned(part), at

    def named(self, table: str, partition_key: str) -> str:
        """The name of a recorded partition under a scheme that keeps partitions."""
        if self.scheme.identity:
            return self.name(table, partition_key)
        placed, _, _ = self._learned(table, partition_key)
        assert placed is not None
        self._notable |= placed.notable
        return placed.name

    def name(self, table: str, partition_key: str) -> str:
        name = f"{table}/{partition_key}" if table else partition_key
        places = self.places
        if len(places) >= _KEPT:
            # The latest ones are still to be simulated.
            for forgotten in list(islice(places, _KEPT // 2)):
                del places[forgotten]
        if partition_key == WHOLE_TABLE:
            self.cross_partition.add(name)
            places[name] = table, None
        else:
            places[name] = table, partition_key
        return name


def _wanted(shape: TracedShape, amount: int, detail: Detail) -> int:
    """What an operation asks for, or would have asked for if it had been served."""
    if amount or not shape.outcome.wanted_again:
        return amount
    return len(detail.kinds) if isinstance(detail, TracedParts) else 1


def _shown(shape: TracedShape, kind: Kind) -> Kind | None:
    """The kind of an operation on a row after which it is known whether the row is there.

    Operations that the service failed to serve count as if it had served them.
    """
    outcome = shape.outcome
    shown = outcome.succeeded or (outcome.wanted_again and kind is not _POINT_QUERY)
    return kind if shown else None
