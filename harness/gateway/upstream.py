"""The endpoint behind the gateway: each request is sent to it once.

Small answers are read completely before they are passed on; large answers are passed on piece by
piece. Connections are kept open. A request whose connection broke is never repeated, because the
endpoint may have executed it.
"""

from __future__ import annotations

import asyncio
import collections
import math
import ssl
from collections.abc import Awaitable
from types import TracebackType
from typing import Self, cast
from urllib.parse import urlsplit

import httptools

from harness.gateway.answers import ClientBroke, GatewayAnswer, UpstreamBroken
from harness.gateway.headers import Headers
from harness.gateway.large_bodies import Signal
from harness.gateway.messages import LAST_CHUNK, Framing, RequestRest, framed, request_head

_CONNECTED_WITHIN_S = 10.0
ANSWERED_WITHIN_S = 120.0
# Azurite closes connections that were idle for 5 s; the setting has no effect.
_IDLE_S = 2.0
_CHECKED_EVERY_S = 0.5
MAX_HELD_BYTES = 8 * 1024 * 1024
"""An answer up to this size is passed on complete or not at all. A page of Azure has 4 MiB."""
_MOST_PIECES_BYTES = 512 * 1024


class UpstreamMissing(Exception):
    """No connection could be opened; nothing was sent."""


class Upstream:
    """Connections to one endpoint.

    Args:
        answered_within_s: Time limit for an answer, and for each further piece of a large one.
    """

    def __init__(self, url: str, *, answered_within_s: float = ANSWERED_WITHIN_S) -> None:
        self.url = url.rstrip("/")
        parts = urlsplit(self.url)
        self.scheme = parts.scheme
        self.host = parts.netloc
        self.path = ""
        self.name = parts.hostname or ""
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._answered_within_s = answered_within_s
        self.idle: list[UpstreamConnection] = []
        """Connections that are kept for the next request."""
        self._open: set[UpstreamConnection] = set()

    async def __aenter__(self) -> Self:
        self._checks = asyncio.create_task(self._check())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._checks.cancel()
        for connection in tuple(self._open):
            connection.close()

    async def ask(
        self,
        method: str,
        target: str,
        headers: Headers,
        body: bytes,
        host: str = "",
        rest: RequestRest | None = None,
    ) -> GatewayAnswer:
        """Pass a request on, and return its response; an empty ``host`` is the endpoint's own.

        ``rest`` is what follows ``body``; an answer that comes before its end is returned at once.

        Raises:
            UpstreamMissing: the request was not sent.
            UpstreamBroken: there was no complete response, or no complete request.
        """
        host, names, no_body = host or self.host, headers.by_name, method == "HEAD"
        if rest is None:
            declared = body or b"content-length" in names or b"transfer-encoding" in names
            head = request_head(method, target, host, headers, len(body) if declared else None)
            connection = self._kept() or await self._connected()
            return await connection.ask(head + body, no_body=no_body)
        length = int(headers["Content-Length"]) if b"content-length" in names else None
        chunked = length is None
        head = request_head(method, target, host, headers, length, chunked=chunked)
        connection = self._kept() or await self._connected()
        framing = Framing.CHUNKED if chunked else Framing.LENGTH
        answer = connection.ask(head + framed(framing, body), no_body=no_body)
        await connection.send_rest(rest, framing)
        return await answer

    def _kept(self) -> UpstreamConnection | None:
        while self.idle:
            # The latest one, so that unneeded connections get old.
            connection = self.idle.pop()
            if connection.fresh:
                return connection
            connection.close()
        return None

    async def _connected(self) -> UpstreamConnection:
        try:
            async with asyncio.timeout(_CONNECTED_WITHIN_S):
                _, connection = await asyncio.get_running_loop().create_connection(
                    lambda: UpstreamConnection(self, self._open, self._answered_within_s),
                    self.name,
                    self._port,
                    ssl=self._tls,
                )
        except TimeoutError as error:
            raise UpstreamMissing("no connection in time") from error
        except OSError as error:
            raise UpstreamMissing(error.strerror or str(error)) from error
        return connection

    async def _check(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_CHECKED_EVERY_S)
            now_s = loop.time()
            for connection in tuple(self._open):
                connection.check(now_s)
            while self.idle and now_s - self.idle[0].idle_since_s >= _IDLE_S:
                self.idle.pop(0).close()


