"""The ledger: the only place where results are counted. All outputs read its snapshots.

Workers add results and drain deltas; the master merges deltas. Sums, seconds and histograms merge
exactly in any order. Up to a cap, partitions are counted separately and exactly. Above it the
heaviest keys keep a row, by their estimated weight and with the error of the estimate, and all
others are folded into one row, so that sums stay exact for any number of keys.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.measure.counts.heatmap import HeatMap
from harness.measure.counts.heavy_hitters import Weights
from harness.measure.counts.latency import LatencyHistogram
from harness.measure.counts.snapshot import (
    SeriesPoint,
    Snapshot,
    partition_part,
    point_of,
    snapshot_of,
)
from harness.measure.counts.tally import (
    ANSWERED,
    KIND_DIGITS,
    LONG_S,
    WAITED,
    Counts,
    PartitionTally,
    ResultGroup,
    Tally,
)
from harness.measure.counts.time_course import SLOTS, LatencyCourse, PerSecond, Slots
from harness.model.operation import FOLDED, Operation
from harness.model.outcome import Attempt, Outcome, Result
from harness.model.partition import EXACT_PARTITIONS, Partition, account_of

ERROR_CAP = 1000
"""Failed attempts that are kept with all that the service's support asks for."""
_LONGEST_NOTE_S = 10
"""A note of waiting operations applies to at most this many seconds before it."""
_TOGETHER = 64
"""Results are counted in batches of this size, or fewer if one is large."""
_LARGE_BYTES = 65_536
_Place = tuple[int, str, int, bool, Outcome, bool]
"""Row, label, UTC second, whether it is measured, outcome, and whether it is an estimate."""


@dataclasses.dataclass(slots=True, kw_only=True)
class Delta:
    """What a ledger counted since it was last drained.

    Attributes:
        folding: Whether it has more keys than rows.
        lost: Keys that lost their row after the drain before; later counts of them are folded.
    """

    source: str
    folding: bool = False
    lost: list[str] = dataclasses.field(default_factory=list)
    tally: Tally = dataclasses.field(default_factory=Tally)
    partitions: dict[str, PartitionTally] = dataclasses.field(default_factory=dict)
    folded: PartitionTally | None = None
    accessed: bytes = b""
    throttled: bytes = b""
    heat: HeatMap = dataclasses.field(default_factory=HeatMap)
    service: LatencyCourse = dataclasses.field(default_factory=LatencyCourse)
    response: LatencyCourse = dataclasses.field(default_factory=LatencyCourse)
    errors: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    errors_dropped: int = 0


