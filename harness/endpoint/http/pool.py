"""Connections, the pool that limits and reuses them, and the authorities that they trust."""

from __future__ import annotations

import math
import os
import select
import socket
import ssl
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import gevent
import gevent.monkey
import gevent.socket
import gevent.ssl
from gevent import get_hub, getcurrent
from gevent.lock import BoundedSemaphore

from harness.model.errors import SetupError

CA_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
"""The variables of OpenSSL and ``requests``. Where one is set, no other authority is trusted."""
# The unpatched poll: it never switches greenlets, and unlike select takes any descriptor.
_poll = gevent.monkey.get_original("select", "poll")

_READ = 1
_CHECKS_PER_TIMEOUT = 20
"""A time-out is noticed at most a twentieth of its length late."""
_SHORTEST_CHECK_S, _LONGEST_CHECK_S = 0.01, 1.0


def trust_context(environ: Mapping[str, str], library: ModuleType = ssl) -> ssl.SSLContext:
    """A context of ``library`` (``ssl`` or ``gevent.ssl``) that checks certificate and host name.

    A variable of ``environ`` may name a file or a folder of certificates; a `SetupError` says that
    they cannot be loaded.
    """
    named = {name: value for name in CA_VARIABLES if (value := environ.get(name, "").strip())}
    context: ssl.SSLContext
    if not named:
        context = library.create_default_context()
        return context
    context = library.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for name, value in named.items():
        try:
            if Path(value).is_dir():
                context.load_verify_locations(capath=value)
            else:
                context.load_verify_locations(cafile=value)
        except (OSError, ssl.SSLError) as error:
            raise SetupError(f"{name}={value} holds no certificates: {error}") from None
    return context


