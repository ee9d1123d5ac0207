"""Leads a run through the stress-test procedure, in the order of the methods of `Conductor`.

1. `prepare`: plan the run, check the endpoint. Nothing is changed yet.
2. `start`, called by Locust before users are started: create and load the table (steps 1 and 2 of
   the procedure), then let Locust start the users (step 3).
3. `users_are_up`, called by Locust: let the load settle, then open the measured window.
   `_measure` follows the load meanwhile, until it is over.
4. `finish`, the one way in which every run ends (run time, Stop, Ctrl-C, SIGTERM, budget,
   throttling of the account): pacers stop, operations in flight finish, workers send their last
   reports, the run is judged and recorded (step 4), and what the run created is deleted.
"""

from __future__ import annotations

import datetime as dt
import logging
import math
import os
from collections.abc import Callable
from functools import partial

import gevent
import gevent.event
from gevent import GreenletExit
from locust.env import Environment
from locust.runners import STATE_SPAWNING

from harness import startup
from harness.endpoint.accounts import Accounts
from harness.endpoint.admin.housekeeping import Housekeeping, HousekeepingEnded
from harness.endpoint.entra.login import FETCHED_WITHIN_S
from harness.gateway.process import FoundGateway, GatewayProcess
from harness.measure.record.record import RunRecord
from harness.model.errors import SetupError
from harness.model.process import steady_clock
from harness.options import aliases_from, traced_properties
from harness.profile.build.workload import read_trace
from harness.profile.checks.observed import Observed, observe
from harness.profile.profile_loader import NamedProfile
from harness.report.export.run_folder import check_folder, write_run
from harness.swarm import messages
from harness.swarm.audit import MasterAudit
from harness.swarm.command_line import own_class_of
from harness.swarm.master.console import Console, ConsoleMessages
from harness.swarm.master.embedded import EmbeddedServers
from harness.swarm.master.load_monitor import LoadMonitor
from harness.swarm.master.master_run import Cause, Ending, MasterRun, Phase
from harness.swarm.master.rehearsal import Rehearsal, found_gateway, provisioned
from harness.swarm.master.results import RunFiles, record_of
from harness.swarm.master.run_tables import LoadingFailed, RunTables
from harness.swarm.master.sharing import GRACE_S, Sharing, SignIns
from harness.swarm.membership import refusals_of
from harness.swarm.messages import host_of, on, send
from harness.swarm.plan import (
    OPTION,
    new_plan,
    require_fitting,
    require_possible,
    require_spreadable,
)
from harness.trace.replay.preparation import Preparation

_WINDOW_NOTICE_S = 0.3
"""The measured window is announced this long before it opens: every worker has it in time."""
_EXIT_HARNESS_FAILED = 4


