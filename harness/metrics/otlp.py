"""The series of a run by OpenTelemetry: OTLP over HTTP, every few seconds and at the end.

The extra ``otlp`` has the library, whose variables apply, such as ``OTEL_EXPORTER_OTLP_HEADERS``.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from prometheus_client.core import Metric, Sample

from harness import __version__
from harness.metrics.exposition import Read, RunState
from harness.metrics.server import PUSH_BOUND_S
from harness.model.errors import SetupError

EVERY_S = 5.0
_PATH = "/v1/metrics"


class OtlpExport:
    """Sends what ``read`` gives to ``url`` until it is closed.

    A `SetupError` says that the library is missing or the URL is none. ``complain`` is told at the
    end if some states did not arrive.
    """

    def __init__(self, url: str, read: Read, complain: Callable[[str], None]) -> None:
        try:
            from opentelemetry.exporter.otlp.proto.http import metric_exporter
            from opentelemetry.sdk.metrics import export
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.util.instrumentation import InstrumentationScope
        except ImportError:
            raise SetupError(
                "--otlp needs a package: install opentelemetry-exporter-otlp-proto-http, or the "
                "harness with its extra [otlp]"
            ) from None
        address = urlsplit(url)
        if address.scheme not in ("http", "https") or not address.hostname or address.username:
            raise SetupError("--otlp takes the http or https URL of a receiver, without a login")
        endpoint = url if address.path.strip("/") else f"{url.rstrip('/')}{_PATH}"
        self._exporter = metric_exporter.OTLPMetricExporter(endpoint, timeout=PUSH_BOUND_S)
        self._sdk: Any = export
        self._origin = Resource({"service.name": "table-stress-harness"})
        self._scope = InstrumentationScope("harness", __version__)
        self._read, self._complain, self._to = read, complain, address.hostname
        self._sent = self._failed = 0
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._repeat, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Send the last state."""
        self._closed.set()
        self._thread.join()
        if self._failed:
            self._complain(
                f"{self._failed} of {self._sent} states of the metrics did not arrive at {self._to}"
            )

    def _repeat(self) -> None:
        while not self._closed.wait(EVERY_S):
            self._send()
        self._send()

    def _send(self) -> None:
        exposed = self._read()
        if exposed is None:
            return
        sdk = self._sdk
        times = (int(exposed.course.started_s * 1e9), time.time_ns())
        metrics = [
            metric
            for family in RunState(lambda: exposed).collect()
            for metric in self._metrics(family, times)
        ]
        scope = sdk.ScopeMetrics(self._scope, metrics, "")
        data = sdk.MetricsData([sdk.ResourceMetrics(self._origin, [scope], "")])
        self._sent += 1
        self._failed += self._exporter.export(data) is not sdk.MetricExportResult.SUCCESS

    def _metrics(self, family: Metric, times: tuple[int, int]) -> Iterator[Any]:
        """The metrics of a Prometheus family; a summary has several."""
        sdk = self._sdk
        cumulative = sdk.AggregationTemporality.CUMULATIVE
        if family.type == "histogram":
            points = [
                sdk.HistogramDataPoint(labels, *times, **counts, min=None, max=None)
                for labels, counts in _histograms(family.samples)
            ]
            histogram = sdk.Histogram(points, cumulative)
            yield sdk.Metric(family.name, family.documentation, "", histogram)
            return
        by_name: dict[str, list[Any]] = defaultdict(list)
        for sample in family.samples:
            point = sdk.NumberDataPoint(sample.labels, *times, sample.value)
            by_name[sample.name].append(point)
        for name, points in by_name.items():
            counts = family.type == "counter" or name.endswith(("_sum", "_count"))
            data = sdk.Sum(points, cumulative, True) if counts else sdk.Gauge(points)
            # Receivers add the suffix of counters themselves.
            yield sdk.Metric(name.removesuffix("_total"), family.documentation, "", data)


def _histograms(samples: Sequence[Sample]) -> Iterator[tuple[dict[str, str], dict[str, Any]]]:
    """Labels and counts of each histogram; Prometheus adds up the buckets, OTLP does not."""
    found: dict[tuple[tuple[str, str], ...], dict[str, Any]] = {}
    for sample in samples:
        labels = {name: text for name, text in sample.labels.items() if name != "le"}
        empty = {"sum": 0.0, "count": 0, "bucket_counts": [], "explicit_bounds": []}
        one = found.setdefault(tuple(labels.items()), empty)
        if sample.name.endswith("_sum"):
            one["sum"] = sample.value
        elif sample.name.endswith("_bucket"):
            one["bucket_counts"].append(int(sample.value) - one["count"])
            one["count"] = int(sample.value)
            if sample.labels["le"] != "+Inf":
                one["explicit_bounds"].append(float(sample.labels["le"]))
    for key, counts in found.items():
        yield dict(key), counts
