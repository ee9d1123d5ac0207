"""Gateways of the tests: how they are started and reached, and what they counted."""

from __future__ import annotations

import json
import socket
from collections import Counter
from collections.abc import Callable
from typing import Any

from harness.gateway.process import GatewayProcess

StartGateway = Callable[..., GatewayProcess]
Connect = Callable[[GatewayProcess], socket.socket]


TARGET = "/account/table(PartitionKey='p',RowKey='r')"


def request(method: str = "GET", target: str = TARGET, body: bytes = b"", **headers: str) -> bytes:
    """A request in bytes."""
    said = {"Host": "127.0.0.1", **headers, "Content-Length": str(len(body))}
    lines = [f"{name.replace('_', '-')}: {text}" for name, text in said.items()]
    return "\r\n".join([f"{method} {target} HTTP/1.1", *lines, "", ""]).encode() + body


def all_of(connection: socket.socket) -> tuple[bytes, str]:
    """What comes until the connection ends, and how it ended."""
    data = b""
    try:
        while block := connection.recv(65536):
            data += block
    except ConnectionResetError:
        return data, "reset"
    return data, "closed"


class Told:
    """A gateway's truth page."""

    def __init__(self, gateway: GatewayProcess) -> None:
        self.page: dict[str, Any] = json.loads(gateway.counters())

    def rows(self, table: str | None = None) -> list[dict[str, Any]]:
        """What was counted, of one table only where it is named."""
        rows: list[dict[str, Any]] = self.page["counts"]
        return [row for row in rows if table is None or row["table"] == table]

    def by(self, *names: str, table: str | None = None) -> Counter[tuple[str, ...]]:
        """Requests by these columns."""
        found: Counter[tuple[str, ...]] = Counter()
        for row in self.rows(table):
            found[tuple(row[name] for name in names)] += row["requests"]
        return found