class Connection:
    """A connected socket, with or without TLS, for one greenlet at a time.

    Waits cost less than with gevent's own sockets, which try to read at once, fail, and set up a
    watcher and a timer for every wait. Here one watcher lasts as long as the connection, and the
    pool's timer checks the time-outs of all connections.

    Attributes:
        new: True before the first whole response.
        waits_since_s: Start of the wait for the first bytes of a response, by the monotonic clock;
            infinite while there is no wait.
    """

    __slots__ = (
        "_has_come",
        "_hub",
        "_poll",
        "_readable",
        "_socket",
        "_waiter",
        "new",
        "timeout_s",
        "waits_since_s",
    )

    def __init__(self, connected: Any, timeout_s: float) -> None:
        self._socket = connected
        self.timeout_s = timeout_s
        self._hub = get_hub()
        self._waiter: Any = None
        self._has_come = False
        # Without a reference, an idle connection keeps no event loop running.
        self._readable = self._hub.loop.io(connected.fileno(), _READ, ref=False)
        self._readable.start(self._on_readable)
        unread = _poll()
        unread.register(connected.fileno(), select.POLLIN)
        self._poll = unread.poll
        self.new = True
        self.waits_since_s = math.inf

    @property
    def tls_session(self) -> ssl.SSLSession | None:
        """A session that a later connection can resume; None without TLS."""
        session: ssl.SSLSession | None = getattr(self._socket, "session", None)
        return session

    # These three raise OSError where the connection is broken or timed out.

    def send(self, data: bytes) -> None:
        # Usually one call sends everything; sendall would first look up the type of the socket.
        left = self._socket.send(data)
        if left < len(data):
            self._socket.sendall(memoryview(data)[left:])

    def first(self, size: int) -> bytes:
        """The first bytes of a response, at most ``size``; empty at the end of the connection."""
        if self._has_come:
            self._watch_again()
        else:
            self._wait()
        data: bytes = self._socket.recv(size)
        return data

    def more(self, size: int, within_s: float) -> bytes:
        """Further bytes of a response, at most ``size``; empty at the end of the connection."""
        if within_s <= 0:
            raise TimeoutError("the response has begun, but does not end")
        self._socket.settimeout(within_s)
        data: bytes = self._socket.recv(size)
        self._socket.settimeout(self.timeout_s)
        return data

    def give_up_if_late(self, now_s: float) -> None:
        """End a wait for the first bytes of a response that exceeds the time-out."""
        if now_s - self.waits_since_s >= self.timeout_s:
            self._hub.loop.run_callback(self._give_up, self.waits_since_s)

    def free(self) -> None:
        """Mark the connection as idle. The server should send nothing from now on."""
        if self._has_come:
            self._watch_again()

    def usable(self) -> bool:
        """True where nothing came while it was idle: neither its end nor stray data."""
        # The watcher may not have been called yet.
        return not self._poll(0)

    def close(self) -> None:
        self._readable.stop()
        self._readable.close()
        self._socket.close()

    def _wait(self) -> None:
        hub = self._hub
        self._waiter = getcurrent()
        self.waits_since_s = monotonic()
        self._readable.ref = True
        try:
            while self._waiter is not None:
                hub.switch()
        finally:
            self._waiter = None
            self.waits_since_s = math.inf
            self._readable.ref = False

    def _on_readable(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None:
            waiter.switch()
        else:
            # Otherwise this would be called again and again.
            self._has_come = True
            self._readable.stop()

    def _watch_again(self) -> None:
        self._has_come = False
        self._readable.start(self._on_readable)

    def _give_up(self, since_s: float) -> None:
        waiter = self._waiter
        # A response may have come in between, and another wait have begun.
        if waiter is not None and self.waits_since_s == since_s:
            self._waiter = None
            waiter.throw(TimeoutError("timed out"))


class LimitedPool:
    """Connections to the origin of ``url``; the newest idle one is used first.

    A place is taken before a connection is looked for, and given back when the exchange has ended,
    however it ended. An idle connection with something to read was closed by the server or is out
    of step, and is not used again.

    geventhttpclient's own pool is not used: it calls ``select``, which fails above 1,024
    descriptors, and leaves waiters hanging when it is closed.

    Args:
        connections: The most connections at once; further requests wait.
        connect_timeout_s: Time-out for each address of the host, whole TLS handshake included.
        read_timeout_s: Time-out for a whole response.

    Raises:
        SetupError: an environment variable names certificates that cannot be loaded.
    """

    def __init__(
        self, url: str, *, connections: int, connect_timeout_s: float, read_timeout_s: float
    ) -> None:
        self.url = url
        parts = urlsplit(url)
        tls = parts.scheme == "https"
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if tls else 80)
        self._tls = trust_context(os.environ, gevent.ssl) if tls else None
        self._tls_session: ssl.SSLSession | None = None
        self._connect_timeout_s = connect_timeout_s
        self._read_timeout_s = read_timeout_s
        self._places = BoundedSemaphore(connections)
        self._limit = connections
        self._open: set[Connection] = set()
        self._idle: list[Connection] = []
        self._checks: Any = None
        self._closed = False

    @property
    def in_use(self) -> int:
        return self._limit - int(self._places.counter)

    def acquire_now(self) -> bool:
        """Take a place if one is free; return whether one was."""
        return bool(self._places.acquire(blocking=False))

    def acquire(self) -> None:
        """Take a place, waiting for a free one."""
        self._places.acquire()

    def connection(self) -> Connection:
        """An idle or a new connection, for a place that was taken; an `OSError` if none opens."""
        idle = self._idle
        while idle:
            candidate = idle.pop()
            if candidate.usable():
                return candidate
            self._end(candidate)
        made = Connection(self._socket(), self._read_timeout_s)
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
            # TLS 1.3 sends the session after the handshake: with the first response.
            self._tls_session = connection.tls_session
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

    def _socket(self) -> Any:
        """A socket to the first address of the host that accepts a connection."""
        first: OSError | None = None
        addresses = gevent.socket.getaddrinfo(
            self._host, self._port, 0, socket.SOCK_STREAM, socket.IPPROTO_TCP
        )
        for family, kind, protocol, _, address in addresses:
            try:
                return self._connected(gevent.socket.socket(family, kind, protocol), address)
            except OSError as error:
                first = first or error
        raise first or OSError(f"{self._host} has no address")

    def _connected(self, made: Any, address: Any) -> Any:
        try:
            made.settimeout(self._connect_timeout_s)
            # The socket's own time-out is for each of its waits.
            with gevent.Timeout(self._connect_timeout_s, TimeoutError("timed out")):
                made.connect(address)
                if self._tls is not None:
                    # Resuming an earlier session saves most of the handshake.
                    made = self._tls.wrap_socket(
                        made, server_hostname=self._host, session=self._tls_session
                    )
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            made.settimeout(self._read_timeout_s)
        except BaseException:
            made.close()
            raise
        return made

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
