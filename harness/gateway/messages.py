"""Requests as a client sent them, replies as they are sent back, and refusals of malformed ones."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
from typing import NamedTuple, Protocol

from harness.gateway import answers
from harness.gateway.answers import GatewayAnswer
from harness.gateway.headers import Headers
from harness.gateway.requests import read_request
from harness.model.entity import MAX_TRANSACTION_BYTES
from harness.model.operation import Kind

MAX_HEAD_BYTES = 128 * 1024
"""Two percent-encoded keys of 1,024 characters exceed the usual 8 KiB."""

MAX_BODY_BYTES = MAX_TRANSACTION_BYTES
_METHODS = "DELETE, GET, HEAD, MERGE, OPTIONS, PATCH, POST, PUT"
_UPDATES = (Kind.UPSERT_REPLACE, Kind.UPSERT_MERGE, Kind.UPDATE_REPLACE, Kind.UPDATE_MERGE)
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


@dataclasses.dataclass(slots=True)
class Request:
    """One request with its complete body.

    Attributes:
        target: Path and query, percent-encoded; ``*`` or HOST:PORT for OPTIONS and CONNECT.
        host: The authority that the client addressed; empty if it named none.
        scheme: http or https, by which the client is connected.
        body: Its body, with the content coding that it was sent with; empty if there is a defect.
        keep_alive: True if the connection stays open after the reply.
        version: HTTP version, such as 1.1.
        client: Who sent it.
        defect: Why it cannot be executed; None usually.
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
    """Return the rule that a request breaks, and the answer.

    Args:
        request: A request with a defect, or without a path.
    """
    headers, defect = request.headers, request.defect
    if defect is Defect.BODY_TOO_LARGE:
        if read_request(request.method, request.target, headers, b"").kind in _UPDATES:
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
