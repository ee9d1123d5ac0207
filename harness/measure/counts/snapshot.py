"""Snapshots: the content of a ledger at one moment, for terminal, metrics, pages and records.

The parts of a snapshot have the fields of those of a record in full precision, with no target yet,
and counts that a record does not keep.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from harness.measure.counts.latency import CountedLatency, Latencies
from harness.measure.counts.tally import (
    KIND_DIGITS,
    PARTITION_DIGITS,
    WAITED,
    AccountTally,
    AnswerTally,
    Counts,
    PartitionTally,
    Tally,
    add_counts,
    sums_of,
)
from harness.measure.counts.time_course import PerSecond
from harness.measure.record.measured import (
    AT_LEAST,
    AccountLoadPart,
    EstimatePart,
    MessagesPart,
    OperationPart,
    PartitionPart,
    RatesPart,
    RequestUnitsPart,
    is_lower_bound,
)
from harness.measure.record.over_time import HeatPart, LatencyCoursePart
from harness.model.operation import Kind
from harness.model.outcome import AttemptKey, Outcome, Scope, outcome_of, throttled_of
from harness.model.services import service_beside
from harness.model.services.service import Service, Targets
from harness.model.target import Throughput


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SeriesPoint:
    """Sums of one UTC second; for ``answered`` and ``waited`` see `ANSWERED`.

    Attributes:
        unsuccessful: Operations that did not succeed. Not all of them failed: see `Outcome.failed`.
        unchanged: Those of them that are writes with a regular answer, such as 404.
        charges: Request units, in hundredths.
        costliest: Those of the partition with the highest RU/s.
        backing_off_us: Microseconds that operations done in this second waited before retries.
        queued_us: Microseconds that they waited for a connection.
        kept: Messages that were put, minus those that were deleted.
        oldest_ms: Age of the oldest message that a get returned.
    """

    second: int
    entities: int
    operations: int
    unsuccessful: int
    attempts: int
    throttled_by_status: Mapping[int, int]
    unchanged: int = 0
    waiting: int = 0
    dropped: int = 0
    retrying: int = 0
    charges: int = 0
    costliest: int = 0
    backing_off_us: int = 0
    queued_us: int = 0
    kept: int = 0
    oldest_ms: int = 0
    answered: int = 0
    waited: int = 0

    @property
    def throttled(self) -> int:
        return sum(self.throttled_by_status.values())


class CountedAccount(AccountLoadPart):
    """The counts of one of several accounts, without its host and its cost.

    ``attempts`` are the answers by status, error code and scope.
    """

    attempts: dict[AttemptKey, int]

    def throttled(self, scope: Scope | None = None) -> int:
        return throttled_of(self.attempts, scope)


class CountedPartition(PartitionPart):
    """The counts of one partition, or of all folded ones together.

    Attributes:
        retrying: Operations that were throttled and go on, by UTC second.
    """

    attempts: dict[AttemptKey, int]
    retrying: dict[int, int]

    @property
    def throttled(self) -> int:
        return throttled_of(self.attempts)


class CountedOperation(OperationPart):
    """The counts of the operations of one name."""

    service_ms: CountedLatency | None
    response_ms: CountedLatency | None


class Held(NamedTuple):
    """A partition, its rate, its target and its enforced limit: in RU/s where any are charged.

    ``sign`` is that of a rate that is a lower bound.
    """

    key: str
    per_s: float
    target_per_s: float | None
    limit_per_s: float | None = None
    sign: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The content of a ledger.

    Counts, the series, the heat map and latencies over time cover the whole run. Rates and
    latencies cover the window, the UTC seconds from ``start`` to before ``end``. Every part has
    request units if the service charged any, and no part otherwise. Rates, entity counts and
    latencies of several partitions leave out what no document names a target for, unless there is
    nothing else.

    Attributes:
        oldest_ms: Age of the oldest message that a get returned, by UTC second, where above 0.
    """

    start: int
    end: int
    counts: Counts
    outcomes: Mapping[Outcome, int]
    attempts: Mapping[AttemptKey, int]
    entities_per_s: RatesPart
    reads_per_s: float
    writes_per_s: float
    service_ms: CountedLatency | None
    response_ms: CountedLatency | None
    operations: tuple[CountedOperation, ...]
    partitions: tuple[CountedPartition, ...]
    folded: CountedPartition | None
    accounts: tuple[CountedAccount, ...]
    series: tuple[SeriesPoint, ...]
    heat: HeatPart | None
    service_over_time: LatencyCoursePart | None
    response_over_time: LatencyCoursePart | None
    request_units: RequestUnitsPart | None = None
    oldest_ms: Mapping[int, int] = dataclasses.field(default_factory=dict)

    @property
    def alone(self) -> Service | None:
        """The one service beside tables that was used; None if tables were, or several services.

        What no document names a target for does not count beside others.
        """
        documented = [part for part in self.partitions if part.partition.documented]
        tables = {part.partition.table for part in documented or self.partitions}
        on_rows = self.folded and any(Kind(part.type).on_rows for part in self.operations)
        return None if len(tables) != 1 or on_rows else service_beside(tables.pop())

    @property
    def has_messages(self) -> bool:
        """Whether any partition is a queue."""
        return any(part.messages is not None for part in self.partitions)

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
    def single_partitions(self) -> list[CountedPartition]:
        """The partitions that a target can be for: without what stands for several of them."""
        return [part for part in self.partitions if part.partition.targeted]

    @property
    def hottest(self) -> CountedPartition | None:
        """The partition with the highest mean rate."""
        return max(self.single_partitions, key=lambda part: part.entities_per_s.mean, default=None)

    @property
    def costliest(self) -> CountedPartition | None:
        """The partition with the highest mean RU/s."""
        return max(self.single_partitions, key=_units_per_s, default=None)

    def nearest(
        self,
        targets: Targets | None,
        rate: Callable[[RatesPart], float] = operator.attrgetter("mean"),
    ) -> CountedPartition | None:
        """The partition that is nearest to its target by its ``rate``; without targets the hottest.

        ``targets`` are those of the endpoint.
        """

        def used(part: CountedPartition) -> float:
            return rate(part.entities_per_s) / (part.partition.target(targets) or 1.0)

        return max(self.single_partitions, key=used, default=None)

    def held(
        self, to: Targets | None, throughput: Throughput, enforced: float | None
    ) -> Held | None:
        """The partition that is nearest to its target, or that uses most request units.

        ``to`` are the targets of the endpoint; ``enforced`` is as for `Partition.limit`.
        """
        if self.request_units is not None and (part := self.costliest) is not None:
            return Held(part.key, _units_per_s(part), throughput.partition_ru_per_s)
        if (part := self.nearest(to)) is None:
            return None
        limit = None if enforced is None else part.partition.limit(to, enforced)
        rate, target = part.entities_per_s.mean, part.partition.target(to)
        return Held(part.key, rate, target, limit, self.sign(part))

    def sign(self, part: CountedPartition | None = None) -> str:
        """The sign of the rate of a partition, or of all together: of a lower bound, or empty."""
        return AT_LEAST if is_lower_bound(self.operations, self.partitions, part) else ""

    @property
    def account_request_units(self) -> RatesPart:
        """The RU/s that are held against what is provisioned: those of the account with most."""
        whole = RatesPart() if self.request_units is None else self.request_units.per_s
        each = [part.request_units.per_s for part in self.accounts if part.request_units]
        return max(each, key=lambda rates: rates.mean, default=whole)

    @property
    def busiest_account(self) -> CountedAccount | None:
        """The one of several accounts with the highest mean rate; None with a single account."""
        return max(self.accounts, key=lambda part: part.entities_per_s.mean, default=None)

    @property
    def account_rates(self) -> RatesPart:
        """The rates that are held against the target of an account: those of the busiest one."""
        busiest = self.busiest_account
        return self.entities_per_s if busiest is None else busiest.entities_per_s


