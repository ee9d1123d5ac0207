"""The master's side of one run: what it knows, from the plan to the record."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
from typing import Any

from harness import __version__
from harness.endpoint.connection import Endpoint
from harness.measure.audit import lost_writes
from harness.measure.build_record import RunFacts, broken_invariants, build_record
from harness.measure.delta import Delta
from harness.measure.evidence import Evidence, shortcoming
from harness.measure.findings import AuditPart, PointersPart, PredictionPart, SearchPart
from harness.measure.generator import CpuSample, GeneratorLog
from harness.measure.journal import Written
from harness.measure.ledger import Ledger
from harness.measure.quantities import Facts
from harness.measure.record import EndpointPart, EntityPart, LoadingPart, RunRecord
from harness.measure.searched import judge_search
from harness.measure.snapshot import Snapshot
from harness.measure.verdict import exit_code, judge
from harness.model.target import targets_for
from harness.profile.build import conditions_of, entity_sizes
from harness.profile.checklist import findings_of
from harness.profile.observed import Observed
from harness.profile.pace import counts_operations, scheduled, wanted_rate
from harness.report.advice import opening_line
from harness.swarm.loading import Loaded
from harness.swarm.plan import RunPlan
from harness.workload.budget import Budget
from harness.workload.steps import Limit

_FEWEST_LIGHT = 20
"""Fewer operations say nothing of a mean."""


class Phase(enum.IntEnum):
    """How far a run has come."""

    PREPARED = 0
    LOADING = 1
    RAMPING = 2
    MEASURING = 3
    ENDING = 4
    DONE = 5

    @property
    def unready(self) -> str | None:
        """Why users cannot be started or changed now, or None where they can."""
        if self is Phase.LOADING:
            return "the table is being loaded; wait until the users come, or stop the run"
        return "the last run is ending; wait a moment" if self is Phase.ENDING else None


@dataclasses.dataclass(slots=True)
class WorkerReport:
    """What a worker said last of itself."""

    in_flight: int = 0
    defects: int = 0
    billable_transactions: int = 0
    exhausted: bool = False
    final: bool = False
    waiting: int = 0
    connections_in_use: int = 0
    light_operations: int = 0
    light_s: float = 0.0
    written: Written | None = None


class Run:
    """One run, as its master sees it.

    Args:
        plan: What was decided before.
        endpoint: Whom it stresses.
        started_s: When it was prepared, UTC seconds.
    """

    def __init__(self, plan: RunPlan, endpoint: Endpoint, started_s: float) -> None:
        self.plan = plan
        self.endpoint = endpoint
        self.started_s = started_s
        self.phase = Phase.PREPARED
        self.ledger = Ledger("master")
        self.generator = GeneratorLog()
        self.budget = Budget(plan.profile.limits.billable_transactions)
        self.loaded = Loaded()
        self.epoch_s = 0.0
        self.origin_s: float | None = None
        self.search: SearchPart | None = None
        self.audit: AuditPart | None = None
        self.prediction: PredictionPart | None = None
        self.checked = ""
        self.window: tuple[int, int] | None = None
        self.users = 0
        self.reports: dict[str, WorkerReport] = {}
        self.asked: tuple[str, ...] = ()
        self.began_with: tuple[str, ...] = ()
        self.found: dict[str, dict[str, Any]] = {}
        self.ended_by = ""

    def look_at(self, seen: Observed) -> None:
        """Keep what was seen of the profile before anything is sent."""
        self.prediction = PredictionPart.model_validate(seen.prediction, from_attributes=True)
        self.checked = opening_line(self.plan.profile_name, findings_of(seen))

    def take_report(self, worker: str, content: dict[str, Any]) -> None:
        """Add what a worker reported."""
        delta = content["delta"]
        self.ledger.merge(delta if isinstance(delta, Delta) else Delta.decode(delta))
        for second, cpu_percent, machine_percent, lag_s in content["samples"]:
            self.generator.add(
                worker,
                CpuSample(
                    second=second,
                    cpu_percent=cpu_percent,
                    machine_percent=machine_percent,
                    lag_s=lag_s,
                ),
            )
        self.reports[worker] = WorkerReport(
            in_flight=content["in_flight"],
            defects=content["defects"],
            billable_transactions=content["billable_transactions"],
            exhausted=content["exhausted"],
            final=content["final"],
            waiting=content["waiting"],
            connections_in_use=content["connections_in_use"],
            light_operations=content["light"][0],
            light_s=content["light"][1],
            written=None if (rows := content["written"]) is None else Written.from_message(rows),
        )

    def take_found(self, worker: str, content: dict[str, Any]) -> None:
        """Keep what a worker has found so far that looks up what it wrote."""
        self.found[worker] = content
        self.reports[worker].billable_transactions = content["billable_transactions"]

    @property
    def billable_transactions(self) -> int:
        """Requests of the whole run so far, loading included."""
        sent = sum(report.billable_transactions for report in self.reports.values())
        return self.budget.spent + sent

    @property
    def in_flight(self) -> int:
        """Operations that workers sent and have no answer to."""
        return sum(report.in_flight for report in self.reports.values())

    @property
    def waiting(self) -> int:
        """Operations that are due and were not sent yet."""
        return sum(report.waiting for report in self.reports.values())

    @property
    def light_latency_s(self) -> float | None:
        """Mean service latency of operations that were alone in their process."""
        operations = sum(report.light_operations for report in self.reports.values())
        if operations < _FEWEST_LIGHT:
            return None
        return sum(report.light_s for report in self.reports.values()) / operations

    @property
    def complete(self) -> bool:
        """Whether every worker that took part has sent its last report."""
        reports = self.reports
        return all(report.final for report in reports.values()) and self.took_part == reports.keys()

    @property
    def took_part(self) -> set[str]:
        """Workers that were there at the beginning, reported, or were there at the end.

        One that was killed early has never reported.
        """
        return {*self.began_with, *self.reports, *self.asked}

    @property
    def _connections_in_use(self) -> int:
        return sum(report.connections_in_use for report in self.reports.values())

    def _wanted_per_s(self, snapshot: Snapshot) -> float | None:
        """Entities a second that were wanted over the measured window; None is as many as came."""
        profile = self.plan.profile
        wanted = wanted_rate(profile, self.endpoint.kind)
        service = snapshot.service
        if wanted is None or service is None or not counts_operations(profile):
            return wanted
        seconds = snapshot.end - snapshot.start
        return wanted * snapshot.entities_per_s.mean * seconds / service.count

    def snapshot(self, now_s: float, *, latencies: bool = False) -> Snapshot:
        """What is known at ``now_s``, UTC; rates over the window so far."""
        start, end = self.window or (0, 0)
        return self.ledger.snapshot(
            start=start, end=max(start, min(end, int(now_s))), latencies=latencies
        )

    def judged(self, ended_s: float, pointers: tuple[PointersPart, ...] = ()) -> RunRecord:
        """The record of the run, which ended at ``ended_s``, UTC.

        Args:
            ended_s: When it was stopped, UTC seconds.
            pointers: What was found in index tables.
        """
        plan, profile = self.plan, self.plan.profile
        snapshot = self.snapshot(ended_s, latencies=True)
        generator = self.generator.view(snapshot.start, snapshot.end)
        targets = targets_for(self.endpoint.kind)
        stored, wire = entity_sizes(profile, plan.run_id)
        evidence = Evidence(
            snapshot=snapshot,
            generator=generator,
            kind=self.endpoint.kind,
            targets=targets,
            wanted_per_s=self._wanted_per_s(snapshot),
            users=self.users,
            entity_bytes=stored,
            complete=self.complete,
            scheduled=scheduled(profile),
            waiting=self.waiting,
            connections=profile.session.connections * max(1, len(self.reports)),
            connections_in_use=self._connections_in_use or None,
            light_latency_s=self.light_latency_s,
            retry=profile.retry.strategy,
            growing_keys=profile.scenario is None and profile.keys.made().grows,
            leaner_session=None if plan.session == "wire" else "wire",
        )
        verdict = judge(evidence)
        if self.search is not None:
            verdict = judge_search(verdict, self.search, snapshot, targets)
        known = Facts(
            lost_writes=lost_writes(self.audit),
            held_ratio=evidence.held_ratio,
        )
        conditions = tuple(
            condition.evaluate(snapshot, known) for condition in conditions_of(profile)
        )
        # Without a worker's last report the laws of conservation cannot be checked.
        invariants = (
            broken_invariants(
                snapshot,
                waiting=self.waiting,
                in_flight=self.in_flight,
                defects=sum(report.defects for report in self.reports.values()),
            )
            if self.complete
            else ()
        )
        facts = RunFacts(
            harness_version=__version__,
            run_id=plan.run_id,
            profile={"name": plan.profile_name, **profile.model_dump(mode="json")},
            endpoint=EndpointPart(
                kind=str(self.endpoint.kind),
                described=self.endpoint.kind.described,
                host=self.endpoint.host,
                table=plan.table,
            ),
            session=plan.session,
            started_at=iso(self.started_s),
            ended_at=iso(ended_s),
            ended_by=self.ended_by,
            workers=len(self.reports),
            users=self.users,
            complete=self.complete,
            waiting=self.waiting,
            in_flight=self.in_flight,
            billable_transactions=self.billable_transactions,
            entity=EntityPart(stored_bytes=stored, wire_bytes=wire),
            loading=LoadingPart(
                entities=self.loaded.entities,
                seconds=round(self.loaded.seconds, 3),
                attempts=self.loaded.attempts,
            ),
            pointers=pointers,
            search=self.search,
            audit=self.audit,
            prediction=self.prediction,
            connections=evidence.connections,
            connections_in_use=evidence.connections_in_use,
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
                and (self.search is None or self.search.limited_by != Limit.UNFINISHED),
                verdict=verdict,
                conditions=conditions,
            ),
        )


def iso(utc_s: float) -> str:
    """UTC seconds as ISO 8601, to the millisecond."""
    moment = dt.datetime.fromtimestamp(utc_s, tz=dt.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
