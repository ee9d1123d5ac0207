"""Tables around a run: it touches only what it made.

A table that exists is refused, or has to be empty; what is deleted is a table of the run's own or
entities that carry the run's id.

All functions raise `SetupError` with a sentence where the service refuses or does not answer, and
`BudgetSpent` where the budget they were given is used up.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import itertools
import re
from collections.abc import Callable, Iterable, Iterator

from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.data.tables import TableClient, TableTransactionError
from gevent.pool import Pool

from harness.endpoint.admin import (
    CONNECTIONS,
    explained,
    refusal_of,
    service_client,
    table_client,
)
from harness.endpoint.connection import Endpoint
from harness.endpoint.table_names import made_at
from harness.model.entity import MAX_TRANSACTION_OPERATIONS
from harness.model.errors import SetupError
from harness.workload.budget import Budget
from harness.workload.entities import RUN_PROPERTY

_OLDEST_S = 1e9
_KEYS = ["PartitionKey", "RowKey"]
_Key = tuple[str, str]
_TABLE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]{2,62}")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """What cleaning did: entities that are gone, requests that it took."""

    entities: int
    requests: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """A table that a run made and did not delete."""

    name: str
    made_at: dt.datetime


def create_table(endpoint: Endpoint, name: str, budget: Budget | None = None) -> None:
    """Make a table; one that exists is refused, whoever made it."""
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
                    f"the table {name} was just deleted, and the service is not done with it: "
                    "try again in a minute"
                ) from error
            if code != "TableAlreadyExists":
                raise
            # The answer to an earlier try may have been lost: then it is ours.
            if budget.spent - before == 1 or made_at(name) is None:
                raise SetupError(
                    f"a table {name} exists already: it is not this run's, and is left alone"
                ) from error


def require_empty_table(endpoint: Endpoint, name: str, budget: Budget | None = None) -> None:
    """See to it that the table is there and holds nothing."""
    _require_name(name)
    with (
        explained(endpoint, f"the table {name} cannot be read"),
        table_client(endpoint, name, budget) as client,
    ):
        try:
            found = next(iter(client.list_entities(results_per_page=1, select=_KEYS)), None)
        except ResourceNotFoundError as error:
            if refusal_of(error).code != "TableNotFound":
                raise
            raise SetupError(
                f"there is no table {name} at {endpoint.host}: create it, or leave --table out"
            ) from error
    if found is not None:
        raise SetupError(
            f"the table {name} is not empty: it holds the entity PartitionKey "
            f"{found['PartitionKey']!r}, RowKey {found['RowKey']!r}, and may hold more. A run "
            "takes an empty table, or makes its own"
        )


def delete_table(endpoint: Endpoint, name: str, budget: Budget | None = None) -> None:
    """Delete a table; one that is not there counts as deleted."""
    with (
        explained(endpoint, f"the table {name} cannot be deleted"),
        service_client(endpoint, budget) as client,
    ):
        client.delete_table(name)


def list_tables(endpoint: Endpoint) -> list[str]:
    """Names of all tables of the account."""
    with explained(endpoint, "the tables cannot be listed"), service_client(endpoint) as client:
        return [table.name for table in client.list_tables()]


def leftovers(endpoint: Endpoint, now_utc: dt.datetime, older_than_s: float) -> list[Leftover]:
    """Tables with a name of our form that were made at least so long ago, oldest first."""
    if not 0 <= older_than_s < _OLDEST_S:
        raise SetupError(f"an age of {older_than_s:g} s is none; give seconds, 0 or more")
    latest = now_utc - dt.timedelta(seconds=older_than_s)
    found = [
        Leftover(name=name, made_at=made)
        for name in list_tables(endpoint)
        if (made := made_at(name)) is not None and made <= latest
    ]
    return sorted(found, key=lambda leftover: leftover.made_at)


def delete_run_entities(
    endpoint: Endpoint,
    name: str,
    run_id: str,
    on_progress: Callable[[int], None],
    budget: Budget | None = None,
) -> Deleted:
    """Delete every entity that a run wrote, and no other.

    Args:
        endpoint: Where.
        name: The table.
        run_id: What the entities carry in `RUN_PROPERTY`.
        on_progress: Told how many are gone so far.
        budget: What the requests are taken from.
    """
    budget = Budget() if budget is None else budget
    before, gone = budget.spent, 0
    with (
        explained(endpoint, f"the entities of the run cannot be deleted from {name}"),
        table_client(endpoint, name, budget) as client,
    ):

        def delete(keys: list[_Key]) -> int:
            return _delete(client, keys)

        pool = Pool(CONNECTIONS)
        try:
            for page in _pages(client, run_id):
                for amount in pool.imap_unordered(delete, _transactions(page)):
                    gone += amount
                    on_progress(gone)
        finally:
            pool.kill()
    return Deleted(entities=gone, requests=budget.spent - before)


def _require_name(name: str) -> None:
    if _TABLE_NAME.fullmatch(name) is None:
        raise SetupError(
            f"{name!r} is no name of a table: it has 3 to 63 letters and digits, a letter first"
        )


def _pages(client: TableClient, run_id: str) -> Iterator[list[_Key]]:
    """Keys of the entities that a run wrote, in their order, a page at a time."""
    written = client.query_entities(
        f"{RUN_PROPERTY} eq @run", parameters={"run": run_id}, select=_KEYS
    )
    for page in written.by_page():
        yield [(entity["PartitionKey"], entity["RowKey"]) for entity in page]


def _transactions(keys: Iterable[_Key]) -> Iterator[list[_Key]]:
    """``keys`` in parts that one transaction can delete: one partition, at most 100."""
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
            # One of them is gone, so none was deleted: an answer was lost, or somebody helped.
            if error.status_code != 404:
                raise
        else:
            return len(keys)
    for partition, row in keys:
        client.delete_entity(partition, row)
    return len(keys)
