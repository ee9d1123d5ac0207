"""Holds the record of a run against the log that the service wrote of it.

The load's request ids are the run's id, the number of the worker and a number; other requests of
the run have a word before the last number. In a watch the ids are the application's: all requests
for entities to its account between its beginning and its end count, by the clock of the service.
"""

from __future__ import annotations

import array
import collections
import datetime as dt
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from harness.measure.counts.snapshot import answer_named
from harness.measure.record.findings import rounded
from harness.measure.record.measured import LatencyPart
from harness.measure.record.record import RunRecord
from harness.measure.record.service_log import (
    MOST_SHOWN,
    LoggedPart,
    ServiceLogPart,
    allowed_missing,
)
from harness.model.errors import SetupError
from harness.model.partition import Partition, is_beside
from harness.trace.logs.entries import LogEntry
from harness.trace.logs.joining import about_entities, operation_in
from harness.trace.operations import UNKNOWN

_Instants = npt.NDArray[np.float64]
"""UTC seconds in which answers came, by the client's clock unless said otherwise."""
_NOT_PASSED = "UpstreamMissing"
"""Error code of the answer of a gateway to a request that did not reach the service."""
_SLACK_S = 2.0
"""How far the clocks of the service and of this machine may differ where no ids are known."""
_FARTHEST_S = 60.0
"""The same where counts over time tell by how much."""
_ACCEPTED = 202
"""The status of a transaction, one of whose parts may have been refused."""
_LACKING_SHARE = 0.01
"""Attempts of a partition that the log may lack."""
_FEWEST_MISSING = 5
_APART_SHARE = 0.1
"""Lines that may be missing, or too many, where counts over time are to tell the clock."""
_EDGE_S = 0.25
"""What is so near the boundary of a second may be in the next one, on the client's clock."""
_MOST_SCATTER_S = 0.5
_FEWEST_BOUNDARIES = 3


FailedById = Mapping[str, Sequence[int]]
"""Statuses of failed attempts by request id, as many as the client kept; 0 is none."""


def failed_by_id(errors: Iterable[Mapping[str, object]]) -> dict[str, list[int]]:
    """The statuses of failed attempts on tables by their ids, from lines of ``errors.jsonl``."""
    found: dict[str, list[int]] = {}
    for error in errors:
        if is_beside(str(error.get("table", ""))):
            continue
        request_id, status = error.get("client_request_id"), error.get("status")
        if isinstance(request_id, str) and request_id and isinstance(status, int):
            passed = error.get("error_code") != _NOT_PASSED
            found.setdefault(request_id, []).append(status if passed else 0)
    return found


