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
