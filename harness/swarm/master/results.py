"""The result of a run: judged by its counts, at its end or before, recorded, written to files."""

from __future__ import annotations

import dataclasses

from harness import __version__
from harness.measure.audit.audit import lost_writes
from harness.measure.counts.snapshot import Snapshot
from harness.measure.record.findings import AuditPart, ConditionPart, PointersPart
from harness.measure.record.measured import CountsPart, GeneratorPart
from harness.measure.record.record import (
    SCHEMA_VERSION,
    EndpointPart,
    EntityPart,
    LoadingPart,
    RunRecord,
)
from harness.measure.record.record_builder import (
    broken_invariants,
    bytes_of_entity,
    judged_fields,
    measured_fields,
)
from harness.measure.verdict.evidence import Evidence
from harness.measure.verdict.quantities import Facts
from harness.measure.verdict.verdict import exit_code, judge
from harness.model.target import targets_for
from harness.profile.build.pace import scheduled
from harness.profile.build.workload import entity_sizes
from harness.report.export.run_folder import iso_instant, this_machine
from harness.swarm.master.master_run import Cause, Ending, MasterRun
from harness.workload.load.search import Limit

_PACKAGES = (
    *("locust", "gevent", "geventhttpclient", "azure-data-tables", "azure-core"),
    *("datasketches", "hdrhistogram"),
)
"""Packages whose version can change the results."""


def record_of(
    run: MasterRun, now_s: float, *, pointers: tuple[PointersPart, ...], over: bool
) -> RunRecord:
    """Judge ``run`` by its counts at ``now_s``, UTC, the end of the load or now.

    Only when it is ``over`` missing last reports count, and conservation is checked.
    """
    plan, profile, total = run.plan, run.plan.profile, run.total
    # Reports come every second: the last second of a run in progress would show a drop.
    until_s = now_s if over else int(now_s) - 1
    counted = snapshot = run.redacted(run.snapshot(until_s, latencies=True))
    if not over:
        known = tuple(point for point in counted.series if point.second < until_s)
        snapshot = dataclasses.replace(counted, series=known)
    generator = run.generator.view(snapshot.start, snapshot.end).model_copy(
        update={"capacity": run.generator.capacity(snapshot, plan.session)}
    )
    targets = targets_for(run.accounts.kind)
    stored, wire = _entity_bytes(run, snapshot)
    # While the run goes on, no worker has sent its last report.
    all_reported = run.all_reported or not over
    evidence = _evidence(run, snapshot, generator, stored, all_reported=all_reported)
    # The snapshot lists accounts only if there are several.
    hosts = [endpoint.host for endpoint in run.accounts] if snapshot.accounts else ()
    search = run.search if over else run.search_so_far
    verdict = judge(evidence, search)
    conditions = _conditions(run, counted, evidence)
    # Conservation can be checked only with the last report of every worker.
    invariants = _broken_invariants(run, snapshot, conserved=over and all_reported)
    record = RunRecord(
        schema_version=SCHEMA_VERSION,
        harness_version=__version__,
        run_id=plan.run_id,
        profile={
            **plan.recorded_settings(),
            "conditions": [condition.text for condition in run.conditions],
        },
        endpoint=EndpointPart(
            kind=str(run.accounts.kind),
            described=run.accounts.kind.described,
            host=run.accounts.host,
            table=plan.table,
            signed_with=run.accounts.signed_with,
        ),
        session=plan.session,
        started_at=iso_instant(run.started_s),
        ended_at=iso_instant(now_s),
        ended_by=run.ended_by,
        workers=len(run.reports),
        users=run.users,
        complete=all_reported and not evidence.cut_short_by,
        invariants=invariants,
        exit_code=exit_code(
            invariants_hold=not invariants,
            enough=evidence.shortcoming is None
            and (search is None or search.limited_by != Limit.UNFINISHED),
            verdict=verdict,
            conditions=conditions,
        ),
        entity=EntityPart(
            stored_bytes=stored,
            wire_bytes=wire,
            content_bytes=profile.entity.size_bytes if profile.entity.compress else None,
        ),
        loading=LoadingPart(
            entities=run.loaded.entities,
            seconds=round(run.loaded.seconds, 3),
            attempts=run.loaded.attempts,
        ),
        counts=CountsPart(
            **dataclasses.asdict(snapshot.counts),
            waiting=total.waiting,
            in_flight=total.in_flight,
            attempts_in_flight=total.attempts_in_flight,
            billable_transactions=0,
        ),
        generator=generator.recorded(
            connections=evidence.connections, connections_in_use=evidence.connections_in_use
        ),
        pointers=pointers,
        search=search,
        audit=_audit(run),
        prediction=run.prediction,
        redacted=run.aliases is not None,
        enforced=run.enforced,
        replay=None if profile.replay is None else profile.replay.found,
        machine=this_machine(_PACKAGES),
        **measured_fields(
            snapshot, generator, targets, hosts, throughput=profile.endpoint.throughput
        ),
        **judged_fields(evidence, verdict, conditions),
    )
    return record.billed(run.billable_by_account)


