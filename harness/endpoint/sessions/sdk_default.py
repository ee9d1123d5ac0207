"""The baseline session: azure-data-tables unchanged, with its attempts counted from outside.

The client's two raw hooks show the start and the response of each attempt; the transport shows each
fault. `SdkDefaultSession` lists what they cannot show.
"""

from __future__ import annotations

import itertools
import os
import ssl
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast
from urllib.parse import urlsplit

import gevent
import requests
from azure.core.exceptions import (
    AzureError,
    IncompleteReadError,
    ServiceRequestError,
    ServiceRequestTimeoutError,
    ServiceResponseError,
    ServiceResponseTimeoutError,
)
from azure.core.pipeline import PipelineRequest, PipelineResponse
from azure.core.pipeline.transport import RequestsTransport
from azure.data.tables import TableClient
from gevent import GreenletExit
from requests.adapters import HTTPAdapter

from harness.endpoint.attempts import OperationAttempts, drain
from harness.endpoint.http.exchange import (
    MAX_RESPONSE_BYTES,
    Exchange,
    ResponseFault,
    ResponseHeaders,
    by_library,
)
from harness.endpoint.http.pool import trust_context
from harness.endpoint.protocol.requests import Token
from harness.endpoint.session import SessionOptions
from harness.endpoint.sessions.sdk import Clients, call, read_page
from harness.model.operation import Kind, Operation
from harness.model.outcome import Fault, Outcome, Result, classify
from harness.workload.budget import BudgetSpent

REQUEST_ID = "x-ms-client-request-id"


class SdkDefaultTransport(RequestsTransport):  # type: ignore[misc]
    """The SDK's own transport (``requests``), in which ``trusting`` alone checks certificates.

    Calls ``on_fault`` with the client request id and the error where no whole response came, which
    is also after ``within_s`` seconds. Its own time-outs are for each wait.
    """

    def __init__(
        self,
        on_fault: Callable[[str, AzureError], None],
        *,
        trusting: ssl.SSLContext | None,
        within_s: float,
        **options: Any,
    ) -> None:
        self._trusting = trusting
        self._within_s = within_s
        self._on_fault = on_fault
        super().__init__(**options)

    def send(self, request: Any, **options: Any) -> Any:
        limit = gevent.Timeout(self._within_s)
        try:
            with limit:
                return super().send(request, **options)
        except AzureError as raised:
            error = raised
        except gevent.Timeout as expired:
            if expired is not limit:
                raise
            error = ServiceResponseTimeoutError(f"no whole response within {self._within_s:g} s")
        self._on_fault(request.headers.get(REQUEST_ID, ""), error)
        raise error

    def _init_session(self, session: requests.Session) -> None:
        super()._init_session(session)
        if self._trusting is None:
            return
        default = cast(HTTPAdapter, session.get_adapter("https://"))
        trusting = _TrustingAdapter(self._trusting, max_retries=default.max_retries)
        session.mount("https://", trusting)


