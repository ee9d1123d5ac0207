"""The operation factory: what an application calls to make its operations.

Entities are marked as the run's own and filled up to the wanted size.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from harness.model.entity import (
    ETAG,
    MAX_TRANSACTION_BYTES,
    MAX_TRANSACTION_OPERATIONS,
    Properties,
    stored_size,
)
from harness.model.operation import (
    ALL_KEYS,
    HIDDEN_S,
    MESSAGE_TEXT,
    WHOLE_TABLE,
    KeyRange,
    Kind,
    Message,
    Operation,
    new_operation,
    transaction,
)
from harness.model.outcome import Result
from harness.workload.entity_factory import EntityFactory, wire_bytes
from harness.workload.operation_source import Steps

PART_OVERHEAD_BYTES = 700
"""Approximate size of the headers and multipart boundaries of an operation in a transaction."""
_MOST_WIRE = 4
"""Approximate maximum of JSON bytes for a stored byte: a 2-byte character may take 6 bytes."""
_ALWAYS_FITS = MAX_TRANSACTION_BYTES // MAX_TRANSACTION_OPERATIONS - PART_OVERHEAD_BYTES


def entities_of(result: Result) -> Sequence[Mapping[str, Any]]:
    """The entities that a read returned: none, one or several."""
    if not result.outcome.succeeded or result.value is None:
        return ()
    if result.operation.kind is Kind.QUERY:
        return cast("Sequence[Mapping[str, Any]]", result.value)
    return (cast("Mapping[str, Any]", result.value),)


def messages_of(result: Result) -> Sequence[Message]:
    """The messages that a get or a peek returned: none, one or several."""
    if not result.outcome.succeeded or result.value is None:
        return ()
    return cast("Sequence[Message]", result.value)


class TransactionTooLargeError(ValueError):
    """A transaction has more bytes than the service accepts."""


def bounded_transaction(parts: Sequence[Operation], *, name: str = "") -> Operation:
    """The entity group transaction of ``parts``; a `ValueError` if they cannot be one.

    It is a `TransactionTooLargeError` if they have more than 4 MiB as sent.
    """
    size = sum(PART_OVERHEAD_BYTES + _bytes_sent(part) for part in parts)
    if size > MAX_TRANSACTION_BYTES:
        raise TransactionTooLargeError(
            f"a transaction of {len(parts)} operations has about {size:,} bytes as sent, which is "
            "over the 4 MiB that a transaction may have: lower entity.size_bytes, or put fewer or "
            "smaller entities into it"
        )
    return transaction(tuple(parts), name=name)


def _bytes_sent(write: Operation) -> int:
    """Bytes of its entity as sent; an upper bound for small entities, which is faster."""
    content = write.properties or {}
    most = _MOST_WIRE * stored_size(write.partition_key, write.row_key, content)
    return most if most <= _ALWAYS_FITS else wire_bytes(write.partition_key, write.row_key, content)


class OperationFactory:
    """Makes operations.

    In all methods ``table`` is the ending of the table's name, and ``name`` is the name of the
    operation in metrics and reports.
    """

    def __init__(self, entities: EntityFactory) -> None:
        self.__entities = entities
        self.__put = 0

    def batched(self, writes: Iterable[Operation]) -> Iterator[Operation]:
        """Join consecutive writes of one partition into transactions as large as allowed."""
        parts: list[Operation] = []
        size = 0
        for write in writes:
            more = PART_OVERHEAD_BYTES + _bytes_sent(write)
            full = len(parts) == MAX_TRANSACTION_OPERATIONS or size + more > MAX_TRANSACTION_BYTES
            if parts and (full or parts[0].partition != write.partition):
                yield transaction(tuple(parts)) if len(parts) > 1 else parts[0]
                parts, size = [], 0
            parts.append(write)
            size += more
        if parts:
            yield transaction(tuple(parts)) if len(parts) > 1 else parts[0]

    def in_sequence(self, operations: Iterable[Operation]) -> Generator[Operation, Result, bool]:
        """Send operations one after the other until one fails: for ``yield from`` in a task.

        Nothing is rolled back after a failure, as in an application that keeps several partitions
        consistent by itself. Returns whether all operations succeeded.
        """
        for operation in operations:
            if not (yield operation).outcome.succeeded:
                return False
        return True

    def get(
        self,
        partition_key: str,
        row_key: str,
        *,
        table: str = "",
        name: str = "",
        select: Sequence[str] = (),
    ) -> Operation:
        return new_operation(
            kind=Kind.POINT_QUERY,
            partition_key=partition_key,
            row_key=row_key,
            table=table,
            name=name,
            select=tuple(select),
        )

    def query(
        self,
        partition_key: str | None,
        *,
        table: str = "",
        name: str = "",
        key_range: KeyRange = ALL_KEYS,
        filter: str | None = None,
        select: Sequence[str] = (),
        top: int | None = None,
    ) -> Operation:
        """Query of a partition, or of the whole table if ``partition_key`` is None.

        ``key_range`` may say how many entities there are. An empty ``select`` is all properties.
        """
        return new_operation(
            kind=Kind.QUERY,
            partition_key=WHOLE_TABLE if partition_key is None else partition_key,
            table=table,
            name=name,
            key_range=key_range,
            filter=filter,
            select=tuple(select),
            top=top,
        )

    def insert(
        self,
        partition_key: str,
        row_key: str,
        properties: Properties,
        *,
        table: str = "",
        name: str = "",
        fill: bool = True,
    ) -> Operation:
        """Insert of a new entity; see `write`."""
        key = partition_key, row_key
        return self.write(Kind.INSERT, *key, properties, table=table, name=name, fill=fill)

    def merge(
        self,
        partition_key: str,
        row_key: str,
        properties: Properties,
        *,
        table: str = "",
        name: str = "",
    ) -> Operation:
        """Update of some properties of an entity, which is inserted if it does not exist."""
        key = partition_key, row_key
        return self.write(Kind.UPSERT_MERGE, *key, properties, table=table, name=name)

    def delete(
        self, partition_key: str, row_key: str, *, table: str = "", name: str = ""
    ) -> Operation:
        """Unconditional delete of an entity."""
        return self.write(Kind.DELETE, partition_key, row_key, table=table, name=name)

    def write(
        self,
        kind: Kind,
        partition_key: str,
        row_key: str,
        properties: Properties | None = None,
        *,
        table: str = "",
        name: str = "",
        fill: bool = True,
        etag: str | None = None,
    ) -> Operation:
        """A single write, alone or for a transaction.

        Args:
            properties: What to write; None for a delete.
            fill: Whether to fill up an inserted or replaced entity to ``entity.size_bytes``; a
                merged entity is never filled up.
            etag: Update or delete only if the entity still has this ETag.
        """
        content = properties
        if properties is not None and fill and not kind.merges:
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
        )

    def edit(
        self,
        partition_key: str,
        row_key: str,
        change: Properties,
        *,
        table: str = "",
        name: str = "edit",
    ) -> Steps:
        """Read an entity, then merge ``change`` if it has not changed since (optimistic locking).

        A lost race ends as `Outcome.PRECONDITION` and is not retried.
        """
        key = partition_key, row_key
        result = yield self.get(*key, table=table, name="read_for_edit")
        for read in entities_of(result):
            yield self.write(
                Kind.UPDATE_MERGE, *key, change, table=table, name=name, etag=read[ETAG]
            )

    def put_message(self, queue: str, text: str | None = None, *, name: str = "") -> Operation:
        """Put a message into a queue; without a text one of ``entity.size_bytes``."""
        self.__put += 1
        text = self.__entities.message(self.__put) if text is None else text
        return new_operation(
            kind=Kind.PUT_MESSAGE, partition_key=queue, name=name, properties={MESSAGE_TEXT: text}
        )

    def get_messages(
        self, queue: str, *, most: int = 1, hidden_s: int = 30, name: str = ""
    ) -> Operation:
        """Get up to ``most`` messages, at most 32, which nobody else gets for ``hidden_s``."""
        return new_operation(
            kind=Kind.GET_MESSAGES,
            partition_key=queue,
            name=name,
            properties={HIDDEN_S: hidden_s},
            top=most,
        )

    def peek_messages(self, queue: str, *, most: int = 1, name: str = "") -> Operation:
        """Look at up to ``most`` messages, at most 32, which others may still get."""
        return new_operation(kind=Kind.PEEK_MESSAGES, partition_key=queue, name=name, top=most)

    def update_message(
        self,
        queue: str,
        message: Message,
        *,
        text: str | None = None,
        hidden_s: int = 30,
        name: str = "",
    ) -> Operation:
        """Hide a message for ``hidden_s`` from now on, and replace its text if there is one."""
        replaced = {} if text is None else {MESSAGE_TEXT: text}
        return new_operation(
            kind=Kind.UPDATE_MESSAGE,
            partition_key=queue,
            row_key=message.id,
            etag=message.receipt,
            name=name,
            properties={HIDDEN_S: hidden_s, **replaced},
        )

    def delete_message(self, queue: str, message: Message, *, name: str = "") -> Operation:
        """Delete a message that this application has got and nobody else since."""
        return new_operation(
            kind=Kind.DELETE_MESSAGE,
            partition_key=queue,
            row_key=message.id,
            etag=message.receipt,
            name=name,
        )

    def transaction(self, parts: Sequence[Operation], *, name: str = "") -> Operation:
        """Entity group transaction of single writes, at most 4 MiB as sent.

        A `ValueError` says why they cannot be one.
        """
        return bounded_transaction(parts, name=name)
