"""The gateway as a forward proxy: table endpoints lead to it, other hosts are passed through.

    CONNECT acme.table.core.windows.net:443    TLS by a certificate of the gateway, then requests
    CONNECT other.example:443                  a tunnel, whose bytes nobody reads
    GET http://other.example/                  a tunnel for one request
    GET /orders()                              a request to the gateway itself

Only the first head of a connection is read here. A tunnel uses the proxy that the environment of
this process names (HTTPS_PROXY, HTTP_PROXY, NO_PROXY), as the client would without the gateway.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import dataclasses
import email.utils
import re
import ssl
import urllib.request
from collections.abc import Awaitable, Callable
from typing import cast
from urllib.parse import SplitResult, unquote, urlsplit

from harness.gateway.answers import GatewayAnswer
from harness.gateway.client import ClientConnection
from harness.gateway.dialect import Dialect
from harness.gateway.headers import Headers
from harness.gateway.messages import MAX_HEAD_BYTES, RequestRest
from harness.gateway.upstream import Upstream
from harness.model.hosts import is_loopback

_HEAD_WITHIN_S = 30.0
_CONNECTED_WITHIN_S = 10.0
_LONGEST_LINE = 16 * 1024
_PIECE_BYTES = 64 * 1024
_HEAD_END = b"\r\n\r\n"
_TO_PROXY = re.compile(
    rb"(?:(?P<connect>CONNECT) (?P<tunnel>[^ /]+)"
    rb"|[A-Z]+ (?i:http)://(?P<host>[^ /?#]+)(?P<path>[^ ]*))"
    rb" (?P<version>HTTP/1\.[01])\r?\n"
)
_ONE_HOP = re.compile(
    rb"^(?:Connection|Proxy-(?:Connection|Authorization)):[^\n]*\n", re.IGNORECASE | re.MULTILINE
)
"""Fields that a client means for the proxy; a login is none of the host's business."""
_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
_MALFORMED = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_UNREACHABLE = (
    b"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n"
    b"Connection: close\r\n\r\n%b"
)
_SIGNED = frozenset((b"authorization", b"date", b"x-ms-date"))
"""Fields that a new signature replaces."""
_SOURCE = "x-ms-copy-source"
Sign = Callable[[str], str]
SignedText = Callable[[str, str, str, Headers, int | None], str]
"""Returns the text for method, account, target, header fields and length of the body."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Interception:
    """Which hosts lead to the gateway.

    Attributes:
        covers: Whether a host, without its port, leads to the gateway.
        tls: The certificate for these hosts.
        account: The account of the endpoint behind that gets the requests, in its path; empty
            passes them on as they are signed.
        sign: Returns ``Authorization`` for the text that a service has signed.
    """

    covers: Callable[[str], bool]
    tls: ssl.SSLContext
    account: str = ""
    sign: Sign | None = None

    def endpoint(
        self, upstream: Upstream, host: str, dialect: Dialect
    ) -> Upstream | AccountUpstream:
        """The endpoint for the requests to ``host``, the value of Host, in a dialect."""
        if self.sign is None or not self.covers(_split(host, 443)[0]):
            return upstream
        return AccountUpstream(upstream, self.account, self.sign, dialect.signed, self.covers)


class AccountUpstream:
    """The endpoint behind, for requests to any account: one account of the endpoint gets them.

    An emulator has neither the application's account nor its key, and finds the account in the
    path. The requests are signed anew.
    """

    def __init__(
        self,
        upstream: Upstream,
        account: str,
        sign: Sign,
        text_of: SignedText,
        covers: Callable[[str], bool],
    ) -> None:
        self.url, self.scheme, self.host = upstream.url, upstream.scheme, upstream.host
        self.path = f"/{account}"
        self._account = account
        self._ask = upstream.ask
        self._sign, self._text_of = sign, text_of
        self._covers = covers

    def ask(
        self,
        method: str,
        target: str,
        headers: Headers,
        body: bytes,
        host: str = "",
        rest: RequestRest | None = None,
    ) -> Awaitable[GatewayAnswer]:
        target = self.path + target
        fields = [field for field in headers.fields if field[0].lower() not in _SIGNED]
        if (source := urlsplit(headers.get(_SOURCE, ""))).netloc and self._covers(source.netloc):
            # What is copied is behind the gateway too.
            led = f"{self.scheme}://{self.host}{self.path}{source.path}"
            led += f"?{source.query}" if source.query else ""
            fields = [field for field in fields if field[0].lower() != _SOURCE.encode()]
            fields.append((_SOURCE.encode(), led.encode("latin-1")))
        fields.append((b"x-ms-date", email.utils.formatdate(usegmt=True).encode()))
        length = len(body) if rest is None else headers.get("Content-Length")
        text = self._text_of(method, self._account, target, Headers(fields), length and int(length))
        fields.append((b"Authorization", self._sign(text).encode()))
        return self._ask(method, target, Headers(fields), body, host, rest)


class ForwardConnection(asyncio.Protocol):
    """A connection of a client until its first head says where it leads.

    ``client`` makes the connection that takes over, with its scheme. The connection is in the set
    ``opened`` while it is here or in a tunnel, of which the event loop holds no task.
    """

    def __init__(
        self,
        interception: Interception,
        client: Callable[[str], ClientConnection],
        opened: set[ForwardConnection],
    ) -> None:
        self._interception = interception
        self._client = client
        self._opened = opened
        self._received = b""
        self._task: asyncio.Task[None] | None = None
        self._far: asyncio.StreamWriter | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # The transports of uvloop are of no class of asyncio.
        self._transport = cast(asyncio.Transport, transport)
        self._opened.add(self)
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(_HEAD_WITHIN_S, self._transport.abort)

    def connection_lost(self, error: Exception | None) -> None:
        self._timer.cancel()
        self._opened.discard(self)

    def abort(self) -> None:
        """Close the connection, or both ends of its tunnel."""
        self._transport.abort()
        if self._far is not None:
            self._far.transport.abort()

    def data_received(self, data: bytes) -> None:
        self._received = received = self._received + data
        if self._task is not None:
            return
        if received[:1].isalpha() and b"\n" not in received and len(received) < _LONGEST_LINE:
            return
        found = _TO_PROXY.match(received)
        if found is None:
            self._hand_over("http")
        elif _HEAD_END in received:
            self._forward(found)
        elif len(received) > MAX_HEAD_BYTES:
            self._transport.abort()

    def _hand_over(self, scheme: str) -> None:
        """Let the gateway go on with this connection, with what was received."""
        self._timer.cancel()
        self._opened.discard(self)
        if self._transport.is_closing():
            return
        connection = self._client(scheme)
        self._transport.set_protocol(connection)
        connection.connection_made(self._transport)
        if self._received:
            connection.data_received(self._received)

    def _forward(self, found: re.Match[bytes]) -> None:
        connects = found["connect"] is not None
        authority = (found["tunnel"] if connects else found["host"]).decode("latin-1")
        host, port = _split(authority.rpartition("@")[2], 443 if connects else 80)
        own = self._transport.get_extra_info("sockname")
        itself = port == own[1] and (is_loopback(host) or host == own[0])
        covered = self._interception.covers(host)
        if not host and connects:
            self._transport.write(_MALFORMED)
            self._transport.close()
        elif not host or (not connects and (covered or itself)):
            self._hand_over("http")
        elif covered:
            self._task = asyncio.create_task(self._intercept())
        else:
            self._timer.cancel()
            # At once: what the client still sends, and its end, belong to the tunnel.
            reader = asyncio.StreamReader()
            protocol = asyncio.StreamReaderProtocol(reader)
            self._transport.set_protocol(protocol)
            protocol.connection_made(self._transport)
            writer = asyncio.StreamWriter(self._transport, protocol, reader, self._loop)
            end = self._received.index(_HEAD_END) + len(_HEAD_END)
            protocol.data_received(self._received[end:])
            self._received = self._received[:end]
            self._task = asyncio.create_task(self._tunnel(found, host, port, reader, writer))

    async def _intercept(self) -> None:
        self._received = b""
        self._transport.write(_ESTABLISHED)
        with contextlib.suppress(OSError):
            tls = await self._loop.start_tls(
                self._transport, self, self._interception.tls, server_side=True
            )
            if tls is not None:
                self._transport = tls
                self._hand_over("https")

    async def _tunnel(
        self,
        found: re.Match[bytes],
        host: str,
        port: int,
        reader: asyncio.StreamReader,
        near: asyncio.StreamWriter,
    ) -> None:
        connects = found["connect"] is not None
        proxy = _proxy_of("https" if connects else "http", host)
        try:
            async with asyncio.timeout(_CONNECTED_WITHIN_S):
                far_reader, far = await asyncio.open_connection(
                    host if proxy is None else proxy.hostname,
                    port if proxy is None else proxy.port or 80,
                    ssl=True if proxy is not None and proxy.scheme == "https" else None,
                )
        except (OSError, ValueError) as error:
            text = f"harness watch --proxy cannot reach {host}: {error}\n".encode()
            near.write(_UNREACHABLE % (len(text), text))
            near.close()
            self._opened.discard(self)
            return
        self._far = far
        head = self._received if connects else _alone(self._received, found, proxy)
        if proxy is not None:
            far.write(_with_login(head, found.end(), proxy))
        elif connects:
            near.write(_ESTABLISHED)
        else:
            far.write(head)
        try:
            await asyncio.gather(_copy(reader, far), _copy(far_reader, near))
        except OSError:
            self._transport.abort()
        finally:
            self._opened.discard(self)
            far.close()
            near.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Write what is read until it ends; the connection that is written to is half closed then."""
    while data := await reader.read(_PIECE_BYTES):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


