"""The lean pipeline of the tuned SDK session: one step between the SDK and the connection pool.

The SDK's own list of thirteen policies costs as much as building the request. What the list does
and this pipeline does not: retry, log, trace, redirect. The session retries, and counts it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast
from urllib.parse import urlsplit

from azure.core.pipeline import Pipeline, PipelineContext, PipelineRequest, PipelineResponse
from azure.core.pipeline.transport import HttpResponse, HttpTransport
from azure.core.rest import HttpRequest
from azure.core.utils import CaseInsensitiveDict

from harness.endpoint.auth.credential import Credential
from harness.endpoint.auth.signing import ServiceDate, signer_of
from harness.endpoint.http.channel import USER_AGENT, Channel
from harness.endpoint.http.exchange import Exchange
from harness.endpoint.protocol.multipart import part_responses
from harness.endpoint.protocol.responses import document_of

_USER_AGENT = f"User-Agent: {USER_AGENT}\r\n"


class SdkResponse(HttpResponse):
    """A response that was read whole, in the shape that the SDK expects."""

    def __init__(self, request: HttpRequest, exchange: Exchange) -> None:
        # The base class is not initialised: it would set the same attributes a second time.
        self.request = cast(Any, request)
        self.headers = exchange.headers
        self.status_code = exchange.status
        self.reason = exchange.reason
        self.content = exchange.body

    @property
    def content_type(self) -> str | None:  # type: ignore[override]
        value: str | None = self.headers.get("content-type")
        return value

    def body(self) -> bytes:
        return self.content

    def read(self) -> bytes:
        return self.content

    def parts(self) -> Iterator[SdkResponse]:
        """The responses inside the response to a transaction.

        Raises:
            ResponseFault: the body is not the multipart message it should be.
        """
        # The SDK's own parser, made for mail, takes a minute for two megabytes of small parts.
        for part in part_responses(self.content_type or "", self.content):
            exchange = Exchange("")
            exchange.status, exchange.head, exchange.body = part
            yield SdkResponse(cast(HttpRequest, self.request), exchange)


class GeventTransport(HttpTransport[HttpRequest, SdkResponse]):
    """Sends the SDK's requests over a channel.

    Args:
        channel: The connection pool; every request has to go to its origin.
    """

    def __init__(self, channel: Channel) -> None:
        parts = urlsplit(channel.url)
        self._origin = f"{parts.scheme}://{parts.netloc}"
        self._fixed_head = f" HTTP/1.1\r\nHost: {parts.netloc}\r\n"
        self._channel = channel

    def open(self) -> None:
        """Do nothing: connections are opened when they are needed."""

    def close(self) -> None:
        """Close the idle connections; those in use close when their exchange ends."""
        self._channel.close()

    def __exit__(self, *details: object) -> None:
        self.close()

    def send(self, request: HttpRequest, **options: Any) -> SdkResponse:
        """Send ``request`` once and read its response whole.

        Args:
            request: The request; its URL has to lie at the transport's origin.
            options: The call's `Exchange` as ``exchange``; it is filled in, also where this
                raises. Other options of the pipeline are ignored.

        Raises:
            RequestFault: the request did not leave.
            ResponseFault: the request may have been executed, but no whole response came.
            ValueError: the URL leads elsewhere.
        """
        exchange: Exchange = options["exchange"]
        self._channel.send(self._message(request), exchange)
        return SdkResponse(request, exchange)

    def _message(self, request: HttpRequest) -> bytes:
        """Head and body in one piece, so that they leave in one segment where they fit."""
        url = request.url
        if not url.startswith(self._origin + "/"):
            raise ValueError(f"a request to {urlsplit(url).netloc} does not belong to this session")
        content = request.content
        body: bytes = content.encode() if isinstance(content, str) else content or b""
        lines = [request.method, " ", url[len(self._origin) :], self._fixed_head]
        headers = cast(CaseInsensitiveDict, request.headers)
        for name, value in headers.lowerkey_items():
            lines += (name, ": ", value, "\r\n")
        if "user-agent" not in headers:
            # The SDK's own list of policies adds one, and a second one would be invalid.
            lines.append(_USER_AGENT)
        if body and "content-length" not in headers:
            lines += ("Content-Length: ", str(len(body)), "\r\n")
        lines.append("\r\n")
        return "".join(lines).encode("ascii") + body


class LeanPipeline(Pipeline[HttpRequest, SdkResponse]):
    """Dates, names and signs each request, sends it, and decodes the JSON of successes.

    Every call has to bring its `Exchange` as the option ``exchange``.

    azure-core takes a pipeline as the public keyword ``pipeline`` and calls its ``run``. This
    ``run`` replaces the whole of the base class's, and so also the thread pool in which azure-core
    prepares the parts of each transaction. Under load a greenlet waits hundreds of milliseconds
    for those threads before anything is sent: time of the generator that no latency shows.

    Args:
        transport: Sends the requests.
        credential: Signs the requests.

    Raises:
        ValueError: the account key is not base64.
    """

    def __init__(self, transport: GeventTransport, credential: Credential) -> None:
        super().__init__(transport)
        self._sends = transport
        self._signer = signer_of(credential)
        self._date = ServiceDate()

    def run(
        self, request: HttpRequest, **options: Any
    ) -> PipelineResponse[HttpRequest, SdkResponse]:
        """Send ``request`` once.

        Raises:
            RequestFault: the request did not leave.
            ResponseFault: no whole response came, or a success whose body is not a JSON object.
        """
        exchange: Exchange = options["exchange"]
        multipart: Any = request
        if multipart.multipart_mixed_info:
            _prepare_parts(multipart)
            multipart.prepare_multipart_body()
        headers = request.headers
        headers["x-ms-date"] = date = self._date.now()
        headers["x-ms-client-request-id"] = exchange.client_request_id
        url, signer = request.url, self._signer
        path = url[url.index("/", url.index("//") + 2) :].partition("?")[0]
        content_type = headers.get("Content-Type", "")
        if signature := signer.authorization(request.method, content_type, date, path):
            headers["Authorization"] = signature
        if signer.query:
            request.url = f"{url}{'&' if '?' in url else '?'}{signer.query}"
        context = PipelineContext(self._sends, **options)
        response = self._sends.send(request, **options)
        # The SDK's pager expects what its retry policy leaves here.
        context["location_mode"] = "primary"
        if exchange.status in (200, 201):
            context["deserialized_data"] = document_of(exchange.body)
        return PipelineResponse(request, response, context)


def _prepare_parts(request: Any) -> None:
    parts, policies, _, options = request.multipart_mixed_info
    for part in parts:
        if part.multipart_mixed_info:
            _prepare_parts(part)
        prepared: PipelineRequest[Any] = PipelineRequest(part, PipelineContext(None, **options))
        for policy in policies:
            policy.on_request(prepared)
