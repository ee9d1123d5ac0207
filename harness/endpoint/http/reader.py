"""Parsing of one HTTP response, by the parser of httptools.

Most responses come whole, with a length, over a connection that stays open. These are parsed
without that parser, with the same result.
"""

from __future__ import annotations

import re

import httptools

from harness.endpoint.http.exchange import Exchange, ResponseHeaders

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
