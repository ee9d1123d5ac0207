"""What a run without -H stresses: an Azurite of its own, and on demand a gateway before it.

Both run in sessions of their own, die with the harness, and are stopped last.
"""

from __future__ import annotations

import atexit

from harness.endpoint.azurite.process import AzuriteProcess, start_azurite
from harness.endpoint.connection import Endpoint, behind_gateway, emulator_endpoint
from harness.gateway.limits import limits_path, load_limits
from harness.gateway.process import GatewayProcess, start_gateway


class Children:
    """The processes that the harness started for itself.

    Attributes:
        gateway: The gateway before Azurite, where there is one.
    """

    def __init__(self) -> None:
        self._azurite: AzuriteProcess | None = None
        self.gateway: GatewayProcess | None = None

    @property
    def started(self) -> bool:
        """True where there is something to be stopped."""
        return self._azurite is not None

    def start(self, throttling: str | None) -> Endpoint:
        """Start them, and give the endpoint that they are.

        Args:
            throttling: Name or file of the limits that a gateway shall hold; None is no gateway.

        Raises:
            SetupError: one of them does not start, or the limits are wrong.
        """
        limits = None if throttling is None else limits_path(throttling)
        if limits is not None:
            # Before anything is started, whatever is wrong with them is said.
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
        """Stop them, the gateway first. A second call does nothing."""
        if self.gateway is not None:
            self.gateway.stop()
            self.gateway = None
        if self._azurite is not None:
            self._azurite.stop()
            self._azurite = None
