"""Snapshots: what a ledger knew at one moment. Terminal, metrics, pages and records read these.

Partitions and operations have the shapes that they have in a record, with full precision.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from harness.measure.counts.heatmap import HeatView
from harness.measure.counts.latency import Latencies, LatencyHistogram
from harness.measure.counts.per_second import PerSecond
from harness.measure.counts.tally import (
    KIND_DIGITS,
    Counts,
    KindTally,
    PartitionTally,
    Tally,
)
from harness.measure.counts.time_course import CourseView
from harness.measure.record.record import (
    EstimatePart,
    LatencyPart,
    OperationPart,
    PartitionPart,
    RatesPart,
)
from harness.model.operation import over_partitions
from harness.model.outcome import AttemptKey, Outcome, throttled_of


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SeriesPoint:
    """Sums of one UTC second.

    Attributes:
        unsuccessful: Operations that did not succeed. Some of them are no failures: see
            `Outcome.failed`.
        throttled_by_status: Throttled attempts, with an item for each of `THROTTLING_STATUSES`.
        waiting: Operations that were due and not sent.
    """

    second: int
    entities: int
    operations: int
    unsuccessful: int
    attempts: int
    throttled_by_status: Mapping[int, int]
    waiting: int = 0
    dropped: int = 0

    @property
    def throttled(self) -> int:
        """Throttled attempts."""
        return sum(self.throttled_by_status.values())


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything a ledger knew.

    Counts, the series, the heat map and the courses cover the whole run; rates and latencies the
    window.
    """

    start: int
    end: int
    counts: Counts
    outcomes: Mapping[Outcome, int]
    attempts: Mapping[AttemptKey, int]
    entities_per_s: RatesPart
    reads_per_s: float
    writes_per_s: float
    service_ms: LatencyPart | None
    response_ms: LatencyPart | None
    operations: tuple[OperationPart, ...]
    partitions: tuple[PartitionPart, ...]
    folded: PartitionPart | None
    series: tuple[SeriesPoint, ...]
    course: CourseView

    @property
    def heat(self) -> HeatView | None:
        """The heat map; None where nothing was counted."""
        return self.course.heat

    @property
    def throttled(self) -> int:
        """Throttled attempts of the whole run."""
        return throttled_of(self.attempts)

    @property
    def throttled_ratio(self) -> float:
        """Throttled attempts among all attempts of the whole run."""
        return _ratio(self.throttled, self.counts.attempts)

    @property
    def hottest(self) -> PartitionPart | None:
        """The partition with the highest mean rate; queries over the whole table are none."""
        partitions = (view for view in self.partitions if not over_partitions(view.key))
        return max(partitions, key=lambda view: view.entities_per_s.mean, default=None)


def attempts_by_status(attempts: Mapping[AttemptKey, int]) -> dict[str, int]:
    """Attempts by what answered: ``204``, ``503 ServerBusy partition``, ``connection_reset``."""
    named: dict[str, int] = {}
    for (status, code, scope), count in sorted(attempts.items()):
        parts = [str(status) if status else "", code, str(scope)]
        name = " ".join(part for part in parts if part)
        named[name] = named.get(name, 0) + count
    return named


def rates_of(seconds: PerSecond, start: int, end: int) -> RatesPart:
    """Rates over the UTC seconds from ``start`` up to, not including, ``end``."""
    if end <= start:
        return RatesPart()
    return RatesPart(
        mean=seconds.total(start, end) / (end - start),
        best_1s=seconds.best(1, start, end),
        best_10s=seconds.best(10, start, end),
    )


