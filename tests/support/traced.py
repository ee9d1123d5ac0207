"""What traced operations have in common, and the counts of a trace in the form of a record."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import duckdb

from harness.measure.counts.snapshot import Snapshot
from harness.model.operation import KeyRange, Kind, Operation
from harness.model.outcome import Attempt, Outcome, Result, Scope
from harness.trace.counting import TraceCounts
from harness.trace.head import TraceHead
from harness.trace.operations import (
    UNKNOWN,
    Answer,
    TracedOperation,
    TracedParts,
    TracedQuery,
    TracedShape,
)
from harness.trace.reader import Trace, files_of
from harness.trace.recorder import Recorder
from harness.trace.writer import TraceWriter

STARTED_S = 1_700_000_000
Counts = dict[str, tuple[dict[str, int], dict[str, int]]]
"""Entities by name of the operation, and attempts by status, of each partition."""


def shape(kind: Kind, outcome: Outcome = Outcome.SUCCESS, *, table: str = "") -> TracedShape:
    """That of operations with one attempt, whose answer was whole."""
    return TracedShape(
        client="app",
        kind=kind,
        table=table,
        label=kind.value,
        outcome=outcome,
        estimated=False,
        attempts=(Answer(200),),
    )


def traced(
    kind: Kind,
    partition_key: str | None = "p",
    row_key: str | None = "",
    *,
    outcome: Outcome = Outcome.SUCCESS,
    table: str = "",
    **said: Any,
) -> TracedOperation:
    """An operation on one entity, unless ``said`` replaces this."""
    of = shape(kind, outcome, table=table)
    return TracedOperation(0, 1, of, partition_key, row_key, 1, 0, 0, 0, None)._replace(**said)


def trace_of(
    path: Path,
    operations: Iterable[Result | TracedOperation],
    source: str = "watch",
    started_s: int = STARTED_S,
) -> Trace:
    """A trace of what one client did; instants of results are absolute."""
    recorder = Recorder()
    for one in operations:
        if isinstance(one, TracedOperation):
            recorder.add(result_of(one, started_s), "app", one.detail)
        else:
            recorder.add(one, "app")
    head = TraceHead(started_ms=started_s * 1000, source=source, name="made")
    with TraceWriter(path, head) as writer:
        writer.append(recorder.drain(0.0, final=True))
    return Trace(path)


def content_of(path: Path) -> bytes:
    """All that a trace holds, as text."""
    with duckdb.connect() as connection:
        sources = {"files": [str(file) for file in files_of(path)]}
        rows = connection.execute("SELECT to_json(t) FROM read_parquet($files) t", sources)
        content = [row for (row,) in rows.fetchall()]
        metadata = "SELECT decode(key), decode(value) FROM parquet_kv_metadata($files)"
        content += map(" ".join, connection.execute(metadata, sources).fetchall())
    return "\n".join(content).encode()


def snapshot_of_trace(path: Path) -> Snapshot:
    """All operations of a trace, counted as those of a run are."""
    trace = Trace(path)
    with contextlib.closing(trace), contextlib.closing(TraceCounts(trace, path.name)) as counts:
        counts.count()
        snapshot = counts.snapshot()
    assert trace.damage.sentences() == []
    return snapshot


def _operation(row: TracedOperation) -> Operation:
    """The operation without contents."""
    shape, detail = row.shape, row.detail
    key = UNKNOWN if row.partition_key is None else row.partition_key
    whole = Operation(
        kind=shape.kind,
        partition_key=key,
        row_key=UNKNOWN if row.row_key is None else row.row_key,
        table=shape.table,
        name=shape.label,
    )
    if isinstance(detail, TracedParts):
        parts = [
            Operation(kind=part.kind, partition_key=key, row_key=part.row_key or "")
            for part in detail.each()
        ]
        return dataclasses.replace(whole, parts=tuple(parts))
    if isinstance(detail, TracedQuery):
        keys = KeyRange(
            partition_from=detail.partition_from,
            partition_before=detail.partition_before,
            row_from=detail.row_from,
            row_before=detail.row_before,
        )
        return dataclasses.replace(whole, key_range=keys, select=detail.selected, top=detail.top)
    return whole


def result_of(row: TracedOperation, start_s: float) -> Result:
    """The result of a traced operation whose attempts took equally long."""
    sent_s, done_s = start_s + row.at_ms / 1000, start_s + row.done_ms / 1000
    answers = row.shape.attempts
    step_s = (done_s - sent_s) / len(answers)
    return Result(
        operation=_operation(row),
        outcome=row.shape.outcome,
        sent_s=sent_s,
        done_s=done_s,
        attempts=tuple(
            Attempt(
                status=answer.status,
                sent_s=sent_s + place * step_s,
                latency_s=step_s,
                error_code=answer.error_code,
                scope=Scope(answer.scope),
            )
            for place, answer in enumerate(answers)
        ),
        entities=row.entities,
        entities_returned=row.returned,
        estimated=row.shape.estimated,
        bytes_sent=row.bytes_sent,
        bytes_received=row.bytes_received,
    )


def traced_counts(snapshot: Snapshot) -> Counts:
    return {
        part.key: (dict(part.entities_by_kind), dict(part.attempts_by_status))
        for part in snapshot.partitions
    }


def recorded_counts(record: Mapping[str, Any]) -> Counts:
    """The same of a record."""
    return {
        part["key"]: (part["entities_by_kind"], part["attempts_by_status"])
        for part in record["partitions"]
    }


def require_same(path: Path, record: Mapping[str, Any]) -> Snapshot:
    """Require that a trace has the counts of a record, exactly."""
    snapshot = snapshot_of_trace(path)
    assert traced_counts(snapshot) == recorded_counts(record)
    counts = record["counts"]
    for name in (
        "operations",
        "attempts",
        "transactions",
        "entities",
        "entities_returned",
        "entities_estimated",
        "bytes_sent",
        "bytes_received",
    ):
        assert getattr(snapshot.counts, name) == counts[name], name
    outcomes = {
        part.kind: (part.count, part.entities, part.outcomes) for part in snapshot.operations
    }
    assert outcomes == {
        part["kind"]: (part["count"], part["entities"], part["outcomes"])
        for part in record["operations"]
    }
    return snapshot
