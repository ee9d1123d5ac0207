"""What Cosmos DB charged for a request, read from any text."""

from __future__ import annotations

import pytest

from harness.endpoint.http.exchange import Exchange
from harness.endpoint.protocol.responses import charge_of

MULTIPART = "multipart/mixed; boundary=batch"
PARTS = (
    b"--batch\r\nContent-Type: multipart/mixed; boundary=changes\r\n\r\n"
    b"--changes\r\nContent-Type: application/http\r\n\r\n"
    b"HTTP/1.1 204 No Content\r\nx-ms-request-charge: 5.33\r\n\r\n\r\n"
    b"--changes\r\nContent-Type: application/http\r\n\r\n"
    b"HTTP/1.1 204 No Content\r\nx-ms-request-charge: 7\r\n\r\n\r\n"
    b"--changes--\r\n--batch--\r\n"
)


def charged(body: bytes, status: int = 202, **headers: str) -> int:
    """The charge of a response with these headers."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return charge_of(status, named.get, body)


def test_the_whole_response_comes_before_its_parts() -> None:
    """What the response names is its charge, also where its parts name more."""
    assert charged(PARTS, x_ms_request_charge="9.5", content_type=MULTIPART) == 950
    assert charged(b"", 204, x_ms_request_charge="1.07") == 107
    assert charged(b"", 429, x_ms_request_charge="much") == 0
    assert charged(b"", 204) == 0


def test_the_parts_of_a_transaction_are_summed() -> None:
    """Only parts that can be read charge something."""
    assert charged(PARTS, content_type=MULTIPART) == 533 + 700
    assert charged(PARTS[:-30], content_type=MULTIPART) == 0
    assert charged(PARTS) == 0
    assert charged(PARTS.replace(b"5.33", b"much"), content_type=MULTIPART) == 700
    assert charged(PARTS, 200, content_type=MULTIPART) == 0


@pytest.mark.parametrize("parsed", [False, True])
def test_one_header_is_found_in_a_head(parsed: bool) -> None:
    """A header is found in any case, whether or not the others were parsed."""
    exchange = Exchange("id")
    assert exchange.header("etag") == ""
    exchange = Exchange("id")
    exchange.head = b"HTTP/1.1 204 No ETag: 1\r\nX-MS-Request-Charge:  2.5 \r\nETag: x\r\n\r\n"
    if parsed:
        assert len(exchange.headers) == 2
    assert exchange.header("x-ms-request-charge") == "2.5"
    assert exchange.header("etag") == "x"
    assert exchange.header("request-charge") == ""
