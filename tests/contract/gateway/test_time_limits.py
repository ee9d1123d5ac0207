"""Slow clients and slow endpoints, with time limits of a fraction of a second."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness.gateway.client import ClientTimes
from harness.gateway.limits import limits_path, load_limits
from harness.gateway.server import run, serve
from tests.support.gateways import all_of, request

TIMES = ClientTimes(head_s=0.3, body_s=0.3, idle_s=0.6, reading_s=0.3)
MIB = 1024 * 1024


class Served:
    """A gateway in this process, in a thread of its own."""

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: run(self._serve()))
        self._thread.start()
        assert self._ready.wait(10.0)

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        await serve(
            upstream=self._upstream,
            listen="127.0.0.1:0",
            limits=load_limits(limits_path("published")),
            ready=self._listening,
            stop=self._stop,
            times=TIMES,
            answered_within_s=0.5,
        )

    def _listening(self, url: str) -> None:
        self.url = url
        self._ready.set()

    def connect(self) -> socket.socket:
        """Open a raw connection."""
        return socket.create_connection(("127.0.0.1", int(self.url.rpartition(":")[2])), 10.0)

    def counts(self) -> list[dict[str, Any]]:
        """The rows of the counters."""
        with urllib.request.urlopen(f"{self.url}/-/truth", timeout=10.0) as answer:
            rows: list[dict[str, Any]] = json.load(answer)["counts"]
            return rows

    def stop(self) -> None:
        """End the gateway, and wait for its end. A second call does nothing."""
        if not self._thread.is_alive():
            return
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10.0)
        assert not self._thread.is_alive()


@pytest.fixture
def served() -> Iterator[Callable[[str], Served]]:
    """Starts gateways."""
    started: list[Served] = []

    def start(upstream: str) -> Served:
        started.append(Served(upstream))
        return started[-1]

    yield start
    for one in started:
        one.stop()


@pytest.mark.parametrize("sent", [b"PUT / HT", request("PUT", body=b"x" * 10)[:-5]])
def test_a_request_that_does_not_go_on_is_ended(
    served: Callable[[str], Served], sent: bytes
) -> None:
    """Half a head and half a body get a 408, and a row in the counters."""
    gateway = served("none")
    with gateway.connect() as connection:
        connection.sendall(sent)
        answer, end = all_of(connection)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert end == "closed"
    assert [(row["rule"], row["sent"]) for row in gateway.counts()] == [("slow", "408")]


def test_an_idle_connection_is_closed_without_a_word(served: Callable[[str], Served]) -> None:
    """Before a request and after one."""
    gateway = served("none")
    for requests in (b"", request("PUT", body=b"{}")):
        with gateway.connect() as connection:
            connection.sendall(requests)
            answer, _ = all_of(connection)
        assert answer.count(b"HTTP/1.1 ") == bool(requests)


def test_an_endpoint_that_does_not_answer_is_given_up(
    served: Callable[[str], Served], service: Any
) -> None:
    """The client is reset, because the request may have been executed; the counters say so."""
    service.script = [service.silence]
    gateway = served(f"http://{service.endpoint.host}")
    with gateway.connect() as connection:
        connection.sendall(request("PUT", body=b"{}"))
        assert all_of(connection) == (b"", "reset")
    (row,) = gateway.counts()
    assert (row["rule"], row["sent"], row["upstream"]) == ("upstream", "reset", "unanswered")


def test_a_client_that_does_not_read_stops_the_endpoint(
    served: Callable[[str], Served], service: Any
) -> None:
    """The rest of a large answer waits in the endpoint, and the connection ends after a while."""
    size = 400 * MIB
    sent: list[int] = []

    def endless(connection: socket.socket) -> bool:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        while sum(sent) < size:
            sent.append(connection.send(b"x" * MIB))
        return True

    service.script = [b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", endless]
    gateway = served(f"http://{service.endpoint.host}")
    with gateway.connect() as connection:
        connection.sendall(request("GET", "/account/table()"))
        deadline = time.monotonic() + 20.0
        while not (rows := gateway.counts()) and time.monotonic() < deadline:
            time.sleep(0.05)
    assert [row["sent"] for row in rows] == ["gone"]
    assert sum(sent) < 100 * MIB


def test_a_stop_waits_for_the_request_in_hand(
    served: Callable[[str], Served], service: Any
) -> None:
    """A stopped gateway takes no new connection, and the answer under way still arrives."""
    asked, go_on = threading.Event(), threading.Event()

    def slowly(connection: socket.socket) -> bool:
        asked.set()
        go_on.wait(10.0)
        connection.sendall(service.no_content)
        return True

    service.script = [slowly]
    gateway = served(f"http://{service.endpoint.host}")
    with gateway.connect() as connection, gateway.connect() as idle:
        connection.sendall(request("PUT", body=b"{}"))
        assert asked.wait(10.0)
        stopping = threading.Thread(target=gateway.stop)
        stopping.start()
        assert all_of(idle)[0] == b""
        with pytest.raises(ConnectionRefusedError):
            gateway.connect()
        go_on.set()
        answer, end = all_of(connection)
        stopping.join(10.0)
    assert answer.startswith(b"HTTP/1.1 204 ")
    assert (b"Connection: close" in answer, end) == (True, "closed")
