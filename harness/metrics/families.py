"""Families of series. Rows whose labels are shown alike are added up: no series comes twice."""

from __future__ import annotations

import re
from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from harness.model.operation import FOLDED, WHOLE_TABLE, over_partitions

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


TABLE = "(table)"
EMPTY = "(empty)"
_RESERVED = frozenset((FOLDED, TABLE, EMPTY))
_UNSHOWABLE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def partition_label(key: str) -> str:
    """How ``key`` is shown: as it is, as far as it can be, behind its table's ending if it has one.

    A query over several partitions is ``(table)``, the empty key ``(empty)``. A key that is spelled
    like one of these stands behind a slash, which no real key contains. Control characters and
    half surrogate pairs, which no real key contains either, are shown as ``\\uXXXX``.
    """
    if over_partitions(key):
        return f"{showable(key[: -len(WHOLE_TABLE)])}{TABLE}"
    table, slash, own = key.rpartition("/")
    shown = f"/{own}" if own in _RESERVED else showable(own) or EMPTY
    return f"{showable(table)}{slash}{shown}"


def showable(text: str) -> str:
    """``text`` without what no page can hold."""
    return _UNSHOWABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
