"""Snapshots: the content of a ledger at one moment, for terminal, metrics, pages and records.

Partitions and operations have their shapes of a record, with full precision.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from harness.measure.counts.latency import Latencies
from harness.measure.counts.per_second import PerSecond
from harness.measure.counts.tally import (
    KIND_DIGITS,
    PARTITION_DIGITS,
    AccountTally,
    Counts,
    PartitionTally,
    Tally,
    add_counts,
)
from harness.measure.record.over_time import HeatPart, LatencyCoursePart
from harness.measure.record.record import (
    AccountLoadPart,
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
        unsuccessful: Operations that did not succeed. Not all of them failed: see `Outcome.failed`.
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
        return sum(self.throttled_by_status.values())


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The content of a ledger.

    Counts, the series, the heat map and latencies over time cover the whole run. Rates and
    latencies cover the window, the UTC seconds from ``start`` to before ``end``.
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
    accounts: tuple[AccountLoadPart, ...]
    series: tuple[SeriesPoint, ...]
    heat: HeatPart | None
    service_over_time: LatencyCoursePart | None
    response_over_time: LatencyCoursePart | None

    @property
    def length_s(self) -> int:
        """Length of the measured window; 0 or less before it opened."""
        return self.end - self.start

    @property
    def throttled(self) -> int:
        return throttled_of(self.attempts)

    @property
    def throttled_ratio(self) -> float:
        return _ratio(self.throttled, self.counts.attempts)

    @property
    def hottest(self) -> PartitionPart | None:
        """The partition with the highest mean rate, without queries over several partitions."""
        partitions = (part for part in self.partitions if not over_partitions(part.key))
        return max(partitions, key=lambda part: part.entities_per_s.mean, default=None)

    @property
    def busiest_account(self) -> AccountLoadPart | None:
        """The one of several accounts with the highest mean rate; None with a single account."""
        return max(self.accounts, key=lambda part: part.entities_per_s.mean, default=None)

    @property
    def account_rates(self) -> RatesPart:
        """The rates that are held against the target of an account: those of the busiest one."""
        busiest = self.busiest_account
        return self.entities_per_s if busiest is None else busiest.entities_per_s


def attempts_by_status(attempts: Mapping[AttemptKey, int]) -> dict[str, int]:
    """Attempts by answer: ``204``, ``503 ServerBusy partition``, ``connection_reset``."""
    named: dict[str, int] = {}
    for (status, code, scope), count in sorted(attempts.items()):
        name = " ".join(filter(None, (str(status or ""), code, str(scope))))
        named[name] = named.get(name, 0) + count
    return named


def rates_of(seconds: PerSecond, start: int, end: int) -> RatesPart:
    """Rates over the UTC seconds from ``start`` to before ``end``."""
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
    account: str = "",
) -> PartitionPart:
    """The row of one partition, without a target."""
    views = (row.latencies if latencies else Latencies(PARTITION_DIGITS)).views()
    return PartitionPart(
        key=key,
        account=account,
        exact=exact,
        since=row.since_s,
        estimate=None if exact else estimate,
        entities=sum(row.entities.values()),
        entities_by_kind=dict(sorted(row.entities.items())),
        entities_per_s=rates_of(row.seconds, start, end),
        target=None,
        ratio=None,
        attempts_by_status=attempts_by_status(row.attempts),
        throttled_ratio=_ratio(throttled_of(row.attempts), sum(row.attempts.values())),
        attempts=row.attempts,
        **views,
    )


def account_part(name: str, counted: AccountTally, *, start: int, end: int) -> AccountLoadPart:
    """The row of one of several accounts, without its host, its target and its cost."""
    requests = sum(counted.attempts.values())
    return AccountLoadPart(
        name=name,
        entities=counted.entities,
        entities_per_s=rates_of(counted.seconds, start, end),
        transactions_per_s=rates_of(counted.requests, start, end).mean,
        attempts_by_status=attempts_by_status(counted.attempts),
        throttled_ratio=_ratio(throttled_of(counted.attempts), requests),
        attempts=counted.attempts,
    )


def snapshot_of(
    tally: Tally,
    partitions: Sequence[PartitionPart],
    folded: PartitionPart | None,
    *,
    start: int,
    end: int,
    heat: HeatPart | None,
    accounts: Sequence[str] = (),
    service_over_time: LatencyCoursePart | None = None,
    response_over_time: LatencyCoursePart | None = None,
    series: bool = True,
) -> Snapshot:
    """The snapshot of a tally and its partitions, which it sorts from the hottest down.

    ``accounts`` are the names of several accounts, also of those without any count. The series
    grows with the run; without ``series`` it is left out.
    """
    entities = PerSecond()
    outcomes: dict[Outcome, int] = {}
    attempts: dict[AttemptKey, int] = {}
    overall = Latencies(KIND_DIGITS)
    reads = writes = 0
    operations = []
    for label, counted in sorted(tally.kinds.items()):
        entities.merge(counted.seconds)
        overall.merge(counted.latencies)
        add_counts(outcomes, counted.outcomes)
        in_window = counted.seconds.total(start, end)
        if counted.kind.reads:
            reads += in_window
        else:
            writes += in_window
        operations.append(
            OperationPart(
                kind=label,
                type=counted.kind.value,
                entities_per_s=rates_of(counted.seconds, start, end),
                outcomes={o.value: count for o, count in sorted(counted.outcomes.items())},
                **counted.sums(),
                **counted.latencies.views(),
            )
        )
    for part in [*partitions, *filter(None, [folded])]:
        add_counts(attempts, part.attempts)
    return Snapshot(
        start=start,
        end=end,
        counts=dataclasses.replace(tally.counts),
        outcomes=outcomes,
        attempts=attempts,
        entities_per_s=rates_of(entities, start, end),
        reads_per_s=_ratio(reads, end - start),
        writes_per_s=_ratio(writes, end - start),
        operations=tuple(operations),
        partitions=tuple(
            sorted(
                partitions, key=lambda part: (-part.entities_per_s.mean, -part.entities, part.key)
            )
        ),
        folded=folded,
        accounts=tuple(
            account_part(name, tally.accounts.get(name, AccountTally()), start=start, end=end)
            for name in accounts
        ),
        series=_series(tally, entities, end) if series else (),
        heat=heat,
        service_over_time=service_over_time,
        response_over_time=response_over_time,
        **overall.views(),
    )


def _series(tally: Tally, entities: PerSecond, end: int) -> tuple[SeriesPoint, ...]:
    """All seconds from the first count to the last one, or to the end of the window."""
    lines = (entities, *tally.series.values(), *tally.throttled.values())
    known = sorted({second for line in lines for second, _ in line.items()})
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


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
