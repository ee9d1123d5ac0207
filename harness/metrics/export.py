"""How the series of a run leave its process.

Prometheus scrapes a page. Of runs that are too short for that, the last state is pushed to a
Pushgateway. OpenTelemetry gets them by OTLP over HTTP, every few seconds and at the end; the extra
``otlp`` has the library, whose variables apply, such as ``OTEL_EXPORTER_OTLP_HEADERS``.
"""

from __future__ import annotations

import http.client
import re
import threading
import time
import urllib.error
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit
from wsgiref.simple_server import WSGIServer
from wsgiref.types import StartResponse, WSGIEnvironment

from prometheus_client import CollectorRegistry, push_to_gateway, start_http_server
from prometheus_client.core import Metric, Sample

from harness import __version__
from harness.metrics.exposition import Read, RunState
from harness.model.errors import SetupError
from harness.model.hosts import STRANGE_HOST, readers_of
from harness.model.process import bounded

PUSH_BOUND_S = 5.0
_JOB = "aztables"


class MetricsServer:
    """A running page, made by `start_server`."""

    def __init__(self, server: WSGIServer, thread: threading.Thread) -> None:
        self._server = server
        self._thread = thread

    @property
    def port(self) -> int:
        return int(self._server.server_port)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def start_server(port: int, addr: str, read: Read) -> MetricsServer:
    """Serve what ``read`` gives at every scrape; port 0 takes a free one.

    On loopback only its own host names are answered: a foreign web page reads no PartitionKeys. A
    `SetupError` says that the port or address is not available.
    """
    try:
        server, thread = start_http_server(port, addr, registry=_registry(read))
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SetupError(
            f"the metrics page cannot listen on {addr}:{port} ({reason}); "
            "choose another port with --metrics-port"
        ) from error
    page, readers = server.get_app(), readers_of(addr)
    assert page is not None

    def checked(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if readers(environ.get("HTTP_HOST", "")):
            return page(environ, start_response)
        start_response("403 Forbidden", [("Content-Type", "text/plain")])
        return [STRANGE_HOST.encode()]

    server.set_app(checked)
    return MetricsServer(server, thread)


def push(url: str, run_id: str, read: Read, bound_s: float = PUSH_BOUND_S) -> str | None:
    """Push the state of a run to the Pushgateway at ``url``; return why that failed, or None.

    The push replaces the group of ``run_id``, and takes ``bound_s`` seconds at most.
    """
    authority = re.split("[/?#]", url.partition("//")[2] or url)[0]
    user, _, address = authority.rpartition("@")
    if user:
        return f"the metrics were not pushed to {address}: its URL holds a user name or password"
    registry = _registry(read)
    key, late = {"run": run_id}, f"no answer within {bound_s:g} s"
    try:
        # The library's time-out holds for each read, not for the whole push.
        bounded(
            lambda: push_to_gateway(
                url, job=_JOB, registry=registry, grouping_key=key, timeout=bound_s
            ),
            bound_s,
        )
    except urllib.error.HTTPError as error:
        problem = f"it answered {error.code} {error.reason}"
        error.close()
    except TimeoutError:
        problem = late
    except urllib.error.URLError as error:
        problem = late if isinstance(error.reason, TimeoutError) else str(error.reason)
    except (OSError, ValueError, http.client.HTTPException) as error:
        problem = str(error) or type(error).__name__
    else:
        return None
    return f"the metrics were not pushed to {address}: {problem}"


def _registry(read: Read) -> CollectorRegistry:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(RunState(read))
    return registry


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
