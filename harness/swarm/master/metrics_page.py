"""The current or last run as the metrics page exposes it."""

from __future__ import annotations

import datetime as dt

from harness import __version__
from harness.measure.record.record import RunRecord
from harness.metrics.course import LoadState, RunCourse
from harness.metrics.exposition import Exposed
from harness.model.target import targets_for
from harness.profile.build.pace import scheduled
from harness.swarm.master.conductor import Conductor
from harness.swarm.master.master_run import MasterRun, Phase

_PHASES = tuple(phase.name.lower() for phase in Phase)


def exposed(conductor: Conductor) -> Exposed | None:
    """Return the current or last run; None before the first."""
    run = conductor.run
    if run is None:
        return None
    plan = run.plan
    record = conductor.record
    # Only the rates of key ranges are exposed, and these need no window.
    snapshot = run.redacted(run.ledger.snapshot(start=0, end=0, latencies=False))
    return Exposed(
        run_id=plan.run_id,
        snapshot=snapshot,
        # Reports come every second, so the counts of the last second are incomplete.
        counted_until_s=int(conductor.clock()) - 1,
        course=_course(run, record if record and record.run_id == plan.run_id else None),
        load=LoadState(
            offered_per_s=run.offered_per_s if run.phase < Phase.ENDING else None,
            waiting=run.waiting if scheduled(plan.profile) else None,
            in_flight=run.in_flight,
            dropped=snapshot.counts.dropped,
            billable_transactions=run.billable_transactions,
            billable_limit=plan.profile.limits.billable_transactions,
        ),
        targets=targets_for(run.endpoint.kind),
        users=conductor.environment.runner.user_count,
        workers=conductor.workers,
        cpu_percent={
            worker: sample.cpu_percent for worker, sample in run.generator.latest().items()
        },
        info={
            "profile": plan.profile_name,
            "endpoint": str(run.endpoint.kind),
            "described": run.endpoint.kind.described,
            "host": run.endpoint.host,
            "table": plan.table,
            "session": plan.session,
            "version": __version__,
        },
    )


def _course(run: MasterRun, record: RunRecord | None) -> RunCourse:
    phase = run.phase.name.lower()
    if record is None:
        return RunCourse(phases=_PHASES, phase=phase, started_s=run.started_s, window=run.window)
    start = record.window_start
    verdict = record.verdict
    return RunCourse(
        phases=_PHASES,
        phase=phase,
        started_s=run.started_s,
        ended_s=dt.datetime.fromisoformat(record.ended_at).timestamp(),
        window=None if run.window is None else (start, start + record.measured_s),
        verdict={
            "verdict": verdict.result,
            "limited_by": verdict.limited_by or "",
            "sentence": verdict.sentence,
        },
    )
