"""Runs the gateway in this process: listens, opens and closes when told, ends when told."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import socket
import time
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from aiohttp import web

from harness.gateway.limits import Limits, Window
from harness.gateway.model import Model
from harness.gateway.proxy import Proxy
from harness.gateway.upstream import MAX_HEADER_BYTES, Upstream
from harness.model.errors import SetupError

NO_UPSTREAM = "none"
_KEEP_ALIVE_S = 75.0
_BACKLOG = 1024


def check_upstream(upstream: str) -> None:
    """Whether there can be an endpoint at ``upstream``.

    Raises:
        SetupError: there cannot; the sentence repeats nothing, which may hold a secret.
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
        "account stays in the client's path"
    )


def on_this_machine(upstream: str) -> bool:
    """True where nothing that is passed on can leave the machine."""
    if upstream == NO_UPSTREAM:
        return True
    name = urlsplit(upstream).hostname or ""
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def address_of(listen: str) -> tuple[str, int]:
    """Host and port of HOST:PORT.

    Raises:
        SetupError: it is not of that form.
    """
    host, colon, port = listen.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise SetupError(f"--listen {listen!r} is not of the form 127.0.0.1:10102")
    return host, int(port)


async def serve(
    *,
    upstream: str,
    listen: str,
    limits: Limits,
    ready: Callable[[str], None],
    stop: asyncio.Event,
) -> None:
    """Listen until ``stop``.

    Args:
        upstream: Scheme, host and port of the endpoint behind, or `NO_UPSTREAM`.
        listen: HOST:PORT; port 0 takes a free one.
        limits: What holds.
        ready: Called with the gateway's own URL, once it listens.
        stop: Set when it shall end.

    Raises:
        SetupError: it cannot listen there, or the upstream is none.
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
            behind = await stack.enter_async_context(Upstream(upstream))
        proxy = Proxy(Model(limits, clock()), behind, address, clock)
        door = _Door(proxy, listener)
        stack.push_async_callback(door.close)
        windows = asyncio.create_task(_keep_closed(door, limits.faults.closed))
        stack.callback(windows.cancel)
        await door.open()
        ready(f"http://{address}")
        await stop.wait()


class _Door:
    """Lets connections in, or not."""

    def __init__(self, proxy: Proxy, listener: socket.socket) -> None:
        self._handlers = web.Server(
            proxy.handle,
            access_log=None,
            keepalive_timeout=_KEEP_ALIVE_S,
            max_line_size=MAX_HEADER_BYTES,
            max_field_size=MAX_HEADER_BYTES,
        )
        self._address = listener.getsockname()[:2]
        self._listener: socket.socket | None = listener
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """Listen; again where it was closed."""
        listener = self._listener or _bound(*self._address)
        self._listener = None
        self._server = await asyncio.get_running_loop().create_server(
            self._handlers, sock=listener, backlog=_BACKLOG
        )

    async def close(self) -> None:
        """Let nobody in any more, and end every connection."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for connection in self._handlers.connections:
            connection.force_close()


async def _keep_closed(door: _Door, windows: Sequence[Window]) -> None:
    """Close the door at each window's beginning, and open it at its end."""
    began_s = time.monotonic()
    for window in sorted(windows, key=lambda window: window.at_s):
        await asyncio.sleep(max(0.0, began_s + window.at_s - time.monotonic()))
        await door.close()
        await asyncio.sleep(max(0.0, began_s + window.at_s + window.for_s - time.monotonic()))
        await door.open()


def _bound(host: str, port: int) -> socket.socket:
    """A socket that has the address, and does not listen yet."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        # A port that is in use is refused here, not by bind.
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise SetupError(
                f"port {port} of {host} is in use: choose another with --listen"
            ) from error
        raise SetupError(f"{host} port {port} cannot be listened at: {error.strerror}") from error
    return listener
