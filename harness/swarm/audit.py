"""The audit after a load: workers journal their writes and read them back; the master adds up."""

from __future__ import annotations

import copy
import dataclasses
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gevent
import gevent.event
import gevent.lock
import gevent.pool
from locust.env import Environment

from harness.endpoint.session import SessionOptions, TableSession, ignore_attempt
from harness.endpoint.sessions import open_sessions
from harness.measure.audit.audit import AuditTally, LookUp, audit_part, look_ups
from harness.measure.audit.journal import PLACES, Journal, Row, Written
from harness.model.operation import Kind, Operation
from harness.model.outcome import Outcome, Result
from harness.model.sessions import SDK
from harness.report.terminal.live import audit_begins, audit_ends, audit_goes_on
from harness.swarm.master.console import Console
from harness.swarm.master.master_run import MasterRun
from harness.swarm.master.sharing import live_workers
from harness.swarm.messages import AuditRequest, AuditResult, AuditStop, send
from harness.swarm.plan import RunPlan
from harness.swarm.worker.admission import PacedItems
from harness.workload.budget import Budgets, BudgetSpent
from harness.workload.pacing import Pacer
from harness.workload.retry import ExponentialBackoff

REPORT_EVERY_S = 1.0
CONCURRENCY = 16
_MAX_FAILURES_IN_A_ROW = 4 * CONCURRENCY
"""After so many consecutive rows that cannot be read, the worker stops."""
_RETRY = ExponentialBackoff(retries=6, backoff_s=0.1, minimum_s=0.05, maximum_s=2.0)
_PROGRESS_EVERY_S = 5.0
_POLL_S = 0.05
_MIN_TIME_S = 60.0
_SLOWEST_PER_S = 100.0
"""An audit may take a minute plus the time for its rows at this rate; then it is cut short."""
_SILENT_S = 15.0
"""A worker without a message for so long is gone; it should send one every second."""
_LAST_RESULTS_WITHIN_S = 2.0
_INTERRUPTED = "interrupted"


