"""The state of one run in the master: its phase, its merged counts, its findings, its end."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from harness.endpoint.accounts import Accounts
from harness.endpoint.endpoint import Endpoint
from harness.measure.counts.generator import GeneratorLog
from harness.measure.counts.ledger import Ledger
from harness.measure.counts.redaction import Aliases
from harness.measure.counts.snapshot import Snapshot
from harness.measure.record.enforced import EnforcedPart
from harness.measure.record.findings import AuditPart, PredictionPart, SearchPart
from harness.measure.record.record_builder import second_part
from harness.measure.verdict.conditions import Condition
from harness.model.errors import SetupError, cut
from harness.model.operation import Operation
from harness.model.outcome import Attempt, AttemptKey, Outcome, Result, Scope
from harness.model.process import Clock
from harness.profile.build.workload import conditions_of
from harness.profile.checks.observed import Observed, observe
from harness.profile.load.search import Step
from harness.profile.practices.keys import refused_keys
from harness.swarm.messages import WorkerReport, WorkerState
from harness.swarm.plan import RunPlan
from harness.trace.replay.preparation import Preparation
from harness.trace.writer import TraceWriter
from harness.workload.budget import Budget, Budgets

_MIN_LIGHT_OPERATIONS = 20
"""A mean latency of fewer operations is not used."""


class Phase(enum.IntEnum):
    """The phases of a run, in their order. A run that fails early ends without the others."""

    PREPARED = 0
    LOADING = 1
    RAMPING = 2
    MEASURING = 3
    ENDING = 4
    DONE = 5


class Cause(enum.Enum):
    """What ended a run, as records and pages name it."""

    RUN_TIME = "run time"
    SEARCH = "the end of the search"
    TRACE = "the end of the trace"
    CONDITION = "a condition that cannot hold any more"
    BUDGET = "budget of billable transactions"
    ACCOUNT_THROTTLED = "throttling of the account"
    STOP = "Stop"
    CTRL_C = "Ctrl-C"
    SIGTERM = "SIGTERM"
    SIGHUP = "SIGHUP"
    LOADING = "a failed loading"
    WORKERS_LOST = "the loss of every worker"
    WORKLOAD = "a mistake in the workload"
    HARNESS = "a failure of the harness"

    @property
    def regular(self) -> bool:
        """True if the profile, the service or the user ended the run; else it was cut short."""
        return self not in (Cause.LOADING, Cause.WORKERS_LOST, Cause.WORKLOAD, Cause.HARNESS)


@dataclasses.dataclass(frozen=True, slots=True)
class Ending:
    """Why a run ended.

    ``condition`` is the one that cannot hold any more, and ``account`` the throttled one of several
    accounts, if that is the cause.
    """

    cause: Cause
    condition: Condition | None = None
    account: str = ""

    def __str__(self) -> str:
        if self.condition is not None:
            return f"{self.condition.text!r}, which cannot hold any more"
        return f"{self.cause.value} {self.account}".rstrip()


@dataclasses.dataclass(slots=True)
class Loaded:
    """What was loaded so far.

    Attributes:
        total: Entities to load; 0 until loading begins.
        answers: Attempts by status, error code and scope.
        defects: Responses that the harness does not understand.
        throttled: Key of a partition whose account was throttled; None while none was.
    """

    entities: int = 0
    total: int = 0
    answers: Counter[AttemptKey] = dataclasses.field(default_factory=Counter)
    defects: int = 0
    seconds: float = 0.0
    throttled: str | None = None

    def on_attempt(self, operation: Operation, attempt: Attempt) -> None:
        self.answers[attempt.status, attempt.error_code, attempt.scope] += 1
        if attempt.scope is Scope.ACCOUNT:
            self.throttled = operation.partition_key

    def add(self, result: Result) -> None:
        """Count the result of an operation, and its attempts that were not counted before."""
        for attempt in result.attempts[result.reported :]:
            self.on_attempt(result.operation, attempt)
        self.entities += result.entities
        self.defects += result.outcome is Outcome.DEFECT


class SecondStream:
    """Writes the seconds of a run as JSON lines: points of the record's series, of one second.

    Seconds are written in order, each once, when the reports about it have come. What comes later
    is in the record alone. A `SetupError` says that the file cannot be written; ``problem`` is why
    nothing is written any more.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.problem = path, ""
        self._next: int | None = None
        self._backlog = 0
        try:
            self._file = path.open("w", encoding="ascii")
        except OSError as error:
            raise SetupError(
                f"--stream: {cut(str(path))} cannot be written: {error.strerror or error}"
            ) from error

    def write(self, ledger: Ledger, generator: GeneratorLog, first: int, until: int) -> None:
        """Write the seconds before ``until`` that were not written; the first is ``first``."""
        start = first if self._next is None else self._next
        if self.problem or until <= start:
            return
        self._next = until
        sampled = generator.view(start, until)
        charged, messages = ledger.tally.charged, ledger.tally.has_messages
        try:
            for point in map(ledger.point, range(start, until)):
                self._backlog += point.kept
                backlog = self._backlog if messages else None
                part = second_part(point, sampled, charged=charged, backlog=backlog)
                self._file.write(f"{part.model_dump_json()}\n")
            self._file.flush()
        except OSError as error:
            self.problem = str(error.strerror or error)

    def close(self) -> str:
        """End the file; return why it is incomplete, or an empty text."""
        with contextlib.suppress(OSError):
            self._file.close()
        return self.problem and f"{cut(str(self.path))} is incomplete: {self.problem}"


