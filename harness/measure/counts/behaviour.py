"""How an application uses tables: what the documented practices are about, from its results.

Counts merge exactly in any order. Memory is bounded: some hundred keys of each of 20 tables, the
latest reads, and the writes of the current second.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import TypeVar

from harness.measure.counts.key_sample import BusiestRows, KeySample
from harness.measure.counts.latency import LatencyHistogram, WireHistogram
from harness.measure.counts.tally import PairCounts, add_counts, merge_fields, sums_of
from harness.measure.record.behaviour import (
    BehaviourPart,
    QueriesPart,
    TableBehaviourPart,
    WaitsPart,
    WritesPart,
)
from harness.measure.record.findings import RecordPart, rounded
from harness.model.entity import MAX_PAGE_ENTITIES, MAX_TRANSACTION_OPERATIONS
from harness.model.operation import FOLDED, WHOLE_TABLE, Kind, Operation
from harness.model.outcome import SUCCESS, Attempt, Result, is_retryable, outcome_of

MOST_TABLES = 20
MOST_QUERIES = 60
BATCH = 10
"""Fewest inserts in a transaction that is a batch, and not one thing in several rows."""
AT_ONCE_S = 0.1
"""A shorter wait is no back-off."""
LONGER = 1.2
"""From this multiple of the wait before it, a wait counts as longer."""
_NO_BOUNDS = (None, None, None, None)
_READ_FIRST_S = 1.0
_MOST_REMEMBERED = 2_048
_MOST_OPEN = 20_000
"""Writes of one second that are compared with each other."""
_WAIT_DIGITS = 2

_POINT_QUERY, _QUERY, _TRANSACTION = Kind.POINT_QUERY, Kind.QUERY, Kind.TRANSACTION
_INSERT = Kind.INSERT

_K = TypeVar("_K")
_V = TypeVar("_V")
Counts = dict[str, int]
_Place = tuple[str, str, str, str]
"""Client, table, PartitionKey, RowKey."""


@dataclasses.dataclass(slots=True)
class _Table:
    """The counts and keys of one table."""

    operations: int = 0
    writing: int = 0
    inserted: int = 0
    upserted: int = 0
    batches: int = 0
    touched: int = 0
    keys: KeySample = dataclasses.field(default_factory=KeySample)
    rows: BusiestRows = dataclasses.field(default_factory=BusiestRows)

    merge = merge_fields

    def part(self, name: str) -> TableBehaviourPart:
        return TableBehaviourPart(
            table=name, hottest_row=self.rows.most, **sums_of(self), **self.keys.shapes()
        )


@dataclasses.dataclass
class Behaviour:
    """Counts how an application uses tables. Results come about in the order in which they end."""

    _results: int = 0
    _tables: dict[str, _Table] = dataclasses.field(default_factory=dict)
    _queries: PairCounts[Counts] = dataclasses.field(default_factory=dict)
    _writes: Counts = dataclasses.field(default_factory=lambda: _zeros(WritesPart))
    _waits: Counts = dataclasses.field(default_factory=lambda: _zeros(WaitsPart, "median_s"))
    _lengths: WireHistogram = dataclasses.field(
        default_factory=lambda: LatencyHistogram(_WAIT_DIGITS)
    )

    def __post_init__(self) -> None:
        # These are of the results that come, and no part of what is drained and sent.
        self._reads: dict[_Place, float] = {}
        self._second = 0
        self._open: dict[tuple[str, str, str], str] = {}
        self._open_rows: dict[tuple[str, str, str], set[str]] = {}
        self._open_writes = 0

    def add(self, result: Result, client: str = "") -> None:
        """Count one result of ``client``, which is whatever tells clients apart."""
        operation = result.operation
        kind, key = operation.kind, operation.partition_key
        self._results += 1
        name = operation.table
        table = self._tables.get(name)
        if table is None:
            table = self._table(name)
        table.operations += 1
        if kind is _QUERY:
            self._add_query(operation, result)
            if key != WHOLE_TABLE and key not in table.keys.ranks:
                table.keys.add(key)
        else:
            rank = table.keys.ranks.get(key)
            if rank is None:
                rank = table.keys.add(key)
            place = (client, name, key, operation.row_key)
            if result.outcome.succeeded or (kind.reads and result.outcome.regular):
                # What was refused is no load of its row.
                for part in operation.parts or (operation,):
                    table.rows.add((key, part.row_key))
            if kind is _POINT_QUERY:
                table.touched += 1
                self._reads[place] = result.done_s
                if len(self._reads) >= _MOST_REMEMBERED:
                    self._reads = _later_half(self._reads)
            elif kind is _TRANSACTION:
                self._add_transaction(table, operation, rank, result.sent_s)
            else:
                self._add_write(table, result, rank, place)
        if len(result.attempts) > 1:
            self.note_waits(result.attempts)

    def _table(self, name: str) -> _Table:
        if name not in self._tables and len(self._tables) >= MOST_TABLES:
            name = FOLDED
        return self._tables.setdefault(name, _Table())

    def _query_counts(self, place: tuple[str, str]) -> Counts:
        if place not in self._queries and len(self._queries) >= MOST_QUERIES:
            place = (FOLDED, "")
        return self._queries.setdefault(place, _zeros(QueriesPart, "name", "table"))

    def _add_query(self, operation: Operation, result: Result) -> None:
        if result.outcome is not SUCCESS:
            return
        place = (operation.label, operation.table)
        counts = self._queries.get(place)
        if counts is None:
            counts = self._query_counts(place)
        keys, entities, returned = operation.key_range, result.entities, result.entities_returned
        counts["count"] += 1
        counts["entities"] += entities
        counts["entities_returned"] += returned
        counts["full"] += returned >= MAX_PAGE_ENTITIES
        if not result.estimated:
            counts["exact"] += 1
            counts["exact_entities"] += entities
            counts["exact_returned"] += returned
            counts["single"] += entities <= 1
        bounds = (keys.row_from, keys.row_before, keys.partition_from, keys.partition_before)
        counts["over_partitions"] += operation.partition_key == WHOLE_TABLE
        counts["unbounded"] += bounds == _NO_BOUNDS
        counts["filtered"] += bool(operation.filter)
        counts["limited"] += operation.top is not None
        if not operation.select:
            counts["unselected"] += 1
            counts["unselected_entities"] += returned
            counts["unselected_bytes"] += result.bytes_received

    def _add_transaction(
        self, table: _Table, operation: Operation, rank: int, sent_s: float
    ) -> None:
        parts = operation.parts
        writes = self._writes
        writes["transactions"] += 1
        writes["batched"] += operation.entities_asked
        inserted = sum([part.kind is _INSERT for part in parts])
        table.inserted += inserted
        table.upserted += sum([part.kind.upserts for part in parts])
        if inserted < len(parts) or not parts:
            table.touched += 1
        elif inserted >= BATCH:
            table.batches += 1
        written = [part for part in parts if part.kind is _INSERT or part.kind.upserts]
        if written:
            table.writing += 1
            table.keys.add_row(rank, sent_s, operation.partition_key, written[0].row_key)

    def _add_write(self, table: _Table, result: Result, rank: int, place: _Place) -> None:
        operation, sent_s, writes = result.operation, result.sent_s, self._writes
        kind = operation.kind
        writes["singles"] += 1
        second = int(sent_s)
        # A result of an earlier second counts in this one: its request took longer.
        if second > self._second or self._open_writes >= _MOST_OPEN:
            self._close()
            self._second = second
        group = place[:3]
        row = place[3]
        # Most groups stay alone: a set is made for the second row. A row that is refused would undo
        # its transaction.
        if result.outcome.succeeded and self._open.setdefault(group, row) is not row:
            rows = self._open_rows.get(group)
            if rows is None:
                rows = self._open_rows[group] = {self._open[group]}
            rows.add(row)
        self._open_writes += 1
        if kind is _INSERT or kind.upserts:
            table.writing += 1
            table.keys.add_row(rank, sent_s, place[2], place[3])
            if kind is _INSERT:
                table.inserted += 1
            else:
                table.upserted += 1
                table.touched += 1
        else:
            table.touched += 1
            writes["updates"] += 1
            if operation.etag is None:
                writes["unconditional"] += 1
        read_s = self._reads.get(place) if self._reads else None
        if read_s is not None and 0 <= sent_s - read_s <= _READ_FIRST_S:
            if operation.etag is not None:
                writes["read_first_conditional"] += 1
            elif kind is not Kind.DELETE:
                writes["read_first"] += 1

    def _close(self) -> None:
        """Count the writes of the current second that could have been transactions."""
        together = saved = 0
        for rows in self._open_rows.values():
            if (number := len(rows)) > 1:
                together += number
                saved += number - -(-number // MAX_TRANSACTION_OPERATIONS)
        self._writes["together"] += together
        self._writes["saved"] += saved
        self._open = {}
        self._open_rows = {}
        self._open_writes = 0

    def note_waits(self, attempts: Sequence[Attempt]) -> None:
        """Count how long the attempts of an operation waited for one another."""
        before: float | None = None
        for earlier, later in itertools.pairwise(attempts):
            if earlier.status >= 300:
                wait = later.sent_s - earlier.sent_s - earlier.latency_s
                before = self._add_wait(earlier, wait, before)

    def _add_wait(self, failed: Attempt, wait: float, before: float | None) -> float | None:
        """Count the wait after a failed attempt, and return it if it is one of a retry."""
        waits = self._waits
        if not is_retryable(failed):
            waits["in_vain"] += is_hopeless(failed)
            return None
        wait = max(0.0, wait)
        self._lengths.record([wait])
        at_once = wait < AT_ONCE_S
        waits["count"] += 1
        waits["at_once"] += at_once
        if failed.throttled:
            waits["after_throttling"] += 1
            waits["at_once_after_throttling"] += at_once
        if before is not None:
            waits["followed"] += 1
            waits["longer"] += wait >= LONGER * before
        return wait

    def note_in_vain(self) -> None:
        """Count a request that was sent again after an answer that no retry changes."""
        self._waits["in_vain"] += 1

    def drain(self, *, ended: bool = False) -> Behaviour:
        """What was counted since the last drain. The counts start again from zero.

        The writes of the current second are counted in a later drain, unless the run has ``ended``.
        """
        if ended:
            self._close()
        drained = Behaviour()
        for field in dataclasses.fields(Behaviour):
            counted, zero = getattr(self, field.name), getattr(drained, field.name)
            setattr(drained, field.name, counted)
            setattr(self, field.name, zero)
        return drained

    def merge(self, other: Behaviour) -> None:
        """Add what was drained from another one."""
        self._results += other._results
        for name, table in other._tables.items():
            self._table(name).merge(table)
        for place, counts in other._queries.items():
            add_counts(self._query_counts(place), counts)
        add_counts(self._writes, other._writes)
        add_counts(self._waits, other._waits)
        self._lengths.merge(other._lengths)

    def part(self) -> BehaviourPart:
        """The counts so far, for a record."""
        self._close()
        lengths = self._lengths.view()
        queries = [
            QueriesPart(name=name, table=table, **counts)
            for (name, table), counts in sorted(self._queries.items())
        ]
        tables = [table.part(name) for name, table in sorted(self._tables.items())]
        return BehaviourPart(
            results=self._results,
            queries=tuple(sorted(queries, key=lambda part: -part.entities)),
            tables=tuple(sorted(tables, key=lambda part: -part.operations)),
            writes=WritesPart(**self._writes),
            waits=WaitsPart(
                median_s=None if lengths is None else rounded(lengths.p50 / 1000), **self._waits
            ),
        )


def is_hopeless(failed: Attempt) -> bool:
    """Whether the same request gets the same answer again."""
    if failed.status < 400 or is_retryable(failed):
        return False
    # Without the error code: a table that does not exist may be created meanwhile, too.
    return not outcome_of(failed.status, "").regular


def _zeros(part: type[RecordPart], *without: str) -> Counts:
    """A count of 0 for each field of ``part``."""
    return {name: 0 for name in part.model_fields if name not in without}


def _later_half(remembered: Mapping[_K, _V]) -> dict[_K, _V]:
    return dict(itertools.islice(remembered.items(), len(remembered) // 2, None))
