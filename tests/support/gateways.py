"""Gateways of the tests: how they are started and reached, and what they counted."""

from __future__ import annotations

import asyncio
import json
import queue
import socket
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

from harness.gateway.limits import GatewayLimits
from harness.gateway.process import read_counters
from harness.gateway.server import new_event_loop, serve
from harness.gateway.storage import StorageLimits
from harness.model.entity import of_sort_key

_WITHIN_S = 20.0


class Gateway(Protocol):
    """A gateway that listens, in whatever process."""

    @property
    def url(self) -> str: ...

    def counters(self) -> bytes: ...


def ranges_of(storage: StorageLimits) -> list[tuple[str, str, int]]:
    """Table, first key and server of every range."""
    firsts = ((*place.first, place.server) for place in storage._ranges)
    return [(table, of_sort_key(key), server) for table, key, server in firsts]


StartGateway = Callable[..., Gateway]
Connect = Callable[[Gateway], socket.socket]


class GatewayThread:
    """The gateway as a thread of this process, which it costs little to start."""

    def __init__(self, upstream: str, limits: GatewayLimits) -> None:
        self._begun: queue.SimpleQueue[str | Exception] = queue.SimpleQueue()
        self._loop = new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, args=(upstream, limits), daemon=True)
        self._thread.start()
        begun = self._begun.get(timeout=_WITHIN_S)
        if isinstance(begun, Exception):
            raise begun
        self.url = begun

    def counters(self) -> bytes:
        return read_counters(self.url)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_WITHIN_S)
        assert not self._thread.is_alive()

    def _run(self, upstream: str, limits: GatewayLimits) -> None:
        serving = serve(
            upstream=upstream,
            listen="127.0.0.1:0",
            limits=limits,
            ready=self._begun.put,
            stop=self._stop,
        )
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            try:
                runner.run(serving)
            except Exception as error:
                self._begun.put(error)


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

    def __init__(self, gateway: Gateway) -> None:
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
