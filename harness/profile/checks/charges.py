"""The request units that a profile would take at Cosmos DB, by name, PartitionKey and partition.

The charges are those of `harness.model.request_units`, which says what is published and what is
assumed. Assumed here: an upsert replaces an entity unless its partition is new, every point query
finds its entity, and a query whose filter is not known returns all that it walks.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable

from harness.measure.counts.behaviour import PAGE_ENTITIES
from harness.model.operation import Kind, Operation, over_partitions, table_and_key
from harness.model.physical_partitions import PhysicalPartitions
from harness.model.request_units import QUERY_PAGE, RU, UNKNOWN_BYTES, charge
from harness.model.target import Throughput
from harness.profile.checks.prediction import LoadShares
from harness.profile.checks.seen import ChargedKind, ChargesSeen
from harness.workload.entity_factory import wire_bytes

_SELECTED_BYTES = 40
"""A property in an answer, if not all are returned."""
_Written = tuple[Kind, int, int, int, bool]


class ChargedLoad:
    """Adds up the charges of operations.

    Args:
        partitions: The loaded ones, or `harness.profile.checks.prediction.thinned`.
        entity_bytes: An entity as JSON.
        throughput: What is provisioned.
    """

    def __init__(
        self, partitions: Iterable[str], entity_bytes: int, throughput: Throughput
    ) -> None:
        self._entity_bytes = entity_bytes
        self._throughput = throughput
        self._physical = PhysicalPartitions.even(throughput.fewest_partitions)
        self._shares = LoadShares(partitions)
        self._count = 0
        self._counts: collections.Counter[str] = collections.Counter()
        self._charges: collections.Counter[str] = collections.Counter()
        self._written: dict[_Written, tuple[int, int]] = {}
        self._largest_transaction = 0

    def add(self, operation: Operation, *, creates: bool, matching: int | None) -> None:
        """Count an operation.

        Args:
            creates: Whether an upsert makes a new entity.
            matching: Entities that pass the filter of a query; None if unknown.
        """
        if operation.kind is Kind.QUERY:
            charged = self._queried(operation, matching)
        elif operation.kind is Kind.POINT_QUERY:
            charged = charge(operation.kind, self._returned_bytes(operation))
        else:
            parts = [self._of_write(part, creates) for part in operation.parts or (operation,)]
            charged = sum(each for each, _ in parts)
            if operation.parts:
                size = sum(size for _, size in parts)
                self._largest_transaction = max(self._largest_transaction, size)
        self._count += 1
        self._counts[operation.label] += 1
        self._charges[operation.label] += charged
        self._shares.add(operation, charged)

    def seen(
        self, operations_per_s: float | None, keys: Iterable[tuple[Iterable[str], Iterable[str]]]
    ) -> ChargesSeen:
        """What was added; ``keys`` are PartitionKeys and RowKeys of each table."""
        total = self._charges.total()
        each = total / RU / (self._count or 1)
        kinds = (
            ChargedKind(
                label=label,
                each=charged / RU / self._counts[label],
                share=charged / (total or 1),
            )
            for label, charged in self._charges.most_common()
        )
        known = [(list(partitions), list(rows)) for partitions, rows in keys]
        return ChargesSeen(
            kinds=tuple(kinds),
            each=each,
            entity_bytes=self._entity_bytes,
            per_s=None if operations_per_s is None else operations_per_s * each,
            shares=self._shares.prediction(),
            physical_share=self._shares.largest(
                lambda name: self._physical.of(table_and_key(name)[1]), len(self._physical)
            ),
            throughput=self._throughput,
            longest_partition_key=_longest(key for partitions, _ in known for key in partitions),
            longest_row_key=_longest(key for _, rows in known for key in rows),
            largest_transaction=self._largest_transaction,
        )

    def _of_write(self, part: Operation, creates: bool) -> tuple[int, int]:
        """Charge and bytes of a single write; those of one like it, if there was one."""
        properties = part.properties or {}
        shape = (part.kind, len(part.partition_key), len(part.row_key), len(properties), creates)
        known = self._written.get(shape)
        if known is None:
            size = UNKNOWN_BYTES
            if part.kind is not Kind.DELETE:
                size = wire_bytes(part.partition_key, part.row_key, properties)
            charged = charge(part.kind, size, properties=len(properties), replaces=not creates)
            known = self._written[shape] = charged, size
        return known

    def _queried(self, query: Operation, matching: int | None) -> int:
        walked = query.key_range.entities or 0
        found = walked if matching is None else matching
        returned = found if query.top is None else min(found, query.top)
        if returned < found:
            # It ends where it has enough.
            walked = walked * returned // found
        physical = len(self._physical) if over_partitions(query.partition) else 1
        further = max(0, -(-returned // PAGE_ENTITIES) - 1)
        return further * physical * QUERY_PAGE + charge(
            query.kind,
            returned * self._returned_bytes(query),
            walked=walked,
            returned=returned,
            physical=physical,
        )

    def _returned_bytes(self, read: Operation) -> int:
        return len(read.select) * _SELECTED_BYTES or self._entity_bytes


def _longest(keys: Iterable[str]) -> int:
    return max(map(utf8_bytes, keys), default=0)


def utf8_bytes(key: str) -> int:
    return len(key.encode("utf-8", "surrogatepass"))
