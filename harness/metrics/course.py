"""How far a run has come and what its load is like, beside its counts."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from prometheus_client.core import InfoMetricFamily, Metric

from harness.metrics.families import counter, gauge, one_gauge
from harness.metrics.labels import showable


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
