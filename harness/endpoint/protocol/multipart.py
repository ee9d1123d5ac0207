"""Transactions as multipart messages: the parts of the request, and their responses.

Cosmos DB ends some lines between the parts of a response with a line feed alone; the responses
inside are HTTP (recorded answers in the tests of Azure.Data.Tables for .NET).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from harness.endpoint.http.exchange import (
    MAX_HEAD_BYTES,
    PartRefused,
    ResponseFault,
    ResponseHeaders,
    bad_answer,
)
from harness.model.entity import MAX_TRANSACTION_OPERATIONS

_BOUNDARY = re.compile(rb"boundary=(?:\"([^\"\r\n]{1,70})\"|([^\s;\"]{1,70}))", re.IGNORECASE)
_STATUS = re.compile(rb"HTTP/1\.[01] ([1-5][0-9][0-9])\b")
_EMPTY_LINE = b"\r\n\r\n"
_BARE_EMPTY_LINE = b"\n\n"
_MOST_BOUNDARIES = 2 * MAX_TRANSACTION_OPERATIONS


def message_of(boundary: str, parts: Sequence[str]) -> bytes:
    """The body of a transaction of these requests.

    ``boundary`` is the end of both boundaries, ``batch_`` and ``changeset_``; no part contains it.
    """
    begin = (
        f"--changeset_{boundary}\r\nContent-Type: application/http\r\n"
        "Content-Transfer-Encoding: binary\r\nContent-ID: "
    )
    lines = [
        f"--batch_{boundary}\r\n"
        f"Content-Type: multipart/mixed; boundary=changeset_{boundary}\r\n\r\n"
    ]
    for number, part in enumerate(parts):
        lines.append(f"{begin}{number}\r\n\r\n{part}\r\n")
    lines.append(f"--changeset_{boundary}--\r\n\r\n--batch_{boundary}--\r\n")
    return "".join(lines).encode("ascii")


def require_success(content_type: str, body: bytes, count: int) -> None:
    """Check that all ``count`` parts of a transaction were executed, by the whole response.

    Raises:
        PartRefused: the service refused a part, and so executed none.
        ResponseFault: the body is not the response to a transaction of ``count`` parts.
    """
    responses = part_responses(content_type, body)
    refused = _first_refused(responses)
    if refused is not None:
        raise refused
    if len(responses) != count:
        raise bad_answer(f"{count} parts, but {len(responses)} responses")


def refused_part(content_type: str, body: bytes) -> PartRefused | None:
    """The first refused part in the response to a transaction, or None; see `part_responses`."""
    return _first_refused(part_responses(content_type, body))


def _first_refused(responses: Sequence[PartResponse]) -> PartRefused | None:
    for response in responses:
        if not 200 <= response.status < 300:
            headers = ResponseHeaders.of(response.head)
            return PartRefused(response.status, headers, response.content)
    return None


class PartResponse(NamedTuple):
    """The response to one part of a transaction, its headers still in bytes."""

    status: int
    head: bytes
    content: bytes


def part_responses(content_type: str, body: bytes) -> list[PartResponse]:
    """The responses to the parts: those of a changeset in the message, or of the message itself.

    Raises:
        ResponseFault: the body is not the response to a transaction.
    """
    found: list[PartResponse] = []
    for head, content in _parts(content_type.encode("latin-1", "replace"), body):
        if b"multipart/mixed" in head.lower():
            found += [_part_response(inner) for _, inner in _parts(head, content)]
        else:
            found.append(_part_response(content))
    return found


def _part_response(message: bytes) -> PartResponse:
    status = _STATUS.match(message)
    if status is None:
        raise _unreadable("a part is not an HTTP response")
    head, _, content = message.partition(_EMPTY_LINE)
    if len(head) > MAX_HEAD_BYTES:
        raise _unreadable("the head of a part is too large")
    return PartResponse(int(status[1]), head, content)


def _parts(head: bytes, body: bytes) -> list[tuple[bytes, bytes]]:
    """Head and content of each part of the multipart message that ``head`` describes."""
    named = _BOUNDARY.search(head)
    if named is None:
        raise _unreadable("it has no boundary")
    boundary = b"\n--" + (named[1] or named[2])
    if body.count(boundary) > _MOST_BOUNDARIES:
        raise _unreadable("it has too many parts")
    _, *sections = (b"\n" + body).split(boundary)
    parts: list[tuple[bytes, bytes]] = []
    for section in sections:
        if section.startswith(b"--"):
            return parts
        inner, empty_line, content = section.partition(_EMPTY_LINE)
        if _BARE_EMPTY_LINE in inner:
            inner, empty_line, content = section.partition(_BARE_EMPTY_LINE)
        if not empty_line:
            break
        parts.append((inner, content.removesuffix(b"\r")))
    raise _unreadable("it is cut off")


def _unreadable(why: str) -> ResponseFault:
    return bad_answer(f"the response to a transaction cannot be read: {why}")