class Auditor:
    """Journals what one worker writes, and reads it back; the budget reserves a request a row."""

    def __init__(
        self,
        plan: RunPlan,
        worker: int,
        session: TableSession,
        options: Sequence[SessionOptions],
        budgets: Budgets,
        send: Callable[[AuditResult], None],
    ) -> None:
        self._plan = plan
        self._session = session
        self._options = options
        self._clock = options[0].clock
        self._budgets = budgets
        self._send = send
        self._journal = Journal(worker, seed=plan.run_id, most_rows=plan.profile.audit.most_rows)
        self._granted: tuple[int, ...] | None = None
        self._tally = AuditTally()
        self._failures_in_a_row = 0
        self._cut_short = ""
        self._readers = gevent.pool.Group()
        self._reading: gevent.Greenlet | None = None

    def execute(
        self, operation: Operation, due_s: float | None = None, *, keep: bool = True
    ) -> Result:
        """Execute an operation with the session, and journal the operation if it is a write.

        A journaled write is marked, and the result contains the marked operation. A write without
        an answer stays open in the journal.
        """
        if operation.kind.reads:
            return self._session.execute(operation, due_s, keep=keep)
        noted = self._journal.sent(operation, self._clock())
        self._keep_back()
        try:
            result = self._session.execute(noted.operation, due_s)
        except BudgetSpent:
            self._journal.unsent(noted)
            raise
        self._journal.done(noted, result)
        return result

    def grant(self, requests: tuple[int, ...] | None) -> None:
        """Set how many requests the worker may send to each account; None is unlimited."""
        self._granted = requests
        self._keep_back()

    def written(self) -> Written:
        return self._journal.written()

    def read_back(self, request: AuditRequest) -> None:
        """Begin to read rows back; a result is sent every second."""
        if self._reading is None:
            if self._granted is not None:
                self._budgets.grant(self._granted)
            load = self._plan.profile.load_model
            pacer = load.loading_pacer(self._options[0].endpoint.kind)
            part = pacer.share(request.rank, request.count)
            self._reading = gevent.spawn(self._read_back, request.plan, part)

    def stop(self) -> None:
        """Stop reading back and send the result so far."""
        self._cut_short = "interrupted"
        self._readers.kill(block=False)

    def close(self) -> None:
        """Stop at once; nothing is sent."""
        gevent.killall([self._reading] if self._reading is not None else [])

    def _keep_back(self) -> None:
        if self._granted is not None and self._reading is None:
            # Which account holds a journaled row does not matter: each may have to read all.
            reserved = len(self._journal)
            self._budgets.grant(granted - reserved for granted in self._granted)

    def _read_back(self, plan: LookUp, pacer: Pacer) -> None:
        rng = random.Random(f"{self._plan.profile.seed}/audit")
        session = open_sessions(
            SDK.name,
            [
                dataclasses.replace(
                    one,
                    run_id=f"{one.run_id}-audit",
                    retry=_RETRY,
                    on_attempt=ignore_attempt,
                    rng=rng,
                    connections=CONCURRENCY,
                )
                for one in self._options
            ],
        )
        rows = self._journal.rows(plan.below)
        paced = PacedItems(rows, pacer, self._clock, units=lambda _: 1)

        def read_rows() -> None:
            for row in paced:
                if self._cut_short:
                    return
                try:
                    self._read_row(session, row, plan)
                except BudgetSpent:
                    self._cut_short = "the budget limits.billable_transactions is used up"

        try:
            for _ in range(CONCURRENCY):
                self._readers.spawn(read_rows)
            while not self._readers.join(timeout=REPORT_EVERY_S):
                self._report(done=False)
        finally:
            self._readers.kill()
            session.close()
        if not self._cut_short and self._tally.rows + self._tally.unread < len(rows):
            # The log has the exception.
            self._cut_short = "a defect of the harness"
        self._report(done=True)

    def _read_row(self, session: TableSession, row: Row, plan: LookUp) -> None:
        table, partition_key, row_key = row.key
        result = session.execute(
            Operation(
                kind=Kind.POINT_QUERY, table=table, partition_key=partition_key, row_key=row_key
            )
        )
        if not (result.outcome.succeeded or result.outcome is Outcome.NOT_FOUND):
            self._tally.unread += 1
            self._failures_in_a_row += 1
            if self._failures_in_a_row >= _MAX_FAILURES_IN_A_ROW:
                last = result.attempts[-1]
                answer = f"{last.status or ''} {last.error_code}".strip()
                self._cut_short = (
                    f"{self._failures_in_a_row} rows in a row could not be read ({answer})"
                )
            return
        self._failures_in_a_row = 0
        stored: Any = result.value if result.outcome.succeeded else None
        self._tally.add(row, stored, mine=self._journal.mine, others=plan.others(row.place))

    def _report(self, *, done: bool) -> None:
        self._send(
            AuditResult(
                run_id=self._plan.run_id,
                # In a local run the receiver gets this object, and the tally goes on changing.
                tally=copy.deepcopy(self._tally),
                done=done,
                cut_short=self._cut_short,
                billable_transactions=self._budgets.spent,
            )
        )


