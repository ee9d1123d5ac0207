"""The life of the process that leads: a master, or a local run. It starts, repeats, and leaves."""

from __future__ import annotations

import dataclasses
import datetime as dt
import logging
import os
import signal
import time
from functools import partial
from pathlib import Path

import gevent
import psutil
from gevent import GreenletExit
from locust.env import Environment
from locust.runners import MasterRunner

from harness import startup
from harness.endpoint.accounts import Accounts, Credentials
from harness.endpoint.admin.housekeeping import Housekeeping
from harness.endpoint.admin.probe import check
from harness.endpoint.entra.login import FETCHED_WITHIN_S
from harness.metrics.export import MetricsServer, OtlpExport, push, start_server
from harness.metrics.exposition import Exposed, LoadState, RunCourse, RunLabels
from harness.model.auth_mode import LOGIN_MODE
from harness.model.errors import SetupError
from harness.model.hosts import is_loopback
from harness.model.services import server_of_session
from harness.profile.profile_loader import NamedProfile
from harness.swarm.command_line import RunRequest, profile_of, profile_of_command_line
from harness.swarm.master.conductor import Conductor
from harness.swarm.master.console import CTRL_C_ENDS, Console
from harness.swarm.master.embedded import EmbeddedServers, watch_embedded
from harness.swarm.master.master_run import Cause, Ending, Phase
from harness.swarm.master.results import Repeats
from harness.swarm.master.sharing import live_workers
from harness.swarm.messages import Hello, LoginNote, host_of, on
from harness.swarm.ports import METRICS, HeldPorts
from harness.swarm.worker.worker import Worker

_TELL_AFTER_S = 3.0
_TELL_EVERY_S = 30.0
_LOOK_EVERY_S = 0.5
_TOLD_AGAIN_S = 5.0
"""If several workers send the same sentence within this time, it is shown once."""
_PHASES = tuple(phase.name.lower() for phase in Phase)


