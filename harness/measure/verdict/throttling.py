"""The course of throttling and of outages, read from the series of every second.

A partition that is moved to another server is offline for seconds (partitioning strategy, "Load
balancing"). Such an outage is a gap, in which nothing succeeds.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from harness.measure.counts.snapshot import SeriesPoint
from harness.measure.record.findings import GapPart, ThrottlingPart

RECOVERED_FROM = 0.9
"""Share of the rate before a gap from which the rate counts as recovered."""
MOST_GAPS = 20
_BEFORE_S = 5
"""The rate before a gap is the mean of up to this many seconds."""


def throttling_of(points: Sequence[SeriesPoint], *, end: int | None = None) -> ThrottlingPart:
    """The course of throttling in a series.

    Args:
        points: All seconds from the start of the load, in order.
        end: UTC second in which no operation was sent any more; None is never. Later seconds have
            only retries of the last operations, and no new operations.
    """
    loaded = [point for point in points if end is None or point.second < end]
    if not loaded:
        return ThrottlingPart()
    throttled = [point.throttled > 0 for point in loaded]
    stretches = _runs(throttled, ends=[bool(point.attempts) for point in loaded])
    # A query that finds nothing succeeds without an entity. A point query that finds nothing counts
    # an entity without success. Both were served.
    succeeded = [point.entities > 0 or point.operations > point.unsuccessful for point in loaded]
    failing = [
        point.attempts > 0 and not fine for point, fine in zip(loaded, succeeded, strict=True)
    ]
    gaps = []
    for first, last, ended in _runs(failing, ends=succeeded):
        length = (last + 1 if ended is None else ended) - first
        recovered = _recovered_s(loaded, first, length)
        gaps.append(GapPart(start_s=first, length_s=length, recovered_s=recovered))
    longest = heapq.nlargest(MOST_GAPS, gaps, key=lambda gap: gap.length_s)
    return ThrottlingPart(
        first_s=throttled.index(True) if stretches else None,
        seconds=sum(throttled),
        stretches=len(stretches),
        longest_s=max((last + 1 - first for first, last, _ in stretches), default=0),
        gap_count=len(gaps),
        gaps=tuple(sorted(longest, key=lambda gap: gap.start_s)),
    )


def _runs(held: Sequence[bool], *, ends: Sequence[bool]) -> list[tuple[int, int, int | None]]:
    """Runs in which ``held`` is true: first second, last second, and the second that ended it.

    A second that neither holds nor ends belongs to the run around it.
    """
    runs: list[tuple[int, int, int | None]] = []
    first: int | None = None
    last = 0
    for place, (holds, end) in enumerate(zip(held, ends, strict=True)):
        if holds:
            first, last = place if first is None else first, place
        elif end and first is not None:
            runs.append((first, last, place))
            first = None
    if first is not None:
        runs.append((first, last, None))
    return runs


def _recovered_s(points: Sequence[SeriesPoint], first: int, length: int) -> int | None:
    before = points[max(0, first - _BEFORE_S) : first]
    rate = sum(point.entities for point in before) / len(before) if before else 0.0
    if not rate:
        return None
    for place in range(first + length, len(points)):
        if points[place].entities >= RECOVERED_FROM * rate:
            return place - first
    return None
