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


@dataclasses.dataclass(slots=True)
class _AuditReader:
    """A worker that reads back: its last result, and when that came."""

    heard_s: float
    result: AuditResult | None = None
    gone: bool = False

    def update(self, result: AuditResult | None, now_s: float) -> None:
        if result is not None and result is not self.result:
            self.heard_s, self.result, self.gone = now_s, result, False
        elif now_s - self.heard_s > _SILENT_S and not self.done:
            self.gone = True

    @property
    def done(self) -> bool:
        return self.gone or (self.result is not None and self.result.done)

    @property
    def cut_short(self) -> str:
        if self.gone:
            return "a worker is gone"
        return "" if self.result is None else self.result.cut_short


class MasterAudit:
    """The audit of one run."""

    def __init__(self, environment: Environment, run: MasterRun, console: Console) -> None:
        self._environment = environment
        self._run = run
        self._console = console
        self._readers: dict[str, _AuditReader] = {}
        self._hurried = False

    def hurry(self) -> None:
        """End the audit with what was read so far."""
        self._hurried = True

    def hold(self, hurry: gevent.event.Event) -> None:
        """Audit the run if its profile asks for it, until the audit is over or ``hurry`` is set."""
        run, audit = self._run, self._run.plan.profile.audit
        if not audit.enabled or not run.epoch_s:
            return
        reports = run.reports.items()
        written = {worker: state.written for worker, state in reports if state.written is not None}
        strangers = bool(run.took_part - written.keys())
        plans = look_ups(written, most_rows=audit.most_rows, strangers=strangers)
        total = sum(plan.rows for plan in plans.values())
        all_rows = sum(part.estimate for part in written.values())
        exact = all(part.below == PLACES for part in written.values())
        began_s = self._run.clock()
        self._console.say(audit_begins(total, all_rows, exact=exact))
        cut_short = _INTERRUPTED
        if not hurry.is_set():
            missing = self._request({worker: plan for worker, plan in plans.items() if plan.rows})
            cut_short = self._wait(hurry, total, began_s) or missing
        run.audit = audit_part(
            self._tallies(),
            written=all_rows,
            exact=exact,
            given_up=sum(part.given_up for part in written.values()),
            cut_short=cut_short if total else "",
        )
        self._console.say(audit_ends(run.audit, run.clock() - began_s))

    def _request(self, plans: Mapping[str, LookUp]) -> str:
        """Send every connected worker its rows; return why rows are left out, or nothing."""
        there = [worker for worker in live_workers(self._environment) if worker in plans]
        now_s = self._run.clock()
        for rank, worker in enumerate(there):
            self._readers[worker] = _AuditReader(heard_s=now_s)
            request = AuditRequest(
                run_id=self._run.plan.run_id, rank=rank, count=len(there), plan=plans[worker]
            )
            send(self._environment.runner, request, worker)
        return "" if len(there) == len(plans) else "a worker that had written rows had left"

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
                tallies = self._tallies()
                rows, lost = sum(one.rows for one in tallies), sum(one.lost for one in tallies)
                self._console.say(audit_goes_on(rows, total, lost))
            gevent.sleep(_POLL_S)
        reasons = (reader.cut_short for reader in self._readers.values())
        return next(filter(None, reasons), "")

    def _tallies(self) -> list[AuditTally]:
        results = (reader.result for reader in self._readers.values())
        return [result.tally for result in results if result is not None]

    def _all_done(self) -> bool:
        now_s = self._run.clock()
        for worker, reader in self._readers.items():
            reader.update(self._run.audit_results.get(worker), now_s)
        return all(reader.done for reader in self._readers.values())

    def _take_last_results(self) -> None:
        """Stop the workers that still read, and wait for their results, which include the cost."""
        for worker in self._readers:
            send(self._environment.runner, AuditStop(run_id=self._run.plan.run_id), worker)
        deadline_s = self._run.clock() + _LAST_RESULTS_WITHIN_S
        while not self._all_done() and self._run.clock() < deadline_s:
            gevent.sleep(_POLL_S)

    def _within_s(self, rows: int) -> float:
        cap = loading_pacer_of(self._run.plan.profile, self._run.endpoint.kind).entities_per_s
        slowest_per_s = _SLOWEST_PER_S if cap is None else min(_SLOWEST_PER_S, cap / 2)
        return _MIN_TIME_S + rows / slowest_per_s
