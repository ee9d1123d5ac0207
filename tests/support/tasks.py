"""What tests of tasks share: outcomes, kinds of writes, and the place of a row."""

from __future__ import annotations

from typing import Any

from harness.model.operation import Kind, Operation
from harness.model.outcome import Outcome, Result
from tests.support.results import done

FAILURES = [
    outcome
    for outcome in Outcome
    if not outcome.succeeded and outcome not in (Outcome.NOT_FOUND, Outcome.DEFECT)
]
SUCCESSES = [Outcome.SUCCESS, Outcome.SUCCESS_AFTER_AMBIGUITY]
MIXED = (
    Kind.INSERT,
    Kind.UPSERT_MERGE,
    Kind.DELETE,
    Kind.UPSERT_REPLACE,
    Kind.UPDATE_MERGE,
    Kind.INSERT,
    Kind.UPDATE_REPLACE,
    Kind.DELETE,
)
Where = tuple[str, str, str]
"""Table, PartitionKey, RowKey."""


def result(operation: Operation, outcome: Outcome = Outcome.SUCCESS, value: Any = None) -> Result:
    return done(operation, 0.0, outcome=outcome, value=value)


def where(operation: Operation) -> Where:
    return operation.table, operation.partition_key, operation.row_key
