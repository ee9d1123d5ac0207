"""The heat map's latest columns as gauges: which range of keys takes how much now.

A gauge and no counter, because ranges of keys are joined as a run goes on: the series of a range
that was joined to its neighbour ends, where a counter would jump.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from prometheus_client.core import Metric

from harness.measure.counts.heatmap import HeatView
from harness.metrics.families import gauge
from harness.metrics.labels import partition_label

OVER_S = 5
"""A rate is the mean over so many seconds, or over one column where columns are wider."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RangeRate:
    """What a range of keys takes a second; it is named by its first key."""

    first: str
    entities_per_s: float
    throttled_per_s: float


def range_rates(heat: HeatView, until_s: int) -> list[RangeRate]:
    """The mean of the last whole columns.

    Args:
        heat: What was counted by key range and time.
        until_s: UTC second before which everything was counted. What ends behind the last column
            had nothing in it.

    Returns:
        A rate for each range, in key order; none while no column is whole.
    """
    whole = (until_s - heat.start) // heat.width_s
    begin = max(0, whole - -(-OVER_S // heat.width_s))
    seconds = (whole - begin) * heat.width_s
    if seconds <= 0:
        return []
    return [
        RangeRate(
            first=row.first,
            entities_per_s=sum(row.entities[begin:whole]) / seconds,
            throttled_per_s=sum(row.throttled[begin:whole]) / seconds,
        )
        for row in heat.ranges
    ]


def key_range_families(run: str, heat: HeatView | None, until_s: int) -> Iterator[Metric]:
    """Both families of key ranges; without series where nothing was counted."""
    rates = [] if heat is None else range_rates(heat, until_s)
    labelled = [((run, partition_label(rate.first)), rate) for rate in rates]
    yield gauge(
        "aztables_key_range_entities_per_second",
        "Entities a second of a range of PartitionKeys, which is named by its first key; the mean "
        "of the last seconds. Ranges are joined as a run goes on.",
        ("run", "range"),
        ((labels, rate.entities_per_s) for labels, rate in labelled),
    )
    yield gauge(
        "aztables_key_range_throttled_attempts_per_second",
        "Throttled HTTP requests a second of a range of PartitionKeys, likewise.",
        ("run", "range"),
        ((labels, rate.throttled_per_s) for labels, rate in labelled),
    )
