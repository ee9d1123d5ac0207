"""Runs the gateway in this process: it listens, follows its closed windows, and stops.

The event loop is that of uvloop where it can be installed.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import errno
import functools
import os
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Sequence

from harness.gateway.addresses import NO_UPSTREAM, address_of, check_upstream
from harness.gateway.client import ClientConnection, ClientTimes, Handle, Streams
from harness.gateway.forward import ForwardConnection, Interception
from harness.gateway.limits import GatewayLimits, Window
from harness.gateway.model import Model
from harness.gateway.proxy import Meter, Proxy
from harness.gateway.upstream import ANSWERED_WITHIN_S, Upstream
from harness.model.errors import SetupError
from harness.model.hosts import readers_of
from harness.model.process import search_rarely, steady_clock
from harness.model.services.service import Server

try:
    import uvloop
except ImportError:  # Windows
    new_event_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
else:
    new_event_loop = uvloop.new_event_loop

_BACKLOG = 1024
_CHECKED_EVERY_S = 0.5
_FINISHED_WITHIN_S = 3.0


def run(main: Coroutine[object, object, None]) -> None:
    """Run a coroutine to its end, as `asyncio.run` does."""
    search_rarely()
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(main)


def stopped_by_parent() -> asyncio.Event:
    """An event that is set when standard input ends: the parent process holds this pipe."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def wait_for_end() -> None:
        while os.read(sys.stdin.fileno(), 1024):
            pass
        loop.call_soon_threadsafe(stop.set)

    # A thread, because the event loop of Windows cannot watch a pipe.
    threading.Thread(target=wait_for_end, daemon=True).start()
    return stop


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BesideAddress:
    """A further address, for what the same account has beside tables.

    Attributes:
        server: What it is for.
        upstream: The endpoint of that behind.
        listen: HOST:PORT; port 0 takes a free port.
        ready: Called with its URL once the gateway listens there, before that of `serve`.
    """

    server: Server
    upstream: str
    listen: str
    ready: Callable[[str], None]


async def serve(
    *,
    upstream: str,
    listen: str,
    limits: GatewayLimits,
    ready: Callable[[str], None],
    stop: asyncio.Event,
    tls: ssl.SSLContext | None = None,
    interception: Interception | None = None,
    times: ClientTimes | None = None,
    answered_within_s: float = ANSWERED_WITHIN_S,
    meter: Meter | None = None,
    looks_ahead: bool = True,
    shared: bool = False,
    clock: Callable[[], float] | None = None,
    beside: Sequence[BesideAddress] = (),
) -> None:
    """Listen until ``stop``.

    Args:
        upstream: Scheme, host and port of the endpoint behind, or `NO_UPSTREAM`.
        listen: HOST:PORT; port 0 takes a free port.
        ready: Called with the URL of the gateway once it listens.
        stop: Set to stop the gateway; requests in hand get their replies within 3 s.
        tls: Certificate to listen with TLS; None listens in plain HTTP.
        interception: Hosts for which the gateway is a forward proxy too, in plain HTTP.
        times: Time limits of the clients' connections; None for the usual ones.
        answered_within_s: See `Upstream`.
        looks_ahead: False if the gateway may send no request of its own.
        shared: Whether other processes listen at the same address.
        clock: UTC seconds, steady; None for an own clock.
        beside: Further addresses; what has none is reached at ``upstream``.

    Raises:
        SetupError: the address cannot be used, or ``upstream`` is invalid.
    """
    check_upstream(upstream)
    bound, address = _address(listen, shared=shared)
    clock = clock or steady_clock()
    async with contextlib.AsyncExitStack() as stack:
        behind = None
        if upstream != NO_UPSTREAM:
            behind = await stack.enter_async_context(
                Upstream(upstream, answered_within_s=answered_within_s)
            )
        upstreams = {}
        for one in beside:
            check_upstream(one.upstream)
            upstreams[one.server] = await stack.enter_async_context(
                Upstream(one.upstream, answered_within_s=answered_within_s)
            )
        model = Model(
            limits, clock(), stored=behind is not None, looks_ahead=looks_ahead, shared=shared
        )
        proxy = Proxy(
            model,
            behind,
            address,
            clock,
            readers_of(address_of(listen)[0]),
            meter=meter,
            interception=interception,
            beside=upstreams,
        )

        async def open_listener(
            bound: socket.socket, forwards: Interception | None, server: Server | None = None
        ) -> None:
            handle = functools.partial(proxy.handle, server=server)
            streams = functools.partial(proxy.streams, server=server)
            listener = _Listener(handle, streams, bound, times or ClientTimes(), tls, forwards)
            stack.push_async_callback(listener.finish)
            for task in (_keep_closed(listener, limits.faults.closed), listener.check()):
                stack.callback(asyncio.create_task(task).cancel)
            await listener.open()

        scheme = "http" if tls is None else "https"
        await open_listener(bound, interception)
        for one in beside:
            bound, elsewhere = _address(one.listen, shared=shared)
            await open_listener(bound, None, one.server)
            one.ready(f"{scheme}://{elsewhere}")
        ready(f"{scheme}://{address}")
        await stop.wait()


