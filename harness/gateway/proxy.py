"""Handles every request as the model decides, and counts it.

An answer is counted before it is sent, so that the counts are never behind the answers. Each
request reaches the endpoint at most once, except a query whose page is cut.
"""

from __future__ import annotations

import abc
import asyncio
import contextlib
import datetime as dt
import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple, Protocol

from harness.gateway import answers
from harness.gateway.addresses import COUNTERS_PATH, METRICS_PATH
from harness.gateway.answers import (
    ClientBroke,
    CorsAnswers,
    GatewayAnswer,
    Unpassed,
    UpstreamBroken,
    is_preflight,
    permission,
)
from harness.gateway.blob_requests import BlobDialect
from harness.gateway.contents import LookAhead
from harness.gateway.counters import GONE, HALF, RESET, UNANSWERED, Counters, Disposition
from harness.gateway.dialect import Dialect, XmlDialect, dialect_of
from harness.gateway.forward import AccountUpstream, Interception
from harness.gateway.headers import Headers
from harness.gateway.large_bodies import CountedRest, KeyScan, MessageScan
from harness.gateway.limits import InjectedFault
from harness.gateway.links import in_path, route_of
from harness.gateway.messages import MAX_BODY_BYTES, Defect, Reply, ReplyEnd, Request, refusal_of
from harness.gateway.model import PASS, Decision, Model
from harness.gateway.queue_requests import QueueDialect
from harness.gateway.reading import read_answer, unpacked, with_top
from harness.gateway.requests import NOTHING, Asked
from harness.gateway.rules.counting import NO_ENTITIES, Count
from harness.gateway.upstream import Upstream, UpstreamMissing
from harness.model.hosts import STRANGE_HOST
from harness.model.operation import Kind
from harness.model.outcome import Scope
from harness.model.services import beside_at, server_answering
from harness.model.services.service import Server

# Looked up once: access to a member of an enumeration takes several times as long as a plain name.
_QUERY = Kind.QUERY
_BESIDE: tuple[type[XmlDialect], ...] = (QueueDialect, BlobDialect)
"""The dialects of an account beside that of its tables."""
_RESET = Reply(ending=ReplyEnd.RESET)
_UNSENT = (
    *(InjectedFault.ERROR_500, InjectedFault.ERROR_503),
    *(InjectedFault.RESET, InjectedFault.UNAPPLIED_WRITE),
)
"""Faults of requests that the endpoint does not get."""


class Received(NamedTuple):
    """One request, parsed. ``arrived_s``: when it was complete, by the model's clock."""

    request: Request
    asked: Asked
    arrived_s: float
    dialect: Dialect


class Meter(Protocol):
    """Sees every request of the clients; each passes `take` first, and then ends in `ended`.

    One that inherits from it has no budget, and does not see what cannot be executed.
    """

    def take(self) -> str:
        """Take a request from the budget; return why it is refused, or an empty text."""
        return ""

    def take_again(self) -> bool:
        """Take the second request for a page that is cut; False if the budget is used up."""
        return True

    def refused(self, *, unreadable: bool) -> None:
        """A request that cannot be executed was refused; ``unreadable`` if it is no HTTP."""
        return

    @abc.abstractmethod
    def ended(
        self,
        received: Received,
        disposition: Disposition,
        count: Count,
        answer: GatewayAnswer | None,
        now_s: float,
    ) -> None:
        """A request was counted, and its answer complete, of which this may be the beginning."""