class UpstreamConnection(asyncio.Protocol):
    """One connection, with one request at a time.

    Between requests it waits in ``pool``; it is in the set ``opened`` while it is open.
    """

    def __init__(
        self, pool: Upstream, opened: set[UpstreamConnection], answered_within_s: float
    ) -> None:
        self._pool = pool
        self._opened = opened
        self._answered_within_s = answered_within_s
        self._answer: asyncio.Future[GatewayAnswer] | None = None
        self._rest: collections.deque[bytes] | None = None
        self._rest_bytes = 0
        self._rest_arrived, self._writable = Signal(), Signal()
        self._broken: UpstreamBroken | None = None
        self._complete = self.usable = True
        self._paused = self._ends_with_connection = False
        self._deadline_s = math.inf
        self.idle_since_s = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # The transports of uvloop are of no class of asyncio.
        self._transport = cast(asyncio.Transport, transport)
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._opened.add(self)

    @property
    def fresh(self) -> bool:
        """True if the endpoint keeps the connection open for another request."""
        return self.usable and self._loop.time() - self.idle_since_s < _IDLE_S

    def ask(self, request: bytes, *, no_body: bool) -> Awaitable[GatewayAnswer]:
        """Send a request, and return its response when it has come, or raise `UpstreamBroken`.

        With ``no_body`` the response has none, whatever its head says.
        """
        self._no_body = no_body
        self._complete = False
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._rest = None
        self._ends_with_connection = False
        answer = self._answer = self._loop.create_future()
        self._deadline_s = self._loop.time() + self._answered_within_s
        self._transport.write(request)
        return answer

    async def send_rest(self, rest: RequestRest, framing: Framing) -> None:
        """Send the pieces of a large body as they come, until the end or until an answer comes.

        Raises:
            ClientBroke: the client broke off.
        """
        answer = self._answer
        assert answer is not None

        def stop(_: asyncio.Future[GatewayAnswer]) -> None:
            rest.close()
            # An endpoint that has answered may read no more.
            self.resume_writing()

        answer.add_done_callback(stop)
        # Before the end of the body nothing tells where the next request begins.
        usable, self.usable = self.usable, False
        try:
            # The client may take its time.
            self._deadline_s = math.inf
            while (piece := await rest.next_piece()) and not answer.done():
                self._deadline_s = self._loop.time() + self._answered_within_s
                self._transport.write(framed(framing, piece))
                await self._writable.wait()
                self._deadline_s = math.inf
        except ClientBroke:
            self._complete = True
            self.close()
            raise
        if not answer.done():
            if framing is Framing.CHUNKED:
                self._transport.write(LAST_CHUNK)
            self.usable = usable
            self._deadline_s = self._loop.time() + self._answered_within_s

    async def next_piece(self) -> bytes:
        assert self._rest is not None
        while not self._rest:
            if self._broken is not None:
                raise self._broken
            if self._complete:
                self._release()
                return b""
            await self._rest_arrived.expect()
        piece = self._rest.popleft()
        self._rest_bytes -= len(piece)
        if self._paused and self._rest_bytes <= _MOST_PIECES_BYTES // 2 and not self._complete:
            self._paused = False
            self._deadline_s = self._loop.time() + self._answered_within_s
            self._transport.resume_reading()
        return piece

    def close(self) -> None:
        """Close the connection at once; the rest of an unfinished answer is discarded."""
        self.usable = False
        self._ends_with_connection = False
        self._deadline_s = math.inf
        self._transport.abort()

    def check(self, now_s: float) -> None:
        """Give up an answer whose time limit is over."""
        if now_s >= self._deadline_s:
            self._fail("no answer in time")

    # What the event loop calls.

    def pause_writing(self) -> None:
        self._writable.expect()

    def resume_writing(self) -> None:
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        if self._complete:
            # No request asked for this answer.
            self.close()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fail("the endpoint changed the protocol")
        except httptools.HttpParserError as error:
            if not self._complete:
                self._fail(f"the answer is malformed: {error}")

    def connection_lost(self, error: Exception | None) -> None:
        self.usable = False
        self._opened.discard(self)
        self.resume_writing()
        if not self._complete and error is None and self._ends_with_connection:
            self._finish()
        else:
            self._fail(str(error or "the connection was closed"))

    # What the parser calls.

    def on_message_begin(self) -> None:
        self._status = 0
        self._reason = b""
        self._fields: list[tuple[bytes, bytes]] = []
        self._ends_with_connection = False

    def on_status(self, reason: bytes) -> None:
        self._reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields.append((name, value))

    def on_headers_complete(self) -> None:
        status = self._status = self._parser.get_status_code()
        if status < 200:
            return
        headers = self._headers = Headers(self._fields)
        names = headers.by_name
        self._ends_with_connection = not (
            b"content-length" in names or b"transfer-encoding" in names
        )
        if not self._parser.should_keep_alive():
            self.usable = False
        if self._no_body:
            # The parser would wait for the body that Content-Length announces.
            self.usable = False
            self._finish()

    def on_body(self, body: bytes) -> None:
        if self._complete:
            return
        self._deadline_s = self._loop.time() + self._answered_within_s
        if self._rest is not None:
            self._rest.append(body)
            self._rest_bytes += len(body)
            if self._rest_bytes > _MOST_PIECES_BYTES and not self._paused:
                self._paused = True
                self._transport.pause_reading()
                self._deadline_s = math.inf
            self._rest_arrived.set()
            return
        self._held.append(body)
        self._held_bytes += len(body)
        if self._held_bytes > MAX_HELD_BYTES:
            self._rest = collections.deque()
            self._resolve(self)

    def on_message_complete(self) -> None:
        if self._status >= 200 and not self._complete:
            self._finish()

    # Answers.

    def _finish(self) -> None:
        """The answer is complete."""
        self._complete = True
        self._deadline_s = math.inf
        if self._rest is None:
            self._resolve(None)
            self._release()
        else:
            self._rest_arrived.set()

    def _release(self) -> None:
        if self.usable:
            if self._paused:
                # The end of a large answer came with what paused it.
                self._paused = False
                self._transport.resume_reading()
            self.idle_since_s = self._loop.time()
            self._pool.idle.append(self)
        else:
            self._transport.close()

    def _fail(self, reason: str) -> None:
        if self._complete:
            return
        self._complete = True
        self._broken = UpstreamBroken(reason)
        self._deadline_s = math.inf
        self.close()
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(self._broken)
        self._rest_arrived.set()

    def _resolve(self, rest: UpstreamConnection | None) -> None:
        assert self._answer is not None
        length = None
        if rest is not None and "Content-Length" in self._headers:
            length = int(self._headers["Content-Length"])
        held = self._held
        self._answer.set_result(
            GatewayAnswer(
                self._status,
                self._headers,
                held[0] if len(held) == 1 else b"".join(held),
                self._reason,
                rest,
                length,
            )
        )
        self._held = []
