"""A table service in memory, for tests of what is sent: it does, or refuses, as the service would.

It knows nothing of `harness.model.target`: what a query scans it counts by itself, row by row.
"""

from __future__ import annotations

import bisect
import dataclasses
import datetime as dt
import itertools
import random
import re
from collections.abc import Iterator, Mapping
from typing import Any

from harness.model.entity import ETAG
from harness.model.operation import WHOLE_TABLE, Kind, Operation
from harness.model.outcome import Outcome, Result
from harness.workload.operation_source import Task, next_operation, steps_of
from tests.support.results import done

_COMPARISON = re.compile(r"(\w+) (eq|lt|ge) (?:datetime)?('.*'|-?\d+)")

Key = tuple[str, str]
Entity = dict[str, Any]


@dataclasses.dataclass(slots=True)
class Partition:
    """Entities by RowKey, and their RowKeys in order."""

    rows: dict[str, Entity] = dataclasses.field(default_factory=dict)
    order: list[str] = dataclasses.field(default_factory=list)

    def put(self, row_key: str, entity: Entity | None) -> None:
        """Store an entity; None deletes it, or leaves it away."""
        there = row_key in self.rows
        if entity is not None:
            self.rows[row_key] = entity
            if not there:
                bisect.insort(self.order, row_key)
        elif there:
            del self.rows[row_key]
            del self.order[bisect.bisect_left(self.order, row_key)]

    def between(self, row_from: str | None, row_before: str | None) -> list[Entity]:
        """The entities of a range of RowKeys, in order; None is its end."""
        first = 0 if row_from is None else bisect.bisect_left(self.order, row_from)
        end = None if row_before is None else bisect.bisect_left(self.order, row_before)
        return [self.rows[row_key] for row_key in self.order[first:end]]


class MemoryTables:
    """Tables by the endings of their names.

    Args:
        lost: Share of the writes that fail and are not applied.
        seed: Which ones.

    Attributes:
        partitions: By table and PartitionKey.
        scanned: Entities that the last query had to scan, filter and ``top`` aside.
        lost: Share of the writes that fail and are not applied.
    """

    def __init__(self, lost: float = 0.0, seed: int = 7) -> None:
        self.partitions: dict[str, dict[str, Partition]] = {}
        self.scanned = 0
        self.lost = lost
        self._chance = random.Random(seed)
        self._version = 0

    def perform(self, task: Task) -> Iterator[Result]:
        """Results of a whole task."""
        steps = steps_of(task)
        operation = next_operation(steps)
        while operation is not None:
            result = self.execute(operation)
            yield result
            operation = next_operation(steps, result)

    def execute(self, operation: Operation) -> Result:
        """What becomes of an operation."""
        value: object = None
        if operation.kind is Kind.QUERY:
            found = self._query(operation)
            value, outcome = found, Outcome.SUCCESS
        elif operation.kind is Kind.POINT_QUERY:
            entity = self._partition(operation).rows.get(operation.row_key)
            value = None if entity is None else _projected(entity, operation.select)
            outcome = Outcome.NOT_FOUND if entity is None else Outcome.SUCCESS
        elif self._chance.random() < self.lost:
            outcome = Outcome.THROTTLED
        else:
            outcome = self._write(operation.parts or (operation,))
        return done(operation, 0.0, 0.0, outcome=outcome, value=value)

    def entities(self, table: str = "") -> Iterator[Entity]:
        """All entities of a table in key order."""
        for _, partition in sorted(
            self.partitions.get(table, {}).items(), key=lambda item: item[0]
        ):
            yield from partition.between(None, None)

    def keys(self, table: str) -> list[Key]:
        """PartitionKey and RowKey of all entities of a table."""
        return [(row["PartitionKey"], row["RowKey"]) for row in self.entities(table)]

    def _partition(self, operation: Operation) -> Partition:
        table = self.partitions.setdefault(operation.table, {})
        return table.setdefault(operation.partition_key, Partition())

    def _query(self, query: Operation) -> list[Entity]:
        inside = [
            entity
            for name, partition in sorted(self._asked(query).items(), key=lambda item: item[0])
            for entity in partition.between(query.key_range.row_from, query.key_range.row_before)
        ]
        self.scanned = len(inside)
        matching = (entity for entity in inside if _matches(query.filter, entity))
        return [_projected(row, query.select) for row in itertools.islice(matching, query.top)]

    def _asked(self, query: Operation) -> dict[str, Partition]:
        if query.partition_key != WHOLE_TABLE:
            return {query.partition_key: self._partition(query)}
        first, end = query.key_range.partition_from, query.key_range.partition_before
        return {
            name: partition
            for name, partition in self.partitions.get(query.table, {}).items()
            if (first is None or name >= first) and (end is None or name < end)
        }

    def _write(self, parts: tuple[Operation, ...]) -> Outcome:
        partition = self._partition(parts[0])
        before = {part.row_key: partition.rows.get(part.row_key) for part in parts}
        for part in parts:
            outcome = self._apply(partition, part)
            if outcome is not Outcome.SUCCESS:
                for row_key, entity in before.items():
                    partition.put(row_key, entity)
                return outcome
        return Outcome.SUCCESS

    def _apply(self, partition: Partition, write: Operation) -> Outcome:
        there = partition.rows.get(write.row_key)
        if write.kind is Kind.INSERT and there is not None:
            return Outcome.CONFLICT
        if write.kind in (Kind.UPDATE_MERGE, Kind.UPDATE_REPLACE, Kind.DELETE):
            if there is None:
                return Outcome.NOT_FOUND
            if write.etag not in (None, "*", there[ETAG]):
                return Outcome.PRECONDITION
        if write.kind is Kind.DELETE:
            partition.put(write.row_key, None)
            return Outcome.SUCCESS
        self._version += 1
        merged = write.kind in (Kind.UPSERT_MERGE, Kind.UPDATE_MERGE)
        kept = there if merged and there is not None else {}
        keys = {"PartitionKey": write.partition_key, "RowKey": write.row_key}
        etag = {ETAG: f'W/"{self._version}"'}
        partition.put(write.row_key, {**kept, **(write.properties or {}), **keys, **etag})
        return Outcome.SUCCESS


def _projected(entity: Entity, select: tuple[str, ...]) -> Entity:
    return {name: entity[name] for name in (*select, ETAG)} if select else dict(entity)


def _matches(condition: str | None, entity: Mapping[str, Any]) -> bool:
    return condition is None or all(_holds(term, entity) for term in condition.split(" and "))


def _holds(term: str, entity: Mapping[str, Any]) -> bool:
    parsed = _COMPARISON.fullmatch(term)
    assert parsed is not None, f"the filter {term!r} is not understood"
    name, operator, literal = parsed.groups()
    value = entity[name]
    other: Any = literal.strip("'")
    if isinstance(value, dt.datetime):
        other = dt.datetime.fromisoformat(other)
    elif isinstance(value, int):
        other = int(other)
    return bool({"eq": value == other, "lt": value < other, "ge": value >= other}[operator])
