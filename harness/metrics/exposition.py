"""The series of the current or last run, read at scrape time from a snapshot.

Nothing is counted here. Every series carries ``run``; a scrape after a second run has begun shows
the second run alone. Two keys, or two names of operations, that are shown alike are added up, so
that no series comes twice, whatever they are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping

from prometheus_client.core import InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from harness.measure.counts.snapshot import Snapshot
from harness.measure.record.record import PartitionPart
from harness.metrics.course import LoadState, RunCourse, course_families, load_families
from harness.metrics.families import counter, gauge, one_gauge
from harness.metrics.key_ranges import key_range_families
from harness.metrics.labels import partition_label, showable
from harness.metrics.latencies import durations, percentiles
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