def _entity_bytes(run: MasterRun, snapshot: Snapshot) -> tuple[int, int]:
    """Bytes of an entity as stored, 0 if unknown, and on the wire."""
    if run.plan.own_class:
        # What a class of the user stores is unknown, as for a watched application.
        return 0, bytes_of_entity(snapshot)
    return entity_sizes(run.plan.profile, run.plan.run_id)


def _evidence(
    run: MasterRun, snapshot: Snapshot, generator: GeneratorPart, stored: int, *, all_reported: bool
) -> Evidence:
    """The evidence of a verdict; ``stored`` is the stored size of an entity in bytes."""
    plan, profile, total = run.plan, run.plan.profile, run.total
    mixed = not plan.own_class and profile.scenario is None and profile.replay is None
    return Evidence(
        snapshot=snapshot,
        generator=generator,
        kind=run.accounts.kind,
        targets=targets_for(run.accounts.kind),
        # A search asks for several rates.
        wanted_per_s=None
        if profile.search is not None
        else run.mean_offered_per_s(snapshot.start, snapshot.end),
        users=run.users,
        entity_bytes=stored,
        all_reported=all_reported,
        cut_short_by="" if run.ending is None or run.ending.cause.regular else run.ended_by,
        scheduled=scheduled(profile),
        waiting=total.waiting,
        connections=profile.session.connections * max(1, len(run.reports)),
        connections_in_use=total.connections_in_use or None,
        light_latency_s=run.light_latency_s,
        retry=profile.retry.strategy,
        searched=profile.search is not None,
        growing_keys=mixed and profile.keys.made().grows,
        leaner_session=None if plan.session == "wire" else "wire",
        throughput=profile.endpoint.throughput,
    )


def _conditions(
    run: MasterRun, snapshot: Snapshot, evidence: Evidence
) -> tuple[ConditionPart, ...]:
    """The results of the pass conditions; that of the one that ended the run is certain."""
    facts = Facts(lost_writes=lost_writes(run.audit), held_ratio=evidence.held_ratio)
    lost = None if run.ending is None else run.ending.condition
    return tuple(
        result.model_copy(update={"certain": True}) if condition == lost else result
        for condition in run.conditions
        for result in (condition.evaluate(snapshot, facts),)
    )


def _broken_invariants(run: MasterRun, snapshot: Snapshot, *, conserved: bool) -> tuple[str, ...]:
    """Each broken invariant in words; conservation is checked only if it has to hold by now."""
    total = run.total
    broken: tuple[str, ...] = ()
    if conserved:
        broken = broken_invariants(
            snapshot,
            waiting=total.waiting,
            in_flight=total.in_flight,
            attempts_in_flight=total.attempts_in_flight,
            defects=run.loaded.defects + total.defects,
        )
    if run.ending == Ending(Cause.HARNESS):
        broken = (*broken, "the harness failed during the load; see the log")
    return broken


def _audit(run: MasterRun) -> AuditPart | None:
    if run.audit is None or run.aliases is None:
        return run.audit
    # The examples name keys.
    return run.audit.model_copy(update={"examples": ()})
