"""Operations as an application words them, ready to be sent: marked as the run's, filled, named.

What becomes of them is the caller's: ``then`` is what follows an operation in the same task.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, cast

from harness.model.entity import (
    ETAG,
    MAX_TRANSACTION_BYTES,
    MAX_TRANSACTION_OPERATIONS,
    EdmValue,
    stored_size,
)
from harness.model.operation import (
    WHOLE_TABLE,
    Follow,
    Kind,
    Operation,
    Range,
    new_operation,
    transaction,
)
from harness.model.outcome import Result
from harness.workload.entities import EntityFactory, wire_bytes

PART_OVERHEAD_BYTES = 700
"""Headers and multipart borders of one operation in a transaction, about."""
_MOST_WIRE = 4
"""JSON has at most so many bytes for a stored one, about: a character of two bytes takes six."""
_ALWAYS_FITS = MAX_TRANSACTION_BYTES // MAX_TRANSACTION_OPERATIONS - PART_OVERHEAD_BYTES


def entities_of(result: Result) -> Sequence[Mapping[str, Any]]:
    """The entities that a read brought: none, one or many."""
    if not result.outcome.succeeded or result.value is None:
        return ()
    if result.operation.kind is Kind.QUERY:
        return cast("Sequence[Mapping[str, Any]]", result.value)
    return (cast("Mapping[str, Any]", result.value),)


def _bytes_sent(write: Operation) -> int:
    """Bytes of its entity as sent: at most, where a whole transaction of such entities fits."""
    content = write.properties or {}
    most = _MOST_WIRE * stored_size(write.partition_key, write.row_key, content)
    # To know better takes much longer.
    return most if most <= _ALWAYS_FITS else wire_bytes(write.partition_key, write.row_key, content)


def _if_unchanged(update: Operation, result: Result) -> Operation | None:
    read = entities_of(result)
    return dataclasses.replace(update, etag=read[0][ETAG]) if read else None


class Making:
    """Makes operations.

    Args:
        entities: Marks entities as the run's own, and fills them up to the wanted size.
    """

    def __init__(self, entities: EntityFactory) -> None:
        self.__entities = entities

    def batched(self, writes: Iterable[Operation]) -> Iterator[Operation]:
        """Single writes as transactions, as far as neighbours are of one partition of one table.

        Each has as many operations, and is as large, as a transaction may be.
        """
        parts: list[Operation] = []
        size = 0
        for write in writes:
            more = PART_OVERHEAD_BYTES + _bytes_sent(write)
            full = len(parts) == MAX_TRANSACTION_OPERATIONS or size + more > MAX_TRANSACTION_BYTES
            if parts and (full or parts[0].partition != write.partition):
                yield self.transaction(parts) if len(parts) > 1 else parts[0]
                parts, size = [], 0
            parts.append(write)
            size += more
        if parts:
            yield self.transaction(parts) if len(parts) > 1 else parts[0]

    def in_turn(self, operations: Sequence[Operation], done: Follow | None = None) -> Operation:
        """The first of these, which leads to the next where it succeeded, and so on.

        What fails ends the task, and nothing makes up for what is not done then: so it is in an
        application that keeps several partitions in step by itself.

        Args:
            operations: One at least; what follows them otherwise is lost.
            done: Called with the last result when all succeeded.
        """
        first, *rest = operations
        return dataclasses.replace(first, then=partial(self.__next_in_turn, rest, done))

    def __next_in_turn(
        self, rest: Sequence[Operation], done: Follow | None, result: Result
    ) -> Operation | None:
        if not result.outcome.succeeded:
            return None
        if rest:
            return self.in_turn(rest, done)
        return None if done is None else done(result)

    def get(
        self,
        partition_key: str,
        row_key: str,
        *,
        table: str = "",
        name: str = "",
        select: Sequence[str] = (),
        then: Follow | None = None,
    ) -> Operation:
        """Point query."""
        return new_operation(
            kind=Kind.POINT_QUERY,
            partition_key=partition_key,
            row_key=row_key,
            table=table,
            name=name,
            select=tuple(select),
            then=then,
        )

    def query(
        self,
        partition_key: str | None,
        *,
        table: str = "",
        name: str = "",
        row_from: str | None = None,
        row_before: str | None = None,
        partition_from: str | None = None,
        partition_before: str | None = None,
        filter: str | None = None,
        select: Sequence[str] = (),
        top: int | None = None,
        walks: Range | None = None,
        then: Follow | None = None,
    ) -> Operation:
        """Query of a partition, or with None of several; ``walks`` says what is known of it."""
        return new_operation(
            kind=Kind.QUERY,
            partition_key=WHOLE_TABLE if partition_key is None else partition_key,
            table=table,
            name=name,
            row_from=row_from,
            row_before=row_before,
            partition_from=partition_from,
            partition_before=partition_before,
            filter=filter,
            select=tuple(select),
            top=top,
            walks=walks,
            then=then,
        )

    def insert(
        self,
        partition_key: str,
        row_key: str,
        properties: Mapping[str, EdmValue],
        *,
        table: str = "",
        name: str = "",
        fill: bool = True,
        then: Follow | None = None,
    ) -> Operation:
        """Insert of a new entity; see `write`."""
        return self.write(
            Kind.INSERT,
            partition_key,
            row_key,
            properties,
            table=table,
            name=name,
            fill=fill,
            then=then,
        )

    def merge(
        self,
        partition_key: str,
        row_key: str,
        properties: Mapping[str, EdmValue],
        *,
        table: str = "",
        name: str = "",
        then: Follow | None = None,
    ) -> Operation:
        """Update of some properties of an entity, which is inserted where it is not there."""
        return self.write(
            Kind.UPSERT_MERGE, partition_key, row_key, properties, table=table, name=name, then=then
        )

    def delete(
        self,
        partition_key: str,
        row_key: str,
        *,
        table: str = "",
        name: str = "",
        then: Follow | None = None,
    ) -> Operation:
        """Delete of an entity, whatever it holds."""
        return self.write(Kind.DELETE, partition_key, row_key, table=table, name=name, then=then)

    def write(
        self,
        kind: Kind,
        partition_key: str,
        row_key: str,
        properties: Mapping[str, EdmValue] | None = None,
        *,
        table: str = "",
        name: str = "",
        fill: bool = True,
        etag: str | None = None,
        then: Follow | None = None,
    ) -> Operation:
        """A single write, alone or for a transaction.

        Args:
            kind: Which.
            partition_key: Where to.
            row_key: Where to.
            properties: What is written; None for a delete.
            table: Ending of the table's name.
            name: What the application calls it.
            fill: Whether an entity that is inserted or replaced is filled up to
                ``entity.size_bytes``; one that is merged never is.
            etag: Update or delete only if the entity still has this ETag.
            then: What follows.
        """
        content = properties
        if properties is not None and fill and kind not in (Kind.UPSERT_MERGE, Kind.UPDATE_MERGE):
            content = self.__entities.filled(partition_key, row_key, properties)
        elif properties is not None:
            content = self.__entities.marked(properties)
        return new_operation(
            kind=kind,
            partition_key=partition_key,
            row_key=row_key,
            table=table,
            name=name,
            properties=content,
            etag=etag,
            then=then,
        )

    def edit(
        self,
        partition_key: str,
        row_key: str,
        change: Mapping[str, EdmValue],
        *,
        table: str = "",
        name: str = "edit",
    ) -> Operation:
        """Read an entity, then change it unless somebody else did meanwhile (optimistic locking).

        A lost race ends as `Outcome.PRECONDITION`; nothing is tried again.

        Args:
            partition_key: Where it is.
            row_key: Where it is.
            change: Properties that are merged.
            table: Ending of the table's name.
            name: What the application calls the update.
        """
        update = self.write(
            Kind.UPDATE_MERGE, partition_key, row_key, change, table=table, name=name
        )
        return self.get(
            partition_key,
            row_key,
            table=table,
            name="read_for_edit",
            then=partial(_if_unchanged, update),
        )

    def transaction(
        self, parts: Sequence[Operation], *, name: str = "", then: Follow | None = None
    ) -> Operation:
        """Entity group transaction of single writes in one partition.

        Raises:
            ValueError: they cannot be one; the message says why.
        """
        return transaction(tuple(parts), name=name, then=then)
