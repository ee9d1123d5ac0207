"""A connection that waits for responses at less cost than gevent's own sockets."""

from __future__ import annotations

import math
import select
import ssl
from time import monotonic
from typing import Any

import gevent.monkey
from gevent import get_hub, getcurrent

# The unpatched poll: it never switches greenlets, and unlike select takes any descriptor.
_poll = gevent.monkey.get_original("select", "poll")

_READ = 1


class Connection:
    """A connected socket, with or without TLS, for one greenlet at a time.

    gevent's sockets try to read at once, which fails, and set up a watcher and a timer for every
    wait. Here one watcher lasts as long as the connection, and the pool's timer checks the
    time-outs of all connections.

    Attributes:
        new: True before the first whole response.
        timeout_s: Time-out of each wait.
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
        """The TLS session, which a later connection can resume; None without TLS."""
        session: ssl.SSLSession | None = getattr(self._socket, "session", None)
        return session

    def send(self, data: bytes) -> None:
        """Send all of ``data``.

        Raises:
            OSError: the connection is broken, or timed out.
        """
        # Mostly all of it leaves at once; sendall would first look up the type of the socket.
        left = self._socket.send(data)
        if left < len(data):
            self._socket.sendall(memoryview(data)[left:])

    def first(self, size: int) -> bytes:
        """The first bytes of a response, at most ``size``; empty at the end of the connection.

        Raises:
            OSError: the connection is broken, or timed out.
        """
        if self._has_come:
            self._watch_again()
        else:
            self._wait()
        data: bytes = self._socket.recv(size)
        return data

    def more(self, size: int) -> bytes:
        """Further bytes of a response, at most ``size``; empty at the end of the connection.

        Raises:
            OSError: the connection is broken, or timed out.
        """
        data: bytes = self._socket.recv(size)
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
