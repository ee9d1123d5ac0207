"""Gateways before a real Azurite, clients of the SDK as it comes, and raw connections."""

from __future__ import annotations

import socket
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from azure.data.tables import TableClient, TableServiceClient

from harness.endpoint.azurite.process import AzuriteProcess
from harness.endpoint.endpoint import Endpoint, emulator_endpoint
from harness.gateway.limits import load_limits
from tests.support.gateways import Connect, Gateway, GatewayThread, StartGateway
from tests.support.sdk import named_key

WIDE = "[partition]\nentities_per_s = 1e6\n[account]\nentities_per_s = 1e6\n"
WIDE += "[servers]\nentities_per_s = 1e6\n"
"""Limits that no test meets."""


@pytest.fixture
def gateway_to(azurite: AzuriteProcess, tmp_path: Path) -> Iterator[StartGateway]:
    """Starts gateways with limits in TOML, before Azurite where nothing else is said."""
    started: list[GatewayThread] = []

    def start(limits: str = WIDE, upstream: str | None = None) -> GatewayThread:
        file = tmp_path / f"limits{len(started)}.toml"
        file.write_text(limits, encoding="utf-8")
        behind = f"http://{azurite.endpoint.host}" if upstream is None else upstream
        started.append(GatewayThread(behind, load_limits(file)))
        return started[-1]

    yield start
    for gateway in started:
        gateway.stop()


@pytest.fixture
def client_of(
    endpoint: Endpoint,
) -> Iterator[Callable[..., TableClient]]:
    """Opens the SDK's client of one table of the test, over a gateway or without one."""
    name = f"gateway{uuid.uuid4().hex[:16]}"
    credential = named_key(endpoint)
    opened: list[TableClient] = []

    def open_it(gateway: Gateway | None, **said: Any) -> TableClient:
        reached = endpoint if gateway is None else emulator_endpoint(gateway.url)
        opened.append(TableClient(reached.url, name, credential=credential, **said))
        return opened[-1]

    with TableServiceClient(endpoint.url, credential=credential) as service:
        service.create_table(name)
        yield open_it
        for client in opened:
            client.close()
        service.delete_table(name)


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Opens raw connections."""
    opened: list[socket.socket] = []

    def open_it(gateway: Gateway) -> socket.socket:
        port = int(gateway.url.rpartition(":")[2])
        opened.append(socket.create_connection(("127.0.0.1", port), timeout=10.0))
        return opened[-1]

    yield open_it
    for connection in opened:
        connection.close()
