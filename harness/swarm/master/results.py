"""The results of runs: judged by their counts, recorded, written to files; repeats, and traces.

A run is judged at its end or before. ``--repeat`` makes several runs of one process; each records
its trace in a file of its own.
"""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path

import gevent.threadpool

from harness.measure.audit.audit import lost_writes
from harness.measure.counts.generator import SampledGenerator
from harness.measure.counts.snapshot import Snapshot, attempts_by_status
from harness.measure.record import record_builder as builder
from harness.measure.record.findings import AuditPart, PointersPart
from harness.measure.record.record import EndpointPart, EntityPart, LoadingPart, RunRecord
from harness.measure.verdict.conditions import ConditionResult
from harness.measure.verdict.evidence import Evidence
from harness.measure.verdict.verdict import judge
from harness.model.sessions import session_named
from harness.profile.build.workload import entity_sizes
from harness.profile.load.search import Limit
from harness.profile.practices.checklist import with_advice
from harness.report.compare.repeats import repeats_text
from harness.report.export.run_folder import this_machine
from harness.report.terminal.page import Page
from harness.swarm.master.master_run import Cause, Ending, MasterRun, SecondStream
from harness.trace.head import BODIES, RUN, WHOLE, TraceHead
from harness.trace.writer import TraceWriter

_PACKAGES = (
    *("locust", "gevent", "httptools", "azure-data-tables", "azure-core"),
    *("datasketches", "hdrhistogram"),
)
"""Packages whose version can change the results."""
_SEVEREST_FIRST = (2, 4, 3, 1, 0)


def record_of(
    run: MasterRun, now_s: float, *, pointers: tuple[PointersPart, ...], over: bool
) -> RunRecord:
    """Judge ``run`` by its counts at ``now_s``, UTC, the end of the load or now.

    Only when it is ``over`` missing last reports count, and conservation is checked.
    """
    plan, profile = run.plan, run.plan.profile
    # Reports come every second: the last second of a run in progress would show a drop.
    until_s = now_s if over else int(now_s) - 1
    counted = snapshot = run.redacted(run.snapshot(until_s, latencies=True))
    if not over:
        known = tuple(point for point in counted.series if point.second < until_s)
        snapshot = dataclasses.replace(counted, series=known)
    generator = run.generator.view(snapshot.start, snapshot.end).model_copy(
        update={"capacity": run.generator.capacity(snapshot, plan.session)}
    )
    stored, wire = _entity_bytes(run, snapshot)
    # While the run goes on, no worker has sent its last report.
    all_reported = not (over and run.silent_workers)
    evidence = _evidence(run, snapshot, generator, stored, all_reported=all_reported)
    search = run.search if over else run.search_so_far
    verdict = judge(evidence, search)
    conditions = _conditions(run, counted, evidence)
    record = builder.assembled(
        evidence,
        verdict,
        conditions,
        span_s=(run.started_s, now_s),
        enough=evidence.shortcoming is None
        and (search is None or search.limited_by != Limit.UNFINISHED),
        unfinished=_unfinished(run),
        # The snapshot lists accounts only if there are several.
        hosts=[endpoint.host for endpoint in run.accounts] if snapshot.accounts else (),
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
        ended_by=run.ended_by,
        # A run that ends before all users are there was meant to have them.
        users=run.users or plan.profile.load.users,
        workers=len(run.reports),
        # Conservation can be checked only with the last report of every worker.
        invariants=_broken_invariants(run, snapshot, conserved=over and all_reported),
        entity=EntityPart(
            stored_bytes=stored,
            wire_bytes=wire,
            content_bytes=profile.entity.size_bytes if profile.entity.compress else None,
        ),
        loading=LoadingPart(
            entities=run.loaded.entities,
            seconds=round(run.loaded.seconds, 3),
            attempts=run.loaded.answers.total(),
            attempts_by_status=attempts_by_status(run.loaded.answers),
        ),
        pointers=pointers,
        search=search,
        audit=_audit(run),
        prediction=run.prediction,
        redacted=run.aliases is not None,
        enforced=run.enforced,
        replay=None if profile.replay is None else profile.replay.found,
        refused_messages=run.refused_messages(),
        machine=this_machine(_PACKAGES),
    )
    return with_advice(record.billed(run.billable_by_account))


def _entity_bytes(run: MasterRun, snapshot: Snapshot) -> tuple[int, int]:
    """Bytes of an entity as stored, 0 if unknown, and on the wire."""
    if run.plan.own_class:
        # What a class of the user stores is unknown, as for a watched application.
        return 0, builder.bytes_of_entity(snapshot)
    return entity_sizes(run.plan.profile, run.plan.run_id)


def _mean_users(run: MasterRun, snapshot: Snapshot) -> int:
    """The users of the measured window: with stages of users the mean, else all of them."""
    at = map(run.plan.profile.load_model.users_at, range(snapshot.length_s))
    known = [users for users in at if users is not None]
    return max(1, round(sum(known) / len(known))) if known else run.users


