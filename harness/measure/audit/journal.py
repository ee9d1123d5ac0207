"""What one worker wrote, row by row, as far as the end of the run can still show it.

Every write of an audited run stores a mark: who wrote it, and its number. So a row tells who wrote
it last.

Bounded: of more rows than are wanted those are kept whose hash is smallest. That is a sample which
does not depend on what became of a row, and of a row that several workers write each keeps all.
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
from typing import Any, Self

from harness.model.entity import ETAG, Properties
from harness.model.operation import Kind, Operation
from harness.model.outcome import Outcome, Result

RowKey = tuple[str, str, str]
"""Table, PartitionKey and RowKey."""

OF_THE_SERVICE = frozenset(("PartitionKey", "RowKey", "Timestamp", ETAG))
"""What an entity has beside its own properties. What is written under these names is not stored."""
_SOMETHING = 0
"""In place of the hash of a number that is no integer: services round them differently."""


class Effect(enum.Enum):
    """What a write does to a row."""

    PUT = enum.auto()
    MERGE = enum.auto()
    DELETE = enum.auto()


_EFFECTS = {
    Kind.INSERT: Effect.PUT,
    Kind.UPSERT_REPLACE: Effect.PUT,
    Kind.UPDATE_REPLACE: Effect.PUT,
    Kind.UPSERT_MERGE: Effect.MERGE,
    Kind.UPDATE_MERGE: Effect.MERGE,
    Kind.DELETE: Effect.DELETE,
}


class Certainty(enum.Enum):
    """What the answer to a write says for certain.

    ``DONE``: it was done between its sending and its answer. ``THERE``: some row was under its key
    then, be it by this write or by another. ``OPEN``: nothing.
    """

    DONE = enum.auto()
    THERE = enum.auto()
    OPEN = enum.auto()


class JournaledWrite:
    """One write of one row. It changes when its answer comes.

    Attributes:
        number: Its number among all writes of its worker; the parts of a transaction share one.
        kind: What it is.
        names: Properties that it sets.
        values: Their hashes.
        sent_s: It was not done before.
        end_s: It was not done after; infinity where a lost request may yet be.
        certainty: What is known of it.
        acknowledged: Whether it ended in success.
    """

    __slots__ = (
        "acknowledged",
        "certainty",
        "end_s",
        "kind",
        "names",
        "number",
        "sent_s",
        "values",
    )

    def __init__(
        self, number: int, kind: Kind, names: tuple[str, ...], own: Properties, now_s: float
    ) -> None:
        self.number = number
        self.kind = kind
        self.names = names
        self.values = array.array("q", map(hashed, own.values()))
        self.sent_s = now_s
        self.end_s = math.inf
        self.certainty = Certainty.OPEN
        self.acknowledged = False

    @property
    def effect(self) -> Effect:
        """What it does to its row."""
        return _EFFECTS[self.kind]

    def covers(self, earlier: JournaledWrite) -> bool:
        """Whether nothing that ``earlier`` wrote can be seen once this was done."""
        if self.effect is not Effect.MERGE:
            return True
        if earlier.effect is Effect.DELETE:
            return False
        return self.names == earlier.names or set(self.names).issuperset(earlier.names)


class Row:
    """What a worker knows of one row.

    Attributes:
        key: Which row.
        place: By its hash.
        writes: Those that may still show, in the order in which they were sent.
        covered: Acknowledged writes that later ones have covered.
        covered_s: When the last of them had ended; minus infinity where there is none.
        deleted: Whether one of these was a delete.
        counted: Whether it is among the rows that were, or may have been, written.
        given_up: Whether there was more than can be kept in mind: nothing is known of it.
    """

    __slots__ = (
        "counted",
        "covered",
        "covered_s",
        "deleted",
        "given_up",
        "key",
        "place",
        "writes",
    )

    def __init__(self, key: RowKey, place: int) -> None:
        self.key = key
        self.place = place
        self.writes: list[JournaledWrite] = []
        self.covered = 0
        self.covered_s = -math.inf
        self.deleted = False
        self.counted = False
        self.given_up = False

    @property
    def written(self) -> bool:
        """Whether anything was, or may have been, done to it."""
        return bool(self.writes) or self.counted

    @property
    def may_be_deleted(self) -> bool:
        """Whether a delete was, or may have been, among it."""
        return self.deleted or any(write.effect is Effect.DELETE for write in self.writes)

    def settle(self, done: JournaledWrite) -> None:
        """Forget what ``done``, which was certainly done, has covered."""
        kept = []
        for write in self.writes:
            if write.end_s < done.sent_s and done.covers(write):
                self.covered += 1
                self.covered_s = max(self.covered_s, write.end_s)
                self.deleted |= write.effect is Effect.DELETE
            else:
                kept.append(write)
        self.writes = kept


def hashed(value: object) -> int:
    """A number for a property's value: the same for values that a service may take for the same."""
    if isinstance(value, float):
        return _SOMETHING
    if isinstance(value, dt.datetime) and value.tzinfo is None:
        value = value.replace(tzinfo=dt.UTC)
    return hash((value,)) or 1


def same(one: int, other: int | None) -> bool:
    """Whether two hashed values may be the same; None is no value."""
    return other is not None and (one == other or _SOMETHING in (one, other))


def hashes(properties: Mapping[str, object]) -> dict[str, int]:
    """The hashes of an entity's properties."""
    return {name: hashed(value) for name, value in properties.items()}


