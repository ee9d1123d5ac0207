"""Traces of a made-up application that works on tables in memory, one operation after the other."""

from __future__ import annotations

import collections
import random
from collections.abc import Iterator
from pathlib import Path

from harness.model.operation import WHOLE_TABLE, KeyRange, Kind, Operation, transaction
from harness.model.outcome import Attempt, Outcome, Result
from harness.trace.head import TraceHead
from harness.trace.recorder import Recorder
from harness.trace.writer import TraceWriter
from tests.support.memory_tables import MemoryTables
from tests.support.results import done

STARTED_S = 1_700_000_000
STATUSES = {
    Outcome.SUCCESS: (204, ""),
    Outcome.NOT_FOUND: (404, "ResourceNotFound"),
    Outcome.CONFLICT: (409, "EntityAlreadyExists"),
    Outcome.PRECONDITION: (412, "UpdateConditionNotSatisfied"),
}
WRITES = (Kind.UPSERT_MERGE, Kind.UPSERT_REPLACE, Kind.UPDATE_MERGE, Kind.UPDATE_REPLACE)


class Application:
    """Random operations on a few tables.

    Args:
        ranges: Whether it reads ranges of rows and several partitions, not only whole partitions,
            and whether transactions are refused: it is not visible which of their rows was there.
    """

    def __init__(
        self,
        rng: random.Random,
        *,
        tables: tuple[str, ...] = ("Orders", "Index"),
        partitions: int = 3,
        rows: int = 12,
        ranges: bool = True,
    ) -> None:
        self._rng, self._tables, self._ranges = rng, tables, ranges
        self._partitions, self._rows = partitions, rows

    def before(self) -> Iterator[Operation]:
        """What was stored before the recording."""
        for table in self._tables:
            for partition in range(self._partitions):
                for row in range(self._rows):
                    if self._rng.random() < 0.5:
                        yield self._write(Kind.INSERT, table, f"p{partition}", f"r{row:02}")

    def next(self) -> Operation:
        rng = self._rng
        table, key = rng.choice(self._tables), f"p{rng.randrange(self._partitions)}"
        chosen = rng.random()
        if chosen < 0.25:
            return self._query(table, key)
        if chosen < 0.35:
            rows = rng.sample(range(self._rows), rng.randint(1, 3))
            kinds = (Kind.INSERT, Kind.DELETE, *WRITES) if self._ranges else WRITES[:2]
            return transaction(
                tuple(self._write(rng.choice(kinds), table, key, f"r{row:02}") for row in rows)
            )
        row = f"r{rng.randrange(self._rows):02}"
        if chosen < 0.5:
            return Operation(kind=Kind.POINT_QUERY, partition_key=key, row_key=row, table=table)
        kind = rng.choice((Kind.INSERT, Kind.INSERT, Kind.DELETE, *WRITES))
        stale = kind in (Kind.DELETE, Kind.UPDATE_MERGE) and rng.random() < 0.2
        return self._write(kind, table, key, row, 'W/"stale"' if stale else None)

    def _write(
        self, kind: Kind, table: str, key: str, row: str, etag: str | None = None
    ) -> Operation:
        return Operation(
            kind=kind,
            partition_key=key,
            row_key=row,
            table=table,
            etag=etag,
            properties=None if kind is Kind.DELETE else {"Value": self._rng.randrange(100)},
        )

    def _query(self, table: str, key: str) -> Operation:
        rng = self._rng
        asked = f"Value lt {rng.randrange(100)}" if rng.random() < 0.3 else None
        keys, top = KeyRange(), None
        if self._ranges:
            if rng.random() < 0.15:
                key = WHOLE_TABLE
            elif rng.random() < 0.6:
                ends = sorted(rng.sample(range(self._rows + 1), 2))
                keys = KeyRange(row_from=f"r{ends[0]:02}", row_before=f"r{ends[1]:02}")
            if asked is None and rng.random() < 0.3:
                top = rng.randint(1, 4)
        return Operation(
            kind=Kind.QUERY,
            partition_key=key,
            table=table,
            key_range=keys,
            filter=asked,
            top=top,
        )


def executed(tables: MemoryTables, operation: Operation, at_s: float = 0.0) -> Result:
    """The result with the entity count that a gateway would give it."""
    result = tables.execute(operation)
    status, code = STATUSES[result.outcome]
    returned = entities = 0
    if operation.kind is Kind.QUERY:
        assert isinstance(result.value, list)
        returned, entities = len(result.value), tables.scanned
        if operation.top is not None and returned >= operation.top:
            entities = returned
        status = 200
    elif operation.kind is Kind.POINT_QUERY:
        entities = 1
    elif result.outcome is Outcome.SUCCESS:
        entities = len(operation.parts) or 1
    return done(
        operation,
        at_s,
        0.004,
        outcome=result.outcome,
        attempts=(Attempt(status=status, sent_s=at_s, latency_s=0.004, error_code=code),),
        entities=entities,
        entities_returned=returned,
        bytes_sent=0 if operation.kind.reads else 300 * (len(operation.parts) or 1),
        bytes_received=300 * returned,
    )


def record(
    path: Path,
    application: Application,
    operations: int,
    *,
    every_s: float = 0.01,
    late_s: float = 2.5,
) -> collections.Counter[str]:
    """Record so many operations; return their entities by partition.

    Args:
        late_s: When the first operation is sent: a trace begins before the load.
    """
    tables, recorder = MemoryTables(), Recorder()
    for operation in application.before():
        tables.execute(operation)
    entities: collections.Counter[str] = collections.Counter()
    for number in range(operations):
        at_s = STARTED_S + late_s + number * every_s
        result = executed(tables, application.next(), at_s)
        recorder.add(result, f"client {number % 3}")
        entities[result.operation.partition] += result.entities
    head = TraceHead(started_ms=STARTED_S * 1000, source="watch", name="app", run_id="watched")
    with TraceWriter(path, head) as writer:
        writer.append(recorder.drain(0.0, final=True))
    return entities
