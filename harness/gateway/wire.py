"""HTTP/1.1 heads and the framing of bodies, in bytes."""

from __future__ import annotations

import email.utils
import enum
import functools
import time
from http import HTTPStatus

from harness.gateway.answers import GatewayAnswer
from harness.gateway.headers import NOT_SENT_ON, Headers
from harness.gateway.messages import Request

LAST_CHUNK = b"0\r\n\r\n"
_PHRASES = {status.value: status.phrase.encode() for status in HTTPStatus}


class Framing(enum.Enum):
    """How a recipient finds the end of a body."""

    NO_BODY = enum.auto()
    LENGTH = enum.auto()
    CHUNKED = enum.auto()
    UNTIL_CLOSE = enum.auto()


# Looked up once: access to a member of an enumeration takes several times as long as a plain name.
_NO_BODY = Framing.NO_BODY
_LENGTH = Framing.LENGTH
_CHUNKED = Framing.CHUNKED
_UNTIL_CLOSE = Framing.UNTIL_CLOSE


def framed(framing: Framing, piece: bytes) -> bytes:
    """Return a piece of a body as it is sent."""
    if framing is _CHUNKED:
        return b"%x\r\n%b\r\n" % (len(piece), piece) if piece else b""
    return piece if framing is not _NO_BODY else b""


def response_head(request: Request, answer: GatewayAnswer) -> tuple[bytes, Framing]:
    """Return the head of a response, and the framing of its body."""
    status = answer.status
    headers = Headers.of(answer.headers)
    lines = [_status_line(status, answer.reason), *headers.passed_on()]
    if b"date" not in headers.by_name:
        lines.append(b"Date: " + _date(int(time.time())))
    framing = _LENGTH
    if request.method == "HEAD" or status == 304:
        framing = _NO_BODY
        if "Content-Length" in headers:
            lines.append(b"Content-Length: " + headers["Content-Length"].encode())
    elif status == 204:
        framing = _NO_BODY
    elif answer.rest is None:
        lines.append(b"Content-Length: %d" % len(answer.body))
    elif answer.length is not None:
        lines.append(b"Content-Length: %d" % answer.length)
    elif request.version == "1.1":
        framing = _CHUNKED
        lines.append(b"Transfer-Encoding: chunked")
    else:
        framing = _UNTIL_CLOSE
    if not request.keep_alive or framing is _UNTIL_CLOSE:
        lines.append(b"Connection: close")
    elif request.version == "1.0":
        lines.append(b"Connection: keep-alive")
    lines.append(b"\r\n")
    return b"\r\n".join(lines), framing


def request_head(
    method: str, target: str, host: str, headers: Headers, length: int | None
) -> bytes:
    """Return the head of a request to the endpoint.

    Args:
        target: Path and query, percent-encoded.
        length: Length of the body; None for no Content-Length.
    """
    first = f"{method} {target} HTTP/1.1\r\nHost: {host}".encode("latin-1")
    lines = [first, *headers.passed_on(NOT_SENT_ON)]
    if length is not None:
        lines.append(b"Content-Length: %d" % length)
    lines.append(b"\r\n")
    return b"\r\n".join(lines)


@functools.lru_cache(maxsize=256)
def _status_line(status: int, reason: bytes) -> bytes:
    return b"HTTP/1.1 %d %b" % (status, reason or _PHRASES.get(status, b""))


@functools.lru_cache(maxsize=1)
def _date(now_s: int) -> bytes:
    return email.utils.formatdate(now_s, usegmt=True).encode()
