"""Transactions: the parts of one request, and the answers to them in one answer.

What is between two boundaries is a small header of its own, an empty line, and a request or an
answer as it would be sent alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.endpoint.exchange import AnswerHeaders, PartRefused, ResponseFault
from harness.model.outcome import Fault

_BOUNDARY = re.compile(rb"boundary=(?:\"([^\"\r\n]{1,70})\"|([^\s;\"]{1,70}))", re.IGNORECASE)
_STATUS = re.compile(rb"HTTP/1\.[01] ([1-5][0-9][0-9])\b")
_EMPTY_LINE = b"\r\n\r\n"


def message_of(boundary: str, parts: Sequence[str]) -> bytes:
    """The body of a transaction.

    Args:
        boundary: Ends both boundaries, ``batch_`` and ``changeset_``; in no part.
        parts: The requests, each whole.
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
    """See to it that all ``count`` parts of a transaction were done.

    Args:
        content_type: Of the whole answer.
        body: Of the whole answer.
        count: How many parts there were.

    Raises:
        PartRefused: one was refused, and so none was done.
        ResponseFault: it is no answer to a transaction of so many parts.
    """
    answers = _answers(content_type, body)
    refused = _first_refused(answers)
    if refused is not None:
        raise refused
    if len(answers) != count:
        raise ResponseFault(Fault.BAD_ANSWER, f"{count} parts, but {len(answers)} answers")


def refused_part(content_type: str, body: bytes) -> PartRefused | None:
    """The first refusal inside the answer to a transaction; None where there is none.

    Raises:
        ResponseFault: it is no answer to a transaction.
    """
    return _first_refused(_answers(content_type, body))


def _first_refused(answers: Sequence[bytes]) -> PartRefused | None:
    for answer in answers:
        status = _STATUS.match(answer)
        if status is None:
            raise _unreadable("a part is no answer")
        if not 200 <= int(status[1]) < 300:
            head, _, content = answer.partition(_EMPTY_LINE)
            return PartRefused(int(status[1]), AnswerHeaders.of(head), content)
    return None


def _answers(content_type: str, body: bytes) -> list[bytes]:
    """The answers inside: those of a set of changes inside the whole, or of the whole itself."""
    found: list[bytes] = []
    for head, content in _parts(content_type.encode("latin-1"), body):
        if b"multipart/mixed" in head.lower():
            found += [inner for _, inner in _parts(head, content)]
        else:
            found.append(content)
    return found


def _parts(head: bytes, body: bytes) -> list[tuple[bytes, bytes]]:
    """Head and content of each part of the multipart message that ``head`` announces."""
    named = _BOUNDARY.search(head)
    if named is None:
        raise _unreadable("it has no boundary")
    boundary = b"\r\n--" + (named[1] or named[2])
    _, *sections = (b"\r\n" + body).split(boundary)
    parts: list[tuple[bytes, bytes]] = []
    for section in sections:
        if section.startswith(b"--"):
            return parts
        inner, empty_line, content = section.partition(_EMPTY_LINE)
        if not empty_line:
            break
        parts.append((inner, content))
    raise _unreadable("it breaks off")


def _unreadable(why: str) -> ResponseFault:
    return ResponseFault(Fault.BAD_ANSWER, f"the answer to a transaction cannot be read: {why}")
