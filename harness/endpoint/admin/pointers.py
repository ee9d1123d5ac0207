"""Index tables after a run: which index rows point to entities that do not exist?

The service has no transactions over several partitions. An application that writes an entity and
its index rows one after the other leaves some of them alone when it is interrupted or throttled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from azure.data.tables import TableClient

from harness.endpoint.admin.clients import explained, table_client
from harness.endpoint.endpoint import Endpoint
from harness.measure.record.findings import PointersPart
from harness.model.errors import SetupError
from harness.workload.budget import Budget
from harness.workload.scenarios.scenario import Pointers

MOST_ROWS = 500_000
"""Tables with more rows are not compared: that would take longer than the run."""

_OWN_KEY = ("PartitionKey", "RowKey")
_Key = tuple[str, str]


def follow(
    endpoint: Endpoint,
    table: str,
    pointers: Pointers,
    budget: Budget | None = None,
    most_rows: int = MOST_ROWS,
) -> PointersPart:
    """List an index table and the table that it points to, and compare them.

    Args:
        endpoint: The endpoint.
        table: Name of the run's tables, without an ending.
        pointers: Which rows point to which.
        budget: The requests that may be sent.
        most_rows: Tables with more rows are not compared.

    Raises:
        SetupError: the service refuses or does not respond, or there are too many rows.
        BudgetSpent: the budget is used up.
    """
    there = set(_keys(endpoint, table + pointers.to, _OWN_KEY, budget, most_rows))
    named: set[_Key] = set()
    rows = dangling = 0
    properties = (pointers.partition, pointers.row)
    for key in _keys(endpoint, table + pointers.table, properties, budget, most_rows):
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


def _keys(
    endpoint: Endpoint,
    name: str,
    properties: Sequence[str],
    budget: Budget | None,
    most_rows: int,
) -> Iterator[_Key]:
    with (
        explained(endpoint, f"the table {name} cannot be listed"),
        table_client(endpoint, name, budget) as client,
    ):
        for number, key in enumerate(_listed(client, properties)):
            if number >= most_rows:
                raise SetupError(f"the table {name} has more than {most_rows:,} rows")
            yield key


def _listed(client: TableClient, properties: Sequence[str]) -> Iterator[_Key]:
    for entity in client.list_entities(select=list(properties)):
        partition, row = (entity.get(name, "") for name in properties)
        # A value that is not a string is not a key, and points to nothing.
        yield (
            partition if isinstance(partition, str) else "",
            row if isinstance(row, str) else "",
        )
