"""What a worker inserted and remembers, so that it can delete and move it later."""

from __future__ import annotations

import collections
from typing import Generic, TypeVar

_T = TypeVar("_T")


class ByPartition(Generic[_T]):
    """Rows of which the oldest of any one partition can be taken.

    Args:
        most: So many are remembered, of all partitions together.
    """

    __slots__ = ("_count", "_most", "_rows")

    def __init__(self, most: int) -> None:
        self._rows: dict[str, collections.deque[_T]] = {}
        self._most = most
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, partition_key: str, row: _T) -> None:
        """Remember one more; beyond the bound one of the partition that is known longest goes."""
        self._rows.setdefault(partition_key, collections.deque()).append(row)
        self._count += 1
        if self._count > self._most:
            self.take(next(iter(self._rows)))

    def take(self, partition_key: str) -> _T | None:
        """The oldest row of this partition, which is forgotten; None where there is none."""
        rows = self._rows.get(partition_key)
        if rows is None:
            return None
        self._count -= 1
        row = rows.popleft()
        if not rows:
            del self._rows[partition_key]
        return row
