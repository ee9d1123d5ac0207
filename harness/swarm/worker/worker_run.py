"""One run in one worker process: operations are paced, executed, counted and reported."""

from __future__ import annotations

import dataclasses
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import TypeVar, TypeVarTuple

import gevent
import psutil
from gevent import GreenletExit
from locust.env import Environment
from locust.exception import StopUser

from harness.endpoint.accounts import Accounts
from harness.endpoint.sessions import open_sessions
from harness.measure.counts.generator import CpuSample
from harness.measure.counts.ledger import Ledger
from harness.model.errors import SetupError
from harness.model.operation import Operation, require_text
from harness.model.outcome import Attempt, Result, Scope
from harness.model.partition import account_of, spread_problem
from harness.model.process import Clock, this_process_runs_on
from harness.profile.build.scenarios import fingerprint, mistake_of
from harness.profile.build.workload import require_same_trace, source_of
from harness.swarm import messages
from harness.swarm.audit import Auditor
from harness.swarm.messages import send
from harness.swarm.plan import RunPlan
from harness.swarm.worker.admission import Admission, ReplayedLoad
from harness.swarm.worker.request_events import RequestEvents
from harness.trace.recorder import Recorder
from harness.trace.replay.source import ReplaySource
from harness.workload.budget import Budgets, BudgetSpent
from harness.workload.operation_source import next_operation

REPEATED_AFTER_S = 2.0
"""A report that is not confirmed in this time is sent again. A lost packet delays it less."""
REPORT_EVERY_S = 1.0
_ACCOUNT = Scope.ACCOUNT
_T = TypeVar("_T")
_Arguments = TypeVarTuple("_Arguments")


class Reports:
    """The reports of one run to the master, each of which arrives and counts once.

    A connection that breaks loses the messages that are underway. So the worker repeats a report
    until the master confirms it; the next report has all that came since.
    """

    def __init__(self, send: Callable[[messages.WorkerReport], None], clock: Clock) -> None:
        self._send = send
        self._clock = clock
        self._number = 0
        self._unconfirmed: messages.WorkerReport | None = None
        self._sent_s = 0.0

    @property
    def next_number(self) -> int:
        return self._number + 1

    @property
    def all_confirmed(self) -> bool:
        """True if the next report may be sent."""
        return self._unconfirmed is None

    def send(self, report: messages.WorkerReport) -> None:
        self._number = report.number
        # First, because in a local run the confirmation comes while the report is sent.
        self._unconfirmed = report
        self._sent_s = self._clock()
        self._send(report)

    def confirm(self, number: int) -> None:
        """The master has counted the report ``number``."""
        if number == self._number:
            self._unconfirmed = None

    def repeat(self) -> None:
        """Send the last report again, if it was not confirmed in time."""
        if self._unconfirmed is not None and self._clock() >= self._sent_s + REPEATED_AFTER_S:
            self._sent_s = self._clock()
            self._send(self._unconfirmed)


