"""What all key schemes have in common: keys, numbers of rows, and the base class.

A scheme names the loaded partitions, numbered from 0, and the rows of each, numbered from 0. It
also decides where a new row goes. RowKeys differ between partitions where the design allows it, so
that a RowKey alone identifies a row.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import ClassVar

from harness.model.operation import lean
from harness.workload.keys.row_keys import RowKeys, SequenceRows


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """PartitionKey and RowKey of an entity."""

    partition_key: str
    row_key: str


new_key = lean(Key)
"""Makes a `Key` in less time than the class does."""


class RowCounts:
    """Number of loaded rows of each partition.

    Args:
        rows: Rows of each, at least 1: one number for all, or one for each partition.

    Raises:
        ValueError: a partition has no number of rows, or less than one.
    """

    __slots__ = ("_firsts", "_same", "partitions")

    def __init__(self, partitions: int, rows: int | Sequence[int]) -> None:
        self.partitions: int = partitions
        self._same = rows if isinstance(rows, int) else 0
        self._firsts = () if self._same else (0, *itertools.accumulate(_each(partitions, rows)))

    @property
    def total(self) -> int:
        return self.before(self.partitions)

    def of(self, partition: int) -> int:
        return self._same or self._firsts[partition + 1] - self._firsts[partition]

    def before(self, partition: int) -> int:
        """Rows of all partitions with a lower number than ``partition``."""
        return self._firsts[partition] if self._firsts else partition * self._same


def _each(partitions: int, rows: int | Sequence[int]) -> Sequence[int]:
    if isinstance(rows, int) or len(rows) != partitions or min(rows) < 1:
        raise ValueError(f"{partitions} partitions need as many numbers of rows, each 1 or more")
    return rows


class KeyScheme:
    """Base class of all schemes.

    Args:
        rows: Number of loaded partitions, and of rows in each.
        prefix: Start of every PartitionKey, unless the scheme has its own.
        periods: Days, months or years of each thing, if keys consist of both.
        row_keys: The kind of RowKey; None is the documented one of the scheme.

    Raises:
        ValueError: the scheme does not allow these arguments; the message names the setting.
    """

    name: ClassVar[str]
    """Its name in profiles."""
    tables: ClassVar[tuple[str, ...]] = ("",)
    """Endings of the names of its tables; `copies` go to all but the first."""
    in_order: ClassVar[bool] = True
    """Whether PartitionKeys sort by number, so that a range of numbers is a range of keys."""
    one_row: ClassVar[bool] = False
    """Whether each entity has its own partition: no transactions, no ranges of rows."""
    own_prefix: ClassVar[str] = ""
    """Start of every PartitionKey in place of the profile's prefix, if not empty."""
    own_row_keys: ClassVar[RowKeys | None] = None
    """The kind of RowKey unless the profile sets another; None is ``sequence``."""

    def __init__(
        self,
        rows: RowCounts,
        *,
        prefix: str = "p",
        periods: int = 1,
        row_keys: RowKeys | None = None,
    ) -> None:
        for problem in self.problems(rows, periods, row_keys):
            raise ValueError(problem)
        self.rows = rows
        self.count = rows.partitions
        self.prefix = self.own_prefix or prefix
        self.periods = periods
        self.row_keys: RowKeys = row_keys or self.own_row_keys or SequenceRows(self.count)

    @classmethod
    def problems(cls, rows: RowCounts, periods: int, row_keys: RowKeys | None) -> Iterator[str]:
        """Why the scheme does not allow these arguments: one sentence for each reason."""
        if cls.one_row and rows.total != rows.partitions:
            yield (
                f"keys.rows_per_partition has to be 1: keys.scheme {cls.name!r} gives each entity "
                "a partition of its own"
            )
        if periods != 1:
            yield (
                f"keys.periods has to be 1: keys.scheme {cls.name!r} has no days, months or years"
            )

    @property
    def grows(self) -> bool:
        """Whether new rows go to a partition other than the drawn one."""
        return False

    def partition_key(self, partition: int) -> str:
        """PartitionKey of the loaded partition with this number."""
        raise NotImplementedError

    def row_key(self, partition: int, row: int) -> str:
        """RowKey of a loaded row. -1 and the number of rows give the bounds of a range."""
        return self.row_keys.loaded(partition, row, self.rows.before(partition) + row)

    def by_age(self, age: int) -> int:
        """Number of the loaded partition with this age; 0 is the newest."""
        return max(0, self.count - 1 - age)

    def inserted(self, partition: int, worker: int, number: int) -> Key:
        """Key of a new row; no two workers share one.

        Args:
            partition: The drawn partition. A scheme that grows ignores it.
            worker: Number of the worker, below 10,000.
            number: Number of the row among all that the worker inserts, from 1.
        """
        return new_key(
            partition_key=self.partition_key(partition),
            row_key=self.row_keys.inserted(worker, number, self.rows.total),
        )

    def copies(self, key: Key, number: int) -> tuple[tuple[str, Key], ...]:
        """Further keys of the entity with this first key, each with the ending of its table's name.

        ``number`` is that of the entity; loaded entities come first.
        """
        return ()
