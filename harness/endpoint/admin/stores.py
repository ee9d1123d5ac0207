"""What holds the data of a run, a table, a container or queues: made, deleted, and found again.

All of these raise `SetupError` where the service refuses or does not respond, and `BudgetSpent`
where the budget is used up. For tables see `harness.endpoint.admin.tables`.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import uuid
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import gevent
from azure.core.exceptions import AzureError, ResourceExistsError, ResourceNotFoundError

from harness.endpoint.admin.housekeeping import Ambiguous
from harness.endpoint.admin.probe import explain
from harness.endpoint.admin.tables import (
    MOST_REQUESTS,
    admin_channel,
    client_options,
    create_table,
    delete_table,
    explained,
    list_tables,
    made_at,
    pages_of,
    text_of,
)
from harness.endpoint.attempts import LEADS_BACK, TokenLoop
from harness.endpoint.credential import Refusal
from harness.endpoint.endpoint import Endpoint
from harness.endpoint.http.exchange import Exchange
from harness.endpoint.protocol.queues import QueueRequestWriter, read_names
from harness.endpoint.protocol.responses import read_error
from harness.endpoint.sessions.blob import account_client, container_client
from harness.model.errors import SetupError
from harness.model.outcome import RETRYABLE_STATUSES
from harness.workload.budget import Budget

_MAX_AGE_S = 1e9
_BACKOFF_S = 0.5
_WAITS = {"initial_backoff": 0.5, "increment_base": 2, "random_jitter_range": 0.5}
"""Seconds of the retries of azure-storage-blob; its own are for minutes."""


def _options(endpoint: Endpoint, budget: Budget | None) -> dict[str, Any]:
    return {**client_options(endpoint, budget), **_WAITS}


def create_container(endpoint: Endpoint, name: str, budget: Budget | None = None) -> None:
    """Create a container; a `SetupError` if it exists, whoever made it."""
    budget = Budget() if budget is None else budget
    before = budget.spent
    with (
        explained(endpoint, f"the container {name} cannot be created"),
        container_client(endpoint, name, **_options(endpoint, budget)) as client,
    ):
        try:
            client.create_container()
        except ResourceExistsError:
            # After a retry it may be this run's: the first response may have been lost.
            if budget.spent - before == 1:
                raise


def delete_container(endpoint: Endpoint, name: str, budget: Budget | None = None) -> None:
    """Delete a container with its blobs. One that does not exist counts as deleted."""
    with (
        explained(endpoint, f"the container {name} cannot be deleted"),
        container_client(endpoint, name, **_options(endpoint, budget)) as client,
        contextlib.suppress(ResourceNotFoundError),
    ):
        client.delete_container()


def list_containers(endpoint: Endpoint, budget: Budget | None = None) -> list[str]:
    with (
        explained(endpoint, "the containers cannot be listed"),
        account_client(endpoint, **_options(endpoint, budget)) as client,
    ):
        return [text_of(one.name) for page in pages_of(client.list_containers()) for one in page]


def create_queue(endpoint: Endpoint, name: str, budget: Budget | None = None) -> None:
    """Create a queue; a `SetupError` if it exists, whoever made it."""
    budget = Budget() if budget is None else budget
    before = budget.spent
    doing = f"the queue {name} cannot be created"
    exchange = _ask(endpoint, "PUT", name, {}, budget, doing)
    # The service answers 204 if there is such a queue. After a retry it may be this run's.
    if exchange.status != 201 and budget.spent - before == 1:
        raise SetupError(
            f"the queue {name} exists already and does not belong to this run; it was not changed"
        )


def delete_queue(endpoint: Endpoint, name: str, budget: Budget | None = None) -> None:
    """Delete a queue with its messages. One that does not exist counts as deleted."""
    _ask(endpoint, "DELETE", name, {}, budget, f"the queue {name} cannot be deleted", fine=(404,))


def list_queues(endpoint: Endpoint, budget: Budget | None = None) -> list[str]:
    names: list[str] = []
    marker, loop, doing = "", TokenLoop(), "the queues cannot be listed"
    while True:
        asked = {"comp": "list", **({"marker": marker} if marker else {})}
        exchange = _ask(endpoint, "GET", "", asked, budget, doing)
        with explained(endpoint, doing):
            found, marker = read_names(exchange)
        names += found
        if not marker:
            return names
        if loop.closes(marker):
            raise SetupError(f"a listing of the endpoint has no end: {LEADS_BACK}")


def _ask(
    endpoint: Endpoint,
    method: str,
    queue: str,
    asked: Mapping[str, str],
    budget: Budget | None,
    doing: str,
    fine: Collection[int] = (),
) -> Exchange:
    """Send a request about queues, again if that can help; the response is a success or ``fine``.

    Other errors begin with ``doing``.
    """
    channel = admin_channel(endpoint, Budget() if budget is None else budget)
    writer, login = QueueRequestWriter(endpoint), endpoint.login
    try:
        for left in reversed(range(MOST_REQUESTS)):
            exchange = Exchange(str(uuid.uuid4()))
            authorization = "" if login is None else login.header
            message = writer.message(method, queue, asked, exchange.client_request_id)
            try:
                channel.send(message, exchange)
            except AzureError:
                if not left:
                    with explained(endpoint, doing):
                        raise
            if exchange.status == 401 and login is not None:
                login.renewed_after(authorization)
            elif exchange.status and exchange.status not in RETRYABLE_STATUSES:
                break
            gevent.sleep(_BACKOFF_S)
    finally:
        channel.close()
    if 200 <= exchange.status < 300 or exchange.status in fine:
        return exchange
    challenge = exchange.header("www-authenticate")
    code, said = read_error(exchange.headers, exchange.body)
    kind = SetupError if 400 <= exchange.status < 500 else Ambiguous
    refused = Refusal(exchange.status, code, said, challenge)
    raise kind(f"{doing}: {explain(endpoint, refused)}")


class _Store(NamedTuple):
    create: Callable[[Endpoint, str, Budget | None], None]
    delete: Callable[[Endpoint, str, Budget | None], None]
    names: Callable[[Endpoint, Budget | None], list[str]]


_STORES = {
    "table": _Store(create_table, delete_table, list_tables),
    "container": _Store(create_container, delete_container, list_containers),
    "queue": _Store(create_queue, delete_queue, list_queues),
}


def require_library(endpoint: Endpoint) -> None:
    """Raise a `SetupError` where the library of a service is missing."""
    if endpoint.kind.store == "container":
        account_client(endpoint).close()


def create_store(endpoint: Endpoint, name: str, budget: Budget | None = None) -> None:
    """Create what the service of ``endpoint`` holds its data in; one that exists is refused."""
    _STORES[endpoint.kind.store].create(endpoint, name, budget)


def delete_store(endpoint: Endpoint, name: str, budget: Budget | None = None) -> None:
    """Delete it, with everything in it."""
    _STORES[endpoint.kind.store].delete(endpoint, name, budget)


def leftovers(
    endpoint: Endpoint, now_utc: dt.datetime, older_than_s: float, budget: Budget | None = None
) -> dict[str, dt.datetime]:
    """What runs that began at least ``older_than_s`` seconds ago created, and when they began.

    The oldest comes first. Times are UTC.
    """
    if not 0 <= older_than_s < _MAX_AGE_S:
        raise SetupError(f"an age of {older_than_s:g} s is invalid; give 0 s or more")
    latest = now_utc - dt.timedelta(seconds=older_than_s)
    names = _STORES[endpoint.kind.store].names(endpoint, budget)
    old = [(at, name) for name in names if (at := made_at(name)) is not None and at <= latest]
    return {name: at for at, name in sorted(old)}
