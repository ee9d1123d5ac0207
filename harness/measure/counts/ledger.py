"""The one truth about what happened. Everything that shows a figure reads its snapshots.

Workers add results and drain deltas; the master merges deltas. Sums, seconds and histograms merge
exactly in any order. Partitions are told apart exactly up to a cap; above it the heaviest keys
stay, by their estimated weight and with the error of the estimate, and the rest is folded, so that
sums stay exact however many keys there are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

from harness.measure.counts.heavy_hitters import Weights
from harness.measure.counts.latency import LatencyHistogram, Wire
from harness.measure.counts.snapshot import Snapshot, partition_part, snapshot_of
from harness.measure.counts.tally import KIND_DIGITS, Alike, Counts, PartitionTally, Tally
from harness.measure.counts.time_course import Course
from harness.measure.record.record import EstimatePart
from harness.model.operation import FOLDED, Operation
from harness.model.outcome import Attempt, Result

PARTITION_CAP = 200
_LONGEST_NOTE_S = 10
"""What is noted of waiting operations holds for so many seconds back at most."""
_TOGETHER = 64
"""So many results are counted in one go, or fewer where one is large."""
_LARGE_BYTES = 65_536


@dataclasses.dataclass(slots=True, kw_only=True)
class Delta:
    """What a ledger counted since it was last drained.

    Attributes:
        source: The worker that counted.
        folding: Whether it has more keys than places.
        lost: Keys that gave up their place after the drain before; what comes later is folded.
    """

    source: str
    folding: bool
    lost: list[str]
    tally: Tally
    partitions: dict[str, PartitionTally]
    folded: PartitionTally | None
    accessed: bytes
    throttled: bytes
    course: Course
    errors: list[dict[str, Any]]
    errors_dropped: int

    def encode(self) -> Wire:
        """Its content for the wire."""
        return {
            "source": self.source,
            "folding": self.folding,
            "lost": self.lost,
            "tally": self.tally.encode(),
            "partitions": {key: row.encode() for key, row in self.partitions.items()},
            "folded": None if self.folded is None else self.folded.encode(),
            "accessed": self.accessed,
            "throttled": self.throttled,
            "course": self.course.encode(),
            "errors": self.errors,
            "errors_dropped": self.errors_dropped,
        }

    @classmethod
    def decode(cls, content: Wire) -> Delta:
        """What `encode` gave."""
        folded = content["folded"]
        return cls(
            source=content["source"],
            folding=content["folding"],
            lost=content["lost"],
            tally=Tally.decode(content["tally"]),
            partitions={
                key: PartitionTally.decode(row) for key, row in content["partitions"].items()
            },
            folded=None if folded is None else PartitionTally.decode(folded),
            accessed=content["accessed"],
            throttled=content["throttled"],
            course=Course.decode(content["course"]),
            errors=content["errors"],
            errors_dropped=content["errors_dropped"],
        )


class Ledger:
    """Counts results, or merges what other ledgers counted.

    Args:
        source: Name of the worker that counts; a delta carries it.
        cap: How many partitions are told apart.
    """

    def __init__(self, source: str = "local", cap: int = PARTITION_CAP) -> None:
        self._source = source
        self._cap = cap
        self._window: tuple[float, float] = (float("inf"), float("inf"))
        self._tracked: dict[str, float | None] = {}
        self._folding: set[str] = set()
        self._sources: set[str] = set()
        self._partial: set[str] = set()
        self._lost: list[str] = []
        self._latest_s = 0.0
        self._waiting_noted: int | None = None
        self._weights = Weights()
        self._failed = FailedAttempts(source)
        self._added: list[Result] = []
        self._start_delta()

    def _start_delta(self) -> None:
        self._tally = Tally()
        self._rows: dict[str, PartitionTally] = {}
        self._folded: PartitionTally | None = None
        self._course = Course()

    def open_window(self, start_s: float, end_s: float) -> None:
        """Measure latencies of results that are done from ``start_s`` to ``end_s``, UTC."""
        self._count_added()
        self._window = (start_s, end_s)

    def close_window(self, end_s: float) -> None:
        """Measure no latency of a result that is done at ``end_s``, UTC, or later."""
        self._count_added()
        start_s, planned_s = self._window
        self._window = (start_s, min(planned_s, end_s))

    def note_due(self, count: int = 1) -> None:
        """So many operations became due."""
        self._tally.counts.due += count

    def note_sent(self) -> None:
        """The first attempt of an operation leaves."""
        self._tally.counts.sent += 1

    def note_taken_back(self) -> None:
        """An operation that was due and sent did not leave after all, and never will."""
        self._tally.counts.due -= 1
        self._tally.counts.sent -= 1

    def note_wait_cut(self) -> None:
        """The service asked for a longer wait before a retry than is honoured."""
        self._tally.counts.waits_cut += 1

    def note_dropped(self, now_s: float) -> None:
        """An operation that was due is given up unsent at ``now_s``, UTC."""
        self._tally.counts.dropped += 1
        self._tally.series["dropped"].add(int(now_s), 1)

    def note_waiting(self, now_s: float, count: int) -> None:
        """So many operations are due and not sent at ``now_s``, UTC, and since the last note."""
        now = int(now_s)
        earlier = now - 1 if self._waiting_noted is None else self._waiting_noted
        for second in range(max(earlier + 1, now - _LONGEST_NOTE_S), now + 1):
            self._tally.series["waiting"].add(second, count)
        self._waiting_noted = now

    def add_attempt(self, operation: Operation, attempt: Attempt) -> None:
        """Count an attempt after which its operation goes on: it may end late, or never."""
        moment = int(attempt.sent_s + attempt.latency_s)
        seen = (attempt.status, attempt.error_code, attempt.scope)
        row = self._row(operation.partition, moment)
        row.attempts[seen] = row.attempts.get(seen, 0) + 1
        if attempt.status >= 300 or attempt.error_code:
            self._count_refused(operation, attempt, moment)
        self._tally.add_attempts({moment: 1})

    def add(self, result: Result) -> None:
        """Count one result, and the attempts in it that `add_attempt` did not count.

        It is counted together with those that come after it, and before anybody looks: one after
        the other takes a fifth more of the time of a whole operation, because the processor finds
        nothing of it in its caches any more.
        """
        added = self._added
        added.append(result)
        # What was sent or read is kept as long: never more than a few megabytes.
        moved = result.bytes_sent + result.bytes_received
        if len(added) >= _TOGETHER or moved > _LARGE_BYTES:
            self._count_added()

    def _count_added(self) -> None:
        if self._added:
            added, self._added = self._added, []
            self._count(added)

    def _count(self, results: list[Result]) -> None:
        tally, course = self._tally, self._course
        start, end = self._window
        by_label: dict[tuple[str, int, bool], Alike] = {}
        accessed: dict[str, int] = {}
        attempts: dict[int, int] = {}
        for result in results:
            operation = result.operation
            key, entities, done_s = operation.partition, result.entities, result.done_s
            label = tally.label_of(operation)
            second = int(done_s)
            in_window = start <= done_s < end
            service_s, response_s = result.service_s, result.response_s
            place = (label, second, in_window)
            alike = by_label.get(place)
            if alike is None:
                alike = by_label[place] = Alike()
            alike.results.append(result)
            alike.service_s.append(service_s)
            responses_s: tuple[float, ...] = ()
            if response_s is not None:
                alike.response_s.append(response_s)
                responses_s = (response_s,)
            row = self._rows.get(key)
            if row is None:
                row = self._row(key, done_s)
            row.entities[label] = row.entities.get(label, 0) + entities
            row.seconds.add(second, entities)
            if in_window:
                row.latencies.record((service_s,), responses_s)
            accessed[key] = accessed.get(key, 0) + entities
            course.add(key, second, entities)
            untold = result.attempts if not result.told else result.attempts[result.told :]
            for attempt in untold:
                moment = int(attempt.sent_s + attempt.latency_s)
                attempts[moment] = attempts.get(moment, 0) + 1
                seen = (attempt.status, attempt.error_code, attempt.scope)
                row.attempts[seen] = row.attempts.get(seen, 0) + 1
                if attempt.status >= 300 or attempt.error_code:
                    self._count_refused(operation, attempt, moment)
        for (label, second, in_window), alike in by_label.items():
            tally.add(label, second, alike, in_window=in_window)
            course.add_latencies(second, alike.service_s, alike.response_s)
        tally.add_attempts(attempts)
        for key, entities in accessed.items():
            self._weights.access(key, entities)

    def _count_refused(self, operation: Operation, attempt: Attempt, second: int) -> None:
        """Count the throttling that an attempt met, and keep its error."""
        if attempt.throttled:
            key = operation.partition
            self._tally.add_throttled(attempt.status, second)
            self._course.add_throttled(key, second)
            self._weights.throttle(key)
        self._failed.note(operation, attempt)

    def drain(self) -> Delta:
        """What was counted since the last drain; the ledger starts again from nothing."""
        self._count_added()
        accessed, throttled = self._weights.drain()
        errors, errors_dropped = self._failed.drain()
        delta = Delta(
            source=self._source,
            folding=bool(self._folding),
            lost=self._lost,
            tally=self._tally,
            partitions=self._rows,
            folded=self._folded,
            accessed=accessed,
            throttled=throttled,
            course=self._course,
            errors=errors,
            errors_dropped=errors_dropped,
        )
        self._start_delta()
        self._lost = []
        self._promote(delta.tally)
        return delta

    def merge(self, delta: Delta) -> None:
        """Add what another ledger counted."""
        self._count_added()
        self._sources.add(delta.source)
        if delta.folding:
            self._folding.add(delta.source)
        self._tally.merge(delta.tally)
        self._partial.update(key for key in delta.lost if key in self._tracked)
        for key, row in delta.partitions.items():
            into = self._rows.get(key)
            if into is None:
                into = self._row(key, None, row.since_s)
            into.merge(row)
        if delta.folded is not None:
            self._fold().merge(delta.folded)
        self._weights.merge(delta.accessed, delta.throttled)
        self._course.merge(delta.course)
        self._failed.merge(delta.errors, delta.errors_dropped)
        self._promote(delta.tally)
        # Nobody drains a ledger that merges, so that the list would grow for ever.
        self._lost = []

    def snapshot(self, *, start: int, end: int, latencies: bool = True) -> Snapshot:
        """What is known now, with rates and percentiles over the UTC seconds start to end.

        Args:
            start: First UTC second of the measured window.
            end: Second before which it ends.
            latencies: Whether each partition's percentiles are read, which takes about a
                millisecond a partition, the courses of latency, and the series of every second.
        """
        self._count_added()
        exact = not self._folding or len(self._sources) <= 1
        partitions = [
            partition_part(
                key,
                row,
                start=start,
                end=end,
                exact=exact and row.since_s is None and key not in self._partial,
                estimate=self._estimate(key),
                latencies=latencies,
            )
            for key, row in self._rows.items()
        ]
        folded = None
        if self._folded is not None:
            folded = partition_part(
                FOLDED, self._folded, start=start, end=end, exact=True, latencies=latencies
            )
        return snapshot_of(
            self._tally,
            partitions,
            folded,
            start=start,
            end=end,
            course=self._course.view(latencies=latencies),
            series=latencies,
        )

    @property
    def counts(self) -> Counts:
        """Operations by where they are, so far."""
        self._count_added()
        return self._tally.counts

    def latencies(self) -> Iterator[tuple[str, LatencyHistogram]]:
        """Histograms of the measured window by operation, such as ``point_query.service``."""
        self._count_added()
        for label, counted in sorted(self._tally.kinds.items()):
            for name in ("service", "response"):
                found: LatencyHistogram | None = getattr(counted.latencies, name)
                if found is not None:
                    yield f"{label}.{name}", found

    def overall(self, latency: str) -> LatencyHistogram:
        """A copy of all latencies of the measured window so far; ``service`` or ``response``."""
        together = LatencyHistogram(KIND_DIGITS)
        for label, found in self.latencies():
            if label.endswith(f".{latency}"):
                together.merge(found)
        return together

    def errors(self) -> tuple[list[dict[str, Any]], int]:
        """Failed attempts with what the service's support asks for, and how many were not kept."""
        self._count_added()
        return self._failed.rows, self._failed.dropped

    def close(self) -> None:
        """Let go of the sketches, at the end of the process; nothing can be counted any more.

        Their library complains of a leak where they outlive the interpreter, as they do where an
        exception keeps the frames that knew them.
        """
        del self._weights

    def _row(self, key: str, now_s: float | None, since_s: float | None = None) -> PartitionTally:
        """The row that counts ``key``: its own, or the folded one."""
        if key not in self._tracked:
            if len(self._tracked) >= self._cap:
                if now_s is not None:
                    self._folding.add(self._source)
                return self._fold()
            self._tracked[key] = since_s
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = PartitionTally(self._tracked[key])
        return row

    def _fold(self) -> PartitionTally:
        if self._folded is None:
            self._folded = PartitionTally()
        return self._folded

    def _estimate(self, key: str) -> EstimatePart:
        at_least, at_most = self._weights.bounds(key)
        return EstimatePart(at_least=at_least, at_most=at_most)

    def _promote(self, tally: Tally) -> None:
        """Give the places of light keys to keys that turned out heavy with ``tally``."""
        for second, _ in tally.series["operations"].items():
            self._latest_s = max(self._latest_s, second + 1.0)
        if not self._folding and self._folded is None:
            return
        for loser, winner in self._weights.swaps(self._tracked, self._cap):
            self._swap(loser, winner)

    def _swap(self, loser: str, winner: str) -> None:
        row = self._rows.pop(loser, None)
        if row is not None:
            row.since_s = None
            self._fold().merge(row)
        del self._tracked[loser]
        self._partial.discard(loser)
        self._lost.append(loser)
        self._tracked[winner] = self._latest_s


