"""Hand-made snapshots and evidence for the tests of what is measured."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from typing import Any

from harness.measure.counts.generator import GeneratorLog, SampledGenerator
from harness.measure.counts.latency import CountedLatency, LatencyHistogram
from harness.measure.counts.ledger import Ledger
from harness.measure.counts.snapshot import Snapshot
from harness.measure.record.findings import SearchPart
from harness.measure.record.origin import WatchedPart
from harness.measure.record.record import RunRecord
from harness.measure.record.record_builder import assembled
from harness.measure.verdict.evidence import Evidence
from harness.measure.verdict.verdict import judge
from harness.model.operation import Kind, Operation
from harness.model.outcome import THROTTLING_STATUSES, Attempt, Scope, is_throttling
from harness.model.services.storage import STORAGE
from harness.profile.practices.checklist import with_advice
from harness.profile.profile_loader import resolve
from tests.support.records import kept
from tests.support.results import done

START = 1_700_000_000


def snapshot_of(
    rates: dict[str, int],
    *,
    seconds: int = 10,
    operations_per_s: int = 20,
    throttled_per_s: int = 0,
    scope: Scope = Scope.PARTITION,
    accounts: Sequence[str] = (),
    throttled: Collection[str] | None = None,
    answer: tuple[int, str] = (503, "ServerBusy"),
) -> Snapshot:
    """Each key took its rate of entities a second in so many operations.

    Only the keys in ``throttled`` are throttled; None is all. ``answer`` is the status and the
    error code of the refusals.
    """
    ledger = Ledger(accounts=accounts)
    ledger.open_window(START, START + seconds)
    for second in range(seconds):
        at_s = float(START + second)
        ok = Attempt(status=204, sent_s=at_s, latency_s=0.004)
        status, code = answer
        refused_by = scope if is_throttling(status, code) else Scope.NONE
        busy = Attempt(status=status, sent_s=at_s, latency_s=0.1, error_code=code, scope=refused_by)
        for key, rate in rates.items():
            for number in range(operations_per_s):
                more = 1 if number < rate % operations_per_s else 0
                refused = number < throttled_per_s and (throttled is None or key in throttled)
                upsert = Operation(kind=Kind.UPSERT_MERGE, partition_key=key)
                attempts = (busy, ok) if refused else (ok,)
                entities = rate // operations_per_s + more
                ledger.add(done(upsert, at_s, 0.004, attempts=attempts, entities=entities))
    return ledger.snapshot(start=START, end=START + seconds)


def scanned(
    keys: tuple[str, ...] = ("p0",),
    *,
    queries_per_s: int = 20,
    entities: int = 125,
    returned: int = 2,
    writes_per_s: int = 0,
    throttled: bool = False,
    estimated: bool = False,
) -> Snapshot:
    """Each key is queried and written so often for ten seconds; a write counts 1."""
    ledger = Ledger()
    ledger.open_window(START, START + 10)
    query = {"entities": entities, "entities_returned": returned, "estimated": estimated}
    for second in range(START, START + 10):
        at_s = float(second)
        attempts: tuple[Attempt, ...] = (Attempt(status=200, sent_s=at_s, latency_s=0.004),)
        if throttled:
            busy = Attempt(status=503, sent_s=at_s, latency_s=0.1, scope=Scope.PARTITION)
            attempts = (busy, *attempts)
        for key in keys:
            for kind, count, counts in (
                (Kind.QUERY, queries_per_s, query),
                (Kind.INSERT, writes_per_s, {"entities": 1}),
            ):
                for _ in range(count):
                    asked = Operation(kind=kind, partition_key=key)
                    ledger.add(done(asked, at_s, 0.004, attempts=attempts, **counts))
    return ledger.snapshot(start=START, end=START + 10)


IDLE = GeneratorLog().view(START, START)
QUIET = IDLE.model_copy(update={"cpu_percent_max": 50.0, "cpu_percent_mean": 40.0})


def generator(**figures: Any) -> SampledGenerator:
    """An idle generator, but for ``figures``."""
    return IDLE.model_copy(update=figures)


def evidence(snapshot: Snapshot, **changes: Any) -> Evidence:
    """What a quiet run against an account leads to a verdict, but for ``changes``."""
    parts: dict[str, Any] = {
        "snapshot": snapshot,
        "generator": QUIET,
        "kind": STORAGE,
        "targets": changes.get("kind", STORAGE).targets,
        "wanted_per_s": None,
        "users": 20,
        "entity_bytes": 1024,
        "all_reported": True,
    }
    return Evidence(**(parts | changes))


CALM = snapshot_of({"shop/p0": 1000})


def watched_evidence(
    snapshot: Snapshot = CALM, *, part: dict[str, Any] | None = None, **changes: Any
) -> Evidence:
    """The evidence of an application with some requests, but for ``changes``."""
    known = WatchedPart(**{"requests": 1000, "passed": 1000, **(part or {})})
    figures = {"users": 0, "entity_bytes": 0, "generator": IDLE, "watched": known, **changes}
    return evidence(snapshot, **figures)


def late(snapshot: Snapshot, by_s: int) -> Snapshot:
    """``snapshot``, but throttling begins some seconds into the load."""
    first, *others = snapshot.series
    calm = [
        dataclasses.replace(
            first,
            second=first.second - by_s + n,
            throttled_by_status=dict.fromkeys(THROTTLING_STATUSES, 0),
        )
        for n in range(by_s)
    ]
    return dataclasses.replace(snapshot, series=(*calm, first, *others))


def torn(snapshot: Snapshot, length_s: int) -> Snapshot:
    """``snapshot``, but nothing succeeds from second 5 on for some seconds."""
    points = [
        dataclasses.replace(point, entities=0, unsuccessful=point.operations)
        if START + 5 <= point.second < START + 5 + length_s
        else point
        for point in snapshot.series
    ]
    return dataclasses.replace(snapshot, series=tuple(points))


def answered_after(seconds: float) -> CountedLatency:
    """The latencies of 1,000 operations that took as long."""
    histogram = LatencyHistogram(3)
    for _ in range(1000):
        histogram.record([seconds])
    view = histogram.view()
    assert view is not None
    return view


def recorded(
    given: Evidence,
    *settings: str,
    name: str = "single-partition",
    search: SearchPart | None = None,
    session: str = "wire",
    **changes: Any,
) -> RunRecord:
    """The record of a run of a profile that led to ``given``, read back, with its advice."""
    snapshot = given.snapshot
    offered = {}
    if given.wanted_per_s is not None:
        offered = dict.fromkeys(range(snapshot.start, snapshot.end), given.wanted_per_s)
    asked = given.generator.model_copy(update={"offered": offered})
    profile = resolve(name, list(settings)).profile.model_dump(mode="json")
    like = kept()
    known: dict[str, Any] = {
        "run_id": like.run_id,
        "profile": {"name": name, **profile},
        "endpoint": like.endpoint.model_copy(update={"kind": str(given.kind)}),
        "session": session,
        "ended_by": like.ended_by,
        "workers": like.workers,
        "search": search,
    }
    record = assembled(
        dataclasses.replace(given, generator=asked),
        judge(given, search),
        span_s=(snapshot.start, snapshot.end),
        hosts=[part.name for part in snapshot.accounts],
        **known | changes,
    )
    return RunRecord.from_json(with_advice(record).to_json())
