"""A service whose answers are scripted, and sessions to it and to a real Azurite."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import ssl
import struct
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from azure.data.tables import TableServiceClient

from harness.endpoint.endpoint import Endpoint, emulator_endpoint
from harness.endpoint.session import SessionOptions
from harness.endpoint.sessions import open_session
from harness.model.process import steady_clock
from harness.model.sessions import TABLE_SESSIONS
from harness.workload.budget import Budget
from harness.workload.retry import ScheduledBackoff
from tests.support.http_messages import read_message
from tests.support.ports import free_port
from tests.support.sdk import named_key

NO_CONTENT = b'HTTP/1.1 204 No Content\r\nETag: W/"1"\r\nContent-Length: 0\r\n\r\n'


def answer(status: int, code: str, message: str = "It went wrong.", **headers: str) -> bytes:
    """An error as the table service words it."""
    body = json.dumps(
        {"odata.error": {"code": code, "message": {"lang": "en-US", "value": message}}}
    ).encode()
    lines = [f"HTTP/1.1 {status} Reason", "Content-Type: application/json;odata=minimalmetadata"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    lines += ["x-ms-request-id: request-of-the-service", f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


def entity_answer(**properties: object) -> bytes:
    """The answer to a point query that found its row."""
    body = json.dumps({"odata.etag": 'W/"1"', "PartitionKey": "p", **properties}).encode()
    head = "HTTP/1.1 200 OK\r\nContent-Type: application/json;odata=minimalmetadata\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def transaction_answer(*parts: bytes) -> bytes:
    """The answer to a transaction, with an answer for each part that is answered."""
    inner = b"".join(
        b"--changeset_1\r\nContent-Type: application/http\r\n"
        b"Content-Transfer-Encoding: binary\r\n\r\n" + part + b"\r\n"
        for part in parts
    )
    body = (
        b"--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n"
        + inner
        + b"--changeset_1--\r\n--batch_1--\r\n"
    )
    head = "HTTP/1.1 202 Accepted\r\nContent-Type: multipart/mixed; boundary=batch_1\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


class ScriptedService:
    """A loopback server that answers each request by the next step of a script.

    A step is the bytes of an answer, or a function that is given the connection and says by its
    result whether the connection stays open. With ``tls`` it speaks https.
    """

    answer = staticmethod(answer)
    entity_answer = staticmethod(entity_answer)
    transaction_answer = staticmethod(transaction_answer)
    no_content = NO_CONTENT

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self.requests: list[bytes] = []
        self.connections = 0
        self.script: list[Any] = []
        self._released = threading.Event()
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        # A port that is given to no other test, also when nobody listens on it any more.
        self._listener = socket.create_server(("127.0.0.1", free_port()))
        self._start(self._accept)

    @property
    def endpoint(self) -> Endpoint:
        scheme = "http" if self._tls is None else "https"
        return emulator_endpoint(f"{scheme}://127.0.0.1:{self._listener.getsockname()[1]}")

    @staticmethod
    def reset(connection: socket.socket) -> bool:
        """Answer with a reset: the request was read, and may have been done."""
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False

    def silence(self, connection: socket.socket) -> bool:
        """Do not answer before the test ends."""
        self._released.wait(10.0)
        return False

    @staticmethod
    def close_after(data: bytes) -> Callable[[socket.socket], bool]:
        """Send this much, and close."""

        def step(connection: socket.socket) -> bool:
            connection.sendall(data)
            return False

        return step

    @staticmethod
    def in_pieces(data: bytes) -> Callable[[socket.socket], bool]:
        """Send byte by byte."""

        def step(connection: socket.socket) -> bool:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for byte in data:
                connection.sendall(bytes([byte]))
            return True

        return step

    def ends_to_serve(self, within_s: float) -> bool:
        """Whether every connection is closed soon."""
        for thread in self._threads[1:]:
            thread.join(within_s)
        return not any(thread.is_alive() for thread in self._threads[1:])

    def stop(self) -> None:
        self._released.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5.0)

    def _start(self, target: Callable[..., None], *args: Any) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(connection)
            self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
                self._open.append(connection)
            self._converse(connection)

    def _converse(self, connection: socket.socket) -> None:
        with connection:
            while (request := read_message(connection)) is not None:
                self.requests.append(request)
                step = self.script.pop(0)
                if isinstance(step, bytes):
                    connection.sendall(step)
                elif not step(connection):
                    return


@pytest.fixture
def service() -> Iterator[ScriptedService]:
    """A scripted service."""
    service = ScriptedService()
    yield service
    service.stop()


@pytest.fixture
def open_to() -> Iterator[Callable[..., Any]]:
    """Opens a session to an endpoint; whatever is not said is made small and quick."""
    opened = []

    def open_it(kind: str, endpoint: Endpoint, table: str = "scripted", **said: Any) -> Any:
        session = open_session(
            kind,
            SessionOptions(
                **{
                    "endpoint": endpoint,
                    "table": table,
                    "run_id": "run-1",
                    "retry": ScheduledBackoff(),
                    "budget": Budget(),
                    "clock": steady_clock(),
                    "rng": random.Random(1),
                    "connections": 2,
                    "connect_timeout_s": 2.0,
                    "read_timeout_s": 5.0,
                    **said,
                },
            ),
        )
        opened.append(session)
        return session

    yield open_it
    for session in opened:
        session.close()


@pytest.fixture(params=["sdk", "wire"])
def ours(request: pytest.FixtureRequest) -> str:
    """Every kind of session whose requests and retries are the harness's own."""
    return str(request.param)


@pytest.fixture
def scripted(
    service: ScriptedService, ours: str, open_to: Callable[..., Any]
) -> Callable[..., Any]:
    """Sets the script and opens a session to it; the waits asked for are in ``waits``."""

    def scripted_session(*script: Any, retries: int = 3, **said: Any) -> Any:
        service.script = list(script)
        waits: list[float] = []
        session = open_to(
            ours,
            service.endpoint,
            **{
                "retry": ScheduledBackoff(delays_s=(0.25,) * retries),
                "sleep": waits.append,
                **said,
            },
        )
        session.waits = waits
        return session

    return scripted_session


@pytest.fixture(params=TABLE_SESSIONS)
def kind(request: pytest.FixtureRequest) -> str:
    """Every kind of session."""
    return str(request.param)


@pytest.fixture
def table(endpoint: Endpoint) -> Iterator[str]:
    """An empty table of its own."""
    name = f"contract{uuid.uuid4().hex[:16]}"
    credential = named_key(endpoint)
    with TableServiceClient(endpoint.url, credential=credential) as service:
        service.create_table(name)
        yield name
        service.delete_table(name)


@pytest.fixture
def session(kind: str, endpoint: Endpoint, table: str, open_to: Callable[..., Any]) -> Any:
    """A session of every kind to an empty table of a real Azurite."""
    return open_to(kind, endpoint, table)
