"""One HTTP exchange: what an attempt sent and received, how its response is read, what can end it.

Responses are parsed by httptools. Most come whole, with a length, over a connection that stays
open. These are parsed without it, with the same result.
"""

from __future__ import annotations

import email.errors
import re
import traceback
from typing import Any

import httptools
from azure.core.exceptions import ServiceRequestError, ServiceResponseError

from harness.model.outcome import Fault

LIBRARY_ERRORS = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    email.errors.MessageError,
)
"""What the SDK and the standard library's parser of mail raise for a response that they do not
expect. To be caught only where such a library reads a response: in code of the harness the same
errors are defects."""


def by_library(error: BaseException | None) -> bool:
    """Whether an error is one of `LIBRARY_ERRORS`, and no code of the harness raised it.

    That code calls the library, and the library calls it: the innermost frame decides. Only the
    headers of a response, of which the library asks for what is not there, are no such code.
    """
    if not isinstance(error, LIBRARY_ERRORS):
        return False
    modules = [frame.f_globals["__name__"] for frame, _ in traceback.walk_tb(error.__traceback__)]
    raised_in = [name for name in modules if name != __name__][-1:]
    return not any(name.startswith("harness.") for name in raised_in)


CHARGE_HEADER = "x-ms-request-charge"
"""Cosmos DB names in it what a request cost, in request units."""
RECEIPT_HEADER = "x-ms-popreceipt"
"""The pop receipt of a message of a queue after an update."""


class RequestFault(ServiceRequestError):
    """The request did not leave; ``fault`` says why."""

    def __init__(self, fault: Fault, error: BaseException) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.fault = fault


class ResponseFault(ServiceResponseError):
    """The request may have been executed, but has no usable response; ``fault`` says why."""

    def __init__(self, fault: Fault, message: str) -> None:
        super().__init__(message)
        self.fault = fault


def bad_answer(message: str) -> ResponseFault:
    """The fault of a response that the table service does not give."""
    return ResponseFault(Fault.BAD_ANSWER, message)


class PartRefused(Exception):
    """The service refused one part of a transaction with this response, and executed none."""

    def __init__(self, status: int, headers: ResponseHeaders, body: bytes) -> None:
        super().__init__(f"a part was refused with {status}")
        self.status = status
        self.headers = headers
        self.body = body


class ResponseHeaders(dict[str, str]):
    """Headers of a response. Names are found in any case."""

    __slots__ = ()

    @classmethod
    def of(cls, head: bytes) -> ResponseHeaders:
        """The headers in a head, whose first line is the status line.

        ``Date`` is left out: nothing reads it, and the SDK would parse it every time.
        """
        headers = cls()
        for line in head.split(b"\r\n")[1:]:
            name, colon, value = line.partition(b":")
            if colon:
                headers.add(name.decode("latin-1"), value.strip().decode("latin-1"))
        headers.pop("date", None)
        return headers

    def add(self, name: str, value: str) -> None:
        self[name.lower()] = value

    def get(self, name: str, default: Any = None) -> Any:
        return dict.get(self, name.lower(), default)

    def __getitem__(self, name: str) -> str:
        return dict.__getitem__(self, name.lower())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and dict.__contains__(self, name.lower())


class Exchange:
    """The request and response of one attempt. The channel fills it in.

    Attributes:
        sent_s: When the request had a place in the pool; None if it never had. Waiting for a place
            is the generator's time, connecting is the service's.
        queued_s: How long it waited for that place.
        done_s: When the response was whole, or the fault was seen.
        status: 0 where no whole response came.
        head: Head of the response; ``headers`` are parsed from it when asked for.
        bytes_sent: Bytes of head and body, without TLS.
        bytes_received: The same, as far as they came.
    """

    # Class-level defaults, because an exchange is made for every attempt and sets few of them.
    sent_s: float | None = None
    queued_s: float = 0.0
    done_s: float = 0.0
    status: int = 0
    head: bytes = b""
    body: bytes = b""
    bytes_sent: int = 0
    bytes_received: int = 0
    _headers: ResponseHeaders | None = None

    def __init__(self, client_request_id: str) -> None:
        self.client_request_id = client_request_id

    @property
    def headers(self) -> ResponseHeaders:
        """Headers of the response."""
        if self._headers is None:
            self._headers = ResponseHeaders.of(self.head)
        return self._headers

    @headers.setter
    def headers(self, headers: ResponseHeaders) -> None:
        self._headers = headers

    def header(self, name: str) -> str:
        """One header, by its name in lower case; empty if there is none. Others stay unparsed."""
        if self._headers is not None:
            return self._headers.get(name, "")  # type: ignore[no-any-return]
        at = self.head.lower().find(b"\r\n%s:" % name.encode("ascii"))
        if at < 0:
            return ""
        line = self.head[at + 2 :].partition(b"\r\n")[0]
        return line.partition(b":")[2].strip().decode("latin-1")