def _units_per_s(part: CountedPartition) -> float:
    return part.request_units_per_s.mean


def attempts_by_status(attempts: Mapping[AttemptKey, int]) -> dict[str, int]:
    """Attempts by answer: ``204``, ``503 ServerBusy partition``, ``connection_reset``."""
    named: dict[str, int] = {}
    for (status, code, scope), count in sorted(attempts.items()):
        name = " ".join(filter(None, (str(status or ""), code, str(scope))))
        named[name] = named.get(name, 0) + count
    return named


def answer_named(name: str) -> tuple[int, str]:
    """Status and error code of a name of `attempts_by_status`; 0 and the name if it was none."""
    status, _, rest = name.partition(" ")
    return (int(status), rest.partition(" ")[0]) if status.isdecimal() else (0, name)


def page_words(attempts: Mapping[str, int], operations: int) -> str:
    """Behind attempts per operation, that not all further ones are retries; empty where all may be.

    An operation is served once, and each further page of its query again. Names are those of
    `attempts_by_status`.
    """
    answers = ((outcome_of(*answer_named(name)), count) for name, count in attempts.items())
    served = sum(count for outcome, count in answers if not outcome.failed)
    return ", further pages of queries included" if served > operations else ""


def rates_of(seconds: PerSecond, start: int, end: int) -> RatesPart:
    """Rates over the UTC seconds from ``start`` to before ``end``."""
    if end <= start:
        return RatesPart()
    return RatesPart(
        mean=seconds.total(start, end) / (end - start),
        best_1s=seconds.best(1, start, end),
        best_10s=seconds.best(10, start, end),
    )


