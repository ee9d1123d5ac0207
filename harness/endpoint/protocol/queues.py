"""Requests of the Queue protocol as bytes, and the messages in its responses, which are XML.

The text of a message is sent as it is, as azure-storage-queue does by default.
"""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from harness.endpoint.credential import ServiceDate
from harness.endpoint.endpoint import Endpoint
from harness.endpoint.http.channel import USER_AGENT
from harness.endpoint.http.exchange import RECEIPT_HEADER, Exchange, bad_answer
from harness.endpoint.protocol.requests import VERSION
from harness.model.operation import HIDDEN_S, MESSAGE_TEXT, Kind, Message, Operation

XML = "application/xml"
_MESSAGES = "messages"
_GET, _PEEK, _PUT = Kind.GET_MESSAGES, Kind.PEEK_MESSAGES, Kind.PUT_MESSAGE
_UPDATE = Kind.UPDATE_MESSAGE
# A parser of XML would read a carriage return as the end of a line.
_AS_REFERENCES = {"\r": "&#13;"}


class QueueRequestWriter:
    """Writes and signs the requests to the queues of one account.

    A request id identifies the request in the logs of the service.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        parts = urlsplit(endpoint.url)
        self._account, self._account_path = endpoint.account, parts.path
        self._end = f" HTTP/1.1\r\nHost: {parts.netloc}\r\nUser-Agent: {USER_AGENT}\r\n"
        self._signer = endpoint.credential
        self._date = ServiceDate()

    def single(self, operation: Operation, queue: str, request_id: str) -> bytes:
        """The request of an operation on the messages of a queue."""
        kind, content = operation.kind, operation.properties or {}
        asked: dict[str, str] = {}
        if kind is _PEEK:
            asked["peekonly"] = "true"
        if kind.receives:
            asked["numofmessages"] = str(operation.top or 1)
        if operation.etag is not None:
            asked["popreceipt"] = operation.etag
        if HIDDEN_S in content:
            asked["visibilitytimeout"] = str(content[HIDDEN_S])
        path = f"{quote(queue, safe='')}/{_MESSAGES}"
        if operation.row_key:
            path += f"/{quote(operation.row_key, safe='')}"
        body = b""
        if MESSAGE_TEXT in content:
            body = _message_xml(str(content[MESSAGE_TEXT]))
        return self.message(kind.method, path, asked, request_id, body)

    def message(
        self,
        method: str,
        path: str,
        asked: Mapping[str, str],
        request_id: str,
        body: bytes = b"",
    ) -> bytes:
        """A request for ``path`` below the account; ``asked`` are the parameters of its query."""
        path, date = f"{self._account_path}/{path}", self._date.now()
        content_type = XML if body else ""
        named = f"x-ms-client-request-id:{request_id}\nx-ms-date:{date}\nx-ms-version:{VERSION}\n"
        parameters = "".join(f"\n{name}:{asked[name]}" for name in sorted(asked))
        # Shared Key of the Queue service signs more than that of the Table service: the length of
        # the body, the headers x-ms-*, and the query.
        signature = self._signer.authorization_of(
            f"{method}\n\n\n{len(body) or ''}\n\n{content_type}\n\n\n\n\n\n\n"
            f"{named}/{self._account}{path}{parameters}"
        )
        query = "&".join(f"{name}={quote(value, safe='')}" for name, value in asked.items())
        if self._signer.query:
            query = f"{query}&{self._signer.query}" if query else self._signer.query
        about = f"Authorization: {signature}\r\n" if signature else ""
        if content_type:
            about += f"Content-Type: {content_type}\r\n"
        if body or method in ("PUT", "POST"):
            about += f"Content-Length: {len(body)}\r\n"
        where = f"{path}?{query}" if query else path
        head = (
            f"{method} {where}{self._end}Accept: {XML}\r\n"
            f"x-ms-version: {VERSION}\r\nx-ms-date: {date}\r\n"
            f"x-ms-client-request-id: {request_id}\r\n{about}\r\n"
        )
        return head.encode("ascii") + body


def _message_xml(text: str) -> bytes:
    escaped = escape(text, _AS_REFERENCES)
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        f"<QueueMessage><MessageText>{escaped}</MessageText></QueueMessage>"
    ).encode()


def read_messages(operation: Operation, exchange: Exchange) -> list[Message]:
    """The messages in the response to an operation; none if it was refused.

    Those of a get or a peek are the ones that were returned. Of a put or an update it is the
    message itself with its new receipt. A `ResponseFault` says that the response is something else.
    """
    kind, status = operation.kind, exchange.status
    if status >= 300:
        return []
    if status != (200 if kind.receives else 201 if kind is _PUT else 204):
        raise bad_answer(f"a {kind} was answered with status {status}")
    if kind is _UPDATE:
        receipt = exchange.header(RECEIPT_HEADER)
        if not receipt:
            raise bad_answer("the response to an update has no pop receipt")
        return [Message(id=operation.row_key, receipt=receipt)]
    if status == 204:
        return []
    hidden_s = 0
    if kind is _GET and operation.properties:
        hidden_s = int(str(operation.properties[HIDDEN_S]))
    listed = document_of(exchange.body, "QueueMessagesList")
    if kind is not _PUT and len(listed) > (operation.top or 1):
        raise bad_answer(f"{len(listed)} messages came, and {operation.top or 1} were asked for")
    return [_message(element, hidden_s) for element in listed]


def document_of(body: bytes, name: str) -> ElementTree.Element:
    """The XML document of a success; a `ResponseFault` if it is none, or not a ``name``."""
    if b"<!" in body:
        # A definition of entities could expand without end; the service sends none.
        raise bad_answer("the response has a document type, or CDATA")
    try:
        root = ElementTree.fromstring(body)
    except (ElementTree.ParseError, ValueError) as error:
        raise bad_answer(f"the response is not XML: {error}") from error
    if root.tag != name:
        raise bad_answer(f"the response is not a {name}")
    return root


def _message(element: ElementTree.Element, hidden_s: int) -> Message:
    """A message of a list; one that is hidden for ``hidden_s`` seconds was got at this moment."""
    told = {part.tag: part.text or "" for part in element}
    if not told.get("MessageId"):
        raise bad_answer("a message of the response has no id")
    age_s = 0.0
    if hidden_s:
        # Both times are the service's, in whole seconds.
        got_at = _seconds(told.get("TimeNextVisible", "")) - hidden_s
        age_s = max(0.0, got_at - _seconds(told.get("InsertionTime", "")))
    gets = told.get("DequeueCount", "")
    return Message(
        id=told["MessageId"],
        receipt=told.get("PopReceipt", ""),
        text=told.get("MessageText", ""),
        gets=int(gets) if gets.isascii() and gets.isdigit() and len(gets) < 10 else 0,
        age_s=age_s,
    )


@functools.lru_cache(maxsize=256)
def _seconds(text: str) -> float:
    try:
        return parsedate_to_datetime(text).astimezone(dt.UTC).timestamp()
    except (ValueError, TypeError, LookupError, ArithmeticError) as error:
        raise bad_answer(f"a time of a message is not one: {text[:40]!r}") from error


def read_names(exchange: Exchange, element: str) -> tuple[Sequence[str], str]:
    """The names of an ``element`` of a page of a listing, and the marker of the next; or empty."""
    root = document_of(exchange.body, "EnumerationResults")
    names = [one.findtext("Name") or "" for one in root.iterfind(element)]
    return names, root.findtext("NextMarker") or ""