_PLAIN_HEAD = re.compile(
    rb"HTTP/1\.1 ([2-5][0-9][0-9]) [ -~]*\r\n"
    rb"(?:[!#$%&'*+.^_`|~0-9A-Za-z-]++:[ -~]*+\r\n)*+\r\n"
)
_LENGTH = b"\r\ncontent-length: "
_MOST_DIGITS = 9
_NO_BODY = (204, 304)

MAX_HEAD_BYTES = 64 * 1024
"""Interim responses and trailers included. Servers allow half of it."""
MAX_RESPONSE_BYTES = 32 * 1024 * 1024
"""Azure's pages and transactions hold at most 4 MiB, which is 16 MiB of JSON at most (a character
of two bytes can take six). Azurite limits only the number of entities in a page."""
_STATUS_LINE_BYTES = 19


def is_bare_success(data: bytes) -> bool:
    """True for exactly one whole 204 response that leaves the connection open."""
    return (
        data.startswith(b"HTTP/1.1 204 ")
        and data.find(b"\r\n\r\n") == len(data) - 4
        and b"\nconnection: close" not in data.lower()
    )


def read_at_once(data: bytes, exchange: Exchange) -> bool:
    """Parse ``data`` into ``exchange`` if it is one whole plain response.

    A plain response has a length and leaves the connection open. For anything else, this returns
    False and leaves ``exchange`` unchanged.
    """
    plain = _PLAIN_HEAD.match(data)
    if plain is None:
        return False
    end = plain.end()
    head = data[:end].lower()
    at = head.find(_LENGTH)
    if at < 0 or b"\r\nconnection:" in head or b"\r\ntransfer-encoding:" in head:
        return False
    at += len(_LENGTH)
    length = head[at : head.index(b"\r", at)]
    status = int(plain[1])
    if (
        len(length) > _MOST_DIGITS
        or not length.isdigit()
        or len(data) - end != int(length)
        or status in _NO_BODY
        or head.find(b"\r\ncontent-length", at) >= 0
    ):
        return False
    exchange.status = status
    exchange.head, exchange.body = data[:end], data[end:]
    exchange.bytes_received = len(data)
    return True


class Reader:
    """Parses one response; feed it until it is ``whole``.

    The parser calls the methods that begin with ``on_``.

    Attributes:
        status: 0 before the end of the head.
        head_bytes: Approximate size of the heads so far.
        whole: True once the final response, not an interim 1xx, was read to its end.
        keeps_alive: Whether the server then keeps the connection open for another request.
        surplus: True where more data followed the response.
    """

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self.head_bytes = 0
        self.status = 0
        self.whole = self.keeps_alive = self.surplus = False
        self._in_head = True
        self._ends_with_connection = False
        self._fields: list[tuple[bytes, bytes]] = []
        # A list of pieces of one byte each would take many times their size.
        self._body = bytearray()

    def feed(self, data: bytes) -> None:
        """Parse more data; none is the end of the connection, which may end the response.

        Raises:
            HttpParserError: it is not HTTP, or changes the protocol.
        """
        if not data:
            self.whole = self.whole or self._ends_with_connection
            return
        in_head = self._in_head
        self._parser.feed_data(data)
        if in_head and self._in_head:
            # A field counts when it is complete, and may never be.
            self.head_bytes += len(data)

    def headers(self) -> ResponseHeaders:
        """The headers of the response, without ``Date``; see `ResponseHeaders.of`."""
        headers = ResponseHeaders()
        for name, value in self._fields:
            headers.add(name.decode("latin-1"), value.strip().decode("latin-1"))
        headers.pop("date", None)
        return headers

    def body(self) -> bytes:
        return bytes(self._body)

    def on_message_begin(self) -> None:
        # A server that responds twice is out of step: the connection must not be used again.
        self.surplus = self.whole
        self.head_bytes += _STATUS_LINE_BYTES

    def on_header(self, name: bytes, value: bytes) -> None:
        self.head_bytes += len(name) + len(value)
        if self._in_head:
            # The others are trailers.
            self._fields.append((name, value))

    def on_headers_complete(self) -> None:
        if self.whole:
            return
        self._in_head = False
        status = self.status = self._parser.get_status_code()
        fields = {name.lower(): value for name, value in self._fields}
        chunked = b"chunked" in fields.get(b"transfer-encoding", b"").lower()
        framed = chunked or b"content-length" in fields
        self._ends_with_connection = status >= 200 and not framed

    def on_body(self, piece: bytes) -> None:
        self._body += piece

    def on_message_complete(self) -> None:
        if self.whole:
            return
        if self.status >= 200:
            self.whole, self.keeps_alive = True, self._parser.should_keep_alive()
        else:
            # An interim response; the final one follows.
            self._in_head, self._ends_with_connection = True, False
            self._fields.clear()
            self._body.clear()