def partition_part(
    key: str,
    row: PartitionTally,
    *,
    start: int,
    end: int,
    exact: bool,
    estimate: EstimatePart | None = None,
    latencies: bool = True,
) -> PartitionPart:
    """One row as of now, without a target."""
    service, response = _views(row.latencies) if latencies else (None, None)
    sent = sum(row.attempts.values())
    return PartitionPart(
        key=key,
        exact=exact,
        since=row.since_s,
        estimate=None if exact else estimate,
        entities=sum(row.entities.values()),
        entities_by_kind=dict(sorted(row.entities.items())),
        entities_per_s=rates_of(row.seconds, start, end),
        target=None,
        ratio=None,
        attempts_by_status=attempts_by_status(row.attempts),
        throttled_ratio=_ratio(throttled_of(row.attempts), sent),
        service_ms=service,
        response_ms=response,
        attempts=row.attempts,
    )


def snapshot_of(
    tally: Tally,
    partitions: list[PartitionPart],
    folded: PartitionPart | None,
    *,
    start: int,
    end: int,
    course: CourseView,
    series: bool = True,
) -> Snapshot:
    """The snapshot of a tally and its rows. Partitions come hottest first.

    Without ``series`` that of every second is left out: it grows with the run.
    """
    entities = PerSecond()
    outcomes: dict[Outcome, int] = {}
    attempts: dict[AttemptKey, int] = {}
    overall = Latencies(KIND_DIGITS)
    reads = writes = 0
    for counted in tally.kinds.values():
        entities.merge(counted.seconds)
        overall.merge(counted.latencies)
        for outcome, count in counted.outcomes.items():
            outcomes[outcome] = outcomes.get(outcome, 0) + count
        if counted.kind.reads:
            reads += counted.seconds.total(start, end)
        else:
            writes += counted.seconds.total(start, end)
    for view in [*partitions, *([] if folded is None else [folded])]:
        for seen, count in view.attempts.items():
            attempts[seen] = attempts.get(seen, 0) + count
    service, response = _views(overall)
    return Snapshot(
        start=start,
        end=end,
        counts=dataclasses.replace(tally.counts),
        outcomes=outcomes,
        attempts=attempts,
        entities_per_s=rates_of(entities, start, end),
        reads_per_s=_ratio(reads, end - start),
        writes_per_s=_ratio(writes, end - start),
        service_ms=service,
        response_ms=response,
        operations=tuple(
            _operation_part(label, counted, start, end)
            for label, counted in sorted(tally.kinds.items())
        ),
        partitions=tuple(
            sorted(
                partitions, key=lambda view: (-view.entities_per_s.mean, -view.entities, view.key)
            )
        ),
        folded=folded,
        series=_series(tally, entities, end) if series else (),
        course=course,
    )


def _operation_part(label: str, counted: KindTally, start: int, end: int) -> OperationPart:
    service, response = _views(counted.latencies)
    return OperationPart(
        kind=label,
        type=counted.kind.value,
        count=counted.operations,
        entities=counted.entities,
        entities_returned=counted.returned,
        entities_estimated=counted.estimated,
        uncertain=counted.uncertain,
        entities_per_s=rates_of(counted.seconds, start, end),
        outcomes={outcome.value: count for outcome, count in sorted(counted.outcomes.items())},
        service_ms=service,
        response_ms=response,
    )


def _series(tally: Tally, entities: PerSecond, end: int) -> tuple[SeriesPoint, ...]:
    """Every second from the first with anything in it to the last, or to the window's end."""
    known = sorted(
        {
            second
            for line in (entities, *tally.series.values(), *tally.throttled.values())
            for second, _ in line.items()
        }
    )
    if not known:
        return ()
    return tuple(
        SeriesPoint(
            second=second,
            entities=entities.at(second),
            throttled_by_status={s: line.at(second) for s, line in tally.throttled.items()},
            **{name: line.at(second) for name, line in tally.series.items()},
        )
        for second in range(known[0], max(known[-1] + 1, end))
    )


def _views(latencies: Latencies) -> tuple[LatencyPart | None, LatencyPart | None]:
    return _view(latencies.service), _view(latencies.response)


def _view(histogram: LatencyHistogram | None) -> LatencyPart | None:
    return None if histogram is None else histogram.view()


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
