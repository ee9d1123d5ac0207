"""PartitionKeys that grow: each entity has the next number, and a partition of its own.

Workers are told apart at the low-order end of the key, so that the order by number stays, and
what is inserted by all of them is at one end.
"""

from __future__ import annotations

import zlib
from typing import ClassVar

from harness.workload.keys import Key, KeyScheme

_WORKERS = 10_000
_DIGITS = 10
_LAST = 10**_DIGITS - 1


class AppendOnly(KeyScheme):
    """A growing sequence of zero-padded numbers: each insert makes a partition behind the last.

    Warned of by the partitioning strategy, "Range partitions", the performance checklist, "Append
    Only and Prepend Only patterns", and the data partitioning strategies, which say too that range
    queries may profit from it.
    """

    name: ClassVar[str] = "append-only"
    one_row: ClassVar[bool] = True
    grows: ClassVar[bool] = True

    def partition_key(self, partition: int) -> str:
        """The number of a loaded partition."""
        return self._label(partition)

    def inserted(self, partition: int, worker: int, number: int) -> Key:
        """The next number of this worker."""
        at = self._next(number)
        suffix = f"-{str(worker).zfill(4)}"
        return Key(
            partition_key=self._label(at, suffix),
            row_key=self.row_keys.inserted(worker, number, self.rows.total),
            place=self._place(at, worker, suffix),
        )

    def place(self, partition: int) -> float:
        """Where the loaded partition is in key order, from 0 to 1."""
        return self._place(partition)

    def _next(self, number: int) -> int:
        """Where in the sequence the ``number``-th new row of a worker is; 0 is the first loaded."""
        return self.count - 1 + number

    def _label(self, at: int, suffix: str = "") -> str:
        """PartitionKey of this place in the sequence, with the worker at the end of a new one."""
        return f"{self.prefix}{str(at).zfill(_DIGITS)}{suffix}"

    def _place(self, at: int, worker: int = 0, suffix: str = "") -> float:
        """Where that is in key order."""
        return (at + 0.5 + 0.5 * worker / _WORKERS) / self.count


class PrependOnly(AppendOnly):
    """Zero-padded numbers counted down from a maximum: each insert makes one before the first.

    Warned of with append-only by the partitioning strategy, "Range partitions", and the
    performance checklist, "Append Only and Prepend Only patterns". The loaded partition 0 is the
    newest: partitions are numbered in key order.
    """

    name: ClassVar[str] = "prepend-only"

    def by_age(self, age: int) -> int:
        """The first one is the newest."""
        return min(age, self.count - 1)

    def _next(self, number: int) -> int:
        return -number

    def _label(self, at: int, suffix: str = "") -> str:
        return super()._label(_LAST - self.count + 1 + at, suffix)


class AppendOnlyUnpadded(AppendOnly):
    """The append-only sequence without zero-padding, so that 111 comes before 2.

    Warned of by the partitioning strategy, "Table primary key": keys are compared as text.
    """

    name: ClassVar[str] = "append-only-unpadded"
    in_order: ClassVar[bool] = False

    def _label(self, at: int, suffix: str = "") -> str:
        return f"{self.prefix}{at}{suffix}"

    def _place(self, at: int, worker: int = 0, suffix: str = "") -> float:
        # The end of a key sorts before any digit: digits become 1 to 10 in base 11, the end 0.
        digits = str(at).translate(_DIGITS_FROM_1).ljust(_DIGITS + 1, "0")
        return (int(digits, 11) * _WORKERS + worker) / _UNPADDED_END


_DIGITS_FROM_1 = str.maketrans("0123456789", "123456789a")
_UNPADDED_END: int = 11 ** (_DIGITS + 1) * _WORKERS
"""Below 2^53, so that places are exact."""


class HashPrefix(AppendOnly):
    """The append-only sequence behind a three-digit hash of it, which scatters it.

    Advised by the data partitioning strategies (hash the partition key; a three-digit hash as
    prefix), against append-only. It costs the range queries.
    """

    name: ClassVar[str] = "hash-prefix"
    in_order: ClassVar[bool] = False

    def _label(self, at: int, suffix: str = "") -> str:
        key = f"{self.prefix}{str(at).zfill(_DIGITS)}{suffix}"
        return f"{str(zlib.crc32(key.encode()) % 1000).zfill(3)}-{key}"

    def _place(self, at: int, worker: int = 0, suffix: str = "") -> float:
        number = at + worker / _WORKERS
        # The lower half of each prefix is for loaded keys, the upper half for all to come.
        return (int(self._label(at, suffix)[:3]) + number / (number + self.count)) / 1000
