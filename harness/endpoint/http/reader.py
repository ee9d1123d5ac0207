"""One HTTP answer, read with geventhttpclient's C parser.

The most frequent answers by far come whole, with a length, over a connection that stays open.
They are read without the parser, and to the same end.
"""

from __future__ import annotations

import re

from geventhttpclient._parser import HTTPParseError, HTTPResponseParser

from harness.endpoint.exchange import AnswerHeaders, Exchange

__all__ = ["HTTPParseError", "Reader", "is_bare_success", "read_at_once"]

_PLAIN_HEAD = re.compile(
    rb"HTTP/1\.1 ([2-5][0-9][0-9]) ([ -~]*)\r\n"
    rb"(?:[!#$%&'*+.^_`|~0-9A-Za-z-]++:[ -~]*+\r\n)*+\r\n"
)
_LENGTH = b"\r\ncontent-length: "
_NO_BODY = (204, 304)


def is_bare_success(data: bytes) -> bool:
    """True for exactly one whole 204 answer that leaves the connection open."""
    return (
        data.startswith(b"HTTP/1.1 204 ")
        and data.find(b"\r\n\r\n") == len(data) - 4
        and b"\nconnection: close" not in data.lower()
    )


def read_at_once(data: bytes, exchange: Exchange) -> bool:
    """Read ``data`` into ``exchange`` if it is one whole plain answer; else False, nothing done.

    Plain is an answer with a length, over a connection that stays open. For all else there is
    the parser.
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
        not length.isdigit()
        or len(data) - end != int(length)
        or status in _NO_BODY
        or head.find(b"\r\ncontent-length", at) >= 0
    ):
        return False
    exchange.status, exchange.reason = status, plain[2].decode("ascii")
    exchange.head, exchange.body = data[:end], data[end:]
    exchange.bytes_received = len(data)
    return True


class Reader(HTTPResponseParser):
    """Collects one answer; feed it until it is ``whole``.

    The parser calls the private methods. A name or a value may come in pieces.

    Attributes:
        whole: True once the final answer, not an interim 1xx, was read to its end.
        surplus: True where something came behind it.
        reason: The reason phrase.
    """

    __slots__ = ("_body", "_in_value", "_name", "_pairs", "_value", "reason", "surplus", "whole")

    def __init__(self) -> None:
        super().__init__()
        self.whole = False
        self.surplus = False
        self.reason = ""
        self._pairs: list[tuple[str, str]] = []
        self._name = self._value = ""
        self._in_value = False
        self._body: list[bytes | bytearray] = []

    def headers(self) -> AnswerHeaders:
        """The headers of the answer.

        ``Date`` is left out: nobody reads it, and the SDK would parse it every time.
        """
        headers = AnswerHeaders()
        for name, value in self._pairs:
            headers.add(name, value.strip())
        headers.pop("date", None)
        return headers

    def body(self) -> bytes:
        """The body of the answer."""
        return b"".join(self._body)

    def _on_message_begin(self) -> None:
        # A server that answers twice is out of step: the connection must not be used again.
        self.surplus = self.whole

    def _on_status(self, reason: str) -> None:
        self.reason += reason

    def _on_header_field(self, piece: str) -> None:
        if self._in_value:
            self._pairs.append((self._name, self._value))
            self._in_value = False
            self._name = piece
        else:
            self._name += piece

    def _on_header_value(self, piece: str) -> None:
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
        self._body.append(piece)

    def _on_message_complete(self) -> None:
        if self.get_code() >= 200:
            self.whole = True
        else:
            # An interim answer; the real one follows.
            self.reason = ""
            self._pairs.clear()
