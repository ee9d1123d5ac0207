"""Handlers of the workers' messages to the master."""

from __future__ import annotations

import gevent
from locust.runners import Runner

from harness.swarm.console import Console
from harness.swarm.master.conductor import Conductor
from harness.swarm.master.master_run import Cause, Ending, MasterRun, Phase
from harness.swarm.messages import (
    AccountThrottled,
    AuditResult,
    RunMessage,
    WorkerRefusal,
    WorkerReport,
    WorkloadFailure,
    on,
)


class MessageHandlers:
    """Handles the messages of the workers in every run.

    Args:
        runner: Locust's runner.
        conductor: Leads the runs.
        console: Shows a refusal of a worker.
    """

    def __init__(self, runner: Runner, conductor: Conductor, console: Console) -> None:
        self._conductor = conductor
        self._console = console
        on(runner, WorkerReport, self._on_report)
        on(runner, AuditResult, self._on_audit_result)
        on(runner, WorkerRefusal, self._on_refusal)
        on(runner, AccountThrottled, self._on_account_throttled)
        on(runner, WorkloadFailure, self._on_workload_failure)

    def _run_of(self, message: RunMessage, before: Phase) -> MasterRun | None:
        """The run that a message belongs to, or None if it reached the phase ``before``."""
        run = self._conductor.run
        if run is None or message.run_id != run.plan.run_id or run.phase >= before:
            return None
        return run

    def _on_report(self, report: WorkerReport, worker: str) -> None:
        if (run := self._run_of(report, before=Phase.DONE)) is not None:
            run.take_report(worker, report)

    def _on_audit_result(self, result: AuditResult, worker: str) -> None:
        run = self._run_of(result, before=Phase.DONE)
        if run is not None and worker in run.reports:
            run.take_audit_result(worker, result)

    def _on_refusal(self, refusal: WorkerRefusal, worker: str) -> None:
        if (run := self._run_of(refusal, before=Phase.ENDING)) is None:
            return
        sentence = f"a worker refuses to take part: {refusal.reason}"
        if self._conductor.sharing.exclude(worker):
            # The worker came late: the others go on without it.
            self._console.error(sentence)
            return
        run.phase = Phase.ENDING
        gevent.spawn(self._conductor.give_up, run, sentence)

    def _on_workload_failure(self, failure: WorkloadFailure, worker: str) -> None:
        if (run := self._run_of(failure, before=Phase.ENDING)) is not None:
            self._console.error(failure.reason)
            gevent.spawn(self._conductor.finish_and_leave, run, Ending(Cause.WORKLOAD))

    def _on_account_throttled(self, message: AccountThrottled, worker: str) -> None:
        run = self._run_of(message, before=Phase.ENDING)
        if run is not None and run.stops_on_account_throttling:
            gevent.spawn(self._conductor.finish_and_leave, run, Ending(Cause.ACCOUNT_THROTTLED))