class MasterAudit:
    def __init__(self, environment: Environment, run: MasterRun, console: Console) -> None:
        self._environment = environment
        self._run = run
        self._console = console
        self._results: dict[str, AuditResult] = {}
        self._heard_s: dict[str, float] = {}
        self._hurried = False

    def take(self, worker: str, result: AuditResult) -> None:
        if worker in self._results:
            self._results[worker] = result
            self._heard_s[worker] = self._run.clock()

    def hurry(self) -> None:
        """End the audit with what was read so far."""
        self._hurried = True

    def hold(self, hurry: gevent.event.Event) -> None:
        """Audit the run if its profile asks for it, until the audit is over or ``hurry`` is set."""
        run, clock, audit = self._run, self._run.clock, self._run.plan.profile.audit
        if not audit.enabled or not run.epoch_s:
            return
        reports = run.reports.items()
        written = {worker: state.written for worker, state in reports if state.written is not None}
        strangers = bool(run.took_part - written.keys())
        plans = look_ups(written, most_rows=audit.most_rows, strangers=strangers)
        total = sum(plan.rows for plan in plans.values())
        all_rows = sum(part.estimate for part in written.values())
        exact = all(part.below == PLACES for part in written.values())
        began_s = clock()
        self._console.say(audit_begins(total, all_rows, exact=exact))
        cut_short = _INTERRUPTED
        if not hurry.is_set():
            missing = self._request({worker: plan for worker, plan in plans.items() if plan.rows})
            cut_short = self._wait(hurry, total, began_s) or missing
        run.audit = audit_part(
            (result.tally for result in self._results.values()),
            written=all_rows,
            exact=exact,
            given_up=sum(part.given_up for part in written.values()),
            cut_short=cut_short if total else "",
        )
        self._console.say(audit_ends(run.audit, clock() - began_s))

    def _request(self, plans: Mapping[str, LookUp]) -> str:
        """Send every connected worker its rows; return why rows are left out, or nothing."""
        there = [worker for worker in live_workers(self._environment) if worker in plans]
        run_id = self._run.plan.run_id
        for rank, worker in enumerate(there):
            self._results[worker] = AuditResult(
                run_id=run_id,
                tally=AuditTally(),
                done=False,
                cut_short="",
                billable_transactions=(),
            )
            self._heard_s[worker] = self._run.clock()
            request = AuditRequest(run_id=run_id, rank=rank, count=len(there), plan=plans[worker])
            send(self._environment.runner, request, worker)
        return "" if len(there) == len(plans) else "a worker that wrote rows has left the run"

    def _wait(self, hurry: gevent.event.Event, total: int, began_s: float) -> str:
        """Wait until all rows were read; return why rows are left unread, or nothing."""
        within_s = self._within_s(total)
        progress_at_s = began_s + _PROGRESS_EVERY_S
        while not self._all_done():
            now_s = self._run.clock()
            if hurry.is_set() or self._hurried:
                self._take_last_results()
                return _INTERRUPTED
            if now_s - began_s > within_s:
                self._take_last_results()
                return f"it took longer than {within_s:,.0f} s"
            if now_s >= progress_at_s:
                progress_at_s += _PROGRESS_EVERY_S
                tallies = [result.tally for result in self._results.values()]
                rows, lost = sum(one.rows for one in tallies), sum(one.lost for one in tallies)
                self._console.say(audit_goes_on(rows, total, lost))
            gevent.sleep(_POLL_S)
        reasons = (result.cut_short for result in self._results.values())
        return next(filter(None, reasons), "")

    def _all_done(self) -> bool:
        now_s = self._run.clock()
        for worker, result in self._results.items():
            if not result.done and now_s - self._heard_s[worker] > _SILENT_S:
                gone = {"done": True, "cut_short": "a worker was lost"}
                self._results[worker] = result.model_copy(update=gone)
        return all(result.done for result in self._results.values())

    def _take_last_results(self) -> None:
        """Stop the workers that still read, and wait for their results, which include the cost."""
        for worker in self._results:
            send(self._environment.runner, AuditStop(run_id=self._run.plan.run_id), worker)
        deadline_s = self._run.clock() + _LAST_RESULTS_WITHIN_S
        while not self._all_done() and self._run.clock() < deadline_s:
            gevent.sleep(_POLL_S)

    def _within_s(self, rows: int) -> float:
        load, kind = self._run.plan.profile.load_model, self._run.accounts.kind
        cap = load.loading_pacer(kind).entities_per_s
        slowest_per_s = _SLOWEST_PER_S if cap is None else min(_SLOWEST_PER_S, cap / 2)
        return _MIN_TIME_S + rows / slowest_per_s
