"""Tasks: what an application does in one go, which may be several operations one after the other.

What follows depends on what became of the operation before it. Rows that a worker inserted are
remembered, with their copies, when the service has acknowledged them, so that nothing is deleted,
moved or read that was never there. What fails ends the task, but for copies: what fails there is
not made up for, and readers of the copies will miss it.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import cast

from harness.model.entity import ETAG, Properties
from harness.model.operation import Kind, Operation, new_operation, transaction
from harness.model.outcome import Outcome, Result
from harness.workload.keys import Key
from harness.workload.remembered import ByPartition

_COMING_AND_GOING = frozenset((Kind.INSERT, Kind.DELETE))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A row to be written, or one that was.

    Attributes:
        key: Its key.
        number: Which entity it is.
        copies: Further keys under which it is stored too, each with the table's ending.
    """

    key: Key
    number: int
    copies: tuple[tuple[str, Key], ...] = ()


class Tasks:
    """Makes the operations of tasks.

    Args:
        new: Gives the next new row, for the partition that was drawn.
        content: Gives the properties of the entity with this key and number.
        remembered: So many rows that were inserted alone, and as many of transactions; the oldest
            are forgotten beyond it.
    """

    def __init__(
        self,
        new: Callable[[int], Write],
        content: Callable[[Key, int], Properties],
        remembered: int = 100_000,
    ) -> None:
        self._new = new
        self._content = content
        self._rows: collections.deque[Write] = collections.deque(maxlen=remembered)
        self._of_transactions = ByPartition[Write](remembered)

    @property
    def known(self) -> int:
        """Rows that this worker inserted and remembers."""
        return len(self._rows)

    def newest(self, age: int) -> Write | None:
        """The row that was inserted so many rows ago; None where it was not by this worker."""
        return self._rows[-1 - age] if age < len(self._rows) else None

    def write(self, kind: Kind, key: Key, number: int) -> Operation:
        """One write of an entity that is there."""
        return new_operation(
            kind=kind,
            partition_key=key.partition_key,
            row_key=key.row_key,
            properties=self._content(key, number),
        )

    def series_merge(self, key: Key, *, hour: int) -> Operation:
        """A data series in one entity: the value of one hour is merged into it.

        Nothing but this property is sent (performance checklist, "Storing data series in a single
        entity").
        """
        name = f"Hour{hour:02d}"
        return _operation(Kind.UPSERT_MERGE, key, {name: hour * 1.5}, name="series_merge")

    def insert(self, partition: int) -> Operation:
        """Insert a new row, then its copies."""
        return self._insert(self._new(partition))

    def _insert(self, row: Write, name: str = "") -> Operation:
        return _operation(
            Kind.INSERT,
            row.key,
            self._content(row.key, row.number),
            name=name,
            then=partial(self._inserted, row),
        )

    def _inserted(self, row: Write, result: Result) -> Operation | None:
        if not result.outcome.succeeded:
            return None
        return _Copying(self._content, added=[row], remember=self._rows.append).next()

    def delete(self, partition: int) -> Operation:
        """Delete the oldest row that was inserted, then its copies; without one, insert one."""
        if not self._rows:
            return self.insert(partition)
        row = self._rows.popleft()
        return _operation(Kind.DELETE, row.key, then=partial(self._deleted, row, None))

    def _deleted(
        self, row: Write, done: Callable[[], Operation] | None, result: Result
    ) -> Operation | None:
        if not result.outcome.succeeded:
            return None
        return _Copying(self._content, removed=[row], done=done).next()

    def conditional_update(self, key: Key, number: int) -> Operation:
        """Read an entity, then change it only if nobody did meanwhile (optimistic locking)."""
        return _operation(
            Kind.POINT_QUERY,
            key,
            name="read_for_update",
            then=partial(self._update_if_unchanged, key, number),
        )

    def _update_if_unchanged(self, key: Key, number: int, result: Result) -> Operation | None:
        if not result.outcome.succeeded:
            return None
        read = cast(Mapping[str, str], result.value)
        return _operation(
            Kind.UPDATE_MERGE,
            key,
            self._content(key, number),
            name="conditional_update",
            etag=read[ETAG],
        )

    def read_then_write(self, row: Write) -> Operation:
        """Read an entity to find out whether to insert or to update it.

        The performance checklist, "Upsert", advises against it; so its price can be measured.
        """
        return _operation(
            Kind.POINT_QUERY,
            row.key,
            name="read_before_write",
            then=partial(self._insert_or_update, row),
        )

    def _insert_or_update(self, row: Write, result: Result) -> Operation | None:
        if result.outcome is Outcome.NOT_FOUND:
            return self._insert(row, name="insert_after_read")
        if not result.outcome.succeeded:
            return None
        content = self._content(row.key, row.number)
        return _operation(Kind.UPDATE_MERGE, row.key, content, name="update_after_read")

    def key_change(self, partition: int) -> Operation:
        """Give a row another key, which is to delete and to insert it; without one, insert one.

        Within a partition one transaction does both. Between partitions, and with copies, the
        entity is lost where a later step fails.
        """
        if not self._rows:
            return self.insert(partition)
        old, new = self._rows.popleft(), self._new(partition)
        if old.copies or new.copies or old.key.partition_key != new.key.partition_key:
            insert = partial(self._insert, new, name="key_change_insert")
            then = partial(self._deleted, old, insert)
            return _operation(Kind.DELETE, old.key, name="key_change_delete", then=then)
        return transaction(
            (
                _operation(Kind.DELETE, old.key),
                _operation(Kind.INSERT, new.key, self._content(new.key, new.number)),
            ),
            name="key_change",
            then=partial(self._inserted, new),
        )

    def transaction(self, partition: int, touched: Iterable[tuple[Kind, Key, int]]) -> Operation:
        """Entity group transaction.

        Args:
            partition: The partition that was drawn.
            touched: For each part what it does, and a row that is there. Inserts take new rows
                instead, deletes rows that an earlier transaction inserted; without one they are
                inserts.
        """
        wanted = list(touched)
        # One transaction stays in one partition: that of the rows that are there, if it touches
        # any; else that of the first new row, also where the next one would begin another.
        there = [key for kind, key, _ in wanted if kind not in _COMING_AND_GOING]
        new = None if there else self._new(partition)
        home = there[0].partition_key if new is None else new.key.partition_key
        parts: list[Operation] = []
        added: list[Write] = []
        removed: list[Write] = []
        for kind, key, number in wanted:
            if kind not in _COMING_AND_GOING:
                parts.append(_operation(kind, key, self._content(key, number)))
            elif kind is Kind.DELETE and (row := self._of_transactions.take(home)) is not None:
                removed.append(row)
                parts.append(_operation(kind, row.key))
            else:
                made, new = new or self._new(partition), None
                row = dataclasses.replace(
                    made, key=dataclasses.replace(made.key, partition_key=home)
                )
                added.append(row)
                parts.append(_operation(Kind.INSERT, row.key, self._content(row.key, row.number)))
        then = partial(self._transacted, added, removed) if added or removed else None
        return transaction(tuple(parts), then=then)

    def _transacted(
        self, added: list[Write], removed: list[Write], result: Result
    ) -> Operation | None:
        if not result.outcome.succeeded:
            return None
        remember = self._remember_of_transaction
        return _Copying(self._content, added=added, removed=removed, remember=remember).next()

    def _remember_of_transaction(self, row: Write) -> None:
        self._of_transactions.add(row.key.partition_key, row)


