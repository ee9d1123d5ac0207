"""Parsing of one HTTP response, by geventhttpclient's C parser.

Most responses come whole, with a length, over a connection that stays open. These are parsed
without the C parser, with the same result.
"""

from __future__ import annotations

import re

from geventhttpclient._parser import HTTPParseError, HTTPResponseParser

from harness.endpoint.http.exchange import Exchange, ResponseHeaders

__all__ = ["HTTPParseError", "Reader", "is_bare_success", "read_at_once"]

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


class Reader(HTTPResponseParser):
    """Parses one response; feed it until it is ``whole``.

    The C parser calls the private methods. A name or a value may come in pieces.

    Attributes:
        head_bytes: Approximate size of the heads so far.
        whole: True once the final response, not an interim 1xx, was read to its end.
        surplus: True where more data followed the response.
    """

    __slots__ = (
        "_body",
        "_in_value",
        "_name",
        "_pairs",
        "_value",
        "head_bytes",
        "surplus",
        "whole",
    )

    def __init__(self) -> None:
        super().__init__()
        self.head_bytes = 0
        self.whole = False
        self.surplus = False
        self._pairs: list[tuple[str, str]] = []
        self._name = self._value = ""
        self._in_value = False
        # A list of pieces of one byte each would take many times their size.
        self._body = bytearray()

    def headers(self) -> ResponseHeaders:
        """The headers of the response, without ``Date``; see `ResponseHeaders.of`."""
        headers = ResponseHeaders()
        for name, value in self._pairs:
            headers.add(name, value.strip())
        headers.pop("date", None)
        return headers

    def body(self) -> bytes:
        return bytes(self._body)

    def _on_message_begin(self) -> None:
        # A server that responds twice is out of step: the connection must not be used again.
        self.surplus = self.whole
        self.head_bytes += _STATUS_LINE_BYTES

    def _on_status(self, reason: str) -> None:
        self.head_bytes += len(reason)

    def _on_header_field(self, piece: str) -> None:
        self.head_bytes += len(piece)
        if self._in_value:
            self._pairs.append((self._name, self._value))
            self._in_value = False
            self._name = piece
        else:
            self._name += piece

    def _on_header_value(self, piece: str) -> None:
        self.head_bytes += len(piece)
        if self._in_value:
            self._value += piece
        else:
            self._in_value = True
            self._value = piece

    def _on_headers_complete(self) -> None:
        if self._in_value:
            self._pairs.append((self._name, self._value))
            self._in_value = False
        self._name = ""

    def _on_body(self, piece: bytearray) -> None:
        self._body += piece

    def _on_message_complete(self) -> None:
        if self.get_code() >= 200:
            self.whole = True
        else:
            # An interim response; the final one follows.
            self._pairs.clear()
            self._body.clear()
