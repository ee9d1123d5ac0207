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
import ipaddress
import re

from harness.gateway.answers import GatewayAnswer
from harness.gateway.headers import Headers
from harness.model.hosts import host_of

_METHODS = rb"(?:GET|POST|PUT|PATCH|MERGE|DELETE)"
# A part of an answer with a length of its own would have to change with its links.
_PART_LENGTH = re.compile(rb"^Content-Length:", re.MULTILINE | re.IGNORECASE)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """How one host of the gateway is replaced by the endpoint's.

    Attributes:
        host: Value of Host for the endpoint.
        outside: Scheme and host before the gateway, in bytes.
        inside: Scheme and host that the endpoint sees, in bytes.
    """

    host: str
    outside: bytes
    inside: bytes

    def request_body(self, headers: Headers, body: bytes) -> bytes:
        """Return the body for the endpoint: the parts of a transaction hold whole URLs.

        A body with a checksum or a content coding stays as it is.
        """
        if (
            self.outside == self.inside
            or not headers.get("Content-Type", "").startswith("multipart/mixed")
            or "Content-MD5" in headers
            or "Content-Encoding" in headers
        ):
            return body
        return _part_url(self.outside).sub(lambda found: found[1] + self.inside, body)

    def answer(self, answer: GatewayAnswer) -> GatewayAnswer:
        """Return the answer with links to the gateway. The rest of a large body keeps its own."""
        if self.outside == self.inside:
            return answer
        fields = [
            (name, self.outside + value[len(self.inside) :] if self._leads_inside(value) else value)
            for name, value in Headers.of(answer.headers).fields
        ]
        headers, body = Headers(fields), answer.body
        if answer.length is None and "Content-Encoding" not in headers:
            body = self._answer_body(headers.get("Content-Type", ""), body)
        return answer._replace(headers=headers, body=body)

    def _leads_inside(self, value: bytes) -> bool:
        return value == self.inside or value.startswith(self.inside + b"/")

    def _answer_body(self, content_type: str, body: bytes) -> bytes:
        if content_type.startswith("multipart/mixed"):
            if _PART_LENGTH.search(body) is not None:
                return body
            body = _part_link(self.inside).sub(lambda found: found[1] + self.outside, body)
        elif not content_type.startswith("application/json"):
            return body
        return _json_link(self.inside).sub(lambda found: found[1] + self.outside, body)


@functools.lru_cache(maxsize=256)
def route_of(*, scheme: str, host: str, upstream_scheme: str, upstream_host: str) -> Route:
    """Return the route of a request.

    Args:
        scheme: http or https, by which the client is connected.
        host: The authority that the client addressed; empty if it named none.
        upstream_scheme: Scheme of the endpoint.
        upstream_host: Host and port of the endpoint.
    """
    sent = host if _in_path(upstream_host) and _understood(host) else upstream_host
    inside = f"{upstream_scheme}://{sent}".encode("latin-1")
    outside = f"{scheme}://{host}".encode("latin-1") if host else inside
    return Route(host=sent, outside=outside, inside=inside)


def _in_path(authority: str) -> bool:
    """True for an address or a name without a dot: the account is in the path there."""
    host = host_of(authority)
    if host is None:
        return False
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return "." not in host
    return True


def _understood(authority: str) -> bool:
    """True if an emulator finds the account with this Host: in the path or by the name."""
    host = host_of(authority) or ""
    return _in_path(authority) or ".table." in host or host.endswith(".localhost")


@functools.lru_cache(maxsize=256)
def _part_url(outside: bytes) -> re.Pattern[bytes]:
    """The link at the beginning of a transaction's part; no line of a JSON text begins so."""
    return re.compile(rb"^(%b )%b(?=/)" % (_METHODS, re.escape(outside)), re.MULTILINE)


@functools.lru_cache(maxsize=256)
def _part_link(inside: bytes) -> re.Pattern[bytes]:
    """The links in the headers of an answer's parts; no line of a JSON text begins so."""
    names = rb"(?:Location|Content-Location|DataServiceId)"
    return re.compile(
        rb"^(%b:[ \t]*)%b(?=/)" % (names, re.escape(inside)), re.MULTILINE | re.IGNORECASE
    )


@functools.lru_cache(maxsize=256)
def _json_link(inside: bytes) -> re.Pattern[bytes]:
    """The links of OData's own properties; inside a JSON text a quote would be escaped."""
    return re.compile(rb'("odata\.[A-Za-z]+"[ ]?:[ ]?")%b(?=[/"])' % re.escape(inside))
