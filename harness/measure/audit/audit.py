"""The audit: what is stored after a run, compared with what one worker knows that it wrote.

A write is called lost only if no order of all writes explains what is stored: it was acknowledged,
every write whose effect is visible had ended before it was sent, and no other worker can have
undone it. Other losses do not weaken this proof, so that one lost write does not make another look
lost. All other cases are not claimed.
"""

from __future__ import annotations

import array
import collections
import dataclasses
import datetime as dt
import enum
import math
from collections.abc import Iterable, Mapping
from functools import cached_property

from harness.measure.audit.journal import (
    MARK_PROPERTY,
    PLACES,
    Certainty,
    JournaledWrite,
    Row,
    Written,
    hashed,
    own_properties,
    same,
)
from harness.measure.record.findings import AuditPart
from harness.model.operation import Kind

MOST_EXAMPLES = 10


class WriteVerdict(enum.StrEnum):
    """What became of a write. Acknowledged writes have one of the first three verdicts."""

    KEPT = "kept"
    LOST = "lost"
    COVERED = "covered"
    APPLIED = "applied"
    NOT_APPLIED = "not_applied"
    UNDECIDED = "undecided"


@dataclasses.dataclass(frozen=True, slots=True)
class Others:
    """Whether other workers may have written a row, and whether they may have deleted it."""

    wrote: bool = False
    deleted: bool = False


NOBODY = Others()
ANYBODY = Others(wrote=True, deleted=True)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """A row as it is stored now: the hashes of its properties, and its last write.

    Attributes:
        foreign: Whether another worker wrote it last.
        last: Its last write, if the journal still has it.
        last_number: The number of its last write, if the journal has forgotten it.
    """

    values: Mapping[str, int]
    there: bool = True
    foreign: bool = False
    last: JournaledWrite | None = None
    last_end_s: float = -math.inf
    last_number: int = 0


def verdicts(
    row: Row, stored: Mapping[str, object] | None, *, mine: str, others: Others = NOBODY
) -> list[tuple[JournaledWrite, WriteVerdict]]:
    """What became of the writes of one row.

    Args:
        stored: The entity as read after the run; None if there is none.
        mine: The beginning of this worker's marks.
    """
    seen = _see(row, stored, mine)
    return [(write, _verdict(write, row, seen, others)) for write in row.writes]


def _see(row: Row, stored: Mapping[str, object] | None, mine: str) -> _Seen:
    if stored is None:
        return _Seen(values={}, there=False)
    own = own_properties(stored)
    values, mark = {name: hashed(value) for name, value in own.items()}, own.get(MARK_PROPERTY)
    if mark is None:
        # Loading wrote the row, before all writes of the load.
        return _Seen(values=values)
    number = str(mark).removeprefix(mine)
    if not number.isdecimal():
        return _Seen(values=values, foreign=True)
    last = next((write for write in row.writes if write.number == int(number)), None)
    if last is None:
        return _Seen(values=values, last_end_s=row.covered_s, last_number=int(number))
    return _Seen(values=values, last=last, last_end_s=last.end_s)


def _verdict(write: JournaledWrite, row: Row, seen: _Seen, others: Others) -> WriteVerdict:
    refuted = _refuted(write, row, seen, others)
    if not write.acknowledged:
        if refuted:
            return WriteVerdict.NOT_APPLIED
        done = write is seen.last or _emptied(write, row, seen, others)
        return WriteVerdict.APPLIED if done else WriteVerdict.UNDECIDED
    if refuted and write.certainty is not Certainty.OPEN:
        return WriteVerdict.LOST
    return WriteVerdict.KEPT if _shows(write, seen) else WriteVerdict.COVERED


def _refuted(write: JournaledWrite, row: Row, seen: _Seen, others: Others) -> bool:
    """Whether the row cannot be as it is if ``write`` was applied.

    If ``write`` was applied and sets a property, then the last write of that property was applied
    at the same time or later, so that it had not ended before ``write`` was sent.
    """
    if not seen.there:
        return _gone(write, row, others)
    if seen.foreign or write.certainty is Certainty.THERE or write.number < seen.last_number:
        # In the last case a write that was refused is stored all the same.
        return False
    if write is seen.last:
        return not _holds(write, seen)
    if write.sent_s > seen.last_end_s:
        return True
    left_over = seen.last is not None and seen.last.kind.merges
    if not left_over or others.wrote or row.covered_s >= write.sent_s:
        return False
    # A merge leaves all other properties unchanged.
    names = write.names if write.kind.merges else {*write.names, *seen.values}
    later = [other for other in row.writes if other.end_s >= write.sent_s]
    return not all(any(_explains(other, name, seen) for other in later) for name in names)


def _gone(write: JournaledWrite, row: Row, others: Others) -> bool:
    """Whether the row would exist if ``write`` was applied."""
    if write.kind is Kind.DELETE or others.deleted:
        return False
    if row.deleted and row.covered_s >= write.sent_s:
        return False
    return not any(
        other.kind is Kind.DELETE and other.end_s >= write.sent_s for other in row.writes
    )


def _explains(write: JournaledWrite, name: str, seen: _Seen) -> bool:
    """Whether the property can be as it is because ``write`` set or removed it last."""
    value = seen.values.get(name)
    if name in write.names:
        return same(write.values[write.names.index(name)], value)
    return not write.kind.merges and value is None


def _holds(write: JournaledWrite, seen: _Seen) -> bool:
    """Whether the row has all that ``write`` set, except its mark."""
    return all(_explains(write, name, seen) for name in write.names if name != MARK_PROPERTY)


