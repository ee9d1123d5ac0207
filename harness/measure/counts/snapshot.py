"""Snapshots: what a ledger knew at one moment. Terminal, metrics, pages and records read these."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from harness.measure.course import CourseView
from harness.measure.heatmap import HeatView
from harness.measure.latency import Latencies, LatencyHistogram, LatencyView
from harness.measure.seconds import PerSecond
from harness.measure.tally import (
    KIND_DIGITS,
    AttemptKey,
    Counts,
    KindTally,
    PartitionTally,
    Tally,
)
from harness.model.operation import Kind, over_partitions
from harness.model.outcome import Outcome, Scope, is_throttling


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Entities a second over the measured window: mean, best second, best ten seconds in a row."""

    mean: float = 0.0
    best_1s: float = 0.0
    best_10s: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HeavyHitter:
    """Bounds of an estimate: what a key counts for in the whole run."""

    at_least: int
    at_most: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PartitionView:
    """One partition, or all folded ones.

    Attributes:
        exact: True where every operation of the key was counted in this row.
        since_s: From when on the key was told apart, UTC; None is from the start.
        estimate: For a key that is not exact, bounds of its entities.
    """

    key: str
    exact: bool
    since_s: float | None
    estimate: HeavyHitter | None
    entities: int
    entities_by_operation: Mapping[str, int]
    entities_per_s: Rates
    attempts: Mapping[AttemptKey, int]
    service: LatencyView | None
    response: LatencyView | None

    @property
    def throttled(self) -> int:
        """Throttled attempts."""
        return throttled_of(self.attempts)

    @property
    def throttled_ratio(self) -> float:
        """Throttled attempts among all attempts."""
        return _ratio(self.throttled, sum(self.attempts.values()))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class KindView:
    """The operations of one name.

    Attributes:
        label: Their name.
        returned: Entities that came back.
        estimated: Of ``entities``, what is the least it can be.
        uncertain: Of ``operations``, those for which it is.
    """

    label: str
    kind: Kind
    operations: int
    entities: int
    returned: int
    estimated: int
    uncertain: int
    outcomes: Mapping[Outcome, int]
    entities_per_s: Rates
    service: LatencyView | None
    response: LatencyView | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SeriesPoint:
    """Sums of one UTC second; ``waiting`` is how many operations were due and not sent in it."""

    second: int
    entities: int
    operations: int
    failed: int
    attempts: int
    throttled_503: int
    throttled_500: int
    throttled_429: int
    waiting: int = 0
    dropped: int = 0


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
    entities_per_s: Rates
    reads_per_s: float
    writes_per_s: float
    service: LatencyView | None
    response: LatencyView | None
    kinds: tuple[KindView, ...]
    partitions: tuple[PartitionView, ...]
    folded: PartitionView | None
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
    def hottest(self) -> PartitionView | None:
        """The partition with the highest mean rate; queries over the whole table are none."""
        partitions = (view for view in self.partitions if not over_partitions(view.key))
        return max(partitions, key=lambda view: view.entities_per_s.mean, default=None)


def throttled_of(attempts: Mapping[AttemptKey, int], scope: Scope | None = None) -> int:
    """Throttled ones among ``attempts``; with ``scope``, those of that scope."""
    return sum(
        count
        for (status, code, of), count in attempts.items()
        if is_throttling(status, code) and scope in (None, of)
    )


def rates_of(seconds: PerSecond, start: int, end: int) -> Rates:
    """Rates over the UTC seconds from ``start`` up to, not including, ``end``."""
    if end <= start:
        return Rates()
    return Rates(
        mean=seconds.total(start, end) / (end - start),
        best_1s=seconds.best(1, start, end),
        best_10s=seconds.best(10, start, end),
    )


def partition_view(
    key: str,
    row: PartitionTally,
    *,
    start: int,
    end: int,
    exact: bool,
    hitter: HeavyHitter | None = None,
    latencies: bool = True,
) -> PartitionView:
    """The view of one row."""
    service, response = _views(row.latencies) if latencies else (None, None)
    return PartitionView(
        key=key,
        exact=exact,
        since_s=row.since_s,
        estimate=None if exact else hitter,
        entities=sum(row.entities.values()),
        entities_by_operation=dict(row.entities),
        entities_per_s=rates_of(row.seconds, start, end),
        attempts=dict(row.attempts),
        service=service,
        response=response,
    )


def snapshot_of(
    tally: Tally,
    partitions: list[PartitionView],
    folded: PartitionView | None,
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
        service=service,
        response=response,
        kinds=tuple(
            _kind_view(label, counted, start, end) for label, counted in sorted(tally.kinds.items())
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


def _kind_view(label: str, counted: KindTally, start: int, end: int) -> KindView:
    service, response = _views(counted.latencies)
    return KindView(
        label=label,
        kind=counted.kind,
        operations=counted.operations,
        entities=counted.entities,
        returned=counted.returned,
        estimated=counted.estimated,
        uncertain=counted.uncertain,
        outcomes=dict(counted.outcomes),
        entities_per_s=rates_of(counted.seconds, start, end),
        service=service,
        response=response,
    )


def _series(tally: Tally, entities: PerSecond, end: int) -> tuple[SeriesPoint, ...]:
    """Every second from the first with anything in it to the last, or to the window's end."""
    known = sorted(
        {second for line in (entities, *tally.series.values()) for second, _ in line.items()}
    )
    if not known:
        return ()
    return tuple(
        SeriesPoint(
            second=second,
            entities=entities.at(second),
            **{name: line.at(second) for name, line in tally.series.items()},
        )
        for second in range(known[0], max(known[-1] + 1, end))
    )


def _views(latencies: Latencies) -> tuple[LatencyView | None, LatencyView | None]:
    return _view(latencies.service), _view(latencies.response)


def _view(histogram: LatencyHistogram | None) -> LatencyView | None:
    return None if histogram is None else histogram.view()


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
