"""Which rows the tables held before a trace began, as its operations and their outcomes show.

The operations are followed in the order of their instants. The first one on a row says whether the
row was there: a read or an update that succeeded, or an insert that met a conflict, found it; an
insert that succeeded, or a read that found nothing, did not. An upsert does not say it: then the
queries before and after it do, by the number of rows that they found, or else the row is taken for
a new one, as in a what-if (`harness.trace.whatif.rows`).
"""

from __future__ import annotations

import bisect
import collections
import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import NamedTuple

from harness.model.entity import sort_key
from harness.model.operation import WHOLE_TABLE, KeyRange, Kind
from harness.model.outcome import Outcome
from harness.model.partition import MADE_UP
from harness.trace.head import TraceHead
from harness.trace.operations import TracedOperation, TracedParts, TracedQuery
from harness.trace.replay.added_rows import Wanted, fill, keys_between
from harness.trace.replay.operations import key_range, page_limit

_MADE_ROWS = 100
_MOST_READ = 50_000
"""Rows of a partition that is made up: as many as a transaction loads."""
_ABSENT, _PRESENT, _FREE = 0, 1, 2
"""Whether a row was there at first; free is not known."""
_INSERT, _DELETE, _POINT_QUERY = Kind.INSERT, Kind.DELETE, Kind.POINT_QUERY
_QUERY, _TRANSACTION = Kind.QUERY, Kind.TRANSACTION
_CONFLICT, _NOT_FOUND = Outcome.CONFLICT, Outcome.NOT_FOUND
_PRECONDITION = Outcome.PRECONDITION

Bounds = tuple[str | None, str | None]
"""First key of a range, and the end that is not in it."""
QueriedKeys = tuple[str, str | None, tuple[str | None, ...]]
"""Table, PartitionKey and bounds of a query."""


@dataclasses.dataclass(slots=True)
class _Range:
    """What queries found in a range, as the number of rows that were there at first.

    Attributes:
        votes: The number of queries by this number.
        least: A lower bound, of queries that ended early.
        seen: The number of upserts of unknown rows before the last query.
    """

    votes: collections.Counter[int] = dataclasses.field(default_factory=collections.Counter)
    least: int = 0
    last: int | None = None
    seen: int = 0


class _Pages(NamedTuple):
    """The pages so far of a query whose pages are operations of their own.

    Attributes:
        found: Rows in all of them.
        vote: Of the last page, if it seemed to be the end.
    """

    found: int
    known: _Range
    vote: int | None

    def withdraw(self) -> None:
        """Another page follows: the last one only had the rows of a server."""
        if self.vote is not None:
            self.known.votes[self.vote] -= 1
            self.known.votes += collections.Counter()
            self.known.last = None


@dataclasses.dataclass(slots=True)
class _Partition:
    """The rows of a partition.

    Attributes:
        first: Whether each was there at first.
        added: Those that are there now and were not; ``removed`` the opposite. Both in order.
        initial: The rows that were there at first, in order, as soon as they are known.
        upserted: Upserts of unknown rows, in order.
    """

    first: dict[str, int] = dataclasses.field(default_factory=dict)
    now: set[str] = dataclasses.field(default_factory=set)
    added: list[str] = dataclasses.field(default_factory=list)
    removed: list[str] = dataclasses.field(default_factory=list)
    ranges: dict[Bounds, _Range] = dataclasses.field(default_factory=dict)
    initial: list[str] = dataclasses.field(default_factory=list)
    upserted: list[str] = dataclasses.field(default_factory=list)

    @property
    def net(self) -> int:
        return len(self.added) - len(self.removed)

    def change(self, bounds: Bounds) -> int:
        """Rows in a range now, less those that were there at first."""
        if bounds == (None, None):
            return self.net
        return _between(self.added, bounds) - _between(self.removed, bounds)

    def set(self, row: str, first: int, *, there: bool) -> None:
        """Note whether a row was there at first, and is now."""
        earlier = self.first.get(row)
        if earlier is not None:
            was, is_there = earlier != _ABSENT, row in self.now
            if is_there != was:
                listed = self.added if is_there else self.removed
                del listed[bisect.bisect_left(listed, sort_key(row), key=sort_key)]
        self.first[row] = first
        if there:
            self.now.add(row)
        else:
            self.now.discard(row)
        if there and first == _ABSENT:
            bisect.insort(self.added, row, key=sort_key)
        elif first != _ABSENT and not there:
            bisect.insort(self.removed, row, key=sort_key)

    def restart(self) -> None:
        """Return to the rows that were there at first, and forget what queries found."""
        for row, first in self.first.items():
            if first == _FREE:
                self.first[row] = _ABSENT
        there = (row for row, first in self.first.items() if first == _PRESENT)
        self.initial = sorted(there, key=sort_key)
        self.now = set(self.initial)
        self.added, self.removed, self.ranges = [], [], {}


