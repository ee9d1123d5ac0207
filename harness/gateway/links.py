"""The Host that the endpoint gets, and the target of the links in its answers.

No signature of the table service covers Host. An endpoint whose host name contains the account
(``acme.table.core.windows.net``) gets its own host name. An endpoint that reads the account from
the path, or from the host name that the client used (``account.table.localhost``), gets the Host of
the client. Where both differ, links in a transaction lead to the endpoint, and links in answers
lead back to the gateway.
"""

from __future__ import annotations

import dataclasses
import functools
import gzip
import ipaddress
import re

from harness.gateway.answers import GatewayAnswer
from harness.gateway.headers import Headers
from harness.gateway.large_bodies import ReplacedRest
from harness.gateway.reading import unpacked
from harness.model.hosts import host_of

_METHODS = rb"(?:GET|POST|PUT|PATCH|MERGE|DELETE)"
# The largest part of a link that stands before the host.
_LONGEST_BEFORE_LINK = 1100
# A part of an answer with a length of its own would have to change with its links.
_PART_LENGTH = re.compile(rb"^Content-Length:", re.MULTILINE | re.IGNORECASE)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """How one host of the gateway is replaced by the endpoint's.

    Attributes:
        host: Value of Host for the endpoint.
        outside: Scheme and host before the gateway, in bytes.
        inside: Scheme, host and perhaps account that the endpoint sees, in bytes.
        leads: Whether these differ, so that links have to be led elsewhere.
    """

    host: str
    outside: bytes
    inside: bytes
    leads: bool

    def request_body(self, headers: Headers, body: bytes) -> bytes:
        """Return the body for the endpoint: the parts of a transaction hold whole URLs.

        A body with a checksum or a content coding stays as it is.
        """
        if (
            not headers.get("Content-Type", "").startswith("multipart/mixed")
            or "Content-MD5" in headers
            or "Content-Encoding" in headers
        ):
            return body
        return _part_url(self.outside).sub(lambda found: found[1] + self.inside, body)

    def answer(self, answer: GatewayAnswer) -> GatewayAnswer:
        """Return the answer with links to the gateway.

        A body stays as it is if it has a checksum or a content coding other than gzip. So does one
        with more bytes than the gateway holds if it is packed, or the answer to a batch.
        """
        fields = [
            (name, self.outside + value[len(self.inside) :])
            if value == self.inside or value.startswith(self.inside + b"/")
            else (name, value)
            for name, value in Headers.of(answer.headers).fields
        ]
        answer = answer._replace(headers=Headers(fields))
        links = self._links(answer)
        if links is None or "Content-MD5" in answer.headers:
            return answer
        coding = answer.headers.get("Content-Encoding", "")
        if answer.rest is not None:
            in_parts = links is _batch_link(self.inside)
            return answer if coding or in_parts else self._large(answer, links)
        if not coding:
            return answer._replace(body=self._led_outside(links, answer.body))
        return self._packed(answer, links) if coding == "gzip" else answer

    def _links(self, answer: GatewayAnswer) -> re.Pattern[bytes] | None:
        """Return the pattern of the links in a body; None for a body without links."""
        content_type = answer.headers.get("Content-Type", "")
        if content_type.startswith("multipart/mixed"):
            return _batch_link(self.inside)
        if content_type.startswith("application/json"):
            return _json_link(self.inside)
        if content_type.startswith(("application/atom+xml", "application/xml")):
            return _xml_link(self.inside)
        return None

    def _led_outside(self, links: re.Pattern[bytes], body: bytes) -> bytes:
        if links is _batch_link(self.inside) and _PART_LENGTH.search(body) is not None:
            return body
        return links.sub(self._outside_link, body)

    def _outside_link(self, found: re.Match[bytes]) -> bytes:
        return found[0][: -len(self.inside)] + self.outside

    def _large(self, answer: GatewayAnswer, links: re.Pattern[bytes]) -> GatewayAnswer:
        assert answer.rest is not None
        longest = len(self.inside) + _LONGEST_BEFORE_LINK
        rest = ReplacedRest(answer.rest, links, self._outside_link, longest)
        length = answer.length if len(self.inside) == len(self.outside) else None
        return answer._replace(body=rest.replace(answer.body), rest=rest, length=length)

    def _packed(self, answer: GatewayAnswer, links: re.Pattern[bytes]) -> GatewayAnswer:
        try:
            plain = unpacked(answer.body)
        except ValueError:
            return answer
        changed = self._led_outside(links, plain)
        if changed == plain:
            return answer
        return answer._replace(body=gzip.compress(changed, compresslevel=1, mtime=0))


@functools.lru_cache(maxsize=256)
def route_of(
    scheme: str, host: str, upstream_scheme: str, upstream_host: str, upstream_path: str = ""
) -> Route:
    """Return the route of a request to the authority ``host``, which is empty if it named none.

    ``upstream_path`` is the account, if the client has it in the host name.
    """
    sent = upstream_host
    if not upstream_path and in_path(upstream_host) and _understood(host):
        sent = host
    inside = f"{upstream_scheme}://{sent}{upstream_path}".encode("latin-1")
    outside = f"{scheme}://{host}".encode("latin-1") if host else inside
    return Route(host=sent, outside=outside, inside=inside, leads=outside != inside)


def in_path(authority: str) -> bool:
    """True for an address or a name without a dot: the account is in the path there."""
    host = host_of(authority)
    try:
        return host is not None and bool(ipaddress.ip_address(host))
    except ValueError:
        return "." not in (host or "")


def _understood(authority: str) -> bool:
    """True if an emulator finds the account with this Host: in the path or by the name."""
    host = host_of(authority) or ""
    return in_path(authority) or ".table." in host or host.endswith(".localhost")


@functools.lru_cache(maxsize=256)
def _part_url(outside: bytes) -> re.Pattern[bytes]:
    """The link at the beginning of a transaction's part; no line of a JSON text begins so."""
    return re.compile(rb"^(%b )%b(?=/)" % (_METHODS, re.escape(outside)), re.MULTILINE)


@functools.lru_cache(maxsize=256)
def _batch_link(inside: bytes) -> re.Pattern[bytes]:
    """The links in the headers of an answer's parts, and in their JSON.

    No line of a JSON text begins like a header.
    """
    names = rb"(?:Location|Content-Location|DataServiceId)"
    head = rb"(?:^%b:[ \t]*%b(?=/))" % (names, re.escape(inside))
    return re.compile(head + b"|" + _json_link(inside).pattern, re.MULTILINE | re.IGNORECASE)


@functools.lru_cache(maxsize=256)
def _json_link(inside: bytes) -> re.Pattern[bytes]:
    """The links of OData's own properties; inside a JSON text a quote would be escaped."""
    return re.compile(rb'"odata\.[A-Za-z]{1,40}"[ ]?:[ ]?"%b(?=[/"])' % re.escape(inside))


@functools.lru_cache(maxsize=256)
def _xml_link(inside: bytes) -> re.Pattern[bytes]:
    """The base of a document, and the id of an entry.

    Inside a text ``<`` would be escaped; elements of an entity's properties have a prefix.
    """
    base = rb"<[A-Za-z][^<>]{0,1000}[ \r\n\t]xml:base=[\"']"
    return re.compile(rb"(?:%b|<id>)%b(?=[/\"'<])" % (base, re.escape(inside)))