class Conductor:
    """Leads the runs of one Locust process, one at a time.

    Args:
        embedded: None if the endpoint is another one.
        ready: The workers that take messages.
        leave: Called when a headless run is over, to end the process.

    Attributes:
        run: The current or last run; None before the first.
        record: The record of the last run; None until it is judged.
    """

    def __init__(
        self,
        environment: Environment,
        accounts: Accounts,
        *,
        embedded: EmbeddedServers | None,
        console: Console,
        ready: set[str],
        leave: Callable[[], None],
    ) -> None:
        self.environment = environment
        self.accounts = accounts
        self.run: MasterRun | None = None
        self.record: RunRecord | None = None
        self._embedded = embedded
        self._files = RunFiles()
        self._console = console
        self._ready = ready
        self._leave = leave
        self._housekeeping = Housekeeping(console.waiting)
        self._loading_over = gevent.event.Event()
        self._hurry = gevent.event.Event()
        self._finished = gevent.event.Event()
        runner = environment.runner
        on(runner, messages.WorkerReport, self._on_report)
        on(runner, messages.AuditResult, self._on_audit_result)
        on(runner, messages.ClockQuestion, self._on_clock_question)
        on(runner, messages.WorkerRefusal, self._on_refusal)
        on(runner, messages.SignedIn, self._on_signed_in)
        on(runner, messages.AccountThrottled, self._on_account_throttled)
        on(runner, messages.WorkloadFailure, self._on_workload_failure)

    # The state of the current run.

    @property
    def busy(self) -> bool:
        return self.run is not None and self.run.phase not in (Phase.PREPARED, Phase.DONE)

    @property
    def unready(self) -> str | None:
        """Why users cannot be started or changed now, or None if they can."""
        if self._housekeeping.busy and not self.busy:
            return "an earlier start is still preparing a run; wait a moment"
        phase = None if self.run is None else self.run.phase
        if phase is Phase.LOADING:
            return "the table is being loaded; wait for the first users, or stop the run"
        return "the last run is ending; wait a moment" if phase is Phase.ENDING else None

    @property
    def workers(self) -> int:
        return 0 if self.run is None else len(self._sharing.workers)

    def record_so_far(self, now_s: float) -> RunRecord:
        """Judge the current run by the counts at ``now_s``, UTC."""
        assert self.run is not None
        return record_of(self.run, now_s, pointers=(), over=False)

    # 1. Prepare.

    def prepare(self, named: NamedProfile) -> None:
        """Plan the next run. Nothing is changed yet; an impossible run raises a `SetupError`."""
        options = self.environment.parsed_options
        gateway: GatewayProcess | FoundGateway | None = None
        if self._embedded is not None and (gateway := self._embedded.gateway) is not None:
            named = provisioned(named, gateway.limits)
        named, preparation = read_trace(
            named, self._console.reading, into_one_table=options.table is not None
        )
        observed = self._observe(named, preparation)
        own_class, loads = own_class_of(self.environment)
        if len(self.accounts) > 1 and not own_class:
            require_spreadable(named, observed)
        properties = traced_properties(options)
        plan = new_plan(
            named,
            dt.datetime.now(dt.UTC),
            self.accounts,
            session=options.session,
            table=options.table,
            tables=observed.tables,
            embedded=self._embedded is not None,
            traced_properties=None if options.trace is None else properties,
            own_class=own_class,
            loads=loads,
        )
        require_possible(plan, observed)
        aliases = aliases_from(os.environ, options)
        # A new clock for each run: the clock of the machine may have been set since the last one.
        run = MasterRun(plan, self.accounts, steady_clock(), aliases)
        run.refused_messages = refusals_of(self.environment.runner).since()
        run.preparation = preparation
        shown = ConsoleMessages(run, self._console)
        tables = RunTables(run, shown, self._housekeeping)
        tables.check()
        self.accounts = run.accounts
        # Only this run has the kind of what is found: before the next one it may be another.
        gateway = gateway or found_gateway(run)
        require_fitting(run.plan)
        if gateway is not None:
            of = run.plan.kind, plan.table, plan.tables
            shown.rehearsal = Rehearsal(gateway, *of, aliases or str)
            run.enforced = shown.rehearsal.enforced()
        if not own_class:
            # What an own class will send is not known.
            run.take_observed(observed)
        # Last, so that a refused run leaves no folder.
        check_folder(options.out)
        if self.run is not None:
            self.run.drop_trace()
        self._files.open(run, trace=options.trace, stream=options.stream)
        self.run = run
        self._messages = shown
        self._tables = tables
        self._sharing = Sharing(self.environment, run, self._ready)
        self._sign_ins = SignIns(self.environment, run)
        self._audit = MasterAudit(self.environment, run, self._console)

    def _observe(self, named: NamedProfile, preparation: Preparation | None) -> Observed:
        """What the profile sends. Workers are answered meanwhile: they would miss their master."""
        pause = partial(gevent.sleep, 0)
        work = partial(observe, named.profile, preparation=preparation, pause=pause)
        try:
            return self._housekeeping.do(f"trying {named.name} out", work, within_s=None)
        except HousekeepingEnded:
            raise SetupError("the start was stopped; nothing was changed") from None

    def stop_preparing(self) -> None:
        """Stop the requests of a run that is being prepared."""
        if not self.busy:
            self._housekeeping.end()

    # 2. Load the table, then ramp the users up.

    def start(self) -> None:
        """Load the table and begin the load; `GreenletExit` if the run ended before it began."""
        run = self.run
        if run is None or run.phase is not Phase.PREPARED:
            raise GreenletExit
        for event in (self._finished, self._hurry, self._loading_over):
            event.clear()
        self.record = None
        self._load(run)
        self._ramp(run)
        gevent.spawn(self._measure, run)

    def _load(self, run: MasterRun) -> None:
        """Create and load the table; raise `GreenletExit` if that fails or the run was stopped."""
        run.phase = Phase.LOADING
        # So that Locust's Stop works while the table is loaded.
        self.environment.runner.update_state(STATE_SPAWNING)
        try:
            self._messages.run_starts(self._tables.loading_requests)
            if self._sign_ins.needed:
                self._housekeeping.do(
                    "waiting for the access tokens of the workers",
                    self._sign_ins.wait,
                    within_s=FETCHED_WITHIN_S,
                    note=self._sign_ins.waits_for,
                )
            self._tables.set_up()
        except LoadingFailed as error:
            run.problem = str(error)
            self._console.error(run.problem)
            gevent.spawn(self._finish_and_leave, run, Ending(Cause.LOADING))
            raise GreenletExit from None
        except SetupError as error:
            if run.phase is Phase.LOADING:
                run.phase = Phase.ENDING
                gevent.spawn(self._give_up, run, str(error))
            raise GreenletExit from None
        except HousekeepingEnded:
            raise GreenletExit from None
        finally:
            self._loading_over.set()

    def _ramp(self, run: MasterRun) -> None:
        """Send the plan to the workers and divide the budget; then Locust starts the users."""
        options = self.environment.parsed_options
        vars(options)[OPTION] = run.plan.to_options()
        run.epoch_s = run.clock()
        if not run.plan.profile.load_model.starts_with_window:
            run.origin_s = run.epoch_s
        run.phase = Phase.RAMPING
        self._sharing.begin(self._tables.worker_budgets)
        self._messages.load_begins(options.num_users)

    def share_out(self) -> None:
        if self.run is not None and self.run.phase in (Phase.RAMPING, Phase.MEASURING):
            self._sharing.share_out()

    # 3. Measure.

    def users_are_up(self, user_count: int) -> None:
        """All users were started: after the settling time the measured window opens."""
        run = self.run
        if run is None:
            return
        run.users = max(run.users, user_count)
        if run.phase is Phase.RAMPING and run.window is None:
            load = run.plan.profile.load_model
            start = math.ceil(run.clock() + load.settle_s + _WINDOW_NOTICE_S)
            run.window = (start, start + load.window_s)
            if run.origin_s is None:
                # Stages and recorded instants begin when all users are there.
                run.origin_s = float(start)
            self.share_out()

    def _measure(self, run: MasterRun) -> None:
        """Follow the load until it is over, and end the run."""
        # A user that has to stop, in a stage or on another worker, finishes its operation first.
        self.environment.stop_timeout = GRACE_S
        # An exception must end the load too.
        ending: Ending | None = Ending(Cause.HARNESS)
        try:
            ending = LoadMonitor(self.environment, run, self._sharing, self._messages).follow()
        finally:
            self.environment.stop_timeout = 0.0
            if ending is not None:
                self._finish_and_leave(run, ending)

    # 4. End.

    def finish(self, ending: Ending) -> None:
        """End the run in any phase; return when everything is written and deleted."""
        run = self.run
        if run is None or run.phase in (Phase.PREPARED, Phase.DONE):
            return
        if run.phase is Phase.ENDING:
            self._audit.hurry()
            if not self._tables.cleaning:
                self._housekeeping.end()
            self._finished.wait()
            return
        if run.phase is Phase.LOADING:
            self._housekeeping.end()
        run.phase = Phase.ENDING
        run.ending = ending
        stopped_s = run.clock()
        # Holds if an exception prevents the judgement or the record.
        self.environment.process_exit_code = _EXIT_HARNESS_FAILED
        try:
            self._loading_over.wait()
            if run.epoch_s:
                # Before that no worker has the plan.
                self._sharing.collect(stopped_s, self._hurry)
            self._examine(run, stopped_s)
        finally:
            try:
                self._tables.clean_up(hurry=self._hurry.is_set())
            finally:
                # Others wait for the end without a timeout.
                run.phase = Phase.DONE
                self._finished.set()

    def _examine(self, run: MasterRun, stopped_s: float) -> None:
        options = self.environment.parsed_options
        self._messages.load_ends()
        self._audit.hold(self._hurry)
        follow = run.epoch_s and not self._hurry.is_set()
        pointers = self._tables.pointers() if follow else ()
        record = record_of(run, stopped_s, pointers=pointers, over=True)
        if run.stream is not None and record.series:
            last = record.series[-1]
            run.write_seconds(last.t + last.width_s)
            if problem := run.stream.close():
                self._console.error(problem)

        def clean_up() -> tuple[int, ...]:
            # From here on the process exits as its record says, even after an exception.
            self.environment.process_exit_code = record.exit_code
            self._tables.clean_up(hurry=self._hurry.is_set())
            return run.billable_by_account

        self.record, path = write_run(
            record,
            options.out,
            ledger=run.ledger,
            aliases=run.aliases,
            clean_up=clean_up,
            complain=self._console.error,
        )
        self.environment.process_exit_code = self.record.exit_code
        self._messages.take_record(self.record, path, run.end_trace())
        if not options.headless:
            self._messages.result()

    def _finish_and_leave(self, run: MasterRun, ending: Ending) -> None:
        """End ``run`` if it still goes on, then the process or Locust's users."""
        if run is not self.run or run.phase in (Phase.ENDING, Phase.DONE):
            return
        try:
            self.finish(ending)
        finally:
            self._end_users()

    def _give_up(self, run: MasterRun, reason: str, exit_code: int = startup.BAD_SETUP) -> None:
        """End a run that could not begin: show the reason, delete what was created."""
        run.problem = reason
        self._console.error(reason)
        self.environment.process_exit_code = exit_code
        self._tables.clean_up(hurry=self._hurry.is_set())
        run.drop_trace()
        run.phase = Phase.DONE
        self._finished.set()
        self._end_users()

    def fail(self, error: Exception) -> None:
        """End a run that could not begin because of a defect of the harness."""
        logging.getLogger(__name__).error("the harness failed", exc_info=error)
        run = self.run
        if run is not None and run.phase < Phase.ENDING:
            run.phase = Phase.ENDING
            reason = f"the harness failed: {error!r}"
            gevent.spawn(self._give_up, run, reason, _EXIT_HARNESS_FAILED)

    def _end_users(self) -> None:
        """End the process if it was started for one run, else only Locust's users."""
        options = self.environment.parsed_options
        if options.headless:
            self._leave()
            return
        self.environment.runner.stop()
        if options.autostart and options.autoquit != -1:
            gevent.sleep(options.autoquit)
            self._leave()

    # Messages of the workers.

    def _run_of(self, message: messages.RunMessage, before: Phase) -> MasterRun | None:
        """The run that a message belongs to, or None if it reached the phase ``before``."""
        run = self.run
        if run is None or message.run_id != run.plan.run_id or run.phase >= before:
            return None
        return run

    def _on_report(self, report: messages.WorkerReport, worker: str) -> None:
        run = self._run_of(report, before=Phase.DONE)
        # A worker that joins while the run ends has sent nothing.
        if run is not None and (run.phase < Phase.ENDING or worker in run.took_part):
            run.take_report(worker, report)
            taken = messages.ReportTaken(run_id=run.plan.run_id, number=report.number)
            send(self.environment.runner, taken, worker)

    def _on_audit_result(self, result: messages.AuditResult, worker: str) -> None:
        run = self._run_of(result, before=Phase.DONE)
        if run is not None and worker in run.reports:
            run.reports[worker].billable_transactions = result.billable_transactions
            self._audit.take(worker, result)

    def _on_clock_question(self, question: messages.ClockQuestion, worker: str) -> None:
        if (run := self._run_of(question, before=Phase.DONE)) is not None:
            answer = messages.ClockAnswer(
                run_id=run.plan.run_id, asked_s=question.asked_s, answered_s=run.clock()
            )
            send(self.environment.runner, answer, worker)

    def _on_signed_in(self, answer: messages.SignedIn, worker: str) -> None:
        if self._run_of(answer, before=Phase.ENDING) is not None:
            self._sign_ins.take(worker, answer)

    def _on_refusal(self, refusal: messages.WorkerRefusal, worker: str) -> None:
        if (run := self._run_of(refusal, before=Phase.ENDING)) is None:
            return
        sentence = f"the worker on {host_of(worker)} refused the run: {refusal.reason}"
        if not self._sharing.needs(worker):
            # The worker came late: the others go on without it, and get its users.
            self._console.error(sentence)
            self.environment.runner.send_message("quit", client_id=worker)
            return
        run.phase = Phase.ENDING
        gevent.spawn(self._give_up, run, sentence)

    def _on_workload_failure(self, failure: messages.WorkloadFailure, _: str) -> None:
        if (run := self._run_of(failure, before=Phase.ENDING)) is not None:
            self._console.error(failure.reason)
            gevent.spawn(self._finish_and_leave, run, Ending(Cause.WORKLOAD))

    def _on_account_throttled(self, message: messages.AccountThrottled, _: str) -> None:
        run = self._run_of(message, before=Phase.ENDING)
        if run is not None and run.stops_on_account_throttling:
            # With a single account the cause already names what was throttled.
            name = run.accounts.names[message.account] if len(run.accounts) > 1 else ""
            ending = Ending(Cause.ACCOUNT_THROTTLED, account=name)
            gevent.spawn(self._finish_and_leave, run, ending)

    # The end of the process.

    def hurry(self) -> None:
        """Skip all waits from now on."""
        self._hurry.set()
        self._housekeeping.end()

    def linger(self, seconds: float) -> None:
        """Wait ``seconds``, or until `hurry` is called."""
        self._hurry.wait(timeout=seconds)

    def show_result(self) -> None:
        """Show the result of the last run, once."""
        self._messages.result()

    def close(self) -> None:
        if self.run is not None:
            self._messages.result()
            self.run.ledger.close()
            self.run = None
