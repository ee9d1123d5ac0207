"""One exchange over a connection that brings the answer in any pieces, or not at all."""

from __future__ import annotations

import contextlib
import itertools
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.endpoint.http.channel import talk
from harness.endpoint.http.exchange import (
    Exchange,
    Reader,
    ResponseFault,
    is_bare_success,
    read_at_once,
)
from harness.model.outcome import Fault

BODY = b'{"PartitionKey":"p"}'
NO_CONTENT = b"HTTP/1.1 204 No Content\r\nETag: x\r\nContent-Length: 0\r\n\r\n"
FOUND = b"HTTP/1.1 200 OK\r\nX-A: b \r\nDate: x\r\ncontent-length: 20\r\n\r\n" + BODY
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: b\r\n\r\n"
    b'5\r\n{"Par\r\nf\r\ntitionKey":"p"}\r\n0\r\n\r\n'
)
REFUSED = b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\nRetry-After: 2\r\n\r\nBusy"
INTERIM = b"HTTP/1.1 100 Continue\r\nInterim: yes\r\nEmpty:\r\n\r\n" + REFUSED
CLOSING = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 20\r\n\r\n" + BODY
WITHOUT_LENGTH = b"HTTP/1.1 200 OK\r\nX-A: b\r\n\r\n" + BODY
KEPT = [NO_CONTENT, FOUND, CHUNKED, REFUSED, INTERIM, b"HTTP/1.1 100 Continue\r\n\r\n" + REFUSED]


class Pieces:
    """A connection that brings these pieces, and then ends or says nothing more."""

    new = False
    timeout_s = 1.0
    waits_since_s = math.inf

    def __init__(self, *pieces: bytes, then: BaseException | None = None) -> None:
        self._pieces = [piece for piece in pieces if piece]
        self._then = then

    def send(self, data: bytes) -> None:
        pass

    def more(self, size: int, within_s: float = 1.0) -> bytes:
        if self._pieces:
            piece = self._pieces.pop(0)
            if len(piece) > size:
                self._pieces.insert(0, piece[size:])
            return piece[:size]
        if self._then is not None:
            raise self._then
        return b""

    first = more


def cut(data: bytes, places: list[int]) -> list[bytes]:
    bounds = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(bounds)]


def read(*pieces: bytes, then: BaseException | None = None) -> tuple[bool, Exchange]:
    exchange = Exchange("id")
    return talk(Pieces(*pieces, then=then), b"request", exchange), exchange  # type: ignore[arg-type]


def told(kept: bool, exchange: Exchange) -> tuple[object, ...]:
    headers = {} if exchange.status == 204 else exchange.headers
    return kept, exchange.status, headers, exchange.body, exchange.bytes_received


@given(st.sampled_from([*KEPT, CLOSING, WITHOUT_LENGTH]), st.lists(st.integers(0), max_size=8))
@example(WITHOUT_LENGTH, [])
@example(KEPT[-1], [])
def test_an_answer_is_the_same_in_any_pieces(answer: bytes, places: list[int]) -> None:
    """However an answer is cut, what is read and whether the connection is kept is the same."""
    whole = told(*read(answer))
    assert told(*read(*cut(answer, places))) == whole
    assert whole[-1] == len(answer)
    assert whole[0] is (answer in KEPT)


def test_an_interim_answer_leaves_nothing() -> None:
    """Status, headers and body are those of the answer behind it."""
    assert told(*read(INTERIM))[:4] == told(*read(REFUSED))[:4]
    assert read(REFUSED)[1].headers == {"content-length": "4", "retry-after": "2"}


@given(st.sampled_from([*KEPT, CLOSING]), st.integers(0), st.lists(st.integers(0), max_size=4))
def test_an_answer_that_ends_early_is_a_reset(
    answer: bytes, length: int, places: list[int]
) -> None:
    """Wherever the connection ends inside an answer, there is none."""
    half = answer[: length % len(answer)]
    with pytest.raises(ResponseFault) as caught:
        read(*cut(half, places))
    assert caught.value.fault is Fault.RESET


