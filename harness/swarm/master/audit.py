"""The master's part of the audit: every worker reads back what it wrote; the master adds up."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import gevent
import gevent.event
from locust.env import Environment

from harness.measure.audit.audit import AuditTally, LookUp, audit_part, look_ups
from harness.measure.audit.journal import PLACES
from harness.profile.build.pace import loading_pacer_of
from harness.report.terminal.live import audit_begins, audit_ends, audit_goes_on
from harness.swarm.master.console import Console
from harness.swarm.master.master_run import MasterRun
from harness.swarm.master.sharing import live_workers
from harness.swarm.messages import AuditRequest, AuditResult, AuditStop, send

_PROGRESS_EVERY_S = 5.0
_POLL_S = 0.05
_MIN_TIME_S = 60.0
_SLOWEST_PER_S = 100.0
"""An audit may take a minute plus the time for its rows at this rate; then it is cut short."""
_SILENT_S = 15.0
"""A worker without a message for so long is gone; it should send one every second."""
_LAST_RESULTS_WITHIN_S = 2.0
_INTERRUPTED = "interrupted"


class MasterAudit:
    """The audit of one run."""

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
                gone = dataclasses.replace(result, done=True, cut_short="a worker was lost")
                self._results[worker] = gone
        return all(result.done for result in self._results.values())

    def _take_last_results(self) -> None:
        """Stop the workers that still read, and wait for their results, which include the cost."""
        for worker in self._results:
            send(self._environment.runner, AuditStop(run_id=self._run.plan.run_id), worker)
        deadline_s = self._run.clock() + _LAST_RESULTS_WITHIN_S
        while not self._all_done() and self._run.clock() < deadline_s:
            gevent.sleep(_POLL_S)

    def _within_s(self, rows: int) -> float:
        cap = loading_pacer_of(self._run.plan.profile, self._run.accounts.kind).entities_per_s
        slowest_per_s = _SLOWEST_PER_S if cap is None else min(_SLOWEST_PER_S, cap / 2)
        return _MIN_TIME_S + rows / slowest_per_s
