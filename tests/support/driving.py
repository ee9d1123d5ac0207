"""Tasks of an operation source, driven by hand."""

from __future__ import annotations

from harness.model.operation import Operation
from harness.workload.operation_source import Task, next_operation, steps_of


def first_of(task: Task) -> Operation:
    """The operation that a task starts with."""
    operation = next_operation(steps_of(task))
    assert operation is not None
    return operation
