"""PartitionKeys without order: each entity has its own, anywhere in the table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from harness.workload.keys.row_keys import EmptyRows, RowKeys, guid, new_number, scattered
from harness.workload.keys.scheme import Key, KeyScheme, RowCounts, new_key


class Unique(KeyScheme):
    """A GUID per entity.

    Advised by the partitioning strategy, "Storage operations", instead of append-only; key design
    for blog posts warns of it (anti-patterns: groups cannot be queried).
    """

    name: ClassVar[str] = "unique"
    in_order: ClassVar[bool] = False
    one_row: ClassVar[bool] = True
    grows = True

    def partition_key(self, partition: int) -> str:
        """The key of a loaded entity."""
        return self._label(partition)

    def inserted(self, partition: int, worker: int, number: int) -> Key:
        """A key that no loaded entity and no other worker has."""
        return new_key(
            partition_key=self._label(new_number(worker, number)),
            row_key=self.row_keys.inserted(worker, number, self.rows.total),
        )

    @staticmethod
    def _label(number: int) -> str:
        """PartitionKey of the entity with this number, which no other number has."""
        return guid(scattered(number))


class NaturalKey(Unique):
    """The natural key of the entity, such as a user name; the RowKey is empty.

    Advised by the data partitioning strategies and the partitioning strategy (one key property),
    and by the performance checklist, "Tables and partitions" (the user's id).
    """

    name: ClassVar[str] = "natural-key"
    own_row_keys: ClassVar[RowKeys | None] = EmptyRows()

    @classmethod
    def problems(
        cls, rows: RowCounts, *, periods: int = 1, row_keys: RowKeys | None = None
    ) -> Iterator[str]:
        """Its RowKey is empty."""
        if row_keys is not None:
            yield f"keys.row_keys: the RowKey of keys.scheme {cls.name!r} is empty"
        yield from super().problems(rows, periods=periods)

    @staticmethod
    def _label(number: int) -> str:
        # An odd factor can be undone: no two numbers meet. This one spreads them most evenly.
        value = (number + 1) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
        return f"user-{value:016x}"
