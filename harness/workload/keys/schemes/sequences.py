"""PartitionKeys that grow: each entity has the next number, and a partition of its own.

Workers are told apart at the low-order end of the key, so that the order by number stays, and
what is inserted by all of them is at one end.
"""

from __future__ import annotations

import zlib

from harness.workload.keys.scheme import Key, KeyScheme, new_key

_DIGITS = 10
_LAST = 10**_DIGITS - 1


class AppendOnly(KeyScheme):
    """Ascending zero-padded numbers: each insert creates a partition after the last one.

    Warned of by the partitioning strategy, "Range partitions", the performance checklist, "Append
    Only and Prepend Only patterns", and the data partitioning strategies, which say too that range
    queries may profit from it.
    """

    name = "append-only"
    one_row = True
    grows = True

    def partition_key(self, partition: int) -> str:
        return self._label(partition)

    def inserted(self, partition: int, worker: int, number: int) -> Key:
        return new_key(
            partition_key=self._label(self._next(number), f"-{str(worker).zfill(4)}"),
            row_key=self.row_keys.inserted(worker, number, self.rows.total),
        )

    def _next(self, number: int) -> int:
        """Place of a worker's new row in the sequence; the first loaded row has place 0."""
        return self.count - 1 + number

    def _label(self, at: int, suffix: str = "") -> str:
        """PartitionKey of a place in the sequence; ``suffix`` is the worker of a new row."""
        return f"{self.prefix}{str(at).zfill(_DIGITS)}{suffix}"


class PrependOnly(AppendOnly):
    """Descending zero-padded numbers: each insert creates a partition before the first one.

    Warned of with append-only by the partitioning strategy, "Range partitions", and the
    performance checklist, "Append Only and Prepend Only patterns". The loaded partition 0 is the
    newest: partitions are numbered in key order.
    """

    name = "prepend-only"

    def by_age(self, age: int) -> int:
        return min(age, self.count - 1)

    def _next(self, number: int) -> int:
        return -number

    def _label(self, at: int, suffix: str = "") -> str:
        return super()._label(_LAST - self.count + 1 + at, suffix)


class AppendOnlyUnpadded(AppendOnly):
    """The append-only sequence without zero-padding: 111 sorts before 2.

    Warned of by the partitioning strategy, "Table primary key": keys are compared as text.
    """

    name = "append-only-unpadded"
    in_order = False

    def _label(self, at: int, suffix: str = "") -> str:
        return f"{self.prefix}{at}{suffix}"


class HashPrefix(AppendOnly):
    """The append-only sequence with a three-digit hash as prefix, which scatters it.

    Advised by the data partitioning strategies (hash the partition key; a three-digit hash as
    prefix), against append-only. Range queries over the sequence are no longer possible.
    """

    name = "hash-prefix"
    in_order = False

    def _label(self, at: int, suffix: str = "") -> str:
        key = f"{self.prefix}{str(at).zfill(_DIGITS)}{suffix}"
        return f"{str(zlib.crc32(key.encode()) % 1000).zfill(3)}-{key}"
