"""Clients of the SDK for the requests around a run: create, list, empty and delete tables.

They trust the same certificates as the load, and take every request from a budget. Retries are few,
because a person waits for these requests.
"""

from __future__ import annotations

import contextlib
import logging
import uuid
from collections.abc import Iterator
from typing import Any, cast

import gevent
from azure.core.exceptions import AzureError, HttpResponseError
from azure.core.rest import HttpRequest
from azure.data.tables import TableClient, TableServiceClient

from harness.endpoint.admin.housekeeping import Ambiguous
from harness.endpoint.admin.probe import Refusal, explain
from harness.endpoint.endpoint import Endpoint
from harness.endpoint.http.channel import Channel
from harness.endpoint.http.exchange import UNREADABLE, Exchange, monotonic_utc
from harness.endpoint.http.pool import LimitedPool
from harness.endpoint.protocol.errors import read_error, retry_after_s, shorten
from harness.endpoint.sessions.sdk import GeventTransport, SdkResponse
from harness.model.errors import SetupError
from harness.workload.budget import Budget

CONNECTIONS = 8
_CONNECT_TIMEOUT_S = 5.0
_READ_TIMEOUT_S = 30.0
_RETRIES = 4
MOST_REQUESTS = 1 + _RETRIES
"""Requests that one call of a client may take."""
_LONGEST_WAIT_S = 8.0
_WAITS = ("retry-after", "retry-after-ms", "x-ms-retry-after-ms")


class AdminTransport(GeventTransport):
    """The transport of the load, with each request taken from the budget."""

    def __init__(self, endpoint: Endpoint, budget: Budget) -> None:
        pool = LimitedPool(
            endpoint.url,
            connections=CONNECTIONS,
            connect_timeout_s=_CONNECT_TIMEOUT_S,
            read_timeout_s=_READ_TIMEOUT_S,
        )
        super().__init__(Channel(pool, clock=monotonic_utc(), budget=budget))
        self._login = endpoint.login

    def send(self, request: HttpRequest, **options: Any) -> SdkResponse:
        response = super().send(request, exchange=Exchange(str(uuid.uuid4())), **options)
        if response.status_code == 401 and self._login is not None:
            # The SDK sends the request once more if the response challenges it to.
            self._login.renewed_after(request.headers.get("Authorization", ""))
        # The SDK honours any wait that the service asks for.
        wait_s = min(retry_after_s(response.headers), _LONGEST_WAIT_S)
        for name in _WAITS:
            response.headers.pop(name, None)
        if wait_s > 0:
            response.headers["retry-after"] = f"{wait_s:g}"
        return response

    def sleep(self, duration: float) -> None:
        gevent.sleep(duration)


@contextlib.contextmanager
def service_client(
    endpoint: Endpoint, budget: Budget | None = None
) -> Iterator[TableServiceClient]:
    with TableServiceClient(endpoint.url, **_options(endpoint, budget)) as client:
        yield client


@contextlib.contextmanager
def table_client(
    endpoint: Endpoint, table: str, budget: Budget | None = None
) -> Iterator[TableClient]:
    with TableClient(endpoint.url, table, **_options(endpoint, budget)) as client:
        yield client


@contextlib.contextmanager
def explained(endpoint: Endpoint, doing: str) -> Iterator[None]:
    """Turn an error of the SDK into a message that begins with ``doing``.

    Raises:
        SetupError: the service refused the request.
        Ambiguous: the request may have been executed: no response came, or an unreadable one.
    """
    try:
        yield
    except HttpResponseError as error:
        refused = refusal_of(error)
        kind = SetupError if 400 <= refused.status < 500 else Ambiguous
        raise kind(f"{doing}: {explain(endpoint, refused)}") from error
    except AzureError as error:
        said = shorten(error.message)
        raise Ambiguous(f"{doing}: no response from {endpoint.host} ({said})") from error
    except UNREADABLE as error:
        said = shorten(f"{type(error).__name__}: {error}")
        raise Ambiguous(
            f"{doing}: the response of {endpoint.host} cannot be read ({said}): check -H"
        ) from error


def refusal_of(error: HttpResponseError) -> Refusal:
    """The service's error response inside an error of the SDK."""
    if error.response is None:
        return Refusal(0, "", shorten(str(error.message)))
    response = cast(SdkResponse, error.response)
    return Refusal(
        response.status_code,
        *read_error(response.headers, response.content),
        response.headers.get("www-authenticate", ""),
    )


def _options(endpoint: Endpoint, budget: Budget | None) -> dict[str, Any]:
    # The SDK logs every request at INFO, which is Locust's level.
    quiet = logging.getLogger("harness.endpoint.admin.clients")
    quiet.setLevel(logging.WARNING)
    return {
        **endpoint.credential.for_sdk(),
        "transport": AdminTransport(endpoint, Budget() if budget is None else budget),
        "logger": quiet,
        # A table service does not redirect, and a signature is for one host.
        "permit_redirects": False,
        "retry_total": _RETRIES,
        "retry_status": _RETRIES,
        "retry_backoff_factor": 0.5,
        "retry_backoff_max": _LONGEST_WAIT_S,
    }