class _Copying:
    """Keeps the copies of rows in step, one operation after the other.

    Args:
        content: Gives the properties of the entity with this key and number.
        added: Rows that are there now; their copies are inserted.
        removed: Rows that are not there any more; their copies are deleted.
        remember: Given each added row at the end, with the copies that were acknowledged.
        done: Gives what follows in the same task.
    """

    def __init__(
        self,
        content: Callable[[Key, int], Properties],
        *,
        added: Sequence[Write] = (),
        removed: Sequence[Write] = (),
        remember: Callable[[Write], None] | None = None,
        done: Callable[[], Operation] | None = None,
    ) -> None:
        self._content = content
        self._added = added
        self._remember = remember
        self._done = done
        self._inserts = collections.deque(
            (place, *copy) for place, row in enumerate(added) for copy in row.copies
        )
        self._deletes = collections.deque(copy for row in removed for copy in row.copies)
        self._kept: list[list[tuple[str, Key]]] = [[] for _ in added]

    def next(self) -> Operation | None:
        """The next operation; None at the end."""
        if self._inserts:
            place, table, key = self._inserts.popleft()
            return _operation(
                Kind.INSERT,
                key,
                self._content(key, self._added[place].number),
                table=table,
                name="insert_copy",
                then=partial(self._inserted, place, (table, key)),
            )
        if self._deletes:
            table, key = self._deletes.popleft()
            return _operation(
                Kind.DELETE, key, table=table, name="delete_copy", then=lambda _: self.next()
            )
        if self._remember is not None:
            for row, kept in zip(self._added, self._kept, strict=True):
                self._remember(dataclasses.replace(row, copies=tuple(kept)))
        return None if self._done is None else self._done()

    def _inserted(self, place: int, copy: tuple[str, Key], result: Result) -> Operation | None:
        if result.outcome.succeeded:
            self._kept[place].append(copy)
        return self.next()


def _operation(
    kind: Kind,
    key: Key,
    properties: Properties | None = None,
    *,
    table: str = "",
    name: str = "",
    etag: str | None = None,
    then: Callable[[Result], Operation | None] | None = None,
) -> Operation:
    return new_operation(
        kind=kind,
        partition_key=key.partition_key,
        row_key=key.row_key,
        table=table,
        name=name,
        properties=properties,
        etag=etag,
        then=then,
    )
