"""Connections of clients: requests are read, and replied to in their order.

Reading stops while too many requests of a connection wait. Writing stops while a client does not
read. A client that closes its half of the connection still gets the replies to its requests.
"""

from __future__ import annotations

import asyncio
import collections
import dataclasses
import math
import re
import socket
import struct
from collections.abc import Awaitable, Callable
from typing import cast

import httptools

from harness.gateway.answers import BodyRest, UpstreamBroken
from harness.gateway.headers import Headers
from harness.gateway.large_bodies import HELD_BYTES, ArrivingBody, Signal
from harness.gateway.messages import (
    LAST_CHUNK,
    MAX_BODY_BYTES,
    MAX_HEAD_BYTES,
    Defect,
    Framing,
    Reply,
    ReplyEnd,
    Request,
    framed,
    response_head,
)

# Looked up once: access to a member of an enumeration takes several times as long as a plain name.
_RESET = ReplyEnd.RESET
_HALF = ReplyEnd.HALF
_UNTIL_CLOSE = Framing.UNTIL_CLOSE
_MOST_WAITING = 8
_MAX_DISCARDED_BYTES = 64 * 1024 * 1024
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_RESET_AT_ONCE = struct.pack("ii", 1, 0)
_LINGERING_S = 2.0
_AUTHORITY_END = re.compile(r"[/?#]")