def request_units_of(charges: PerSecond, start: int, end: int) -> RequestUnitsPart:
    """Request units of charges in hundredths: of all seconds, and the rates over the window."""
    rates = {name: rate / 100 for name, rate in rates_of(charges, start, end)}
    return RequestUnitsPart(total=charges.sum / 100, per_s=RatesPart(**rates))


def partition_part(
    key: str,
    row: PartitionTally,
    start: int,
    end: int,
    *,
    exact: bool,
    estimate: EstimatePart | None = None,
    latencies: bool = True,
    charged: bool = False,
    account: str = "",
) -> CountedPartition:
    """The row of one partition, without a target."""
    views = (row.latencies if latencies else Latencies(PARTITION_DIGITS)).views()
    return CountedPartition(
        key=key,
        account=account,
        exact=exact,
        since=row.since_s,
        estimate=None if exact else estimate,
        entities=sum(row.entities.values()),
        entities_by_kind=dict(sorted(row.entities.items())),
        target=None,
        ratio=None,
        retrying=dict(row.retrying.items()),
        messages=None if row.messages is None else MessagesPart(**dataclasses.asdict(row.messages)),
        **views,
        **_answered(row, start, end, charged),
    )


def _answered(row: AnswerTally, start: int, end: int, charged: bool) -> dict[str, Any]:
    """The fields that the rows of partitions and of accounts have in common, and all numbers."""
    return {
        "entities_per_s": rates_of(row.seconds, start, end),
        "attempts_by_status": attempts_by_status(row.attempts),
        "throttled_ratio": _ratio(throttled_of(row.attempts), sum(row.attempts.values())),
        "attempts": row.attempts,
        "request_units": request_units_of(row.charges, start, end) if charged else None,
        **sums_of(row),
    }


def account_part(
    name: str, counted: AccountTally, start: int, end: int, charged: bool
) -> CountedAccount:
    """The row of one of several accounts, without its host, its target and its cost."""
    return CountedAccount(
        name=name,
        transactions_per_s=rates_of(counted.requests, start, end).mean,
        **_answered(counted, start, end, charged),
    )


