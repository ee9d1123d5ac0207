"""A connection that waits for answers at less cost than gevent's own sockets do."""

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
    """A connected socket, with TLS or without. One greenlet at a time uses it.

    gevent's sockets would try to read at once, which fails, and set up a watcher and a timer for
    every wait. Here one watcher sees whatever comes, also while nobody waits, and the pool looks
    after who waits too long.

    Attributes:
        new: True before its first whole answer.
        waits_since_s: Since when an answer's first bytes are waited for, by the monotonic clock;
            infinite where they are not.
    """

    __slots__ = (
        "_has_come",
        "_hub",
        "_poll",
        "_readable",
        "_socket",
        "_timeout_s",
        "_waiter",
        "new",
        "waits_since_s",
    )

    def __init__(self, connected: Any, timeout_s: float) -> None:
        self._socket = connected
        self._timeout_s = timeout_s
        self._hub = get_hub()
        self._waiter: Any = None
        self._has_come = False
        # An idle connection keeps no loop going.
        self._readable = self._hub.loop.io(connected.fileno(), _READ, ref=False)
        self._readable.start(self._on_readable)
        unread = _poll()
        unread.register(connected.fileno(), select.POLLIN)
        self._poll = unread.poll
        self.new = True
        self.waits_since_s = math.inf

    @property
    def tls_session(self) -> ssl.SSLSession | None:
        """What a later connection can resume; None without TLS."""
        session: ssl.SSLSession | None = getattr(self._socket, "session", None)
        return session

    def send(self, data: bytes) -> None:
        """Send all of it.

        Raises:
            OSError: the connection is broken, or takes nothing in time.
        """
        # All of it mostly leaves at once; sendall would first ask for the kind of socket.
        left = self._socket.send(data)
        if left < len(data):
            self._socket.sendall(memoryview(data)[left:])

    def first(self, size: int) -> bytes:
        """The first bytes of an answer, at most ``size``; nothing at the end.

        Raises:
            OSError: the connection is broken, or nothing comes in time.
        """
        if self._has_come:
            self._watch_again()
        else:
            self._wait()
        data: bytes = self._socket.recv(size)
        return data

    def more(self, size: int) -> bytes:
        """Further bytes of an answer, at most ``size``; nothing at the end.

        Raises:
            OSError: the connection is broken, or nothing comes in time.
        """
        data: bytes = self._socket.recv(size)
        return data

    def give_up_if_late(self, now_s: float) -> None:
        """End the wait for an answer's first bytes where it took too long."""
        if now_s - self.waits_since_s >= self._timeout_s:
            self._hub.loop.run_callback(self._give_up, self.waits_since_s)

    def free(self) -> None:
        """Nobody uses it any more; from now on it should have nothing to say."""
        if self._has_come:
            self._watch_again()

    def usable(self) -> bool:
        """True where nothing came while it was idle: no end, no stray data."""
        # The watcher may not have been told yet.
        return not self._poll(0)

    def close(self) -> None:
        """Close it."""
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
            # It would be told again and again.
            self._has_come = True
            self._readable.stop()

    def _watch_again(self) -> None:
        self._has_come = False
        self._readable.start(self._on_readable)

    def _give_up(self, since_s: float) -> None:
        waiter = self._waiter
        # An answer may have come in between, and another wait have begun.
        if waiter is not None and self.waits_since_s == since_s:
            self._waiter = None
            waiter.throw(TimeoutError("timed out"))
