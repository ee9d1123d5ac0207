"""An azure-core transport over a `harness.endpoint.channel.Channel`."""

from __future__ import annotations

from typing import Any, cast
from urllib.parse import urlsplit

from azure.core.pipeline.transport import HttpResponse, HttpTransport
from azure.core.rest import HttpRequest
from azure.core.utils import CaseInsensitiveDict

from harness.endpoint.channel import USER_AGENT, Channel
from harness.endpoint.exchange import Exchange, ResponseFault
from harness.endpoint.reader import HTTPParseError
from harness.model.outcome import Fault

_USER_AGENT = f"User-Agent: {USER_AGENT}\r\n"


class Answer(HttpResponse):
    """A whole answer, in the shape that the SDK reads."""

    def __init__(self, request: HttpRequest, exchange: Exchange) -> None:
        # The base class is not initialised: it would set the same attributes a second time.
        self.request = cast(Any, request)
        self.headers = exchange.headers
        self.status_code = exchange.status
        self.reason = exchange.reason
        self.content = exchange.body

    @property
    def content_type(self) -> str | None:  # type: ignore[override]
        """Value of ``Content-Type``."""
        value: str | None = self.headers.get("content-type")
        return value

    def body(self) -> bytes:
        """The whole body."""
        return self.content

    def read(self) -> bytes:
        """The whole body; it was read already."""
        return self.content

    def parts(self) -> Any:
        """The answers inside the answer to a transaction.

        Raises:
            ResponseFault: the body is not the multipart message it should be.
        """
        try:
            # The base class runs each part's policies in threads; the SDK's policies for parts
            # do nothing to answers.
            return self._get_raw_parts()
        except (AttributeError, IndexError, TypeError, ValueError, HTTPParseError) as error:
            raise ResponseFault(
                Fault.BAD_ANSWER, f"the answer to a transaction cannot be read: {error}"
            ) from error


class GeventTransport(HttpTransport[HttpRequest, Answer]):
    """Sends the SDK's requests over ``channel``."""

    def __init__(self, channel: Channel) -> None:
        parts = urlsplit(channel.url)
        self._origin = f"{parts.scheme}://{parts.netloc}"
        self._fixed_head = f" HTTP/1.1\r\nHost: {parts.netloc}\r\n"
        self._channel = channel

    def open(self) -> None:
        """Nothing to do: connections are made when they are needed."""

    def close(self) -> None:
        """Close every idle connection; those in use are closed when their exchange ends."""
        self._channel.close()

    def __exit__(self, *details: object) -> None:
        """Close, as `close` does."""
        self.close()

    def send(self, request: HttpRequest, **kwargs: Any) -> Answer:
        """Send ``request`` once and read its answer whole.

        Args:
            request: What to send; its URL has to lie at the transport's origin.
            kwargs: The call's `Exchange` as ``exchange``; it is filled in, also where this
                raises. Other options of the pipeline mean nothing here.

        Raises:
            RequestFault: it did not leave.
            ResponseFault: it may have been done, but no whole answer came.
            ValueError: its URL leads elsewhere.
        """
        exchange: Exchange = kwargs["exchange"]
        self._channel.send(self._message(request), exchange)
        return Answer(request, exchange)

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
            # The SDK's own list of policies adds one; a second would be no valid request.
            lines.append(_USER_AGENT)
        if body and "content-length" not in headers:
            lines += ("Content-Length: ", str(len(body)), "\r\n")
        lines.append("\r\n")
        return "".join(lines).encode("ascii") + body
