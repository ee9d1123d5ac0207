"""Which rows are there in simulated time, so that a query scans what it would find.

A query in a trace scanned the rows that the writes before it had made. Where the limits refuse such
a write, its rows are missing until a retry passes, and for good if none does; where they refuse a
delete, its row is still there.
"""

from __future__ import annotations

import bisect
import dataclasses
import operator
import zlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from harness.gateway.demand import Place
from harness.model.entity import sort_key
from harness.model.operation import Kind
from harness.trace.operations import Batch, TracedParts, TracedQuery

_ROWS = 1 << 24
"""Rows are remembered by so many digests: 2 MB, whatever the length of the trace is."""
_KEPT = 50_000
"""Keys whose digest is remembered, and rows that are missing."""
_DELETE, _INSERT, _QUERY, _TRANSACTION = Kind.DELETE, Kind.INSERT, Kind.QUERY, Kind.TRANSACTION

OTHER = 2
"""In place of a number of rows: the operation is not about a single row."""
_AT_S = operator.itemgetter(0)
Known = bool | tuple[bool, ...]
"""Whether a row was known before an operation; of a transaction for each of its parts."""


class KnownRows:
    """The rows that the operations so far show to be there, but for about one in a hundred more."""

    def __init__(self) -> None:
        self._rows = bytearray(_ROWS // 8)
        self._digests: dict[tuple[str, str], int] = {}

    def known(self, batch: Batch) -> list[Known]:
        """Whether the row of each operation was known before it; notes what the operation shows."""
        found: list[Known] = [False] * len(batch)
        note, start = self._note, self._start
        for at, (shape, key, row, detail) in enumerate(
            zip(batch.shapes, batch.partition_keys, batch.row_keys, batch.details, strict=True)
        ):
            kind, outcome = shape.kind, shape.outcome
            applied = outcome.succeeded or outcome.wanted_again
            if kind is _QUERY or key is None or not applied:
                continue
            if kind is _TRANSACTION:
                if isinstance(detail, TracedParts):
                    begin = start(shape.table, key)
                    found[at] = tuple(
                        [
                            part_row is not None and note(begin, part_row, part is not _DELETE)
                            for part, part_row in zip(detail.kinds, detail.row_keys, strict=True)
                        ]
                    )
            elif row is not None:
                found[at] = note(start(shape.table, key), row, kind is not _DELETE)
        return found

    def _start(self, table: str, key: str) -> int:
        """The digest with which those of the rows of a partition begin."""
        place = table, key
        digest = self._digests.get(place)
        if digest is None:
            if len(self._digests) >= _KEPT:
                self._digests.clear()
            text = f"{table}/{key}/"
            digest = self._digests[place] = zlib.crc32(text.encode("utf-8", "surrogatepass"))
        return digest

    def _note(self, start: int, row: str, stays: bool) -> bool:
        digest = zlib.crc32(row.encode("utf-8", "surrogatepass"), start) % _ROWS
        at, bit = digest >> 3, 1 << (digest & 7)
        rows = self._rows
        known = rows[at] & bit
        if stays:
            rows[at] |= bit
        elif known:
            rows[at] ^= bit
        return known > 0


class Changes(NamedTuple):
    """What an operation on given rows does to them.

    Attributes:
        written: The rows that are there after it.
        added: Those of them that were not there before.
        without: What an operation on a single row takes where that is missing.
    """

    written: tuple[str, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    without: int = 0


class RowScan(NamedTuple):
    """The rows that a query scans, and what each of them takes of the limits.

    Attributes:
        keys: First PartitionKey and the one before which a query over several partitions ends.
        full: It ends after as many rows as it asked for. Where some are missing, it reads others.
    """

    row_from: str | None
    row_before: str | None
    each: float
    keys: tuple[str | None, str | None] = (None, None)
    full: bool = False

    def finds(self, row: str) -> bool:
        """Whether it scans more, or less, if there is such a row, or is not."""
        first, before = self.row_from, self.row_before
        inside = (first is None or row >= first) and (before is None or row < before)
        return inside and not self.full


@dataclasses.dataclass(slots=True, eq=False)
class Effects:
    """What the operations of a batch do to rows, looked up where it matters.

    Attributes:
        amounts: What each operation asks for, without what it asks of every partition.
        without_row: What an operation on one row takes where it is missing, by its kind and what it
            takes otherwise.
        each: What a query takes for a row, where it found none when it was recorded.
        ordered: Rows of a partition are in the recorded order, so that the first ones are the same.
    """

    batch: Batch
    known: list[Known]
    amounts: list[int]
    without_row: Callable[[Kind, int], int]
    each: int = 1
    ordered: bool = True
    _shifts: list[int] = dataclasses.field(default_factory=list)

    @property
    def shifts(self) -> list[int]:
        """By how many rows each operation on a single row changes its partition, or `OTHER`."""
        if not self._shifts:
            batch = self.batch
            self._shifts = [
                OTHER
                if not row
                else 0
                if not shape.outcome.succeeded
                else 1
                if (kind := shape.kind) is _INSERT or (kind.upserts and not known)
                else -(kind is _DELETE)
                for shape, row, known in zip(batch.shapes, batch.row_keys, self.known, strict=True)
            ]
        return self._shifts

    def changed(self, at: int) -> Iterator[tuple[str, int]]:
        """The rows that an operation adds, each with 1, and those that it removes, with -1."""
        shift = self.shifts[at]
        if shift != OTHER:
            yield self.batch.row_keys[at] or "", shift
        elif isinstance(effect := self.of(at), Changes):
            yield from ((row, 1) for row in effect.added)
            yield from ((row, -1) for row in effect.removed)

    def of(self, at: int) -> Changes | RowScan | None:
        """The effect of an operation by its place; None where it has none."""
        batch = self.batch
        shape, detail, row = batch.shapes[at], batch.details[at], batch.row_keys[at]
        if not shape.outcome.succeeded:
            return None
        kind, known = shape.kind, self.known[at]
        if row:
            amount = self.amounts[at]
            if kind is _INSERT:
                return Changes((row,), (row,), (), amount)
            without = self.without_row(kind, amount) if known else amount
            if kind.upserts:
                return Changes((row,), () if known else (row,), (), without)
            return Changes((), (), (row,) if kind is _DELETE else (), without)
        if kind is _QUERY:
            query = detail if isinstance(detail, TracedQuery) else TracedQuery()
            found = batch.entities[at]
            each = self.amounts[at] / found if found else self.each
            keys = query.partition_from, query.partition_before
            full = self.ordered and query.full(batch.returned[at])
            return RowScan(query.row_from, query.row_before, each, keys, full)
        if not isinstance(detail, TracedParts) or not isinstance(known, tuple):
            return None
        written, added, removed = [], [], []
        for part, name, there in zip(detail.kinds, detail.row_keys, known, strict=True):
            if name is None:
                continue
            if part is _INSERT or part.upserts:
                written.append(name)
                if part is _INSERT or not there:
                    added.append(name)
            elif part is _DELETE:
                removed.append(name)
        return Changes(tuple(written), tuple(added), tuple(removed))

    def keys(self, at: int) -> tuple[str, str]:
        return self.batch.partition_keys[at] or "", self.batch.row_keys[at] or ""


class _Differing:
    """The rows of a recorded partition that are missing, each with 1, or still there, with -1."""

    __slots__ = ("by_row", "ordered")

    def __init__(self) -> None:
        self.by_row: dict[str, int] = {}
        self.ordered: dict[int, list[str]] = {1: [], -1: []}

    def add(self, row: str, by: int) -> None:
        self.by_row[row] = by
        bisect.insort(self.ordered[by], row)

    def remove(self, row: str) -> int:
        by = self.by_row.pop(row)
        rows = self.ordered[by]
        del rows[bisect.bisect_left(rows, row)]
        return by

    def in_scan(self, scan: RowScan) -> int:
        """How many rows fewer a query finds. It takes no longer if many are missing."""
        if scan.full:
            return 0
        found = 0
        for by, rows in self.ordered.items():
            if rows:
                first = 0 if scan.row_from is None else bisect.bisect_left(rows, scan.row_from)
                end = len(rows)
                if scan.row_before is not None:
                    end = bisect.bisect_left(rows, scan.row_before)
                found += by * max(0, end - first)
        return found


class MissingRows:
    """By how many rows partitions differ from what the trace shows, of 50,000 rows at most.

    A row is named by its partition, and by its recorded keys: a scheme may bring the rows of many
    recorded partitions into one, of which a query still finds its own.

    Attributes:
        places: The number of rows that differ, by partition.
        net: How many rows are missing, less those that are still there, by partition.
    """

    def __init__(self) -> None:
        self.places: dict[Place, int] = {}
        self.net: dict[Place, int] = {}
        # By partition and recorded key.
        self._rows: dict[tuple[Place, str], _Differing] = {}
        self._number = 0

    def passed(self, place: Place, key: str, changes: Changes) -> None:
        for row in (*changes.written, *changes.removed):
            if self.of(place, key, row):
                self._forget(place, key, row)

    def of(self, place: Place, key: str, row: str) -> int:
        """1 for a row that is missing, -1 for one that is still there; otherwise 0."""
        rows = self._rows.get((place, key))
        return 0 if rows is None else rows.by_row.get(row, 0)

    def in_scan(self, place: Place, key: str, scan: RowScan) -> int:
        """How many rows fewer a query finds than it did when it was recorded."""
        rows = self._rows.get((place, key))
        return 0 if rows is None else rows.in_scan(scan)

    def shift(self, place: Place, key: str, row: str, by: int) -> None:
        """A write of a single row was refused, which would have added it, or removed it."""
        known = self.of(place, key, row)
        if known == -by:
            # What was never added need not be removed.
            self._forget(place, key, row)
        elif not known and self._number < _KEPT:
            self._number += 1
            self.places[place] = self.places.get(place, 0) + 1
            self.net[place] = self.net.get(place, 0) + by
            rows = self._rows.get((place, key))
            if rows is None:
                rows = self._rows[place, key] = _Differing()
            rows.add(row, by)

    def _forget(self, place: Place, key: str, row: str) -> None:
        rows = self._rows[place, key]
        self.net[place] -= rows.remove(row)
        if not rows.by_row:
            del self._rows[place, key]
        self._number -= 1
        self.places[place] -= 1
        if not self.places[place]:
            del self.places[place], self.net[place]


class Arrival(NamedTuple):
    """A row that comes, or one that goes; by its recorded keys."""

    at_s: float
    key: str
    row: str
    by: int


class Arrivals:
    """The rows that the trace adds and removes while refused queries wait for their retries.

    They are noted in the order of time, whether the write that adds or removes them passes or not:
    which rows are missing, `MissingRows` says.
    """

    def __init__(self) -> None:
        self._of: dict[str, dict[str | None, list[Arrival]]] = {}

    def note(self, place: Place, at_s: float, effects: Effects, at: int) -> None:
        """Note what an operation does to rows."""
        key, _ = effects.keys(at)
        for row, by in effects.changed(at):
            of_table = self._of.setdefault(place[0], {})
            of_table.setdefault(place[1], []).append(Arrival(at_s, key, row, by))

    def in_partition(
        self, place: Place, since_s: float, until_s: float, key: str, scan: RowScan
    ) -> int:
        """How many rows more a query of a partition finds than it would have found before."""
        found = self._between(place, since_s, until_s)
        return sum(one.by for one in found if one.key == key and scan.finds(one.row))

    def in_table(
        self, table: str, since_s: float, until_s: float, keys: tuple[str | None, str | None]
    ) -> dict[Place, int]:
        """How many rows more there are in partitions of a range than there were before."""
        first, before = (None if key is None else sort_key(key) for key in keys)
        found: dict[Place, int] = {}
        for key in self._of.get(table, ()):
            at = sort_key(key or "")
            if key is None or at < (first or "") or (before is not None and at >= before):
                continue
            place = table, key
            if more := sum(one.by for one in self._between(place, since_s, until_s)):
                found[place] = more
        return found

    def forget(self, before_s: float) -> None:
        """Forget the rows that came or went before an instant."""
        for table, places in list(self._of.items()):
            for key, found in list(places.items()):
                del found[: bisect.bisect_left(found, before_s, key=_AT_S)]
                if not found:
                    del places[key]
            if not places:
                del self._of[table]

    def _between(self, place: Place, since_s: float, until_s: float) -> list[Arrival]:
        """What came or went from an instant on, before another one."""
        found = self._of.get(place[0], {}).get(place[1], [])
        first = bisect.bisect_left(found, since_s, key=_AT_S)
        return found[first : bisect.bisect_left(found, until_s, key=_AT_S)]
