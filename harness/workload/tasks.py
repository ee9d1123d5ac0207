"""Tasks of a mix, of which each operation may depend on the result of the one before.

A worker remembers the rows that it inserted, with their copies, once the service has acknowledged
them. Only such rows are deleted, moved or read later. A failed operation ends its task, except for
copies: a failed copy is not repaired.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Generic, TypeVar, cast

from harness.model.entity import ETAG, Properties
from harness.model.operation import Kind, Message, Operation, new_operation, transaction
from harness.model.outcome import Outcome, Result
from harness.workload.entity_factory import EntityFactory
from harness.workload.keys.design import Key
from harness.workload.operation_factory import OperationFactory, messages_of
from harness.workload.operation_source import Steps, Task

_T = TypeVar("_T")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    """A row that was or will be written, with its copies: table ending and key of each."""

    key: Key
    number: int
    copies: tuple[tuple[str, Key], ...] = ()


class Tasks:
    """Makes tasks, and remembers the rows that they inserted.

    Args:
        new: Makes the next new row for what was drawn.
        content: Makes the properties of the entity with this key and number.
        remembered: Largest number of remembered rows that were inserted alone, and of those
            inserted by transactions; the oldest are forgotten first.
    """

    def __init__(
        self,
        new: Callable[[int], TaskRow],
        content: Callable[[Key, int], Properties],
        remembered: int = 100_000,
    ) -> None:
        self._new = new
        self._content = content
        self._rows: collections.deque[TaskRow] = collections.deque(maxlen=remembered)
        self._of_transactions = ByPartition[TaskRow](remembered)

    @property
    def known(self) -> int:
        """Number of remembered rows that were inserted alone."""
        return len(self._rows)

    def newest(self, age: int) -> TaskRow | None:
        """The remembered row of this age (0 is the newest), if there is one."""
        return self._rows[-1 - age] if age < len(self._rows) else None

    def write(
        self,
        kind: Kind,
        key: Key,
        number: int,
        *,
        table: str = "",
        name: str = "",
        etag: str | None = None,
    ) -> Operation:
        """A single write of the entity with this key and number."""
        return new_operation(
            kind=kind,
            partition_key=key.partition_key,
            row_key=key.row_key,
            table=table,
            name=name,
            properties=self._content(key, number),
            etag=etag,
        )

    def series_merge(self, key: Key, *, hour: int) -> Operation:
        """Merge the value of one hour into an entity that holds a data series.

        Only this property is sent (performance checklist, "Storing data series in a single
        entity").
        """
        return new_operation(
            kind=Kind.UPSERT_MERGE,
            partition_key=key.partition_key,
            row_key=key.row_key,
            name="series_merge",
            properties={f"Hour{hour:02d}": hour * 1.5},
        )

    def insert(self, drawn: int) -> Steps:
        """Insert a new row, then its copies."""
        return self._insert(self._new(drawn))

    def _insert(self, row: TaskRow, name: str = "") -> Steps:
        result = yield self.write(Kind.INSERT, row.key, row.number, name=name)
        if result.outcome.succeeded:
            self._rows.append((yield from self._insert_copies(row)))

    def _insert_copies(self, row: TaskRow) -> Generator[Operation, Result, TaskRow]:
        """Insert the copies of an inserted row; returns the row with those that succeeded."""
        if not row.copies:
            return row
        inserted = []
        for table, key in row.copies:
            copy = self.write(Kind.INSERT, key, row.number, table=table, name="insert_copy")
            result = yield copy
            if result.outcome.succeeded:
                inserted.append((table, key))
        return dataclasses.replace(row, copies=tuple(inserted))

    def delete(self, drawn: int) -> Steps:
        """Delete the oldest inserted row, then its copies; insert one if there is none."""
        if not self._rows:
            return self.insert(drawn)
        return self._delete(self._rows.popleft())

    def _delete(self, row: TaskRow) -> Steps:
        result = yield _without_content(Kind.DELETE, row.key)
        if result.outcome.succeeded:
            yield from self._delete_copies(row)

    def _delete_copies(self, row: TaskRow) -> Steps:
        for table, key in row.copies:
            yield _without_content(Kind.DELETE, key, table=table, name="delete_copy")

    def conditional_update(self, key: Key, number: int) -> Steps:
        """Read an entity, then update it if it has not changed since (optimistic locking)."""
        result = yield _without_content(Kind.POINT_QUERY, key, name="read_for_update")
        if result.outcome.succeeded:
            etag = cast(Mapping[str, str], result.value)[ETAG]
            yield self.write(Kind.UPDATE_MERGE, key, number, name="conditional_update", etag=etag)

    def read_then_write(self, row: TaskRow) -> Steps:
        """Read an entity to decide between insert and update.

        The performance checklist, "Upsert", advises against it; this shows the cost.
        """
        result = yield _without_content(Kind.POINT_QUERY, row.key, name="read_before_write")
        if result.outcome is Outcome.NOT_FOUND:
            yield from self._insert(row, name="insert_after_read")
        elif result.outcome.succeeded:
            yield self.write(Kind.UPDATE_MERGE, row.key, row.number, name="update_after_read")

    def key_change(self, drawn: int) -> Steps:
        """Give the oldest inserted row another key: delete it, then insert it under the new key.

        Within a partition one transaction does both. Between partitions, or with copies, the
        entity is lost if a later step fails. If there is no inserted row, one is inserted.
        """
        if not self._rows:
            return self.insert(drawn)
        old, new = self._rows.popleft(), self._new(drawn)
        if old.copies or new.copies or old.key.partition_key != new.key.partition_key:
            return self._delete_and_insert(old, new)
        return self._replace(old, new)

    def _delete_and_insert(self, old: TaskRow, new: TaskRow) -> Steps:
        result = yield _without_content(Kind.DELETE, old.key, name="key_change_delete")
        if result.outcome.succeeded:
            yield from self._delete_copies(old)
            yield from self._insert(new, name="key_change_insert")

    def _replace(self, old: TaskRow, new: TaskRow) -> Steps:
        delete = _without_content(Kind.DELETE, old.key)
        insert = self.write(Kind.INSERT, new.key, new.number)
        result = yield transaction((delete, insert), name="key_change")
        if result.outcome.succeeded:
            self._rows.append(new)

    def transaction(self, drawn: int, touched: Iterable[tuple[Kind, Key, int]]) -> Task:
        """Entity group transaction.

        Args:
            drawn: What was drawn, of which new rows are made.
            touched: Kind, key and number of an existing row for each operation. An insert takes
                a new row instead. A delete takes a row that an earlier transaction inserted; if
                there is none, it becomes an insert.
        """
        wanted = list(touched)
        # A transaction stays in one partition: that of its existing rows or, if there are none, of
        # its first new row, even if the next new row would go to another partition.
        existing = [key for kind, key, _ in wanted if not kind.moves_rows]
        new = None if existing else self._new(drawn)
        home = existing[0].partition_key if new is None else new.key.partition_key
        parts: list[Operation] = []
        added: list[TaskRow] = []
        removed: list[TaskRow] = []
        for kind, key, number in wanted:
            if not kind.moves_rows:
                parts.append(self.write(kind, key, number))
            elif kind is Kind.DELETE and (row := self._of_transactions.take(home)) is not None:
                removed.append(row)
                parts.append(_without_content(kind, row.key))
            else:
                created, new = new or self._new(drawn), None
                row = dataclasses.replace(
                    created, key=dataclasses.replace(created.key, partition_key=home)
                )
                added.append(row)
                parts.append(self.write(Kind.INSERT, row.key, row.number))
        operation = transaction(tuple(parts))
        if not added and not removed:
            return operation
        return self._transact(operation, added, removed)

    def _transact(
        self, operation: Operation, added: list[TaskRow], removed: list[TaskRow]
    ) -> Steps:
        result = yield operation
        if not result.outcome.succeeded:
            return
        inserted = []
        for row in added:
            inserted.append((yield from self._insert_copies(row)))
        for row in removed:
            yield from self._delete_copies(row)
        for row in inserted:
            self._of_transactions.add(row.key.partition_key, row)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MessageShape:
    """What gets, peeks and updates ask a queue for.

    Attributes:
        most: Messages that a get or a peek returns at most.
        hidden_s: Seconds in which nobody else gets a message that was got or updated.
    """

    most: int = 1
    hidden_s: int = 30


USUAL_MESSAGES = MessageShape()


class MessageTasks:
    """Makes tasks on messages, and remembers those that this worker has got.

    An update or a delete takes the message of the queue that was got first; if there is none, it
    becomes a get. An updated message has a new receipt and is remembered again. The oldest messages
    beyond ``remembered`` are forgotten, and are visible again after their time.
    """

    def __init__(
        self, entities: EntityFactory, shape: MessageShape, remembered: int = 100_000
    ) -> None:
        self._make = OperationFactory(entities)
        self._shape = shape
        self._got = ByPartition[Message](remembered)

    def put(self, queue: str) -> Task:
        return self._make.put_message(queue)

    def peek(self, queue: str) -> Task:
        return self._make.peek_messages(queue, most=self._shape.most)

    def get(self, queue: str) -> Steps:
        shape = self._shape
        result = yield self._make.get_messages(queue, most=shape.most, hidden_s=shape.hidden_s)
        for message in messages_of(result):
            self._got.add(queue, message)

    def update(self, queue: str) -> Steps:
        message = self._got.take(queue)
        if message is None:
            yield from self.get(queue)
            return
        hidden_s = self._shape.hidden_s
        result = yield self._make.update_message(queue, message, hidden_s=hidden_s)
        for updated in messages_of(result):
            self._got.add(queue, updated)

    def delete(self, queue: str) -> Steps:
        message = self._got.take(queue)
        if message is None:
            yield from self.get(queue)
        else:
            yield self._make.delete_message(queue, message)


def _without_content(kind: Kind, key: Key, *, table: str = "", name: str = "") -> Operation:
    return new_operation(
        kind=kind, partition_key=key.partition_key, row_key=key.row_key, table=table, name=name
    )


class ByPartition(Generic[_T]):
    """At most ``most`` remembered rows; the oldest of each partition can be taken."""

    __slots__ = ("_count", "_most", "_rows")

    def __init__(self, most: int) -> None:
        self._rows: dict[str, collections.deque[_T]] = {}
        self._most = most
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, partition_key: str, row: _T) -> None:
        """Remember a row; above the limit, forget a row of the partition remembered longest."""
        self._rows.setdefault(partition_key, collections.deque()).append(row)
        self._count += 1
        if self._count > self._most:
            self.take(next(iter(self._rows)))

    def take(self, partition_key: str) -> _T | None:
        """Remove and return the oldest row of this partition, if any."""
        rows = self._rows.get(partition_key)
        if rows is None:
            return None
        self._count -= 1
        row = rows.popleft()
        if not rows:
            del self._rows[partition_key]
        return row
