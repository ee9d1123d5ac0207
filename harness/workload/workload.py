"""What is sent: a mix of operations over the keys of a scheme.

The list of operations depends on the arguments and the random source alone: the same seed gives
the same list.
"""

from __future__ import annotations

import bisect
import collections
import itertools
import random
from collections.abc import Iterator, Mapping

from harness.model.entity import MAX_TRANSACTION_OPERATIONS
from harness.model.operation import Kind, Operation, transaction
from harness.workload.entities import EntityFactory
from harness.workload.keys import NumberedKeys, Picker

_REMEMBERED_INSERTS = 100_000
"""Rows that wait for a delete; the oldest are forgotten beyond it."""


class Mix:
    """Draws a kind of operation in proportion to its weight."""

    __slots__ = ("_cumulated", "_kinds", "_total")

    def __init__(self, weights: Mapping[Kind, float]) -> None:
        wanted = [(kind, weight) for kind, weight in weights.items() if weight > 0]
        self._kinds = tuple(kind for kind, _ in wanted)
        self._cumulated = tuple(itertools.accumulate(weight for _, weight in wanted))
        self._total = self._cumulated[-1]

    def draw(self, rng: random.Random) -> Kind:
        """The next kind."""
        place = bisect.bisect_right(self._cumulated, rng.random() * self._total)
        return self._kinds[min(place, len(self._kinds) - 1)]


class Workload:
    """The operations of one worker.

    Reads, upserts, updates and transactions go to rows that were loaded. Inserts make new rows;
    a delete takes the oldest row that this worker inserted, and where there is none it is an
    insert, so that a delete never depends on chance.

    Args:
        keys: Names of partitions and rows.
        picker: Which partition is touched next.
        rows_per_partition: Loaded rows of each partition.
        mix: Which kind of operation is next.
        entities: Makes the properties of writes.
        transaction_size: Operations of a transaction, at most ``rows_per_partition``.
        transaction_kind: What each operation of a transaction does.
        worker: Number of the worker; keeps the RowKeys of inserts apart.
        loading_size: Entities of a transaction that loads.
    """

    def __init__(
        self,
        *,
        keys: NumberedKeys,
        picker: Picker,
        rows_per_partition: int,
        mix: Mix,
        entities: EntityFactory,
        transaction_size: int,
        transaction_kind: Kind = Kind.UPSERT_MERGE,
        worker: int = 0,
        loading_size: int = MAX_TRANSACTION_OPERATIONS,
    ) -> None:
        self._keys = keys
        self._picker = picker
        self._rows = rows_per_partition
        self._mix = mix
        self._entities = entities
        self._transaction_size = transaction_size
        self._transaction_kind = transaction_kind
        self._worker = worker
        self._loading_size = loading_size
        self._number = 0
        self._inserted = 0
        self._deletable: collections.deque[tuple[str, str]] = collections.deque(
            maxlen=_REMEMBERED_INSERTS
        )

    def next(self, rng: random.Random) -> Operation:
        """The next operation."""
        kind = self._mix.draw(rng)
        if kind is Kind.DELETE and self._deletable:
            partition_key, row_key = self._deletable.popleft()
            return Operation(kind=kind, partition_key=partition_key, row_key=row_key)
        partition = self._picker.draw(rng)
        if kind is Kind.TRANSACTION:
            return self._transaction(partition, rng)
        if kind in (Kind.INSERT, Kind.DELETE):
            return self._insert(partition)
        row_key = self._keys.loaded_row_key(partition, int(rng.random() * self._rows))
        partition_key = self._keys.partition_key(partition)
        if kind is Kind.POINT_QUERY:
            return Operation(kind=kind, partition_key=partition_key, row_key=row_key)
        return self._write(kind, partition_key, row_key)

    def loading(self) -> Iterator[Operation]:
        """The transactions that load every partition, in key order."""
        for partition in range(self._keys.count):
            partition_key = self._keys.partition_key(partition)
            for first in range(0, self._rows, self._loading_size):
                last = min(first + self._loading_size, self._rows)
                yield transaction(
                    tuple(
                        self._write(
                            Kind.INSERT, partition_key, self._keys.loaded_row_key(partition, row)
                        )
                        for row in range(first, last)
                    )
                )

    def _write(self, kind: Kind, partition_key: str, row_key: str) -> Operation:
        self._number += 1
        properties = self._entities.properties(partition_key, row_key, self._number)
        return Operation(
            kind=kind, partition_key=partition_key, row_key=row_key, properties=properties
        )

    def _insert(self, partition: int) -> Operation:
        self._inserted += 1
        partition_key = self._keys.partition_key(partition)
        row_key = self._keys.inserted_row_key(self._worker, self._inserted)
        self._deletable.append((partition_key, row_key))
        return self._write(Kind.INSERT, partition_key, row_key)

    def _transaction(self, partition: int, rng: random.Random) -> Operation:
        partition_key = self._keys.partition_key(partition)
        if self._transaction_kind is Kind.INSERT:
            parts = tuple(self._insert(partition) for _ in range(self._transaction_size))
        else:
            # Consecutive rows, wrapped round: distinct as long as there are enough of them.
            first = int(rng.random() * self._rows)
            parts = tuple(
                self._write(
                    self._transaction_kind,
                    partition_key,
                    self._keys.loaded_row_key(partition, (first + offset) % self._rows),
                )
                for offset in range(self._transaction_size)
            )
        return transaction(parts)
