"""The Locust users: a base class for your own, the users that profiles name, and their client."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import ClassVar

from locust import User, task

from harness.model.entity import Properties, entity_problems, key_problem
from harness.model.operation import WHOLE_TABLE, KeyRange, Kind, Operation
from harness.model.outcome import Result
from harness.swarm.worker.worker import current_run
from harness.swarm.worker.worker_run import WorkerRun
from harness.workload.entity_factory import RUN_PROPERTY
from harness.workload.operation_factory import bounded_transaction

_TURN_S = 0.05


class Table:
    """The stressed table, as a client for one user. Each call is one operation.

    A call waits for its turn in the schedule, sends the operation, counts it, fires Locust's
    request event, and returns a `Result` with ``outcome`` and ``value``. Failures of the service
    are results, not exceptions. Keys or entities that the service cannot accept raise a
    `ValueError`. After the end of the run a call raises Locust's ``StopUser``.

    Entities are written with the id of the run in the property ``StressRun``.
    """

    def __init__(self, run: WorkerRun) -> None:
        self._run = run

    def get(self, partition_key: str, row_key: str, select: Sequence[str] = ()) -> Result:
        """Read one entity by both keys, a point query."""
        _check_keys(partition_key, row_key)
        return self.execute(
            Operation(
                kind=Kind.POINT_QUERY,
                partition_key=partition_key,
                row_key=row_key,
                select=tuple(select),
            )
        )

    def query(
        self,
        partition_key: str | None,
        *,
        partition_from: str | None = None,
        partition_before: str | None = None,
        row_from: str | None = None,
        row_before: str | None = None,
        table: str = "",
        filter: str | None = None,
        select: Sequence[str] = (),
        top: int | None = None,
    ) -> Result:
        """Read all entities of a partition, or of a range of its RowKeys.

        A `ValueError` says which arguments are invalid or exclude each other.

        Args:
            partition_key: None for a range of PartitionKeys, by default the whole table.
            partition_from: First PartitionKey of the range.
            partition_before: End of the range, which is not in it.
            table: Ending of the table's name, one of those of the profile's workload.
        """
        _check_keys(partition_key or "")
        over_range = partition_from is not None or partition_before is not None
        if partition_key is not None and over_range:
            raise ValueError(
                "a query has one PartitionKey or a range of them: give None and a range"
            )
        if table not in (tables := self._run.plan.tables):
            known = ", ".join(repr(name) for name in tables)
            raise ValueError(f"there is no table {table!r}; the tables of this run are {known}")
        return self.execute(
            Operation(
                kind=Kind.QUERY,
                partition_key=WHOLE_TABLE if partition_key is None else partition_key,
                table=table,
                key_range=KeyRange(
                    partition_from=partition_from,
                    partition_before=partition_before,
                    row_from=row_from,
                    row_before=row_before,
                ),
                filter=filter,
                select=tuple(select),
                top=top,
            )
        )

    def insert(self, partition_key: str, row_key: str, properties: Properties) -> Result:
        """Insert a new entity; an existing one is a conflict."""
        return self.execute(self.operation(Kind.INSERT, partition_key, row_key, properties))

    def upsert(
        self, partition_key: str, row_key: str, properties: Properties, *, replace: bool = False
    ) -> Result:
        """Insert-or-merge an entity, or with ``replace`` insert-or-replace it."""
        kind = Kind.UPSERT_REPLACE if replace else Kind.UPSERT_MERGE
        return self.execute(self.operation(kind, partition_key, row_key, properties))

    def update(
        self,
        partition_key: str,
        row_key: str,
        properties: Properties,
        *,
        replace: bool = False,
        etag: str | None = None,
    ) -> Result:
        """Merge or replace an existing entity; with ``etag`` only if it has not changed since."""
        kind = Kind.UPDATE_REPLACE if replace else Kind.UPDATE_MERGE
        return self.execute(self.operation(kind, partition_key, row_key, properties, etag=etag))

    def delete(self, partition_key: str, row_key: str, *, etag: str | None = None) -> Result:
        """Delete an entity; with ``etag`` only if it has not changed since."""
        return self.execute(self.operation(Kind.DELETE, partition_key, row_key, etag=etag))

    def transaction(self, parts: Sequence[Operation]) -> Result:
        """Send writes made by `operation` as one entity group transaction, at most 4 MiB."""
        return self.execute(bounded_transaction(parts))

    def operation(
        self,
        kind: Kind | str,
        partition_key: str,
        row_key: str,
        properties: Properties | None = None,
        *,
        etag: str | None = None,
    ) -> Operation:
        """Return a single write, for `execute` or as a part of a `transaction`.

        A `ValueError` says what the service would refuse: a key, a property, or the size.
        """
        marked = None
        if properties is None:
            _check_keys(partition_key, row_key)
        else:
            marked = {**properties, RUN_PROPERTY: self._run.plan.run_id}
            problems = list(entity_problems(partition_key, row_key, marked))
            if problems:
                raise ValueError("the entity " + "; ".join(problems))
        return Operation(
            kind=Kind(kind),
            partition_key=partition_key,
            row_key=row_key,
            properties=marked,
            etag=etag,
        )

    def execute(self, operation: Operation) -> Result:
        """Execute any operation; a `ValueError` if a key or a name of it is not text."""
        try:
            self._run.require_sendable(operation)
        except (AttributeError, TypeError, UnicodeEncodeError) as error:
            named = operation.partition_key, operation.row_key, operation.table, operation.name
            raise ValueError(f"a key or a name of {named!r} is not text: {error}") from error
        return self._run.perform(operation)


def _check_keys(*keys: str) -> None:
    for key in keys:
        if (problem := key_problem(key)) is not None:
            raise ValueError(f"the key {problem}")


class TableUser(User):
    """A user of a table, as `HttpUser` is one of a web site.

    Subclass it and write ``@task`` methods that call `table`. Pacing, counting, metrics and the
    verdict need no further code. The profile gives load, limits and conditions; what is sent, and
    to which keys, is the class's own affair. With ``loads`` the profile's entities are loaded
    before the run; by default the table is empty.
    """

    abstract = True
    loads: ClassVar[bool] = False

    @functools.cached_property
    def run_state(self) -> WorkerRun:
        return current_run(self.environment)

    @functools.cached_property
    def table(self) -> Table:
        return Table(self.run_state)


class WorkloadUser(TableUser):
    """Sends the operations of the profile's workload, one after the other."""

    abstract = True
    loads = True

    @task
    def operate(self) -> None:
        """Perform tasks for 50 ms: Locust's own loop costs as much as an operation.

        Then return, so that Locust checks whether this user has to stop.
        """
        run = self.run_state
        now_s = run.clock()
        until_s = now_s + _TURN_S
        while now_s < until_s:
            now_s = run.perform_task()


class ProfileUser(WorkloadUser):
    """Sends what the profile describes."""


class SinglePartitionUser(WorkloadUser):
    """Peak load on one partition, as the documented stress test requires."""


class KeySpreadUser(WorkloadUser):
    """The same load on a spread of partition keys."""
