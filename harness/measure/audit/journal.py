"""The journal of one worker: its writes, row by row, as far as the end of the run can show them.

Every write of an audited run stores a mark with the worker and the number of the write, so that a
row shows who wrote it last. A write that a later acknowledged write covers cannot be seen any more
and is forgotten. A write that was applied, or still may be, is kept.

Memory is bounded: above a number of rows those with the smallest hashes are kept. This sample does
not depend on what became of a row, and every worker that wrote a row keeps it.
"""

from __future__ import annotations

import array
import dataclasses
import datetime as dt
import enum
import hashlib
import heapq
import math
from collections.abc import Mapping

from harness.model.entity import ETAG, Properties
from harness.model.operation import Kind, Operation
from harness.model.outcome import Outcome, Result

RowKey = tuple[str, str, str]
"""Table, PartitionKey and RowKey."""
MARK_PROPERTY = "StressWrite"
"""The property of every written entity that holds the mark of its last write."""
OF_THE_SERVICE = frozenset(("PartitionKey", "RowKey", "Timestamp", ETAG))
"""The fields of an entity besides its own properties. Values written to them are not stored."""
PLACES = 2**63
"""The hash of a row is its place, from 0 to one less than this."""
MOST_WRITES_A_ROW = 200
"""Rows with more visible writes are left out, because each look-up goes through all of them."""
_PLACE_BYTES = 8
_MOST_SHAPES = 1000
_ANY_FLOAT = 0
"""Takes the place of the hash of a float, because services round floats differently."""


class Certainty(enum.Enum):
    """What the answer to a write proves.

    ``DONE``: it was applied between its sending and its answer. ``THERE``: the row existed then,
    written by this write or by another. ``OPEN``: nothing.
    """

    DONE = enum.auto()
    THERE = enum.auto()
    OPEN = enum.auto()


@dataclasses.dataclass(slots=True, eq=False)
class JournaledWrite:
    """One write of one row. It was applied between ``sent_s`` and ``end_s``, if at all.

    Attributes:
        number: Its number among the writes of its worker; the parts of a transaction share one.
        names: The properties that it sets.
        values: Their hashes.
        end_s: Infinity if a lost request still may be applied.
    """

    number: int
    kind: Kind
    names: tuple[str, ...]
    values: array.array[int]
    sent_s: float
    end_s: float = math.inf
    certainty: Certainty = Certainty.OPEN
    acknowledged: bool = False

    def covers(self, earlier: JournaledWrite) -> bool:
        """Whether nothing that ``earlier`` wrote can be seen after this write."""
        if not self.kind.merges:
            return True
        if earlier.kind is Kind.DELETE:
            return False
        return self.names == earlier.names or set(self.names).issuperset(earlier.names)


@dataclasses.dataclass(slots=True, eq=False)
class Row:
    """What a worker knows of one row.

    Attributes:
        writes: Those that still may be seen, in the order of sending.
        covered: Number of acknowledged writes that later ones covered.
        covered_s: When the last of them had ended.
        deleted: Whether one of them was a delete.
        counted: Whether the row was, or may have been, written.
    """

    key: RowKey
    place: int
    writes: list[JournaledWrite] = dataclasses.field(default_factory=list)
    covered: int = 0
    covered_s: float = -math.inf
    deleted: bool = False
    counted: bool = False
    given_up: bool = False

    def settle(self, done: JournaledWrite) -> None:
        """Forget the writes that ``done``, which was certainly applied, covers."""
        kept = []
        for write in self.writes:
            if write.end_s < done.sent_s and done.covers(write):
                self.covered += 1
                self.covered_s = max(self.covered_s, write.end_s)
                self.deleted |= write.kind is Kind.DELETE
            else:
                kept.append(write)
        self.writes = kept


def hashed(value: object) -> int:
    """A number for a value of a property, equal for values that a service may store as one."""
    if isinstance(value, float):
        return _ANY_FLOAT
    if isinstance(value, dt.datetime) and value.tzinfo is None:
        value = value.replace(tzinfo=dt.UTC)
    return hash((value,)) or 1


def same(one: int, other: int | None) -> bool:
    """Whether two hashed values may be equal; None is no value."""
    return other is not None and (one == other or _ANY_FLOAT in (one, other))


def own_properties(entity: Mapping[str, object]) -> Mapping[str, object]:
    """The properties of an entity that are stored as they were written."""
    if OF_THE_SERVICE.isdisjoint(entity):
        return entity
    return {name: value for name, value in entity.items() if name not in OF_THE_SERVICE}


def certainty_of(result: Result) -> Certainty | None:
    """What a result proves of its writes; None if they were certainly not applied."""
    kind, outcome = result.operation.kind, result.outcome
    if outcome is Outcome.SUCCESS:
        return Certainty.DONE
    if outcome is Outcome.SUCCESS_AFTER_AMBIGUITY:
        # The row of a single write was read back. Of a transaction only one row was.
        return Certainty.OPEN if kind is Kind.TRANSACTION else Certainty.THERE
    if outcome is Outcome.DEFECT or any(attempt.ambiguous for attempt in result.attempts):
        return Certainty.OPEN
    return None


