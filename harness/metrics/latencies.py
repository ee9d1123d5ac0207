"""Latencies of the measured window: as buckets, and as exact percentiles."""

from __future__ import annotations

from prometheus_client.core import HistogramMetricFamily, Metric, SummaryMetricFamily

from harness.measure.counts.latency import BUCKETS_S
from harness.measure.counts.snapshot import Snapshot
from harness.measure.record.record import LatencyPart
from harness.metrics.labels import showable


def durations(run: str, snapshot: Snapshot) -> Metric:
    """A histogram of each operation and latency, in buckets that Prometheus can add up."""
    family = HistogramMetricFamily(
        "aztables_operation_duration_seconds",
        "Latency of the operations that were done in the measured window: service is from sent to "
        "done with retries, response from due to done (open model only).",
        labels=("run", "op", "latency"),
    )
    rows: dict[tuple[str, ...], list[LatencyPart]] = {}
    for part in snapshot.operations:
        for latency, view in (("service", part.service_ms), ("response", part.response_ms)):
            if view is not None:
                rows.setdefault((run, showable(part.kind), latency), []).append(view)
    for labels, views in rows.items():
        counts = [sum(bucket) for bucket in zip(*(view.buckets for view in views), strict=True)]
        counts.append(sum(view.count for view in views))
        bounds = [*map(str, BUCKETS_S), "+Inf"]
        buckets = [(bound, float(n)) for bound, n in zip(bounds, counts, strict=True)]
        family.add_metric(labels, buckets, sum(view.total_s for view in views))
    return family


def percentiles(run: str, snapshot: Snapshot) -> Metric:
    """Exact percentiles of all operations together; a bucket tells them less well."""
    name = "aztables_latency_seconds"
    family = SummaryMetricFamily(
        name,
        "Exact percentiles of the latency of all operations that were done in the measured window "
        "so far; service and response as in aztables_operation_duration_seconds.",
        labels=("run", "latency"),
    )
    for latency, view in (("service", snapshot.service_ms), ("response", snapshot.response_ms)):
        if view is not None:
            family.add_metric((run, latency), view.count, view.total_s)
            for share, value in (("0.5", view.p50), ("0.9", view.p90), ("0.99", view.p99)):
                labels = {"run": run, "latency": latency, "quantile": share}
                family.add_sample(name, labels, value / 1000)
    return family