Handle = Callable[[Request], Awaitable[Reply]]
Streams = Callable[[str, str], bool]
"""Whether the body of a request to a target and a host is passed on before it is complete."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClientTimes:
    """Time limits of a client's connection, in seconds.

    Attributes:
        head_s: From the first byte of a request to the end of its head.
        body_s: Between two pieces of a body.
        idle_s: Between two requests.
        reading_s: Until a client reads more of a reply.
    """

    head_s: float = 30.0
    body_s: float = 30.0
    idle_s: float = 75.0
    reading_s: float = 120.0


class ClientConnection(asyncio.Protocol):
    """One connection; it is in the set ``opened`` while it is open."""

    def __init__(
        self,
        handle: Handle,
        opened: set[ClientConnection],
        times: ClientTimes,
        scheme: str,
        streams: Streams = lambda target, host: False,
    ) -> None:
        self._handle = handle
        self._streams = streams
        self._opened = opened
        self._times = times
        self._scheme = scheme
        self._parser = httptools.HttpRequestParser(self)
        self._waiting: collections.deque[Request] = collections.deque()
        self._arrived = Signal()
        self._writable = Signal()
        self._reading = True
        self._reading_paused = self._continue_due = self._unread = False
        self._handling = self._closing = self._upgrading = False
        self._in_message = self._in_head = False
        self._head_bytes = 0
        self._headers: Headers | None = None
        self._rest: ArrivingBody | None = None
        self._new_message()
        self.gone = self.ended_input = False

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # The transports of uvloop are of no class of asyncio.
        self._transport = cast(asyncio.Transport, transport)
        self._loop = asyncio.get_running_loop()
        self._deadline_s = self._loop.time() + self._times.head_s
        self._opened.add(self)
        self._task = self._loop.create_task(self._reply_to_all())

    def data_received(self, data: bytes) -> None:
        if not self._reading:
            return
        in_head = self._in_head
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as error:
            self._go_on_without_upgrade(data[error.args[0] :])
        except httptools.HttpParserInvalidMethodError:
            self._refuse_rest(Defect.UNKNOWN_METHOD)
        except httptools.HttpParserError:
            self._refuse_rest(Defect.MALFORMED)
        if in_head and self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self._refuse_rest(Defect.HEAD_TOO_LARGE)

    def eof_received(self) -> bool:
        self.ended_input = True
        self._end_of_input()
        # TLS has no half-closed connections.
        return self._scheme == "http"

    def connection_lost(self, error: Exception | None) -> None:
        self.gone = True
        self._opened.discard(self)
        self._end_of_input()
        self.resume_writing()

    def pause_writing(self) -> None:
        self._writable.expect()

    def resume_writing(self) -> None:
        self._writable.set()

    # What the parser calls.

    def on_message_begin(self) -> None:
        if not self._reading:
            return
        self._new_message()
        self._in_message = self._in_head = True
        self._head_bytes = 0
        self._deadline_s = self._loop.time() + self._times.head_s

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields.append((name, value))

    def on_headers_complete(self) -> None:
        self._in_head = False
        headers = Headers(self._fields)
        self._headers = headers
        self._keep_alive = self._parser.should_keep_alive()
        self._upgrading = self._offers_upgrade()
        if self._upgrading:
            return
        if b"expect" in headers.by_name and headers["Expect"].lower() == "100-continue":
            large = int(headers.get("Content-Length", "0")) > MAX_BODY_BYTES
            if large and not self._streamed():
                self._refuse_rest(Defect.BODY_TOO_LARGE)
            elif self._waiting or self._handling:
                self._continue_due = True
            else:
                self._transport.write(_CONTINUE)

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        self._deadline_s = self._loop.time() + self._times.body_s
        if self._rest is not None:
            self._rest.add(body)
            if self._rest.full and not self._reading_paused:
                self._reading_paused = True
                self._transport.pause_reading()
        elif self._body_bytes > HELD_BYTES and self._streamed():
            self._body.append(body)
            self._rest = ArrivingBody(self._resume_body)
            self._take(None)
            self._in_message = True
        elif self._body_bytes <= MAX_BODY_BYTES:
            self._body.append(body)
        elif self._body_bytes > _MAX_DISCARDED_BYTES:
            self._refuse_rest(Defect.BODY_TOO_LARGE)

    def on_message_complete(self) -> None:
        if not self._reading or self._upgrading:
            return
        if self._rest is not None:
            self._rest.end()
            self._rest, self._in_message, self._deadline_s = None, False, math.inf
            return
        headers = self._headers
        chunked = headers is not None and b"transfer-encoding" in headers.by_name
        if chunked and self._streamed():
            # A service may refuse chunks.
            self._rest = ArrivingBody(self._resume_body)
            self._rest.end()
        self._take(Defect.BODY_TOO_LARGE if self._body_bytes > MAX_BODY_BYTES else None)
        self._rest = None

    # What the server calls.

    def check(self, now_s: float) -> None:
        """End the connection if a time limit is over. Called every second or so."""
        if now_s < self._deadline_s:
            return
        if self._in_message and self._reading and not self._reading_paused:
            self._refuse_rest(Defect.TOO_SLOW)
        elif not self._handling or self._writable.expected:
            self._transport.abort()

    def close(self) -> None:
        """Close the connection once the request in hand has its reply."""
        self._closing = True
        self._reading = False
        if not self._handling and not self._waiting:
            self._transport.close()
        self._arrived.set()

    def abort(self) -> None:
        self._transport.abort()

    # Reading.

    def _new_message(self) -> None:
        self._url = b""
        self._fields: list[tuple[bytes, bytes]] = []
        self._headers = None
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._rest = None
        self._streaming: bool | None = None
        self._keep_alive = False

    def _streamed(self) -> bool:
        """Whether the body of the request that is read is passed on as it comes."""
        if self._streaming is None:
            headers = self._headers or Headers(self._fields)
            target = _target_and_host(self._url.decode("latin-1"), headers)
            self._streaming = self._streams(*target)
        return self._streaming

    def _resume_body(self) -> None:
        """Read on after a body that was passed on too slowly."""
        if self._reading_paused and len(self._waiting) < _MOST_WAITING and not self.gone:
            self._resume_reading()

    def _take(self, defect: Defect | None) -> None:
        """Queue the request that was read, complete or not."""
        self._in_message = self._in_head = False
        headers, method = self._headers, ""
        if headers is None:
            headers = Headers(self._fields)
        else:
            method = self._parser.get_method().decode()
        target, host = _target_and_host(self._url.decode("latin-1"), headers)
        body = self._body
        self._waiting.append(
            # By position, which takes a quarter of the time.
            Request(
                method,
                target,
                host,
                self._scheme,
                headers,
                (body[0] if len(body) == 1 else b"".join(body)) if defect is None else b"",
                self._keep_alive and self._reading,
                self._parser.get_http_version(),
                self,
                defect,
                self._rest,
            )
        )
        self._deadline_s = math.inf
        if len(self._waiting) >= _MOST_WAITING and not self._reading_paused:
            self._reading_paused = True
            self._transport.pause_reading()
        self._arrived.set()

    def _refuse_rest(self, defect: Defect) -> None:
        """Reply with an error, and read nothing more."""
        if self._reading:
            self._reading = False
            self._unread = True
            self._keep_alive = False
            if self._rest is None:
                self._take(defect)
            else:
                self._rest.end(broken=True)

    def _end_of_input(self) -> None:
        if self._reading:
            self._reading = False
            if self._rest is not None:
                self._rest.end(broken=True)
            elif self._in_message:
                self._take(Defect.BROKEN_OFF)
        self._arrived.set()

    def _go_on_without_upgrade(self, rest: bytes) -> None:
        """Read on as if the client had not asked for another protocol."""
        method = self._parser.get_method()
        if method == b"CONNECT":
            self._reading = False
            self._unread = True
            return
        # The parser leaves out the body of a request that offers an upgrade.
        lines = [b"%b %b HTTP/%b" % (method, self._url, self._parser.get_http_version().encode())]
        lines += [b"%b: %b" % field for field in self._fields if field[0].lower() != b"upgrade"]
        self._parser = httptools.HttpRequestParser(self)
        self.data_received(b"\r\n".join([*lines, b"", rest]))

    def _offers_upgrade(self) -> bool:
        return self._parser.should_upgrade() and self._parser.get_method() != b"CONNECT"

    def _resume_reading(self) -> None:
        self._reading_paused = False
        if self._in_message:
            self._deadline_s = self._loop.time() + self._times.body_s
        self._transport.resume_reading()

    # Replying.

    async def _reply_to_all(self) -> None:
        """Reply to the requests in their order until the connection ends."""
        try:
            while await self._request_waits():
                request = self._waiting.popleft()
                self._handling = True
                if self._reading_paused and len(self._waiting) < _MOST_WAITING and not self.gone:
                    self._resume_reading()
                reply = await self._handle(request)
                await self._send(request, reply)
                self._handling = False
                if not request.keep_alive or self._closing:
                    break
        finally:
            self._finish()

    async def _request_waits(self) -> bool:
        if self._waiting:
            return True
        if not self._reading:
            return False
        if self._continue_due:
            self._continue_due = False
            self._transport.write(_CONTINUE)
        if not self._in_message:
            self._deadline_s = self._loop.time() + self._times.idle_s
        await self._arrived.expect()
        return bool(self._waiting)

    async def _send(self, request: Request, reply: Reply) -> None:
        (answer, ending), body = reply, request.rest
        if body is not None and not body.complete:
            # The answer came first.
            self._reading = request.keep_alive = False
            self._unread = True
            body.close()
        if self.gone:
            if answer is not None and answer.rest is not None:
                answer.rest.close()
            return
        if ending is _RESET or answer is None:
            request.keep_alive = False
            self._reset()
            return
        request.keep_alive = request.keep_alive and not self._closing
        head, framing = response_head(request, answer)
        if ending is _HALF:
            request.keep_alive = False
            whole = head + answer.body
            self._transport.write(whole[: len(whole) // 2])
            return
        self._transport.write(head + framed(framing, answer.body))
        if self._writable.expected:
            await self._until_writable()
        if answer.rest is not None:
            await self._send_rest(answer.rest, framing)
        if framing is _UNTIL_CLOSE:
            request.keep_alive = False

    async def _send_rest(self, rest: BodyRest, framing: Framing) -> None:
        """Send the pieces of a large body as they come and as the client reads."""
        try:
            while not self.gone and (piece := await rest.next_piece()):
                self._transport.write(framed(framing, piece))
                if self._writable.expected:
                    await self._until_writable()
        except UpstreamBroken:
            # The client may not take what it has for the whole body.
            self._reset()
            return
        if self.gone:
            rest.close()
        elif framing is Framing.CHUNKED:
            self._transport.write(LAST_CHUNK)

    async def _until_writable(self) -> None:
        self._deadline_s = self._loop.time() + self._times.reading_s
        await self._writable.wait()
        self._deadline_s = math.inf

    def _reset(self) -> None:
        """Reset the connection, so that the client gets an error in place of an end."""
        if not self.gone:
            connection = self._transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_ONCE)
            self._transport.abort()

    def _finish(self) -> None:
        """Close the connection; a client that still sends is read, or it would lose the reply."""
        if not self._unread or self.gone or not self._transport.can_write_eof():
            self._transport.close()
            return
        self._transport.write_eof()
        self._deadline_s = self._loop.time() + _LINGERING_S


def _target_and_host(target: str, headers: Headers) -> tuple[str, str]:
    """Split a target in absolute form (RFC 9112, 3.2.2), whose authority replaces Host."""
    if target.startswith("/"):
        return target, headers.get("Host", "")
    scheme, separator, rest = target.partition("://")
    if separator and scheme.lower() in ("http", "https"):
        authority = _AUTHORITY_END.split(rest, maxsplit=1)[0]
        path = rest[len(authority) :]
        return path if path.startswith("/") else f"/{path}", authority.rpartition("@")[2]
    return target, headers.get("Host", "")
