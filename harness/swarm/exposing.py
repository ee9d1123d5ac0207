"""What the metrics page shows of the conductor's current or last run."""

from __future__ import annotations

from harness import __version__
from harness.metrics.exposition import Exposed
from harness.model.target import targets_for
from harness.swarm.conductor import Conductor


def exposed(conductor: Conductor) -> Exposed | None:
    """The current or last run, or None before the first."""
    run = conductor.run
    if run is None:
        return None
    plan = run.plan
    return Exposed(
        run_id=plan.run_id,
        # No rate is exported, so that no window is needed.
        snapshot=run.ledger.snapshot(start=0, end=0, latencies=False),
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
