"""A trace or a log in the form of a record, to be compared with runs."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable
from pathlib import Path

from harness import __version__
from harness.commands.progress import Progress
from harness.measure.counts.generator import GeneratorLog
from harness.measure.record.measured import CountsPart
from harness.measure.record.record import (
    SCHEMA_VERSION,
    EndpointPart,
    EntityPart,
    LoadingPart,
    RunRecord,
)
from harness.measure.record.record_builder import bytes_of_entity, judged_fields, measured_fields
from harness.measure.record.watched import WatchedPart
from harness.measure.verdict.evidence import Evidence
from harness.measure.verdict.verdict import judge
from harness.model.figures import counted, duration
from harness.model.operation import table_and_key
from harness.model.target import EndpointKind, targets_for
from harness.report.compare.replayed import Recording
from harness.report.export.run_folder import iso_instant
from harness.trace.counting import TraceCounts
from harness.trace.members import TraceHead
from harness.trace.operations import UNKNOWN, TracedOperation
from harness.trace.replay.preparation import fingerprint
from harness.trace.sources import SourceFormat, opened

_SESSION = "recorded"
_MOST_PARTITIONS = 1_000_000
_UNNAMED = "an endpoint that the trace does not name"
_LOGS = frozenset(form.value for form in SourceFormat if form is not SourceFormat.TRACE)


def recorded_traffic(path: Path) -> tuple[RunRecord, Recording]:
    """What is in a trace or a log, judged like an application under `harness watch`.

    Raises:
        SetupError: it cannot be read, or is longer than two weeks.
    """
    with opened(path, Progress("reading the log")) as trace:
        counts = TraceCounts(trace, path.name, Progress("counting"))
        entities = _entities(counts.rows())
        record = _record(trace.head, counts, path.name)
        counts.close()
        head = trace.head
    operations = counted(record.counts.operations, "operation")
    return record, Recording(
        fingerprint=fingerprint(path),
        described=f"trace: {head.recorded} on {record.endpoint.described}; {operations}, "
        f"{duration(counts.seconds)}" + (f"; record {head.run_id}" if head.run_id else ""),
        counts_whole=head.counts_whole,
        entities=entities,
    )


def _entities(rows: Iterable[TracedOperation]) -> dict[str, int] | None:
    """Entities of every partition; None if they are too many."""
    found: collections.Counter[str] = collections.Counter()
    for row in rows:
        if row.partition_key is not None and len(found) < _MOST_PARTITIONS:
            found[row.partition] += row.entities
    return +found if len(found) < _MOST_PARTITIONS else None


def _record(head: TraceHead, counts: TraceCounts, name: str) -> RunRecord:
    snapshot = counts.snapshot()
    # Operations without a known PartitionKey have a row; a replay leaves them out, so drop it.
    named = [part for part in snapshot.partitions if table_and_key(part.key)[1] != UNKNOWN]
    snapshot = dataclasses.replace(snapshot, partitions=tuple(named))
    kind = _kind(head)
    targets = targets_for(kind)
    nobody = GeneratorLog().view(snapshot.start, snapshot.end)
    attempts = snapshot.counts.attempts
    watched = WatchedPart(command=head.name, requests=attempts, passed=attempts)
    evidence = Evidence(
        snapshot=snapshot,
        generator=nobody,
        kind=kind,
        targets=targets,
        wanted_per_s=None,
        users=0,
        entity_bytes=0,
        all_reported=True,
        watched=watched,
    )
    return RunRecord(
        schema_version=SCHEMA_VERSION,
        harness_version=head.harness or __version__,
        run_id=head.run_id,
        profile={"name": head.name or name},
        endpoint=EndpointPart(
            kind=str(kind),
            described=head.endpoint or (kind.described if head.source in _LOGS else _UNNAMED),
            host=head.account,
            table="",
        ),
        session=_SESSION,
        started_at=iso_instant(counts.started_s),
        ended_at=iso_instant(counts.ended_s),
        ended_by="",
        workers=1,
        users=0,
        complete=True,
        invariants=(),
        exit_code=0,
        entity=EntityPart(stored_bytes=0, wire_bytes=bytes_of_entity(snapshot)),
        loading=LoadingPart(entities=0, seconds=0.0, attempts=0),
        counts=CountsPart(
            **dataclasses.asdict(snapshot.counts),
            waiting=0,
            in_flight=0,
            billable_transactions=attempts,
        ),
        generator=nobody.recorded(),
        watched=watched,
        **measured_fields(snapshot, nobody, targets),
        **judged_fields(evidence, judge(evidence), ()),
    )


def _kind(head: TraceHead) -> EndpointKind:
    """The kind of the endpoint that the trace names; Storage for a log."""
    named = (kind for kind in EndpointKind if kind.described == head.endpoint)
    return next(named, EndpointKind.STORAGE)
