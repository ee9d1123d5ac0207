"""A small HTTP proxy in front of a table endpoint: an independent count of what was sent.

It can be told to hold requests up, to answer some itself, or to reset the connection. Plain gevent
sockets; nothing of the harness is used. `tests.support.faulty_service` makes a process of its own
of it, whose faults are data.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import socket
import struct
import time
from collections.abc import Callable, Iterator

import gevent
from gevent.pool import Pool
from gevent.server import StreamServer

from tests.support.http_messages import read_message

_REUSE_S = 2.0
"""Azurite drops a connection that was idle for 5 s."""
_TLS = ("certfile", "keyfile")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One request that arrived. ``at_s`` is of the monotonic clock."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    at_s: float
    raw: bytes

    @property
    def of_table(self) -> bool:
        """True for a request about the tables themselves, not about entities."""
        return "/Tables" in self.path

    def touches(self, partition_key: str) -> bool:
        """Whether it is for this partition."""
        wanted = f"PartitionKey='{partition_key}'"
        in_body = f'"PartitionKey": "{partition_key}"'.encode() in self.body
        return wanted in self.path or wanted.encode() in self.body or in_body


def refusal(status: int, code: str, message: str, **headers: str) -> bytes:
    """An error as the table service words it."""
    body = json.dumps(
        {"odata.error": {"code": code, "message": {"lang": "en-US", "value": message}}}
    ).encode()
    lines = [f"HTTP/1.1 {status} Reason", "Content-Type: application/json;odata=minimalmetadata"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    lines += [f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


RESET = b"reset"
"""As an answer: the connection is reset."""


class Proxy:
    """The proxy.

    Args:
        upstream_port: Port of the endpoint on loopback; None where every request is answered here.
        delay_s: How long each answer is held back.
        answer: Gives the answer to a request, or None where the endpoint shall.
        before: Called with each request before it is passed on.
        after: Gives what the client gets in place of the endpoint's answer.
        certificate: Files of certificate and key, for https.
        address: Where it listens.
    """

    def __init__(
        self,
        upstream_port: int | None,
        *,
        delay_s: float = 0.0,
        answer: Callable[[Seen], bytes | None] | None = None,
        before: Callable[[Seen], None] | None = None,
        after: Callable[[Seen, bytes], bytes] | None = None,
        certificate: tuple[str, str] | None = None,
        address: str = "127.0.0.1",
    ) -> None:
        self.seen: list[Seen] = []
        self.answer = answer
        self.before = before
        self._after = after
        self._delay_s = delay_s
        self._upstream_port = upstream_port
        self._address = address
        self._tls = {} if certificate is None else dict(zip(_TLS, certificate, strict=True))
        self._server = self._listen(0)

    @property
    def url(self) -> str:
        scheme = "https" if self._tls else "http"
        return f"{scheme}://{self._address}:{self._server.server_port}"

    @property
    def port(self) -> int:
        return int(self._server.server_port)

    @property
    def of_entities(self) -> list[Seen]:
        """The requests about entities, without the question whether there is a gateway."""
        return [seen for seen in self.seen if not (seen.of_table or seen.path.startswith("/-/"))]

    @contextlib.contextmanager
    def gone(self) -> Iterator[None]:
        """Meanwhile nobody listens; what was on the way is broken off."""
        port = self.port
        self._server.stop(timeout=0)
        try:
            yield
        finally:
            self._server = self._listen(port)

    def stop(self) -> None:
        self._server.stop(timeout=1.0)

    def _listen(self, port: int) -> StreamServer:
        server = StreamServer((self._address, port), self._serve, spawn=Pool(), **self._tls)
        server.start()
        return server

    def reply(self, seen: Seen, upstream: Upstream, client: socket.socket) -> bool:
        """Answer one request. False where the connection is to be closed."""
        answer = self.answer(seen) if self.answer is not None else None
        if answer == RESET:
            reset_on_close(client)
            return False
        if answer is None:
            if self.before is not None:
                self.before(seen)
            answer = upstream.ask(seen)
            if answer is not None and self._after is not None:
                answer = self._after(seen, answer)
        if answer is None:
            return False
        if self._delay_s:
            gevent.sleep(self._delay_s)
        client.sendall(answer)
        return True

    def _upstream(self) -> Upstream:
        return Upstream(self._upstream_port)

    def _serve(self, client: socket.socket, _: object) -> None:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with (
            contextlib.suppress(OSError),
            contextlib.closing(self._upstream()) as upstream,
        ):
            while (seen := read_request(client)) is not None:
                self.seen.append(seen)
                if not self.reply(seen, upstream, client):
                    return


class Upstream:
    """A connection to the endpoint behind, for one connection of a client."""

    def __init__(self, port: int | None) -> None:
        self._port = port
        self._connection: socket.socket | None = None
        self._used_s = 0.0

    def ask(self, seen: Seen) -> bytes | None:
        """The endpoint's answer; None where it gives none."""
        if self._connection is None or time.monotonic() - self._used_s > _REUSE_S:
            self.close()
            self._connection = socket.create_connection(("127.0.0.1", self._port))
            self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection.sendall(seen.raw)
        answer = read_message(self._connection)
        self._used_s = time.monotonic()
        return answer

    def close(self) -> None:
        """Close it."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def reset_on_close(client: socket.socket) -> None:
    """Let the end of this connection be a reset."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def read_request(client: socket.socket) -> Seen | None:
    """The next request of a connection; None where there is none any more."""
    request = read_message(client)
    return None if request is None else _parsed(request)


def _parsed(request: bytes) -> Seen:
    head, _, body = request.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    return Seen(
        method=method, path=path, headers=headers, body=body, at_s=time.monotonic(), raw=request
    )
