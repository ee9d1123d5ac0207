"""Families of series of one run, and keys and names as values of their labels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric

from harness.model.operation import FOLDED, WHOLE_TABLE, over_partitions

Rows = Iterable[tuple[tuple[str, ...], float]]
"""Values of the labels, and of the series."""

_TABLE = "(table)"
_EMPTY = "(empty)"
_RESERVED = frozenset((FOLDED, _TABLE, _EMPTY))
_UNSHOWABLE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


class Families:
    """Makes the families of a run: every series has the label ``run`` before its own.

    Rows with equal labels are added up, so that no series comes twice.
    """

    def __init__(self, run: str) -> None:
        self._run = run

    def counter(self, name: str, text: str, rows: Rows, labels: tuple[str, ...] = ()) -> Metric:
        """A family of counters; ``name`` is without its ``_total``."""
        return self._filled(CounterMetricFamily(name, text, labels=("run", *labels)), rows)

    def gauge(self, name: str, text: str, rows: Rows, labels: tuple[str, ...] = ()) -> Metric:
        return self._filled(GaugeMetricFamily(name, text, labels=("run", *labels)), rows)

    def value(self, name: str, text: str, value: float | None) -> Metric:
        """A gauge of the whole run; None gives no series."""
        return self.gauge(name, text, () if value is None else [((), value)])

    def info(self, name: str, text: str, labels: Mapping[str, str]) -> Metric:
        """Texts as labels; ``name`` is without its ``_info``."""
        shown = {label: showable(value) for label, value in labels.items()}
        return InfoMetricFamily(name, text, value={"run": self._run, **shown})

    def _filled(self, family: CounterMetricFamily | GaugeMetricFamily, rows: Rows) -> Metric:
        sums: dict[tuple[str, ...], float] = {}
        for values, value in rows:
            sums[values] = sums.get(values, 0) + value
        for values, value in sums.items():
            family.add_metric((self._run, *values), value)
        return family


def partition_label(key: str) -> str:
    """The label of a partition: its key as far as possible, with its table if it has one.

    A query over several partitions is ``(table)``, the empty key ``(empty)``. A key that is spelled
    like one of these stands behind a slash, which no real key contains. Control characters and
    half surrogate pairs, which no real key contains either, are shown as ``\\uXXXX``.
    """
    if over_partitions(key):
        return f"{showable(key[: -len(WHOLE_TABLE)])}{_TABLE}"
    table, slash, own = key.rpartition("/")
    shown = f"/{own}" if own in _RESERVED else showable(own) or _EMPTY
    return f"{showable(table)}{slash}{shown}"


def showable(text: str) -> str:
    """``text`` with ``\\uXXXX`` for each character that a metrics page cannot hold."""
    return _UNSHOWABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