class Proxy:
    """The handler of all requests.

    Args:
        upstream: The endpoint behind; None acknowledges writes and stores nothing.
        beside: The endpoints behind for other servers than that of tables, where they are others.
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
        meter: Meter | None = None,
        interception: Interception | None = None,
        beside: Mapping[Server, Upstream] | None = None,
    ) -> None:
        self.counters = Counters()
        self._model = model
        self._upstream = upstream
        self._address = address
        self._clock = clock
        self._readers = readers
        self._meter = meter
        self._interception = interception
        self._cors = CorsAnswers()
        self._dialect = dialect_of(model)
        self._behind = {self._dialect.server: upstream}
        # Cosmos DB has nothing beside tables.
        self._beside: dict[Server, XmlDialect] = {}
        for made in _BESIDE if model.units is None else ():
            behind = self._behind[made.server] = (beside or {}).get(made.server, upstream)
            self._beside[made.server] = made(in_path=behind is None or in_path(behind.host))
        self._shown = [(one.shown_by, one) for one in self._beside.values() if one.shown_by]
        # None until the host or the first answer of the endpoint tells.
        self._only = None if upstream is None else self._dialect_at(upstream.host)

    def _dialect_at(self, host: str) -> Dialect | None:
        """The dialect beside tables that a value of Host tells."""
        service = beside_at(host)
        return None if service is None else self._beside.get(service.server)

    def _spoken(self, target: str, host: str, server: Server | None) -> Dialect:
        """The dialect of a request; for ``server`` see `handle`."""
        dialect = self._beside.get(server) if server else self._only
        if dialect is None or dialect is self._dialect:
            for shown_by, shown in self._shown:
                if shown_by(target):
                    return shown
            return self._dialect_at(host) or self._dialect
        return dialect

    def streams(self, target: str, host: str, *, server: Server | None = None) -> bool:
        """Whether a large body of a request is passed on as it comes; see `Dialect.opaque`."""
        return self._spoken(target, host, server).opaque

    async def handle(self, request: Request, *, server: Server | None = None) -> Reply:
        """Handle a request; ``server`` tells that it came to an address for that one alone."""
        target = request.target
        if target.startswith("/-/") and request.defect is None:
            return Reply(answer=self._page(request))
        dialect = self._spoken(target, request.host, server)
        if request.defect is not None or not _is_target(request):
            return self._refuse_defect(request, dialect)
        body = b"" if dialect.opaque else _unpacked(request)
        asked = dialect.read(request.method, target, request.headers, body)
        now_s = self._clock()
        received = Received(request, asked, now_s, dialect)
        if self._meter is not None and (reason := self._meter.take()):
            answer = answers.error(403, "BudgetSpent", reason, request.headers, self._now())
            return self._reply(received, answer, "refused", "budget")
        decision = self._model.decide(asked, now_s)
        if decision is not PASS:
            if decision.delay_s:
                await asyncio.sleep(decision.delay_s)
            if decision.rule:
                return self._refuse(received, decision)
        try:
            if decision.fault is None:
                return await self._pass(received)
            return await self._fail(received, decision.fault)
        except UpstreamMissing as error:
            return self._missing(received, str(error))
        except UpstreamBroken as error:
            self._model.lost(asked)
            by_client = isinstance(error, ClientBroke)
            sent, rule = (GONE, "client") if by_client else (RESET, "upstream")
            self._count(received, Disposition("fault", sent, Scope.NONE, rule, UNANSWERED))
            return _RESET

    def _refuse_defect(self, request: Request, dialect: Dialect) -> Reply:
        """Reply to a request that cannot be executed."""
        if request.defect is Defect.BROKEN_OFF:
            self.counters.add(NOTHING, Disposition(result="fault", rule="client", sent=GONE))
            return _RESET
        if self._meter is not None:
            unreadable = request.defect in (Defect.MALFORMED, Defect.UNKNOWN_METHOD)
            self._meter.refused(unreadable=unreadable)
        rule, answer = refusal_of(request, self._now())
        self.counters.add(NOTHING, Disposition("refused", str(answer.status), rule=rule))
        return self._own(request, dialect, answer)

    def _refuse(self, received: Received, decision: Decision) -> Reply:
        request = received.request
        answer = received.dialect.refusal(decision, received.asked, request.headers, self._now())
        sent = GONE if request.client.gone else str(decision.status)
        return self._reply(received, answer, "refused", decision.rule, sent, decision.scope)

    async def _pass(self, received: Received) -> Reply:
        """Pass the request on, and its answer back; raise what `_ask` raises."""
        answer = await self._ask(received)
        if answer.rest is not None:
            return Reply(answer=self._counted_later(received, answer))
        sent = GONE if received.request.client.gone else None
        return Reply(answer=self._count_passed(received, answer, sent=sent))

    async def _fail(self, received: Received, fault: InjectedFault) -> Reply:
        """Apply a fault to the request; raise what `_ask` raises."""
        if fault in _UNSENT:
            return self._fail_unsent(received, fault)
        answer = await self._ask(received)
        if fault is InjectedFault.SLOW_ANSWER:
            await asyncio.sleep(self._model.slow_s)
            if answer.rest is not None:
                return Reply(answer=self._counted_later(received, answer, rule=fault))
            return Reply(answer=self._count_passed(received, answer, sent=None, rule=fault))
        if answer.rest is not None:
            answer.rest.close()
        half = fault is InjectedFault.HALF_ANSWER
        answer = self._count_passed(received, answer, sent=HALF if half else RESET, rule=fault)
        return Reply(answer=answer, ending=ReplyEnd.HALF) if half else _RESET

    def _fail_unsent(self, received: Received, fault: InjectedFault) -> Reply:
        request, now = received.request, self._now()
        if fault is InjectedFault.UNAPPLIED_WRITE:
            answer = received.dialect.acknowledged(self._unpassed(received))
            return self._reply(received, answer, "fault", fault)
        self._model.not_done(received.asked, self._clock())
        if fault is InjectedFault.RESET:
            self._count(received, Disposition(result="fault", rule=fault, sent=RESET))
            return _RESET
        if fault is InjectedFault.ERROR_503:
            answer = answers.refusal(503, Scope.PARTITION, request.headers, now)
        else:
            message = "The server encountered an internal error. Please retry the request."
            answer = answers.error(500, "InternalError", message, request.headers, now)
        return self._reply(received, answer, "fault", fault)

    async def _ask(self, received: Received) -> GatewayAnswer:
        """Return the endpoint's answer.

        Raises:
            UpstreamMissing, UpstreamBroken: there is none; nothing was counted.
        """
        request, asked, _, dialect = received
        behind = self._behind[dialect.server]
        if behind is None:
            return self._cors.allow(request.headers, self._unstored(received))
        upstream: Upstream | AccountUpstream = behind
        if self._interception is not None:
            upstream = self._interception.endpoint(behind, request.host, dialect)
        # By position: with names the cache takes several times as long.
        route = route_of(
            request.scheme, request.host, upstream.scheme, upstream.host, upstream.path
        )
        headers = request.headers
        method, target, host = request.method, request.target, route.host
        queries = asked.kind is _QUERY
        if queries and (ahead := self._model.look_ahead(asked, target)) is not None:
            await self._look_ahead(
                ahead, functools.partial(upstream.ask, "GET", host=host), headers
            )
        body, led = request.body, route.leads and not dialect.opaque
        if led:
            body = route.request_body(headers, body)
        answer = await dialect.ask(upstream.ask, method, target, headers, body, host, request.rest)
        if self._only is None and upstream is self._upstream:
            server = server_answering(answer.headers.get("Server", ""))
            self._only = (server and self._beside.get(server)) or self._dialect
        if b"origin" in headers.by_name:
            self._cors.learn(headers, answer)
        if queries and answer.rest is None:
            rows = self._model.cut(asked, read_answer(asked, answer))
            if rows is not None and (self._meter is None or self._meter.take_again()):
                # The page ends where the next server begins, with the continuation of the endpoint.
                answer = await upstream.ask(method, with_top(target, rows), headers, b"", host)
        return route.answer(answer) if led else answer

    def _unstored(self, received: Received) -> GatewayAnswer:
        """Return the answer of a gateway without an endpoint."""
        request = received.request
        if is_preflight(request.method, request.headers):
            return permission(request.headers)
        return received.dialect.unstored(self._unpassed(received))

    def _unpassed(self, received: Received) -> Unpassed:
        request, body = received.request, _unpacked(received.request)
        about = request.method, request.target, request.headers, body
        return Unpassed(*about, received.asked, self._now())

    async def _look_ahead(
        self, ahead: LookAhead, ask: Callable[..., Awaitable[GatewayAnswer]], headers: Headers
    ) -> None:
        """Read the keys of a table that had rows before, in the name of the client."""
        try:
            while ahead.target is not None:
                answer = await ask(ahead.target, headers=headers, body=b"")
                if answer.rest is not None:
                    answer.rest.close()
                    break
                ahead.take(answer)
        except (UpstreamMissing, UpstreamBroken):
            pass
        finally:
            ahead.abandon()

    def _missing(self, received: Received, reason: str) -> Reply:
        behind = self._behind[received.dialect.server]
        assert behind is not None
        message = (
            f"The gateway at {self._address} cannot reach the endpoint behind it, "
            f"{behind.url} ({reason})."
        )
        headers = received.request.headers
        answer = answers.error(502, "UpstreamMissing", message, headers, self._now())
        self._model.not_done(received.asked, self._clock())
        return self._reply(received, answer, "fault", "upstream")

    def _reply(
        self,
        received: Received,
        answer: GatewayAnswer,
        result: str,
        rule: str,
        sent: str = "",
        scope: Scope = Scope.NONE,
    ) -> Reply:
        """Count a request that was not executed, and reply with an answer of the gateway."""
        self._count(received, Disposition(result, sent or str(answer.status), scope, rule), answer)
        return self._own(received.request, received.dialect, answer)

    def _own(self, request: Request, dialect: Dialect, answer: GatewayAnswer) -> Reply:
        """Reply with an answer of the gateway."""
        return Reply(answer=self._cors.add(request.headers, dialect.own(answer)))

    def _count(
        self, received: Received, disposition: Disposition, answer: GatewayAnswer | None = None
    ) -> None:
        """Count a request that was not executed."""
        self.counters.add(received.asked, disposition)
        if self._meter is not None:
            self._meter.ended(received, disposition, NO_ENTITIES, answer, self._clock())

    def _count_passed(
        self,
        received: Received,
        answer: GatewayAnswer,
        *,
        sent: str | None,
        rule: str = "",
        found: Mapping[str | None, int] | None = None,
    ) -> GatewayAnswer:
        """Count an answer of the endpoint and its entities; return it as the client gets it."""
        asked, now_s = received.asked, self._clock()
        answered = read_answer(asked, answer, found)
        count = self._model.answered(asked, answered, now_s)
        disposition = _disposition_of(answered.status, sent, rule)
        self.counters.add(asked, disposition, count)
        answer = received.dialect.in_form(answer, count.charged)
        if self._meter is not None:
            self._meter.ended(received, disposition, count, answer, now_s)
        return answer

    def _counted_later(
        self, received: Received, answer: GatewayAnswer, *, rule: str = ""
    ) -> GatewayAnswer:
        """Return a large answer that is counted when all of it has come."""
        assert answer.rest is not None
        asked = received.asked
        scan: KeyScan | MessageScan | None = None
        if answer.status == 200 and (asked.kind is _QUERY or asked.receives):
            scan = KeyScan() if asked.kind is _QUERY else MessageScan()
            scan.add(answer.body)

        def count(found: Mapping[str | None, int], sent: str | None) -> None:
            broken = "upstream" if sent == HALF else rule
            self._count_passed(received, answer, sent=sent, rule=broken, found=found)

        return answer._replace(rest=CountedRest(answer.rest, scan, count))

    def _page(self, request: Request) -> GatewayAnswer:
        """Return one of the gateway's own pages."""
        if not self._readers(request.host):
            return answers.page(403, STRANGE_HOST)
        moves, moved = self._model.moves, self._model.move_count
        units = None if self._model.units is None else self._model.units.page()
        if request.target == COUNTERS_PATH:
            upstream = "none" if self._upstream is None else self._upstream.url
            text = self.counters.to_json(
                address=self._address,
                upstream=upstream,
                limits=self._model.limits.as_json(),
                moves=moves,
                moved=moved,
                units=units,
            )
            return answers.page(200, text, "application/json")
        if request.target == METRICS_PATH:
            return answers.page(200, self.counters.to_prometheus(moved=moved, units=units))
        return answers.page(404, f"The pages are {COUNTERS_PATH} and {METRICS_PATH}.\n")

    def _now(self) -> dt.datetime:
        return dt.datetime.fromtimestamp(self._clock(), tz=dt.UTC)


@functools.lru_cache(maxsize=256)
def _disposition_of(status: int, sent: str | None, rule: str) -> Disposition:
    """Return the disposition of a request that the endpoint answered."""
    return Disposition(
        result="passed" if not rule else "fault",
        rule=rule,
        sent=str(status) if sent is None else sent,
        upstream=str(status),
    )


def _is_target(request: Request) -> bool:
    """True for a path, and for the target of OPTIONS that is about the whole server."""
    if request.method == "CONNECT":
        return False
    return request.target.startswith("/") or (request.target, request.method) == ("*", "OPTIONS")


def _unpacked(request: Request) -> bytes:
    """Return the body without its content coding; empty if it cannot be undone within the limit."""
    if not request.body or b"content-encoding" not in request.headers.by_name:
        return request.body
    with contextlib.suppress(ValueError):
        if request.headers["Content-Encoding"].strip().lower() == "gzip":
            return unpacked(request.body, MAX_BODY_BYTES)
    return b""
