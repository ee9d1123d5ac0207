"""Hand-made runs as the metrics page shows them, and what is read off a page."""

from __future__ import annotations

import dataclasses
import urllib.request
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.utils import floatToGoString

from harness.measure.counts.ledger import Ledger
from harness.measure.record.findings import VerdictPart
from harness.metrics.exposition import Exposed, LoadState, Read, RunCourse, RunLabels, RunState
from harness.model.operation import Kind, Operation
from harness.model.outcome import Attempt, Fault, Outcome, Result, Scope
from harness.model.services.service import PUBLISHED, Targets
from tests.support.results import done

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]
START = 1_700_000_000

OK = Attempt(status=204, sent_s=START, latency_s=0.004)
BUSY = Attempt(
    status=503,
    sent_s=START,
    latency_s=0.002,
    error_code="ServerBusy",
    scope=Scope.PARTITION,
    message="The server is busy.",
)
RESET = Attempt(
    status=0, sent_s=START, latency_s=0.001, error_code="connection_reset", fault=Fault.RESET
)


def result(
    key: str,
    *,
    kind: Kind = Kind.UPSERT_MERGE,
    attempts: tuple[Attempt, ...] = (OK,),
    returned: int = 0,
    service_s: float = 0.005,
    name: str = "",
    table: str = "",
    **more: Any,
) -> Result:
    """A result of an operation on ``key`` that was sent at `START`."""
    sent = Operation(kind=kind, partition_key=key, row_key="r", name=name, table=table)
    return done(sent, START, service_s, attempts=attempts, entities_returned=returned, **more)


COURSE = RunCourse(
    phases=("ramping", "measuring", "done"),
    phase="measuring",
    started_s=START - 5.5,
    window=(START, START + 10),
)


def exposed(
    *results: Result,
    run_id: str = "run1",
    cap: int = 200,
    targets: Targets | None = PUBLISHED,
    **changes: Any,
) -> Exposed:
    """A run that consists of ``results``; ``changes`` are of what is shown."""
    ledger = Ledger(cap=cap)
    ledger.open_window(START, START + 10)
    for one in results:
        ledger.add(one)
    shown = Exposed(
        run_id=run_id,
        snapshot=ledger.snapshot(start=START, end=START + 10, latencies=False),
        counted_until_s=START + 10,
        course=COURSE,
        load=LoadState(),
        targets=targets,
        users=20,
        workers=2,
        cpu_percent={"w1": 41.5, "w2": 12.0},
        info=RunLabels(
            profile="single-partition",
            endpoint="azurite",
            described="Azurite (emulator)",
            host="127.0.0.1:10002",
            session="sdk",
            version="1",
        ),
    )
    return dataclasses.replace(shown, **changes)


def series(text: str) -> Series:
    """Every sample of a page; a series that comes twice is an error."""
    found: Series = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            name = (sample.name, frozenset(sample.labels.items()))
            assert name not in found, f"{name} comes twice"
            found[name] = sample.value
    return found


def rendered(read: Read) -> str:
    """The page that ``read`` leads to."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(RunState(read))
    return generate_latest(registry).decode()


def scrape(port: int) -> Series:
    """A real scrape over HTTP."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        assert answer.status == 200
        return series(answer.read().decode())


def labelled(found: Series, name: str) -> dict[tuple[str, ...], float]:
    """The samples of one name by their label values, ordered by label name."""
    return {
        tuple(value for _, value in sorted(labels)): value
        for (of, labels), value in found.items()
        if of == name
    }


def value(found: Series, name: str, **labels: str) -> float:
    """One sample."""
    return found[(name, frozenset(labels.items()))]


LOAD = LoadState(
    offered_per_s=150.0,
    waiting=12,
    in_flight=7,
    dropped=3,
    billable_transactions=940,
    billable_limit=1000,
)
ENDED = dataclasses.replace(
    COURSE,
    phase="done",
    ended_s=START + 8.25,
    window=(START, START + 8),
    verdict=VerdictPart(
        result="throttled", limited_by="partition", sentence="Throttled: partition 'p\x000'"
    ),
)
CHARGED = Attempt(status=204, sent_s=START, latency_s=0.004, request_charge=1067)
REFUSED = Attempt(
    status=429,
    sent_s=START,
    latency_s=0.002,
    error_code="TooManyRequests",
    scope=Scope.PARTITION,
    request_charge=38,
)
WHOLE = exposed(
    result("p0"),
    result("p1", attempts=(BUSY, OK)),
    result("p1", attempts=(REFUSED, CHARGED)),
    result("orders", kind=Kind.PUT_MESSAGE),
    result("orders", kind=Kind.GET_MESSAGES, oldest_s=3.0),
    course=ENDED,
    load=LOAD,
)
"""With every family that there is."""
SOME = exposed(
    result("p0"),
    result("p0", attempts=(BUSY, BUSY, OK), service_s=0.5),
    result("p0", kind=Kind.TRANSACTION, entities=100, service_s=0.03, due_s=START - 1.0),
    result("p1", attempts=(BUSY,), outcome=Outcome.THROTTLED, entities=0),
    result("p1", kind=Kind.INSERT, attempts=(RESET,), outcome=Outcome.CONNECTION, entities=0),
)
"""With retries, failures, a transaction and something that was due."""


def received(body: bytes) -> Series:
    """The points of an OTLP export as Prometheus names them; buckets are added up again."""
    from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2

    request = metrics_service_pb2.ExportMetricsServiceRequest.FromString(body)
    found: Series = {}
    for metric in request.resource_metrics[0].scope_metrics[0].metrics:
        data = getattr(metric, metric.WhichOneof("data"))
        counts = metric.WhichOneof("data") == "sum" and not metric.name.endswith(("_sum", "_count"))
        for point in data.data_points:
            labels = {one.key: one.value.string_value for one in point.attributes}
            if metric.WhichOneof("data") != "histogram":
                name = f"{metric.name}_total" if counts else metric.name
                found[name, frozenset(labels.items())] = point.as_double or point.as_int
                continue
            found[f"{metric.name}_count", frozenset(labels.items())] = point.count
            found[f"{metric.name}_sum", frozenset(labels.items())] = point.sum
            upto = 0
            bounds = [*map(floatToGoString, point.explicit_bounds), "+Inf"]
            for bound, count in zip(bounds, point.bucket_counts, strict=True):
                upto += count
                found[f"{metric.name}_bucket", frozenset({**labels, "le": bound}.items())] = upto
    return found