ERROR_CAP = 1000


class FailedAttempts:
    """Keeps the first ones of a run, and counts the others.

    Args:
        source: Name of the worker whose they are.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._kept = 0
        self.rows: list[dict[str, Any]] = []
        self.dropped = 0

    def note(self, operation: Operation, attempt: Attempt) -> None:
        """Keep one attempt of ``operation``."""
        if self._kept >= ERROR_CAP:
            self.dropped += 1
            return
        self._kept += 1
        self.rows.append(
            {
                "time_s": round(attempt.sent_s, 6),
                "operation": operation.label,
                "table": operation.table,
                "partition_key": operation.partition_key,
                "row_key": operation.row_key,
                "status": attempt.status,
                "error_code": attempt.error_code,
                "scope": str(attempt.scope),
                "latency_s": round(attempt.latency_s, 6),
                "message": attempt.message,
                "request_id": attempt.request_id,
                "client_request_id": attempt.client_request_id,
                "worker": self._source,
            }
        )

    def drain(self) -> tuple[list[dict[str, Any]], int]:
        """Those since the last drain, and how many were not kept."""
        drained = self.rows, self.dropped
        self.rows, self.dropped = [], 0
        return drained

    def merge(self, rows: Iterable[dict[str, Any]], dropped: int) -> None:
        """Add what another one drained."""
        rows = list(rows)
        room = max(0, ERROR_CAP - len(self.rows))
        self.rows += rows[:room]
        self.dropped += dropped + len(rows[room:])
