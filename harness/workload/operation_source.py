"""Operation sources: what a worker sends, task by task; and a source driven without a service."""

from __future__ import annotations

import collections
import dataclasses
import random
from collections.abc import Generator, Iterator
from types import GeneratorType
from typing import Protocol, TypeAlias

from harness.model.entity import ETAG
from harness.model.errors import SetupError
from harness.model.operation import Kind, Message, Operation
from harness.model.outcome import Attempt, Outcome, Result
from harness.model.target import entity_count

Steps: TypeAlias = Generator[Operation, Result, None]
"""A task of several operations: ``result = yield operation`` sends one and returns its result."""
Task: TypeAlias = Operation | Steps
"""`Steps`, or a single operation whose result is not needed: its entities are not kept."""


class OperationSource(Protocol):
    """What a worker sends. Pure: the same random numbers and results give the same tasks."""

    @property
    def tables(self) -> tuple[str, ...]:
        """Endings of the names of its tables; the first is usually empty."""

    @property
    def loaded_entities(self) -> int:
        """Number of entities that `loading` puts into all tables together."""

    @property
    def loading_requests(self) -> int:
        """Number of the operations of `loading`; each is a request, and billed once."""

    @property
    def adds_rows(self) -> bool:
        """Whether tasks may insert rows, which cleaning an existing table has to delete."""

    def loading(self) -> Iterator[Operation]:
        """The operations that load all tables before the test."""

    def partitions(self) -> Iterator[str]:
        """Names of the partitions that are loaded, as `Operation.partition` gives them."""

    def next_task(self, rng: random.Random) -> Task:
        """The next task; its operations are sent one after the other."""


def steps_of(task: Task) -> Steps:
    if isinstance(task, Operation):
        yield task
    else:
        yield from task


def next_operation(steps: Steps, result: Result | None = None) -> Operation | None:
    """The next operation of a task, after the result of the last one; None if the task is over.

    Raises:
        TypeError: the task yields something else. The traceback ends at that ``yield``.
        Exception: whatever the task raises.
    """
    try:
        operation = next(steps) if result is None else steps.send(result)
        if not isinstance(operation, Operation):
            hint = "; write `yield from`" if isinstance(operation, GeneratorType) else ""
            error = TypeError(f"yielded {operation!r} instead of an operation{hint}")
            steps.throw(error)
            raise error
    except StopIteration:
        return None
    return operation


_MOST_LOADED = 20_000
"""If more rows are loaded, all rows are assumed to exist."""
_MOST_EMPTY_TASKS = 1_000

_RowName = tuple[str, str, str]


def results_by_task(
    source: OperationSource, rng: random.Random
) -> Iterator[tuple[int, Operation, Result]]:
    """The operations of ``source`` without end, each with the number of its task and a result.

    The results are those of a service without failures. The operation of a result asks for as many
    messages as came, or for one if none did: so many of the rate a get takes. A `SetupError` says
    that 1,000 consecutive tasks have no operation.
    """
    rows = _Rows(source)
    number = empty = 0
    while True:
        number += 1
        steps = steps_of(source.next_task(rng))
        operation = next_operation(steps)
        empty = empty + 1 if operation is None else 0
        if empty == _MOST_EMPTY_TASKS:
            raise SetupError(f"{empty:,} tasks in a row yielded no operation")
        while operation is not None:
            result = rows.perform(operation)
            yield number, operation, result
            operation = next_operation(steps, result)


class _Rows:
    def __init__(self, source: OperationSource) -> None:
        self._all = False
        self._existing: set[_RowName] = set()
        self._messages: collections.Counter[str] = collections.Counter()
        loaded = 0
        for operation in source.loading():
            self.perform(operation)
            loaded += operation.entities_asked
            if loaded > _MOST_LOADED:
                self._all = True
                break

    def perform(self, operation: Operation) -> Result:
        """The result that a service without failures would return."""
        if operation.kind.on_messages:
            return self._perform_on_queue(operation)
        for part in operation.parts or (operation,):
            row = (part.table, part.partition_key, part.row_key)
            if part.kind is Kind.DELETE:
                self._existing.discard(row)
            elif not part.kind.reads:
                self._existing.add(row)
        outcome, value = Outcome.SUCCESS, None
        if operation.kind is Kind.POINT_QUERY:
            row = (operation.table, operation.partition_key, operation.row_key)
            if self._all or row in self._existing:
                value = {ETAG: 'W/"imagined"'}
            else:
                outcome = Outcome.NOT_FOUND
        scanned = max(1, operation.key_range.entities or 0)
        return _imagined(operation, outcome, scanned, [] if operation.kind is Kind.QUERY else value)

    def _perform_on_queue(self, operation: Operation) -> Result:
        """Messages wait until they are got; one that was got is never visible again."""
        queue, kind = operation.partition_key, operation.kind
        self._messages[queue] += kind is Kind.PUT_MESSAGE
        found = min(self._messages[queue], operation.entities_asked) if kind.receives else 0
        if kind is Kind.GET_MESSAGES:
            self._messages[queue] -= found
        if kind is Kind.UPDATE_MESSAGE:
            found = 1
        value = [Message(id="imagined", receipt="imagined")] * found
        if kind.receives:
            operation = dataclasses.replace(operation, top=max(1, found))
        return _imagined(operation, Outcome.SUCCESS, found, value)


def _imagined(operation: Operation, outcome: Outcome, scanned: int, value: object) -> Result:
    return Result(
        operation=operation,
        outcome=outcome,
        sent_s=0.0,
        done_s=0.0,
        attempts=(Attempt(status=200, sent_s=0.0, latency_s=0.0),),
        entities=entity_count(operation, outcome, scanned),
        value=value,
    )
