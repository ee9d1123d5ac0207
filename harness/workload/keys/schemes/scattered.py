"""PartitionKeys without order: each entity has its own, anywhere in the table."""

from __future__ import annotations

from collections.abc import Iterator

from harness.workload.keys.row_keys import EmptyRows, RowKeys, guid, new_number, scattered
from harness.workload.keys.scheme import Key, KeyScheme, RowCounts, new_key


class Unique(KeyScheme):
    """A GUID per entity.

    Advised by the partitioning strategy, "Storage operations", instead of append-only; key design
    for blog posts warns of it (anti-patterns: groups cannot be queried).
    """

    name = "unique"
    in_order = False
    one_row = True
    grows = True

    def partition_key(self, partition: int) -> str:
        return guid(scattered(partition))

    def inserted(self, partition: int, worker: int, number: int) -> Key:
        return new_key(
            partition_key=self.partition_key(new_number(worker, number)),
            row_key=self.row_keys.inserted(worker, number, self.rows.total),
        )


class NaturalKey(Unique):
    """The natural key of the entity, such as a user name; the RowKey is empty.

    Advised by the data partitioning strategies and the partitioning strategy (one key property),
    and by the performance checklist, "Tables and partitions" (the user's id).
    """

    name = "natural-key"
    own_row_keys = EmptyRows()

    @classmethod
    def problems(cls, rows: RowCounts, periods: int, row_keys: RowKeys | None) -> Iterator[str]:
        if row_keys is not None:
            yield f"keys.row_keys: the RowKey of keys.scheme {cls.name!r} is empty"
        yield from super().problems(rows, periods, row_keys)

    def partition_key(self, partition: int) -> str:
        # An odd factor can be undone: no two results are equal. This one spreads most evenly.
        value = (partition + 1) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
        return f"user-{value:016x}"
