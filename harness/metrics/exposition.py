"""The series of the current or last run, read at scrape time from a snapshot.

Nothing is counted here. Every series carries ``run``; a scrape after a second run has begun shows
the second run alone. Two keys, or two names of operations, that are shown alike are added up, so
that no series comes twice, whatever they are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping

from prometheus_client.core import (
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector

from harness.measure.counts.heatmap import HeatView
from harness.measure.counts.latency import BUCKETS_S
from harness.measure.counts.snapshot import Snapshot
from harness.measure.record.record import LatencyPart, PartitionPart
from harness.metrics.families import counter, gauge, one_gauge, partition_label, showable
from harness.model.operation import FOLDED, Kind
from harness.model.target import Targets


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Exposed:
    """What a scrape shows of a run.

    Attributes:
        run_id: In the label ``run`` of every series.
        snapshot: The run's counts; partition latencies are not needed.
        counted_until_s: UTC second before which everything was counted that is done.
        course: How far the run has come.
        load: What its load is like now.
        targets: What the rates are held against; None where no target holds.
        users: Simulated users that are running.
        workers: Processes that make load.
        cpu_percent: Each worker's CPU in its last second, in percent of one core.
        info: Labels of ``aztables_run_info``: profile, endpoint, table, session, version.
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
    info: Mapping[str, str]


Read = Callable[[], Exposed | None]
"""Gives what is to be shown now; None before the first run."""


class RunState(Collector):
    """The run that ``read`` gives, as Prometheus series."""

    def __init__(self, read: Read) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        """The series of this moment; none before the first run."""
        exposed = self._read()
        if exposed is not None:
            yield from _families(exposed)


def _families(exposed: Exposed) -> Iterator[Metric]:
    run = exposed.run_id
    snapshot = exposed.snapshot
    yield InfoMetricFamily(
        "aztables_run",
        "What the current or last run stresses, and how.",
        value={"run": run, **{name: showable(value) for name, value in exposed.info.items()}},
    )
    yield from course_families(run, exposed.course)
    yield from load_families(run, exposed.load)
    yield counter(
        "aztables_entities",
        "Entities that were inserted, updated, deleted or scanned, by the partition they are in; "
        "(other) holds the partitions that are not told apart.",
        ("run", "partition", "op"),
        (
            ((run, label, showable(op)), count)
            for label, view in _partitions(snapshot)
            for op, count in view.entities_by_kind.items()
        ),
    )
    yield counter(
        "aztables_attempts",
        "HTTP requests, retries and pages included; the status is 0 where no whole answer came.",
        ("run", "partition", "status", "error_code", "scope"),
        (
            ((run, label, str(status), showable(code), str(scope)), count)
            for label, view in _partitions(snapshot)
            for (status, code, scope), count in view.attempts.items()
        ),
    )
    yield counter(
        "aztables_operations",
        "Operations by how they ended, retries included.",
        ("run", "op", "outcome"),
        (
            ((run, showable(view.kind), outcome), count)
            for view in snapshot.operations
            for outcome, count in view.outcomes.items()
        ),
    )
    queries = [view for view in snapshot.operations if view.type == Kind.QUERY]
    yield counter(
        "aztables_entities_returned",
        "Entities that queries brought back.",
        ("run", "op"),
        (((run, showable(view.kind)), view.entities_returned) for view in queries),
    )
    yield counter(
        "aztables_entities_scanned",
        "Entities that queries walked; where estimated is true, the least it can have been.",
        ("run", "op", "estimated"),
        (
            ((run, showable(view.kind), estimated), count)
            for view in queries
            for estimated, count in (
                ("false", view.entities - view.entities_estimated),
                ("true", view.entities_estimated),
            )
        ),
    )
    yield durations(run, snapshot)
    yield percentiles(run, snapshot)
    yield from key_range_families(run, snapshot.heat, exposed.counted_until_s)
    targets = exposed.targets
    yield gauge(
        "aztables_target_entities_per_second",
        "Published target for entities of 1 KiB, of one partition and of the account.",
        ("run", "scope"),
        ()
        if targets is None
        else (((run, "partition"), targets.partition), ((run, "account"), targets.account)),
    )
    yield one_gauge("aztables_users", "Simulated users.", run, exposed.users)
    yield one_gauge("aztables_workers", "Processes that make load.", run, exposed.workers)
    yield gauge(
        "aztables_generator_cpu_percent",
        "CPU of a load-making process in its last second, in percent of one core.",
        ("run", "worker"),
        (((run, showable(name)), cpu) for name, cpu in exposed.cpu_percent.items()),
    )


def _partitions(snapshot: Snapshot) -> Iterator[tuple[str, PartitionPart]]:
    for view in snapshot.partitions:
        yield partition_label(view.key), view
    if snapshot.folded is not None:
        yield FOLDED, snapshot.folded


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunCourse:
    """How far a run has come. Times are UTC seconds.

    Attributes:
        phases: Names of all phases in their order.
        phase: The one that it is in.
        started_s: When it was prepared.
        ended_s: When its load ended; None while it goes on.
        window: From when to when is measured; the end is planned until the run has ended. None
            while no window is open.
        verdict: Labels of ``aztables_verdict_info``; None before the run is judged.
    """

    phases: tuple[str, ...]
    phase: str
    started_s: float
    ended_s: float | None = None
    window: tuple[float, float] | None = None
    verdict: Mapping[str, str] | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LoadState:
    """What the load is like now.

    Attributes:
        offered_per_s: Entities a second that the load asks for; None where it takes what comes.
        waiting: Operations that are due and not sent; None in a closed load, where nothing is due.
        in_flight: Operations that are sent and not answered.
        dropped: Operations that were given up unsent.
        billable_transactions: Requests of the whole run, loading included.
        billable_limit: How many it may make; None is without limit.
    """

    offered_per_s: float | None = None
    waiting: int | None = None
    in_flight: int = 0
    dropped: int = 0
    billable_transactions: int = 0
    billable_limit: int | None = None


