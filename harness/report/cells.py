"""Figures of a record as the cells of a table, for every output that has tables of text."""

from __future__ import annotations

from collections.abc import Sequence

from harness.measure.record import LatencyPart, PartitionPart, RatesPart
from harness.report.reading import throttled_by_status
from harness.report.words import milliseconds, number

NOT_MEASURED = "n/a"


def rates_cells(rates: RatesPart) -> list[str]:
    """Entities a second: the mean, the best second, the best ten."""
    return [number(value) for value in (rates.mean, rates.best_1s, rates.best_10s)]


def latency_cells(part: LatencyPart | None, *names: str) -> list[str]:
    """The named figures of a latency, in milliseconds."""
    if part is None:
        return [NOT_MEASURED] * len(names)
    return [milliseconds(getattr(part, name)) for name in names]


def throttled_cells(parts: Sequence[PartitionPart]) -> list[str]:
    """Throttled attempts of some partitions together: 503, 500 and 429."""
    counts = throttled_by_status(part.attempts_by_status for part in parts)
    return [f"{count:,}" for count in counts.values()]