@dataclasses.dataclass(eq=False)
class MasterRun:
    """One run in the master.

    Attributes:
        clock: UTC seconds, steady during the run.
        aliases: Replace the PartitionKeys in every output.
        trace: Takes the operations; None for no trace.
        stream: Takes the seconds; None for no stream.
        preparation: The rows that a replay loads; None in other runs.
        started_s: When the run was prepared, UTC seconds.
        epoch_s: When the load began, UTC seconds; 0 before.
        enforced: Limits of the gateway that the run meets.
        origin_s: When the schedule began, UTC seconds; None before. With stages that is the start
            of the measured window.
        window: Start and end of the measured window, UTC seconds; None while it is not open.
        search: The result of the search if the run ended now.
        search_so_far: The same, worded for a run that goes on.
        offered_per_s: The rate that the load asks for in this second, in entities/s.
        partitions: The busiest ones by the prediction, as outputs name them.
        took_part: Workers that were there at the beginning or the end, or sent a report. One that
            was killed early has sent none.
        reports: The last reported state of each worker.
        report_numbers: The number of its last report that was counted.
        problem: Why the run could not begin; empty if it could.
        refused_messages: Gives how many messages the master has refused.
    """

    plan: RunPlan
    accounts: Accounts
    clock: Clock
    aliases: Aliases | None = None
    trace: TraceWriter | None = None
    stream: SecondStream | None = None
    preparation: Preparation | None = None
    phase: Phase = Phase.PREPARED
    ledger: Ledger = dataclasses.field(init=False)
    generator: GeneratorLog = dataclasses.field(default_factory=GeneratorLog)
    loaded: Loaded = dataclasses.field(default_factory=Loaded)
    epoch_s: float = 0.0
    enforced: EnforcedPart | None = None
    origin_s: float | None = None
    window: tuple[int, int] | None = None
    search: SearchPart | None = None
    search_so_far: SearchPart | None = None
    step: Step | None = None
    offered_per_s: float | None = None
    audit: AuditPart | None = None
    prediction: PredictionPart | None = None
    partitions: tuple[str, ...] = ()
    users: int = 0
    took_part: set[str] = dataclasses.field(default_factory=set)
    reports: dict[str, WorkerState] = dataclasses.field(default_factory=dict)
    report_numbers: dict[str, int] = dataclasses.field(default_factory=dict)
    ending: Ending | None = None
    problem: str = ""
    refused_messages: Callable[[], int] = int

    def __post_init__(self) -> None:
        self.started_s = self.clock()
        self.ledger = Ledger("master", accounts=self.accounts.names)
        self.budgets = Budgets(
            [self.plan.profile.limits.billable_transactions] * len(self.accounts)
        )

    def recognise(self, accounts: Accounts) -> None:
        """Take the accounts with the kind that they told before the run began."""
        self.accounts = accounts
        self.plan = dataclasses.replace(
            self.plan,
            kind=self.plan.profile.endpoint.of(accounts.kind),
            fingerprint=accounts.fingerprint,
        )
        self.ledger = Ledger("master", accounts=accounts.names)

    def take_observed(self, observed: Observed) -> None:
        """Keep what is known before the load; a `SetupError` if the endpoint takes no such keys."""
        if self.accounts.kind.charges:
            # Request units are counted for Cosmos DB only, which an answer may have told just now.
            observed = observe(
                self.plan.profile, kind=self.accounts.kind, preparation=self.preparation
            )
        seen = observed.seen()
        self.prediction = seen.shares if seen.charges is None else seen.charges.shares
        if self.aliases is not None:
            self.prediction = _aliased(self.prediction, self.aliases)
        self.partitions = tuple(map(self.aliases or str, observed.partitions))
        if problem := refused_keys(seen, self.accounts.kind):
            raise SetupError(problem)

    def take_report(self, worker: str, report: WorkerReport) -> None:
        """Count a report, once: a worker sends a report that was not confirmed again."""
        if report.number != self.report_numbers.get(worker, 0) + 1:
            return
        self.report_numbers[worker] = report.number
        self.ledger.merge(report.delta)
        self.generator.note_machine(worker, report.machine)
        for sample in report.samples:
            self.generator.add(worker, sample)
        if self.trace is not None:
            self.trace.append(report.trace)
        self.reports[worker] = report.state
        self.took_part.add(worker)

    def write_seconds(self, until: int) -> None:
        """Write the seconds of the load before ``until``, UTC, to the stream, if there is one."""
        if self.stream is not None and self.epoch_s:
            self.stream.write(self.ledger, self.generator, int(self.epoch_s), until)

    def end_trace(self) -> str:
        """End the trace, after the last report; return what there is to say, or an empty text."""
        trace = self.trace
        if trace is None:
            return ""
        trace.close(counted=self.ledger.counts.operations)
        return trace.sentence

    def drop_trace(self) -> None:
        """Delete the trace of a run that recorded nothing."""
        if self.trace is not None and not self.trace.operations:
            self.trace.discard()

    @property
    def paid_accounts(self) -> Iterator[tuple[Endpoint, Budget]]:
        """Each account, and the budget of the master's requests to it."""
        return zip(self.accounts, self.budgets.each, strict=True)

    @property
    def stops_on_account_throttling(self) -> bool:
        return self.accounts.remote and self.plan.profile.limits.stop_on_account_throttling

    @property
    def total(self) -> WorkerState:
        """The last reported figures of all workers, added up."""
        states = self.reports.values()
        return WorkerState(
            in_flight=sum(state.in_flight for state in states),
            attempts_in_flight=sum(state.attempts_in_flight for state in states),
            waiting=sum(state.waiting for state in states),
            connections_in_use=sum(state.connections_in_use for state in states),
            defects=sum(state.defects for state in states),
        )

    @property
    def billable_by_account(self) -> tuple[int, ...]:
        """Requests of the whole run so far to each account, loading included."""
        reported = (state.billable_transactions for state in self.reports.values())
        return tuple(map(sum, zip(self.budgets.spent, *filter(None, reported), strict=True)))

    @property
    def billable_transactions(self) -> int:
        """Requests of the whole run so far, loading included."""
        return sum(self.billable_by_account)

    @property
    def light_latency_s(self) -> float | None:
        """Mean service latency of operations that were alone in their process."""
        operations = sum(state.light_operations for state in self.reports.values())
        if operations < _MIN_LIGHT_OPERATIONS:
            return None
        return sum(state.light_s for state in self.reports.values()) / operations

    @property
    def ended_by(self) -> str:
        """What ended the run, in a few words; empty before the end."""
        return "" if self.ending is None else str(self.ending)

    @property
    def finished_s(self) -> float | None:
        """When the last operation of a replay ended, UTC seconds; None before that."""
        ends = [state.finished_s for state in self.reports.values()]
        known = [end for end in ends if end is not None]
        return max(known) if ends and len(known) == len(ends) else None

    def has_final_report(self, worker: str) -> bool:
        return worker in self.reports and self.reports[worker].final

    @property
    def silent_workers(self) -> list[str]:
        """The workers that took part and have not sent their last report."""
        return sorted(one for one in self.took_part if not self.has_final_report(one))

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The pass conditions of the profile, with aliases for keys if there are aliases."""
        conditions = conditions_of(self.plan.profile)
        if self.aliases is None:
            return conditions
        return tuple(condition.renamed(self.aliases) for condition in conditions)

    def snapshot(self, now_s: float, *, latencies: bool = False) -> Snapshot:
        """The counts at ``now_s``, UTC, with keys. Rates are those of the window so far."""
        start, end = self.window or (0, 0)
        return self.ledger.snapshot(
            start=start, end=max(start, min(end, int(now_s))), latencies=latencies
        )

    def redacted(self, snapshot: Snapshot) -> Snapshot:
        return snapshot if self.aliases is None else self.aliases.snapshot(snapshot)

    def mean_offered_per_s(self, start_s: float, end_s: float) -> float | None:
        """The mean rate that the load asks for from ``start_s`` to ``end_s``, UTC, in entities/s.

        A schedule of operations is converted by the mean entity count of those served so far.
        None if the load has no rate, or the rate is unknown.
        """
        load, began_s = self.plan.profile.load_model, self.origin_s
        if self.step is not None:
            return self.step.rate_per_s
        if not load.scheduled:
            return load.highest_per_s(self.accounts.kind)
        schedule = load.schedule
        if began_s is None or end_s <= start_s or schedule is None:
            return None
        if load.speed is not None and self.preparation is not None:
            return self.preparation.asked_per_s(start_s - began_s, end_s - began_s, load.speed)
        due = schedule.due_by(end_s - began_s) - schedule.due_by(start_s - began_s)
        per_s = due / (end_s - start_s)
        if not load.by_operation:
            return per_s
        each = self.ledger.tally.entities_each
        return None if each is None else per_s * each

    def replayed_share(self, now_s: float) -> float | None:
        """The share of a trace that is due at ``now_s``, UTC; None in other runs."""
        load, began_s = self.plan.profile.load_model, self.origin_s
        if load.trace_s is None or began_s is None:
            return None
        return min(1.0, max(0.0, (now_s - began_s) / max(load.trace_s, 0.001)))

    def note_offered(self, now_s: float) -> None:
        """Record the rate that the load asks for in the UTC second of ``now_s``."""
        second = int(now_s)
        self.offered_per_s = self.mean_offered_per_s(max(second, self.epoch_s), second + 1)
        if self.offered_per_s is not None:
            self.generator.note_offered(second, self.offered_per_s)


def _aliased(prediction: PredictionPart, aliases: Aliases) -> PredictionPart:
    ranges = tuple((aliases(first), aliases(last)) for first, last in prediction.ranges)
    return prediction.model_copy(update={"hottest": aliases(prediction.hottest), "ranges": ranges})
