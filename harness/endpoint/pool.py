"""How many connections there may be, and which of the idle ones can still be used.

A place is taken before a connection is looked for and given back when its exchange has ended,
however it ended. An idle connection that has something to read was closed by the other side, or
is out of step; either way it is not used again.
"""

from __future__ import annotations

import os
import select
import socket
import ssl
from typing import Any, Protocol
from urllib.parse import urlsplit

import gevent.monkey
from gevent.lock import BoundedSemaphore
from gevent.ssl import SSLContext, create_default_context
from geventhttpclient.connectionpool import ConnectionPool, SSLConnectionPool

from harness.endpoint.trust import CA_VARIABLES, trust_context

# The unpatched poll: it never switches greenlets, and unlike select takes any descriptor.
_poll = gevent.monkey.get_original("select", "poll")


class Connection(Protocol):
    """What is used of a connected socket, with TLS or without."""

    def send(self, data: bytes, /) -> int:
        """Send what can be sent at once; how many bytes that was."""

    def sendall(self, data: bytes, /) -> None:
        """Send all of it."""

    def recv(self, size: int, /) -> bytes:
        """What has come, at most ``size`` bytes; nothing at the end."""

    def fileno(self) -> int:
        """Its descriptor; negative when closed."""

    def close(self) -> None:
        """Close it."""


class _Connector(Protocol):
    """The part of geventhttpclient's pools that is used here: it makes connections."""

    def _create_socket(self) -> Any: ...


def _set_no_delay(connection: Any) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class _PlainConnector(ConnectionPool):
    def after_connect(self, sock: Any) -> None:
        _set_no_delay(sock)


class _TlsConnector(SSLConnectionPool):
    def after_connect(self, sock: Any) -> None:
        _set_no_delay(sock)


class ConnectionLimit:
    """A bound on connections, and the idle ones, newest first.

    geventhttpclient's own pool is not used for this: it asks ``select``, which fails above 1,024
    descriptors, and leaves waiters hanging when it is closed.
    """

    def __init__(self, connector: _Connector, limit: int) -> None:
        self._connector = connector
        self._places = BoundedSemaphore(limit)
        self._limit = limit
        self._idle: list[Connection] = []
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
            if _usable(candidate):
                return candidate
            candidate.close()
        made: Connection = self._connector._create_socket()
        return made

    def put_back(self, connection: Connection) -> None:
        """Keep a connection after a whole answer, and free its place."""
        if self._closed:
            connection.close()
        else:
            self._idle.append(connection)
        self._places.release()

    def drop(self, connection: Connection | None) -> None:
        """Close what was used, if anything was, and free its place."""
        try:
            if connection is not None:
                connection.close()
        finally:
            self._places.release()

    def close(self) -> None:
        """Close the idle connections, and from now on each that is put back."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()


def _usable(connection: Connection) -> bool:
    """True where an idle connection has nothing to say: no end, no stray data."""
    descriptor = connection.fileno()
    if descriptor < 0:
        return False
    poll = _poll()
    poll.register(descriptor, select.POLLIN)
    return not poll.poll(0)


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
    if not tls:
        return ConnectionLimit(_PlainConnector(host, port, host, port, **timeouts), connections)
    context = _tls_context()
    connector = _TlsConnector(
        host, port, host, port, ssl_context_factory=lambda cafile: context, **timeouts
    )
    return ConnectionLimit(connector, connections)
