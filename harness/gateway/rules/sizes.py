"""What is too large for Azure Cosmos DB: keys, entities, transactions, all of one PartitionKey.

Source of requests: "Azure Cosmos DB service quotas": a partition key has at most 2,048 bytes, or
101 in a container without large partition keys, and an item at most 2 MB in JSON ("Per-item
limits"). "Frequently asked questions about Azure Cosmos DB for Table": a RowKey has at most 255
bytes, and a batch at most 2 MB. Assumed: the size of a transaction is that of its entities.

Source of PartitionKeys: "Partitioning and horizontal scaling in Azure Cosmos DB", "Logical
partitions": the entities with one PartitionKey have 20 GB at most. "Diagnose and troubleshoot Azure
Cosmos DB forbidden exceptions", "Partition key exceeding storage": what would add to them is
answered with 403, and the sub-status 1014. Each table is a container with logical partitions of its
own.

Assumed: an entity has the size of its JSON as it was sent, and its index takes nothing; a write
that adds nothing passes; what is deleted or replaced is free at once. Not known: entities that no
write through the gateway had told, writes whose answer was lost, and what a merge leaves of an
entity. A merge counts as the larger of what was there and what was sent.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterator, Mapping

from harness.gateway.contents import MOST_ROWS
from harness.gateway.limits import RequestUnitLimits
from harness.gateway.requests import Asked
from harness.model.operation import Kind

Growth = Mapping[str, int]
"""By how many bytes each PartitionKey of a table grows; negative where it becomes smaller."""


def keys_too_long(asked: Asked, limits: RequestUnitLimits) -> bool:
    keys = [(asked.partition_key, asked.row_key), *(row[:2] for row in asked.rows)]
    return any(
        _over(partition_key, limits.partition_key_bytes) or _over(row_key, limits.row_key_bytes)
        for partition_key, row_key in keys
    )


def _over(key: str | None, most: int) -> bool:
    # No character takes more than four bytes.
    return key is not None and 4 * len(key) > most and len(key.encode("utf-8", "replace")) > most


def too_large(asked: Asked, limits: RequestUnitLimits) -> bool:
    """Whether a request writes too many bytes."""
    return sum([weight.size for weight in asked.weights]) > limits.request_bytes


@dataclasses.dataclass(slots=True)
class _Stored:
    """What is stored with one PartitionKey of a table; ``sizes`` are those of remembered rows."""

    bytes: int = 0
    entities: int = 0
    sizes: dict[str, int] = dataclasses.field(default_factory=dict)


class VolumeRule:
    """Follows the stored bytes of each PartitionKey of each table.

    The sizes of at most ``most_rows`` rows are remembered. One more has the mean size of its
    PartitionKey when it is updated or deleted, and counts as new when it is upserted. Of as many
    PartitionKeys what is stored is remembered. One more is never full, and never becomes smaller.
    """

    def __init__(self, limits: RequestUnitLimits, most_rows: int = MOST_ROWS) -> None:
        self._most_bytes = limits.logical_partition_bytes
        self._most_rows = most_rows
        self._tables: dict[str, dict[str, _Stored]] = {}
        self._keys = self._remembered = 0

    def exceeds(self, asked: Asked) -> bool:
        """Whether a write would store more with a PartitionKey than is allowed."""
        growth: collections.Counter[str] = collections.Counter()
        for key, _, before, after in self._changes(asked):
            growth[key] += (after or 0) - (before or 0)
        table = self._tables.get(asked.table, {})
        return any(
            by > 0 and (table[key].bytes if key in table else 0) + by > self._most_bytes
            for key, by in growth.items()
        )

    def wrote(self, asked: Asked) -> Growth:
        """Count a write that was executed."""
        growth: collections.Counter[str] = collections.Counter()
        table = self._tables.setdefault(asked.table, {})
        for key, row, before, after in self._changes(asked):
            by = (after or 0) - (before or 0)
            growth[key] += by
            stored = table.get(key)
            if stored is None:
                if after is None or self._keys >= self._most_rows:
                    continue
                stored = table[key] = _Stored()
                self._keys += 1
            stored.bytes += by
            stored.entities += (after is not None) - (before is not None)
            self._remembered -= stored.sizes.pop(row, None) is not None
            if after is not None and self._remembered < self._most_rows:
                stored.sizes[row] = after
                self._remembered += 1
            if not stored.entities:
                # Sizes by the mean may leave some bytes.
                growth[key] -= stored.bytes
                del table[key]
                self._keys -= 1
        return growth

    def dropped(self, table: str) -> Growth:
        """Forget a table that was deleted."""
        gone = self._tables.pop(table, {})
        self._keys -= len(gone)
        self._remembered -= sum(len(stored.sizes) for stored in gone.values())
        return {key: -stored.bytes for key, stored in gone.items()}

    @property
    def largest(self) -> tuple[str, str, int]:
        """Table, PartitionKey and bytes of the one that stores most; empty before any write."""
        sizes = (
            (table, key, stored.bytes)
            for table, keys in self._tables.items()
            for key, stored in keys.items()
        )
        return max(sizes, key=lambda one: one[2], default=("", "", 0))

    def _changes(self, asked: Asked) -> Iterator[tuple[str, str, int | None, int | None]]:
        """Keys of each entity that a write changes, and its bytes before and after; None for none.

        What cannot be read is left out.
        """
        table = self._tables.get(asked.table, {})
        kinds = asked.kinds if asked.kind is Kind.TRANSACTION else (asked.kind,)
        for kind, row, weight in zip(kinds, asked.rows, asked.weights, strict=False):
            key, row_key, _ = row
            if kind is None or key is None or row_key is None:
                continue
            before, stored = None, table.get(key)
            if stored is not None:
                before = stored.sizes.get(row_key)
                if before is None and kind.needs_row and stored.entities > len(stored.sizes):
                    before = stored.bytes // stored.entities
            after: int | None = weight.size
            if kind is Kind.DELETE:
                after = None
            elif before is not None and kind.merges:
                after = max(before, weight.size)
            yield key, row_key, before, after
