"""One HTTP answer, in whatever pieces it comes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.endpoint.http.reader import HTTPParseError, Reader, is_bare_success

BARE = b"HTTP/1.1 204 No Content\r\nETag: x\r\nContent-Length: 0\r\n\r\n"
ANSWER = (
    b"HTTP/1.1 100 Continue\r\nInterim: yes\r\n\r\n"
    b"HTTP/1.1 404 Not Found\r\nDate: today\r\nEmpty:\r\nX-Ms-Error-Code: Code\r\n"
    b"Content-Length: 5\r\n\r\nhello"
)


@given(st.lists(st.integers(1, len(ANSWER) - 1), max_size=30).map(sorted))
def test_an_answer_is_the_same_in_any_pieces(cuts: list[int]) -> None:
    """However an answer is cut, status, headers and body are the same."""
    reader = Reader()
    for start, end in zip([0, *cuts], [*cuts, len(ANSWER)], strict=True):
        assert not reader.whole
        if start < end:
            reader.feed(ANSWER[start:end])
    assert reader.whole
    assert not reader.surplus
    assert (reader.get_code(), reader.body()) == (404, b"hello")
    assert reader.headers() == {"empty": "", "x-ms-error-code": "Code", "content-length": "5"}


def test_what_follows_an_answer_is_surplus() -> None:
    """A second answer, even its first bytes, shows that the connection is out of step."""
    reader = Reader()
    reader.feed(BARE + b"HTTP/1.1 2")
    assert reader.surplus


def test_an_answer_without_length_ends_with_its_connection() -> None:
    """The end of the connection, fed as no data, completes an answer without a length."""
    reader = Reader()
    reader.feed(b"HTTP/1.1 200 OK\r\n\r\nhel")
    reader.feed(b"lo")
    assert not reader.whole
    reader.feed(b"")
    assert (reader.whole, reader.body(), reader.should_keep_alive()) == (True, b"hello", False)


def test_an_answer_that_is_cut_off_is_an_error() -> None:
    """The end of the connection before the promised length is an error."""
    reader = Reader()
    reader.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhel")
    with pytest.raises(HTTPParseError):
        reader.feed(b"")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        BARE[:-1],
        BARE + b"H",
        BARE * 2,
        BARE.replace(b"204", b"200"),
        BARE.replace(b"1.1", b"1.0"),
        BARE.replace(b"ETag: x", b"CONNECTION: Close"),
    ],
)
def test_only_one_whole_204_needs_no_parser(data: bytes) -> None:
    """A part, more than one, another status and a connection that ends go through the parser."""
    assert is_bare_success(BARE)
    assert not is_bare_success(data)