class Agreement:
    """Counts the lines of a log that are about a run, or about the tables of a watch.

    Args:
        ahead_s: By how much the clock of the service is ahead, where no ids are known.
        within_s: How far this may be off.

    Raises:
        SetupError: the attempts on tables were not counted apart.
    """

    def __init__(
        self,
        record: RunRecord,
        failed: FailedById,
        ahead_s: float = 0.0,
        within_s: float = _SLACK_S,
    ) -> None:
        self._record, self._failed = record, failed
        self._ahead_s, self._within_s = ahead_s, within_s
        # A folder may have the logs of several accounts.
        account, of_tables, _ = record.endpoint.host.lower().partition(".table.")
        self._account = account if of_tables else ""
        self._by_id = record.watched is None
        self._prefix = f"{record.run_id}-"
        self._beside = [one for one in record.partitions if is_beside(one.partition.table)]
        if self._beside and record.partitions_folded is not None:
            raise SetupError(
                "The watch counted some of its partitions together, of tables and of what is "
                "beside them: which attempts were on tables is not known."
            )
        # Partitions of a run are named without it.
        self._own = record.endpoint.table.lower() if self._by_id else ""
        began, ended = (
            dt.datetime.fromisoformat(moment).timestamp()
            for moment in (record.started_at, record.ended_at)
        )
        self._span = (min((record.series[0].t, began)) if record.series else began), ended
        self._ended_s, self._server_ms = array.array("d"), array.array("d")
        self._statuses = array.array("H")
        self._partitions: collections.Counter[tuple[str, str]] = collections.Counter()
        self._keyless = 0
        self._of_failed: dict[str, list[int]] = {}
        self.first_s = self.last_s = 0.0
        self.lines = 0

    @property
    def logged(self) -> int:
        """Lines about the load of the run so far."""
        return len(self._ended_s)

    @property
    def covers_the_run(self) -> bool:
        """Whether there are lines of the time of the run, whatever they are about."""
        return bool(self.lines) and self.first_s <= self._span[1] and self.last_s >= self._span[0]

    def add(self, entry: LogEntry) -> None:
        """Count a line if it is about the load of the run."""
        self.lines += 1
        self.first_s = min(self.first_s or entry.at_s, entry.at_s)
        self.last_s = max(self.last_s, entry.at_s + entry.duration_ms / 1000)
        if entry.part or not self._is_of_load(entry):
            return
        self._ended_s.append(entry.at_s + entry.duration_ms / 1000)
        self._server_ms.append(entry.server_ms)
        self._statuses.append(min(entry.status, 999))
        operation = operation_in(entry)
        if operation is None or operation.partition_key == UNKNOWN:
            self._keyless += 1
        else:
            table = operation.table.lower().removeprefix(self._own)
            self._partitions[table, operation.partition_key] += 1
        if entry.request_id in self._failed:
            self._of_failed.setdefault(entry.request_id, []).append(entry.status)

    def part(self, log: str) -> ServiceLogPart:
        """What the log said, for the record."""
        record = self._record
        every = collections.Counter(record.attempts_by_status)
        for one in self._beside:
            every.subtract(one.attempts_by_status)
        counted = _answered(every)
        logged = collections.Counter(self._statuses.tolist())
        statuses = {status: [counted[status], logged[status]] for status in {*counted, *logged}}
        _move_refused_parts(statuses)
        unanswered = every.total() - counted.total()
        joined, found, unanswered_logged = self._join()
        kept = sum(failed.count(0) for failed in self._failed.values())
        ended_s = np.asarray(self._ended_s)
        in_order_s = np.sort(ended_s)
        # Seconds do not tell tables from what is beside them.
        clock = None if self._beside else self._clock(in_order_s)
        ahead_s = 0.0 if clock is None else clock[0]
        # Clocks that differ by an unknown time tell nothing of single seconds.
        timed = clock is not None or self._is_in_time(in_order_s)
        lacking = unanswered - unanswered_logged
        partitions, apart = self._compare_partitions(allowed_missing(counted.total()))
        return ServiceLogPart(
            log=log,
            by_id=self._by_id,
            answered=counted.total(),
            unanswered=unanswered,
            unfinished=record.counts.in_flight,
            logged=self.logged,
            statuses=tuple(
                LoggedPart(name=str(status), attempts=attempts, logged=lines)
                for status, (attempts, lines) in sorted(statuses.items())
            ),
            joined=joined,
            found=found,
            unanswered_logged=unanswered_logged,
            explained=unanswered_logged if kept == unanswered else unanswered,
            partitions=partitions,
            partitions_apart=apart,
            keyless=self._keyless,
            seconds_apart=()
            if self._beside or not timed
            else self._compare_seconds(in_order_s - ahead_s, lacking),
            clock_s=None if clock is None else rounded(clock[0]),
            clock_within_s=None if clock is None else rounded(clock[1]),
            server_ms=self._server_latency(ended_s - ahead_s) if timed else None,
            ends_early=timed
            and not self._beside
            and self.last_s - ahead_s + _SLACK_S < self._load_s[1],
        )

    def _is_of_load(self, entry: LogEntry) -> bool:
        named = entry.request_id.startswith(self._prefix)
        if self._by_id:
            sender, _, _ = entry.request_id[len(self._prefix) :].rpartition("-")
            return named and sender.isdecimal()
        start, end = self._span
        at_s, within_s = entry.at_s - self._ahead_s, self._within_s
        other = self._account and entry.account and entry.account.lower() != self._account
        inside = not other and start - within_s <= at_s <= end + within_s
        return inside and not named and about_entities(entry)

    def _join(self) -> tuple[int, int, int]:
        """Of the failed attempts with an id: how many, with the same status, unanswered in log."""
        joined = found = unanswered = 0
        for request_id, statuses in self._failed.items():
            lines = collections.Counter(self._of_failed.get(request_id, ()))
            answered = collections.Counter(filter(None, statuses))
            joined += answered.total()
            # A part of a transaction was refused, which was accepted as a whole.
            same = (lines & answered).total()
            accepted = min(lines[_ACCEPTED], answered.total() - same)
            found += same + accepted
            unanswered += min(statuses.count(0), lines.total() - same - accepted)
        return joined, found, unanswered

    def _compare_partitions(self, lacking: int) -> tuple[int, tuple[LoggedPart, ...]]:
        """How many were compared, and those that differ; the log may lack so many lines in all."""
        record = self._record
        if record.redacted:
            return 0, ()
        apart, compared, known = [], 0, set()
        for part in record.partitions:
            if not part.exact or part in self._beside:
                continue
            compared += 1
            table, key = Partition.named(part.key)
            known.add((table.lower(), key))
            logged = self._partitions[table.lower(), key]
            answered = _answered(part.attempts_by_status).total()
            most = sum(part.attempts_by_status.values()) + record.counts.in_flight
            least = 0 if self._keyless else answered - max(lacking, answered * _LACKING_SHARE)
            if not least <= logged <= most:
                apart.append(LoggedPart(name=part.key, attempts=answered, logged=logged))
        if record.partitions_folded is None:
            apart += [
                LoggedPart(name=Partition(*partition).name, attempts=0, logged=logged)
                for partition, logged in self._partitions.most_common()
                if partition not in known
            ]
        return compared, tuple(apart[:MOST_SHOWN])

    def _clock(self, ended_s: _Instants) -> tuple[float, float] | None:
        """By how much the service's clock is ahead, and how far that may be off.

        As many answers came before the beginning of a second on the client's clock as before some
        instant in the log. ``ended_s`` is in order, by the service's clock.
        """
        points = self._record.series
        if not points or not len(ended_s):
            return None
        before = np.cumsum([point.attempts * point.width_s for point in points])
        if abs(before[-1] - len(ended_s)) > _APART_SHARE * len(ended_s):
            return None
        # What is missing, or has no answer, is taken for evenly spread.
        before = np.rint(before * (len(ended_s) / before[-1])).astype(int)
        ahead = [
            float(ended_s[count - 1] + ended_s[count]) / 2 - (point.t + point.width_s)
            for point, count in zip(points, before.tolist(), strict=True)
            if 0 < count < len(ended_s)
        ]
        if len(ahead) < _FEWEST_BOUNDARIES:
            return None
        middle = statistics.median(ahead)
        scatter = statistics.median(abs(one - middle) for one in ahead)
        return (middle, scatter) if scatter <= _MOST_SCATTER_S else None

    @property
    def _load_s(self) -> tuple[int, int]:
        """When the first second with attempts began, and the last one; UTC."""
        seconds = [point.t for point in self._record.series if point.attempts]
        return min(seconds, default=0), max(seconds, default=0)

    def _is_in_time(self, ended_s: _Instants) -> bool:
        """Whether the lines are of the time of the load, by the clocks as they are."""
        first_s, last_s = self._load_s
        width_s = max((point.width_s for point in self._record.series), default=1)
        return (
            len(ended_s) > 0
            and first_s - _SLACK_S <= ended_s[0]
            and ended_s[-1] <= last_s + width_s + _SLACK_S
        )

    def _compare_seconds(self, ended_s: _Instants, lacking: int) -> tuple[LoggedPart, ...]:
        """The seconds of which the log has fewer than half of the attempts.

        It may lack so many without an answer, which may all be of one second.
        """
        apart = []
        for point in self._record.series:
            attempts = round(point.attempts * point.width_s)
            from_s, until_s = point.t - _EDGE_S, point.t + point.width_s + _EDGE_S
            first, end = np.searchsorted(ended_s, (from_s, until_s)).tolist()
            logged, due = end - first, attempts - lacking
            if logged < due / 2 and due - logged >= _FEWEST_MISSING:
                at = dt.datetime.fromtimestamp(point.t, dt.UTC)
                apart.append(LoggedPart(name=f"{at:%H:%M:%S}", attempts=attempts, logged=logged))
        return tuple(apart[:MOST_SHOWN])

    def _server_latency(self, ended_s: _Instants) -> LatencyPart | None:
        start, length = self._record.window_start, self._record.measured_s
        inside = (ended_s >= start) & (ended_s < start + length)
        chosen = np.asarray(self._server_ms)[inside & (np.asarray(self._statuses) < 400)]
        if not len(chosen) or not chosen.any():
            return None
        p50, p90, p99 = np.percentile(chosen, (50, 90, 99)).tolist()
        whole = {"mean": float(chosen.mean()), "max": float(chosen.max())}
        return LatencyPart.recorded(
            LatencyPart(count=len(chosen), p50=p50, p90=p90, p99=p99, **whole)
        )


