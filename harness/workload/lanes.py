"""The order of operations that must not overtake each other.

Operations of one lane, a partition, leave in the order in which they came. An operation waits until
earlier ones of its lane are done if the result could depend on them: they access the same row and
one of them writes it, or one scans the partition and the other one may add or remove rows.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Hashable
from typing import NamedTuple


class Claim(NamedTuple):
    """What an operation accesses in its lane.

    Attributes:
        reads: Rows that it reads; ``writes`` those that it writes.
        scans: It reads a range of rows.
        changes: It may add or remove rows.
    """

    lane: Hashable
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    scans: bool = False
    changes: bool = False


@dataclasses.dataclass(slots=True)
class _Lane:
    """Operations in flight by row (readers and writers), and those that wait."""

    readers: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    writers: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    scans: int = 0
    changes: int = 0
    in_flight: int = 0
    waiting: collections.deque[tuple[Claim, object]] = dataclasses.field(
        default_factory=collections.deque
    )

    def allows(self, claim: Claim) -> bool:
        if not self.in_flight:
            return True
        if (claim.scans and self.changes) or (claim.changes and self.scans):
            return False
        writers, readers = self.writers, self.readers
        if any(writers[row] for row in claim.reads if row in writers):
            return False
        return not any(row in writers or row in readers for row in claim.writes)

    def begin(self, claim: Claim) -> None:
        self.in_flight += 1
        self.scans += claim.scans
        self.changes += claim.changes
        self.readers.update(claim.reads)
        self.writers.update(claim.writes)

    def end(self, claim: Claim) -> None:
        self.in_flight -= 1
        self.scans -= claim.scans
        self.changes -= claim.changes
        for counter, rows in ((self.readers, claim.reads), (self.writers, claim.writes)):
            for row in rows:
                counter[row] -= 1
                if not counter[row]:
                    del counter[row]


class Lanes:
    """The lanes with operations in flight. ``waiting`` is the number of operations that wait."""

    def __init__(self) -> None:
        self._lanes: dict[Hashable, _Lane] = {}
        self.waiting = 0

    def enter(self, claim: Claim, who: object) -> bool:
        """Whether the operation may leave now. If not, a later `leave` returns ``who``."""
        lane = self._lanes.get(claim.lane)
        if lane is None:
            lane = self._lanes[claim.lane] = _Lane()
        if lane.waiting or not lane.allows(claim):
            lane.waiting.append((claim, who))
            self.waiting += 1
            return False
        lane.begin(claim)
        return True

    def leave(self, claim: Claim) -> list[object]:
        """The operation is done; return who may leave now, in this order."""
        lane = self._lanes[claim.lane]
        lane.end(claim)
        released = []
        while lane.waiting and lane.allows(lane.waiting[0][0]):
            following, who = lane.waiting.popleft()
            lane.begin(following)
            released.append(who)
        self.waiting -= len(released)
        if not lane.in_flight:
            del self._lanes[claim.lane]
        return released