@given(st.sampled_from(KEPT), st.integers(0), st.sampled_from([TimeoutError, ConnectionResetError]))
def test_an_answer_that_stops_is_a_fault_of_its_name(
    answer: bytes, length: int, error: type[OSError]
) -> None:
    """Silence inside an answer is a time-out, a reset a reset."""
    with pytest.raises(ResponseFault) as caught:
        read(answer[: length % len(answer)], then=error("so"))
    assert caught.value.fault is (Fault.READ_TIMEOUT if error is TimeoutError else Fault.RESET)


# Empty lines before an answer are no harm (RFC 9112, "Message Parsing").
_SURPLUS = st.sampled_from([b"HTTP/1.1 2", *KEPT]) | st.binary(min_size=1, max_size=5).filter(
    lambda data: data.strip(b"\r\n")
)


@given(st.sampled_from(KEPT), _SURPLUS, st.lists(st.integers(0), max_size=4))
def test_what_is_behind_an_answer_costs_its_connection(
    answer: bytes, surplus: bytes, places: list[int]
) -> None:
    """A body longer than announced, or a second answer, is never taken for the next answer."""
    kept, received = False, 0
    # The surplus may be no HTTP at all, which is as good.
    with contextlib.suppress(ResponseFault):
        kept, exchange = read(*cut(answer + surplus, places))
        received = exchange.bytes_received
    assert not kept or received == len(answer)


@given(st.binary(min_size=1, max_size=300), st.lists(st.integers(0), max_size=4))
@example(b"\r\n", [])
def test_garbage_is_no_answer(garbage: bytes, places: list[int]) -> None:
    """Bytes at random are a bad answer or a reset, and never a success."""
    with pytest.raises(ResponseFault) as caught:
        read(*cut(garbage, places))
    assert caught.value.fault in (Fault.BAD_ANSWER, Fault.RESET)


_TOKEN = st.from_regex(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,12}", fullmatch=True)
_VALUE = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=12)


@given(
    st.integers(100, 599),
    st.lists(st.tuples(_TOKEN, _VALUE), max_size=5),
    st.sampled_from(["Content-Length", "content-length", "CONTENT-LENGTH"]),
    st.binary(max_size=30),
    st.integers(0, 5),
)
def test_what_is_read_at_once_is_what_the_parser_reads(
    status: int, headers: list[tuple[str, str]], name: str, body: bytes, place: int
) -> None:
    """An answer that needs no parser is read by it to the same end."""
    lines = [f"{name}: {value}" for name, value in headers]
    lines.insert(place, f"{name}: {len(body)}")
    data = "\r\n".join([f"HTTP/1.1 {status} Why", *lines, "", ""]).encode() + body
    exchange = Exchange("id")
    if not read_at_once(data, exchange):
        return
    reader = Reader()
    reader.feed(data)
    assert (reader.whole, reader.surplus, reader.keeps_alive) == (True, False, True)
    assert reader.status == exchange.status
    assert (reader.body(), reader.headers()) == (exchange.body, exchange.headers)


@pytest.mark.parametrize("answer", [FOUND, REFUSED])
def test_the_usual_answers_need_no_parser(answer: bytes) -> None:
    """A whole answer with a length is read at once; a part of it, or more than it, is not."""
    assert read_at_once(answer, Exchange("id"))
    for other in (answer[:-1], answer + b"x", b" " + answer, answer.replace(b"\r\n", b"\n")):
        assert not read_at_once(other, Exchange("id"))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        NO_CONTENT[:-1],
        NO_CONTENT + b"H",
        NO_CONTENT * 2,
        NO_CONTENT.replace(b"204", b"200"),
        NO_CONTENT.replace(b"1.1", b"1.0"),
        NO_CONTENT.replace(b"ETag: x", b"CONNECTION: Close"),
    ],
)
def test_only_one_whole_204_needs_no_parser(data: bytes) -> None:
    """A part, more than one, another status and a connection that ends go through the parser."""
    assert is_bare_success(NO_CONTENT)
    assert not is_bare_success(data)
