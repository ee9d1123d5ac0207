"""Hooks the harness into one Locust process: options, start, end, signals, metrics, web form."""

from __future__ import annotations

import os
import signal
from typing import Any

import gevent
from gevent import GreenletExit
from locust import runners
from locust.argument_parser import LocustArgumentParser
from locust.env import Environment
from locust.event import Events
from locust.runners import MasterRunner, WorkerRunner
from locust.web import WebUI

from harness.endpoint.connection import Endpoint, consent_problem, endpoint_from
from harness.endpoint.probe import check
from harness.metrics.server import MetricsServer, push, start_server
from harness.model.errors import SetupError
from harness.profile.load import NamedProfile, shipped_directory, shipped_names
from harness.swarm.children import Children
from harness.swarm.choices import Choices
from harness.swarm.conductor import Conductor
from harness.swarm.exposing import exposed
from harness.swarm.inbox import Inbox
from harness.swarm.options import add_options
from harness.swarm.pages import PLACE, add_pages
from harness.swarm.plan import OPTION, RunPlan
from harness.swarm.refusing import refuse
from harness.swarm.repeats import Repeats
from harness.swarm.sharing import live_workers
from harness.swarm.showing import Showing
from harness.swarm.tab import add_tab
from harness.swarm.terminal import Terminal
from harness.swarm.web import wrap_start
from harness.swarm.worker import HELLO_MESSAGE, REFUSED_MESSAGE, attach

_LISTENING_EVERY_S = 0.02
MASTER_TIMEOUT_S = 10
"""A worker whose master is gone stops within about so long. Locust's own time is a minute."""


def wire(events: Events) -> None:
    """Make a locustfile a stress test of a table. Called once, by the locustfile.

    Args:
        events: ``locust.events``.
    """
    events.init_command_line_parser.add_listener(_on_parser)
    events.init.add_listener(_on_init)


def _on_parser(parser: LocustArgumentParser, **_: Any) -> None:
    add_options(parser)


def _on_init(environment: Environment, **_: Any) -> None:
    if isinstance(environment.runner, WorkerRunner):
        _wire_worker(environment)
    else:
        try:
            Wiring(environment).wire()
        except SetupError as error:
            refuse(environment, error)


def _wire_worker(environment: Environment) -> None:
    """Hook up a process that only sends."""
    part = attach(environment)
    # Ctrl-C in a terminal reaches every process of the group; the master alone ends the run.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    runners.MASTER_HEARTBEAT_TIMEOUT = MASTER_TIMEOUT_S

    def on_test_start(**_: Any) -> None:
        plan = RunPlan.from_options(getattr(environment.parsed_options, OPTION))
        try:
            part.start(plan)
        except SetupError as error:
            environment.runner.send_message(
                REFUSED_MESSAGE, {"run_id": plan.run_id, "sentence": str(error)}
            )

    environment.events.test_start.add_listener(on_test_start)
    environment.events.quitting.add_listener(lambda **_: part.leave())
    if getattr(environment.parsed_options, OPTION, None) is not None:
        # Locust let this worker join a run before it told us of anything.
        on_test_start()
    environment.runner.send_message(HELLO_MESSAGE)


