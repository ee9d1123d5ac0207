"""How many connections there may be, and which of the idle ones can still be used.

A place is taken before a connection is looked for and given back when its exchange has ended,
however it ended. An idle connection that has something to read was closed by the other side, or
is out of step; either way it is not used again.
"""

from __future__ import annotations

import os
import socket
import ssl
from time import monotonic
from typing import Any, Protocol
from urllib.parse import urlsplit

from gevent import get_hub
from gevent.lock import BoundedSemaphore
from gevent.ssl import SSLContext, create_default_context
from geventhttpclient.connectionpool import ConnectionPool, SSLConnectionPool

from harness.endpoint.connected import Connection
from harness.endpoint.trust import CA_VARIABLES, trust_context

_LOOKS_A_TIMEOUT = 20
"""A time-out is seen at most a twentieth of itself late."""
_QUICKEST_LOOK_S, _SLOWEST_LOOK_S = 0.01, 1.0


class _Connector(Protocol):
    """The part of geventhttpclient's pools that is used here: it makes connections."""

    def _create_socket(self) -> Any: ...

    def learn(self, connection: Connection) -> None:
        """Take from a connection that works what helps to make the next one."""


def _set_no_delay(connection: Any) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class _PlainConnector(ConnectionPool):
    def after_connect(self, sock: Any) -> None:
        _set_no_delay(sock)

    def learn(self, connection: Connection) -> None:
        pass


class _TlsConnector(SSLConnectionPool):
    """Resumes the TLS session of a connection before, which saves most of a handshake."""

    _session: ssl.SSLSession | None = None

    def _connect_socket(self, sock: Any, address: Any) -> Any:
        sock.connect(address)
        return self.ssl_context.wrap_socket(
            sock, server_hostname=self._request_host, session=self._session
        )

    def after_connect(self, sock: Any) -> None:
        _set_no_delay(sock)

    def learn(self, connection: Connection) -> None:
        # TLS 1.3 hands the session over behind the handshake: with the first answer.
        self._session = connection.tls_session


class ConnectionLimit:
    """A bound on connections, and the idle ones, newest first.

    geventhttpclient's own pool is not used for this: it asks ``select``, which fails above 1,024
    descriptors, and leaves waiters hanging when it is closed.
    """

    def __init__(self, connector: _Connector, limit: int, read_timeout_s: float) -> None:
        self._connector = connector
        self._places = BoundedSemaphore(limit)
        self._limit = limit
        self._read_timeout_s = read_timeout_s
        self._open: set[Connection] = set()
        self._idle: list[Connection] = []
        self._looks: Any = None
        self._closed = False

    @property
    def in_use(self) -> int:
        """Places taken."""
        return self._limit - int(self._places.counter)

    def acquire(self) -> None:
        """Take a place; waits for one."""
        self._places.acquire()

    def connection(self) -> Connection:
        """A connection for a place that was taken.

        Raises:
            OSError: none can be made.
        """
        idle = self._idle
        while idle:
            candidate = idle.pop()
            if candidate.usable():
                return candidate
            self._end(candidate)
        made = Connection(self._connector._create_socket(), self._read_timeout_s)
        self._open.add(made)
        if self._looks is None:
            every_s = self._read_timeout_s / _LOOKS_A_TIMEOUT
            every_s = min(max(every_s, _QUICKEST_LOOK_S), _SLOWEST_LOOK_S)
            # It keeps no process alive.
            self._looks = get_hub().loop.timer(every_s, every_s, ref=False)
            self._looks.start(self._look)
        return made

    def put_back(self, connection: Connection) -> None:
        """Keep a connection after a whole answer, and free its place."""
        if connection.new:
            connection.new = False
            self._connector.learn(connection)
        if self._closed:
            self._end(connection)
        else:
            connection.free()
            self._idle.append(connection)
        self._places.release()

    def drop(self, connection: Connection | None) -> None:
        """Close what was used, if anything was, and free its place."""
        try:
            if connection is not None:
                self._end(connection)
        finally:
            self._places.release()

    def close(self) -> None:
        """Close the idle connections, and from now on each that is put back."""
        self._closed = True
        while self._idle:
            self._end(self._idle.pop())
        self._look_no_more()

    def _end(self, connection: Connection) -> None:
        self._open.discard(connection)
        try:
            connection.close()
        finally:
            if self._closed:
                self._look_no_more()

    def _look(self) -> None:
        now_s = monotonic()
        for connection in self._open:
            connection.give_up_if_late(now_s)

    def _look_no_more(self) -> None:
        """Stop looking after connections when the last one has ended."""
        if self._looks is not None and not self._open:
            self._looks.close()
            self._looks = None


def _tls_context() -> SSLContext:
    """gevent's kind of the context that `harness.endpoint.trust` makes; the same are trusted.

    Raises:
        SetupError: a variable of the environment names something that holds no certificates.
    """
    trust_context(os.environ)
    named = {name: value for name in CA_VARIABLES if (value := os.environ.get(name, "").strip())}
    if not named:
        return create_default_context()
    context = SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for path in named.values():
        if os.path.isdir(path):
            context.load_verify_locations(capath=path)
        else:
            context.load_verify_locations(cafile=path)
    return context


def open_pool(
    url: str, *, connections: int, connect_timeout_s: float, read_timeout_s: float
) -> ConnectionLimit:
    """A pool for the origin of ``url``. Nothing is connected yet.

    Raises:
        SetupError: the environment names a bundle of certificates that cannot be read.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    tls = parts.scheme == "https"
    port = parts.port or (443 if tls else 80)
    timeouts: dict[str, Any] = {
        "connection_timeout": connect_timeout_s,
        "network_timeout": read_timeout_s,
    }
    connector: _Connector
    if tls:
        context = _tls_context()
        connector = _TlsConnector(
            host, port, host, port, ssl_context_factory=lambda cafile: context, **timeouts
        )
    else:
        connector = _PlainConnector(host, port, host, port, **timeouts)
    return ConnectionLimit(connector, connections, read_timeout_s)
