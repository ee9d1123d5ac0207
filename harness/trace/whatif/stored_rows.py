"""How many rows of each table are in ranges of keys, while a trace writes and deletes them.

Rows are in the order of keys (`harness.trace.whatif.queries.BETWEEN`). Up to 200,000 rows of all
tables are known exactly; of more, a part that is chosen by hash is, and its number is scaled up.
"""

from __future__ import annotations

import bisect
import heapq
import itertools
import zlib
from collections.abc import Iterator, Mapping, Sequence

from harness.model.entity import of_sort_key, sort_key
from harness.trace.whatif.queries import BETWEEN, NewRange

_MOST_ROWS = 200_000
_BLOCK = 512
MOST_SHARES = 64
"""Partitions of a range whose rows are told apart: of more, the first, and those with most rows."""
_GROWN = 1.1
"""The partitions with the most rows are looked for again when there are so many more rows."""
_MOST_RANGES = 1000
_MOST_WALKED = 5000
"""Partitions in which the beginning of a range is looked for."""

Shares = Sequence[tuple[str, int]]
"""PartitionKeys, and the rows of each."""


class SortedKeys:
    """A set of texts in order."""

    __slots__ = ("_blocks", "_firsts", "size")

    def __init__(self) -> None:
        self._blocks: list[list[str]] = [[]]
        self._firsts = [""]
        self.size = 0

    def add(self, key: str) -> bool:
        """Add a text; False if it is there."""
        number = bisect.bisect_right(self._firsts, key) - 1
        block = self._blocks[number]
        at = bisect.bisect_left(block, key)
        if at < len(block) and block[at] == key:
            return False
        block.insert(at, key)
        self.size += 1
        if len(block) > 2 * _BLOCK:
            self._blocks.insert(number + 1, block[_BLOCK:])
            self._firsts.insert(number + 1, block[_BLOCK])
            del block[_BLOCK:]
        return True

    def remove(self, key: str) -> bool:
        """Remove a text; False if it is not there."""
        number = bisect.bisect_right(self._firsts, key) - 1
        block = self._blocks[number]
        at = bisect.bisect_left(block, key)
        if at == len(block) or block[at] != key:
            return False
        del block[at]
        self.size -= 1
        if not block and number:
            del self._blocks[number], self._firsts[number]
        return True

    def between(self, first: str, before: str | None) -> int:
        """How many texts are from ``first`` on and before ``before``; None is no end."""
        if not first and before is None:
            return self.size
        low, low_at = self._place(first)
        if before is None:
            return sum(map(len, self._blocks[low:])) - low_at
        high, high_at = self._place(before)
        return max(0, sum(map(len, self._blocks[low:high])) - low_at + high_at)

    def since(self, first: str, before: str | None) -> Iterator[str]:
        """These texts, in order."""
        number, at = self._place(first)
        for block in self._blocks[number:]:
            for key in block[at:]:
                if before is not None and key >= before:
                    return
                yield key
            at = 0

    def _place(self, key: str) -> tuple[int, int]:
        number = bisect.bisect_right(self._firsts, key) - 1
        return number, bisect.bisect_left(self._blocks[number], key)


class _Table:
    """The rows of a table that are known."""

    __slots__ = ("_largest", "keys", "partitions", "rows")

    def __init__(self) -> None:
        self.rows, self.keys = SortedKeys(), SortedKeys()
        self.partitions: dict[str, int] = {}
        # By range of partitions: how many rows the table had then, and those with the most.
        self._largest: dict[tuple[str, str | None], tuple[int, list[str]]] = {}

    def largest(self, first: str, before: str | None) -> list[str]:
        """The PartitionKeys of a range with the most rows, in order."""
        keys = [*itertools.islice(self.keys.since(first, before), MOST_SHARES + 1)]
        if len(keys) <= MOST_SHARES:
            return keys
        looked_at, found = self._largest.get((first, before), (0, keys))
        if not looked_at <= self.rows.size <= looked_at * _GROWN:
            if len(self._largest) >= _MOST_RANGES:
                self._largest.clear()
            every = self.keys.since(first, before)
            found = sorted(heapq.nlargest(MOST_SHARES, every, self.partitions.__getitem__))
            self._largest[first, before] = self.rows.size, found
        # A scan begins at the first of them, whatever it holds.
        others = (key for key in found if key in self.partitions and key != keys[0])
        return [keys[0], *others]

    def note(self, row: str, *, stays: bool) -> bool:
        partition_key = row.partition(BETWEEN)[0]
        if stays:
            if not self.rows.add(row):
                return False
            number = self.partitions[partition_key] = self.partitions.get(partition_key, 0) + 1
            if number == 1:
                self.keys.add(partition_key)
        elif self.rows.remove(row):
            self.partitions[partition_key] -= 1
            if not self.partitions[partition_key]:
                del self.partitions[partition_key]
                self.keys.remove(partition_key)
        else:
            return False
        return True


