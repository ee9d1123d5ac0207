"""Operation sources: what a worker sends, task by task."""

from __future__ import annotations

import random
from collections.abc import Generator, Iterator
from types import GeneratorType
from typing import Protocol, TypeAlias

from harness.model.operation import Operation
from harness.model.outcome import Result

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

    def loading(self) -> Iterator[Operation]:
        """The operations that load all tables before the test."""

    def partitions(self) -> Iterator[str]:
        """Names of the partitions that are loaded, as `Operation.partition` gives them."""

    def next_task(self, rng: random.Random) -> Task:
        """The next task; its operations are sent one after the other."""


def steps_of(task: Task) -> Steps:
    """The task as a generator."""
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