class MasterProcess:
    """The process that leads the runs; ``worker`` is its worker side, None if it sends no load.

    Raises a `SetupError` if the run is not possible: nothing was sent and nothing is left behind.
    """

    def __init__(
        self, environment: Environment, credentials: Credentials, ports: HeldPorts
    ) -> None:
        self._environment = environment
        self._credentials = credentials
        self._options = options = environment.parsed_options
        self._main = gevent.getcurrent()
        self.console = Console(
            quiet=options.quiet, summary=options.summary, repeated=options.repeat > 1
        )
        self.worker: Worker | None = None
        self._embedded: EmbeddedServers | None = None
        self._metrics: MetricsServer | None = None
        self._otlp: OtlpExport | None = None
        self._signal = Cause.SIGTERM
        self._interrupts = 0
        self._leaving = False
        self._repeats = Repeats()
        self._starting_next = False
        self._told_s: dict[str, float] = {}
        self._started: Conductor | None = None
        self._embedded_cpu: gevent.Greenlet | None = None
        # Workers that take messages. A local run takes them from the start.
        self._ready = set() if isinstance(environment.runner, MasterRunner) else {"local"}
        # First, because a worker may send its message before the conductor is there.
        on(environment.runner, Hello, self._on_hello)
        on(environment.runner, LoginNote, self._on_login_note)
        self.profile = profile_of_command_line(environment)
        # The web form changes the option.
        self.started_with: str = options.profile
        try:
            self.accounts = self._choose_accounts()
            if self.accounts.logins:
                Housekeeping(self.console.waiting).do(
                    "getting a token of Entra ID",
                    partial(self.accounts.sign_in, self._tell),
                    within_s=FETCHED_WITHIN_S,
                    note=lambda: CTRL_C_ENDS,
                )
            environment.host = self.accounts.url
            self.conductor = self._started = Conductor(
                environment,
                self.accounts,
                embedded=self._embedded,
                console=self.console,
                ready=self._ready,
                leave=self._after_run,
            )
            ports.release(METRICS)
            if options.metrics_port:
                self._metrics = start_server(
                    options.metrics_port, options.metrics_host, lambda: exposed(self.conductor)
                )
            if options.otlp:
                read = partial(exposed, self.conductor)
                self._otlp = OtlpExport(options.otlp, read, self.console.tell)
            self._check_repeat()
            self._embedded_cpu = watch_embedded(
                environment, self._embedded, lambda: self.conductor.run
            )
            if options.headless or options.autostart:
                self.conductor.prepare(self.profile)
            else:
                for endpoint in self.accounts:
                    check(endpoint)
        except SetupError:
            self._close()
            raise

    # Starting.

    def _on_hello(self, _: Hello, worker: str) -> None:
        """A worker is ready, and may have missed its share."""
        self._ready.add(worker)
        if self._started is not None:
            self._started.share_out()

    def _choose_accounts(self) -> Accounts:
        hosts, option = self._environment.host, "-H"
        if not hosts:
            hosts, option = ",".join(self.profile.profile.hosts), "hosts of the profile"
        if not hosts:
            if self._credentials.logs_in:
                self.console.say(
                    f"The auth mode {LOGIN_MODE} is not used: without -H the run stresses the "
                    "embedded Azurite, which has a key of its own"
                )
            self._embedded = EmbeddedServers()
            throughput = self.profile.profile.endpoint.throughput
            return Accounts(
                (
                    self._embedded.start(
                        self._options.throttling,
                        throughput,
                        self._session_of(self.profile),
                        self.console.say,
                    ),
                )
            )
        if self._options.throttling is not None:
            raise SetupError(
                "--throttling needs the embedded Azurite: leave -H out, or start `harness gateway "
                "--upstream` in front of your endpoint and name the gateway with -H"
            )
        server = server_of_session(self._session_of(self.profile))
        return self._credentials.permitted(hosts, self._options.remote_ok, option, server)

    def _session_of(self, named: NamedProfile) -> str:
        return self._options.session or named.profile.session.kind

    def _on_login_note(self, note: LoginNote, worker: str) -> None:
        self._tell(f"the worker on {host_of(worker)}: {note.text}")

    def _tell(self, text: str) -> None:
        """Show a note about an access token; the same note of several workers is shown once."""
        now_s = time.monotonic()
        if now_s - self._told_s.get(text, -_TOLD_AGAIN_S) >= _TOLD_AGAIN_S:
            self._told_s = {text: now_s}
            self.console.say(text)

    def _check_repeat(self) -> None:
        options = self._options
        if options.repeat < 1:
            raise SetupError(f"--repeat {options.repeat} is not a number of runs")
        if options.repeat == 1:
            return
        if not options.headless:
            raise SetupError("--repeat needs --headless")
        # `harness compare` takes the folder with all runs.
        name = f"repeat-{dt.datetime.now(dt.UTC):%Y%m%dT%H%M%SZ}"
        options.out = str(Path(options.out) / name)

    def prepare_from_form(self, request: RunRequest) -> None:
        """Prepare the run that the start form asks for; an impossible run raises a `SetupError`."""
        named = profile_of(self._environment, request, started_with=self.started_with)
        self._throttle(request.throttling, named)
        self.conductor.prepare(named)

    @property
    def embedded(self) -> bool:
        """Whether the runs stress the embedded Azurite."""
        return self._embedded is not None

    def _throttle(self, limits: str | None, named: NamedProfile) -> None:
        """Put the gateway that the form asks for before the embedded Azurite, or take it away."""
        session = self._session_of(named)
        if self._embedded is None:
            self._require_server(session)
            if limits is not None:
                raise SetupError("throttling needs the embedded Azurite: restart without -H")
            return
        throughput = named.profile.endpoint.throughput
        endpoint = self._embedded.start(limits, throughput, session, self.console.say)
        self.accounts = self.conductor.accounts = Accounts((endpoint,))
        self._environment.host = self.accounts.url

    def _require_server(self, session: str) -> None:
        """Raise a `SetupError` if a session does not send to what -H is the address of."""
        kind = self.accounts.kind
        if (server := server_of_session(session)) != kind.server:
            raise SetupError(
                f"session {session} sends to a {server} service, and -H is the address of "
                f"{kind.described}: restart with an address of that service"
            )

    def wait_for_workers(self) -> None:
        """Wait for the workers of a headless run in place of Locust.

        Locust would wait on after all workers have left, and its exit code 1 means another thing.
        """
        wait_s, self._options.expect_workers_max_wait = self._options.expect_workers_max_wait, 0
        gevent.spawn(self._watch_workers, wait_s)

    def _watch_workers(self, wait_s: int) -> None:
        if not self._options.processes:
            gevent.spawn(self._tell_waiting)
        left = self._environment.runner.greenlet.join(wait_s or None)
        if self._leaving or self.conductor.busy or self.conductor.record is not None:
            return
        if left:
            self._leave_unbegun("all workers left before the run began", startup.INTERRUPTED)
        else:
            wanted, there = self._options.expect_workers, len(live_workers(self._environment))
            sentence = f"{there} of {wanted} workers connected within {wait_s} s"
            self._leave_unbegun(sentence, startup.BAD_SETUP)

    def _tell_waiting(self) -> None:
        """Show which workers the run waits for: after a moment, and whenever one has come."""
        options, told, tell_s = self._options, -1, 0.0
        where = f"{options.master_bind_host}:{options.master_bind_port}"
        hint = ""
        if is_loopback(options.master_bind_host):
            hint = "; workers on other machines need --master-bind-host"
        gevent.sleep(_TELL_AFTER_S)
        while not (self._leaving or self.conductor.busy or self.conductor.record is not None):
            there = len(live_workers(self._environment))
            now_s = time.monotonic()
            if there < options.expect_workers and (there != told or now_s >= tell_s):
                told, tell_s = there, now_s + _TELL_EVERY_S
                self.console.say(
                    f"Waiting for workers at {where}: {there} of {options.expect_workers} "
                    f"connected{hint} ({CTRL_C_ENDS})"
                )
            gevent.sleep(_LOOK_EVERY_S)

    # Locust's events, and signals.

    def on_test_start(self, **_: object) -> None:
        if self.worker is not None:
            self.worker.end()
        try:
            self.conductor.start()
            if self.worker is not None and self.conductor.run is not None:
                self.worker.start(self.conductor.run.plan, self.conductor.run.clock)
            self.conductor.share_out()
        except Exception as error:
            # Locust would log it and start the users all the same.
            self.conductor.fail(error)
            raise GreenletExit from error

    def on_spawning_complete(self, user_count: int, **_: object) -> None:
        self.conductor.users_are_up(user_count)

    def on_test_stopping(self, **_: object) -> None:
        """Stop was pressed, or every worker is gone."""
        there = live_workers(self._environment)
        self.conductor.finish(Ending(Cause.STOP if there else Cause.WORKERS_LOST))
        if self._options.headless and not self._starting_next:
            # Locust would wait for its own timer, which was taken away.
            gevent.spawn(self._leave)

    def on_quitting(self, **_: object) -> None:
        """The process ends, after a run or by a signal, with the severest exit code of all runs."""
        self.conductor.finish(Ending(self._signal))
        self._leaving = True
        if self._options.headless and self._environment.process_exit_code is None:
            self.console.error(f"ended by {self._signal.value} before the run began")
            self._environment.process_exit_code = startup.INTERRUPTED
        if not self.console.full or self.console.quiet or not self._environment.stats.entries:
            # Locust prints its tables of the same figures after this event, also empty ones.
            logging.getLogger("locust.stats_logger").disabled = True
        if len(self._repeats):
            code = self._environment.process_exit_code or 0
            self._repeats.take(self.conductor.record, code)
            self._environment.process_exit_code = self._repeats.exit_code

    def on_quit(self, **_: object) -> None:
        if self.worker is not None:
            self.worker.end()
        self._close()
        if text := self._repeats.text(self.console.page, self._options.out):
            self.console.show(text)
        self.console.results(self._options.out, self._environment.process_exit_code or 0)

    def on_hangup(self) -> None:
        """The terminal is lost: end as by SIGTERM."""
        self._signal = Cause.SIGHUP
        os.kill(os.getpid(), signal.SIGTERM)

    def on_interrupt(self) -> None:
        """Ctrl-C ends the run and then the process; a second Ctrl-C skips all waits."""
        self._interrupts += 1
        conductor = self.conductor
        conductor.stop_preparing()
        if self._interrupts > 1 or self._leaving:
            conductor.hurry()
        elif conductor.busy:
            try:
                conductor.finish(Ending(Cause.CTRL_C))
            finally:
                self._leave()
        elif self._options.headless and conductor.record is None:
            self._leave_unbegun("ended by Ctrl-C before the run began", startup.INTERRUPTED)
        else:
            self._leave()

    # Repeating and leaving.

    def _after_run(self) -> None:
        """A headless run is over: begin the next one, or leave."""
        if self._interrupts or not self._start_next():
            self._leave()

    def _start_next(self) -> bool:
        """Begin the next run of ``--repeat``; return False after the last one."""
        environment, options, conductor = self._environment, self._options, self.conductor
        run = conductor.run
        loaded = conductor.record is not None and run is not None and not run.problem
        if len(self._repeats) + 1 >= options.repeat or not loaded:
            return False
        conductor.show_result()
        self._repeats.take(conductor.record, environment.process_exit_code or 0)
        self._starting_next = True
        environment.runner.stop()
        try:
            conductor.prepare(self.profile)
        except SetupError as error:
            self.console.error(str(error))
            environment.process_exit_code = startup.BAD_SETUP
            return False
        finally:
            self._starting_next = False
        environment.runner.start(options.num_users, options.spawn_rate)
        return True

    def _leave(self) -> None:
        """End the process, once, after the last state was published."""
        if self._leaving:
            return
        self._leaving = True
        self._publish()
        self._environment.runner.quit()
        if self._environment.web_ui is not None:
            self._environment.web_ui.stop()

    def refuse(self, sentence: str) -> None:
        """End the process, because of a mistake that was found after the start."""
        self._leave_unbegun(sentence, startup.BAD_SETUP)

    def _leave_unbegun(self, sentence: str, exit_code: int) -> None:
        """End a process that waits for workers: Locust's main loop has no other way out."""
        self._leaving = True
        self.console.error(sentence)
        self._close()
        end_workers(self._environment)
        gevent.kill(self._main, SystemExit(exit_code))

    def _publish(self) -> None:
        """Push the last metrics, and keep serving them for a while."""
        conductor, options = self.conductor, self._options
        if conductor.record is None:
            return
        if options.metrics_push:
            run_id = conductor.record.run_id
            problem = push(options.metrics_push, run_id, partial(exposed, conductor))
            if problem is not None:
                self.console.tell(problem)
        if options.headless and self._metrics is not None and options.metrics_linger > 0:
            self.console.say(
                f"Metrics stay at port {self._metrics.port} for {options.metrics_linger:g} s"
            )
            conductor.linger(options.metrics_linger)

    def _close(self) -> None:
        if self._otlp is not None:
            # The last state is that of the run, which the next lines let go of.
            self._otlp.close()
            self._otlp = None
        if self._embedded_cpu is not None:
            self._embedded_cpu.kill(block=False)
        if self._started is not None:
            self._started.close()
        if self._metrics is not None:
            self._metrics.close()
            self._metrics = None
        if self._embedded is not None:
            self._embedded.stop()


