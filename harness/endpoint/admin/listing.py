"""A cheap signed request that every credential allows, sent without the SDK: it lists one item.

Sent in a row over one connection it tells latencies, the service's clock, and its headers.
"""

from __future__ import annotations

import http.client
import io
import os
import socket
import ssl
import time
from collections.abc import Mapping
from email.utils import formatdate, parsedate_to_datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from harness.endpoint.endpoint import Endpoint
from harness.endpoint.http.exchange import LIBRARY_ERRORS
from harness.endpoint.http.pool import trust_context
from harness.endpoint.protocol.requests import JSON_PLAIN, VERSION
from harness.endpoint.protocol.responses import read_error
from harness.model.errors import SetupError
from harness.model.outcome import is_throttling
from harness.model.process import bounded
from harness.model.services import USUAL
from harness.workload.budget import Budget

TABLES = "Tables"
"""The resource that lists the tables of an account."""
_MAX_BODY_BYTES = 256 * 1024
_MAX_BYTES = 4 * _MAX_BODY_BYTES
REQUESTS = 50
_WITHIN_S = 15.0
_TIME_OUT_S = 5.0


def listable(endpoint: Endpoint) -> str:
    """What the credential may list: tables, or with a SAS for one table the entities of it.

    Other services list their containers at the root.
    """
    if not of_tables(endpoint):
        return ""
    table = endpoint.credential.table
    return TABLES if table is None else f"{table}()"


def of_tables(endpoint: Endpoint) -> bool:
    """Whether the endpoint speaks the protocol of tables."""
    return endpoint.kind.server == USUAL.server


class ListingResponse(NamedTuple):
    """The response to a `Listing`, with any status. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def date_s(self) -> float | None:
        """The service's time in the response, UTC seconds; None where it is missing or invalid."""
        try:
            return parsedate_to_datetime(self.headers.get("date", "")).timestamp()
        except (ValueError, TypeError, LookupError, ArithmeticError):
            return None


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

        An `OSError` says that the connection broke, an `HTTPException` that the response is none.
        """
        credential, date = self._endpoint.credential, formatdate(now_s, usegmt=True)
        headers = {"x-ms-date": date, "x-ms-version": VERSION}
        if of_tables(self._endpoint):
            query, signature = "$top=1", credential.authorization("GET", "", date, self._path)
            headers["Accept"] = JSON_PLAIN
        else:
            query = "comp=list&maxresults=1"
            # Of blobs and queues a key signs eleven more headers, all empty, and the query.
            signature = credential.authorization_of(
                "GET" + "\n" * 12 + f"x-ms-date:{date}\nx-ms-version:{VERSION}\n"
                f"/{self._endpoint.account}{self._path}\ncomp:list\nmaxresults:1"
            )
        if signature:
            headers["Authorization"] = signature
        query = "&".join(filter(None, (query, credential.query)))
        connection.request("GET", f"{self._path}?{query}", headers=headers)
        try:
            response = connection.getresponse()
            body = response.read(_MAX_BODY_BYTES)
        except LIBRARY_ERRORS as error:
            raise http.client.HTTPException(f"{type(error).__name__}: {error}") from error
        return ListingResponse(
            status=response.status,
            headers={name.lower(): text for name, text in response.getheaders()},
            body=body,
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


_Sent = tuple[float, float, ListingResponse]
"""When a request was sent, UTC; how long it took, seconds; its response."""


class RoundTrips(NamedTuple):
    """The results of the requests.

    Attributes:
        latencies_s: Of each request, from sending to the whole response; sorted.
        throttled: Requests that the service refused for their rate.
        clock_s: Bounds of the service's clock minus that of this machine; None where unknown.
        headers: Of the last response, names in lower case.
    """

    latencies_s: list[float]
    throttled: int
    clock_s: tuple[float, float] | None
    headers: Mapping[str, str]

    def percentile_s(self, share: float) -> float:
        place = min(len(self.latencies_s) - 1, int(share * len(self.latencies_s)))
        return self.latencies_s[place]

    @property
    def mean_s(self) -> float:
        return sum(self.latencies_s) / len(self.latencies_s)


def round_trips(endpoint: Endpoint, budget: Budget) -> RoundTrips:
    """Send 50 requests that list one item each, or as many as fit into 15 s.

    Each takes one billable transaction from the budget. A `SetupError` says that a response is
    missing.
    """
    context = trust_context(os.environ)
    progress: list[_Sent] = []
    try:
        bounded(lambda: _send(endpoint, context, budget, progress), _WITHIN_S)
    except TimeoutError:
        pass
    except (OSError, http.client.HTTPException) as error:
        # Requests were accepted before, when the credential was checked.
        raise SetupError(
            f"request {len(progress) + 1} of {REQUESTS} got no response ({type(error).__name__})"
        ) from error
    done = list(progress)
    if not done:
        raise SetupError("no response in time")
    return RoundTrips(
        latencies_s=sorted(latency_s for _, latency_s, _ in done),
        throttled=sum(
            is_throttling(response.status, read_error(response.headers, response.body)[0])
            for *_, response in done
        ),
        clock_s=_clock(done),
        headers=done[-1][2].headers,
    )


def _send(
    endpoint: Endpoint, context: ssl.SSLContext, budget: Budget, progress: list[_Sent]
) -> None:
    listing = Listing(endpoint, listable(endpoint))
    connection = listing.connection(context, _TIME_OUT_S)
    try:
        connection.connect()
        for _ in range(REQUESTS):
            if not budget.take():
                return
            sent_s, began_s = time.time(), time.perf_counter()
            response = listing.send(connection, sent_s)
            progress.append((sent_s, time.perf_counter() - began_s, response))
    finally:
        connection.close()


def _clock(done: list[_Sent]) -> tuple[float, float] | None:
    """Bounds of the difference of clocks, from the whole seconds of all ``Date`` headers."""
    least, most = float("-inf"), float("inf")
    for sent_s, latency_s, response in done:
        second = response.date_s
        if second is None:
            return None
        # The response was dated between sending and receiving, within a second after the date.
        least, most = max(least, second - sent_s - latency_s), min(most, second + 1 - sent_s)
    return (least, most) if least <= most else (most, least)
