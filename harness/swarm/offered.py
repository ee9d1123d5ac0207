"""What the load asks for while it goes on: entities a second, by the schedule or the search."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.profile.pace import capped_rate, counts_operations, schedule_of

if TYPE_CHECKING:
    from harness.swarm.run import Run


def offered_per_s(run: Run, start_s: float, end_s: float) -> float | None:
    """Entities a second that the load asked for from ``start_s`` to ``end_s``, UTC.

    None is as many as come, or not known. A schedule of operations is told in entities by what an
    operation has counted for on average.
    """
    profile = run.plan.profile
    if run.step is not None:
        return run.step.rate_per_s
    schedule = schedule_of(profile)
    if schedule is None:
        return capped_rate(profile, run.endpoint.kind)
    began_s = run.origin_s
    if began_s is None or end_s <= start_s or profile.search is not None:
        return None
    due = schedule.due_by(end_s - began_s) - schedule.due_by(start_s - began_s)
    wanted = due / (end_s - start_s)
    if not counts_operations(profile):
        return wanted
    counts = run.ledger.counts
    return wanted * counts.entities / counts.operations if counts.operations else None


def note_offered(run: Run, now_s: float) -> None:
    """Keep what the load asks for in the UTC second that ``now_s`` is in."""
    second = int(now_s)
    run.offered_per_s = offered_per_s(run, max(second, run.epoch_s), second + 1)
    if run.offered_per_s is not None:
        run.generator.note_offered(second, run.offered_per_s)