class Ledger:
    """Counts results of the worker ``source``, or merges what other ledgers counted.

    ``cap`` partitions have a row of their own. ``accounts`` are the names of the accounts that the
    partitions are spread over; several are counted each too.
    """

    def __init__(
        self, source: str = "local", cap: int = EXACT_PARTITIONS, accounts: Sequence[str] = ()
    ) -> None:
        self._source = source
        self._cap = cap
        self._accounts = tuple(accounts) if len(accounts) > 1 else ()
        self._window: tuple[float, float] = (float("inf"), float("inf"))
        self._tracked: dict[str, float | None] = {}
        self._folding: set[str] = set()
        self._sources: set[str] = set()
        self._partial: set[str] = set()
        self._latest_s = 0.0
        self._waiting_noted: int | None = None
        self._weights = Weights()
        self._errors_kept = 0
        self._added: list[Result] = []
        self._start_delta()

    def _start_delta(self) -> None:
        self._delta = Delta(source=self._source)
        self._tally, self._rows = self._delta.tally, self._delta.partitions
        self._slot_s = (0.0, 0.0)

    def open_window(self, start_s: float, end_s: float) -> None:
        """Measure latencies of results done from ``start_s`` to before ``end_s``, UTC."""
        self._count_added()
        self._window = (start_s, end_s)

    def close_window(self, end_s: float) -> None:
        """End the window at ``end_s``, UTC, unless it ends earlier."""
        self._count_added()
        start_s, planned_s = self._window
        self._window = (start_s, min(planned_s, end_s))

    def note_due(self, count: int = 1) -> None:
        self._tally.counts.due += count

    def note_sent(self) -> None:
        """The first attempt of an operation is sent."""
        self._tally.counts.sent += 1

    def note_taken_back(self) -> None:
        """An operation noted as due and sent was not sent after all, and will not be."""
        self._tally.counts.due -= 1
        self._tally.counts.sent -= 1

    def note_wait_cut(self) -> None:
        """The service asked for a longer wait than ``retry.maximum_s``."""
        self._tally.counts.waits_cut += 1

    def note_dropped(self, now_s: float) -> None:
        """An operation that was due is dropped at ``now_s``, UTC."""
        self._tally.counts.dropped += 1
        self._tally.series["dropped"].add(int(now_s), 1)

    def note_waiting(self, now_s: float, count: int) -> None:
        """``count`` operations are due and not sent at ``now_s``, UTC, and since the last note."""
        now = int(now_s)
        earlier = now - 1 if self._waiting_noted is None else self._waiting_noted
        for second in range(max(earlier + 1, now - _LONGEST_NOTE_S), now + 1):
            self._tally.series["waiting"].add(second, count)
        self._waiting_noted = now

    def note_retrying(self, second: int, operations: Mapping[str, int]) -> None:
        """Operations that were throttled and go on in a UTC second, by partition."""
        for key, count in operations.items():
            self._row(key, second).retrying.add(second, count)
            self._tally.series["retrying"].add(second, count)

    def add_attempt(self, operation: Operation, attempt: Attempt) -> None:
        """Count an attempt after which its operation continues: it may end late, or never."""
        moment = int(attempt.ended_s)
        self._note_answer(attempt)
        self._row(operation.partition, moment).add_attempt(attempt, moment)
        if attempt.request_charge:
            label = self._tally.label_of(operation.label, operation.kind)
            self._tally.add_charges(label, moment, attempt.request_charge)
        if self._accounts:
            account = self._tally.account(self._account(operation.partition_key))
            account.add_attempt(attempt, moment)
        if attempt.status >= 300 or attempt.error_code:
            self._count_refused(operation, attempt, moment)
        self._tally.add_attempts({moment: 1})

    def add(self, result: Result) -> None:
        """Count one result, and its attempts that `add_attempt` did not count.

        Results are counted in batches, at the latest before the ledger is read. Counting each at
        once makes an operation a fifth slower, because of cache misses.
        """
        added = self._added
        added.append(result)
        # A batch keeps the content of its results in memory: never more than a few megabytes.
        moved = result.bytes_sent + result.bytes_received
        if len(added) >= _TOGETHER or moved > _LARGE_BYTES:
            self._count_added()

    def _count_added(self) -> None:
        if not self._added:
            return
        results, self._added = self._added, []
        tally, whole, rows = self._tally, self._delta, self._rows
        start, end = self._window
        groups: dict[_Place, ResultGroup] = {}
        attempts: dict[int, int] = {}
        charges: dict[tuple[str, int], int] = {}
        slot_from, slot_until = self._slot_s
        for result in results:
            operation, done_s = result.operation, result.done_s
            key, second, in_window = operation.partition, int(done_s), start <= done_s < end
            label = tally.label_of(operation.label, operation.kind)
            row = rows.get(key) or self._row(key, done_s)
            place = id(row), label, second, in_window, result.outcome, result.estimated
            group = groups.get(place)
            if group is None:
                group = groups[place] = ResultGroup(row)
            group.add(key, result)
            unreported = (
                result.attempts if not result.reported else result.attempts[result.reported :]
            )
            for attempt in unreported:
                ended_s = attempt.ended_s
                if attempt.latency_s >= LONG_S or not slot_from <= ended_s < slot_until:
                    slot_from, slot_until = self._note_answer(attempt)
                moment = int(ended_s)
                attempts[moment] = attempts.get(moment, 0) + 1
                row.add_attempt(attempt, moment)
                if charge := attempt.request_charge:
                    charges[label, moment] = charges.get((label, moment), 0) + charge
                if attempt.status >= 300 or attempt.error_code:
                    self._count_refused(operation, attempt, moment)
        merged: dict[_Place, ResultGroup] = {}
        for (_, label, second, in_window, outcome, estimated), group in groups.items():
            group.row.add(label, second, group, in_window)
            for key, cell in group.cells.items():
                self._weights.access(key, cell[0])
            whole.heat.add(second, group.cells)
            place = 0, label, second, in_window, outcome, estimated
            if place in merged:
                merged[place].extend(group)
            else:
                merged[place] = group
        for (_, label, second, in_window, outcome, estimated), group in merged.items():
            tally.add(label, second, outcome, estimated, group.results)
            whole.service.add(second, group.service_s)
            if group.response_s:
                whole.response.add(second, group.response_s)
            if in_window:
                tally.kinds[label].latencies.record(group.service_s, group.response_s)
        tally.add_attempts(attempts)
        for (label, second), charge in charges.items():
            tally.add_charges(label, second, charge)
        if self._accounts:
            for result in results:
                tally.account(self._account(result.operation.partition_key)).add(result)

    def _note_answer(self, attempt: Attempt) -> tuple[float, float]:
        """Mark when an answer came, and how long it was waited for.

        Returns the slot of the latest answer, in which further ones need not be marked.
        """
        ended_s = attempt.ended_s
        if attempt.status:
            slot = int(ended_s * SLOTS)
            self._slots(ANSWERED).mark(slot)
            self._slot_s = (slot / SLOTS, (slot + 1) / SLOTS)
        if attempt.latency_s >= LONG_S:
            self._slots(WAITED).mark_between(attempt.sent_s, ended_s)
        return self._slot_s

    def _slots(self, name: str) -> Slots:
        slots = self._tally.series[name]
        assert isinstance(slots, Slots)
        return slots

    def _account(self, partition_key: str) -> str:
        return self._accounts[account_of(partition_key, len(self._accounts))]

    def _count_refused(self, operation: Operation, attempt: Attempt, second: int) -> None:
        """Count the throttling of a failed attempt, and keep its error."""
        if attempt.throttled:
            key = operation.partition
            self._tally.throttled[attempt.status].add(second, 1)
            label = self._tally.label_of(operation.label, operation.kind)
            self._tally.kinds[label].throttled += 1
            self._delta.heat.add_throttled(key, second)
            self._weights.throttle(key)
        if self._errors_kept >= ERROR_CAP:
            self._delta.errors_dropped += 1
            return
        self._errors_kept += 1
        account = self._account(operation.partition_key) if self._accounts else ""
        self._delta.errors.append(
            {
                "time_s": round(attempt.sent_s, 6),
                **({"account": account} if account else {}),
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

    def drain(self) -> Delta:
        """What was counted since the last drain. The ledger starts again from zero."""
        self._count_added()
        delta = self._delta
        delta.heat.settle()
        delta.folding = bool(self._folding)
        delta.accessed, delta.throttled = self._weights.drain()
        self._start_delta()
        self._promote(delta.tally)
        return delta

    def merge(self, delta: Delta) -> None:
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
        whole = self._delta
        whole.heat.merge(delta.heat)
        whole.service.merge(delta.service)
        whole.response.merge(delta.response)
        room = max(0, ERROR_CAP - len(whole.errors))
        whole.errors += delta.errors[:room]
        whole.errors_dropped += delta.errors_dropped + len(delta.errors[room:])
        self._promote(delta.tally)
        # A ledger that merges is never drained, so that the list would grow without end.
        whole.lost = []

    def snapshot(self, *, start: int, end: int, latencies: bool = True) -> Snapshot:
        """The content now, with rates and percentiles from ``start`` to before ``end``, UTC.

        ``latencies`` includes the series, latencies over time and the percentiles of each
        partition, which take about a millisecond a partition.
        """
        self._count_added()
        exact = not self._folding or len(self._sources) <= 1
        charged = self._tally.charged
        partitions = [
            partition_part(
                key,
                row,
                start,
                end,
                exact=exact and row.since_s is None and key not in self._partial,
                estimate=self._weights.bounds(key),
                latencies=latencies,
                charged=charged,
                account=self._account(Partition.named(key).key) if self._accounts else "",
            )
            for key, row in self._rows.items()
        ]
        folded = None
        if (rest := self._delta.folded) is not None:
            folded = partition_part(
                FOLDED, rest, start, end, exact=True, latencies=latencies, charged=charged
            )
        return snapshot_of(
            self._tally,
            partitions,
            folded,
            accounts=self._accounts,
            start=start,
            end=end,
            heat=self._delta.heat.view(),
            service_over_time=self._delta.service.view() if latencies else None,
            response_over_time=self._delta.response.view() if latencies else None,
            series=latencies,
            rows=self._rows,
        )

    def point(self, second: int) -> SeriesPoint:
        """The sums of one UTC second, as they are now."""
        kinds = [kind for kind in self.tally.kinds.values() if not kind.kind.untargeted]
        return point_of(self._tally, second, sum(kind.seconds.at(second) for kind in kinds))

    def seconds_of(self, key: str) -> PerSecond:
        """The entities of a partition that has a row, by UTC second; a `KeyError` for another."""
        self._count_added()
        return self._rows[key].seconds

    @property
    def seconds(self) -> PerSecond:
        """The entities of all partitions, by UTC second."""
        self._count_added()
        whole = PerSecond()
        for counted in self._tally.kinds.values():
            whole.merge(counted.seconds)
        return whole

    @property
    def tally(self) -> Tally:
        """What was counted so far, of all partitions together."""
        self._count_added()
        return self._tally

    @property
    def counts(self) -> Counts:
        return self.tally.counts

    def latencies(self) -> Iterator[tuple[str, LatencyHistogram]]:
        """Histograms of the measured window by operation, such as ``point_query.service``."""
        for label, counted in sorted(self.tally.kinds.items()):
            for name, histogram in counted.latencies.items():
                yield f"{label}.{name}", histogram

    def overall(self, latency: str) -> LatencyHistogram:
        """A copy of all ``service`` or ``response`` latencies of the measured window so far."""
        together = LatencyHistogram(KIND_DIGITS)
        for label, found in self.latencies():
            if label.endswith(f".{latency}"):
                together.merge(found)
        return together

    def errors(self) -> tuple[list[dict[str, Any]], int]:
        """Failed attempts with what the service's support asks for, and how many were not kept."""
        self._count_added()
        return self._delta.errors, self._delta.errors_dropped

    def close(self) -> None:
        """Release the sketches at the end of the process. Nothing can be counted after that.

        Their library reports a leak if they outlive the interpreter, as they do when an exception
        keeps a frame that refers to them.
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
            row = self._rows[key] = PartitionTally(since_s=self._tracked[key])
        return row

    def _fold(self) -> PartitionTally:
        if self._delta.folded is None:
            self._delta.folded = PartitionTally()
        return self._delta.folded

    def _promote(self, tally: Tally) -> None:
        """Give the rows of light keys to keys that became heavy with ``tally``."""
        for second, _ in tally.series["operations"].items():
            self._latest_s = max(self._latest_s, second + 1.0)
        if not self._folding and self._delta.folded is None:
            return
        for loser, winner in self._weights.swaps(self._tracked, self._cap):
            row = self._rows.pop(loser, None)
            if row is not None:
                row.since_s = None
                self._fold().merge(row)
            del self._tracked[loser]
            self._partial.discard(loser)
            self._delta.lost.append(loser)
            self._tracked[winner] = self._latest_s
