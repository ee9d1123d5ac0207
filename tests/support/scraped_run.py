"""A run that has ended, seen twice: by its record, and by a Prometheus that scraped it.

A rate is looked at in one of two ways. *Mean*: asked every second as Grafana would, its mean over
the measured window is the record's mean. *Grown*: asked once over the whole run, it is what a
counter grew by, and the record's count is what the counter came to. What a counter already was
when Prometheus saw it first is in no rate, so that it is taken off the record's count.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence

from harness.measure.record.measured import LatencyPart
from harness.measure.record.record import RunRecord
from tests.support.metrics_page import Series
from tests.support.prometheus import SCRAPE_S, Prometheus

GRAFANA_S = 4 * SCRAPE_S
"""`$__rate_interval` as Grafana makes it: four scrapes."""
LAG_S = 2
"""What is done in a second is on the page of the next one, and scraped in the one after."""

Key = tuple[str, ...]
Figures = Mapping[Key, float]
"""By the values of the labels of a series, in the order of their names, the run left out."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The run. ``began_s`` and ``over_s`` are before its first and after its last scrape.

    ``page`` is the metrics page after its end.
    """

    prometheus: Prometheus
    record: RunRecord
    page: Series
    began_s: float
    over_s: float

    @property
    def window(self) -> tuple[int, int]:
        """The measured window without its last second, of which only a part may have been."""
        start = self.record.window_start
        return start, start + self.record.measured_s - 1

    def latency(self, name: str) -> LatencyPart:
        """``service`` or ``response``."""
        part: LatencyPart | None = getattr(self.record, f"{name}_ms")
        assert part is not None
        return part

    def mean(self, expr: str, *, from_s: float = 0.0, lag_s: float = LAG_S) -> Figures:
        """Means over the measured window, or from so many seconds into it."""
        start, end = self.window
        found = self.prometheus.over(
            self._filled(expr, GRAFANA_S), start + lag_s + from_s, end + lag_s
        )
        return {_key(points.labels): points.mean for points in found}

    def level(self, expr: str) -> Figures:
        """The mean of what is no rate, which is on the page a second later."""
        return self.mean(expr, lag_s=1.0)

    def highest(self, expr: str) -> Figures:
        """The most in the measured window."""
        found = self.prometheus.over(self._filled(expr, GRAFANA_S), *self.window)
        return {_key(points.labels): points.highest for points in found}

    def last(self, expr: str) -> Figures:
        """What it is when the run is over."""
        found = self.prometheus.at(self._filled(expr, GRAFANA_S), self.over_s)
        return {_key(points.labels): points.last for points in found}

    def fired(self, alert: str) -> Figures:
        """Labels with which an alert fired in the run."""
        expr = f'ALERTS{{alertname="{alert}",run="$run",alertstate="firing"}}'
        found = self.prometheus.over(self._filled(expr, GRAFANA_S), self.began_s, self.over_s)
        return {_key(points.labels, "alertname", "alertstate"): points.last for points in found}

    def whole(self, expr: str) -> Figures:
        """What it is over the whole run."""
        found = self.prometheus.at(self._filled(expr, self._span_s), self.over_s)
        return {_key(points.labels): points.last for points in found}

    def grown(self, expr: str) -> Figures:
        """What counters grew by in the whole run."""
        return {key: rate * self._span_s for key, rate in self.whole(expr).items()}

    def risen(self, expr: str) -> float:
        """What the counters below a rate rose by in the whole run, all series together.

        This is exact. A rate is not: it extrapolates to the edges of its interval, by the distance
        of the scrapes, which differs on a busy machine.
        """
        found = re.search(r"rate\((.*)\[", expr)
        assert found is not None, expr
        seen = f"{self._filled(found[1], self._span_s)}[{self._span_s}s]"
        rise = f"sum(max_over_time({seen}) - min_over_time({seen}))"
        (whole,) = self.prometheus.at(rise, self.over_s)
        return whole.last

    def since_first(self, counted: Figures, name: str, labels: str, *by: str) -> Figures:
        """The record's counts without what there was when Prometheus looked first."""
        selector = f'{name}{{run="{self.record.run_id}",{labels}}}'
        expr = f"sum by ({', '.join(by)}) (min_over_time({selector}[{self._span_s}s]))"
        found = self.prometheus.at(expr, self.over_s)
        first = {_key(points.labels): points.last for points in found}
        return {key: count - first.get(key, 0.0) for key, count in counted.items()}

    def series(self, name: str, *, over_s: int = 1) -> float:
        """The mean of one line of the record's series over the measured window.

        Args:
            name: The line.
            over_s: The mean of means over so many seconds, as of a rate over so long.
        """
        start, end = self.window
        values = [
            value
            for part in self.record.series
            if start <= part.t < end and (value := getattr(part, name)) is not None
        ]
        return _mean_of_means(values, over_s)

    def ranges(self, name: str, *, over_s: int = 1) -> Figures:
        """Means a second of the ranges of the record's heat map, likewise."""
        heat = self.record.heat
        assert heat is not None
        assert heat.width_s == 1, "the run is too long for this test"
        start, end = (second - heat.start for second in self.window)
        return {
            (row.first,): _mean_of_means(getattr(row, name)[start:end], over_s)
            for row in heat.ranges
        }

    @property
    def _span_s(self) -> int:
        return int(self.over_s - self.began_s)

    def _filled(self, expr: str, interval_s: int) -> str:
        """The query as Grafana sends it, with all partitions chosen."""
        return (
            expr.replace("$__rate_interval", f"{interval_s}s")
            .replace("$run", self.record.run_id)
            .replace("$partition", ".*")
        )


def _mean_of_means(values: Sequence[float], over_s: int) -> float:
    ends = range(over_s, len(values) + 1)
    return sum(sum(values[end - over_s : end]) for end in ends) / (over_s * len(ends))


def _key(labels: Mapping[str, str], *known: str) -> Key:
    left_out = ("run", *known)
    return tuple(text for name, text in sorted(labels.items()) if name not in left_out)