class StoredRows:
    """The rows of all tables of a trace, under the keys of a scheme.

    Args:
        before: How many rows each table had before the trace, in all; those of them that are not
            known are taken to be spread over partitions as the known ones are.

    Attributes:
        doubted: Tables with fewer rows than there may be: a write that may have made one was taken
            for the write of one that was there.
    """

    def __init__(self, before: Mapping[str, int] | None = None) -> None:
        self._tables: dict[str, _Table] = {}
        self._rows = 0
        self._bits = self._mask = 0
        self._missing = dict(before or {})
        self.doubted: set[str] = set()
        self._nowhere: dict[str, set[str]] = {}

    def note(self, table: str, row: str, *, stays: bool, new: bool = True) -> None:
        """A row, in the order of `BETWEEN`, was written or found; or it was deleted.

        ``new``: if it is not known, it was not there before.
        """
        row = sort_key(row)
        if self._mask and zlib.crc32(row.encode("utf-8", "surrogatepass")) & self._mask:
            return
        known = self._tables.get(table)
        if known is None:
            known = self._tables[table] = _Table()
        if known.note(row, stays=stays):
            self._rows += 1 if stays else -1
            if stays and not new and self._missing.get(table):
                self._missing[table] = max(0, self._missing[table] - (1 << self._bits))
                self.doubted.add(table)
            while self._rows > _MOST_ROWS:
                self._halve()

    def nowhere(self, table: str, partition_key: str) -> None:
        """The rows of a partition are in others, nobody knows in which."""
        self._nowhere.setdefault(table, set()).add(sort_key(partition_key))

    def scattered(self, table: str) -> bool:
        """Whether it is not known in which partitions some of its rows are."""
        return table in self._nowhere

    def began(self) -> None:
        """The rows noted so far are those that are known to be there before the trace."""
        for table in self._missing:
            known = self._tables.get(table)
            there = 0 if known is None else known.rows.size << self._bits
            self._missing[table] = max(0, self._missing[table] - there)

    def in_range(self, table: str, one: NewRange, *, supposed: bool = True) -> tuple[int, Shares]:
        """The rows of a range, and those of partitions of it that are told apart, in order.

        ``supposed``: also those that are not known.
        """
        known, missing = self._tables.get(table), self._missing.get(table, 0) * supposed
        if known is None:
            return (missing if one == NewRange(one.partition_key) and one.several else 0), ()
        first_row, end = one.span
        span = sort_key(first_row), None if end is None else sort_key(end)
        each = self._each(known, missing)
        total = round(known.rows.between(*span) * each)
        if not known.rows.size and one.several and span == ("", None):
            total = missing
        if not one.several:
            return total, ((one.partition_key, total),)
        keys = known.largest(*_partitions(one))
        keys = [key for key in keys if key not in self._nowhere.get(table, ())]
        if table in self.doubted:
            each = self._each(known, 0)
        shares = [(of_sort_key(key), known.partitions[key]) for key in keys]
        return total, [(key, round(rows * each)) for key, rows in shares]

    def section(self, table: str, one: NewRange, since: int, part: int) -> tuple[NewRange, Shares]:
        """The part of a range of partitions that has ``part`` rows behind ``since`` ones.

        The first of its partitions are told apart.
        """
        known, end, shares = self._tables.get(table), 0, list[tuple[str, int]]()
        if known is None:
            return one, shares
        each, nowhere = self._each(known, self._missing.get(table, 0)), self._nowhere.get(table, ())
        for key in itertools.islice(known.keys.since(*_partitions(one)), _MOST_WALKED):
            start, end = end, end + round(known.partitions[key] * each)
            taken = min(end, since + part) - max(start, since)
            if taken > 0 and len(shares) < MOST_SHARES and key not in nowhere:
                shares.append((of_sort_key(key), taken))
            if end >= since + part:
                return one._replace(partition_before=of_sort_key(key) + BETWEEN), shares
        return one, shares

    def _each(self, known: _Table, missing: int) -> float:
        """How many rows a known one stands for: those that are not known are where it is."""
        size = known.rows.size << self._bits
        return (1 << self._bits) * (1 + missing / size if missing and size else 1)

    def _halve(self) -> None:
        """Know half of the rows from now on."""
        self._bits += 1
        self._mask = (1 << self._bits) - 1
        tables, self._tables, self._rows = self._tables, {}, 0
        for name, table in tables.items():
            for row in table.rows.since("", None):
                self.note(name, row, stays=True)


def _partitions(one: NewRange) -> tuple[str, str | None]:
    """The partitions of a range, as `SortedKeys.since` takes them."""
    before = one.partition_before
    return sort_key(one.partition_from or ""), None if before is None else sort_key(before)
