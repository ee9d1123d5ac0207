"""The operations of a trace under another key scheme, and what the scheme costs.

An operation becomes loads: entities of one partition at one instant. A transaction that would span
partitions, and a query that would need several, become a load for each.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import zlib
from typing import NamedTuple

from harness.model.operation import WHOLE_TABLE, Kind
from harness.model.outcome import Outcome
from harness.trace.operations import Batch, Detail, TracedParts, TracedQuery
from harness.trace.whatif.scheme import Field, KeySource, Scheme

_KEPT = 100_000
"""Keys and queries whose treatment is remembered."""
_MOST_PARTITIONS = 1000
"""A query that would need more partitions reads the whole table instead."""
_MOST_TRACKED = 50_000
_MOST_SAMPLES = 5
_NOT_SERVED = frozenset(
    {Outcome.THROTTLED, Outcome.TIMEOUT, Outcome.CONNECTION, Outcome.SERVER_ERROR}
)
"""Outcomes of operations that were wanted, although nothing was counted for them."""
_QUERY, _TRANSACTION = Kind.QUERY, Kind.TRANSACTION


@dataclasses.dataclass(slots=True)
class Price:
    """What a scheme costs, in operations and entities of the trace.

    Attributes:
        operations: All operations.
        unknown: Operations whose new PartitionKey cannot be told, because the trace lacks a key.
        unmatched: Operations whose keys no regular expression of the scheme matches; they keep
            their keys.
        transactions: Transactions.
        split: Transactions whose parts would be in several partitions.
        queries: Queries.
        spread: Queries of fewer partitions before that would need several, but not all.
        needed: Partitions that these queries would need, added up.
        most_needed: Partitions that one of them would need.
        scans: Queries of fewer partitions before that would have to read the whole table.
        unbounded: Queries of a range of RowKeys that would have to read the whole partition.
    """

    operations: int = 0
    unknown: int = 0
    unmatched: int = 0
    transactions: int = 0
    split: int = 0
    queries: int = 0
    spread: int = 0
    needed: int = 0
    most_needed: int = 0
    scans: int = 0
    unbounded: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class _Treated:
    """What becomes of a query: its partitions, and which sums it adds to."""

    names: tuple[str, ...]
    unknown: bool = False
    spread: bool = False
    scan: bool = False
    unbounded: bool = False


class Collisions:
    """Entities that would share both keys with another one.

    Exact for up to 50,000 entities. Of more, a part chosen by hash is tracked, and its number is
    scaled up.
    """

    def __init__(self) -> None:
        self._bits = 0
        self._mask = 0
        self._tracked: dict[tuple[str, str], set[tuple[str, str]]] = {}

    @property
    def estimated(self) -> bool:
        return self._bits > 0

    @property
    def count(self) -> int:
        found = sum(len(recorded) - 1 for recorded in self._tracked.values())
        return found << self._bits

    def add(self, digest: int, new: tuple[str, str], recorded: tuple[str, str]) -> None:
        """Note an entity; ``digest`` is that of its new keys."""
        if digest & self._mask:
            return
        self._tracked.setdefault(new, set()).add(recorded)
        while len(self._tracked) > _MOST_TRACKED:
            self._bits += 1
            self._mask = mask = (1 << self._bits) - 1
            self._tracked = {
                new: found
                for new, found in self._tracked.items()
                if not digest_of(new[1], digest_of(new[0])) & mask
            }


def digest_of(text: str, start: int = 0) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass"), start)


class _Placed(NamedTuple):
    """Where an entity belongs: its partition as named in counts, and the digest of that name."""

    name: str
    digest: int
    unmatched: bool = False


class Rekeying:
    """Applies one scheme to the operations of a trace.

    Attributes:
        price: What the scheme costs, so far.
        samples: A few recorded keys: PartitionKey and RowKey.
    """

    def __init__(self, scheme: Scheme) -> None:
        self.scheme = scheme
        self.price = Price()
        self.collisions = Collisions()
        self.samples: list[tuple[str, str]] = []
        # By table and recorded PartitionKey.
        self._placed: dict[str, dict[str, _Placed]] = {}
        self._queries: dict[tuple[str, str | None, Detail], _Treated] = {}

    def loads(self, batch: Batch) -> tuple[list[int], list[str], list[int]]:
        """Instants in milliseconds, partitions as named in counts, and entities, of equal length.

        Operations for which nothing was counted are left out, unless the service was at fault.
        """
        instants: list[int] = []
        names: list[str] = []
        counts: list[int] = []
        price, entity = self.price, self._entity
        price.operations += len(batch)
        if not self.samples:
            self._sample(batch)
        identity, known_of = self.scheme.identity, self._placed
        for at_ms, shape, partition_key, row_key, entities, detail in zip(
            batch.at_ms,
            batch.shapes,
            batch.partition_keys,
            batch.row_keys,
            batch.entities,
            batch.details,
            strict=True,
        ):
            if not entities and shape.outcome in _NOT_SERVED:
                entities = len(detail.kinds) if isinstance(detail, TracedParts) else 1
            kind, table = shape.kind, shape.table
            if kind is _QUERY:
                self._query(table, partition_key, detail, at_ms, entities, instants, names)
                _share(entities, len(instants) - len(counts), counts)
                continue
            if kind is _TRANSACTION:
                price.transactions += 1
                for part in self._parts(table, partition_key, detail, entities):
                    instants.append(at_ms)
                    names.append(part[0])
                    counts.append(part[1])
                continue
            placed = None
            if identity:
                known = known_of.get(table)
                if known is not None and partition_key is not None:
                    placed = known.get(partition_key)
            if placed is None:
                placed = entity(table, partition_key, row_key)
            if placed is None:
                price.unknown += 1
            elif entities:
                instants.append(at_ms)
                names.append(placed.name)
                counts.append(entities)
        return instants, names, counts

    def _entity(self, table: str, partition_key: str | None, row_key: str | None) -> _Placed | None:
        """Where an entity belongs, which is noted for collisions; None if that cannot be told."""
        if partition_key is None:
            return None
        scheme = self.scheme
        placed = None
        if scheme.by_partition_key:
            placed = self._by_partition_key(table, partition_key)
            if row_key is None or scheme.identity:
                self.price.unmatched += placed.unmatched
                return placed
            new_row_key = row_key
            if not scheme.keeps_row_key and not placed.unmatched:
                keys = scheme.keys(partition_key, row_key)
                new_row_key = row_key if keys is None else keys[1]
        elif row_key is None:
            return None
        elif not scheme.applies_to(table) or (keys := scheme.keys(partition_key, row_key)) is None:
            unmatched = scheme.applies_to(table)
            placed, new_row_key = _placed(table, partition_key, unmatched), row_key
        else:
            placed, new_row_key = _placed(table, keys[0]), keys[1]
        self.price.unmatched += placed.unmatched
        digest = zlib.crc32(new_row_key.encode("utf-8", "surrogatepass"), placed.digest)
        self.collisions.add(digest, (placed.name, new_row_key), (partition_key, row_key))
        return placed

    def _by_partition_key(self, table: str, partition_key: str) -> _Placed:
        known = self._placed.setdefault(table, {})
        placed = known.get(partition_key)
        if placed is None:
            scheme = self.scheme
            if scheme.identity or not scheme.applies_to(table):
                placed = _placed(table, partition_key)
            elif (new := scheme.partition(partition_key)) is None:
                placed = _placed(table, partition_key, unmatched=True)
            else:
                placed = _placed(table, new)
            if len(known) >= _KEPT:
                known.clear()
            known[partition_key] = placed
        return placed

    def _sample(self, batch: Batch) -> None:
        """Keep a few recorded keys, of different partitions."""
        for shape, partition_key, row_key in zip(
            batch.shapes, batch.partition_keys, batch.row_keys, strict=True
        ):
            if partition_key is None or not row_key or not self.scheme.applies_to(shape.table):
                continue
            if all(partition_key != known for known, _ in self.samples):
                self.samples.append((partition_key, row_key))
                if len(self.samples) == _MOST_SAMPLES:
                    return

    def _parts(
        self, table: str, partition_key: str | None, detail: Detail, entities: int
    ) -> list[tuple[str, int]]:
        """Entities of a transaction by new partition; it counts whole or not at all."""
        row_keys: tuple[str | None, ...] = (None,)
        if isinstance(detail, TracedParts) and not self.scheme.identity:
            row_keys = detail.row_keys
        found: collections.Counter[str] = collections.Counter()
        unmatched = self.price.unmatched
        for row_key in row_keys:
            placed = self._entity(table, partition_key, row_key)
            # However many of its parts are not matched, it is one operation.
            self.price.unmatched = min(self.price.unmatched, unmatched + 1)
            if placed is None:
                self.price.unknown += 1
                return []
            found[placed.name] += 1
        if len(found) > 1:
            self.price.split += 1
            return list(found.items()) if entities else []
        return [(name, entities) for name in found] if entities else []

    def _query(
        self,
        table: str,
        partition_key: str | None,
        detail: Detail,
        at_ms: int,
        entities: int,
        instants: list[int],
        names: list[str],
    ) -> None:
        price = self.price
        price.queries += 1
        query = (table, partition_key, detail)
        treated = self._queries.get(query)
        if treated is None:
            if len(self._queries) >= _KEPT:
                self._queries.clear()
            treated = self._queries[query] = self._treated(*query)
        price.unknown += treated.unknown
        price.scans += treated.scan
        price.unbounded += treated.unbounded
        if treated.spread:
            price.spread += 1
            price.needed += len(treated.names)
            price.most_needed = max(price.most_needed, len(treated.names))
        if entities:
            names += treated.names
            instants += itertools.repeat(at_ms, len(treated.names))

    def _treated(self, table: str, partition_key: str | None, detail: Detail) -> _Treated:
        scheme = self.scheme
        whole = _named(table, WHOLE_TABLE)
        if partition_key is None:
            return _Treated((), unknown=True)
        if scheme.identity or not scheme.applies_to(table):
            return _Treated((_named(table, partition_key),))
        query = detail if isinstance(detail, TracedQuery) else TracedQuery()
        if partition_key == WHOLE_TABLE:
            bounded = query.partition_from is not None or query.partition_before is not None
            return _Treated((whole,), scan=bounded)
        values = scheme.values(partition_key, None)
        if values is None:
            return _Treated((_named(table, partition_key),))
        choices = [
            (part,) if isinstance(part, str) else self._choices(part, values, query)
            for part in scheme.partition_template.parts
        ]
        number = 1
        for one in choices:
            number *= len(one or ())
        if not 0 < number <= _MOST_PARTITIONS:
            return _Treated((whole,), scan=True)
        names = tuple(
            _named(table, "".join(texts))
            for texts in itertools.product(*(one for one in choices if one is not None))
        )
        bounded = query.row_from is not None or query.row_before is not None
        return _Treated(
            names,
            spread=len(names) > 1,
            unbounded=bounded and not scheme.row_template.keeps_row_order,
        )

    def _choices(
        self, part: Field, values: dict[str, str], query: TracedQuery
    ) -> tuple[str, ...] | None:
        """The values that a part may have in the rows of a query; None if they cannot be told."""
        if KeySource.ROW_KEY not in part.sources:
            return (part.of(values),)
        if query.row_from is not None and query.row_before is not None:
            bounds = [
                self.scheme.values(values["partition_key"], row_key)
                for row_key in (query.row_from, query.row_before)
            ]
            found = {part.of(one) for one in bounds if one is not None}
            if None not in bounds and len(found) == 1 and not part.choices:
                return tuple(found)
        return part.choices or None


def _placed(table: str, partition_key: str, unmatched: bool = False) -> _Placed:
    name = _named(table, partition_key)
    return _Placed(name, digest_of(name), unmatched)


def _named(table: str, partition_key: str) -> str:
    return f"{table}/{partition_key}" if table else partition_key


def _share(entities: int, partitions: int, counts: list[int]) -> None:
    """Append the entities of one query, divided evenly."""
    if partitions:
        each, rest = divmod(entities, partitions)
        counts += [each + 1] * rest + [each] * (partitions - rest)
