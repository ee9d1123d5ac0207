"""A source driven without a service: everything it asks for is done at once.

What a profile would send is seen so before anything is sent.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from harness.model.counting import entity_count
from harness.model.entity import ETAG
from harness.model.operation import Kind, Operation
from harness.model.outcome import Attempt, Outcome, Result
from harness.workload.source import Source

_MOST_LOADED = 20_000
"""Rows that are remembered one by one; of more every row is taken to be there."""

_Row = tuple[str, str, str]


def operations(source: Source, rng: random.Random) -> Iterator[Operation]:
    """What ``source`` sends, task after task, without end."""
    rows = _Rows(source)
    while True:
        operation: Operation | None = source.next(rng)
        while operation is not None:
            yield operation
            result = rows.do(operation)
            operation = None if operation.then is None else operation.then(result)


class _Rows:
    """The rows that would be there."""

    def __init__(self, source: Source) -> None:
        self._all = source.loaded_entities > _MOST_LOADED
        self._there: set[_Row] = set()
        if not self._all:
            for operation in source.loading():
                self.do(operation)

    def do(self, operation: Operation) -> Result:
        """Do it as the service would."""
        for part in operation.parts or (operation,):
            row = (part.table, part.partition_key, part.row_key)
            if part.kind is Kind.DELETE:
                self._there.discard(row)
            elif not part.kind.reads:
                self._there.add(row)
        outcome, value = Outcome.SUCCESS, None
        if operation.kind is Kind.POINT_QUERY:
            row = (operation.table, operation.partition_key, operation.row_key)
            if self._all or row in self._there:
                value = {ETAG: 'W/"imagined"'}
            else:
                outcome = Outcome.NOT_FOUND
        walked = 0 if operation.walks is None else operation.walks.entities
        return Result(
            operation=operation,
            outcome=outcome,
            sent_s=0.0,
            done_s=0.0,
            attempts=(Attempt(status=200, sent_s=0.0, latency_s=0.0),),
            entities=entity_count(operation, outcome, max(1, walked)),
            value=[] if operation.kind is Kind.QUERY else value,
        )
