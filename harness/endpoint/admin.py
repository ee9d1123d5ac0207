"""Clients for the few requests around a run: tables made, listed, emptied and deleted.

They go over the transport of the load, so that both trust the same certificates, and every
request is taken from a budget before it is sent. Retries are few: who waits here is a person.
"""

from __future__ import annotations

import contextlib
import logging
import uuid
from collections.abc import Iterator
from typing import Any, cast

from azure.core.exceptions import AzureError, HttpResponseError
from azure.core.rest import HttpRequest, HttpResponse
from azure.data.tables import TableClient, TableServiceClient

from harness.endpoint.channel import Channel
from harness.endpoint.clock import monotonic_utc
from harness.endpoint.connection import Endpoint
from harness.endpoint.exchange import Exchange
from harness.endpoint.probe import Refusal, explain
from harness.endpoint.sdk import sdk_credential
from harness.endpoint.transport import Answer, GeventTransport
from harness.model.errors import SetupError
from harness.workload.budget import Budget, BudgetSpent

CONNECTIONS = 8
_CONNECT_TIMEOUT_S = 5.0
_READ_TIMEOUT_S = 30.0
_RETRIES = 4


class AdminTransport(GeventTransport):
    """The transport of the load, one exchange a request, each taken from the budget."""

    def __init__(self, endpoint: Endpoint, budget: Budget) -> None:
        super().__init__(
            Channel(
                url=endpoint.url,
                connections=CONNECTIONS,
                connect_timeout_s=_CONNECT_TIMEOUT_S,
                read_timeout_s=_READ_TIMEOUT_S,
                clock=monotonic_utc(),
            )
        )
        self._budget = budget

    def send(self, request: HttpRequest, **options: Any) -> Answer:
        """Send ``request`` once.

        Raises:
            BudgetSpent: before it is sent, where nothing is left.
        """
        if not self._budget.take():
            raise BudgetSpent
        return super().send(request, exchange=Exchange(str(uuid.uuid4())), **options)


@contextlib.contextmanager
def service_client(
    endpoint: Endpoint, budget: Budget | None = None
) -> Iterator[TableServiceClient]:
    """A client for the account, closed at the end."""
    with TableServiceClient(endpoint.url, **_options(endpoint, budget)) as client:
        yield client


@contextlib.contextmanager
def table_client(
    endpoint: Endpoint, table: str, budget: Budget | None = None
) -> Iterator[TableClient]:
    """A client for one table, closed at the end."""
    with TableClient(endpoint.url, table, **_options(endpoint, budget)) as client:
        yield client


@contextlib.contextmanager
def explained(endpoint: Endpoint, doing: str) -> Iterator[None]:
    """Turn what the SDK raises into a sentence that begins with what was being done.

    Raises:
        SetupError: the service refused, or did not answer.
    """
    try:
        yield
    except HttpResponseError as error:
        sentence = explain(endpoint, refusal_of(error))
        raise SetupError(f"{doing}: {sentence}") from error
    except AzureError as error:
        raise SetupError(f"{doing}: no answer from {endpoint.host} ({error.message})") from error


def refusal_of(error: HttpResponseError) -> Refusal:
    """The service's refusal inside an error of the SDK."""
    code = getattr(error, "error_code", None)
    if code is None and error.response is not None:
        code = cast(HttpResponse, error.response).headers.get("x-ms-error-code")
    return Refusal(
        status=error.status_code or 0,
        code=str(getattr(code, "value", code or "")),
        message=str(error.message).split("\n", 1)[0].strip(),
    )


def _options(endpoint: Endpoint, budget: Budget | None) -> dict[str, Any]:
    # The SDK logs every request at INFO, which is Locust's level.
    quiet = logging.getLogger("harness.endpoint.admin")
    quiet.setLevel(logging.WARNING)
    return {
        "credential": sdk_credential(endpoint.credential),
        "transport": AdminTransport(endpoint, Budget() if budget is None else budget),
        "logger": quiet,
        "retry_total": _RETRIES,
        "retry_status": _RETRIES,
        "retry_backoff_factor": 0.5,
        "retry_backoff_max": 8,
    }