@dataclasses.dataclass(frozen=True, slots=True)
class Noted:
    """A write before it is sent: the operation with its mark, and its writes to kept rows."""

    operation: Operation
    writes: tuple[tuple[Row, JournaledWrite], ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The rows that a worker wrote, in few bytes.

    Attributes:
        below: Rows from this place on were not kept.
        places: The places of the kept rows, packed.
        deleted: The places of those that the worker deleted, or may have, packed.
    """

    below: int
    places: bytes
    deleted: bytes
    given_up: int

    @property
    def estimate(self) -> int:
        """Number of rows that the worker wrote; exact if all were kept."""
        return round(len(self.places) // _PLACE_BYTES * PLACES / self.below)


class Journal:
    """The writes of one worker.

    Args:
        seed: The same for all workers of a run. It decides which rows are kept.

    Attributes:
        mine: The beginning of the marks of this worker.
    """

    def __init__(self, worker: int, seed: str, most_rows: int) -> None:
        self.mine = f"{worker}-"
        self._seed = hashlib.sha256(seed.encode()).digest()
        self._most_rows = most_rows
        self._below = PLACES
        self._number = 0
        self._rows: dict[int, Row] = {}
        # Places of the written rows, negated, so that the largest comes first.
        self._largest: list[int] = []
        self._shapes: dict[tuple[str, ...], tuple[str, ...]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def sent(self, operation: Operation, now_s: float) -> Noted:
        """Note a write or a transaction before it is sent; ``now_s`` is by the result's clock."""
        self._number += 1
        marked = _marked(operation, f"{self.mine}{self._number}")
        writes = []
        for part in marked.parts or (marked,):
            row = self._row((part.table, part.partition_key, part.row_key))
            if row is not None:
                own = own_properties(part.properties or {})
                values = array.array("q", map(hashed, own.values()))
                names = self._shared(tuple(own))
                write = JournaledWrite(self._number, part.kind, names, values, now_s)
                row.writes.append(write)
                writes.append((row, write))
        return Noted(marked, tuple(writes))

    def done(self, noted: Noted, result: Result) -> None:
        """Note the result of an operation: whether its writes are certain, and until when."""
        certainty = certainty_of(result)
        if certainty is None:
            self.unsent(noted)
            return
        ambiguous = any(attempt.ambiguous for attempt in result.attempts)
        for row, write in noted.writes:
            write.certainty = certainty
            write.acknowledged = result.outcome.succeeded
            write.sent_s = max(write.sent_s, result.sent_s)
            if not ambiguous and certainty is not Certainty.OPEN:
                write.end_s = result.done_s
            if certainty is Certainty.DONE:
                row.settle(write)
            self._count(row)
        while len(self._largest) > self._most_rows:
            self._below = -heapq.heappop(self._largest)
            self._rows.pop(self._below, None)

    def unsent(self, noted: Noted) -> None:
        """Remove a write that was certainly not applied."""
        for row, write in noted.writes:
            if write in row.writes:
                row.writes.remove(write)
            if not row.writes and not row.counted:
                self._rows.pop(row.place, None)

    def written(self) -> Written:
        """The rows that were written. Those that were given up count as deleted."""
        rows = [row for row in self._rows.values() if row.place < self._below]
        deleted = (
            row.place
            for row in rows
            if row.given_up or row.deleted or any(write.kind is Kind.DELETE for write in row.writes)
        )
        return Written(
            below=self._below,
            places=array.array("Q", (row.place for row in rows)).tobytes(),
            deleted=array.array("Q", deleted).tobytes(),
            given_up=sum(row.given_up for row in rows),
        )

    def rows(self, below: int) -> list[Row]:
        """The rows with places below this one, in the order of their places."""
        rows = (row for row in self._rows.values() if row.place < below and not row.given_up)
        return sorted(rows, key=lambda row: row.place)

    def _row(self, key: RowKey) -> Row | None:
        place = self._place(key)
        row = self._rows.get(place)
        if row is None:
            if place >= self._below:
                return None
            row = self._rows[place] = Row(key, place)
        elif len(row.writes) >= MOST_WRITES_A_ROW:
            row.given_up = True
            row.writes.clear()
            self._count(row)
        return None if row.given_up else row

    def _count(self, row: Row) -> None:
        if not row.counted:
            row.counted = True
            heapq.heappush(self._largest, -row.place)

    def _shared(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """The same tuple for all writes with these names."""
        if len(self._shapes) < _MOST_SHAPES:
            return self._shapes.setdefault(names, names)
        return self._shapes.get(names, names)

    def _place(self, key: RowKey) -> int:
        # No key contains U+0000. Two rows with one place are practically impossible.
        text = "\0".join(key).encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(text, digest_size=_PLACE_BYTES, key=self._seed).digest()
        return int.from_bytes(digest, "big") % PLACES


def _marked(operation: Operation, mark: str) -> Operation:
    if operation.parts:
        parts = tuple(_marked(part, mark) for part in operation.parts)
        return dataclasses.replace(operation, parts=parts)
    if operation.kind is Kind.DELETE:
        return operation
    properties: Properties = {**(operation.properties or {}), MARK_PROPERTY: mark}
    return dataclasses.replace(operation, properties=properties)
