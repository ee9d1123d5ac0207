"""When the next operation is sent.

A pacer is asked with the time since the schedule began and what was handed out so far, and
answers with an instant, or with STOP. It reads no clock. Amounts are entities, so that a
transaction of 100 uses up 100.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from typing import Protocol, Self


class _Stop(enum.Enum):
    STOP = "stop"


STOP = _Stop.STOP
"""The pacer's answer when nothing more is to be sent."""


@dataclasses.dataclass(frozen=True, slots=True)
class Due:
    """The next operation may leave at ``at_s`` seconds of the schedule.

    Attributes:
        at_s: Seconds since the schedule began.
        scheduled: True where the instant does not depend on earlier answers (open model), so
            that a response latency can be measured from it.
    """

    at_s: float
    scheduled: bool


class Pacer(Protocol):
    """Decides when operations leave."""

    def next(self, elapsed_s: float, sent: int) -> Due | _Stop:
        """When the next operation leaves.

        Args:
            elapsed_s: Seconds since the schedule began.
            sent: Entities of all operations handed out before.
        """

    def share(self, rank: int, count: int) -> Self:
        """The part of worker ``rank`` (0 to count-1); all parts add up to the whole rate."""

    def end(self, at_s: float) -> None:
        """From ``at_s`` seconds of the schedule on, the answer is STOP."""


CATCH_UP_S = 0.25
"""So far a capped load may be behind its spacing and still catch up."""


class ClosedLoop:
    """Every user sends its next operation when the last was answered; a cap bounds the rate.

    The cap spaces operations out. `CATCH_UP_S` of lost time is made up for, so that a moment in
    which the generator was not scheduled does not lower the rate; more is not, so that a stall
    is not followed by a burst.

    Args:
        entities_per_s: The cap; None is none.
    """

    __slots__ = ("_last_at_s", "_last_sent", "_stop_at_s", "entities_per_s")

    def __init__(self, entities_per_s: float | None = None) -> None:
        self.entities_per_s = entities_per_s
        self._stop_at_s = math.inf
        self._last_at_s = 0.0
        self._last_sent: int | None = None

    def next(self, elapsed_s: float, sent: int) -> Due | _Stop:
        """Now, or when the cap allows it."""
        at_s = elapsed_s
        if self.entities_per_s is not None and self._last_sent is not None:
            earliest = self._last_at_s + (sent - self._last_sent) / self.entities_per_s
            at_s = max(earliest, elapsed_s - CATCH_UP_S)
        if max(at_s, elapsed_s) >= self._stop_at_s:
            return STOP
        self._last_at_s = at_s
        self._last_sent = sent
        return Due(max(at_s, elapsed_s), scheduled=False)

    def share(self, rank: int, count: int) -> ClosedLoop:
        """An equal part of the cap."""
        if not 0 <= rank < count:
            raise ValueError(f"rank {rank} of {count} workers")
        part = ClosedLoop(None if self.entities_per_s is None else self.entities_per_s / count)
        part._stop_at_s = self._stop_at_s
        return part

    def end(self, at_s: float) -> None:
        """Stop at ``at_s``."""
        self._stop_at_s = at_s
