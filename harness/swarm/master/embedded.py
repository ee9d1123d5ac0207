"""The servers that a run without ``-H`` starts: Azurite, and a gateway before it."""

from __future__ import annotations

import atexit
from collections.abc import Callable
from pathlib import Path

from harness.endpoint.azurite.installation import Service
from harness.endpoint.azurite.process import AzuriteProcess, start_azurite
from harness.endpoint.endpoint import Endpoint, as_kind, emulator_endpoint
from harness.endpoint.sessions import BLOB
from harness.gateway.limits import COSMOS_LIMITS, limits_path, load_limits
from harness.gateway.process import GatewayProcess, start_gateway
from harness.model.errors import SetupError
from harness.model.target import EndpointKind, Throughput


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
        other limits is replaced. Session ``blob`` has Azurite's blob server in place of the table
        server. A `SetupError` says why a server cannot be started.
        """
        if session == BLOB and throttling is not None:
            raise SetupError(
                "the limits of --throttling are those of tables, and session blob sends to blobs: "
                "leave --throttling out"
            )
        if throttling is None and throughput.ru_per_s is not None:
            throttling = COSMOS_LIMITS
            say(
                "The profile is for Azure Cosmos DB, so its stand-in is used: Azurite with "
                f"--throttling {COSMOS_LIMITS}"
            )
        limits, kind = None if throttling is None else limits_path(throttling), EndpointKind.GATEWAY
        # Checks the limits before anything is started.
        if limits is not None and load_limits(limits).cosmos is not None:
            kind = EndpointKind.COSMOS_EMULATOR
        atexit.register(self.stop)
        service: Service = "blob" if session == BLOB else "table"
        if self._azurite is not None and self._azurite.service != service:
            self.stop()
        if self._azurite is None:
            self._azurite = start_azurite(service=service)
        if service == "blob":
            return as_kind(self._azurite.endpoint, EndpointKind.AZURITE_BLOBS)
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
