"""Requests to Queue Storage: how they are read, and what the gateway itself answers to them.

    POST   /account/queue/messages                     puts a message
    GET    /account/queue/messages?numofmessages=32    gets messages, or peeks at them (peekonly)
    PUT    /account/queue/messages/ID?popreceipt=...   updates one
    DELETE /account/queue/messages/ID?popreceipt=...   deletes one

The account is in the path, or in the host: ``account.queue.core.windows.net``. A queue is a
partition: "all messages for the same queue are stored in the same partition, which is controlled by
a single server" (data partitioning strategies, "Partitioning Azure storage queues"). Forms and
answers are those of the REST reference of Queue Storage.
"""

from __future__ import annotations

import datetime as dt
import email.utils
import re
import uuid
from collections.abc import Mapping
from typing import ClassVar
from urllib.parse import parse_qs, unquote

from harness.gateway import answers
from harness.gateway.answers import GatewayAnswer, Unpassed
from harness.gateway.dialect import XmlDialect, in_xml
from harness.gateway.requests import NOTHING, Asked
from harness.model.operation import Kind
from harness.model.services.queues import QUEUES

_MESSAGES = "messages"
_TABLE = QUEUES.beside
_KINDS = {
    # Method, and whether the id of a message follows.
    ("POST", False): Kind.PUT_MESSAGE,
    ("GET", False): Kind.GET_MESSAGES,
    ("PUT", True): Kind.UPDATE_MESSAGE,
    ("DELETE", True): Kind.DELETE_MESSAGE,
}
_PUT_AT = re.compile(rb"<InsertionTime>([^<]{1,60})")
_OF_ACCOUNT = {"restype": "service", "comp": "list"}
_KEPT_FOR = dt.timedelta(days=7)


def is_about_messages(target: str) -> bool:
    """Whether a target with an account in its path is about messages; none about tables is."""
    if "/messages" not in target:
        return False
    parts = target.partition("?")[0].split("/")
    return parts[3:4] == [_MESSAGES] and parts[2] != ""


def read_queue_request(method: str, target: str) -> Asked:
    """Parse a request to the queue service; ``target`` is percent-encoded.

    A request that clears a queue counts no messages: no answer says how many there were.
    """
    path, _, query = target.partition("?")
    parts = unquote(path).split("/")[1:] or [""]
    given = {name.lower(): texts[0] for name, texts in parse_qs(query).items()}
    if any(given.get(name, "").lower() == text for name, text in _OF_ACCOUNT.items()):
        return NOTHING
    # The account is in front of the queue, or not in the path.
    place = 2 if parts[2:3] == [_MESSAGES] else 1
    message = parts[place:]
    if message[:1] == [_MESSAGES] and len(message) <= 2 and "comp" not in given:
        kind = _KINDS.get((method, len(message) == 2))
        if kind is not None:
            return _about_messages(kind, parts[place - 1], given)
        if (method, place) != ("PUT", 1):
            return _about_queue(parts[place - 1])
    if not parts[-1] or len(parts) > 2:
        return NOTHING
    return _about_queue(parts[-1], drops=method == "DELETE" and "comp" not in given)


def oldest_age_s(answer: GatewayAnswer) -> float:
    """Seconds since the oldest message in an answer was put; 0 without any, or without times."""
    put = [text.decode("latin-1") for text in set(_PUT_AT.findall(answer.body))]
    try:
        now = email.utils.parsedate_to_datetime(answer.headers.get("Date", ""))
        ages = [now - email.utils.parsedate_to_datetime(text) for text in put]
    except (ValueError, TypeError):
        return 0.0
    return max((age.total_seconds() for age in ages), default=0.0)


def _about_queue(name: str, *, drops: bool = False) -> Asked:
    return Asked(None, _TABLE, _TABLE, name, drops_table=drops)


def _about_messages(kind: Kind, queue: str, given: Mapping[str, str]) -> Asked:
    top = None
    if kind is Kind.GET_MESSAGES:
        if given.get("peekonly", "").lower() == "true":
            kind = Kind.PEEK_MESSAGES
        number = given.get("numofmessages", "1")
        top = int(number) if number.isdecimal() and len(number) < 10 else 1
    return Asked(kind, _TABLE, _TABLE, queue, 1, top=top)


class QueueDialect(XmlDialect):
    """That of Queue Storage: bodies in XML, where tables have JSON."""

    server = QUEUES.server
    about_stores: ClassVar = {
        "GET": "GetQueueMetadata",
        "PUT": "CreateQueue",
        "DELETE": "DeleteQueue",
    }

    shown_by = staticmethod(is_about_messages)

    def read(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Asked:
        return read_queue_request(method, target)

    def acknowledged(self, request: Unpassed) -> GatewayAnswer:
        kind, now = request.asked.kind, request.now
        made = answers.usual_headers(request.headers, str(uuid.uuid4()))
        receipt, shown = uuid.uuid4().hex, email.utils.format_datetime(now, usegmt=True)
        if kind is Kind.DELETE_MESSAGE:
            return GatewayAnswer(204, made)
        if kind is Kind.UPDATE_MESSAGE:
            more = {"x-ms-popreceipt": receipt, "x-ms-time-next-visible": shown}
            return GatewayAnswer(204, made | more)
        expires = email.utils.format_datetime(now + _KEPT_FOR, usegmt=True)
        text = (
            f"<QueueMessagesList><QueueMessage><MessageId>{uuid.uuid4()}</MessageId>"
            f"<InsertionTime>{shown}</InsertionTime><ExpirationTime>{expires}</ExpirationTime>"
            f"<PopReceipt>{receipt}</PopReceipt><TimeNextVisible>{shown}</TimeNextVisible>"
            "</QueueMessage></QueueMessagesList>"
        )
        return in_xml(201, made, text)

    def unstored(self, request: Unpassed) -> GatewayAnswer:
        method, asked = request.method, request.asked
        if asked.writes:
            return self.acknowledged(request)
        made = answers.usual_headers(request.headers, str(uuid.uuid4()))
        if asked.receives:
            return in_xml(200, made, "<QueueMessagesList />")
        if asked.partition_key is not None and method in ("PUT", "DELETE"):
            # "Set Queue Metadata" and "Set Queue ACL" create nothing.
            created = method == "PUT" and "comp=" not in request.target
            return GatewayAnswer(201 if created else 204, made)
        if asked.partition_key is not None and method in ("GET", "HEAD"):
            return GatewayAnswer(200, made | {"x-ms-approximate-messages-count": "0"})
        return super().unstored(request)
