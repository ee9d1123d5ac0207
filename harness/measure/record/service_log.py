"""What the service's own log says of the requests of a run: counts, latencies, clock."""

from __future__ import annotations

from typing import Annotated

import pydantic

from harness.measure.record.findings import IF_ANY, RecordPart
from harness.measure.record.measured import LatencyPart

_Count = Annotated[int, pydantic.Field(ge=0)]
MOST_SHOWN = 20
"""Partitions, and seconds, that are listed."""
_MISSING_SHARE = 0.001
"""Logs are written on a best-effort basis: so many missing lines are no contradiction. ("Storage
Analytics logging", "How logs are stored")"""


def allowed_missing(answered: int) -> int:
    """Lines that a log may lack of so many answered attempts."""
    return int(answered * _MISSING_SHARE)


class LoggedPart(RecordPart):
    """Attempts that the client counted, and lines of the log, of what ``name`` says.

    Attributes:
        name: A status, a partition, or the UTC second in which the answers came.
    """

    name: str
    attempts: _Count
    logged: _Count

    @property
    def missing(self) -> int:
        return max(0, self.attempts - self.logged)

    @property
    def surplus(self) -> int:
        return max(0, self.logged - self.attempts)


class ServiceLogPart(RecordPart):
    """A run held against the log of its account. Counts are of the whole run under load.

    Attributes:
        log: Name of the file or folder.
        by_id: True if the lines are those with the run's request ids; False if they are all on
            entities between its beginning and its end, whoever sent them.
        answered: Attempts with an answer, as the client counted them.
        unanswered: Attempts without a whole answer: the log may have them or not.
        unfinished: Operations that were in flight at the end: the log may have them too.
        statuses: Answered attempts by status.
        joined: Failed attempts whose request ids the client kept.
        found: Those of them that the log has with the same status.
        unanswered_logged: Attempts without an answer that the log has.
        explained: Lines of attempts without an answer: by their ids if the client kept all of them,
            else as many as there are such attempts.
        partitions: How many partitions were compared; 0 where the keys are aliases.
        partitions_apart: Partitions whose counts differ by more than the unanswered attempts and
            the lines that a log may lack explain.
        keyless: Lines that name no PartitionKey: inserts and transactions.
        seconds_apart: Seconds of which the log has fewer than half of the attempts with an answer;
            none where the clocks differ by an unknown time.
        clock_s: By how much the service's clock is ahead; None if the counts over time do not tell.
        clock_within_s: How far that may be off.
        server_ms: Server latency of the requests that were served in the measured window.
        ends_early: True if the last line is before the run's end.
    """

    log: str
    by_id: bool
    answered: _Count
    unanswered: _Count
    unfinished: _Count
    logged: _Count
    statuses: tuple[LoggedPart, ...]
    joined: _Count = 0
    found: _Count = 0
    unanswered_logged: _Count = 0
    explained: _Count = 0
    partitions: _Count = 0
    partitions_apart: Annotated[tuple[LoggedPart, ...], IF_ANY] = ()
    keyless: _Count = 0
    seconds_apart: Annotated[tuple[LoggedPart, ...], IF_ANY] = ()
    clock_s: float | None = None
    clock_within_s: float | None = None
    server_ms: LatencyPart | None = None
    ends_early: bool = False

    @property
    def missing(self) -> int:
        """Answered attempts that the log does not have with their status."""
        missing = sum(part.missing for part in self.statuses)
        if self.explained != self.unanswered_logged:
            return missing
        # Lines of attempts without an answer are known: none of them stands for an answered one.
        return max(missing, self.answered + self.unanswered_logged - self.logged)

    @property
    def unexplained(self) -> int:
        """Lines beyond those of attempts without an answer, and of operations in flight."""
        surplus = sum(part.surplus for part in self.statuses)
        return max(0, surplus - self.explained - self.unfinished)

    @property
    def agrees(self) -> bool:
        """Whether the log contradicts the record in nothing but a few missing lines."""
        return (
            self.missing <= allowed_missing(self.answered)
            and not self.unexplained
            and not self.partitions_apart
            and not self.seconds_apart
        )
