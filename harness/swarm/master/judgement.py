"""Judges a run by its counts, at its end or at any time before, and makes its record."""

from __future__ import annotations

import dataclasses
import datetime as dt
import functools
import importlib.metadata
import os
import platform

from harness import __version__
from harness.measure.audit.audit import lost_writes
from harness.measure.counts.snapshot import Snapshot
from harness.measure.record.findings import AuditPart, MachinePart, PointersPart
from harness.measure.record.record import (
    SCHEMA_VERSION,
    EndpointPart,
    EntityPart,
    LoadingPart,
    RunRecord,
)
from harness.measure.record.record_builder import (
    broken_invariants,
    counts_part,
    generator_part,
    judged_fields,
    measured_fields,
)
from harness.measure.verdict.evidence import Evidence, shortcoming
from harness.measure.verdict.quantities import Facts
from harness.measure.verdict.verdict import exit_code, judge, judge_search
from harness.model.target import targets_for
from harness.profile.build.pace import scheduled
from harness.profile.build.workload import entity_sizes
from harness.swarm.master.master_run import Cause, Ending, MasterRun
from harness.workload.load.search import Limit

_PACKAGES = (
    "locust",
    "gevent",
    "azure-data-tables",
    "azure-core",
    "geventhttpclient",
    "datasketches",
    "hdrhistogram",
)
"""Packages whose version can change the results."""


def record_of(
    run: MasterRun, now_s: float, *, pointers: tuple[PointersPart, ...], over: bool
) -> RunRecord:
    """Judge ``run`` by its counts at ``now_s``, UTC.

    Args:
        run: The run.
        now_s: When the load ended, or now.
        pointers: What was found in index tables.
        over: True if the run has ended: only then missing last reports count, and conservation
            is checked.
    """
    plan, profile = run.plan, run.plan.profile
    counted = run.redacted(run.snapshot(now_s if over else _reported_s(now_s), latencies=True))
    snapshot = counted if over else _reported(counted, now_s)
    generator = run.generator.view(snapshot.start, snapshot.end)
    targets = targets_for(run.endpoint.kind)
    stored, wire = entity_sizes(profile, plan.run_id)
    # While the run goes on, no worker has sent its last report.
    all_reported = run.all_reported or not over
    cut_short_by = "" if run.ending is None or run.ending.cause.regular else run.ended_by
    evidence = Evidence(
        snapshot=snapshot,
        generator=generator,
        kind=run.endpoint.kind,
        targets=targets,
        wanted_per_s=_wanted_per_s(run, snapshot),
        users=run.users,
        entity_bytes=stored,
        all_reported=all_reported,
        cut_short_by=cut_short_by,
        scheduled=scheduled(profile),
        waiting=run.waiting,
        connections=profile.session.connections * max(1, len(run.reports)),
        connections_in_use=run.connections_in_use or None,
        light_latency_s=run.light_latency_s,
        retry=profile.retry.strategy,
        searched=profile.search is not None,
        growing_keys=profile.scenario is None and profile.keys.made().grows,
        leaner_session=None if plan.session == "wire" else "wire",
    )
    verdict = judge(evidence)
    search = run.search if over else run.search_so_far
    if search is not None:
        verdict = judge_search(verdict, search, evidence)
    known = Facts(
        lost_writes=lost_writes(run.audit),
        held_ratio=evidence.held_ratio,
    )
    lost = None if run.ending is None else run.ending.condition
    conditions = tuple(
        dataclasses.replace(result, certain=True) if condition == lost else result
        for condition in run.conditions
        for result in (condition.evaluate(counted, known),)
    )
    # Conservation can be checked only with the last report of every worker.
    invariants = (
        broken_invariants(
            snapshot,
            waiting=run.waiting,
            in_flight=run.in_flight,
            attempts_in_flight=run.attempts_in_flight,
            defects=run.defects,
        )
        if over and all_reported
        else ()
    )
    if run.ending == Ending(Cause.HARNESS):
        invariants = (*invariants, "the harness failed while the load went on; the log says how")
    return RunRecord(
        schema_version=SCHEMA_VERSION,
        harness_version=__version__,
        run_id=plan.run_id,
        profile={
            "name": plan.profile_name,
            **profile.model_dump(mode="json"),
            "conditions": [condition.text for condition in run.conditions],
        },
        endpoint=EndpointPart(
            kind=str(run.endpoint.kind),
            described=run.endpoint.kind.described,
            host=run.endpoint.host,
            table=plan.table,
        ),
        session=plan.session,
        started_at=iso(run.started_s),
        ended_at=iso(now_s),
        ended_by=run.ended_by,
        workers=len(run.reports),
        users=run.users,
        complete=all_reported and not cut_short_by,
        invariants=invariants,
        exit_code=exit_code(
            invariants_hold=not invariants,
            enough=shortcoming(evidence) is None
            and (search is None or search.limited_by != Limit.UNFINISHED),
            verdict=verdict,
            conditions=conditions,
        ),
        entity=EntityPart(stored_bytes=stored, wire_bytes=wire),
        loading=LoadingPart(
            entities=run.loaded.entities,
            seconds=round(run.loaded.seconds, 3),
            attempts=run.loaded.attempts,
        ),
        counts=counts_part(
            snapshot,
            waiting=run.waiting,
            in_flight=run.in_flight,
            attempts_in_flight=run.attempts_in_flight,
            billable_transactions=run.billable_transactions,
        ),
        generator=generator_part(
            generator,
            connections=evidence.connections,
            connections_in_use=evidence.connections_in_use,
        ),
        pointers=pointers,
        search=search,
        audit=_shown_audit(run),
        prediction=run.prediction,
        redacted=run.aliases is not None,
        machine=machine(),
        **measured_fields(snapshot, generator, targets),
        **judged_fields(verdict, conditions),
    )


def _reported_s(now_s: float) -> int:
    """The second up to which the counts are complete: the last second would show a drop."""
    return int(now_s) - 1


def _reported(snapshot: Snapshot, now_s: float) -> Snapshot:
    end = _reported_s(now_s)
    known = tuple(point for point in snapshot.series if point.second < end)
    return dataclasses.replace(snapshot, series=known)


def _wanted_per_s(run: MasterRun, snapshot: Snapshot) -> float | None:
    """The rate that the load asked for in the window; a search asks for several rates."""
    if run.plan.profile.search is not None:
        return None
    return run.mean_offered_per_s(snapshot.start, snapshot.end)


def _shown_audit(run: MasterRun) -> AuditPart | None:
    """The result of the audit; without examples if keys are redacted, since these name keys."""
    if run.audit is None or run.aliases is None:
        return run.audit
    return run.audit.model_copy(update={"examples": ()})


@functools.cache
def machine() -> MachinePart:
    """Return the machine of the master and the versions there; workers may have others."""
    return MachinePart(
        cpus=os.cpu_count() or 1,
        platform=f"{platform.system()} {platform.release()} {platform.machine()}",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        packages={name: importlib.metadata.version(name) for name in _PACKAGES},
    )


def iso(utc_s: float) -> str:
    """UTC seconds as ISO 8601, to the millisecond."""
    moment = dt.datetime.fromtimestamp(utc_s, tz=dt.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
