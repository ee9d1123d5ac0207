"""The permissions that a run needs, each tried once on a table of its own."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from functools import partial
from typing import NamedTuple

from harness.endpoint.admin.probe import explain
from harness.endpoint.admin.tables import create_table, delete_table
from harness.endpoint.credential import Refusal
from harness.endpoint.endpoint import Endpoint
from harness.endpoint.session import SessionOptions
from harness.endpoint.sessions import open_session
from harness.model.entity import MAX_KEY_CHARACTERS, SURE_KEY_CHARACTERS
from harness.model.errors import SetupError
from harness.model.operation import Kind, Operation, transaction
from harness.model.outcome import Outcome, Result
from harness.model.process import steady_clock
from harness.workload.budget import Budget, BudgetSpent
from harness.workload.entity_factory import EntityFactory
from harness.workload.retry import ExponentialBackoff

_RETRIES = ExponentialBackoff(retries=3, backoff_s=0.3, minimum_s=0.1, maximum_s=2.0)
_SIZE_BYTES = 1024
_PARTITION = "harness-doctor"
KEY_LENGTHS = (SURE_KEY_CHARACTERS, MAX_KEY_CHARACTERS)


class Tried(NamedTuple):
    """One permission.

    Attributes:
        refused: Why it is missing; empty where it is not.
        charge: What the operation cost, in hundredths of a request unit; 0 where that is not told.
    """

    name: str
    refused: str = ""
    charge: int = 0


def try_create(endpoint: Endpoint, table: str, budget: Budget) -> Tried:
    try:
        create_table(endpoint, table, budget)
    except (SetupError, BudgetSpent) as error:
        return Tried("create table", str(error))
    return Tried("create table")


def try_delete(endpoint: Endpoint, table: str, budget: Budget) -> Tried:
    # Cleaning up is not refused by the budget, only counted.
    limit, budget.limit = budget.limit, None
    try:
        delete_table(endpoint, table, budget)
    except SetupError as error:
        return Tried("delete table", f"{error}; delete the table {table} yourself")
    finally:
        budget.limit = limit
    return Tried("delete table")


def try_keys(endpoint: Endpoint, table: str, session: str, budget: Budget) -> Iterator[Tried]:
    """Insert an entity with keys of each of `KEY_LENGTHS` into a table that exists."""
    keys = {f"{length:,} characters": "k" * length for length in KEY_LENGTHS}
    inserts = {
        name: Operation(kind=Kind.INSERT, partition_key=key, row_key=key, properties={"A": 1})
        for name, key in keys.items()
    }
    yield from _try(inserts, endpoint, table, session, budget)


def try_operations(endpoint: Endpoint, table: str, session: str, budget: Budget) -> Iterator[Tried]:
    """Send an operation of each kind to an empty table, with a session of the kind ``session``."""
    made = EntityFactory(_SIZE_BYTES, table).properties(_PARTITION, "row-0", 0)
    write = partial(Operation, partition_key=_PARTITION, properties=made)
    operations = {
        "insert": write(kind=Kind.INSERT, row_key="row-0"),
        "point query": Operation(kind=Kind.POINT_QUERY, partition_key=_PARTITION, row_key="row-0"),
        "query": Operation(kind=Kind.QUERY, partition_key=_PARTITION),
        "update": write(kind=Kind.UPDATE_MERGE, row_key="row-0", etag="*"),
        "upsert": write(kind=Kind.UPSERT_MERGE, row_key="row-1"),
        "transaction": transaction(
            tuple(write(kind=Kind.UPSERT_MERGE, row_key=f"row-{number}") for number in (2, 3))
        ),
        "delete": Operation(kind=Kind.DELETE, partition_key=_PARTITION, row_key="row-0"),
    }
    yield from _try(operations, endpoint, table, session, budget)


def _try(
    operations: Mapping[str, Operation],
    endpoint: Endpoint,
    table: str,
    session: str,
    budget: Budget,
) -> Iterator[Tried]:
    options = SessionOptions(
        endpoint=endpoint,
        table=table,
        run_id=table,
        retry=_RETRIES,
        budget=budget,
        clock=steady_clock(),
        rng=random.Random(),
        connections=1,
        connect_timeout_s=5.0,
        read_timeout_s=10.0,
    )
    sends = open_session(session, options)
    try:
        for name, operation in operations.items():
            try:
                result = sends.execute(operation, keep=False)
            except BudgetSpent:
                yield Tried(name, "not tried: the budget is used up")
                return
            charge = sum(attempt.request_charge for attempt in result.attempts)
            yield Tried(name, _refused(endpoint, result), charge)
    finally:
        sends.close()


STORES_NOTHING = (
    "the entity that was just inserted is not there: this endpoint stores nothing, like a gateway "
    "with --upstream none"
)


def _refused(endpoint: Endpoint, result: Result) -> str:
    if result.outcome.succeeded:
        return ""
    if result.outcome is Outcome.NOT_FOUND:
        return STORES_NOTHING
    last = result.attempts[-1]
    if last.throttled:
        return f"throttled {len(result.attempts)} times ({last.status} {last.error_code})"
    if not last.status:
        return f"no response ({last.error_code}: {last.message})"
    return explain(endpoint, Refusal(last.status, last.error_code, last.message))