class WorkerRun:
    """One run in one worker process by the master's ``clock``; a `SetupError` if files differ."""

    def __init__(
        self, environment: Environment, plan: RunPlan, accounts: Accounts, clock: Clock
    ) -> None:
        runner = environment.runner
        worker: int = runner.worker_index
        self.plan = plan
        self.clock = clock
        profile = plan.profile
        self.rng = random.Random(f"{profile.seed}/{worker}")
        if fingerprint(profile) != plan.files_hash:
            files = [profile.scenario, *(field.from_ for field in profile.fields.values())]
            raise SetupError(
                f"{' or '.join(filter(None, files))} of this worker differs from the master's; "
                "give both the same file"
            )
        require_same_trace(profile)
        self.workload = source_of(profile, run_id=plan.run_id, worker=worker)
        self._accounts = len(accounts)
        self.ledger = Ledger(runner.client_id, accounts=accounts.names)
        self.budgets = Budgets([None] * len(accounts))
        self._events = RequestEvents(environment)
        self._send = partial(send, runner)
        # A random source of its own, so that random arrivals do not change the operations.
        arrivals = random.Random(f"{profile.seed}/{worker}/arrivals")
        pacer = profile.load_model.pacer(accounts.kind, arrivals)
        self._admission = Admission(profile, pacer, self.clock, self.budgets, self.ledger)
        self._replayed: ReplayedLoad | None = None
        if isinstance(self.workload, ReplaySource):
            self._replayed = ReplayedLoad(self.workload, self._admission, clock)
        options = [
            dataclasses.replace(one, on_attempt=self._on_attempt, pace=self._admission)
            for one in plan.session_options(worker, accounts, self.budgets, self.clock)
        ]
        self.session = open_sessions(plan.session, options)
        self.auditor: Auditor | None = None
        self._execute = self.session.execute
        if profile.audit.enabled:
            self.auditor = Auditor(plan, worker, self.session, options, self.budgets, self._send)
            self._execute = self.auditor.execute
        traced = plan.traced_properties
        self._recorder = None if traced is None else Recorder(traced)
        self._client: str = runner.client_id
        self._ending: gevent.Greenlet | None = None
        self._unsent: int | None = None
        self._active = 0
        self._retrying: dict[int, str] = {}
        self._abandoned = 0
        self._state = messages.WorkerState()
        self._samples: list[CpuSample] = []
        self._machine = this_process_runs_on()
        self._sent_throttled = False
        self._reports = Reports(self._send, self.clock)
        self._greenlets = [gevent.spawn(self._sample_forever), gevent.spawn(self._report_forever)]

    def take_share(self, share: messages.Share) -> None:
        if self._ending is not None:
            return
        self.budgets.grant(share.budget or [None] * self._accounts)
        if self.auditor is not None:
            self.auditor.grant(share.budget)
        if share.window is not None:
            self.ledger.open_window(*share.window)
        self._admission.take_share(share)

    def perform_task(self) -> float:
        """Perform the next task of the workload: one operation, or several in a row.

        Returns when the last operation ended, UTC seconds. Raises `StopUser` when the run is over,
        and when a mistake of the workload makes it invalid.
        """
        if self._replayed is not None:
            return self._perform_replayed(self._replayed)
        task = self._from_workload(self.workload.next_task, self.rng)
        if isinstance(task, Operation):
            return self.perform(task, keep=False, batch=True).done_s
        ended_s = self.clock()
        operation = self._from_workload(next_operation, task)
        while operation is not None:
            result = self.perform(operation, batch=True)
            ended_s = result.done_s
            operation = self._from_workload(next_operation, task, result)
        return ended_s

    def _perform_replayed(self, replayed: ReplayedLoad) -> float:
        """Perform the next operation of a trace; returns and raises as `perform_task` does."""
        operation, due_s = self._from_workload(replayed.take)
        try:
            self._from_workload(self.require_sendable, operation)
            return self._perform_at(operation, due_s, keep=False, batch=True).done_s
        finally:
            replayed.done(operation)

    def perform(self, operation: Operation, *, keep: bool = True, batch: bool = False) -> Result:
        """Execute one operation: wait for its turn, send it, count it, fire the request event.

        After the end of the run it raises `StopUser`.

        Args:
            keep: False if the entities that a query returns are not needed.
            batch: True if the event may be fired with those of later operations.
        """
        if not operation.kind.receives:
            due_s = self._admission.wait(operation.entities_asked)
            return self._perform_at(operation, due_s, keep=keep, batch=batch)
        # How many messages come is known afterwards. None takes a turn too.
        due_s = self._admission.wait(1)
        result = self._perform_at(operation, due_s, keep=keep, batch=batch)
        self._admission.scanned(max(0, result.entities - 1))
        return result

    def _perform_at(
        self, operation: Operation, due_s: float | None, *, keep: bool, batch: bool
    ) -> Result:
        """Execute an operation that may leave, and count it; see `perform`."""
        ledger = self.ledger
        ledger.note_due()
        ledger.note_sent()
        alone = self._active == 0
        self._active += 1
        try:
            result = self._execute(operation, due_s, keep=keep)
            ledger.add(result)
            if self._recorder is not None:
                self._recorder.add(result, self._client)
            if result.reported:
                self._state.attempts_in_flight -= result.reported
            if alone and self._active == 1:
                self._state.light_operations += 1
                self._state.light_s += result.service_s
        except BudgetSpent:
            ledger.note_taken_back()
            raise StopUser from None
        except GreenletExit:
            self._abandoned += 1
            raise
        except Exception:
            # Failures of the service are results, so this is a defect of the harness.
            self._abandoned += 1
            self._state.defects += 1
            raise
        finally:
            self._active -= 1
            self._retrying.pop(id(operation), None)
        if result.attempts[-1].scope is _ACCOUNT:
            self._send_throttled(operation)
        if not batch:
            self._events.fire(result)
            return result
        self._events.enqueue(result)
        if not self._active:
            # The next operation may end much later.
            self._events.flush()
        return result

    def _from_workload(self, make: Callable[[*_Arguments], _T], *arguments: *_Arguments) -> _T:
        """Call the workload; its exceptions are not failures of the service."""
        try:
            made = make(*arguments)
            if isinstance(made, Operation):
                self.require_sendable(made)
            return made
        except StopUser:
            raise
        except Exception as error:
            self._state.defects += 1
            self._send(messages.WorkloadFailure(run_id=self.plan.run_id, reason=mistake_of(error)))
            raise StopUser from error

    def require_sendable(self, operation: Operation) -> None:
        """Raise the errors of `require_text`, or a `ValueError` if several accounts were needed."""
        require_text(operation)
        if self._accounts > 1 and (problem := spread_problem(operation)) is not None:
            raise ValueError(problem)

    def stop(self, at_s: float, grace_s: float) -> gevent.Greenlet:
        """End the run in this process; the returned greenlet ends with the last report.

        No operation that is due at ``at_s``, UTC, or later is sent. Operations in flight may take
        ``grace_s``.
        """
        if self._ending is not None:
            return self._ending
        self.ledger.close_window(self._admission.stop(at_s))
        if self._replayed is not None:
            self._replayed.stop()
        self._ending = gevent.spawn(self._end, grace_s)
        return self._ending

    def confirm(self, number: int) -> bool:
        """The master has counted a report; return True once if that was the last."""
        waited = not self._reports.all_confirmed
        self._reports.confirm(number)
        return waited and self._reports.all_confirmed and self._state.final

    def close(self) -> None:
        gevent.killall([*self._greenlets, *filter(None, [self._ending])])
        if self.auditor is not None:
            self.auditor.close()
        self.session.close()
        self.ledger.close()
        if isinstance(self.workload, ReplaySource):
            self.workload.close()

    def _on_attempt(self, operation: Operation, attempt: Attempt) -> None:
        """Count an attempt of an operation that goes on, since the operation may never end."""
        self._state.attempts_in_flight += 1
        self.ledger.add_attempt(operation, attempt)
        if self._replayed is not None and not 200 <= attempt.status < 300:
            self._replayed.let_others_pass(operation)
        if attempt.throttled:
            self._retrying[id(operation)] = operation.partition
        if attempt.retry_after_s > self.plan.profile.retry.maximum_s:
            self.ledger.note_wait_cut()
        if attempt.scope is _ACCOUNT:
            self._send_throttled(operation)

    def _send_throttled(self, operation: Operation) -> None:
        if not self._sent_throttled:
            self._sent_throttled = True
            account = account_of(operation.partition_key, self._accounts)
            self._send(messages.AccountThrottled(run_id=self.plan.run_id, account=account))

    def _sample_forever(self) -> None:
        process = psutil.Process()
        process.cpu_percent(None)
        psutil.cpu_percent(None, percpu=True)
        before_s = time.process_time()
        while True:
            # At full seconds, so that a sample covers one second of the time series.
            gevent.sleep(1.0 - self.clock() % 1.0)
            now_s = time.process_time()
            cpu_s, before_s = now_s - before_s, now_s
            second = int(self.clock() - 0.5)
            self.ledger.note_retrying(second, Counter(self._retrying.values()))
            self._samples.append(
                CpuSample(
                    second=second,
                    cpu_percent=process.cpu_percent(None),
                    machine_percent=_machine_percent(),
                    lag_s=self._admission.take_lag(),
                    cpu_s=cpu_s,
                )
            )

    def _report_forever(self) -> None:
        while True:
            gevent.sleep(REPORT_EVERY_S)
            if self._reports.all_confirmed:
                self._report(final=False)
            else:
                self._reports.repeat()

    def _end(self, grace_s: float) -> None:
        deadline = self.clock() + grace_s
        while self._active and self.clock() < deadline:
            gevent.sleep(0.02)
        # Nobody would count what is sent after the last report.
        self.session.abandon()
        gevent.killall(self._greenlets)
        if self._replayed is not None:
            self._unsent = self._replayed.unsent()
        self.ledger.note_due(self._waiting())
        deadline = self.clock() + messages.REPORTS_WITHIN_S
        if self._confirmed_by(deadline):
            self._report(final=True)
            self._confirmed_by(deadline)

    def _waiting(self) -> int:
        if self._unsent is not None:
            return self._unsent
        held = 0 if self._replayed is None else self._replayed.waiting()
        return self._admission.waiting() + held

    def _confirmed_by(self, deadline_s: float) -> bool:
        """Repeat the last report until the master has it, or until ``deadline_s``, UTC."""
        while not self._reports.all_confirmed and self.clock() < deadline_s:
            self._reports.repeat()
            gevent.sleep(0.02)
        return self._reports.all_confirmed

    def _report(self, *, final: bool) -> None:
        # While every user waits for a stalled service, no user flushes the batch.
        self._events.flush_without_user()
        state = self._state
        state.final = final
        state.in_flight = self._active + self._abandoned
        state.waiting = self._waiting()
        if self._replayed is not None:
            state.finished_s = self._replayed.finished_s
        state.connections_in_use = max(state.connections_in_use, self.session.connections_in_use)
        state.billable_transactions = self.budgets.spent
        state.exhausted = self.budgets.exhausted
        if final and self.auditor is not None:
            state.written = self.auditor.written()
        self.ledger.note_waiting(self.clock(), state.waiting)
        report = messages.WorkerReport(
            run_id=self.plan.run_id,
            number=self._reports.next_number,
            machine=self._machine,
            delta=self.ledger.drain(),
            samples=tuple(self._samples),
            # In a local run the receiver gets this object.
            state=dataclasses.replace(state),
            trace=self._blocks(final=final),
        )
        self._samples.clear()
        self._reports.send(report)

    def _blocks(self, *, final: bool) -> tuple[bytes, ...]:
        if self._recorder is None:
            return ()
        return tuple(self._recorder.drain(self.clock(), final=final))


def _machine_percent() -> float:
    """Use of the cores that this process may run on, since the last call.

    A process that is pinned to one core is limited by that core, however idle the others are.
    """
    percents = psutil.cpu_percent(None, percpu=True)
    if sys.platform == "linux":
        allowed = [core for core in os.sched_getaffinity(0) if core < len(percents)]
        percents = [percents[core] for core in allowed] or percents
    return float(sum(percents) / len(percents))
