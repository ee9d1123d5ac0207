"""The master's side of one run: what it knows, from the plan to the record."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any

from harness.endpoint.connection import Endpoint
from harness.measure.conditions import Condition
from harness.measure.delta import Delta
from harness.measure.findings import AuditPart, PointersPart, PredictionPart, SearchPart
from harness.measure.generator import CpuSample, GeneratorLog
from harness.measure.journal import Written
from harness.measure.ledger import Ledger
from harness.measure.record import RunRecord
from harness.measure.redaction import Aliases
from harness.measure.snapshot import Snapshot
from harness.profile.build import conditions_of
from harness.profile.checklist import findings_of
from harness.profile.observed import Observed
from harness.report.advice import opening_line
from harness.swarm.judging import record_of
from harness.swarm.loading import Loaded
from harness.swarm.plan import RunPlan
from harness.workload.budget import Budget
from harness.workload.prediction import Prediction
from harness.workload.steps import Step

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
        aliases: Stand for the PartitionKeys wherever they would be seen; None shows the keys.
    """

    def __init__(
        self,
        plan: RunPlan,
        endpoint: Endpoint,
        started_s: float,
        aliases: Aliases | None = None,
    ) -> None:
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
        self.search_so_far: SearchPart | None = None
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
        self.problem = ""
        self.step: Step | None = None
        self.offered_per_s: float | None = None
        self.aliases = aliases

    def look_at(self, seen: Observed) -> None:
        """Keep what was seen of the profile before anything is sent."""
        if self.aliases is not None:
            seen = dataclasses.replace(seen, prediction=_aliased(seen.prediction, self.aliases))
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
    def connections_in_use(self) -> int:
        """The most connections that were in use at once, of each worker, together."""
        return sum(report.connections_in_use for report in self.reports.values())

    def snapshot(self, now_s: float, *, latencies: bool = False) -> Snapshot:
        """What is known at ``now_s``, UTC; rates over the window so far. With the keys."""
        start, end = self.window or (0, 0)
        return self.ledger.snapshot(
            start=start, end=max(start, min(end, int(now_s))), latencies=latencies
        )

    def shown(self, snapshot: Snapshot) -> Snapshot:
        """``snapshot`` as it may be seen."""
        return snapshot if self.aliases is None else self.aliases.snapshot(snapshot)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """What has to hold of what is `shown`."""
        conditions = conditions_of(self.plan.profile)
        if self.aliases is None:
            return conditions
        return tuple(condition.renamed(self.aliases) for condition in conditions)

    def judged(self, ended_s: float, pointers: tuple[PointersPart, ...] = ()) -> RunRecord:
        """The record of the run, which ended at ``ended_s``, UTC.

        Args:
            ended_s: When it was stopped, UTC seconds.
            pointers: What was found in index tables.
        """
        return record_of(self, ended_s, pointers=pointers, over=True)

    def so_far(self, now_s: float) -> RunRecord:
        """The record as it would be if the run were judged by what is known at ``now_s``, UTC."""
        return record_of(self, now_s, pointers=(), over=False)


def _aliased(prediction: Prediction, aliases: Aliases) -> Prediction:
    return dataclasses.replace(
        prediction,
        hottest=aliases(prediction.hottest),
        ranges=tuple((aliases(first), aliases(last)) for first, last in prediction.ranges),
    )