def end_workers(environment: Environment) -> None:
    if isinstance(environment.runner, MasterRunner):
        # Connected workers leave at once.
        environment.runner.quit()
        if environment.parsed_options is not None and environment.parsed_options.processes:
            # Forked workers that are not connected yet would look for the master for minutes:
            # Locust takes a running child for an ended one when the process exits.
            for worker in psutil.Process().children():
                worker.terminate()


def exposed(conductor: Conductor) -> Exposed | None:
    """Return the current or last run for the metrics page; None before the first."""
    run = conductor.run
    if run is None:
        return None
    plan, record = run.plan, conductor.record
    # Only the rates of key ranges are exposed, and these need no window.
    snapshot = run.redacted(run.ledger.snapshot(start=0, end=0, latencies=False))
    limit = plan.profile.limits.billable_transactions
    course = RunCourse(
        phases=_PHASES, phase=run.phase.name.lower(), started_s=run.started_s, window=run.window
    )
    if record is not None and record.run_id == plan.run_id:
        start = record.window_start
        course = dataclasses.replace(
            course,
            ended_s=dt.datetime.fromisoformat(record.ended_at).timestamp(),
            window=run.window and (start, start + record.measured_s),
            verdict=record.verdict,
        )
    return Exposed(
        run_id=plan.run_id,
        snapshot=snapshot,
        # Reports come every second, so the counts of the last second are incomplete.
        counted_until_s=int(run.clock()) - 1,
        course=course,
        load=LoadState(
            offered_per_s=run.offered_per_s if run.phase < Phase.ENDING else None,
            waiting=run.total.waiting if plan.profile.load_model.scheduled else None,
            in_flight=run.total.in_flight,
            dropped=snapshot.counts.dropped,
            billable_transactions=run.billable_transactions,
            billable_limit=limit and limit * len(run.accounts),
            billable_by_account=dict(zip(run.accounts.names, run.billable_by_account, strict=True)),
        ),
        targets=plan.kind.targets,
        throughput=plan.profile.endpoint.throughput,
        partitions=run.partitions,
        users=conductor.environment.runner.user_count,
        workers=conductor.workers,
        cpu_percent={
            worker: sample.cpu_percent for worker, sample in run.generator.latest().items()
        },
        info=RunLabels(
            profile=plan.name,
            endpoint=str(run.accounts.kind),
            described=run.accounts.kind.described,
            host=run.accounts.host,
            table=plan.table,
            session=plan.session,
        ),
    )
