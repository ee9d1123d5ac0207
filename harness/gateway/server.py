"""Runs the gateway in this process: it listens, follows its closed windows, and stops."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import time
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from harness.gateway.client import ClientConnection, ClientTimes
from harness.gateway.limits import GatewayLimits, Window
from harness.gateway.model import Model
from harness.gateway.proxy import Proxy
from harness.gateway.upstream import ANSWERED_WITHIN_S, Upstream
from harness.model.errors import SetupError, echoed
from harness.model.hosts import is_loopback, readers_of

NO_UPSTREAM = "none"
_BACKLOG = 1024
_CHECKED_EVERY_S = 0.5
_FINISHED_WITHIN_S = 3.0


def check_upstream(upstream: str) -> None:
    """Check the URL of the endpoint behind the gateway.

    Raises:
        SetupError: the URL is invalid; the message does not repeat it, as it may hold a secret.
    """
    if upstream == NO_UPSTREAM:
        return
    with contextlib.suppress(ValueError):
        parts = urlsplit(upstream)
        extra = parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and not extra:
            return
    raise SetupError(
        "--upstream is a scheme, a host and a port, such as http://127.0.0.1:10002, or none; the "
        "account is in the path of the client's requests"
    )


def on_this_machine(upstream: str) -> bool:
    """Return whether the endpoint behind the gateway is on this machine."""
    if upstream == NO_UPSTREAM:
        return True
    return is_loopback(urlsplit(upstream).hostname or "")


def address_of(listen: str) -> tuple[str, int]:
    """Split HOST:PORT.

    Raises:
        SetupError: the text does not have that form.
    """
    host, colon, port = listen.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdecimal() or len(port) > 5 or int(port) > 65535:
        raise SetupError(f"--listen {echoed(listen)} is not of the form 127.0.0.1:10102")
    return host, int(port)


async def serve(
    *,
    upstream: str,
    listen: str,
    limits: GatewayLimits,
    ready: Callable[[str], None],
    stop: asyncio.Event,
    times: ClientTimes | None = None,
    answered_within_s: float = ANSWERED_WITHIN_S,
) -> None:
    """Listen until ``stop``.

    Args:
        upstream: Scheme, host and port of the endpoint behind, or `NO_UPSTREAM`.
        listen: HOST:PORT; port 0 takes a free port.
        limits: The limits.
        ready: Called with the URL of the gateway once it listens.
        stop: Set to stop the gateway; requests in hand get their replies within 3 s.
        times: Time limits of the clients' connections; None for the usual ones.
        answered_within_s: Time limit for an answer of the endpoint.

    Raises:
        SetupError: the address cannot be used, or ``upstream`` is invalid.
    """
    check_upstream(upstream)
    host, port = address_of(listen)
    listener = _bound(host, port)
    port = listener.getsockname()[1]
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    offset_s = time.time() - time.monotonic()

    def clock() -> float:
        return offset_s + time.monotonic()

    async with contextlib.AsyncExitStack() as stack:
        behind = None
        if upstream != NO_UPSTREAM:
            behind = await stack.enter_async_context(
                Upstream(upstream, answered_within_s=answered_within_s)
            )
        model = Model(limits, clock(), stored=behind is not None)
        proxy = Proxy(model, behind, address, clock, readers=readers_of(host))
        door = _Door(proxy, listener, times or ClientTimes())
        stack.push_async_callback(door.finish)
        for task in (_keep_closed(door, limits.faults.closed), door.check()):
            stack.callback(asyncio.create_task(task).cancel)
        await door.open()
        ready(f"http://{address}")
        await stop.wait()


class _Door:
    """The listener, which can be closed and opened again, and the connections through it."""

    def __init__(self, proxy: Proxy, listener: socket.socket, times: ClientTimes) -> None:
        self._proxy = proxy
        self._times = times
        self._connections: set[ClientConnection] = set()
        self._address = listener.getsockname()[:2]
        self._listener: socket.socket | None = listener
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """Listen, also after `close`."""
        listener = self._listener or _bound(*self._address)
        self._listener = None
        self._server = await asyncio.get_running_loop().create_server(
            lambda: ClientConnection(self._proxy.handle, self._connections, self._times, "http"),
            sock=listener,
            backlog=_BACKLOG,
        )

    async def close(self) -> None:
        """Stop listening, and close every connection at once."""
        self._stop_listening()
        for connection in tuple(self._connections):
            connection.abort()

    async def finish(self) -> None:
        """Stop listening, and close every connection when its request has a reply."""
        self._stop_listening()
        for connection in tuple(self._connections):
            connection.close()
        loop = asyncio.get_running_loop()
        until_s = loop.time() + _FINISHED_WITHIN_S
        while self._connections and loop.time() < until_s:
            await asyncio.sleep(0.01)
        for connection in tuple(self._connections):
            connection.abort()

    async def check(self) -> None:
        """End connections whose time limits are over, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_CHECKED_EVERY_S)
            for connection in tuple(self._connections):
                connection.check(loop.time())

    def _stop_listening(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None


async def _keep_closed(door: _Door, windows: Sequence[Window]) -> None:
    """Close the listener at the beginning of each window, and open it at the end."""
    began_s = time.monotonic()
    for window in sorted(windows, key=lambda window: window.at_s):
        await asyncio.sleep(max(0.0, began_s + window.at_s - time.monotonic()))
        await door.close()
        await asyncio.sleep(max(0.0, began_s + window.at_s + window.for_s - time.monotonic()))
        await door.open()


def _bound(host: str, port: int) -> socket.socket:
    """Return a listening socket."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
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
