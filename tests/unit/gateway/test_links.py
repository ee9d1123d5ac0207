"""Links in bodies: which are replaced, and that the size of pieces does not matter."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.gateway.answers import GatewayAnswer
from harness.gateway.headers import Headers
from harness.gateway.large_bodies import ReplacedRest
from harness.gateway.links import route_of

INSIDE = "https://acme.table.core.windows.net"
OUTSIDE = "http://127.0.0.1:10102"
ROUTE = route_of(
    scheme="http",
    host="127.0.0.1:10102",
    upstream_scheme="https",
    upstream_host="acme.table.core.windows.net",
)
JSON = '{"odata.metadata":"@/$metadata#t","value":[{"odata.id":"@/t(a)","Text":"%s/"}]}'.replace(
    "%s", INSIDE
)
FEED = (
    """<?xml version="1.0" encoding="utf-8"?>
<feed xml:base='@/' xmlns="http://www.w3.org/2005/Atom"><title type="text">t</title>
<id>@/t</id><link rel="self" title="t" href="t" />
<entry m:etag="W/&quot;1&quot;"><id>@/t(PartitionKey='p',RowKey='r')</id><content>
<m:properties><d:id>%s/t</d:id><d:Text>&lt;id>%s/</d:Text></m:properties></content></entry></feed>"""
).replace("%s", INSIDE)
SERVICE = '<service xmlns="http://www.w3.org/2007/app" xml:base="@"><workspace /></service>'


def test_an_account_in_the_host_name_is_in_the_path_behind() -> None:
    """Parts of a transaction get the account, and links in answers lose it."""
    route = route_of("https", "acme.table.core.windows.net", "http", "127.0.0.1:1", "/dev")
    assert (route.host, route.inside) == ("127.0.0.1:1", b"http://127.0.0.1:1/dev")
    headers = Headers([(b"Content-Type", b"multipart/mixed; boundary=b")])
    part = b"PUT https://acme.table.core.windows.net/orders(a) HTTP/1.1\r\n"
    assert route.request_body(headers, part) == b"PUT http://127.0.0.1:1/dev/orders(a) HTTP/1.1\r\n"
    kind = Headers([(b"Content-Type", b"application/json")])
    body = b'{"odata.metadata":"http://127.0.0.1:1/dev/$metadata#orders"}'
    found = route.answer(GatewayAnswer(status=200, headers=kind, body=body))
    assert (
        found.body == b'{"odata.metadata":"https://acme.table.core.windows.net/$metadata#orders"}'
    )


def answered(content_type: str, body: bytes, *more: tuple[bytes, bytes]) -> GatewayAnswer:
    """The answer that the gateway passes on."""
    kind = (b"Content-Type", content_type.encode())
    return ROUTE.answer(GatewayAnswer(status=200, headers=Headers([kind, *more]), body=body))


@pytest.mark.parametrize(
    ("content_type", "template"),
    [
        ("application/json;odata=fullmetadata;streaming=true;charset=utf-8", JSON),
        ("application/atom+xml;type=feed;charset=utf-8", FEED),
        ("application/xml", SERVICE),
    ],
)
def test_links_lead_to_the_gateway_in_every_representation(
    content_type: str, template: str
) -> None:
    """Plain or packed, links are replaced; what an entity contains is not."""
    sent, expected = (template.replace("@", host).encode() for host in (INSIDE, OUTSIDE))
    assert answered(content_type, sent).body == expected
    packed = answered(content_type, gzip.compress(sent), (b"Content-Encoding", b"gzip"))
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.body) == expected


@pytest.mark.parametrize(
    "field",
    [
        (b"Content-Encoding", b"br"),
        (b"Content-Encoding", b"gzip"),
        (b"Content-MD5", b"x"),
    ],
)
def test_a_body_that_cannot_be_changed_is_passed_on(field: tuple[bytes, bytes]) -> None:
    """One in another coding, one that is not what its coding says, and one with a checksum."""
    body = JSON.replace("@", INSIDE).encode()
    assert answered("application/json", body, field).body == body


def test_a_packed_body_without_links_keeps_its_bytes() -> None:
    """It is not packed again."""
    body = gzip.compress(b'{"value":[]}', compresslevel=9)
    assert answered("application/json", body, (b"Content-Encoding", b"gzip")).body is body


class Pieces:
    """A body that comes in these pieces, and then ends once."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = [*pieces, b""]
        self.closed = False

    async def next_piece(self) -> bytes:
        return self._pieces.pop(0)

    def close(self) -> None:
        self.closed = True


@given(
    st.lists(st.sampled_from(["<", "<a", "a>", "<a>", "x", "<<a>>"]), max_size=20),
    st.lists(st.integers(0, 60), max_size=8),
)
def test_the_pieces_of_a_body_do_not_matter(words: list[str], cuts: list[int]) -> None:
    """However a body is cut, every match is replaced, and every byte comes once."""
    body = "".join(words).encode()
    places = sorted({0, len(body), *(cut for cut in cuts if cut < len(body))})
    pieces = [body[a:b] for a, b in itertools.pairwise(places)]
    rest = ReplacedRest(Pieces(pieces[1:]), re.compile(rb"<a(?=>)"), lambda _: b"[link]", 2)

    async def changed() -> bytes:
        got = [rest.replace(pieces[0] if pieces else b"")]
        while piece := await rest.next_piece():
            got.append(piece)
        # The end is the end.
        assert await rest.next_piece() == b""
        return b"".join(got)

    assert asyncio.run(changed()) == body.replace(b"<a>", b"[link]>")