class _Listener:
    """The listener, which can be closed and opened again, and the connections through it."""

    def __init__(
        self,
        handle: Handle,
        streams: Streams,
        bound: socket.socket,
        times: ClientTimes,
        tls: ssl.SSLContext | None,
        interception: Interception | None,
    ) -> None:
        self._handle, self._streams = handle, streams
        self._tls = tls
        self._interception = interception
        self._forwarded: set[ForwardConnection] = set()
        self._times = times
        self._connections: set[ClientConnection] = set()
        self._address = bound.getsockname()[:2]
        self._socket: socket.socket | None = bound
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """Listen, also after `close`."""
        bound = self._socket or _bound(*self._address)
        self._socket = None
        self._server = await asyncio.get_running_loop().create_server(
            self._first_protocol,
            sock=bound,
            ssl=self._tls,
            backlog=_BACKLOG,
        )

    async def close(self) -> None:
        """Stop listening, and close every connection at once."""
        self._stop_listening()
        self._abort()

    async def finish(self) -> None:
        """Stop listening, and close every connection when its request has a reply."""
        self._stop_listening()
        for connection in tuple(self._connections):
            connection.close()
        loop = asyncio.get_running_loop()
        until_s = loop.time() + _FINISHED_WITHIN_S
        while self._connections and loop.time() < until_s:
            await asyncio.sleep(0.01)
        self._abort()

    async def check(self) -> None:
        """End connections whose time limits are over, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_CHECKED_EVERY_S)
            for connection in tuple(self._connections):
                connection.check(loop.time())

    def _abort(self) -> None:
        for connection in tuple(self._connections):
            connection.abort()
        for forwarded in tuple(self._forwarded):
            forwarded.abort()

    def _first_protocol(self) -> asyncio.Protocol:
        if self._interception is not None:
            return ForwardConnection(self._interception, self._connection, self._forwarded)
        return self._connection("http" if self._tls is None else "https")

    def _connection(self, scheme: str) -> ClientConnection:
        opened = self._connections
        return ClientConnection(self._handle, opened, self._times, scheme, self._streams)

    def _stop_listening(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None


async def _keep_closed(listener: _Listener, windows: Sequence[Window]) -> None:
    """Close the listener at the beginning of each window, and open it at the end."""
    began_s = time.monotonic()
    for window in sorted(windows, key=lambda window: window.at_s):
        await asyncio.sleep(max(0.0, began_s + window.at_s - time.monotonic()))
        await listener.close()
        await asyncio.sleep(max(0.0, began_s + window.at_s + window.for_s - time.monotonic()))
        await listener.open()


def _address(listen: str, *, shared: bool) -> tuple[socket.socket, str]:
    """Return a listening socket, and its host and port."""
    host, port = address_of(listen)
    bound = _bound(host, port, shared=shared)
    port = bound.getsockname()[1]
    return bound, f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _bound(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """Return a listening socket. ``shared``: other processes listen at the same address."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        listener.bind((host, port))
        # With SO_REUSEADDR a used port is refused here, not by bind.
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise SetupError(
                f"port {port} of {host} is in use: choose another with --listen"
            ) from error
        raise SetupError(f"{host} port {port} cannot be used: {error.strerror}") from error
    return listener
