"""The connection pool: a limit on connections, and reuse of the idle ones.

A place is taken before a connection is looked for, and given back when the exchange has ended,
however it ended. An idle connection with something to read was closed by the server or is out of
step, and is not used again.
"""

from __future__ import annotations

import os
import socket
import ssl
from time import monotonic
from typing import Any, Protocol
from urllib.parse import urlsplit

import gevent.ssl
from gevent import get_hub
from gevent.lock import BoundedSemaphore
from geventhttpclient.connectionpool import ConnectionPool, SSLConnectionPool

from harness.endpoint.http.connection import Connection
from harness.endpoint.http.tls import trust_context

_CHECKS_PER_TIMEOUT = 20
"""A time-out is noticed at most a twentieth of its length late."""
_SHORTEST_CHECK_S, _LONGEST_CHECK_S = 0.01, 1.0


class _Connector(Protocol):
    """The part of geventhttpclient's pools that is used here: opening connections."""

    def _create_socket(self) -> Any: ...

    def keep_tls_session(self, connection: Connection) -> None:
        """Keep the TLS session of a connection that works, for the next connection."""


def _set_no_delay(connection: Any) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class _PlainConnector(ConnectionPool):
    def after_connect(self, sock: Any) -> None:
        _set_no_delay(sock)

    def keep_tls_session(self, connection: Connection) -> None:
        pass


class _TlsConnector(SSLConnectionPool):
    """Resumes the TLS session of an earlier connection, which saves most of the handshake."""

    _session: ssl.SSLSession | None = None

    def _connect_socket(self, sock: Any, address: Any) -> Any:
        sock.connect(address)
        return self.ssl_context.wrap_socket(
            sock, server_hostname=self._request_host, session=self._session
        )

    def after_connect(self, sock: Any) -> None:
        _set_no_delay(sock)

    def keep_tls_session(self, connection: Connection) -> None:
        # TLS 1.3 sends the session after the handshake: with the first response.
        self._session = connection.tls_session


class LimitedPool:
    """At most ``limit`` connections; the newest idle one is used first.

    geventhttpclient's own pool is not used for this: it calls ``select``, which fails above 1,024
    descriptors, and leaves waiters hanging when it is closed.
    """

    def __init__(self, connector: _Connector, limit: int, read_timeout_s: float) -> None:
        self._connector = connector
        self._places = BoundedSemaphore(limit)
        self._limit = limit
        self._read_timeout_s = read_timeout_s
        self._open: set[Connection] = set()
        self._idle: list[Connection] = []
        self._checks: Any = None
        self._closed = False

    @property
    def in_use(self) -> int:
        """Number of places taken."""
        return self._limit - int(self._places.counter)

    def acquire(self) -> None:
        """Take a place, waiting for a free one."""
        self._places.acquire()

    def connection(self) -> Connection:
        """An idle or a new connection, for a place that was taken.

        Raises:
            OSError: no connection can be opened.
        """
        idle = self._idle
        while idle:
            candidate = idle.pop()
            if candidate.usable():
                return candidate
            self._end(candidate)
        made = Connection(self._connector._create_socket(), self._read_timeout_s)
        self._open.add(made)
        if self._checks is None:
            every_s = self._read_timeout_s / _CHECKS_PER_TIMEOUT
            every_s = min(max(every_s, _SHORTEST_CHECK_S), _LONGEST_CHECK_S)
            # A timer without a reference keeps no process alive.
            self._checks = get_hub().loop.timer(every_s, every_s, ref=False)
            self._checks.start(self._check)
        return made

    def put_back(self, connection: Connection) -> None:
        """Keep a connection after a whole response, and free its place."""
        if connection.new:
            connection.new = False
            self._connector.keep_tls_session(connection)
        if self._closed:
            self._end(connection)
        else:
            connection.free()
            self._idle.append(connection)
        self._places.release()

    def drop(self, connection: Connection | None) -> None:
        """Close the connection, if there is one, and free its place."""
        try:
            if connection is not None:
                self._end(connection)
        finally:
            self._places.release()

    def close(self) -> None:
        """Close the idle connections now, and the others as they are put back."""
        self._closed = True
        while self._idle:
            self._end(self._idle.pop())
        self._stop_checks()

    def _end(self, connection: Connection) -> None:
        self._open.discard(connection)
        try:
            connection.close()
        finally:
            if self._closed:
                self._stop_checks()

    def _check(self) -> None:
        now_s = monotonic()
        for connection in self._open:
            connection.give_up_if_late(now_s)

    def _stop_checks(self) -> None:
        if self._checks is not None and not self._open:
            self._checks.close()
            self._checks = None


def open_pool(
    url: str, *, connections: int, connect_timeout_s: float, read_timeout_s: float
) -> LimitedPool:
    """A pool for the origin of ``url``, without connections yet.

    Raises:
        SetupError: an environment variable names certificates that cannot be loaded.
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
        context = trust_context(os.environ, gevent.ssl)
        connector = _TlsConnector(
            host, port, host, port, ssl_context_factory=lambda cafile: context, **timeouts
        )
    else:
        connector = _PlainConnector(host, port, host, port, **timeouts)
    return LimitedPool(connector, connections, read_timeout_s)
