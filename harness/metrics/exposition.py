"""The series of the current or last run, read at scrape time from a snapshot.

Nothing is counted here. Every series carries ``run``; a scrape after a second run has begun shows
the second run alone. Two keys, or two names of operations, that are shown alike are added up, so
that no series comes twice, whatever they are.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from harness.measure.latency import BUCKETS_S, LatencyView
from harness.measure.snapshot import PartitionView, Snapshot
from harness.model.operation import WHOLE_TABLE, Kind, over_partitions
from harness.model.target import Targets

FOLDED = "(other)"
TABLE = "(table)"
EMPTY = "(empty)"
_RESERVED = frozenset((FOLDED, TABLE, EMPTY))
_UNSHOWABLE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff]")

_Rows = Iterable[tuple[tuple[str, ...], float]]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Exposed:
    """What a scrape shows of a run.

    Attributes:
        run_id: In the label ``run`` of every series.
        snapshot: The run's counts; partition latencies are not needed.
        targets: What the rates are held against; None where no target holds.
        users: Simulated users that are running.
        workers: Processes that make load.
        cpu_percent: Each worker's CPU in its last second, in percent of one core.
        info: Labels of ``aztables_run_info``: profile, endpoint, table, session, version.
    """

    run_id: str
    snapshot: Snapshot
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


def partition_label(key: str) -> str:
    """How ``key`` is shown: as it is, as far as it can be, behind its table's ending if it has one.

    A query over several partitions is ``(table)``, the empty key ``(empty)``. A key that is spelled
    like one of these stands behind a slash, which no real key contains. Control characters and
    half surrogate pairs, which no real key contains either, are shown as ``\\uXXXX``.
    """
    if over_partitions(key):
        return f"{_showable(key[: -len(WHOLE_TABLE)])}{TABLE}"
    table, slash, own = key.rpartition("/")
    shown = f"/{own}" if own in _RESERVED else _showable(own) or EMPTY
    return f"{_showable(table)}{slash}{shown}"


def _families(exposed: Exposed) -> Iterator[Metric]:
    run = exposed.run_id
    snapshot = exposed.snapshot
    yield InfoMetricFamily(
        "aztables_run",
        "What the current or last run stresses, and how.",
        value={"run": run, **{name: _showable(value) for name, value in exposed.info.items()}},
    )
    yield _counter(
        "aztables_entities",
        "Entities that were inserted, updated, deleted or scanned, by the partition they are in; "
        "(other) holds the partitions that are not told apart.",
        ("run", "partition", "op"),
        (
            ((run, label, _showable(op)), count)
            for label, view in _partitions(snapshot)
            for op, count in view.entities_by_operation.items()
        ),
    )
    yield _counter(
        "aztables_attempts",
        "HTTP requests, retries and pages included; the status is 0 where no whole answer came.",
        ("run", "partition", "status", "error_code", "scope"),
        (
            ((run, label, str(status), _showable(code), str(scope)), count)
            for label, view in _partitions(snapshot)
            for (status, code, scope), count in view.attempts.items()
        ),
    )
    yield _counter(
        "aztables_operations",
        "Operations by how they ended, retries included.",
        ("run", "op", "outcome"),
        (
            ((run, _showable(view.label), str(outcome)), count)
            for view in snapshot.kinds
            for outcome, count in view.outcomes.items()
        ),
    )
    queries = [view for view in snapshot.kinds if view.kind is Kind.QUERY]
    yield _counter(
        "aztables_entities_returned",
        "Entities that queries brought back.",
        ("run", "op"),
        (((run, _showable(view.label)), view.returned) for view in queries),
    )
    yield _counter(
        "aztables_entities_scanned",
        "Entities that queries walked; where estimated is true, the least it can have been.",
        ("run", "op", "estimated"),
        (
            ((run, _showable(view.label), estimated), count)
            for view in queries
            for estimated, count in (
                ("false", view.entities - view.estimated),
                ("true", view.estimated),
            )
        ),
    )
    yield _durations(run, snapshot)
    targets = exposed.targets
    yield _gauge(
        "aztables_target_entities_per_second",
        "Published target for entities of 1 KiB, of one partition and of the account.",
        ("run", "scope"),
        ()
        if targets is None
        else (((run, "partition"), targets.partition), ((run, "account"), targets.account)),
    )
    yield _gauge("aztables_users", "Simulated users.", ("run",), (((run,), float(exposed.users)),))
    yield _gauge(
        "aztables_workers",
        "Processes that make load.",
        ("run",),
        (((run,), float(exposed.workers)),),
    )
    yield _gauge(
        "aztables_generator_cpu_percent",
        "CPU of a load-making process in its last second, in percent of one core.",
        ("run", "worker"),
        (((run, _showable(name)), cpu) for name, cpu in exposed.cpu_percent.items()),
    )


def _partitions(snapshot: Snapshot) -> Iterator[tuple[str, PartitionView]]:
    for view in snapshot.partitions:
        yield partition_label(view.key), view
    if snapshot.folded is not None:
        yield FOLDED, snapshot.folded


def _counter(name: str, text: str, labels: tuple[str, ...], rows: _Rows) -> Metric:
    family = CounterMetricFamily(name, text, labels=labels)
    sums: dict[tuple[str, ...], float] = {}
    for values, count in rows:
        sums[values] = sums.get(values, 0) + count
    for values, count in sums.items():
        family.add_metric(values, count)
    return family


def _gauge(name: str, text: str, labels: tuple[str, ...], rows: _Rows) -> Metric:
    family = GaugeMetricFamily(name, text, labels=labels)
    for values, value in rows:
        family.add_metric(values, value)
    return family


def _durations(run: str, snapshot: Snapshot) -> Metric:
    family = HistogramMetricFamily(
        "aztables_operation_duration_seconds",
        "Latency of the operations that were done in the measured window: service is from sent to "
        "done with retries, response from due to done (open model only).",
        labels=("run", "op", "latency"),
    )
    rows: dict[tuple[str, ...], list[LatencyView]] = {}
    for kind in snapshot.kinds:
        for latency, view in (("service", kind.service), ("response", kind.response)):
            if view is not None:
                rows.setdefault((run, _showable(kind.label), latency), []).append(view)
    for labels, views in rows.items():
        counts = [sum(bucket) for bucket in zip(*(view.buckets for view in views), strict=True)]
        counts.append(sum(view.count for view in views))
        bounds = [*map(str, BUCKETS_S), "+Inf"]
        buckets = [(bound, float(n)) for bound, n in zip(bounds, counts, strict=True)]
        family.add_metric(labels, buckets, sum(view.total_s for view in views))
    return family


def _showable(text: str) -> str:
    return _UNSHOWABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