class Wiring:
    """Hooks up the process that leads: a master, or a local run.

    Args:
        environment: Locust's.
    """

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._options = environment.parsed_options
        self._terminal = Terminal()
        self._children = Children()
        self._metrics: MetricsServer | None = None
        self._conductor: Conductor | None = None
        self._main = gevent.getcurrent()
        self._interrupts = 0
        self._leaving = False
        self._choices = Choices(environment)
        # First, because workers may greet before there is a conductor.
        environment.runner.register_message(HELLO_MESSAGE, self._on_hello)
        self._repeats: Repeats | None = None

    def wire(self) -> None:
        """Check everything that can be checked, then listen.

        Raises:
            SetupError: something is wrong; nothing was sent and nothing is left behind.
        """
        environment, options = self._environment, self._options
        named = self._choices.at_the_start()
        try:
            endpoint = self._endpoint()
            environment.host = endpoint.url
            conductor = self._conductor = Conductor(
                environment,
                endpoint,
                embedded=self._children.started,
                gateway=self._children.gateway,
                terminal=self._terminal,
                leave=self._after_run,
            )
            Inbox(environment, conductor, self._terminal)
            if options.metrics_port:
                self._metrics = start_server(
                    options.metrics_port, options.metrics_host, lambda: exposed(conductor)
                )
            self._repeats = Repeats(environment, conductor, lambda: self._prepare(named))
            if options.headless or options.autostart:
                self._prepare(named)
            else:
                check(endpoint)
        except SetupError:
            if self._conductor is not None:
                self._conductor.close()
            self._stop_children()
            raise
        self._listen(conductor)
        if environment.web_ui is not None:
            self._set_up_web(environment.web_ui, conductor)

    def _on_hello(self, **_: Any) -> None:
        """A worker is hooked up; what it was told before, it may have missed."""
        if self._conductor is not None:
            self._conductor.share_out()

    def _endpoint(self) -> Endpoint:
        host, throttling = self._environment.host, self._options.throttling
        if not host:
            return self._children.start(throttling)
        if throttling is not None:
            raise SetupError(
                "--throttling goes with the embedded Azurite: leave -H out, or start a `harness "
                "gateway --upstream` before your endpoint and name it with -H"
            )
        endpoint = endpoint_from(host, os.environ)
        problem = consent_problem(endpoint, self._options.remote_ok)
        if problem is not None:
            raise SetupError(problem)
        return endpoint

    def _prepare(self, named: NamedProfile) -> None:
        assert self._conductor is not None
        self._conductor.prepare(named, session=self._options.session, table=self._options.table)

    def _prepare_from_form(
        self, name: str, run_time_s: int | None, users: int | None, rate_per_s: float | None
    ) -> None:
        named = self._choices.from_form(name, run_time_s, users, rate_per_s)
        self._prepare(named)

    def _listen(self, conductor: Conductor) -> None:
        environment = self._environment
        events = environment.events
        local = None if isinstance(environment.runner, MasterRunner) else attach(environment)

        def on_test_start(**_: Any) -> None:
            if local is not None:
                local.end()
            try:
                conductor.start()
                if local is not None and conductor.run is not None:
                    local.start(conductor.run.plan)
                conductor.share_out()
            except Exception as error:
                # Locust would log it and start the users all the same.
                conductor.break_off(error)
                raise GreenletExit from error

        def on_quit(**_: Any) -> None:
            if local is not None:
                local.end()
            conductor.close()
            self._stop_children()

        events.test_start.add_listener(on_test_start)
        events.spawning_complete.add_listener(
            lambda user_count, **_: conductor.users_are_up(user_count)
        )

        def on_stopping(**_: Any) -> None:
            lost = not live_workers(environment)
            conductor.finish("the loss of every worker" if lost else "Stop")
            if self._options.headless and not (self._repeats and self._repeats.going_on):
                # Locust would wait for a timer that is not there.
                gevent.spawn(self._leave)

        def on_quitting(**_: Any) -> None:
            conductor.finish("SIGTERM")
            self._leaving = True

        events.test_stopping.add_listener(on_stopping)
        events.quitting.add_listener(on_quitting)
        events.quit.add_listener(on_quit)
        gevent.signal_handler(signal.SIGINT, self._on_interrupt)
        # A lost terminal ends a run as SIGTERM does.
        gevent.signal_handler(signal.SIGHUP, os.kill, os.getpid(), signal.SIGTERM)

    def _set_up_web(self, web_ui: WebUI, conductor: Conductor) -> None:
        options = self._options
        web_ui.template_args["all_profiles"] = shipped_names(shipped_directory())
        wrap_start(
            self._environment,
            web_ui,
            running=lambda: (
                conductor.run.plan.profile_name if conductor.run and conductor.busy else None
            ),
            unready=lambda: conductor.unready,
            prepare=self._prepare_from_form,
        )
        base_path = options.web_base_path or ""
        showing = Showing(conductor)
        add_pages(web_ui, showing, out=options.out, base_path=base_path)
        add_tab(web_ui, showing)
        scheme = "https" if options.tls_cert else "http"
        url = f"{scheme}://{options.web_host}:{options.web_port}{base_path.rstrip('/')}"
        text = f"Web UI: {url}   (Ctrl-C ends it)\nCharts: {url}/{PLACE}/"
        gevent.spawn(self._say_when_listening, web_ui, text)

    def _say_when_listening(self, web_ui: WebUI, text: str) -> None:
        """Who reads it opens the page at once. Locust ends the process where it cannot listen."""
        while web_ui.server is None or not web_ui.server.started:
            gevent.sleep(_LISTENING_EVERY_S)
        self._terminal.say(text)

    def _on_interrupt(self) -> None:
        """Ctrl-C: end the run as any other end, then the process; a second one hurries."""
        self._interrupts += 1
        conductor = self._conductor
        assert conductor is not None
        if self._interrupts > 1 or self._leaving:
            conductor.hurry()
            return
        if conductor.busy:
            conductor.finish("Ctrl-C")
        elif self._options.headless and conductor.record is None:
            # Still waiting for workers: Locust's main loop knows no other way out.
            self._stop_children()
            self._environment.runner.quit()
            gevent.kill(self._main, SystemExit(3))
            return
        self._leave()

    def _after_run(self) -> None:
        """A headless run is over: begin the next one, or leave."""
        if self._interrupts or self._repeats is None or not self._repeats.next():
            self._leave()

    def _leave(self) -> None:
        """End the process, once, when everything that reads the last state had its time."""
        if self._leaving:
            return
        self._leaving = True
        self._publish()
        environment = self._environment
        environment.runner.quit()
        if environment.web_ui is not None:
            environment.web_ui.stop()

    def _publish(self) -> None:
        """Let the last state be scraped, and push it."""
        conductor, options = self._conductor, self._options
        if conductor is None or conductor.record is None:
            return
        if options.metrics_push:
            problem = push(
                options.metrics_push, conductor.record.run_id, lambda: exposed(conductor)
            )
            if problem is not None:
                self._terminal.say(problem)
        if options.headless and self._metrics is not None and options.metrics_linger > 0:
            self._terminal.say(
                f"Metrics stay at port {self._metrics.port} for {options.metrics_linger:g} s"
            )
            conductor.linger(options.metrics_linger)

    def _stop_children(self) -> None:
        if self._metrics is not None:
            self._metrics.close()
            self._metrics = None
        self._children.stop()
