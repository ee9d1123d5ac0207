"""The operation source of a mix: weighted actions over the keys of a design."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping

from harness.model.entity import MAX_TRANSACTION_OPERATIONS, Properties
from harness.model.operation import Kind, Operation, new_operation, transaction
from harness.workload.entity_factory import EntityFactory, unpacked
from harness.workload.keys.design import Key, KeyDesign
from harness.workload.mix import Action, ActionMix
from harness.workload.operation_source import Steps, Task
from harness.workload.queries import Queries, QueryShape, QueryType
from harness.workload.tasks import USUAL_MESSAGES, MessageShape, MessageTasks, TaskRow, Tasks

_WRITES = {Action(kind.value): kind for kind in Kind if kind.upserts or kind.updates}
"""Actions that are one write of an existing row."""
_VERSION_BITS = 24


def _unpacking(read: Operation) -> Steps:
    """Read, and decompress what was read, as an application has to."""
    result = yield read
    entities = result.value if isinstance(result.value, list) else [result.value]
    for entity in entities:
        if isinstance(entity, Mapping):
            unpacked(entity)


class Workload:
    """The operations of one worker.

    Reads, upserts and updates go to loaded rows, or also to newly inserted rows if the design
    prefers the newest. A delete takes the oldest row that this worker inserted; if there is none,
    it becomes an insert. The operations depend only on the arguments, the random source and the
    results of earlier operations: the same seed gives the same list.

    Args:
        transaction_size: Operations of a transaction, at most the rows of any partition.
        transaction_kinds: Kinds of these operations, repeated in this order.
        worker: Number of the worker; part of every new key, to make it unique.
        loading_size: Entities of a loading transaction.
        messages: What a mix of actions on queues asks for. Such a mix loads nothing.
    """

    def __init__(
        self,
        *,
        design: KeyDesign,
        mix: ActionMix[Action],
        entities: EntityFactory,
        transaction_size: int = 10,
        transaction_kinds: tuple[Kind, ...] = (Kind.UPSERT_MERGE,),
        queries: QueryShape | None = None,
        worker: int = 0,
        loading_size: int = MAX_TRANSACTION_OPERATIONS,
        messages: MessageShape = USUAL_MESSAGES,
    ) -> None:
        self._design = design
        self._draw = design.picker(worker)
        self._mix = mix
        self._entities = entities
        self._transaction_size = transaction_size
        self._transaction_kinds = transaction_kinds
        self._worker = worker
        self._loading_size = loading_size
        # The content of a stored entity shows which worker wrote it.
        self._version = worker << _VERSION_BITS
        self._inserted = 0
        self._tasks = Tasks(self._new, self._content)
        self._loads = any(action.on_rows for action in mix.actions)
        of_queue = MessageTasks(entities, messages)
        moving = any(action.moves_rows for action in mix.actions) or (
            Action.TRANSACTION in mix.actions and any(kind.moves_rows for kind in transaction_kinds)
        )
        self.adds_rows = moving
        scans = Queries(design, queries or QueryShape(), moving=moving)
        self._make: dict[Action, Callable[[int, random.Random], Task]] = {
            Action.POINT_QUERY: self._point_query,
            **{action: self._queries(found) for action, found in scans.types().items()},
            Action.INSERT: lambda drawn, _: self._tasks.insert(drawn),
            Action.DELETE: lambda drawn, _: self._tasks.delete(drawn),
            Action.TRANSACTION: self._transaction,
            Action.SERIES_MERGE: self._series_merge,
            Action.CONDITIONAL_UPDATE: lambda drawn, rng: self._tasks.conditional_update(
                *self._row(drawn, rng)
            ),
            Action.READ_THEN_WRITE: self._read_then_write,
            Action.KEY_CHANGE: lambda drawn, _: self._tasks.key_change(drawn),
            Action.PUT_MESSAGE: self._of_queue(of_queue.put),
            Action.GET_MESSAGES: self._of_queue(of_queue.get),
            Action.PEEK_MESSAGES: self._of_queue(of_queue.peek),
            Action.UPDATE_MESSAGE: self._of_queue(of_queue.update),
            Action.DELETE_MESSAGE: self._of_queue(of_queue.delete),
        }

    @property
    def tables(self) -> tuple[str, ...]:
        return self._design.tables

    @property
    def loaded_entities(self) -> int:
        return self._design.rows.total * len(self._design.tables) if self._loads else 0

    @property
    def loading_requests(self) -> int:
        rows, size = self._design.rows, self._loading_size
        each = (-(-rows.of(partition) // size) for partition in range(rows.partitions))
        copied = rows.total * (len(self._design.tables) - 1)
        return sum(each) + copied if self._loads else 0

    def partitions(self) -> Iterator[str]:
        yield from map(self._design.partition_key, range(self._design.count))
        if len(self._design.tables) > 1:
            yield from dict.fromkeys(copy.partition for copy in self._copies())

    def next_task(self, rng: random.Random) -> Task:
        task = self._task(rng)
        if self._entities.compresses and isinstance(task, Operation) and task.kind.reads:
            return _unpacking(task)
        return task

    def _task(self, rng: random.Random) -> Task:
        action = self._mix.draw(rng)
        drawn = self._draw(rng)
        make = self._make.get(action)
        if make is not None:
            return make(drawn, rng)
        key, number = self._row(drawn, rng)
        return self._tasks.write(_WRITES[action], key, number)

    def loading(self) -> Iterator[Operation]:
        """The transactions that load every partition; then the copies under further keys."""
        design = self._design
        if not self._loads:
            return
        for partition in range(design.count):
            rows = design.rows.of(partition)
            for first in range(0, rows, self._loading_size):
                last = min(first + self._loading_size, rows)
                parts = tuple(self._loaded(partition, row) for row in range(first, last))
                yield transaction(parts) if len(parts) > 1 else parts[0]
        if len(design.tables) > 1:
            yield from self._copies()

    def _copies(self) -> Iterator[Operation]:
        design = self._design
        for partition in range(design.count):
            for row in range(design.rows.of(partition)):
                number = design.rows.before(partition) + row
                for table, key in design.copies(partition, row):
                    yield self._tasks.write(Kind.INSERT, key, number, table=table)

    def _loaded(self, partition: int, row: int) -> Operation:
        number = self._design.rows.before(partition) + row
        return self._tasks.write(Kind.INSERT, self._design.key(partition, row), number)

    def _new(self, drawn: int) -> TaskRow:
        self._inserted += 1
        design, place = self._design, (drawn, self._worker, self._inserted)
        return TaskRow(
            key=design.new(*place),
            number=design.rows.total + self._inserted,
            copies=design.new_copies(*place),
        )

    def _content(self, key: Key, number: int) -> Properties:
        self._version += 1
        return self._entities.properties(key.partition_key, key.row_key, self._version, number)

    def _row(self, drawn: int, rng: random.Random) -> tuple[Key, int]:
        """An existing row and its number; the newest are those that this worker inserted."""
        design = self._design
        if design.newest_first:
            newer = self._tasks.newest(drawn)
            if newer is not None:
                return newer.key, newer.number
            drawn -= self._tasks.known
        partition, row = design.row_of(drawn, rng)
        return design.key(partition, row), design.rows.before(partition) + row

    def _point_query(self, drawn: int, rng: random.Random) -> Operation:
        key, _ = self._row(drawn, rng)
        return new_operation(
            kind=Kind.POINT_QUERY, partition_key=key.partition_key, row_key=key.row_key
        )

    def _queries(self, found: QueryType) -> Callable[[int, random.Random], Operation]:
        """Makes queries of a type from what was drawn."""
        if found.cross_partition:
            return found.make
        return lambda drawn, rng: found.make(self._design.partition_of(drawn, rng), rng)

    def _of_queue(self, make: Callable[[str], Task]) -> Callable[[int, random.Random], Task]:
        """Makes tasks on the queue that was drawn: the partition is its name."""
        design = self._design
        return lambda drawn, rng: make(design.partition_key(design.partition_of(drawn, rng)))

    def _series_merge(self, drawn: int, rng: random.Random) -> Operation:
        key, _ = self._row(drawn, rng)
        return self._tasks.series_merge(key, hour=int(rng.random() * 24))

    def _read_then_write(self, drawn: int, rng: random.Random) -> Task:
        if rng.random() < 0.5:
            return self._tasks.read_then_write(self._new(drawn))
        key, number = self._row(drawn, rng)
        return self._tasks.read_then_write(TaskRow(key=key, number=number))

    def _transaction(self, drawn: int, rng: random.Random) -> Task:
        design, partition = self._design, self._design.partition_of(drawn, rng)
        kinds = self._transaction_kinds
        rows = design.rows.of(partition)
        # Consecutive rows modulo the number of rows are distinct if there are enough of them.
        first = int(rng.random() * rows)
        before = design.rows.before(partition)
        touched = []
        for offset in range(self._transaction_size):
            row = (first + offset) % rows
            key = design.key(partition, row)
            touched.append((kinds[offset % len(kinds)], key, before + row))
        return self._tasks.transaction(drawn, touched)
