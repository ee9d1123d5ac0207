"""The servers that a run without ``-H`` starts: Azurite and, with ``--throttling``, a gateway.

Both run in sessions of their own, end with the harness, and are stopped last.
"""

from __future__ import annotations

import atexit

from harness.endpoint.azurite.process import AzuriteProcess, start_azurite
from harness.endpoint.endpoint import Endpoint, behind_gateway, emulator_endpoint
from harness.gateway.limits import limits_path, load_limits
from harness.gateway.process import GatewayProcess, start_gateway


class Children:
    """The embedded servers.

    Attributes:
        gateway: The gateway before Azurite; None without one.
    """

    def __init__(self) -> None:
        self._azurite: AzuriteProcess | None = None
        self.gateway: GatewayProcess | None = None

    @property
    def started(self) -> bool:
        """True if Azurite was started."""
        return self._azurite is not None

    def start(self, throttling: str | None) -> Endpoint:
        """Start the servers, and return the endpoint of a run.

        Args:
            throttling: Name or file of the gateway's limits; None starts no gateway.

        Raises:
            SetupError: a server does not start, or the limits are invalid.
        """
        limits = None if throttling is None else limits_path(throttling)
        if limits is not None:
            # Checks the limits before anything is started.
            load_limits(limits)
        atexit.register(self.stop)
        self._azurite = start_azurite()
        if limits is None:
            return self._azurite.endpoint
        self.gateway = start_gateway(
            upstream=f"http://{self._azurite.endpoint.host}", limits=limits
        )
        return behind_gateway(emulator_endpoint(self.gateway.url))

    def stop(self) -> None:
        """Stop the servers, the gateway first. A second call does nothing."""
        if self.gateway is not None:
            self.gateway.stop()
            self.gateway = None
        if self._azurite is not None:
            self._azurite.stop()
            self._azurite = None