def certainty_of(result: Result) -> Certainty | None:
    """What a result says of its writes; None is that they were certainly not done."""
    kind, outcome = result.operation.kind, result.outcome
    if outcome is Outcome.SUCCESS:
        return Certainty.DONE
    if outcome is Outcome.SUCCESS_AFTER_AMBIGUITY:
        # It was read back: a row of a single write was there. What was read of a transaction is
        # one row of many.
        return Certainty.OPEN if kind is Kind.TRANSACTION else Certainty.THERE
    if outcome is Outcome.DEFECT or any(attempt.ambiguous for attempt in result.attempts):
        return Certainty.OPEN
    return None


MARK_PROPERTY = "StressWrite"
"""Every entity that an audited run writes says in this property who wrote it last, and when in the
order of that worker's writes."""
PLACES = 2**64
"""Rows have places from 0 to one less than this, by their hash."""
MOST_WRITES_A_ROW = 200
"""A row with more that may still show is given up: each of them is gone through every time."""
_PLACE_BYTES = 8
_MOST_SHAPES = 1000


@dataclasses.dataclass(frozen=True, slots=True)
class Noted:
    """A write that is noted and to be sent.

    Attributes:
        operation: The operation with its mark: this is what has to be sent.
        writes: Its rows, as far as they are kept.
    """

    operation: Operation
    writes: tuple[tuple[Row, JournaledWrite], ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Which rows a worker wrote, in few bytes, for those who compare them with others' rows.

    Attributes:
        below: Rows from this place on were not kept.
        places: Places of the rows that were, as unsigned 64-bit integers.
        deleted: Places of those that it deleted, or may have.
        given_up: How many of the rows were given up.
    """

    below: int
    places: bytes
    deleted: bytes
    given_up: int

    @property
    def estimate(self) -> int:
        """How many rows it wrote; exact where all were kept."""
        return round(len(self.places) // _PLACE_BYTES * PLACES / self.below)

    def to_message(self) -> dict[str, Any]:
        """The places in the types that Locust can send, which knows no integer of 64 bits."""
        return {**dataclasses.asdict(self), "below": str(self.below)}

    @classmethod
    def from_message(cls, content: dict[str, Any]) -> Self:
        """What `to_message` gave."""
        return cls(**{**content, "below": int(content["below"])})


def places_in(packed: bytes) -> array.array[int]:
    """Places as `Written` has them."""
    return array.array("Q", packed)


class Journal:
    """The writes of one worker.

    Args:
        worker: Number of the worker among all of the run.
        seed: The same for all workers of a run: decides which rows are kept.
        most_rows: At most so many are.

    Attributes:
        mine: What the marks of this worker begin with.
    """

    def __init__(self, worker: int, seed: str, most_rows: int) -> None:
        self.mine = f"{worker}-"
        self._seed = hashlib.sha256(seed.encode()).digest()
        self._most_rows = most_rows
        self._below = PLACES
        self._number = 0
        self._rows: dict[int, Row] = {}
        # Places of the rows that were written, negated: the largest comes first.
        self._largest: list[int] = []
        self._shapes: dict[tuple[str, ...], tuple[str, ...]] = {}

    def __len__(self) -> int:
        """Rows that are kept."""
        return len(self._rows)

    def sent(self, operation: Operation, now_s: float) -> Noted:
        """Note a write that is about to be sent.

        Args:
            operation: A single write or a transaction of some.
            now_s: Not later than its sending, by the clock that its result has.
        """
        self._number += 1
        marked = _marked(operation, f"{self.mine}{self._number}")
        writes = []
        for part in marked.parts or (marked,):
            row = self._row((part.table, part.partition_key, part.row_key))
            if row is not None:
                own = _own(part.properties or {})
                write = JournaledWrite(self._number, part.kind, self._names_of(own), own, now_s)
                row.writes.append(write)
                writes.append((row, write))
        return Noted(marked, tuple(writes))

    def done(self, noted: Noted, result: Result) -> None:
        """Note what became of it."""
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
        """It was certainly not done."""
        for row, write in noted.writes:
            if write in row.writes:
                row.writes.remove(write)
            if not row.written:
                self._rows.pop(row.place, None)

    def written(self) -> Written:
        """Which rows were written. Those that were given up are taken for deleted."""
        rows = [row for row in self._rows.values() if row.place < self._below]
        deleted = (row.place for row in rows if row.given_up or row.may_be_deleted)
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
        """What is known of a row; None where it is not kept."""
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

    def _names_of(self, own: Properties) -> tuple[str, ...]:
        """The names of properties: one tuple for all writes that have the same ones."""
        names = tuple(own)
        if len(self._shapes) < _MOST_SHAPES:
            return self._shapes.setdefault(names, names)
        return self._shapes.get(names, names)

    def _place(self, key: RowKey) -> int:
        # No key contains U+0000. That two rows have one place is next to impossible.
        text = "\0".join(key).encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(text, digest_size=8, key=self._seed).digest()
        return int.from_bytes(digest, "big")


def _own(properties: Properties) -> Properties:
    """What is stored of the properties of a write."""
    if OF_THE_SERVICE.isdisjoint(properties):
        return properties
    return {name: value for name, value in properties.items() if name not in OF_THE_SERVICE}


def _marked(operation: Operation, mark: str) -> Operation:
    if operation.parts:
        parts = tuple(_marked(part, mark) for part in operation.parts)
        return dataclasses.replace(operation, parts=parts)
    if operation.kind is Kind.DELETE:
        return operation
    properties = {**(operation.properties or {}), MARK_PROPERTY: mark}
    return dataclasses.replace(operation, properties=properties)
