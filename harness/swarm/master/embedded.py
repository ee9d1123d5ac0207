"""The servers that a run without ``-H`` starts: Azurite, a gateway, and their CPU."""

from __future__ import annotations

import atexit
import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import gevent
import psutil
from locust.env import Environment
from locust.runners import MasterRunner

from harness.endpoint.azurite.process import AzuriteProcess, start_azurite
from harness.endpoint.endpoint import Endpoint, as_kind, emulator_endpoint
from harness.gateway.limits import limits_for, limits_path, load_limits
from harness.gateway.process import GatewayProcess, start_gateway
from harness.model.errors import SetupError
from harness.model.process import this_process_runs_on
from harness.model.services import EMBEDDED, server_of_session, service_of_session
from harness.model.services.service import Service
from harness.model.target import Throughput
from harness.swarm.master.master_run import MasterRun


class EmbeddedServers:
    """Azurite, and the gateway; both run in sessions of their own and end with the harness.

    Attributes:
        gateway: None before `start`, and without throttling.
    """

    def __init__(self) -> None:
        self.gateway: GatewayProcess | None = None
        self._azurite: AzuriteProcess | None = None
        self._gateway_of: tuple[Path, Throughput] | None = None

    @property
    def pids(self) -> list[int]:
        return [server.pid for server in (self._azurite, self.gateway) if server is not None]

    def start(
        self,
        throttling: str | None,
        throughput: Throughput,
        session: str,
        say: Callable[[str], None],
    ) -> Endpoint:
        """Start what does not run yet, and return the endpoint of the runs.

        ``throttling`` is the name or the file of limits; None for Azurite alone. A gateway with
        other limits is replaced. A session that does not send to tables has another
        server of Azurite. A `SetupError` says why a server cannot be started.
        """
        if throttling is None and (throttling := limits_for(throughput)) is not None:
            say(
                "The profile is for Azure Cosmos DB, so its stand-in is used: Azurite with "
                f"--throttling {throttling}"
            )
        limits = None if throttling is None else limits_path(throttling)
        kind: Service | None = service_of_session(session) or EMBEDDED
        if limits is not None:
            # Checks the limits before anything is started.
            kind = load_limits(limits).service(server_of_session(session))
        if kind is None:
            raise SetupError(
                f"the limits {throttling} are not for a {server_of_session(session)} service, to "
                f"which session {session} sends: choose another session, or leave --throttling out"
            )
        atexit.register(self.stop)
        if self._azurite is not None and self._azurite.service != kind.server:
            self.stop()
        if self._azurite is None:
            self._azurite = start_azurite(service=kind.server)
        wanted = None if limits is None else (limits, throughput)
        if self.gateway is not None and wanted != self._gateway_of:
            self.gateway.stop()
            self.gateway = None
        self._gateway_of = wanted
        if limits is None:
            return self._azurite.endpoint
        if self.gateway is None:
            self.gateway = start_gateway(
                upstream=f"http://{self._azurite.endpoint.host}",
                limits=limits,
                throughput=throughput,
            )
        return as_kind(emulator_endpoint(self.gateway.url), kind)

    def stop(self) -> None:
        """Stop the gateway, and then the Azurite behind it."""
        for server in (self.gateway, self._azurite):
            if server is not None:
                server.stop()
        self.gateway = self._azurite = None


def watch_embedded(
    environment: Environment,
    servers: EmbeddedServers | None,
    current: Callable[[], MasterRun | None],
) -> gevent.Greenlet:
    """Record the CPU of the ``servers``, and of a master that is no worker, once a second."""
    own = [os.getpid()] if isinstance(environment.runner, MasterRunner) else []
    machine = this_process_runs_on()
    processes: dict[int, psutil.Process] = {}

    def watch() -> None:
        while pids := [*own, *([] if servers is None else servers.pids)]:
            run = current()
            # At full seconds, as the samples of the workers.
            gevent.sleep(1.0 if run is None else 1.0 - run.clock() % 1.0)
            percent = _percent(pids, processes)
            if run is not None:
                run.generator.note_harness(machine, int(run.clock() - 0.5), percent)

    return gevent.spawn(watch)


def _percent(pids: list[int], processes: dict[int, psutil.Process]) -> float:
    """CPU of processes since the last call, in percent of one core; 0 for new ones."""
    total = 0.0
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            if pid not in processes:
                processes[pid] = psutil.Process(pid)
            total += processes[pid].cpu_percent(None)
    return total
