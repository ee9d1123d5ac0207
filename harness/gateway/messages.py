"""HTTP messages: requests as clients sent them, replies, heads and bodies in bytes (HTTP/1.1)."""

from __future__ import annotations

import dataclasses
import datetime as dt
import email.utils
import enum
import functools
import time
from http import HTTPStatus
from typing import NamedTuple, Protocol

from harness.gateway import answers
from harness.gateway.answers import GatewayAnswer
from harness.gateway.headers import NOT_SENT_ON, Headers
from harness.gateway.requests import read_request
from harness.model.entity import MAX_TRANSACTION_BYTES
from harness.model.operation import Kind
from harness.model.services.service import GATEWAY_VIA

MAX_HEAD_BYTES = 128 * 1024
"""Two percent-encoded keys of 1,024 characters exceed the usual 8 KiB."""

MAX_BODY_BYTES = MAX_TRANSACTION_BYTES
_METHODS = "DELETE, GET, HEAD, MERGE, OPTIONS, PATCH, POST, PUT"
_TOO_LARGE = "The request body is too large and exceeds the maximum permissible limit."
_ENTITY_TOO_LARGE = "The entity is larger than the maximum allowed size (1MB)."


class Defect(enum.Enum):
    """Why a request cannot be executed."""

    MALFORMED = enum.auto()
    UNKNOWN_METHOD = enum.auto()
    HEAD_TOO_LARGE = enum.auto()
    BODY_TOO_LARGE = enum.auto()
    TOO_SLOW = enum.auto()
    BROKEN_OFF = enum.auto()


class Client(Protocol):
    """The sender of a request."""

    @property
    def gone(self) -> bool:
        """True if the client can receive nothing."""

    @property
    def ended_input(self) -> bool:
        """True if the client sends nothing more; it may still receive."""


class RequestRest(Protocol):
    """The pieces of a large body of a request after its beginning, as they arrive."""

    passed: int
    """The bytes of the pieces so far."""

    async def next_piece(self) -> bytes:
        """Return the next piece; empty at the end.

        Raises:
            ClientBroke: the client broke off.
        """

    @property
    def complete(self) -> bool:
        """Whether all of it has arrived."""

    def close(self) -> None:
        """Give up the pieces that are left."""


@dataclasses.dataclass(slots=True)
class Request:
    """One request with its complete body, or the beginning of a large one.

    Attributes:
        target: Path and query, percent-encoded; ``*`` or HOST:PORT for OPTIONS and CONNECT.
        host: The authority that the client addressed; empty if it named none.
        scheme: http or https, by which the client is connected.
        body: Its body, with the content coding that it was sent with; empty if there is a defect.
        keep_alive: True if the connection stays open after the reply.
        version: HTTP version, such as 1.1.
        client: Who sent it.
        defect: Why it cannot be executed; None usually.
        rest: The pieces of a large body after its beginning; None if ``body`` is complete.
    """

    method: str
    target: str
    host: str
    scheme: str
    headers: Headers
    body: bytes
    keep_alive: bool
    version: str
    client: Client
    defect: Defect | None = None
    rest: RequestRest | None = None

    @property
    def body_bytes(self) -> int:
        """The bytes of its body, as far as they have arrived."""
        return len(self.body) + (0 if self.rest is None else self.rest.passed)


class ReplyEnd(enum.Enum):
    """How much of a reply is sent."""

    WHOLE = enum.auto()
    HALF = enum.auto()
    RESET = enum.auto()


class Reply(NamedTuple):
    """What a client gets: the answer or half of it, or a reset of its connection."""

    answer: GatewayAnswer | None = None
    ending: ReplyEnd = ReplyEnd.WHOLE


def refusal_of(request: Request, now: dt.datetime) -> tuple[str, GatewayAnswer]:
    """Return the rule that a request with a defect, or without a path, breaks, and the answer."""
    headers, defect = request.headers, request.defect
    if defect is Defect.BODY_TOO_LARGE:
        kind = read_request(request.method, request.target, headers, b"").kind
        if kind is not None and kind.stores and kind is not Kind.INSERT:
            return "size", answers.error(400, "EntityTooLarge", _ENTITY_TOO_LARGE, headers, now)
        return "size", answers.error(413, "RequestBodyTooLarge", _TOO_LARGE, headers, now)
    if defect is Defect.HEAD_TOO_LARGE:
        message = "The head of the request is larger than 128 KiB."
        return "size", answers.error(431, "RequestHeadTooLarge", message, headers, now)
    if defect is Defect.TOO_SLOW:
        message = "The request did not arrive in time."
        return "slow", answers.error(408, "RequestTimeout", message, headers, now)
    if defect is Defect.UNKNOWN_METHOD or request.method == "CONNECT":
        message = "The resource doesn't support the specified Http Verb."
        answer = answers.error(405, "UnsupportedHttpVerb", message, headers, now)
        return "method", answer._replace(headers={**answer.headers, "Allow": _METHODS})
    message = "The request is not well-formed HTTP."
    return "malformed", answers.error(400, "InvalidInput", message, headers, now)


_VIA = f"Via: {GATEWAY_VIA}".encode()
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
    lines = [_status_line(status, answer.reason), *headers.passed_on(), _VIA]
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
    method: str,
    target: str,
    host: str,
    headers: Headers,
    length: int | None,
    *,
    chunked: bool = False,
) -> bytes:
    """Return the head of a request to the endpoint, whose target is percent-encoded.

    ``length`` is that of the body; None for no Content-Length, or for a body in chunks.
    """
    first = f"{method} {target} HTTP/1.1\r\nHost: {host}".encode("latin-1")
    lines = [first, *headers.passed_on(NOT_SENT_ON)]
    if length is not None:
        lines.append(b"Content-Length: %d" % length)
    elif chunked:
        lines.append(b"Transfer-Encoding: chunked")
    lines.append(b"\r\n")
    return b"\r\n".join(lines)


@functools.lru_cache(maxsize=256)
def _status_line(status: int, reason: bytes) -> bytes:
    return b"HTTP/1.1 %d %b" % (status, reason or _PHRASES.get(status, b""))


@functools.lru_cache(maxsize=1)
def _date(now_s: int) -> bytes:
    return email.utils.formatdate(now_s, usegmt=True).encode()
