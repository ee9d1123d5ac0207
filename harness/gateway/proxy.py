"""Handles every request as the model decides, and counts it.

A response is passed on complete or not at all, unless a fault asks for something else. It is
counted before it is sent, so that the counts are never behind the responses.
"""

from __future__ import annotations

import asyncio
import dataclasses
import datetime as dt
import socket
import struct
from collections.abc import Callable
from http import HTTPStatus

from aiohttp import web

from harness.gateway import answers
from harness.gateway.answers import GatewayAnswer
from harness.gateway.look import TableLook
from harness.gateway.model import Decision, GatewayAction, Model
from harness.gateway.reading import read_answer, with_top
from harness.gateway.requests import NOTHING, Asked, read_request
from harness.gateway.rules.faults import InjectedFault
from harness.gateway.truth import GONE, HALF, RESET, Fate, Truth
from harness.gateway.upstream import Upstream, UpstreamBroken, UpstreamMissing
from harness.model.entity import MAX_TRANSACTION_BYTES
from harness.model.hosts import STRANGE_HOST
from harness.model.operation import Kind
from harness.model.outcome import Scope

TRUTH_PATH = "/-/truth"
METRICS_PATH = "/-/metrics"
MAX_BODY_BYTES = MAX_TRANSACTION_BYTES
_RESET_AT_ONCE = struct.pack("ii", 1, 0)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One request with its complete body."""

    request: web.BaseRequest
    target: str
    body: bytes
    asked: Asked


class Proxy:
    """The handler of all requests.

    Args:
        model: Decides about each request.
        upstream: The endpoint behind; None acknowledges writes and stores nothing.
        address: Address of the gateway, for its pages and error messages.
        clock: The model's clock, UTC seconds.
        readers: Whether a value of Host may read the gateway's own pages.
    """

    def __init__(
        self,
        model: Model,
        upstream: Upstream | None,
        address: str,
        clock: Callable[[], float],
        readers: Callable[[str], bool],
    ) -> None:
        self.truth = Truth()
        self._model = model
        self._upstream = upstream
        self._address = address
        self._clock = clock
        self._readers = readers

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Respond to one request."""
        target = request.raw_path
        if target.startswith("/-/"):
            if not self._readers(request.headers.get("Host", "")):
                return web.Response(status=403, text=STRANGE_HOST)
            return self._page(target)
        headers = request.headers
        try:
            body = await _read_body(request)
        except (ConnectionError, web.RequestPayloadError):
            self.truth.add(NOTHING, Fate(result="fault", rule="client", sent=GONE))
            return _aborted(request)
        if body is None:
            message = "The request body is too large and exceeds the maximum permissible limit."
            answer = answers.error(413, "RequestBodyTooLarge", message, headers, self._now())
            self.truth.add(NOTHING, Fate(result="refused", rule="size", sent="413"))
            return _whole(answer)
        asked = read_request(request.method, target, headers, body)
        received = Received(request=request, target=target, body=body, asked=asked)
        decision = self._model.decide(asked, self._clock())
        if decision.delay_s:
            await asyncio.sleep(decision.delay_s)
        if decision.action is not GatewayAction.PASS:
            return self._refuse(received, decision)
        if decision.fault is not None:
            return await self._fail(received, decision.fault)
        return await self._pass(received)

    def _refuse(self, received: Received, decision: Decision) -> web.StreamResponse:
        headers, now = received.request.headers, self._now()
        if decision.action is GatewayAction.TIMED_OUT:
            answer = answers.timed_out(headers, now)
        else:
            answer = answers.busy(decision.scope, headers, now)
        sent = GONE if _gone(received.request) else str(answer.status)
        fate = Fate(result="refused", scope=decision.scope, rule=decision.rule, sent=sent)
        self._count(received.asked, fate)
        return _whole(answer)

    async def _pass(self, received: Received) -> web.StreamResponse:
        """Pass the request on, and its response back."""
        try:
            answer = await self._ask(received)
        except UpstreamMissing as error:
            return self._missing(received, str(error))
        except UpstreamBroken:
            self._model.lost(received.asked)
            self._count(received.asked, Fate(result="fault", rule="upstream", sent=RESET))
            return _aborted(received.request)
        sent = GONE if _gone(received.request) else None
        self._count_passed(received.asked, answer, sent=sent)
        return _whole(answer)

    async def _fail(self, received: Received, fault: InjectedFault) -> web.StreamResponse:
        """Apply a fault to the request."""
        request, asked = received.request, received.asked
        if fault in (InjectedFault.ERROR_500, InjectedFault.ERROR_503, InjectedFault.RESET):
            return self._fail_undone(received, fault)
        if fault is InjectedFault.UNAPPLIED_WRITE:
            answer = answers.acknowledged(asked, request.headers, received.body, self._now())
            self._count(asked, Fate(result="fault", rule=fault, sent=str(answer.status)))
            return _whole(answer)
        try:
            answer = await self._ask(received)
        except UpstreamMissing as error:
            return self._missing(received, str(error))
        except UpstreamBroken:
            self._model.lost(asked)
            self._count(asked, Fate(result="fault", rule="upstream", sent=RESET))
            return _aborted(request)
        if fault is InjectedFault.SLOW_ANSWER:
            await asyncio.sleep(self._model.slow_s)
            self._count_passed(asked, answer, sent=None, rule=fault)
            return _whole(answer)
        half = fault is InjectedFault.HALF_ANSWER
        self._count_passed(asked, answer, sent=HALF if half else RESET, rule=fault)
        return _halved(request, answer) if half else _aborted(request)

    def _fail_undone(self, received: Received, fault: InjectedFault) -> web.StreamResponse:
        request, now = received.request, self._now()
        self._model.not_done(received.asked, self._clock())
        if fault is InjectedFault.RESET:
            self._count(received.asked, Fate(result="fault", rule=fault, sent=RESET))
            return _aborted(request)
        if fault is InjectedFault.ERROR_503:
            answer = answers.busy(Scope.PARTITION, request.headers, now)
        else:
            message = "The server encountered an internal error. Please retry the request."
            answer = answers.error(500, "InternalError", message, request.headers, now)
        self._count(received.asked, Fate(result="fault", rule=fault, sent=str(answer.status)))
        return _whole(answer)

    async def _ask(self, received: Received) -> GatewayAnswer:
        request, asked = received.request, received.asked
        if self._upstream is None:
            return answers.unstored(
                request.method, received.target, asked, request.headers, received.body, self._now()
            )
        ask, target = self._upstream.ask, received.target
        if (look := self._model.look(asked, target)) is not None:
            await self._look(look, received)
        answer = await ask(request.method, target, request.headers, received.body)
        if asked.kind is Kind.QUERY:
            rows = self._model.cut(asked, read_answer(asked, answer))
            if rows is not None:
                # The page ends where the next server begins, with the continuation of the endpoint.
                shorter = with_top(target, rows)
                answer = await ask(request.method, shorter, request.headers, b"")
        return answer

    async def _look(self, look: TableLook, received: Received) -> None:
        """Read the keys of a table that had rows before, in the name of the client."""
        assert self._upstream is not None
        try:
            while look.target is not None:
                look.take(
                    await self._upstream.ask("GET", look.target, received.request.headers, b"")
                )
        except (UpstreamMissing, UpstreamBroken):
            pass
        finally:
            look.abandon()

    def _missing(self, received: Received, reason: str) -> web.StreamResponse:
        assert self._upstream is not None
        message = (
            f"The gateway at {self._address} cannot reach the endpoint behind it, "
            f"{self._upstream.url} ({reason})."
        )
        answer = answers.error(
            502, "UpstreamMissing", message, received.request.headers, self._now()
        )
        self._model.not_done(received.asked, self._clock())
        self._count(received.asked, Fate(result="fault", rule="upstream", sent="502"))
        return _whole(answer)

    def _count(self, asked: Asked, fate: Fate) -> None:
        """Count a request that was not executed."""
        self.truth.add(asked, fate)

    def _count_passed(
        self, asked: Asked, answer: GatewayAnswer, *, sent: str | None, rule: str = ""
    ) -> None:
        """Count a response of the endpoint and its entities."""
        answered = read_answer(asked, answer)
        count = self._model.answered(asked, answered, self._clock())
        fate = Fate(
            result="passed" if not rule else "fault",
            rule=rule,
            sent=str(answered.status) if sent is None else sent,
            upstream=str(answered.status),
        )
        self.truth.add(asked, fate, count)

    def _page(self, target: str) -> web.Response:
        moves, moved = self._model.moves, self._model.move_count
        if target == TRUTH_PATH:
            upstream = "none" if self._upstream is None else self._upstream.url
            text = self.truth.to_json(
                address=self._address, upstream=upstream, moves=moves, moved=moved
            )
            return web.Response(text=text, content_type="application/json")
        if target == METRICS_PATH:
            text = self.truth.to_prometheus(moved=moved)
            return web.Response(text=text, content_type="text/plain")
        return web.Response(status=404, text=f"The pages are {TRUTH_PATH} and {METRICS_PATH}.\n")

    def _now(self) -> dt.datetime:
        return dt.datetime.fromtimestamp(self._clock(), tz=dt.UTC)


