"""Steps around a load against endpoints that hold them up: bounded, told of, ended on demand."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial

import gevent
import pytest
from azure.core.rest import HttpRequest

from harness.endpoint.admin.housekeeping import Ambiguous, Housekeeping, HousekeepingEnded
from harness.endpoint.admin.tables import (
    AdminTransport,
    create_table,
    delete_table,
    require_empty_table,
)
from harness.endpoint.endpoint import Endpoint, emulator_endpoint
from harness.model.errors import SetupError
from harness.workload.budget import Budget
from tests.contract.conftest import ScriptedService, answer

TABLE = "stress20261121T004512Z1a2b3c4d"
EMPTY_PAGE = json.dumps({"value": []}).encode()


class Tedious:
    """A server that never comes to an end: it answers each request in the same way.

    Args:
        kind: ``drip`` sends a byte of an answer every 50 ms, ``silent`` nothing, ``pages`` an empty
            page every 20 ms that says that there is another one.
    """

    def __init__(self, kind: str) -> None:
        self.requests = 0
        self._kind = kind
        self._stopped = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    @property
    def endpoint(self) -> Endpoint:
        return emulator_endpoint(self.url)

    def stop(self) -> None:
        self._stopped.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(5.0)

    def _accept(self) -> None:
        while not self._stopped.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(0.2)
        with connection, contextlib.suppress(OSError):
            while not self._stopped.is_set():
                try:
                    request = connection.recv(65536)
                except TimeoutError:
                    continue
                if not request:
                    return
                self.requests += 1
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        if self._kind == "pages":
            # However fast the machine is, the bound of a step ends before the pages do.
            self._stopped.wait(0.02)
            head = (
                "HTTP/1.1 200 OK\r\nContent-Type: application/json;odata=minimalmetadata\r\n"
                f"x-ms-continuation-NextPartitionKey: p{self.requests:09}\r\n"
                f"x-ms-continuation-NextTableName: stress{self.requests:09}\r\n"
                f"Content-Length: {len(EMPTY_PAGE)}\r\n\r\n"
            )
            connection.sendall(head.encode() + EMPTY_PAGE)
            return
        if self._kind == "drip":
            connection.sendall(b"HTTP/1.1 204 No Content\r\nX-Slow: ")
        while not self._stopped.wait(0.05):
            if self._kind == "drip":
                connection.sendall(b"x")


@pytest.fixture
def tedious(request: pytest.FixtureRequest) -> Iterator[Tedious]:
    """A server of the kind that the test names."""
    server = Tedious(request.param)
    yield server
    server.stop()


STEPS = {
    "create": create_table,
    "delete": delete_table,
    "look": require_empty_table,
}


@pytest.mark.parametrize(
    ("tedious", "step"),
    [("drip", "create"), ("silent", "delete"), ("drip", "look"), ("pages", "look")],
    indirect=["tedious"],
)
def test_a_step_that_takes_too_long_is_given_up(tedious: Tedious, step: str) -> None:
    """Its sentence names the step and its bound, and nothing more is sent."""
    work = partial(STEPS[step], tedious.endpoint, TABLE)
    with pytest.raises(Ambiguous, match=r"the step took longer than 0.3 s and was given up"):
        Housekeeping(print).do("the step", work, within_s=0.3)
    sent = tedious.requests
    gevent.sleep(0.1)
    assert tedious.requests <= sent + 1


@pytest.mark.parametrize("tedious", ["drip"], indirect=True)
def test_a_step_is_ended_on_demand(tedious: Tedious) -> None:
    """Whoever ends it does not wait for its bound."""
    housekeeping = Housekeeping(print)
    gevent.spawn_later(0.1, housekeeping.end)
    with gevent.Timeout(20), pytest.raises(HousekeepingEnded):
        housekeeping.do("it", partial(create_table, tedious.endpoint, TABLE), within_s=60)
    assert not housekeeping.busy


@pytest.mark.parametrize("tedious", ["silent"], indirect=True)
def test_it_is_told_what_is_waited_for(tedious: Tedious) -> None:
    """A line names the step, how long it has taken, and its bound."""
    lines: list[str] = []
    housekeeping = Housekeeping(lines.append, say_after_s=0.1)
    work = partial(delete_table, tedious.endpoint, TABLE)
    with pytest.raises(Ambiguous):
        housekeeping.do("deleting", work, within_s=0.3, note=lambda: "a note")
    assert lines == ["      deleting: 0 s of at most 0.3 s; a note"]


def test_what_a_step_gives_and_raises_is_passed_on() -> None:
    """A step that ends by itself is as if it had been called."""

    def fail() -> None:
        raise SetupError("no")

    assert Housekeeping(print).do("counting", lambda: 7, within_s=5) == 7
    with pytest.raises(SetupError, match="no"):
        Housekeeping(print).do("failing", fail, within_s=5)


@pytest.mark.parametrize("asked", ["1000000000", "1e9", "9" * 5000, "soon"])
def test_what_the_service_asks_to_wait_is_bounded(service: ScriptedService, asked: str) -> None:
    """No Retry-After makes a request around a run wait longer than 8 s, nor fail."""
    service.script = [answer(503, "ServerBusy", Retry_After=asked)]
    request = HttpRequest("GET", f"{service.endpoint.url}/Tables")
    with AdminTransport(service.endpoint, Budget()) as transport:
        headers = transport.send(request).headers
    assert headers.get("retry-after", "8") == "8"


def test_a_busy_service_is_asked_again(service: ScriptedService) -> None:
    """A 503 with a sensible Retry-After is followed by another try after that time."""
    made = b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"
    service.script = [answer(503, "ServerBusy", x_ms_retry_after_ms="50"), made]
    create_table(service.endpoint, TABLE)
    assert len(service.requests) == 2


def test_the_reason_of_a_refusal_has_no_full_stop(service: ScriptedService) -> None:
    """Other sentences go on after it: the full stop of the service is left out."""
    service.script = [answer(409, "SomethingElse", "It went wrong.")]
    with pytest.raises(SetupError) as caught:
        delete_table(service.endpoint, TABLE)
    assert str(caught.value).endswith("refuses the request: 409 SomethingElse: It went wrong")


@pytest.mark.parametrize("tedious", ["pages"], indirect=True)
def test_ctrl_c_ends_a_sweep_with_a_sentence(tedious: Tedious) -> None:
    """`harness sweep` at a list without an end says what it waits for, and can be interrupted."""
    with subprocess.Popen(
        [sys.executable, "-m", "harness", "sweep", "-H", tedious.url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={name: text for name, text in os.environ.items() if not name.startswith("AZURE_")},
    ) as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=20)
    assert "listing the tables at 127.0.0.1" in first
    assert (process.returncode, rest) == (130, "harness: interrupted\n")
