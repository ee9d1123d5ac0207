"""Percentiles over time, read off counts by latency."""

from __future__ import annotations

import itertools
import math

from harness.measure.over_time import LatencyCoursePart, counts_of


def percentiles(part: LatencyCoursePart, q: float) -> list[float | None]:
    """The ``q``-th percentile of each column in milliseconds; None where a column is empty.

    It is the upper bound of the row in which it falls: at least as high as the true one, by less
    than a row's width.

    Args:
        part: Operations by latency and time.
        q: From 0 to 100.
    """
    by_column = zip(*(counts_of(row) for row in part.rows), strict=True)
    return [_percentile(column, part.bounds_ms, q) for column in by_column]


def _percentile(counts: tuple[int, ...], bounds_ms: tuple[float, ...], q: float) -> float | None:
    total = sum(counts)
    if not total:
        return None
    rank = max(1, math.ceil(q / 100 * total))
    upto = itertools.accumulate(counts)
    return next(bound for bound, count in zip(bounds_ms, upto, strict=True) if count >= rank)
