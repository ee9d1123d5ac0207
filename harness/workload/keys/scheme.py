"""Key schemes: which PartitionKeys and RowKeys there are.

A scheme numbers its loaded partitions from 0, and the rows of each from 0, and names them. It
also says where a new row goes. RowKeys differ between partitions too wherever the design allows
it, so that one row is found by its RowKey alone. The schemes themselves are in `schemes/`.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import ClassVar

from harness.model.lean import lean
from harness.workload.rowkeys import RowKeys, SequenceRows


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """PartitionKey and RowKey of an entity."""

    partition_key: str
    row_key: str


new_key = lean(Key)
"""Makes a `Key`, for those who make one after the other."""


class Rows:
    """How many rows each partition is loaded with.

    Args:
        partitions: How many partitions.
        rows: Rows of each, 1 or more: one number for all, or one for each partition.

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
        """Rows of all partitions together."""
        return self.before(self.partitions)

    def of(self, partition: int) -> int:
        """Rows of one partition."""
        return self._same or self._firsts[partition + 1] - self._firsts[partition]

    def before(self, partition: int) -> int:
        """Rows of all partitions with a lower number than ``partition``, at most `partitions`."""
        return self._firsts[partition] if self._firsts else partition * self._same


def _each(partitions: int, rows: int | Sequence[int]) -> Sequence[int]:
    if isinstance(rows, int) or len(rows) != partitions or min(rows) < 1:
        raise ValueError(f"{partitions} partitions need as many numbers of rows, each 1 or more")
    return rows


class KeyScheme:
    """Base of all schemes: what most of them have in common.

    Args:
        rows: How many partitions are loaded, and with how many rows each.
        prefix: What every PartitionKey starts with, where the scheme has no names of its own.
        periods: How many days, months or years each thing has, where keys are made of both.
        row_keys: How rows are named; None is what the scheme is documented with.

    Raises:
        ValueError: there is no such scheme; `problem` says why.
    """

    name: ClassVar[str]
    """What the documents and profiles call it."""
    tables: ClassVar[tuple[str, ...]] = ("",)
    """Endings of the names of the tables it fills; `copies` go to all but the first."""
    in_order: ClassVar[bool] = True
    """Whether partition numbers are in key order: then a range of numbers is a range of keys."""
    one_row: ClassVar[bool] = False
    """Whether each entity has a partition of its own: no transactions, no range of rows."""
    own_row_keys: ClassVar[RowKeys | None] = None
    """How rows are named unless the profile says otherwise; None is in sequence."""

    def __init__(
        self,
        rows: Rows,
        *,
        prefix: str = "p",
        periods: int = 1,
        row_keys: RowKeys | None = None,
    ) -> None:
        if (problem := self.problem(rows, periods=periods, row_keys=row_keys)) is not None:
            raise ValueError(problem)
        self.rows = rows
        self.count = rows.partitions
        self.prefix = prefix
        self.periods = periods
        self.row_keys: RowKeys = row_keys or self.own_row_keys or SequenceRows(self.count)

    @classmethod
    def problem(
        cls, rows: Rows, *, periods: int = 1, row_keys: RowKeys | None = None
    ) -> str | None:
        """The first of `problems`; None if there is none."""
        return next(cls.problems(rows, periods=periods, row_keys=row_keys), None)

    @classmethod
    def problems(
        cls, rows: Rows, *, periods: int = 1, row_keys: RowKeys | None = None
    ) -> Iterator[str]:
        """Every reason why there cannot be this scheme with these arguments, as sentences."""
        if cls.one_row and rows.total != rows.partitions:
            yield (
                f"keys.rows_per_partition has to be 1: keys.scheme {cls.name!r} gives each entity "
                "a partition of its own"
            )
        if periods != 1:
            yield (
                f"keys.periods has to be 1: keys.scheme {cls.name!r} has no days, months or years "
                "of each thing"
            )

    @property
    def grows(self) -> bool:
        """Whether new rows go elsewhere than to the partition that was drawn."""
        return False

    @property
    def can_transact(self) -> bool:
        """Whether a partition has rows enough for a transaction."""
        return not self.one_row

    def partition_key(self, partition: int) -> str:
        """PartitionKey of the loaded partition with this number."""
        raise NotImplementedError

    def row_key(self, partition: int, row: int) -> str:
        """RowKey of a loaded row. Numbers one before the first and behind the last are bounds."""
        return self.row_keys.loaded(partition, row, self.rows.before(partition) + row)

    def by_age(self, age: int) -> int:
        """Number of the loaded partition than which so many are newer; 0 is the newest."""
        return max(0, self.count - 1 - age)

    def inserted(self, partition: int, worker: int, number: int) -> Key:
        """Key of a new row; no two workers share one.

        Args:
            partition: The partition that was drawn. A scheme that grows goes elsewhere.
            worker: Number of the worker, below 10,000.
            number: Number of the row among all that the worker inserts, from 1.
        """
        return new_key(
            partition_key=self.partition_key(partition),
            row_key=self.row_keys.inserted(worker, number, self.rows.total),
        )

    def copies(self, key: Key, number: int) -> tuple[tuple[str, Key], ...]:
        """Further keys under which the entity is stored too, each with the table's ending.

        Args:
            key: Its first key.
            number: Number of the entity, loaded ones first.
        """
        return ()