@dataclasses.dataclass(slots=True)
class _Table:
    """A table.

    Attributes:
        upserted: Upserts of unknown rows in all partitions, in order: partition and row.
        unread: How many of them came before the first query that read the whole table; None without
            one. A row that no query found is a new one.
        pages: By client, PartitionKey and query.
    """

    partitions: dict[str, _Partition] = dataclasses.field(
        default_factory=lambda: collections.defaultdict(_Partition)
    )
    ranges: dict[Bounds, _Range] = dataclasses.field(default_factory=dict)
    upserted: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    unread: int | None = None
    pages: dict[tuple[str, str, TracedQuery], _Pages] = dataclasses.field(default_factory=dict)


class InitialRows:
    """Takes the operations of a trace in order, without those that are left out, twice.

    The first time it learns which rows were there, the second time what queries found of them.
    Call `learned` in between and `filled` at the end.

    Attributes:
        unsure: Tables with rows that have made-up keys, or of which it is not known whether they
            were there, because the first operation on them is an upsert.
        contradictory: Writes whose outcome contradicts earlier ones, because they overlapped.
        read: What the first queries read to the end, so that its rows are known.
    """

    def __init__(self, head: TraceHead) -> None:
        self._head = head
        self._tables: dict[str, _Table] = collections.defaultdict(_Table)
        self._learning = True
        self.read: set[QueriedKeys] = set()
        self.unsure: set[str] = set()
        # Rows of a refused transaction, one of which was there, or was not.
        self._one_of: list[tuple[_Partition, list[str], bool]] = []
        self.contradictory = 0

    def partitions(self, table: str) -> Iterator[str]:
        return iter(self._tables[table].partitions)

    def add(self, name: str, row: TracedOperation) -> None:
        """Note one operation on a table, named by its ending."""
        shape, key = row.shape, row.partition_key
        outcome = shape.outcome
        assert key is not None
        if outcome.maybe_applied and not outcome.succeeded:
            return
        table = self._tables[name]
        if shape.kind is _QUERY:
            if outcome.succeeded:
                self._query(name, key, row)
        elif shape.kind is _TRANSACTION:
            self._transaction(table, key, row)
        else:
            self._single(table, key, shape.kind, row.row_key or "", outcome)

    def learned(self) -> None:
        """All operations were added once."""
        for partition, rows, there in self._one_of:
            wanted = _PRESENT if there else _ABSENT
            firsts = {row: partition.first.get(row) for row in rows}
            if wanted not in firsts.values():
                # Rather one that later operations say nothing about than one that they upsert.
                for open_to in (None, _FREE):
                    row = next((row for row in rows if firsts[row] is open_to), None)
                    if row is not None:
                        partition.first[row] = wanted
                        break
        for name, table in self._tables.items():
            partitions, early = table.partitions, table.upserted[: table.unread]
            if any(partitions[key].first[row] == _FREE for key, row in early):
                self.unsure.add(name)
            for partition in partitions.values():
                partition.restart()
            table.ranges, table.pages = {}, {}
        self._one_of.clear()
        self._learning = False

    def _single(self, table: _Table, key: str, kind: Kind, row: str, outcome: Outcome) -> None:
        partition = table.partitions[key]
        first, there = partition.first.get(row), row in partition.now
        if kind.upserts:
            if first is None:
                partition.set(row, _FREE, there=True)
                partition.upserted.append(row)
                table.upserted.append((key, row))
            elif not there:
                partition.set(row, first, there=True)
            return
        if outcome is _PRECONDITION:
            found, stays = True, True
        elif kind is _INSERT:
            found, stays = outcome is _CONFLICT, True
        else:
            found = outcome is not _NOT_FOUND
            stays = found and kind is not _DELETE
        if first is None:
            partition.set(row, _PRESENT if found else _ABSENT, there=stays)
            return
        if kind is _POINT_QUERY:
            return
        if not self._learning:
            self.contradictory += found != there
        if there != stays:
            partition.set(row, first, there=stays)

    def _transaction(self, table: _Table, key: str, row: TracedOperation) -> None:
        detail, outcome = row.detail, row.shape.outcome
        assert isinstance(detail, TracedParts)
        parts = [
            (kind, name or "") for kind, name in zip(detail.kinds, detail.row_keys, strict=True)
        ]
        if outcome.succeeded:
            for kind, name in parts:
                self._single(table, key, kind, name, outcome)
            return
        # One part was refused, and all of them were undone.
        partition, there = table.partitions[key], outcome is not _NOT_FOUND
        if outcome is _CONFLICT:
            refused = [name for kind, name in parts if kind is _INSERT]
        else:
            refused = [name for kind, name in parts if kind.needs_row]
        if any((name in partition.now) is there for name in refused if name in partition.first):
            return
        if not self._learning:
            # A stale ETag is refused whether the row is there or not.
            self.contradictory += outcome is not _PRECONDITION
            return
        unknown = [name for name in refused if name not in partition.first]
        if len(unknown) == 1:
            partition.set(unknown[0], _PRESENT if there else _ABSENT, there=there)
        elif unknown:
            self._one_of.append((partition, unknown, there))

    def _query(self, name: str, key: str, row: TracedOperation) -> None:
        table = self._tables[name]
        query = row.detail if isinstance(row.detail, TracedQuery) else TracedQuery()
        top = page_limit(query, self._head)
        cut = top is not None and row.returned >= top
        if query.compared:
            found, exact = max(row.entities, row.returned), not (cut or row.shape.estimated)
        else:
            found, exact = row.returned, not cut
        if not row.returned and row.shape.estimated:
            # A log says nothing about the number of rows.
            return
        own = query._replace(continued_at=None)
        pages = row.shape.client, key, own
        earlier = None
        if query.continued_at is not None:
            earlier = table.pages.get(pages)
            # Of several partitions it has the rest of one, and those after it.
            rest = exact and key != WHOLE_TABLE
            self._found(table, key, key_range(row), found, exact=rest)
            if earlier is None:
                return
            found += earlier.found
            earlier.withdraw()
        if self._learning and len(self.read) < _MOST_READ and not (cut or row.shape.estimated):
            self.read.add((name, key, query.bounds))
        keys = key_range(row._replace(detail=own))
        known, vote = self._found(table, key, keys, found, exact=exact)
        table.pages[pages] = _Pages(found, known, vote)

    def _found(
        self, table: _Table, key: str, keys: KeyRange, found: int, *, exact: bool
    ) -> tuple[_Range, int | None]:
        """Note what a query found: in which range, and how many rows were there at first if this
        is exact.
        """
        over = key == WHOLE_TABLE
        if over:
            bounds = keys.partition_from, keys.partition_before
            known = table.ranges.setdefault(bounds, _Range())
        else:
            bounds = keys.row_from, keys.row_before
            known = table.partitions[key].ranges.setdefault(bounds, _Range())

        def first_rows() -> int:
            if not over:
                return found - table.partitions[key].change(bounds)
            return found - sum(
                partition.net
                for name, partition in table.partitions.items()
                if _within(name, bounds)
            )

        first = first_rows()
        if self._learning:
            if exact and known.last is not None:
                # Of the rows that were upserted since, as many are new as came unexplained.
                _resolve(table, None if over else key, bounds, known.seen, first - known.last)
                first = first_rows()
            known.seen = len(table.upserted if over else table.partitions[key].upserted)
            if exact and over and bounds == (None, None) and table.unread is None:
                table.unread = known.seen
        if not exact:
            known.least = max(known.least, first)
            return known, None
        known.votes[first] += 1
        known.last = first
        return known, first

    def filled(self) -> tuple[dict[str, dict[str, list[str]]], int]:
        """The rows to load, in order, by table and PartitionKey; and the number of inexact queries.

        Ends the analysis.
        """
        rows: dict[str, dict[str, list[str]]] = {}
        inexact = 0
        for name, table in self._tables.items():
            loaded = rows[name] = {}
            known = sum(len(partition.initial) for partition in table.partitions.values())
            for key, partition in sorted(table.partitions.items()):
                there = partition.initial
                made = functools.partial(keys_between, taken=partition.first)
                inexact += _fill(partition.ranges, there, made)
                if there:
                    loaded[key] = there
            inexact += _fill_table(table, loaded)
            if sum(map(len, loaded.values())) > known:
                self.unsure.add(name)
        return rows, inexact


