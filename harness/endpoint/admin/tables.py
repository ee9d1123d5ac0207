"""The tables of a run: named, created, checked, followed, emptied and deleted.

A run touches only what it made. A table that exists is refused, or has to be empty. Only the run's
own tables, and entities with the run's id, are deleted.

A run's table is named ``stress``, UTC time, 8 hex digits, and an ending. Only workloads of several
tables have endings: a capital letter, then letters and digits. The name of a container has no
capital letters. `harness sweep` lists and deletes what has such a name alone.

All functions that send requests raise `SetupError` where the service refuses or does not respond,
and `BudgetSpent` where their budget is used up.

The clients of the SDK trust the same certificates as the load, and take every request from a
budget. Retries are few, because a person waits for these requests.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import functools
import itertools
import logging
import random
import re
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar, cast

import gevent
from azure.core.exceptions import AzureError, HttpResponseError, ResourceNotFoundError
from azure.core.paging import ItemPaged
from azure.core.rest import HttpRequest
from azure.data.tables import TableClient, TableEntity, TableServiceClient, TableTransactionError
from gevent.pool import Pool

from harness.endpoint.accounts import Accounts
from harness.endpoint.admin.housekeeping import Ambiguous
from harness.endpoint.admin.probe import explain
from harness.endpoint.attempts import LEADS_BACK, TokenLoop
from harness.endpoint.credential import Refusal
from harness.endpoint.endpoint import Endpoint
from harness.endpoint.http.channel import Channel
from harness.endpoint.http.exchange import LIBRARY_ERRORS, Exchange, bad_answer, by_library
from harness.endpoint.http.pool import LimitedPool
from harness.endpoint.protocol.responses import read_error, retry_after_s, shorten
from harness.endpoint.sessions.sdk import GeventTransport, SdkResponse
from harness.measure.record.findings import PointersPart
from harness.model.entity import MAX_TRANSACTION_OPERATIONS
from harness.model.errors import SetupError
from harness.model.outcome import Fault
from harness.model.process import steady_clock
from harness.workload.budget import Budget, Budgets
from harness.workload.entity_factory import RUN_PROPERTY
from harness.workload.scenarios.scenario import Pointers

CONNECTIONS = 8
_CONNECT_TIMEOUT_S = 5.0
_READ_TIMEOUT_S = 30.0
_RETRIES = 4
MOST_REQUESTS = 1 + _RETRIES
"""Requests that one call of a client may take."""
_LONGEST_WAIT_S = 8.0
_WAITS = ("retry-after", "retry-after-ms", "x-ms-retry-after-ms")
_MAX_EMPTY_PAGES = 100
"""A service may answer an empty page with a continuation token, but not for ever."""
KEY_PROPERTIES = ["PartitionKey", "RowKey"]
_Key = tuple[str, str]
_Item = TypeVar("_Item")
_TABLE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]{2,62}")
_RUN_TABLE = re.compile(r"stress(\d{8}[Tt]\d{6})[Zz][0-9a-f]{8}([A-Z][A-Za-z0-9]*|-[a-z0-9-]+)?")
_TIME = "%Y%m%dT%H%M%S"


def admin_channel(endpoint: Endpoint, budget: Budget) -> Channel:
    """The channel for requests around a run, each taken from the budget."""
    pool = LimitedPool(
        endpoint.url,
        connections=CONNECTIONS,
        connect_timeout_s=_CONNECT_TIMEOUT_S,
        read_timeout_s=_READ_TIMEOUT_S,
    )
    return Channel(pool, clock=steady_clock(), budget=budget)


class AdminTransport(GeventTransport):
    """The transport of the load over an `admin_channel`."""

    def __init__(self, endpoint: Endpoint, budget: Budget) -> None:
        super().__init__(admin_channel(endpoint, budget))
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


def service_client(endpoint: Endpoint, budget: Budget | None = None) -> TableServiceClient:
    signed = endpoint.credential.for_sdk()
    return TableServiceClient(endpoint.url, **signed, **client_options(endpoint, budget))


def table_client(endpoint: Endpoint, table: str, budget: Budget | None = None) -> TableClient:
    signed = endpoint.credential.for_sdk()
    return TableClient(endpoint.url, table, **signed, **client_options(endpoint, budget))


@contextlib.contextmanager
def explained(endpoint: Endpoint, doing: str) -> Iterator[None]:
    """Turn an error of the SDK into a `SetupError` that begins with ``doing``.

    It is `Ambiguous` where no response came, or an unreadable one.
    """
    try:
        yield
    except HttpResponseError as error:
        refused = refusal_of(error)
        kind = SetupError if 400 <= refused.status < 500 else Ambiguous
        raise kind(f"{doing}: {explain(endpoint, refused)}") from error
    except AzureError as error:
        said = shorten(error.message)
        if getattr(error, "fault", None) is Fault.BAD_ANSWER:
            raise _unreadable(endpoint, doing, said) from error
        raise Ambiguous(f"{doing}: no response from {endpoint.host} ({said})") from error
    except LIBRARY_ERRORS as error:
        if not by_library(error):
            raise
        raise _unreadable(endpoint, doing, shorten(f"{type(error).__name__}: {error}")) from error


def _unreadable(endpoint: Endpoint, doing: str, said: str) -> Ambiguous:
    return Ambiguous(f"{doing}: the response of {endpoint.host} cannot be read ({said}): check -H")


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


def client_options(endpoint: Endpoint, budget: Budget | None) -> dict[str, Any]:
    """Keywords of every client of an SDK; its credential aside."""
    # The SDK logs every request at INFO, which is Locust's level.
    quiet = logging.getLogger("harness.endpoint.admin.tables")
    quiet.setLevel(logging.WARNING)
    return {
        "transport": AdminTransport(endpoint, Budget() if budget is None else budget),
        "logger": quiet,
        # The services do not redirect, and a signature is for one host.
        "permit_redirects": False,
        "retry_total": _RETRIES,
        "retry_status": _RETRIES,
        "retry_backoff_factor": 0.5,
        "retry_backoff_max": _LONGEST_WAIT_S,
    }


def new_table_name(now_utc: dt.datetime, rng: random.Random) -> str:
    """A name that no other run has, such as ``stress20261121T004512Z1a2b3c4d``.

    ``rng`` must not be seeded, or two runs could get the same name.
    """
    return f"stress{now_utc.strftime(_TIME)}Z{rng.getrandbits(32):08x}"


def made_at(table_name: str) -> dt.datetime | None:
    """When the run of a table, a container or a queue began, in UTC; None for names of no run."""
    found = _RUN_TABLE.fullmatch(table_name)
    if found is None:
        return None
    try:
        return dt.datetime.strptime(found[1].upper(), _TIME).replace(tzinfo=dt.UTC)
    except ValueError:
        return None


def create_table(endpoint: Endpoint, name: str, budget: Budget | None = None) -> None:
    """Create a table; a `SetupError` if it exists, whoever made it, or cannot be created."""
    _require_name(name)
    budget = Budget() if budget is None else budget
    before = budget.spent
    with (
        explained(endpoint, f"the table {name} cannot be created"),
        service_client(endpoint, budget) as client,
    ):
        try:
            client.create_table(name)
        except HttpResponseError as error:
            code = refusal_of(error).code
            if code == "TableBeingDeleted":
                raise SetupError(
                    f"the service is still deleting the earlier table {name}: try again in a minute"
                ) from error
            if code != "TableAlreadyExists":
                raise
            # After a retry the table may be this run's: the first response may have been lost.
            if budget.spent - before == 1 or made_at(name) is None:
                raise SetupError(
                    f"the table {name} exists already and does not belong to this run; it "
                    "was not changed"
                ) from error


def require_empty_table(endpoint: Endpoint, name: str, budget: Budget | None = None) -> None:
    """Raise a `SetupError` if the table does not exist, cannot be read, or holds an entity."""
    _require_name(name)
    with (
        explained(endpoint, f"the table {name} cannot be read"),
        table_client(endpoint, name, budget) as client,
    ):
        try:
            found = _first_entity(client, name)
        except ResourceNotFoundError as error:
            if refusal_of(error).code != "TableNotFound":
                raise
            raise SetupError(
                f"there is no table {name} at {endpoint.host}: create it, or leave out --table"
            ) from error
    if found is not None:
        raise SetupError(
            f"the table {name} is not empty: it holds the entity PartitionKey "
            f"{found.get('PartitionKey')!r}, RowKey {found.get('RowKey')!r}. A run needs an empty "
            "table, or creates its own"
        )


def _first_entity(client: TableClient, name: str) -> TableEntity | None:
    """An entity of the table; None where the table is empty."""
    pages = pages_of(client.list_entities(results_per_page=1, select=KEY_PROPERTIES))
    for number, page in enumerate(pages):
        if number >= _MAX_EMPTY_PAGES:
            raise SetupError(
                f"more than {_MAX_EMPTY_PAGES} pages of the table {name} are empty and have a "
                "continuation token: the endpoint does not say whether the table is empty"
            )
        for entity in page:
            return entity
    return None


def delete_table(endpoint: Endpoint, name: str, budget: Budget | None = None) -> None:
    """Delete a table. A table that does not exist counts as deleted."""
    with (
        explained(endpoint, f"the table {name} cannot be deleted"),
        service_client(endpoint, budget) as client,
    ):
        client.delete_table(name)


def list_tables(endpoint: Endpoint, budget: Budget | None = None) -> list[str]:
    with (
        explained(endpoint, "the tables cannot be listed"),
        service_client(endpoint, budget) as client,
    ):
        return [text_of(table.name) for page in pages_of(client.list_tables()) for table in page]


def delete_run_entities(
    endpoint: Endpoint,
    name: str,
    run_id: str,
    on_progress: Callable[[int], None],
    budget: Budget | None = None,
) -> None:
    """Delete the entities whose `RUN_PROPERTY` is ``run_id``, and no others.

    Calls ``on_progress`` with the number of entities deleted so far.
    """
    deleted = 0
    with (
        explained(endpoint, f"the entities of the run cannot be deleted from {name}"),
        table_client(endpoint, name, budget) as client,
    ):
        pool = Pool(CONNECTIONS)
        delete = functools.partial(_delete, client)
        try:
            for page in _written(client, run_id):
                for count in pool.imap_unordered(delete, _transactions(page)):
                    deleted += count
                    on_progress(deleted)
        finally:
            pool.kill()


def _require_name(name: str) -> None:
    if _TABLE_NAME.fullmatch(name) is None:
        raise SetupError(
            f"invalid table name {name!r}: it needs 3 to 63 letters and digits, a letter first"
        )


def pages_of(listing: ItemPaged[_Item]) -> Iterator[Iterator[_Item]]:
    """The pages of a listing; a `SetupError` where it leads back to an earlier page."""
    pages, loop = listing.by_page(), TokenLoop()
    for page in pages:
        yield page
        if loop.closes(cast(Any, pages).continuation_token):
            raise SetupError(f"a listing of the endpoint has no end: {LEADS_BACK}")


def _written(client: TableClient, run_id: str) -> Iterator[list[_Key]]:
    written = client.query_entities(
        f"{RUN_PROPERTY} eq @run", parameters={"run": run_id}, select=KEY_PROPERTIES
    )
    for page in pages_of(written):
        yield [
            (text_of(entity.get("PartitionKey")), text_of(entity.get("RowKey"))) for entity in page
        ]


def text_of(value: object) -> str:
    if not isinstance(value, str):
        raise bad_answer(f"a name or key that is not a string: {type(value).__name__}")
    return value


def _transactions(keys: Iterable[_Key]) -> Iterator[list[_Key]]:
    """Split ``keys`` into transactions: at most 100 keys of one partition."""
    for _, partition in itertools.groupby(keys, key=lambda key: key[0]):
        while part := list(itertools.islice(partition, MAX_TRANSACTION_OPERATIONS)):
            yield part


def _delete(client: TableClient, keys: list[_Key]) -> int:
    if len(keys) > 1:
        try:
            client.submit_transaction(
                ("delete", {"PartitionKey": partition, "RowKey": row}) for partition, row in keys
            )
        except TableTransactionError as error:
            # One entity does not exist, so none was deleted: a response was lost, or another
            # client deletes too. Singly, a missing entity counts as deleted.
            if error.status_code != 404:
                raise
        else:
            return len(keys)
    for partition, row in keys:
        client.delete_entity(partition, row)
    return len(keys)


MOST_ROWS = 500_000
"""The comparison of larger tables would take longer than the run."""


def follow(
    accounts: Accounts,
    table: str,
    pointers: Pointers,
    budgets: Budgets | None = None,
    most_rows: int = MOST_ROWS,
) -> PointersPart:
    """Compare an index table with the table that its rows point to.

    An application that is interrupted between its writes to two partitions leaves some rows alone.
    ``table`` is the name without an ending. Tables of more than ``most_rows`` rows are refused with
    a `SetupError`.
    """
    budgets = Budgets([None] * len(accounts)) if budgets is None else budgets

    def of_all(name: str, properties: list[str]) -> Iterator[_Key]:
        stored = itertools.chain.from_iterable(
            listed(endpoint, name, properties, budget)
            for endpoint, budget in zip(accounts, budgets.each, strict=True)
        )
        for number, key in enumerate(stored):
            if number >= most_rows:
                raise SetupError(f"the table {name} has more than {most_rows:,} rows")
            yield key

    there = set(of_all(table + pointers.to, KEY_PROPERTIES))
    named: set[_Key] = set()
    rows = dangling = 0
    for key in of_all(table + pointers.table, [pointers.partition, pointers.row]):
        rows += 1
        named.add(key)
        dangling += key not in there
    return PointersPart(
        table=pointers.table,
        to=pointers.to,
        rows=rows,
        dangling=dangling,
        unnamed=len(there - named),
    )


def listed(endpoint: Endpoint, name: str, properties: list[str], budget: Budget) -> Iterator[_Key]:
    """The two properties of every entity of a table."""
    with (
        explained(endpoint, f"the table {name} cannot be listed"),
        table_client(endpoint, name, budget) as client,
    ):
        for entity in itertools.chain.from_iterable(
            pages_of(client.list_entities(select=properties))
        ):
            # A value that is not a string is not a key, and points to nothing.
            partition, row = (
                key if isinstance(key := entity.get(wanted), str) else "" for wanted in properties
            )
            yield partition, row
