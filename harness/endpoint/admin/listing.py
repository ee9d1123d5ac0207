"""A cheap signed request that every credential allows, sent without the SDK: it lists one item."""

from __future__ import annotations

import http.client
import io
import socket
import ssl
from collections.abc import Mapping
from email.utils import formatdate
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from harness.endpoint.credential import Sas
from harness.endpoint.endpoint import Endpoint
from harness.endpoint.protocol.odata import JSON_PLAIN, VERSION

TABLES = "Tables"
"""The resource that lists the tables of an account."""
_MAX_BODY_BYTES = 256 * 1024
_MAX_BYTES = 4 * _MAX_BODY_BYTES


def listable(endpoint: Endpoint) -> str:
    """What the credential may list: tables, or with a SAS for one table the entities of it."""
    credential = endpoint.credential
    table = credential.table if isinstance(credential, Sas) else None
    return TABLES if table is None else f"{table}()"


class ListingResponse(NamedTuple):
    """The response to a `Listing`, with any status. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Listing:
    """A signed GET of the first item of one resource of an account, such as `TABLES`."""

    def __init__(self, endpoint: Endpoint, resource: str) -> None:
        self._endpoint = endpoint
        parts = urlsplit(endpoint.url)
        self._https = parts.scheme == "https"
        self._path = f"{parts.path}/{resource}"

    def connection(self, context: ssl.SSLContext, timeout_s: float) -> http.client.HTTPConnection:
        """A connection to the endpoint, not opened yet; ``timeout_s`` holds for each read."""
        host, port = self._endpoint.hostname, self._endpoint.port
        connection = (
            http.client.HTTPSConnection(host, port, timeout=timeout_s, context=context)
            if self._https
            else http.client.HTTPConnection(host, port, timeout=timeout_s)
        )
        connection.response_class = _BoundedResponse
        return connection

    def send(self, connection: http.client.HTTPConnection, now_s: float) -> ListingResponse:
        """Send the request, dated ``now_s`` UTC seconds.

        Raises:
            OSError: the connection broke.
            http.client.HTTPException: the response is not HTTP, or too large.
        """
        credential, date = self._endpoint.credential, formatdate(now_s, usegmt=True)
        headers = {"Accept": JSON_PLAIN, "x-ms-date": date, "x-ms-version": VERSION}
        if signature := credential.authorization("GET", "", date, self._path):
            headers["Authorization"] = signature
        query = "&".join(filter(None, ("$top=1", credential.query)))
        connection.request("GET", f"{self._path}?{query}", headers=headers)
        response = connection.getresponse()
        return ListingResponse(
            status=response.status,
            headers={name.lower(): text for name, text in response.getheaders()},
            body=response.read(_MAX_BODY_BYTES),
        )


class _BoundedResponse(http.client.HTTPResponse):
    """A response of limited size; ``http.client`` limits the length of lines, not their number."""

    def __init__(self, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp = io.BufferedReader(_Bounded(self.fp.detach()))


class _Bounded(io.RawIOBase):
    def __init__(self, raw: io.RawIOBase) -> None:
        self._raw = raw
        self._left = _MAX_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self._left <= 0:
            raise http.client.HTTPException("the response is too large")
        count: int | None = self._raw.readinto(buffer)
        self._left -= count or 0
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()
