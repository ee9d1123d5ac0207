"""Connects the harness to one Locust process: options, events, signals, web UI."""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import gevent
from locust import runners
from locust.env import Environment
from locust.event import Events
from locust.runners import MasterRunner, WorkerRunner
from locust.web import WebUI

from harness import startup
from harness.endpoint.accounts import Credentials
from harness.model.errors import SetupError
from harness.swarm.command_line import CommandLine
from harness.swarm.master.master_process import MasterProcess, end_workers
from harness.swarm.messages import Hello, send
from harness.swarm.plan import OPTION, RunPlan
from harness.swarm.ports import WEB_UI, HeldPorts
from harness.swarm.web.access import NO_LOGIN, SameOrigin, add_login, lacks_login, own_hosts
from harness.swarm.web.pages import PLACE, Showing, add_pages, add_tabs
from harness.swarm.web.start_form import Consent, offer, wrap_start, wrap_stop
from harness.swarm.worker.worker import attach

MASTER_TIMEOUT_S = 10
"""A worker stops about so long after its master is gone; Locust's default is a minute.

Only then the master gives its part of the load to the others: until then the worker may still send,
though its master does not hear of it. Locust's default is 3 s.
"""
_POLL_S = 0.02


def wire(events: Events) -> None:
    """Turn a locustfile into a stress test of a table: call it once with ``locust.events``."""
    startup.begin()
    command_line = CommandLine()
    events.init_command_line_parser.add_listener(command_line.on_parser)
    events.init.add_listener(partial(_on_init, command_line))


def _on_init(command_line: CommandLine, environment: Environment, **_: Any) -> None:
    # Of this process: on a worker the master's options replace the parsed ones later.
    credentials = Credentials(mode=command_line.auth_mode)
    if isinstance(environment.runner, WorkerRunner):
        _wire_worker(environment, credentials, forked=command_line.forks)
        return
    try:
        _wire_master(environment, credentials, command_line.ports)
    except SetupError as error:
        startup.complain(str(error))
        end_workers(environment)
        sys.exit(startup.BAD_SETUP)


def _wire_worker(environment: Environment, credentials: Credentials, *, forked: bool) -> None:
    """Connect a process that only sends load."""
    worker = attach(environment, credentials, verbose=not forked)
    # Ctrl-C in a terminal, and the loss of the terminal, reach every process of the group; only
    # the master ends the run.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if not forked:
        _on_hangup(lambda: os.kill(os.getpid(), signal.SIGTERM))
    elif startup.SIGHUP is not None:
        signal.signal(startup.SIGHUP, signal.SIG_IGN)
    runners.MASTER_HEARTBEAT_TIMEOUT = MASTER_TIMEOUT_S

    def on_test_start(**_: Any) -> None:
        worker.join(RunPlan.from_options(getattr(environment.parsed_options, OPTION)))

    environment.events.test_start.add_listener(on_test_start)

    def on_quitting(**_: Any) -> None:
        heard_s = environment.runner.last_heartbeat_timestamp
        lost = heard_s is not None and time.time() - heard_s > MASTER_TIMEOUT_S
        if lost and not forked:
            startup.complain(
                f"the master has not answered for {MASTER_TIMEOUT_S} s, so this worker ends; what "
                "it sent since its last report is in no record"
            )
            environment.process_exit_code = startup.INTERRUPTED
        worker.leave(master_is_there=not lost)

    environment.events.quitting.add_listener(on_quitting)
    if getattr(environment.parsed_options, OPTION, None) is not None:
        # Locust has let this worker join a run before this listener was there.
        on_test_start()
    send(environment.runner, Hello())


def _wire_master(environment: Environment, credentials: Credentials, ports: HeldPorts) -> None:
    """Connect the process that leads: a master, or a local run."""
    options, events = environment.parsed_options, environment.events
    hosts = own_hosts(options.web_host, options.web_allowed_host)
    runners.HEARTBEAT_LIVENESS = MASTER_TIMEOUT_S
    # Users wait for their turn, however many start at once.
    logging.getLogger(runners.__name__).addFilter(
        lambda record: "selected spawn rate is very high" not in str(record.msg)
    )
    process = MasterProcess(environment, credentials, ports)
    if not isinstance(environment.runner, MasterRunner):
        process.worker = attach(environment, credentials)
    elif options.headless or options.autostart:
        process.wait_for_workers()
    events.test_start.add_listener(process.on_test_start)
    events.spawning_complete.add_listener(process.on_spawning_complete)
    events.test_stopping.add_listener(process.on_test_stopping)
    events.quitting.add_listener(process.on_quitting)
    events.quit.add_listener(process.on_quit)
    gevent.signal_handler(signal.SIGINT, process.on_interrupt)
    _on_hangup(process.on_hangup)
    if (web_ui := environment.web_ui) is not None:
        web_ui.app.wsgi_app = SameOrigin(web_ui.app.wsgi_app, hosts)
        _wire_web_ui(environment, web_ui, process)
        # Locust listens as soon as the listeners of its event have returned.
        ports.release(WEB_UI)


def _wire_web_ui(environment: Environment, web_ui: WebUI, process: MasterProcess) -> None:
    options, conductor = environment.parsed_options, process.conductor
    consent = Consent(process.started_with, process.profile, process.accounts)
    offer(
        web_ui,
        process.started_with,
        process.profile,
        throttling=options.throttling,
        embedded=process.embedded,
    )
    wrap_start(environment, web_ui, conductor, consent, process.prepare_from_form)
    wrap_stop(web_ui, conductor.stop_preparing)
    base_path = options.web_base_path or ""
    showing = Showing(conductor, options.out)
    add_pages(web_ui, showing, base_path=base_path)
    add_tabs(web_ui, showing)
    add_login(web_ui, base_path)
    scheme = "https" if options.tls_cert else "http"
    url = f"{scheme}://{options.web_host}:{options.web_port}{base_path.rstrip('/')}"
    text = f"Web UI: {url}   (Ctrl-C ends it)\nCharts: {url}/{PLACE}/"
    if (announcement := consent.announcement()) is not None:
        text = f"{announcement}\n{text}"
    gevent.spawn(_announce, web_ui, process, text)


def _announce(web_ui: WebUI, process: MasterProcess, text: str) -> None:
    """Show the addresses as soon as the pages answer. Locust exits if it cannot listen."""
    if lacks_login(web_ui):
        # Only now: the locustfile may have set up a login after `wire`.
        process.refuse(NO_LOGIN)
        return
    while web_ui.server is None or not web_ui.server.started:
        gevent.sleep(_POLL_S)
    process.console.tell(text)


def _on_hangup(end: Callable[[], None]) -> None:
    """Let the loss of the terminal call ``end``, unless `nohup` started the process."""
    if startup.SIGHUP is not None and signal.getsignal(startup.SIGHUP) != signal.SIG_IGN:
        gevent.signal_handler(startup.SIGHUP, end)
