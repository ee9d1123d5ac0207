"""Families of series. Rows whose labels are shown alike are added up: no series comes twice."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

Rows = Iterable[tuple[tuple[str, ...], float]]
"""Values of the labels, and of the series."""


def counter(name: str, text: str, labels: tuple[str, ...], rows: Rows) -> Metric:
    """A family of counters; ``name`` is without its ``_total``."""
    return _filled(CounterMetricFamily(name, text, labels=labels), rows)


def gauge(name: str, text: str, labels: tuple[str, ...], rows: Rows) -> Metric:
    """A family of gauges."""
    return _filled(GaugeMetricFamily(name, text, labels=labels), rows)


def one_gauge(name: str, text: str, run: str, value: float | None) -> Metric:
    """A gauge of the whole run; None is no series."""
    return gauge(name, text, ("run",), () if value is None else (((run,), value),))


def _filled(family: CounterMetricFamily | GaugeMetricFamily, rows: Rows) -> Metric:
    sums: dict[tuple[str, ...], float] = {}
    for values, value in rows:
        sums[values] = sums.get(values, 0) + value
    for values, value in sums.items():
        family.add_metric(values, value)
    return family
