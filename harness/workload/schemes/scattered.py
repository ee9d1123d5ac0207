"""PartitionKeys without order: each entity has one of its own, anywhere in the table."""

from __future__ import annotations

from typing import ClassVar

from harness.workload.keys import Key, KeyScheme, Rows
from harness.workload.rowkeys import EmptyRows, RowKeys, guid, new_number, scattered


class Unique(KeyScheme):
    """A GUID for each entity.

    Advised by the partitioning strategy, "Storage operations", against append-only; key design for
    blog posts warns of it (anti-patterns: groups cannot be queried).
    """

    name: ClassVar[str] = "unique"
    in_order: ClassVar[bool] = False
    one_row: ClassVar[bool] = True
    grows = True

    def partition_key(self, partition: int) -> str:
        """The key of a loaded entity."""
        return self._label(self._value(partition))

    def inserted(self, partition: int, worker: int, number: int) -> Key:
        """A key that no loaded entity and no other worker has."""
        value = self._value(new_number(worker, number))
        return Key(
            partition_key=self._label(value),
            row_key=self.row_keys.inserted(worker, number, self.rows.total),
            place=value / self._values,
        )

    def place(self, partition: int) -> float:
        """Where the loaded key is among all that there may be, from 0 to 1."""
        return self._value(partition) / self._values

    _values: ClassVar[int] = 1 << 128
    _value = staticmethod(scattered)
    _label = staticmethod(guid)


class NaturalKey(Unique):
    """The natural key of the entity, a user's name for example, and an empty RowKey.

    Advised by the data partitioning strategies and the partitioning strategy (one key property),
    and by the performance checklist, "Tables and partitions" (the user's id).
    """

    name: ClassVar[str] = "natural-key"
    own_row_keys: ClassVar[RowKeys | None] = EmptyRows()

    @classmethod
    def problem(
        cls, rows: Rows, *, periods: int = 1, row_keys: RowKeys | None = None
    ) -> str | None:
        """Its RowKey is empty."""
        if row_keys is not None:
            return f"keys.row_keys: the RowKey of keys.scheme {cls.name!r} is empty"
        return super().problem(rows, periods=periods)

    _values: ClassVar[int] = 1 << 64

    @staticmethod
    def _value(number: int) -> int:
        # An odd factor can be undone: no two numbers meet. This one spreads them most evenly.
        return (number + 1) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF

    @staticmethod
    def _label(value: int) -> str:
        return f"user-{value:016x}"
