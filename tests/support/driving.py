"""Tasks of an operation source, driven by hand."""

from __future__ import annotations

import random
from collections.abc import Iterator

from harness.model.operation import Operation
from harness.workload.operation_source import (
    OperationSource,
    Task,
    next_operation,
    results_by_task,
    steps_of,
)


def first_of(task: Task) -> Operation:
    """The operation that a task starts with."""
    operation = next_operation(steps_of(task))
    assert operation is not None
    return operation


def operations(source: OperationSource, rng: random.Random) -> Iterator[Operation]:
    """The operations of ``source``, task after task, without end; all of them succeed."""
    return (operation for _, operation, _ in results_by_task(source, rng))