async def _read_body(request: web.BaseRequest) -> bytes | None:
    """Return the body, or None if it is larger than the service accepts."""
    if not request.body_exists:
        return b""
    length = request.content_length
    if length is not None and length > MAX_BODY_BYTES:
        return None
    if request.headers.get("Expect", "").lower() == "100-continue" and request.transport:
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    if length is not None:
        return await request.content.read()
    body = bytearray()
    async for piece in request.content.iter_any():
        body += piece
        if len(body) > MAX_BODY_BYTES:
            return None
    return bytes(body)


def _whole(answer: GatewayAnswer) -> web.Response:
    return web.Response(status=answer.status, headers=answer.headers, body=answer.body or None)


def _gone(request: web.BaseRequest) -> bool:
    transport = request.transport
    return transport is None or transport.is_closing()


def _aborted(request: web.BaseRequest) -> web.Response:
    """Reset the connection; the returned response is not sent."""
    transport = request.transport
    if transport is not None and not transport.is_closing():
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_ONCE)
        transport.abort()
    return web.Response()


def _halved(request: web.BaseRequest, answer: GatewayAnswer) -> web.Response:
    """Send the first half of the response, and close the connection."""
    lines = [f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in answer.headers.items()]
    lines += [f"Content-Length: {len(answer.body)}", "", ""]
    whole = "\r\n".join(lines).encode() + answer.body
    transport = request.transport
    if isinstance(transport, asyncio.WriteTransport) and not transport.is_closing():
        transport.write(whole[: len(whole) // 2])
        transport.close()
    return web.Response()