def course_families(run: str, course: RunCourse) -> Iterator[Metric]:
    """The phases, the times and the verdict of a run."""
    yield gauge(
        "aztables_run_phase",
        "1 for the phase that the run is in, 0 for the others.",
        ("run", "phase"),
        (((run, phase), float(phase == course.phase)) for phase in course.phases),
    )
    start_s, end_s = (None, None) if course.window is None else course.window
    for name, text, moment_s in (
        ("run_started", "When the run was prepared", course.started_s),
        ("run_ended", "When the load of the run ended", course.ended_s),
        ("measured_window_start", "When the measured window opens", start_s),
        ("measured_window_end", "When the measured window closes, as planned or as it did", end_s),
    ):
        yield one_gauge(f"aztables_{name}_timestamp_seconds", f"{text}, Unix time.", run, moment_s)
    if course.verdict is not None:
        yield InfoMetricFamily(
            "aztables_verdict",
            "What the run found, once it has ended.",
            value={"run": run, **{name: showable(text) for name, text in course.verdict.items()}},
        )


def load_families(run: str, load: LoadState) -> Iterator[Metric]:
    """What is offered, what waits, and what it costs."""
    yield one_gauge(
        "aztables_offered_entities_per_second",
        "Entities a second that the load asks for now; absent where it takes what comes.",
        run,
        load.offered_per_s,
    )
    yield one_gauge(
        "aztables_operations_waiting",
        "Operations that are due and not sent, the backlog; absent in a closed load.",
        run,
        load.waiting,
    )
    yield one_gauge(
        "aztables_operations_in_flight",
        "Operations that are sent and not answered.",
        run,
        load.in_flight,
    )
    yield counter(
        "aztables_operations_dropped",
        "Operations that were due and given up unsent.",
        ("run",),
        (((run,), load.dropped),),
    )
    yield counter(
        "aztables_billable_transactions",
        "Requests that an account is charged for: loading, retries, pages and cleaning included.",
        ("run",),
        (((run,), load.billable_transactions),),
    )
    limit = load.billable_limit
    yield one_gauge(
        "aztables_billable_transactions_limit",
        "Billable transactions that the run may make; absent without a limit.",
        run,
        limit,
    )
    yield one_gauge(
        "aztables_billable_transactions_left",
        "Billable transactions that the run may still make; absent without a limit.",
        run,
        None if limit is None else max(0, limit - load.billable_transactions),
    )


def durations(run: str, snapshot: Snapshot) -> Metric:
    """A histogram of each operation and latency, in buckets that Prometheus can add up."""
    family = HistogramMetricFamily(
        "aztables_operation_duration_seconds",
        "Latency of the operations that were done in the measured window: service is from sent to "
        "done with retries, response from due to done (open model only).",
        labels=("run", "op", "latency"),
    )
    rows: dict[tuple[str, ...], list[LatencyPart]] = {}
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


def percentiles(run: str, snapshot: Snapshot) -> Metric:
    """Exact percentiles of all operations together; a bucket tells them less well."""
    name = "aztables_latency_seconds"
    family = SummaryMetricFamily(
        name,
        "Exact percentiles of the latency of all operations that were done in the measured window "
        "so far; service and response as in aztables_operation_duration_seconds.",
        labels=("run", "latency"),
    )
    for latency, view in (("service", snapshot.service_ms), ("response", snapshot.response_ms)):
        if view is not None:
            family.add_metric((run, latency), view.count, view.total_s)
            for share, value in (("0.5", view.p50), ("0.9", view.p90), ("0.99", view.p99)):
                labels = {"run": run, "latency": latency, "quantile": share}
                family.add_sample(name, labels, value / 1000)
    return family


OVER_S = 5
"""A rate is the mean over so many seconds, or over one column where columns are wider."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RangeRate:
    """What a range of keys takes a second; it is named by its first key."""

    first: str
    entities_per_s: float
    throttled_per_s: float


def range_rates(heat: HeatView, until_s: int) -> list[RangeRate]:
    """The mean of the last whole columns.

    Args:
        heat: What was counted by key range and time.
        until_s: UTC second before which everything was counted. What ends behind the last column
            had nothing in it.

    Returns:
        A rate for each range, in key order; none while no column is whole.
    """
    whole = (until_s - heat.start) // heat.width_s
    begin = max(0, whole - -(-OVER_S // heat.width_s))
    seconds = (whole - begin) * heat.width_s
    if seconds <= 0:
        return []
    return [
        RangeRate(
            first=row.first,
            entities_per_s=sum(row.entities[begin:whole]) / seconds,
            throttled_per_s=sum(row.throttled[begin:whole]) / seconds,
        )
        for row in heat.ranges
    ]


def key_range_families(run: str, heat: HeatView | None, until_s: int) -> Iterator[Metric]:
    """Both families of key ranges; without series where nothing was counted."""
    rates = [] if heat is None else range_rates(heat, until_s)
    labelled = [((run, partition_label(rate.first)), rate) for rate in rates]
    yield gauge(
        "aztables_key_range_entities_per_second",
        "Entities a second of a range of PartitionKeys, which is named by its first key; the mean "
        "of the last seconds. Ranges are joined as a run goes on.",
        ("run", "range"),
        ((labels, rate.entities_per_s) for labels, rate in labelled),
    )
    yield gauge(
        "aztables_key_range_throttled_attempts_per_second",
        "Throttled HTTP requests a second of a range of PartitionKeys, likewise.",
        ("run", "range"),
        ((labels, rate.throttled_per_s) for labels, rate in labelled),
    )
