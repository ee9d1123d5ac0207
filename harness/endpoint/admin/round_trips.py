"""Cheap requests in a row over one connection: their latency, the service's clock, its headers."""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from harness.endpoint.admin.listing import Listing, ListingResponse, listable
from harness.endpoint.endpoint import Endpoint
from harness.endpoint.http.exchange import UNREADABLE
from harness.endpoint.http.tls import trust_context
from harness.model.errors import SetupError
from harness.model.outcome import THROTTLING_STATUSES
from harness.model.time_limit import bounded
from harness.workload.budget import Budget

REQUESTS = 50
_WITHIN_S = 15.0
_TIME_OUT_S = 5.0

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

    Each takes one billable transaction from the budget.

    Raises:
        SetupError: a response is missing.
    """
    context = trust_context(os.environ)
    progress: list[_Sent] = []
    try:
        bounded(lambda: _send(endpoint, context, budget, progress), _WITHIN_S)
    except TimeoutError:
        pass
    except (OSError, *UNREADABLE) as error:
        # Requests were accepted before, when the credential was checked.
        raise SetupError(
            f"request {len(progress) + 1} of {REQUESTS} got no response ({type(error).__name__})"
        ) from error
    done = list(progress)
    if not done:
        raise SetupError("no response in time")
    return RoundTrips(
        latencies_s=sorted(latency_s for _, latency_s, _ in done),
        throttled=sum(response.status in THROTTLING_STATUSES for *_, response in done),
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


def _clock(
    done: list[_Sent],
) -> tuple[float, float] | None:
    """Bounds of the difference of clocks, from the whole seconds of all ``Date`` headers."""
    least, most = float("-inf"), float("inf")
    for sent_s, latency_s, response in done:
        try:
            second = parsedate_to_datetime(response.headers.get("date", "")).timestamp()
        except UNREADABLE:
            return None
        # The response was dated between sending and receiving, within a second after the date.
        least, most = max(least, second - sent_s - latency_s), min(most, second + 1 - sent_s)
    return (least, most) if least <= most else (most, least)
