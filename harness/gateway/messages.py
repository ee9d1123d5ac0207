"""Requests as a client sent them, and replies as they are sent back."""

from __future__ import annotations

import dataclasses
import enum
from typing import NamedTuple, Protocol

from harness.gateway.answers import GatewayAnswer
from harness.gateway.headers import Headers
from harness.model.entity import MAX_TRANSACTION_BYTES

MAX_HEAD_BYTES = 128 * 1024
"""Two percent-encoded keys of 1,024 characters exceed the usual 8 KiB."""

MAX_BODY_BYTES = MAX_TRANSACTION_BYTES


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
        method: HTTP method.
        target: Path and query, percent-encoded; ``*`` or HOST:PORT for OPTIONS and CONNECT.
        host: The authority that the client addressed; empty if it named none.
        scheme: http or https, by which the client is connected.
        headers: Its headers.
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