def _shows(write: JournaledWrite, seen: _Seen) -> bool:
    """Whether the effect of ``write`` is visible now."""
    if write.kind is Kind.DELETE:
        return not seen.there
    if write is seen.last:
        return True
    after_it = seen.last is not None and seen.last.kind.merges
    return after_it and len(write.names) > 1 and _holds(write, seen)


def _emptied(write: JournaledWrite, row: Row, seen: _Seen, others: Others) -> bool:
    """Whether only this delete explains that the row does not exist any more."""
    if seen.there or write.kind is not Kind.DELETE or others.deleted or row.deleted:
        return False
    if any(other.kind is Kind.DELETE for other in row.writes if other is not write):
        return False
    return row.covered > 0 or any(
        other.certainty is Certainty.DONE and other.end_s < write.sent_s for other in row.writes
    )


@dataclasses.dataclass(slots=True)
class AuditTally:
    """The results of an audit so far: rows looked up and unread, and writes by `WriteVerdict`."""

    rows: int = 0
    unread: int = 0
    counts: dict[str, int] = dataclasses.field(default_factory=dict)
    examples: list[str] = dataclasses.field(default_factory=list)

    @property
    def lost(self) -> int:
        return self.counts.get(WriteVerdict.LOST, 0)

    def add(
        self, row: Row, stored: Mapping[str, object] | None, *, mine: str, others: Others = NOBODY
    ) -> None:
        """Count one row; the arguments are those of `verdicts`."""
        self.rows += 1
        self._count(WriteVerdict.COVERED, row.covered)
        for write, verdict in verdicts(row, stored, mine=mine, others=others):
            self._count(verdict, 1)
            if verdict is WriteVerdict.LOST and len(self.examples) < MOST_EXAMPLES:
                self.examples.append(_sentence(row, write, stored))

    def merge(self, other: AuditTally) -> None:
        self.rows += other.rows
        self.unread += other.unread
        for verdict, count in other.counts.items():
            self._count(verdict, count)
        self.examples = (self.examples + other.examples)[:MOST_EXAMPLES]

    def _count(self, verdict: str, count: int) -> None:
        self.counts[verdict] = self.counts.get(verdict, 0) + count


def audit_part(
    tallies: Iterable[AuditTally], *, written: int, exact: bool, given_up: int, cut_short: str
) -> AuditPart:
    """The results of all workers for the record; for the arguments see `AuditPart`."""
    total = AuditTally()
    for tally in tallies:
        total.merge(tally)
    found = {verdict.value: total.counts.get(verdict, 0) for verdict in WriteVerdict}
    return AuditPart(
        written=written,
        exact=exact,
        rows=total.rows,
        unread=total.unread,
        given_up=given_up,
        acknowledged=found["kept"] + found["lost"] + found["covered"],
        unacknowledged=found["applied"] + found["not_applied"] + found["undecided"],
        cut_short=cut_short,
        examples=tuple(total.examples),
        **found,
    )


def lost_writes(part: AuditPart | None) -> int | None:
    """Lost writes; None without an audit, and if no written row was looked up."""
    return None if part is None or (part.written and not part.rows) else part.lost


def _sentence(row: Row, write: JournaledWrite, stored: Mapping[str, object] | None) -> str:
    table, partition_key, row_key = row.key
    sent = dt.datetime.fromtimestamp(write.sent_s, tz=dt.UTC)
    where = f"{partition_key!r}, {row_key!r}" + (f" of table {table}" if table else "")
    if stored is None:
        now = "there is no such row"
    elif write.kind is Kind.DELETE:
        now = "the row is still there"
    else:
        now = "the row does not have its values"
    return f"{write.kind.value} of {where}, sent {sent:%H:%M:%S.%f} UTC, acknowledged: {now}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class LookUp:
    """The rows that one worker is to look up: those with places below ``below``.

    Attributes:
        wrote: The places of those that other workers wrote too, packed.
        deleted: The places of those that other workers deleted, or may have, packed.
        strangers: Whether there was a worker whose writes are unknown.
    """

    below: int
    rows: int
    wrote: bytes
    deleted: bytes
    strangers: bool

    def others(self, place: int) -> Others:
        """What other workers may have done to the row with this place."""
        if self.strangers:
            return ANYBODY
        return Others(wrote=place in self._wrote, deleted=place in self._deleted)

    @cached_property
    def _wrote(self) -> frozenset[int]:
        return places_in(self.wrote)

    @cached_property
    def _deleted(self) -> frozenset[int]:
        return places_in(self.deleted)


def look_ups(
    written: Mapping[str, Written], *, most_rows: int, strangers: bool
) -> dict[str, LookUp]:
    """The rows that each worker is to look up, at most ``most_rows`` of all workers together.

    If there are more, those with the smallest places are looked up: every worker has kept them.
    """
    below = min((part.below for part in written.values()), default=PLACES)
    places = {worker: places_in(part.places) for worker, part in written.items()}
    everything = sorted(place for own in places.values() for place in own if place < below)
    if len(everything) > most_rows:
        below = everything[most_rows]
    deleted = {worker: places_in(part.deleted) for worker, part in written.items()}
    writers = collections.Counter(place for own in places.values() for place in own)
    deleters = collections.Counter(place for own in deleted.values() for place in own)
    plans = {}
    for worker, own in places.items():
        mine = [place for place in own if place < below]
        wrote = [place for place in mine if writers[place] > 1]
        gone = [place for place in mine if deleters[place] > (place in deleted[worker])]
        plans[worker] = LookUp(
            below=below,
            rows=len(mine),
            wrote=array.array("Q", wrote).tobytes(),
            deleted=array.array("Q", gone).tobytes(),
            strangers=strangers,
        )
    return plans


def places_in(packed: bytes) -> frozenset[int]:
    """The places in a packed form, unsigned integers of 64 bits."""
    return frozenset(array.array("Q", packed))
