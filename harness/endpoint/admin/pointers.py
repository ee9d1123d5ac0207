"""Index tables after a run: which of their rows name a row that is not there?

The service keeps no two partitions in step. An application that writes an entity and its index
rows one after the other leaves some without the other whenever it is interrupted or throttled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from azure.data.tables import TableClient

from harness.endpoint.admin import explained, table_client
from harness.endpoint.connection import Endpoint
from harness.measure.findings import PointersPart
from harness.model.errors import SetupError
from harness.workload.budget import Budget
from harness.workload.scenario import Pointers

MOST_ROWS = 500_000
"""Tables with more rows are not followed: it would take longer than the run."""

_OWN_KEY = ("PartitionKey", "RowKey")
_Key = tuple[str, str]


def follow(
    endpoint: Endpoint,
    table: str,
    pointers: Pointers,
    budget: Budget | None = None,
    most_rows: int = MOST_ROWS,
) -> PointersPart:
    """List both tables and compare.

    Args:
        endpoint: Where they are.
        table: Name of the run's tables, without an ending.
        pointers: Which rows name which.
        budget: What the requests are taken from.
        most_rows: Tables with more are not followed.

    Raises:
        SetupError: the service refuses, does not answer, or there are too many rows.
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
                raise SetupError(f"the table {name} has over {most_rows:,} rows")
            yield key


def _listed(client: TableClient, properties: Sequence[str]) -> Iterator[_Key]:
    for entity in client.list_entities(select=list(properties)):
        yield entity.get(properties[0], ""), entity.get(properties[1], "")