def agreement_with(
    record: RunRecord, failed: FailedById, log: Callable[[], Iterable[LogEntry]]
) -> Agreement:
    """A record held against the entries of a log, which can be read again."""

    def read(ahead_s: float = 0.0, within_s: float = _SLACK_S) -> Agreement:
        found = Agreement(record, failed, ahead_s, within_s)
        for entry in log():
            found.add(entry)
        return found

    found = read()
    if record.watched is not None and not (part := found.part("")).agrees:
        # Another clock of the service is believed if the log lacks less then.
        ahead_s = read(within_s=_FARTHEST_S).part("").clock_s
        if ahead_s is not None:
            at_clock = read(ahead_s)
            found = at_clock if at_clock.part("").missing < part.missing else found
    return found


def _answered(by_status: Mapping[str, int]) -> collections.Counter[int]:
    """Attempts with an answer, by its status, from names such as ``503 ServerBusy partition``."""
    found: collections.Counter[int] = collections.Counter()
    for name, count in by_status.items():
        status, code = answer_named(name)
        if status and code != _NOT_PASSED:
            found[status] += count
    return found


def _move_refused_parts(statuses: dict[int, list[int]]) -> None:
    """Count transactions of which a part was refused as the log does: as accepted.

    The client counts the status of the part, which is in the body of the answer.
    """
    if _ACCEPTED not in statuses:
        return
    accepted = statuses[_ACCEPTED]
    for status, both in statuses.items():
        moved = min(both[0] - both[1], accepted[1] - accepted[0])
        if status >= 400 and moved > 0:
            both[0] -= moved
            accepted[0] += moved