def _split(authority: str, usual: int) -> tuple[str, int]:
    """Host and port of an authority; ``usual`` is the port without one."""
    with contextlib.suppress(ValueError):
        parts = urlsplit(f"//{authority}")
        return (parts.hostname or "").rstrip("."), usual if parts.port is None else parts.port
    return "", usual


def _proxy_of(scheme: str, host: str) -> SplitResult | None:
    """The proxy that the environment names for a host; None without one."""
    url = urllib.request.getproxies().get(scheme, "")
    if not url or urllib.request.proxy_bypass(host):
        return None
    return urlsplit(url if "://" in url else f"http://{url}")


def _with_login(head: bytes, line: int, proxy: SplitResult) -> bytes:
    """A head for another proxy, with the login of its URL after the first ``line`` bytes."""
    if proxy.username is None:
        return head
    login = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}".encode()
    field = b"Proxy-Authorization: Basic " + base64.b64encode(login) + b"\r\n"
    return head[:line] + field + head[line:]


def _alone(head: bytes, found: re.Match[bytes], proxy: SplitResult | None) -> bytes:
    """A head to a proxy as its host, or the next proxy, expects it.

    Its request is the only one of the connection: the next could be to a table endpoint.
    """
    line = head[: found.end()]
    if proxy is None:
        method = head.partition(b" ")[0]
        path = found["path"] if found["path"].startswith(b"/") else b"/" + found["path"]
        line = b"%b %b %b\r\n" % (method, path, found["version"])
    fields = _ONE_HOP.sub(b"", head[found.end() : -len(b"\r\n")])
    return b"%b%bConnection: close\r\n\r\n" % (line, fields)
