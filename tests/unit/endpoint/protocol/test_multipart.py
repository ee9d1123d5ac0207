"""Transactions as one message, and the answers to their parts."""

from __future__ import annotations

from email import message_from_bytes
from email.message import Message
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.endpoint.http.exchange import PartRefused, ResponseFault
from harness.endpoint.protocol.multipart import message_of, refused_part, require_success

OK = "HTTP/1.1 204 No Content\r\nETag: x\r\n\r\n"
REFUSED = "HTTP/1.1 409 Conflict\r\nX-Ms-Error-Code: No\r\nContent-Length: 5\r\n\r\n{  }\n"


def answered(*answers: str, quotes: bool = False, nested: bool = True) -> tuple[str, bytes]:
    """Content type and body of the answer to a transaction."""
    begin = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
    boundary = "changeset" if nested else "batch"
    body = "".join(f"--{boundary}\r\n{begin}{answer}\r\n" for answer in answers)
    body += f"--{boundary}--\r\n"
    if nested:
        named = '"changeset"' if quotes else "changeset"
        kind = f"Content-Type: multipart/mixed; boundary={named}\r\n\r\n"
        body = f"--batch\r\n{kind}{body}--batch--\r\n"
    return "multipart/mixed; boundary=batch", body.encode()


@given(st.lists(st.text(st.characters(codec="ascii", exclude_categories=["Cc"])), max_size=5))
def test_the_parts_are_found_by_a_mail_reader(texts: list[str]) -> None:
    """What is sent is a multipart message as mail has it, each part whole and numbered."""
    parts = [f"POST / HTTP/1.1\r\n\r\n{text}" for text in texts] or ["POST / HTTP/1.1\r\n\r\n"]
    head = b"Content-Type: multipart/mixed; boundary=batch_run-1-a\r\n\r\n"
    whole = message_from_bytes(head + message_of("run-1-a", parts))
    (changes,) = cast("list[Message]", whole.get_payload())
    found = cast("list[Message]", changes.get_payload())
    assert [cast(bytes, part.get_payload(decode=True)).decode() for part in found] == parts
    assert [part["Content-ID"] for part in found] == [str(n) for n in range(len(parts))]


@pytest.mark.parametrize("quotes", [False, True])
@pytest.mark.parametrize("nested", [False, True])
def test_a_transaction_that_was_done(quotes: bool, nested: bool) -> None:
    """An answer of success to each part is a success."""
    require_success(*answered(OK, OK, quotes=quotes, nested=nested), 2)
    assert refused_part(*answered(OK, OK, quotes=quotes, nested=nested)) is None


@pytest.mark.parametrize("answers", [(REFUSED,), (OK, REFUSED, OK)])
def test_a_refused_part_is_found(answers: tuple[str, ...]) -> None:
    """The part that was refused is told with its status, headers and body."""
    with pytest.raises(PartRefused) as caught:
        require_success(*answered(*answers), 3)
    refused = caught.value
    assert (refused.status, refused.body) == (409, b"{  }\n")
    assert refused.headers.get("x-ms-error-code") == "No"


def test_another_number_of_answers_is_no_success() -> None:
    """Where a part was not answered nobody knows what became of it."""
    with pytest.raises(ResponseFault, match="3 parts, but 2 responses"):
        require_success(*answered(OK, OK), 3)


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/json", b"{}"),
        ("multipart/mixed; boundary=batch", b"what"),
        ("multipart/mixed; boundary=batch", b""),
        ("multipart/mixed; boundary=batch", b"--batch\r\nno empty line\r\n--batch--"),
        answered("what"),
    ],
)
def test_nonsense_is_a_bad_answer(content_type: str, body: bytes) -> None:
    """What cannot be read is neither a success nor a refusal."""
    with pytest.raises(ResponseFault, match="cannot be read"):
        require_success(content_type, body, 1)


@given(st.data())
def test_an_answer_that_breaks_off_is_a_bad_answer(data: st.DataObject) -> None:
    """However much of it is missing, a part of an answer is no success."""
    content_type, body = answered(OK, OK)
    cut = data.draw(st.integers(0, len(body) - len("--\r\n") - 1))
    with pytest.raises(ResponseFault):
        require_success(content_type, body[:cut], 2)
