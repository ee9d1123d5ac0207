"""The life of a watch: everything is started, followed and ended here.

    start --> the command runs, or Ctrl-C is waited for --> end --> record

Azurite and the metering processes have sessions of their own, so that Ctrl-C ends the application
first. They end with this process, even after kill -9.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import queue
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from urllib.parse import urlsplit

import psutil

from harness import startup
from harness.endpoint.address import TABLE_HOSTS
from harness.endpoint.azurite import process as azurite
from harness.endpoint.credential import EMULATOR_ACCOUNT, STAND_IN_ACCOUNT
from harness.gateway.limits import load_limits
from harness.measure.record.record import RunRecord
from harness.metrics.export import OtlpExport, push, start_server
from harness.metrics.exposition import Exposed
from harness.model.errors import printable_lines
from harness.model.process import Clock, child_environment, epoch_now_s, steady_clock
from harness.model.services import BESIDE, USUAL
from harness.model.services.service import Server
from harness.report.export.run_folder import write_run
from harness.trace.head import BODIES, TraceHead
from harness.trace.writer import TraceWriter
from harness.watch.application import Application, CpuMeter, with_addresses
from harness.watch.books import create_marks
from harness.watch.metering import MeteringProcess, MeteringSettings, Reports
from harness.watch.outputs import (
    LIVE_EVERY_S,
    LiveLine,
    LivePage,
    announcement,
    exposed,
    note_limits,
    shown,
)
from harness.watch.variables import (
    Addresses,
    addresses,
    environment,
    host_beside,
    host_elsewhere,
    host_here,
    listening,
    upstreams_beside,
    urls_of,
)
from harness.watch.watched_run import (
    EMULATOR_PORT,
    WatchedRun,
    WatchEnd,
    WatchOptions,
    gateway_sample,
)

_TURN_S = 0.1
_SIGNALS = {
    signal.SIGINT: WatchEnd.CTRL_C,
    signal.SIGTERM: WatchEnd.SIGTERM,
    signal.SIGHUP: WatchEnd.SIGHUP,
}
_ENDED_WITHIN_S = 10.0
"""Time for the command to end after a signal, before it is killed."""
_ASKED_AGAIN_AFTER_S = 2.0
_CAUSE_AFTER_S = 15.0
"""After this time without a request about entities, the likely cause is said."""
_COUNTERS_EVERY_S = 5.0


class Watch:
    """One watch. ``say`` takes lines for the user."""

    def __init__(
        self, options: WatchOptions, environ: Mapping[str, str], say: Callable[[str], None]
    ) -> None:
        self._options = options
        self._environ = environ
        self._say = say
        self._reports: Reports = queue.SimpleQueue()
        self._signals: list[int] = []
        self._processes: list[MeteringProcess] = []
        self._lost: set[str] = set()
        self._application: Application | None = None
        self._azurites: list[azurite.AzuriteProcess] = []
        self._run: WatchedRun
        self._limits = load_limits(options.limits)
        self._line: LiveLine
        self._urls_here: Mapping[Server, str]
        self._urls_elsewhere: Mapping[Server, str]
        self._authority: Path | None = None
        self._cpu = CpuMeter()
        self._second = 0
        self._live_s = self._counters_s = 0.0
        self._record: RunRecord | None = None
        self._said: set[str] = set()
        self.said_of_trace = ""

    def run(self) -> tuple[RunRecord, Path, int]:
        """Watch until the end.

        Returns:
            The record, its file, and the exit code: that of the command unless it is 0.

        Raises:
            SetupError: something cannot be started; nothing is left running.
        """
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._taken_signals())
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="table-watch-")))
            upstream, beside = self._upstreams(stack)
            self._start_gateways(stack, upstream, beside, folder)
            self._line = LiveLine(self._run)
            self._open_pages(stack)
            found, elsewhere = (
                addresses(urls, upstream, self._account, self._environ)
                for urls in (self._urls_here, self._urls_elsewhere)
            )
            proxy, authority = self._urls_here[USUAL.server], self._authority
            for line in announcement(self._options, found, elsewhere, proxy, authority):
                self._say(line)
            if self._options.command and not self._signals:
                self._start_command(stack, found)
            self._follow()
            self._end_command()
            self._note_limits()
            for process in self._processes:
                process.stop()
            self._take_reports(0.0)
            record, path = self._write()
            code = record.exit_code
            if self._application is not None and self._run.ended_by is WatchEnd.COMMAND:
                code = self._application.exit_code or code
            return record, path, code

    # Start.

    @contextlib.contextmanager
    def _taken_signals(self) -> Iterator[None]:
        def take(number: int, frame: FrameType | None) -> None:
            self._signals.append(number)

        before = {number: signal.signal(number, take) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _upstreams(self, stack: contextlib.ExitStack) -> tuple[str, dict[Server, str]]:
        """The endpoint of tables, and those of the other servers of the account, if known."""
        charges = self._options.plan.kind.charges
        if (upstream := self._options.upstream) is not None:
            return upstream, {} if charges else upstreams_beside(upstream)
        beside = (one.server for one in BESIDE if not charges)
        servers = [USUAL.server, *filter(azurite.installed, beside)]
        # They start side by side: each takes a second.
        with concurrent.futures.ThreadPoolExecutor() as pool:
            starts = [pool.submit(azurite.start_azurite, service=server) for server in servers]
        for start in starts:
            if start.exception() is None:
                self._azurites.append(stack.enter_context(start.result()))
        urls = [start.result().endpoint.url.rsplit("/", 1)[0] for start in starts]
        return urls[0], dict(zip(servers[1:], urls[1:], strict=True))

    @property
    def _account(self) -> str:
        """The account that the application is given; empty for the usual one."""
        if self._azurites and self._options.plan.kind.charges:
            return STAND_IN_ACCOUNT
        return self._options.account

    def _start_gateways(
        self,
        stack: contextlib.ExitStack,
        upstream: str,
        beside: Mapping[Server, str],
        folder: Path,
    ) -> None:
        options, plan = self._options, self._options.plan
        host, port = options.listen
        certificate = ""
        intercepts = account = ""
        if options.proxy:
            intercepts, account = "*", self._account or EMULATOR_ACCOUNT
            if options.remote:
                intercepts, account = urlsplit(upstream).hostname or "", ""
        if options.tls or options.proxy:
            # Only a gateway with TLS needs the library.
            from harness.gateway.tls import made_certificate

            servers = (USUAL.server, *beside) if options.proxy else ()
            more = [host_beside(host, server) for server in servers for host in TABLE_HOSTS]
            _, self._authority = made_certificate(folder, host_elsewhere(host), more)
            certificate = str(self._authority.with_name("server.pem"))
        proxies = child_environment(self._environ, "*_PROXY") if options.proxy else {}
        epoch_s = epoch_now_s()
        clock = steady_clock(epoch_s)
        self._run = WatchedRun(plan, clock, options.aliases, self._trace(stack, clock))
        # Where applications look for an emulator, they look for its other servers too.
        usual, marks = port == EMULATOR_PORT, ""
        ports = {one.server: one.port if usual else 0 for one in BESIDE if one.server in beside}
        if plan.processes > 1:
            create_marks(folder / "marks")
            marks = str(folder / "marks")
        for number in range(plan.processes):
            settings = MeteringSettings(
                name=f"gateway-{number + 1}",
                upstream=upstream,
                listen=listening(host, port),
                beside=tuple(
                    (server, beside[server], listening(host, at)) for server, at in ports.items()
                ),
                limits=str(options.limits.absolute()),
                certificate=certificate,
                intercepts=intercepts,
                account=account,
                budget=plan.budget,
                window_s=self._run.window_s,
                # Requests of the gateway itself are billed too, and not of the budget.
                looks_ahead=not options.remote and plan.budget is None,
                marks=marks,
                epoch_s=epoch_s,
                traces=options.trace is not None,
                properties=options.trace_properties,
            )
            log = folder / f"{settings.name}.log"
            process = MeteringProcess(settings, self._reports, log, proxies)
            stack.callback(process.stop)
            report = process.first_report()
            # The other processes share the port that the first one was given.
            bound = {server: urlsplit(url).port or 0 for server, url in report.urls.items()}
            port = bound.pop(USUAL.server)
            ports = bound
            self._processes.append(process)
            self._run.take_report(settings.name, report)
        ports = {USUAL.server: port, **ports}
        scheme = "https" if options.tls else "http"
        self._urls_here = urls_of(scheme, plan.kind.sdk_host or host_here(host), ports)
        self._urls_elsewhere = urls_of(scheme, host_elsewhere(host), ports)
        self._run.know(at_emulator=port == EMULATOR_PORT, tls=options.tls, proxy=options.proxy)
        self._gateway_psutil = {
            process.settings.name: psutil.Process(process.pid) for process in self._processes
        }

    def _trace(self, stack: contextlib.ExitStack, clock: Clock) -> TraceWriter | None:
        options, plan, aliases = self._options, self._options.plan, self._options.aliases
        if options.trace is None:
            return None
        head = TraceHead(
            started_ms=int(clock()) * 1000,
            source="watch",
            name=plan.command,
            run_id=plan.run_id,
            endpoint=plan.described,
            account=options.account if aliases is None else "",
            keys="" if aliases is None else aliases.kept,
            bytes_of=BODIES,
            properties=",".join(options.trace_properties),
        )
        alias = None if aliases is None else aliases.key
        pool = concurrent.futures.ThreadPoolExecutor(1)
        return stack.enter_context(TraceWriter(options.trace, head, alias, pool=pool))

    def _open_pages(self, stack: contextlib.ExitStack) -> None:
        options = self._options
        host, port = options.page
        if port >= 0:
            page = LivePage(lambda: shown(self._run, self._record, options.out), host, port)
            stack.callback(page.close)
            self._say(f"live page:  {page.url}")
        host, port = options.metrics
        if port:
            server = start_server(port, host, self._exposed)
            stack.callback(server.close)
            self._say(f"metrics:    http://{host}:{server.port}/metrics")
        if options.otlp is not None:
            stack.callback(OtlpExport(options.otlp, self._exposed, startup.complain).close)

    def _exposed(self) -> Exposed:
        return exposed(self._run, self._record)

    def _start_command(self, stack: contextlib.ExitStack, found: Addresses) -> None:
        options = self._options
        command = with_addresses(
            options.command,
            connection_string=found.connection_string,
            endpoint=found.endpoint,
        )
        made = environment(
            self._environ,
            found,
            names=options.env,
            authority=self._authority,
            proxy=self._urls_here[USUAL.server] if options.proxy else "",
            local=not options.remote,
            keep=options.keep_env,
        )
        for line in made.lines:
            self._say(line)
        self._run.know(removed=made.removed)
        self._application = Application(
            command,
            made.variables,
            options.plan.run_id,
            with_children=options.wait_for_children,
            as_json=options.as_json,
        )
        stack.callback(self._kill_command)

    # While the application runs.

    def _follow(self) -> None:
        """Take reports until something ends the watch."""
        begun_s = time.monotonic()
        self._live_s = begun_s + LIVE_EVERY_S
        while self._run.ended_by is None:
            self._take_reports(_TURN_S)
            self._sample()
            now_s = time.monotonic()
            if now_s >= self._counters_s:
                self._counters_s = now_s + _COUNTERS_EVERY_S
                self._note_limits()
            if now_s >= self._live_s:
                self._live_s = max(self._live_s + LIVE_EVERY_S, now_s)
                self._say(self._line.text())
                if now_s - begun_s >= _CAUSE_AFTER_S and (cause := self._run.cause):
                    about = self._run.plan.kind.unit.many
                    self._say_once("cause", f"no request about {about} yet. {cause}.")
            self._run.ended_by = self._end(now_s - begun_s)

    def _note_limits(self) -> None:
        note_limits(self._run, self._limits, self._urls_here[USUAL.server], self._authority)

    def _end(self, elapsed_s: float) -> WatchEnd | None:
        """What ends the watch now; None while it goes on."""
        if self._signals:
            return _SIGNALS[signal.Signals(self._signals[0])]
        if (application := self._application) is not None:
            if application.exit_code is not None:
                return WatchEnd.COMMAND
            if application.ended:
                self._tell_of_children(application, "the watch waits for them")
        if self._lost:
            return WatchEnd.GATEWAY
        if not all(process.running for process in self._azurites):
            return WatchEnd.ENDPOINT
        if self._run.tally.over_budget:
            return WatchEnd.BUDGET
        duration_s = self._options.duration_s
        return WatchEnd.DURATION if duration_s is not None and elapsed_s >= duration_s else None

    def _say_once(self, about: str, line: str) -> None:
        if about not in self._said:
            self._said.add(about)
            self._say(line)

    def _tell_of_children(self, application: Application, then: str) -> None:
        """Say once which processes go on after the end of the command; ``then`` is what follows."""
        # To look for them takes a while.
        if "children" not in self._said and (sentence := application.left):
            self._say_once("children", f"{sentence}: {then}")

    def _take_reports(self, wait_s: float) -> None:
        """Merge the reports that are there, and wait for the first one."""
        deadline = time.monotonic() + wait_s
        while True:
            try:
                name, report = self._reports.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                return
            if report is None:
                self._note_lost(name)
            else:
                self._run.take_report(name, report)
                self._tell_of_trace()

    def _tell_of_trace(self) -> None:
        if (trace := self._run.trace) is not None and trace.problem:
            ends = f"the trace {trace.path} ends here ({trace.problem})"
            self._say_once("trace", f"{ends}; the watch goes on without it")

    def _note_lost(self, name: str) -> None:
        if self._run.ended_by is None:
            for process in self._processes:
                if process.settings.name == name and process.last_words:
                    self._say(f"{name}: {process.last_words}")
        self._lost.add(name)

    def _sample(self) -> None:
        """Sample the CPU once a second."""
        now_s = self._run.clock()
        if int(now_s) == self._second:
            return
        self._second = int(now_s)
        family = []
        if (command := self._application) is not None:
            family = command.family()
            known = self._run.circumstances
            if self._run.cause and not (known.at_emulator or known.to_emulator):
                self._run.know(to_emulator=command.is_connected_to("127.0.0.1", EMULATOR_PORT))
        application = self._cpu.sample(family, now_s)
        gateway = {
            name: sample
            for name, process in self._gateway_psutil.items()
            if (sample := gateway_sample(process, self._second - 1)) is not None
        }
        self._run.take_samples(application if family else None, gateway)

    # The end.

    def _end_command(self) -> None:
        """Wait until the command ends: after a signal, at its own pace for 10 s."""
        application, run = self._application, self._run
        if application is None:
            return
        stopped = run.ended_by not in (WatchEnd.COMMAND, *_SIGNALS.values())
        if stopped and application.exit_code is None:
            self._say(f"the watch ends by {run.ended_by.value if run.ended_by else ''}")
            application.pass_on(signal.SIGTERM)
        passed_on = 0
        begun_s = time.monotonic()
        asked_again = False
        while application.exit_code is None:
            for number in self._signals[passed_on:]:
                application.pass_on(number)
            passed_on = len(self._signals)
            waited_s = time.monotonic() - begun_s
            if waited_s >= _ASKED_AGAIN_AFTER_S and not asked_again and self._signals:
                # A SIGINT that does not come from the keyboard has not reached the command.
                asked_again = True
                application.pass_on(self._signals[0], always=True)
            if waited_s >= _ENDED_WITHIN_S or self._signals.count(signal.SIGINT) > 1:
                self._say("the command does not end: it is killed")
                break
            self._take_reports(_TURN_S)
            self._sample()
        self._kill_command()
        if application.killed or run.ended_by is not WatchEnd.COMMAND:
            # A command that ends by itself may leave a server behind on purpose.
            application.kill_rest()
        else:
            then = "the gateway closes now (--wait-for-children waits for them)"
            self._tell_of_children(application, then)
        run.command_ended = application.ended
        if run.ended_by is WatchEnd.COMMAND and application.exit_code:
            run.know(failed=application.ended)

    def _kill_command(self) -> None:
        application = self._application
        if application is not None and application.exit_code is None:
            application.kill()

    def _write(self) -> tuple[RunRecord, Path]:
        run, options = self._run, self._options
        record = run.record(run.clock(), over=True)
        self.said_of_trace = run.end_trace()
        self._tell_of_trace()
        record, path = write_run(
            record,
            options.out,
            ledger=run.ledger,
            aliases=run.aliases,
            clean_up=lambda: (run.tally.passed,),
            complain=startup.complain,
        )
        self._record = record
        if options.push is not None:
            problem = push(options.push, record.run_id, self._exposed)
            if problem is not None:
                startup.complain(problem)
        return record, path


def write_line(line: str) -> None:
    """Write a line for the user to standard error: standard output is the application's."""
    write_page(printable_lines(line))


def write_page(page: str) -> None:
    """The same for a rendered page, which may have colours."""
    with contextlib.suppress(OSError, ValueError):
        print(page, file=sys.stderr, flush=True)