class _TrustingAdapter(HTTPAdapter):
    """Opens connections whose certificates one context checks, and nothing else."""

    def __init__(self, context: ssl.SSLContext, **options: Any) -> None:
        self._context = context
        super().__init__(**options)

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        super().init_poolmanager(*args, **{**options, "ssl_context": self._context})

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        return super().proxy_manager_for(proxy, **{**options, "ssl_context": self._context})

    def build_connection_pool_key_attributes(
        self, request: Any, verify: Any, cert: Any = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        # Certificates that a variable names are in the context already.
        return super().build_connection_pool_key_attributes(request, True, cert)

    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:
        """Add nothing: ``requests`` would trust its own authorities besides the context's."""


class ResponseTooLarge(requests.RequestException):
    """The body is larger than any response of the service."""


def limit_body(response: requests.Response, **_options: Any) -> None:
    """A hook that makes the reading of a body that is too large raise `ResponseTooLarge`.

    ``requests`` calls it before it reads the body. Heads are read by then: `http.client` limits the
    length of their lines, but not the number of interim responses and trailers.
    """
    stream = response.raw.stream

    def read(*args: Any, **options: Any) -> Iterator[bytes]:
        size = 0
        for piece in stream(*args, **options):
            size += len(piece)
            if size > MAX_RESPONSE_BYTES:
                response.close()
                raise ResponseTooLarge(f"the response is larger than {MAX_RESPONSE_BYTES:,} bytes")
            yield piece

    response.raw.stream = read


class _Call:
    """The attempts that the SDK makes of one call; each is added once its response is known.

    ``began`` is True once a request left. ``exchange`` is the attempt that is under way or
    succeeded; None where the last one is added.
    """

    __slots__ = ("attempts", "began", "exchange")

    def __init__(self, attempts: OperationAttempts) -> None:
        self.attempts = attempts
        self.began = False
        self.exchange: Exchange | None = None

    def begin(self, exchange: Exchange) -> None:
        self.began = True
        self.exchange = exchange

    def fail(self, now_s: float, error: Exception | None = None) -> None:
        """Add the attempt, which was refused or has no response because of ``error``."""
        assert self.exchange is not None
        self.exchange.done_s = now_s
        self._add(error)
        # Whether the SDK will make another attempt is unknown.
        self.attempts.report()

    def end(self, error: Exception | None, begun_s: float, now_s: float) -> None:
        """Add the last attempt of a call that has ended; without any, add one for ``error``."""
        if not self.began:
            unsent = self.exchange = Exchange("")
            unsent.sent_s, unsent.done_s = begun_s, now_s
        if self.exchange is not None:
            if not self.exchange.done_s:
                self.exchange.done_s = now_s
            self._add(error)

    def _add(self, error: Exception | None) -> None:
        exchange, self.exchange = self.exchange, None
        assert exchange is not None
        assert exchange.sent_s is not None
        exchange.done_s = exchange.done_s or exchange.sent_s
        self.attempts.add(exchange, _as_fault(error) if self.began else error)


class SdkDefaultSession:
    """Sends operations through azure-data-tables as an application does that just calls it.

    Two things differ: redirects are not followed, and the trusted authorities are those of every
    session. The options ``retry``, ``rng``, ``connections`` and ``sleep`` are ignored: the SDK has
    its own transport (``requests``), retry rules and waits, and its pool has no limit.

    What the figures of this session contain:

    - The latency of an attempt begins when the SDK hands it to its transport. It includes the time
      to connect, and the wait for one of the SDK's threads.
    - Retries of one call have the same client request id.
    - Every attempt is taken from the budget. A retry that the budget does not cover is not sent,
      and the call ends with its last attempt.
    - Bytes are those of bodies only; the SDK does not show heads.
    - Bodies and the time for a response are limited as in every session. A long response to a
      transaction of many small parts is parsed slowly.
    - A write that is refused after an ambiguous attempt stays ambiguous: nothing is read back.
    - ``Retry-After`` is honoured without a limit, as the SDK does.
    - With a login, a request that is refused with 401 is sent again only where the response holds
      a challenge (``WWW-Authenticate``).
    """

    def __init__(self, options: SessionOptions) -> None:
        self._options = options
        self._budget = options.budget
        self._clock = options.clock
        self._numbers = itertools.count()
        self._abandoned = False
        self._calls: dict[str, _Call] = {}
        https = urlsplit(options.endpoint.url).scheme == "https"
        client = partial(
            TableClient,
            options.endpoint.url,
            **options.endpoint.credential.for_sdk(),
            transport=SdkDefaultTransport(
                self._on_fault,
                trusting=trust_context(os.environ) if https else None,
                connection_timeout=options.connect_timeout_s,
                read_timeout=options.read_timeout_s,
                within_s=options.connect_timeout_s + options.read_timeout_s,
            ),
            # Requests go to the endpoint and nowhere else, whatever it responds.
            permit_redirects=False,
            raw_request_hook=self._on_request,
            raw_response_hook=self._on_response,
        )
        self._clients = Clients(client, options.table)

    @property
    def connections_in_use(self) -> int:
        return 0

    def close(self) -> None:
        for client in self._clients.values():
            client.close()

    def execute(
        self, operation: Operation, due_s: float | None = None, *, keep: bool = True
    ) -> Result:
        attempts = OperationAttempts(operation, self._options.on_attempt)
        if operation.kind is Kind.QUERY:

            def page(token: Token | None, found: int) -> tuple[Outcome, object]:
                return self._call(attempts, partial(read_page, token=token, found=found))

            outcome, found, returned, whole = drain(attempts, page, self._options.pace, keep=keep)
            return attempts.result(outcome, found, due_s, returned, whole=whole)
        outcome, value = self._call(attempts, partial(call, lean=False))
        return attempts.result(outcome, value, due_s)

    def abandon(self) -> None:
        self._abandoned = True

    def _call(
        self, attempts: OperationAttempts, function: Callable[[TableClient, Operation, Any], object]
    ) -> tuple[Outcome, object]:
        if self._budget.exhausted:
            raise BudgetSpent("the budget of billable transactions is used up")
        operation = attempts.operation
        request_id = f"{self._options.run_id}-{next(self._numbers):x}"
        first = len(attempts.attempts)
        watched = self._calls[request_id] = _Call(attempts)
        begun_s = self._clock()
        value, error = None, None
        try:
            options = {"request_id": request_id, "hooks": {"response": limit_body}}
            value = function(self._clients[operation.table], operation, options)
        except BudgetSpent:
            if not watched.began:
                raise
        except Exception as raised:
            # Nothing is hidden: an error of this client becomes Outcome.DEFECT, with its text.
            error = raised
        finally:
            del self._calls[request_id]
        watched.end(error, begun_s, self._clock())
        made = attempts.attempts
        outcome = classify(operation, made[-1], made[first:-1])
        return outcome, value if outcome is Outcome.SUCCESS else None

    def _on_request(self, request: PipelineRequest[Any]) -> None:
        call = self._calls.get(request.http_request.headers.get(REQUEST_ID, ""))
        if call is None:
            return
        if self._abandoned:
            raise GreenletExit
        if not self._budget.take():
            raise BudgetSpent("the budget of billable transactions is used up")
        exchange = Exchange(request.http_request.headers[REQUEST_ID])
        exchange.sent_s = self._clock()
        exchange.bytes_sent = len(request.http_request.content or b"")
        call.begin(exchange)

    def _on_fault(self, request_id: str, error: AzureError) -> None:
        call = self._calls.get(request_id)
        if call is not None and call.exchange is not None:
            call.fail(self._clock(), error)

    def _on_response(self, response: PipelineResponse[Any, Any]) -> None:
        call = self._calls.get(response.http_request.headers.get(REQUEST_ID, ""))
        if call is None or call.exchange is None:
            return
        exchange = call.exchange
        exchange.done_s = self._clock()
        received = response.http_response
        exchange.status = received.status_code
        exchange.headers = ResponseHeaders()
        for name, value in received.headers.items():
            exchange.headers.add(name, value)
        exchange.body = received.read()
        exchange.bytes_received = len(exchange.body)
        if exchange.status >= 300:
            call.fail(exchange.done_s)
        if exchange.status == 401 and (login := self._options.endpoint.login) is not None:
            # The SDK sends the request once more if the response challenges it to.
            refused = response.http_request.headers.get("Authorization", "")
            call.attempts.wait_outside(partial(login.renewed_after, refused), self._clock)


def _as_fault(error: Exception | None) -> Exception | None:
    """An error after the SDK's transport had a request, with its fault.

    It is about the connection or the response, unless code of the harness raised it.
    """
    if isinstance(error, ResponseFault):
        return error
    fault = None
    if isinstance(getattr(error, "inner_exception", error), ResponseTooLarge):
        fault = Fault.TOO_LARGE
    elif isinstance(error, AzureError):
        fault = _fault_of(error)
    elif isinstance(error, OSError):
        fault = Fault.RESET
    elif by_library(error):
        fault = Fault.BAD_ANSWER
    return error if fault is None else ResponseFault(fault, f"{type(error).__name__}: {error}")


def _fault_of(error: AzureError) -> Fault | None:
    text = str(error)
    if isinstance(error, ServiceRequestTimeoutError):
        return Fault.CONNECT_TIMEOUT
    if isinstance(error, ServiceRequestError):
        # The class that requests has for it does not survive the SDK's wrapping.
        return Fault.TLS if "SSLError" in text or "CERTIFICATE_VERIFY" in text else Fault.REFUSED
    if isinstance(error, ServiceResponseTimeoutError):
        return Fault.READ_TIMEOUT
    if isinstance(error, IncompleteReadError):
        return Fault.RESET
    if isinstance(error, ServiceResponseError):
        return Fault.BAD_ANSWER if "BadStatusLine" in text else Fault.RESET
    return None