def _resolve(table: _Table, key: str | None, bounds: Bounds, seen: int, made: int) -> None:
    """Of the rows that were upserted since, take ``made`` for new ones, the rest for old ones."""
    if key is None:
        since = [place for place in table.upserted[seen:] if _within(place[0], bounds)]
    else:
        rows = table.partitions[key].upserted[seen:]
        since = [(key, row) for row in rows if _within(row, bounds)]
    for name, row in since:
        partition = table.partitions[name]
        if partition.first[row] == _FREE:
            partition.set(row, _ABSENT if made > 0 else _PRESENT, there=row in partition.now)
            made -= 1


def _fill_table(table: _Table, loaded: dict[str, list[str]]) -> int:
    """Add partitions, so that queries over several find what they found."""
    there = sorted((key for key, rows in loaded.items() for _ in rows), key=sort_key)

    def partitions(start: str, end: str | None, number: int) -> list[str]:
        # Of some rows each: a large one would be hot.
        count = -(-number // _MADE_ROWS)
        keys = keys_between(f"{start}{MADE_UP}", end, count, table.partitions, "!")
        every = [keys[min(place // _MADE_ROWS, len(keys) - 1)] for place in range(number) if keys]
        for place, key in enumerate(every):
            loaded.setdefault(key, []).append(f"{MADE_UP}{place:08}")
        return every

    return _fill(table.ranges, there, partitions)


def _fill(
    ranges: dict[Bounds, _Range],
    there: list[str],
    made: Callable[[str, str | None, int], list[str]],
) -> int:
    """Add keys to ``there``, which is sorted, and return the number of inexact queries.

    ``made`` makes keys from the first argument on and before the second, as many as the third says.
    """
    if not ranges:
        return 0
    every = {end for bounds in ranges for end in bounds if end is not None}
    ends = sorted(every, key=sort_key)
    places: dict[str | None, int] = {end: place + 1 for place, end in enumerate(ends)}
    starts = ["", *ends]
    known = [0] * len(starts)
    for key in there:
        known[bisect.bisect_right(ends, sort_key(key), key=sort_key)] += 1
    wanted = []
    for (first, before), found in ranges.items():
        place = 0 if first is None else places[first]
        end = len(starts) if before is None else places[before]
        if end <= place:
            continue
        if found.votes:
            rows = found.votes.most_common(1)[0][0]
            wanted.append(Wanted(place, end, rows, exact=found.least <= rows))
        if found.least:
            wanted.append(Wanted(place, end, found.least, exact=False))
    added = list[str]()
    for number, start, end_key in zip(fill(known, wanted), starts, [*ends, None], strict=True):
        if number:
            added += made(start, end_key, number)
    there += added
    there.sort(key=sort_key)
    inexact = 0
    for bounds, found in ranges.items():
        count = _between(there, bounds)
        inexact += sum(votes for rows, votes in found.votes.items() if rows != count)
        inexact += count < found.least
    return inexact


def _within(key: str, bounds: Bounds) -> bool:
    return _between([key], bounds) > 0


def _between(keys: list[str], bounds: Bounds) -> int:
    """The number of keys in a range, of sorted ones."""
    first, before = bounds
    low, high = 0, len(keys)
    if first is not None:
        low = bisect.bisect_left(keys, sort_key(first), key=sort_key)
    if before is not None:
        high = bisect.bisect_left(keys, sort_key(before), key=sort_key)
    return max(0, high - low)
