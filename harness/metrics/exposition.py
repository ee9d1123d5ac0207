"""The series of the current or last run, read at scrape time from a snapshot.

Nothing is counted here. A second run replaces the first. Names that are shown alike are added up.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector

from harness import __version__
from harness.measure.counts.latency import BUCKETS_S, SPANS, CountedLatency
from harness.measure.counts.snapshot import CountedAccount, CountedPartition, Snapshot
from harness.measure.record.findings import VerdictPart
from harness.measure.record.measured import AccountLoadPart, OperationPart, PartitionPart
from harness.measure.record.over_time import HeatPart
from harness.model.operation import FOLDED, Kind
from harness.model.outcome import THROTTLING_ANSWERS
from harness.model.partition import Partition
from harness.model.services.service import Targets
from harness.model.target import UNKNOWN_THROUGHPUT, Throughput

Rows = Iterable[tuple[tuple[str, ...], float]]
"""Values of the labels, and of the series."""

_TABLE = "(table)"
_EMPTY = "(empty)"
_RESERVED = frozenset((FOLDED, _TABLE, _EMPTY))
_UNSHOWABLE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
OVER_S = 5
"""Seconds, or one wider column, over which the rate of a key range is the mean."""


class Families:
    """Makes the families of a run: every series has the label ``run`` before its own.

    Rows with equal labels are added up, so that no series comes twice.
    """

    def __init__(self, run: str) -> None:
        self._run = run

    def counter(self, name: str, text: str, rows: Rows, labels: tuple[str, ...] = ()) -> Metric:
        """A family of counters; ``name`` is without its ``_total``."""
        return self._filled(CounterMetricFamily(name, text, labels=("run", *labels)), rows)

    def gauge(self, name: str, text: str, rows: Rows, labels: tuple[str, ...] = ()) -> Metric:
        return self._filled(GaugeMetricFamily(name, text, labels=("run", *labels)), rows)

    def value(self, name: str, text: str, value: float | None) -> Metric:
        """A gauge of the whole run; None gives no series."""
        return self.gauge(name, text, () if value is None else [((), value)])

    def info(self, name: str, text: str, labels: Mapping[str, str]) -> Metric:
        """Texts as labels; ``name`` is without its ``_info``."""
        shown = {label: showable(value) for label, value in labels.items()}
        return InfoMetricFamily(name, text, value={"run": self._run, **shown})

    def _filled(self, family: CounterMetricFamily | GaugeMetricFamily, rows: Rows) -> Metric:
        sums: dict[tuple[str, ...], float] = {}
        for values, value in rows:
            sums[values] = sums.get(values, 0) + value
        for values, value in sums.items():
            family.add_metric((self._run, *values), value)
        return family


def partition_label(key: str) -> str:
    """The label of a partition: its key as far as possible, with its table if it has one.

    A query over several partitions is ``(table)``, the empty key ``(empty)``. A key that is spelled
    like one of these stands behind a slash, which no real key contains. Control characters and
    half surrogate pairs, which no real key contains either, are shown as ``\\uXXXX``.
    """
    partition = Partition.named(key)
    own = partition.key
    shown = f"/{own}" if own in _RESERVED else showable(own) or _EMPTY
    if partition.whole_table:
        shown = _TABLE
    return partition._replace(table=showable(partition.table), key=shown).name


def showable(text: str) -> str:
    """``text`` with ``\\uXXXX`` for each character that a metrics page cannot hold."""
    return _UNSHOWABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunCourse:
    """The progress of a run. Times are UTC seconds.

    Attributes:
        window: Begin and end of the measured window if one is open; the end as planned until the
            run has ended.
    """

    phases: tuple[str, ...]
    phase: str
    started_s: float
    ended_s: float | None = None
    window: tuple[float, float] | None = None
    verdict: VerdictPart | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LoadState:
    """The state of the load now.

    Attributes:
        offered_per_s: Entities per second that the load requests; None without a requested rate.
        waiting: Operations that are due and not sent; None in a closed loop.
        billable_transactions: Requests of the whole run, loading included.
        billable_by_account: The same by the name of each of several accounts.
    """

    offered_per_s: float | None = None
    waiting: int | None = None
    in_flight: int = 0
    dropped: int = 0
    billable_transactions: int = 0
    billable_limit: int | None = None
    billable_by_account: Mapping[str, int] = dataclasses.field(default_factory=dict)


class RunLabels(NamedTuple):
    """Labels of ``aztables_run_info``."""

    profile: str
    endpoint: str
    described: str
    host: str
    session: str
    table: str = ""
    version: str = __version__


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Exposed:
    """The state of a run that a scrape shows.

    Attributes:
        snapshot: The counts, without partition latencies.
        counted_until_s: UTC second before which the counts are complete.
        partitions: Names of partitions that are known to come.
        throughput: What is known to be provisioned at Cosmos DB, for each account.
        cpu_percent: Each worker's CPU in its last second, in percent of one core.
    """

    run_id: str
    snapshot: Snapshot
    counted_until_s: int
    course: RunCourse
    load: LoadState
    targets: Targets | None
    users: int
    workers: int
    cpu_percent: Mapping[str, float]
    info: RunLabels
    throughput: Throughput = UNKNOWN_THROUGHPUT
    partitions: tuple[str, ...] = ()


Read = Callable[[], Exposed | None]
"""Gives the run to show now; None before the first run."""


class RunState(Collector):
    """The run that ``read`` gives, as Prometheus series."""

    def __init__(self, read: Read) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        """The series of this moment; none before the first run."""
        exposed = self._read()
        if exposed is None:
            return
        families, held = Families(exposed.run_id), exposed.targets
        labels = {**exposed.info._asdict(), "targets": held.origin if held else "none"}
        yield families.info("aztables_run", "The current or last run.", labels)
        yield from _course(families, exposed.course)
        yield from _load(families, exposed.load)
        yield from _counts(families, exposed.snapshot, exposed.partitions)
        if exposed.snapshot.accounts:
            yield from _accounts(families, exposed.snapshot, exposed.load)
        if exposed.snapshot.request_units is not None:
            yield from _request_units(families, exposed.snapshot, exposed.throughput)
        if exposed.snapshot.has_messages:
            yield from _messages(families, exposed.snapshot, exposed.counted_until_s)
        yield _durations(exposed.run_id, exposed.snapshot)
        yield _percentiles(exposed.run_id, exposed.snapshot)
        yield from _key_ranges(families, exposed.snapshot.heat, exposed.counted_until_s)
        targets = {} if held is None else {"partition": held.partition, "account": held.account}
        yield families.gauge(
            "aztables_target_entities_per_second",
            "Targets for entities of 1 KiB; aztables_run_info tells published from raised ones.",
            (((scope,), target) for scope, target in targets.items() if target < math.inf),
            ("scope",),
        )
        yield families.gauge(
            "aztables_partition_target_entities_per_second",
            "The target of each partition that has one; of one beside tables that of its service.",
            (
                ((partition_label(part.key),), target)
                for part in exposed.snapshot.partitions
                if (target := part.partition.target(held)) is not None
            ),
            ("partition",),
        )
        yield families.value("aztables_users", "Simulated users.", exposed.users)
        what = "Processes that generate load; of a watch those that meter it."
        yield families.value("aztables_workers", what, exposed.workers)
        yield families.gauge(
            "aztables_generator_cpu_percent",
            "CPU of a process that generates or meters load in its last second, in percent of one "
            "core.",
            (((showable(name),), cpu) for name, cpu in exposed.cpu_percent.items()),
            ("worker",),
        )


def _course(families: Families, course: RunCourse) -> Iterator[Metric]:
    yield families.gauge(
        "aztables_run_phase",
        "1 for the current phase of the run, 0 for the others.",
        (((phase,), float(phase == course.phase)) for phase in course.phases),
        ("phase",),
    )
    start_s, end_s = (None, None) if course.window is None else course.window
    for name, text, moment_s in (
        ("run_started", "When the run was prepared", course.started_s),
        ("run_ended", "When the load of the run ended", course.ended_s),
        ("measured_window_start", "When the measured window opens", start_s),
        ("measured_window_end", "When the measured window closes, or is planned to", end_s),
    ):
        yield families.value(f"aztables_{name}_timestamp_seconds", f"{text}, Unix time.", moment_s)
    if (found := course.verdict) is not None:
        labels = {"verdict": found.result, "limited_by": found.limited_by, "sentence": found.whole}
        yield families.info("aztables_verdict", "The result of the run.", labels)


def _load(families: Families, load: LoadState) -> Iterator[Metric]:
    limit = load.billable_limit
    left = None if limit is None else max(0, limit - load.billable_transactions)
    for name, text, value in (
        ("offered_entities_per_second", "Requested entities per second", load.offered_per_s),
        ("operations_waiting", "Operations that are due and not sent", load.waiting),
        ("operations_in_flight", "Operations that were sent and have not ended", load.in_flight),
        ("billable_transactions_limit", "Billable transactions of the run at most", limit),
        ("billable_transactions_left", "Billable transactions that remain until the limit", left),
    ):
        yield families.value(f"aztables_{name}", f"{text}.", value)
    for name, text, count in (
        ("operations_dropped", "Operations that were due and dropped unsent.", load.dropped),
        (
            "billable_transactions",
            "Requests that an account is charged for, with loading, retries, pages and cleaning.",
            load.billable_transactions,
        ),
    ):
        yield families.counter(f"aztables_{name}", text, [((), count)])


def _labelled(snapshot: Snapshot) -> list[tuple[str, CountedPartition]]:
    """The partitions with their labels, and the sum of the others."""
    partitions = [(partition_label(part.key), part) for part in snapshot.partitions]
    return partitions + ([] if snapshot.folded is None else [(FOLDED, snapshot.folded)])


def _counts(families: Families, snapshot: Snapshot, expected: Iterable[str]) -> Iterator[Metric]:
    partitions = _labelled(snapshot)
    queries = [part for part in snapshot.operations if part.type == Kind.QUERY]
    yield families.counter(
        "aztables_entities",
        "Entities that were inserted, updated, deleted or scanned, by partition; (other) is the "
        "sum of the partitions that are not counted separately.",
        (
            ((label, showable(op)), count)
            for label, part in partitions
            for op, count in part.entities_by_kind.items()
        ),
        ("partition", "op"),
    )
    yield families.counter(
        "aztables_attempts",
        "HTTP requests, retries and pages included; the status is 0 without a complete answer.",
        _attempts(partitions, snapshot, map(partition_label, expected)),
        ("partition", "status", "error_code", "scope"),
    )
    yield families.counter(
        "aztables_partition_operations",
        "Operations that ended, by partition; with aztables_attempts the attempts per operation.",
        (((label,), part.operations) for label, part in partitions),
        ("partition",),
    )
    yield families.counter(
        "aztables_operations",
        "Operations by outcome, after all retries.",
        (
            ((showable(part.kind), outcome), count)
            for part in snapshot.operations
            for outcome, count in part.outcomes.items()
        ),
        ("op", "outcome"),
    )
    yield families.counter(
        "aztables_entities_returned",
        "Entities that queries returned.",
        (((showable(part.kind),), part.entities_returned) for part in queries),
        ("op",),
    )
    yield families.counter(
        "aztables_entities_scanned",
        "Entities that queries scanned; where estimated is true, the least possible count.",
        (
            ((showable(part.kind), estimated), count)
            for part in queries
            for estimated, count in (
                ("false", part.entities - part.entities_estimated),
                ("true", part.entities_estimated),
            )
        ),
        ("op", "estimated"),
    )


def _request_units(
    families: Families, snapshot: Snapshot, throughput: Throughput
) -> Iterator[Metric]:
    """What Cosmos DB charged, and what it is held against."""
    yield families.counter(
        "aztables_request_units",
        "Request units that Cosmos DB charged for all attempts, by partition; (other) is the sum "
        "of the partitions that are not counted separately.",
        (((label,), _units(part)) for label, part in _labelled(snapshot)),
        ("partition",),
    )
    yield families.counter(
        "aztables_operation_request_units",
        "Request units that Cosmos DB charged, by operation, for all of its attempts.",
        (((showable(part.kind),), _units(part)) for part in snapshot.operations),
        ("op",),
    )
    if snapshot.accounts:
        yield families.counter(
            "aztables_account_request_units",
            "Request units by account; only in a run against several.",
            (((showable(part.name),), _units(part)) for part in snapshot.accounts),
            ("account",),
        )
    limits = {"partition": throughput.partition_ru_per_s, "account": throughput.ru_per_s}
    yield families.gauge(
        "aztables_target_request_units_per_second",
        "Request units per second that one partition can have, 10,000 or its even share of what "
        "is provisioned, and what is provisioned, if endpoint.provisioned_ru_per_s says it.",
        (((scope,), limit) for scope, limit in limits.items() if limit is not None),
        ("scope",),
    )


def _messages(families: Families, snapshot: Snapshot, until_s: int) -> Iterator[Metric]:
    """What queues hold, and how long their messages wait."""
    parts = [(label, part.messages) for label, part in _labelled(snapshot)]
    yield families.gauge(
        "aztables_backlog_messages",
        "Messages that the run put and did not delete, by queue.",
        (((label,), messages.backlog) for label, messages in parts if messages is not None),
        ("partition",),
    )
    seconds = range(until_s - OVER_S, until_s)
    yield families.value(
        "aztables_oldest_message_seconds",
        f"Age of the oldest message that a get returned in the last {OVER_S} seconds, by the clock "
        "of the service, which tells whole seconds; 0 without any.",
        max(snapshot.oldest_ms.get(second, 0) for second in seconds) / 1000,
    )


def _attempts(
    parts: Sequence[tuple[str, CountedPartition | CountedAccount]],
    snapshot: Snapshot,
    expected: Iterable[str] = (),
) -> Iterator[tuple[tuple[str, ...], int]]:
    """The samples of attempts by label, status, error code and scope.

    Throttling answers that have not come, also of the labels that are ``expected``, are 0: no rate
    of Prometheus has the value with which a series begins.
    """
    for label in {*(label for label, _ in parts), *expected}:
        for answer in THROTTLING_ANSWERS:
            if not answer.charged or snapshot.request_units is not None:
                for code, scope in answer.usual:
                    yield (label, str(answer.status), code, str(scope)), 0
    for label, part in parts:
        for (status, code, scope), count in part.attempts.items():
            yield (label, str(status), showable(code), str(scope)), count


def _units(part: PartitionPart | OperationPart | AccountLoadPart) -> float:
    return 0.0 if part.request_units is None else part.request_units.total


def _accounts(families: Families, snapshot: Snapshot, load: LoadState) -> Iterator[Metric]:
    """The counts of each of several accounts, which add up to those of the run."""
    accounts = [(showable(part.name), part) for part in snapshot.accounts]
    yield families.counter(
        "aztables_account_entities",
        "Entities that were inserted, updated, deleted or scanned, by account; only in a run "
        "against several.",
        (((name,), part.entities) for name, part in accounts),
        ("account",),
    )
    yield families.counter(
        "aztables_account_attempts",
        "HTTP requests by account, retries and pages included; only in a run against several.",
        _attempts(accounts, snapshot),
        ("account", "status", "error_code", "scope"),
    )
    yield families.counter(
        "aztables_account_billable_transactions",
        "Requests that each account is charged for; only in a run against several.",
        (((showable(name),), count) for name, count in load.billable_by_account.items()),
        ("account",),
    )


def _durations(run: str, snapshot: Snapshot) -> Metric:
    """A histogram of each operation and latency, in buckets that Prometheus can add up."""
    family = HistogramMetricFamily(
        "aztables_operation_duration_seconds",
        "Latency of the operations of the measured window: service is "
        f"{SPANS['service']}; response is {SPANS['response']} (open model only).",
        labels=("run", "op", "latency"),
    )
    rows: dict[tuple[str, ...], list[CountedLatency]] = {}
    for part in snapshot.operations:
        for latency, view in (("service", part.service_ms), ("response", part.response_ms)):
            if view is not None:
                rows.setdefault((run, showable(part.kind), latency), []).append(view)
    for labels, views in rows.items():
        counts = [sum(bucket) for bucket in zip(*(view.buckets for view in views), strict=True)]
        counts.append(sum(view.count for view in views))
        bounds = [*map(str, BUCKETS_S), "+Inf"]
        buckets = [(bound, float(n)) for bound, n in zip(bounds, counts, strict=True)]
        family.add_metric(labels, buckets, sum(view.total_s for view in views))
    return family


def _percentiles(run: str, snapshot: Snapshot) -> Metric:
    """Exact percentiles of all operations together; buckets only approximate them."""
    name = "aztables_latency_seconds"
    family = SummaryMetricFamily(
        name,
        "Exact percentiles of the latency of all operations in the measured window so far; service "
        "and response as in aztables_operation_duration_seconds.",
        labels=("run", "latency"),
    )
    for latency, view in (("service", snapshot.service_ms), ("response", snapshot.response_ms)):
        if view is not None:
            family.add_metric((run, latency), view.count, view.total_s)
            for share, value in (("0.5", view.p50), ("0.9", view.p90), ("0.99", view.p99)):
                labels = {"run": run, "latency": latency, "quantile": share}
                family.add_sample(name, labels, value / 1000)
    return family


def _key_ranges(families: Families, heat: HeatPart | None, until_s: int) -> Iterator[Metric]:
    """Gauges, because ranges are merged as a run goes on: where one ends, a counter would jump."""
    rates = [] if heat is None else heat.rates(until_s, OVER_S)
    labelled = [((partition_label(rate.first),), rate) for rate in rates]
    yield families.gauge(
        "aztables_key_range_entities_per_second",
        "Entities per second of a range of PartitionKeys, named by its first key; the mean of the "
        "last seconds. Ranges are merged as a run goes on.",
        ((labels, rate.entities_per_s) for labels, rate in labelled),
        ("range",),
    )
    yield families.gauge(
        "aztables_key_range_throttled_attempts_per_second",
        "Throttled HTTP requests per second of a range of PartitionKeys, named by its first key.",
        ((labels, rate.throttled_per_s) for labels, rate in labelled),
        ("range",),
    )
