"""Judges a run by what is known of it: its record, at its end or at any moment before."""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import TYPE_CHECKING

from harness import __version__
from harness.measure.audit import lost_writes
from harness.measure.build_record import RunFacts, broken_invariants, build_record
from harness.measure.evidence import Evidence, shortcoming
from harness.measure.findings import AuditPart, PointersPart
from harness.measure.quantities import Facts
from harness.measure.record import EndpointPart, EntityPart, LoadingPart, RunRecord
from harness.measure.searched import judge_search
from harness.measure.snapshot import Snapshot
from harness.measure.verdict import exit_code, judge
from harness.model.target import targets_for
from harness.profile.build import entity_sizes
from harness.profile.pace import scheduled
from harness.swarm.machine import machine
from harness.swarm.offered import offered_per_s
from harness.workload.steps import Limit

if TYPE_CHECKING:
    from harness.swarm.run import Run


def record_of(
    run: Run, now_s: float, *, pointers: tuple[PointersPart, ...], over: bool
) -> RunRecord:
    """The record of ``run`` as it is known at ``now_s``, UTC.

    Args:
        run: The run.
        now_s: When it was stopped, or now.
        pointers: What was found in index tables.
        over: Whether it has ended: then last reports are missed, and its books have to balance.
    """
    plan, profile = run.plan, run.plan.profile
    counted = run.shown(run.snapshot(now_s if over else _reported_s(now_s), latencies=True))
    snapshot = counted if over else _reported(counted, now_s)
    generator = run.generator.view(snapshot.start, snapshot.end)
    targets = targets_for(run.endpoint.kind)
    stored, wire = entity_sizes(profile, plan.run_id)
    # Nobody has sent a last report while the run goes on.
    complete = run.complete or not over
    evidence = Evidence(
        snapshot=snapshot,
        generator=generator,
        kind=run.endpoint.kind,
        targets=targets,
        wanted_per_s=_wanted_per_s(run, snapshot),
        users=run.users,
        entity_bytes=stored,
        complete=complete,
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
    conditions = tuple(condition.evaluate(counted, known) for condition in run.conditions)
    # Without a worker's last report the laws of conservation cannot be checked.
    invariants = (
        broken_invariants(
            snapshot,
            waiting=run.waiting,
            in_flight=run.in_flight,
            defects=sum(report.defects for report in run.reports.values()),
        )
        if over and complete
        else ()
    )
    facts = RunFacts(
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
        complete=complete,
        waiting=run.waiting,
        in_flight=run.in_flight,
        billable_transactions=run.billable_transactions,
        entity=EntityPart(stored_bytes=stored, wire_bytes=wire),
        loading=LoadingPart(
            entities=run.loaded.entities,
            seconds=round(run.loaded.seconds, 3),
            attempts=run.loaded.attempts,
        ),
        pointers=pointers,
        search=search,
        audit=_shown_audit(run),
        prediction=run.prediction,
        connections=evidence.connections,
        connections_in_use=evidence.connections_in_use,
        redacted=run.aliases is not None,
        machine=machine(),
    )
    return build_record(
        facts,
        snapshot,
        generator,
        verdict,
        conditions,
        targets=targets,
        invariants=invariants,
        exit_code=exit_code(
            invariants_hold=not invariants,
            enough=shortcoming(evidence) is None
            and (search is None or search.limited_by != Limit.UNFINISHED),
            verdict=verdict,
            conditions=conditions,
        ),
    )


def _reported_s(now_s: float) -> int:
    """The second up to which all is reported: of the last one a part is known, and rates fall."""
    return int(now_s) - 1


def _reported(snapshot: Snapshot, now_s: float) -> Snapshot:
    end = _reported_s(now_s)
    known = tuple(point for point in snapshot.series if point.second < end)
    return dataclasses.replace(snapshot, series=known)


def _wanted_per_s(run: Run, snapshot: Snapshot) -> float | None:
    """Entities a second that the window wanted; a search wanted several rates, not one."""
    if run.plan.profile.search is not None:
        return None
    return offered_per_s(run, snapshot.start, snapshot.end)


def _shown_audit(run: Run) -> AuditPart | None:
    """What the audit found; its examples name keys."""
    if run.audit is None or run.aliases is None:
        return run.audit
    return run.audit.model_copy(update={"examples": ()})


def iso(utc_s: float) -> str:
    """UTC seconds as ISO 8601, to the millisecond."""
    moment = dt.datetime.fromtimestamp(utc_s, tz=dt.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
