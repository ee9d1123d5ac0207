"""The rows of every table, so that a query is charged for every entity that it scans.

"A query that scans 1,000 entities and returns 5 counts as 1,000 entities" (performance checklist,
"Entities per second (storage account)"). An answer shows only the returned entities. The number of
scanned entities is computed from the stored keys: those of writes that passed through the gateway,
and those that one reading of the table found (`LookAhead`). Where keys may be missing, the number
is an estimate.
"""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Iterable, Mapping

from harness.gateway.answers import GatewayAnswer
from harness.gateway.key_ranges import IndexRange, Key, placed
from harness.gateway.reading import entities_in, with_parameters
from harness.gateway.requests import RowWrite
from harness.model.entity import of_sort_key

MOST_ROWS = 200_000
"""Most rows of all tables together; no further rows are remembered."""
MOST_TABLES = 10_000
MOST_LOOK_AHEADS = 3
"""Most look-aheads at one table: after the first, one for each time that an answer was lost."""


@dataclasses.dataclass(frozen=True, slots=True)
class Scan:
    """Rows in a part of a table.

    Attributes:
        by_partition: Number of rows by PartitionKey.
        certain: No row can be missing.
    """

    by_partition: Mapping[str, int]
    certain: bool


@dataclasses.dataclass(slots=True)
class _Table:
    """The known rows of one table, with keys as `harness.model.entity.sort_key` has them.

    Attributes:
        partitions: RowKeys in order, by PartitionKey.
        keys: PartitionKeys in order.
        complete: Every row is known.
        deleted: The keys that were deleted since the current look-ahead began; None without one.
    """

    complete: bool
    partitions: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    keys: list[str] = dataclasses.field(default_factory=list)
    look_aheads: int = 0
    deleted: set[Key] | None = None