def snapshot_of(
    tally: Tally,
    partitions: Sequence[CountedPartition],
    folded: CountedPartition | None,
    *,
    start: int,
    end: int,
    heat: HeatPart | None,
    accounts: Sequence[str],
    service_over_time: LatencyCoursePart | None,
    response_over_time: LatencyCoursePart | None,
    series: bool,
    rows: Mapping[str, PartitionTally],
) -> Snapshot:
    """The snapshot of a tally and its partitions, which it sorts from the hottest down.

    ``accounts`` are the names of several accounts, also of those without any count. The series
    grows with the run; without ``series`` it is left out. ``rows`` are those of the partitions.
    """
    entities = PerSecond()
    outcomes: dict[Outcome, int] = {}
    attempts: dict[AttemptKey, int] = {}
    overall = Latencies(KIND_DIGITS)
    reads = writes = 0
    charged = tally.charged
    operations = []
    alone = all(counted.kind.untargeted for counted in tally.kinds.values())
    counts = dataclasses.replace(tally.counts)
    for label, counted in sorted(tally.kinds.items()):
        add_counts(outcomes, counted.outcomes)
        if alone:
            counts.entities += counted.entities
        if alone or not counted.kind.untargeted:
            overall.merge(counted.latencies)
            entities.merge(counted.seconds)
            in_window = counted.seconds.total(start, end)
            if counted.kind.reads:
                reads += in_window
            else:
                writes += in_window
        operations.append(
            CountedOperation(
                kind=label,
                type=counted.kind.value,
                entities_per_s=rates_of(counted.seconds, start, end),
                outcomes={o.value: count for o, count in sorted(counted.outcomes.items())},
                request_units=request_units_of(counted.charges, start, end) if charged else None,
                **sums_of(counted),
                **counted.latencies.views(),
            )
        )
    for part in [*partitions, *filter(None, [folded])]:
        add_counts(attempts, part.attempts)
    partitions = sorted(partitions, key=_hottest_first)
    return Snapshot(
        start=start,
        end=end,
        counts=counts,
        outcomes=outcomes,
        attempts=attempts,
        entities_per_s=rates_of(entities, start, end),
        reads_per_s=_ratio(reads, end - start),
        writes_per_s=_ratio(writes, end - start),
        operations=tuple(operations),
        partitions=tuple(partitions),
        folded=folded,
        accounts=tuple(
            account_part(name, tally.accounts.get(name, AccountTally()), start, end, charged)
            for name in accounts
        ),
        series=_series(tally, entities, end, _costliest(partitions, rows)) if series else (),
        heat=heat,
        service_over_time=service_over_time,
        response_over_time=response_over_time,
        request_units=request_units_of(tally.series["charges"], start, end) if charged else None,
        oldest_ms=dict(tally.series["oldest_ms"].items()),
        **overall.views(),
    )


def _hottest_first(part: CountedPartition) -> tuple[float, float, int, str]:
    return -_units_per_s(part), -part.entities_per_s.mean, -part.entities, part.key


def _costliest(
    partitions: Sequence[CountedPartition], rows: Mapping[str, PartitionTally]
) -> PerSecond:
    """The charges of the partition with the highest RU/s, by second; empty without any."""
    charged = [part for part in partitions if part.request_units and not part.partition.whole_table]
    most = max(charged, key=_units_per_s, default=None)
    return PerSecond() if most is None else rows[most.key].charges


def _series(
    tally: Tally, entities: PerSecond, end: int, costliest: PerSecond
) -> tuple[SeriesPoint, ...]:
    """All seconds from the first count to the last one, or to the end of the window."""
    # A request may have waited before anything was counted.
    series = (line for name, line in tally.series.items() if name != WAITED)
    lines = (entities, *series, *tally.throttled.values())
    known = sorted({second for line in lines for second, _ in line.items()})
    if not known:
        return ()
    return tuple(
        point_of(tally, second, entities.at(second), costliest.at(second))
        for second in range(known[0], max(known[-1] + 1, end))
    )


def point_of(tally: Tally, second: int, entities: int, costliest: int = 0) -> SeriesPoint:
    return SeriesPoint(
        second=second,
        entities=entities,
        costliest=costliest,
        throttled_by_status={s: line.at(second) for s, line in tally.throttled.items()},
        **{name: line.at(second) for name, line in tally.series.items()},
    )


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
