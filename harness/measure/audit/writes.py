"""Writes of one row, as far as the end of the run can still show them.

What a later acknowledged write has covered cannot be seen any more and is forgotten; what may have
been done, or may yet be, is kept.
"""

from __future__ import annotations

import array
import datetime as dt
import enum
import math
from collections.abc import Mapping

from harness.model.entity import ETAG, Properties
from harness.model.operation import Kind
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