class Contents:
    """The known rows of all tables; a query scans nothing where nothing is ``stored``."""

    def __init__(self, *, stored: bool = True) -> None:
        self._stored = stored
        self._tables: dict[str, _Table] = {}
        self.rows = 0
        """Known rows of all tables together."""

    def made(self, table: str) -> None:
        """A table was created: it has no rows."""
        self.dropped(table)
        if self._stored and len(self._tables) < MOST_TABLES:
            self._tables[table] = _Table(complete=True)

    def dropped(self, table: str) -> None:
        gone = self._tables.pop(table, None)
        if gone is not None:
            self.rows -= sum(map(len, gone.partitions.values()))

    def wrote(self, table: str, rows: Iterable[RowWrite]) -> None:
        """The endpoint acknowledged the writes of these rows."""
        known = self._tables.get(table) or self._table(table)
        if known is None:
            return
        for row in rows:
            if row.partition_key is None or row.row_key is None:
                known.complete = False
            elif row.stays:
                self._add(known, placed((row.partition_key, row.row_key)))
            else:
                self._remove(known, placed((row.partition_key, row.row_key)))

    def doubt(self, table: str) -> None:
        """The rows are uncertain: a write has no known result, or an unknown row was found."""
        if (known := self._table(table)) is not None:
            known.complete = False

    def begin_look_ahead(self, table: str) -> bool:
        """Return whether the rows of the table should be read now; `end_look_ahead` follows."""
        known = self._table(table)
        if known is None or known.complete or known.deleted is not None:
            return False
        if known.look_aheads >= MOST_LOOK_AHEADS or self.rows >= MOST_ROWS:
            return False
        known.look_aheads += 1
        known.deleted = set()
        return True

    def seen_ahead(self, table: str, keys: Iterable[Key]) -> None:
        """Add the rows of one page that the reading of the table returned."""
        known = self._tables.get(table)
        if known is None or known.deleted is None:
            return
        for key in map(placed, keys):
            if key not in known.deleted:
                self._add(known, key)

    def end_look_ahead(self, table: str, *, whole: bool) -> None:
        """End the reading of the table. ``whole`` is True if every row was read."""
        known = self._tables.get(table)
        if known is not None and known.deleted is not None:
            known.deleted = None
            known.complete = whole and self.rows < MOST_ROWS

    def holds(self, table: str, row: RowWrite) -> bool:
        """Whether a row is known to exist."""
        known = self._tables.get(table)
        if known is None or row.partition_key is None or row.row_key is None:
            return False
        partition_key, row_key = placed((row.partition_key, row.row_key))
        rows = known.partitions.get(partition_key, ())
        at = bisect.bisect_left(rows, row_key)
        return at < len(rows) and rows[at] == row_key

    def first_partition(self, table: str, keys: IndexRange) -> str | None:
        """Return the first partition with a row in the range, or None."""
        known = self._tables.get(table)
        if known is None:
            return None
        first = placed(keys.first)
        at = bisect.bisect_left(known.keys, first[0])
        # If no row of the first partition is in the range, the next partition may begin it.
        for partition in known.keys[at : at + 2]:
            rows = known.partitions[partition]
            low = bisect.bisect_left(rows, first[1]) if partition == first[0] else 0
            if low < len(rows):
                key = of_sort_key(partition)
                return key if (key, of_sort_key(rows[low])) in keys else None
        return None

    def scan(self, table: str, keys: IndexRange) -> Scan:
        known = self._tables.get(table)
        if known is None:
            return Scan({}, certain=not self._stored)
        found: dict[str, int] = {}
        first, end = placed(keys.first), None if keys.end is None else placed(keys.end)
        begin_at = bisect.bisect_left(known.keys, first[0])
        end_at = len(known.keys) if end is None else bisect.bisect_right(known.keys, end[0])
        for partition in known.keys[begin_at:end_at]:
            rows = known.partitions[partition]
            low = bisect.bisect_left(rows, first[1]) if partition == first[0] else 0
            high = len(rows)
            if end is not None and partition == end[0]:
                high = bisect.bisect_left(rows, end[1])
            if high > low:
                found[of_sort_key(partition)] = high - low
        return Scan(found, certain=known.complete)

    def _table(self, table: str) -> _Table | None:
        known = self._tables.get(table)
        if known is None and self._stored and len(self._tables) < MOST_TABLES:
            known = self._tables[table] = _Table(complete=False)
        return known

    def _add(self, known: _Table, key: Key) -> None:
        partition_key, row_key = key
        rows = known.partitions.get(partition_key)
        if rows is not None:
            if row_key > rows[-1]:
                at = len(rows)
            else:
                at = bisect.bisect_left(rows, row_key)
                if rows[at] == row_key:
                    return
        if self.rows >= MOST_ROWS:
            known.complete = False
            return
        self.rows += 1
        if rows is None:
            known.partitions[partition_key] = [row_key]
            bisect.insort(known.keys, partition_key)
        else:
            rows.insert(at, row_key)

    def _remove(self, known: _Table, key: Key) -> None:
        partition_key, row_key = key
        if known.deleted is not None:
            known.deleted.add(key)
        rows = known.partitions.get(partition_key, [])
        at = bisect.bisect_left(rows, row_key)
        if at == len(rows) or rows[at] != row_key:
            return
        del rows[at]
        self.rows -= 1
        if not rows:
            del known.partitions[partition_key]
            del known.keys[bisect.bisect_left(known.keys, partition_key)]


MOST_PAGES = 200
"""200,000 rows."""
_TOKENS = ("NextPartitionKey", "NextRowKey")


class LookAhead:
    """One reading of the keys of a table, whose name is in lower case.

    The caller sends ``GET`` with `target` and the headers of the client's query, and hands each
    answer to `take`, until `target` is None. `abandon` ends the reading early.
    """

    def __init__(self, contents: Contents, table: str, target: str) -> None:
        self._contents = contents
        self._table = table
        self._pages = 0
        dropped = dict.fromkeys(("$filter", "$top", *_TOKENS))
        self._base = with_parameters(target, {**dropped, "$select": "PartitionKey,RowKey"})
        self.target: str | None = self._base
        """Path and query of the next request; None at the end."""

    def take(self, answer: GatewayAnswer) -> None:
        """Read a page."""
        found = entities_in(answer.headers, answer.body)
        keys = [(key, row) for key, row in found if key is not None and row is not None]
        if answer.status != 200 or len(keys) < len(found):
            self.abandon()
            return
        self._pages += 1
        self._contents.seen_ahead(self._table, keys)
        tokens = {name: answer.headers.get(f"x-ms-continuation-{name}") for name in _TOKENS}
        if tokens["NextPartitionKey"] is None:
            self.abandon(whole=True)
        elif self._pages >= MOST_PAGES:
            self.abandon()
        else:
            self.target = with_parameters(self._base, tokens)

    def abandon(self, *, whole: bool = False) -> None:
        """End the reading, before the last page unless it is ``whole``."""
        if self.target is not None:
            self.target = None
            self._contents.end_look_ahead(self._table, whole=whole)
