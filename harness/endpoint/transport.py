"""One request, one answer, no second try: an azure-core transport on geventhttpclient.

geventhttpclient brings the connecting, the TLS and the C parser. Its ``HTTPClient.request`` is
not used, because it sends an idempotent request again on a broken connection, and an attempt
that nobody sees is an attempt that nobody counts.

A connection goes back to the pool only after a whole answer. Whatever else ends an exchange, a
killed greenlet included, closes the connection and frees its place.
"""

from __future__ import annotations

import ssl
from typing import Any, cast
from urllib.parse import urlsplit

from azure.core.pipeline.transport import HttpResponse, HttpTransport
from azure.core.rest import HttpRequest
from azure.core.utils import CaseInsensitiveDict

from harness.endpoint.clock import Clock
from harness.endpoint.exchange import Exchange, RequestFault, ResponseFault
from harness.endpoint.pool import Connection, ConnectionLimit, open_pool
from harness.endpoint.reader import HTTPParseError, Reader, is_bare_success
from harness.model.outcome import Fault

_BLOCK_BYTES = 65536
_USER_AGENT = "User-Agent: azure-table-stress-harness\r\n"


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
    """Sends requests to one origin over a bounded pool of kept connections.

    Safe among greenlets of one thread.

    Args:
        url: Where to; scheme, host and port count.
        connections: At most so many connections at once; a request beyond waits for a place.
        connect_timeout_s: For each address of the host, TLS handshake included.
        read_timeout_s: For each wait for more of an answer.
        clock: Gives the times of the exchanges.

    Raises:
        SetupError: the environment names a bundle of certificates that cannot be read.
    """

    def __init__(
        self,
        *,
        url: str,
        connections: int,
        connect_timeout_s: float,
        read_timeout_s: float,
        clock: Clock,
    ) -> None:
        parts = urlsplit(url)
        self._origin = f"{parts.scheme}://{parts.netloc}"
        self._fixed_head = f" HTTP/1.1\r\nHost: {parts.netloc}\r\n"
        self._clock = clock
        self._pool: ConnectionLimit = open_pool(
            url,
            connections=connections,
            connect_timeout_s=connect_timeout_s,
            read_timeout_s=read_timeout_s,
        )

    @property
    def connections_in_use(self) -> int:
        """Places of the pool that are taken at this moment."""
        return self._pool.in_use

    def open(self) -> None:
        """Nothing to do: connections are made when they are needed."""

    def close(self) -> None:
        """Close every idle connection; those in use are closed when their exchange ends."""
        self._pool.close()

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
        message = self._message(request)
        self._pool.acquire()
        exchange.sent_s = self._clock()
        connection = None
        try:
            connection = self._connect()
            reusable = self._exchange(connection, message, exchange)
        except BaseException:
            exchange.done_s = self._clock()
            self._pool.drop(connection)
            raise
        exchange.done_s = self._clock()
        if reusable:
            self._pool.put_back(connection)
        else:
            self._pool.drop(connection)
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

    def _connect(self) -> Connection:
        """An idle connection, or a new one.

        Raises:
            RequestFault: there is none to be had.
        """
        try:
            return self._pool.connection()
        except TimeoutError as error:
            raise RequestFault(Fault.CONNECT_TIMEOUT, error) from error
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError) as error:
            # Closed during the handshake, as an overloaded front end does. Worth a retry.
            raise RequestFault(Fault.REFUSED, error) from error
        except ssl.SSLError as error:
            raise RequestFault(Fault.TLS, error) from error
        except OSError as error:
            raise RequestFault(Fault.REFUSED, error) from error

    def _exchange(self, connection: Connection, message: bytes, exchange: Exchange) -> bool:
        """Send ``message``, read one answer. True where the connection may be used again.

        Raises:
            ResponseFault: no whole answer came.
        """
        try:
            exchange.bytes_sent = len(message)
            # All of it mostly leaves at once; sendall would first ask for the kind of socket.
            left = connection.send(message)
            if left < len(message):
                connection.sendall(message[left:])
            data = connection.recv(_BLOCK_BYTES)
            if is_bare_success(data):
                exchange.bytes_received = len(data)
                exchange.status, exchange.reason = 204, "No Content"
                return True
            reader = Reader()
            while True:
                if not data and exchange.bytes_received == 0:
                    raise ConnectionResetError("closed before the answer began")
                exchange.bytes_received += len(data)
                # No data is the end of the connection, which ends an answer without a length.
                reader.feed(data)
                if reader.whole:
                    break
                data = connection.recv(_BLOCK_BYTES)
        except TimeoutError as error:
            raise ResponseFault(Fault.READ_TIMEOUT, str(error)) from error
        except OSError as error:
            raise ResponseFault(Fault.RESET, f"{type(error).__name__}: {error}") from error
        except HTTPParseError as error:
            if not data:
                raise ResponseFault(Fault.RESET, "closed before the answer was whole") from error
            raise ResponseFault(Fault.BAD_ANSWER, f"the answer is not HTTP: {error}") from error
        exchange.status, exchange.reason = reader.get_code(), reader.reason
        exchange.headers, exchange.body = reader.headers(), reader.body()
        return reader.should_keep_alive() and not reader.surplus
