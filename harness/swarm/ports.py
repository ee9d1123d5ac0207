"""The ports on which a process of a run listens."""

from __future__ import annotations

import argparse
import dataclasses
import errno
import socket
from collections.abc import Iterator

from gevent.monkey import get_original

from harness.model.errors import SetupError
from harness.options import METRICS_PORT

MASTER, WEB_UI, METRICS = "the master", "the web UI", "the metrics page"
"""The listeners of a process, as messages name them."""
_MASTER_PORT, _WEB_PORT = 5557, 8089
"""Locust's default ports."""
_PORTS_TRIED = 50


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Listener:
    """A listener of this process.

    Attributes:
        ports: The options that hold its port.
        flag: How the user sets the port.
        movable: True if another run may have taken the default port, and this one may take another.
    """

    what: str
    host: str
    ports: tuple[str, ...]
    flag: str
    movable: bool


class HeldPorts:
    """The ports of this process, from the choice of a port until its server listens there.

    They are held by listening sockets: of two runs that start at the same moment, the second sees
    that a port is taken. Workers are forked meanwhile, so that they know the port of their master.
    """

    def __init__(self) -> None:
        self._held: dict[str, socket.socket] = {}

    def settle(self, options: argparse.Namespace) -> list[str]:
        """Give every listener a free port, and return a sentence for each that left its default.

        A default port moves on to the next free one, so that two runs on one machine do not
        collide. A `SetupError` names a port that the user chose and that is in use or must not be
        listened to.
        """
        chosen = options.metrics_port is not None
        if not chosen:
            options.metrics_port = METRICS_PORT
        moved = []
        for listener in _listeners(options, metrics_chosen=chosen):
            try:
                port = self._hold(listener, getattr(options, listener.ports[0]))
            except SetupError:
                self.close()
                raise
            if port is not None:
                first = getattr(options, listener.ports[0])
                for name in listener.ports:
                    setattr(options, name, port)
                moved.append(f"Port {first} is in use: {listener.what} uses port {port}")
        return moved

    def _hold(self, listener: _Listener, first: int) -> int | None:
        """Hold a port; return it if it is not the first choice."""
        ports = range(first, first + _PORTS_TRIED) if listener.movable else (first,)
        for port in ports:
            try:
                self._held[listener.what] = _listen(listener.host, port)
            except socket.gaierror:
                # Locust also takes the name of a network interface.
                break
            except (OSError, OverflowError) as error:
                if getattr(error, "errno", None) == errno.EADDRINUSE and port != ports[-1]:
                    continue
                raise SetupError(_refused(listener, port, error)) from error
            return port if port != first else None
        return None

    def hand_over(self, what: str) -> socket.socket | None:
        """The listening socket that holds a port, to be closed by the caller; None if none does."""
        return self._held.pop(what, None)

    def release(self, *names: str) -> None:
        """Release these ports for a server that is about to listen there."""
        for what in names:
            if (held := self.hand_over(what)) is not None:
                held.close()

    def close(self) -> None:
        """Release every port; a worker does so, because it never listens."""
        self.release(*tuple(self._held))


def _refused(listener: _Listener, port: int, error: OSError | OverflowError) -> str:
    reason = getattr(error, "strerror", None) or error
    return (
        f"{listener.what} cannot listen on {listener.host or '*'}:{port} ({reason}); stop the "
        f"process that listens there, or choose another port with {listener.flag}"
    )


def _listeners(options: argparse.Namespace, *, metrics_chosen: bool) -> Iterator[_Listener]:
    if options.processes or options.master:
        flag = "--master-bind-port"
        ports: tuple[str, ...] = ("master_bind_port",)
        if options.processes:
            ports, flag = (*ports, "master_port"), f"{flag} and --master-port"
        # Workers on other machines know the default port only.
        usual = options.master_bind_port == options.master_port == _MASTER_PORT
        yield _Listener(
            what=MASTER,
            host=options.master_bind_host,
            ports=ports,
            flag=flag,
            movable=bool(options.processes and usual and not options.master),
        )
    if options.headful or not options.headless:
        yield _Listener(
            what=WEB_UI,
            host=options.web_host,
            ports=("web_port",),
            flag="--web-port",
            movable=options.web_port == _WEB_PORT,
        )
    if options.metrics_port:
        yield _Listener(
            what=METRICS,
            host=options.metrics_host,
            ports=("metrics_port",),
            flag="--metrics-port",
            movable=not metrics_chosen,
        )


def _listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; gevent's would start an event loop before Locust forks."""
    address = None if host in ("", "*") else host
    [(family, kind, _, _, place), *_] = get_original("socket", "getaddrinfo")(
        address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    listener: socket.socket = get_original("socket", "socket")(family, kind)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen()
    except BaseException:
        listener.close()
        raise
    return listener
