"""What holds the data of a run, a table, a container or queues: made, deleted, and found again.

All of these raise `SetupError` where the service refuses or does not respond, and `BudgetSpent`
where the budget is used up. For tables see `harness.endpoint.admin.tables`.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

import gevent
from azure.core.exceptions import AzureError

from harness.endpoint.admin.housekeeping import Ambiguous
from harness.endpoint.admin.probe import explain
from harness.endpoint.admin.tables import (
    MOST_REQUESTS,
    admin_channel,
    create_table,
    delete_table,
    explained,
    list_tables,
    made_at,
)
from harness.endpoint.attempts import LEADS_BACK, TokenLoop
from harness.endpoint.credential import Refusal
from harness.endpoint.endpoint import Endpoint
from harness.endpoint.http.exchange import Exchange
from harness.endpoint.protocol.queues import QueueRequestWriter, read_names
from harness.endpoint.protocol.responses import read_error
from harness.endpoint.sessions.blob import container_client
from harness.model.errors import SetupError
from harness.model.outcome import RETRYABLE_STATUSES
from harness.model.services.service import EXAMPLE_STORES
from harness.workload.budget import Budget

_MAX_AGE_S = 1e9
_BACKOFF_S = 0.5
_CREATED, _EXISTS = 201, 409


class _XmlStores(NamedTuple):
    """The stores of a service whose listings are XML.

    Attributes:
        what: What one is called in sentences.
        element: The path of one in listings.
        addressed: The parameters of a request about one.
    """

    what: str
    element: str
    addressed: Mapping[str, str] = {}

    def create(self, endpoint: Endpoint, name: str, budget: Budget | None) -> None:
        """Create a store; a `SetupError` if it exists, whoever made it."""
        budget = Budget() if budget is None else budget
        before, doing = budget.spent, f"the {self.what} {name} cannot be created"
        exchange = _ask(endpoint, "PUT", name, self.addressed, budget, doing, fine=(_EXISTS,))
        # After a retry it may be this run's: the first response may have been lost.
        if budget.spent - before > 1 or exchange.status == _CREATED:
            return
        if exchange.status == _EXISTS:
            raise _refused(endpoint, exchange, doing)
        # A queue that is there is answered with a success.
        raise SetupError(
            f"the {self.what} {name} exists already and does not belong to this run; it was not "
            "changed"
        )

    def delete(self, endpoint: Endpoint, name: str, budget: Budget | None) -> None:
        """Delete a store with its contents. One that does not exist counts as deleted."""
        doing = f"the {self.what} {name} cannot be deleted"
        _ask(endpoint, "DELETE", name, self.addressed, budget, doing, fine=(404,))

    def names(self, endpoint: Endpoint, budget: Budget | None) -> list[str]:
        names: list[str] = []
        marker, loop, doing = "", TokenLoop(), f"the {self.what}s cannot be listed"
        while True:
            asked = {"comp": "list", **({"marker": marker} if marker else {})}
            exchange = _ask(endpoint, "GET", "", asked, budget, doing)
            with explained(endpoint, doing):
                found, marker = read_names(exchange, self.element)
            names += found
            if not marker:
                return names
            if loop.closes(marker):
                raise SetupError(f"a listing of the endpoint has no end: {LEADS_BACK}")


def _ask(
    endpoint: Endpoint,
    method: str,
    name: str,
    asked: Mapping[str, str],
    budget: Budget | None,
    doing: str,
    fine: Collection[int] = (),
) -> Exchange:
    """Send a request about stores, again if that can help; the response is a success or ``fine``.

    Other errors begin with ``doing``.
    """
    channel = admin_channel(endpoint, Budget() if budget is None else budget)
    writer, login = QueueRequestWriter(endpoint), endpoint.login
    try:
        for left in reversed(range(MOST_REQUESTS)):
            exchange = Exchange(str(uuid.uuid4()))
            authorization = "" if login is None else login.header
            message = writer.message(method, name, asked, exchange.client_request_id)
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
    raise _refused(endpoint, exchange, doing)


def _refused(endpoint: Endpoint, exchange: Exchange, doing: str) -> SetupError:
    challenge = exchange.header("www-authenticate")
    code, said = read_error(exchange.headers, exchange.body)
    kind = SetupError if 400 <= exchange.status < 500 else Ambiguous
    refused = Refusal(exchange.status, code, said, challenge)
    return kind(f"{doing}: {explain(endpoint, refused)}")


class _Store(NamedTuple):
    create: Callable[[Endpoint, str, Budget | None], None]
    delete: Callable[[Endpoint, str, Budget | None], None]
    names: Callable[[Endpoint, Budget | None], list[str]]


_STORES: dict[str, _Store | _XmlStores] = {
    "table": _Store(create_table, delete_table, list_tables),
    "container": _XmlStores("container", "Containers/Container", {"restype": "container"}),
    "queue": _XmlStores("queue", "Queues/Queue"),
}


def require_library(endpoint: Endpoint) -> None:
    """Raise a `SetupError` where the library of a service is missing."""
    if endpoint.kind.store == "container":
        container_client(endpoint, EXAMPLE_STORES).close()


def create_store(endpoint: Endpoint, name: str, budget: Budget | None = None) -> None:
    """Create what the service of ``endpoint`` holds its data in; one that exists is refused."""
    _STORES[endpoint.kind.store].create(endpoint, name, budget)


def delete_store(endpoint: Endpoint, name: str, budget: Budget | None = None) -> None:
    """Delete it, with everything in it."""
    _STORES[endpoint.kind.store].delete(endpoint, name, budget)


def list_stores(endpoint: Endpoint, budget: Budget | None = None) -> list[str]:
    """Their names, whoever made them."""
    return _STORES[endpoint.kind.store].names(endpoint, budget)


def leftovers(
    endpoint: Endpoint, now_utc: dt.datetime, older_than_s: float, budget: Budget | None = None
) -> dict[str, dt.datetime]:
    """What runs that began at least ``older_than_s`` seconds ago created, and when they began.

    The oldest comes first. Times are UTC.
    """
    if not 0 <= older_than_s < _MAX_AGE_S:
        raise SetupError(f"an age of {older_than_s:g} s is invalid; give 0 s or more")
    latest = now_utc - dt.timedelta(seconds=older_than_s)
    names = list_stores(endpoint, budget)
    old = [(at, name) for name in names if (at := made_at(name)) is not None and at <= latest]
    return {name: at for at, name in sorted(old)}