def _evidence(
    run: MasterRun,
    snapshot: Snapshot,
    generator: SampledGenerator,
    stored: int,
    *,
    all_reported: bool,
) -> Evidence:
    """The evidence of a verdict; ``stored`` is the stored size of an entity in bytes."""
    profile, total = run.plan.profile, run.total
    load = profile.load_model
    return Evidence(
        snapshot=snapshot,
        generator=generator,
        kind=run.plan.kind,
        targets=run.plan.kind.targets,
        # A search asks for several rates.
        wanted_per_s=None
        if load.searched
        else run.mean_offered_per_s(snapshot.start, snapshot.end),
        users=_mean_users(run, snapshot),
        entity_bytes=stored,
        all_reported=all_reported,
        cut_short_by="" if run.ending is None or run.ending.cause.regular else run.ended_by,
        scheduled=load.scheduled,
        waiting=total.waiting,
        connections=profile.session.connections * max(1, len(run.reports)),
        connections_in_use=total.connections_in_use or None,
        light_latency_s=run.light_latency_s,
        searched=load.searched,
        steady=load.steady,
        throughput=profile.endpoint.throughput,
        enforced=run.enforced,
    )


def _conditions(
    run: MasterRun, snapshot: Snapshot, evidence: Evidence
) -> tuple[ConditionResult, ...]:
    """The results of the pass conditions; that of the one that ended the run is certain."""
    facts = evidence.facts(lost_writes(run.audit))
    lost = None if run.ending is None else run.ending.condition
    return tuple(
        result.model_copy(update={"certain": True}) if condition == lost else result
        for condition in run.conditions
        for result in (condition.evaluate(snapshot, facts),)
    )


def _unfinished(run: MasterRun) -> builder.Unfinished:
    total = run.total
    return builder.Unfinished(total.waiting, total.in_flight, total.attempts_in_flight)


def _broken_invariants(run: MasterRun, snapshot: Snapshot, *, conserved: bool) -> tuple[str, ...]:
    """Each broken invariant in words; conservation is checked only if it has to hold by now."""
    broken: tuple[str, ...] = ()
    if conserved:
        defects = run.loaded.defects + run.total.defects
        broken = builder.broken_invariants(snapshot, _unfinished(run), defects=defects)
    if run.ending == Ending(Cause.HARNESS):
        broken = (*broken, "the harness failed during the load; see the log")
    return broken


def _audit(run: MasterRun) -> AuditPart | None:
    if run.audit is None or run.aliases is None:
        return run.audit
    # The examples name keys.
    return run.audit.model_copy(update={"examples": ()})


class Repeats:
    """The runs that have ended. One that could not begin has an exit code and no record."""

    def __init__(self) -> None:
        self._records: dict[str, RunRecord] = {}
        self._exit_codes: list[int] = []

    @property
    def exit_code(self) -> int:
        """The severest of all runs."""
        return min(self._exit_codes, key=_SEVEREST_FIRST.index)

    def __len__(self) -> int:
        return len(self._exit_codes)

    def take(self, record: RunRecord | None, exit_code: int) -> None:
        """Add a run that has ended. ``record`` is None, or an earlier run's, if it has none."""
        self._exit_codes.append(exit_code)
        if record is not None:
            self._records[record.run_id] = record

    def text(self, page: Page, folder: str) -> str:
        """The runs side by side, and how to compare them with others; empty for a single run."""
        if len(self._records) < 2:
            return ""
        command = f"harness compare {shlex.quote(folder)}"
        return (
            f"{repeats_text(list(self._records.values()), page)}\n\n"
            f"Records: {folder}\n"
            f"This table again: {command}\n"
            f"Against other runs: {command} OTHER_FOLDER\n"
            f"Exit code: {self.exit_code} (the severest of {len(self)} runs)"
        )


class RunFiles:
    """Opens trace and stream; those of a further run of this process get a number in the name."""

    def __init__(self) -> None:
        self._opened = 0

    def open(self, run: MasterRun, *, trace: str | None, stream: str | None) -> None:
        """Begin the files of ``run``; a `SetupError` if one exists, or cannot be written."""
        if stream is not None:
            run.stream = SecondStream(self._numbered(stream))
        if trace is not None:
            self._open_trace(run, self._numbered(trace))
        self._opened += 1

    def _numbered(self, name: str) -> Path:
        path = Path(name)
        return path.with_stem(f"{path.stem}-{self._opened + 1}") if self._opened else path

    def _open_trace(self, run: MasterRun, path: Path) -> None:
        accounts, aliases = run.accounts, run.aliases
        head = TraceHead(
            started_ms=int(run.started_s) * 1000,
            source=RUN,
            name=run.plan.name,
            run_id=run.plan.run_id,
            endpoint=accounts.kind.described,
            account="" if aliases else ", ".join(one.account for one in accounts),
            keys="" if aliases is None else aliases.kept,
            bytes_of=BODIES if session_named(run.plan.session).as_is else WHOLE,
            properties=",".join(run.plan.traced_properties or ()),
        )
        run.trace = TraceWriter(
            path,
            head,
            None if aliases is None else aliases.key,
            pool=gevent.threadpool.ThreadPoolExecutor(1),
        )
