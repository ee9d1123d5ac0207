"""When throttling began, how long it lasted, and what was gone altogether.

Read off the series of every second. A partition that is moved to another server is offline for
seconds (partitioning strategy, "Load balancing"): a gap, in which nothing at all succeeds.
"""

from __future__ import annotations

import dataclasses
import heapq
from collections.abc import Sequence

from harness.measure.counts.snapshot import SeriesPoint

RECOVERED_FROM = 0.9
"""Share of the rate before a gap from which it counts as reached again."""
MOST_GAPS = 20
_BEFORE_S = 5
"""The rate before a gap is the mean of so many seconds, or of as many as there were."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Seconds in a row in which something was attempted and nothing succeeded.

    It goes on through seconds without attempts, in which everybody backs off or waits, up to the
    next success; where none follows, to the last attempt.

    Attributes:
        start_s: Its first second, counted from the start of the load.
        length_s: How many seconds.
        recovered_s: Seconds from its start until one of 90 % of the rate before it; None where
            none came, or where there was no rate before it.
    """

    start_s: int
    length_s: int
    recovered_s: int | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Throttling:
    """The course of throttling under load. Seconds are whole ones.

    Attributes:
        first_s: The first second with a throttled attempt, from the start of the load; None
            where there is none.
        seconds: Seconds with throttled attempts.
        stretches: How often throttling began. A stretch goes on through seconds in which nothing
            was attempted, and ends where attempts were made and none was throttled.
        longest_s: Length of the longest stretch.
        gap_count: How many gaps there were, throttled or not.
        gaps: The longest `MOST_GAPS` of them, in order of time.
    """

    first_s: int | None = None
    seconds: int = 0
    stretches: int = 0
    longest_s: int = 0
    gap_count: int = 0
    gaps: tuple[Gap, ...] = ()

    @property
    def longest_gap(self) -> Gap | None:
        """The longest gap, the first of several."""
        return max(self.gaps, key=lambda gap: (gap.length_s, -gap.start_s), default=None)


def throttling_of(points: Sequence[SeriesPoint], *, end: int | None = None) -> Throttling:
    """The course of throttling in a series.

    Args:
        points: Every second from the start of the load on, in order.
        end: The UTC second before which operations were still sent. What comes later is the
            retries of the last ones, without anything new that could succeed. None is never.
    """
    loaded = [point for point in points if end is None or point.second < end]
    if not loaded:
        return Throttling()
    throttled = [point.throttled > 0 for point in loaded]
    stretches = _runs(throttled, ends=[bool(point.attempts) for point in loaded])
    succeeded = [_succeeded(point) for point in loaded]
    failing = [
        point.attempts > 0 and not fine for point, fine in zip(loaded, succeeded, strict=True)
    ]
    gaps = []
    for first, last, ended in _runs(failing, ends=succeeded):
        length = (last + 1 if ended is None else ended) - first
        recovered = _recovered_s(loaded, first, length)
        gaps.append(Gap(start_s=first, length_s=length, recovered_s=recovered))
    longest = heapq.nlargest(MOST_GAPS, gaps, key=lambda gap: gap.length_s)
    return Throttling(
        first_s=throttled.index(True) if stretches else None,
        seconds=sum(throttled),
        stretches=len(stretches),
        longest_s=max((last + 1 - first for first, last, _ in stretches), default=0),
        gap_count=len(gaps),
        gaps=tuple(sorted(longest, key=lambda gap: gap.start_s)),
    )


def _succeeded(point: SeriesPoint) -> bool:
    # A query that finds nothing succeeds without an entity; a look-up that finds nothing counts
    # an entity without success. Either was served.
    return point.entities > 0 or point.operations > point.unsuccessful


def _runs(held: Sequence[bool], *, ends: Sequence[bool]) -> list[tuple[int, int, int | None]]:
    """Runs of what held, as the places of its first and last second and of the one that ended it.

    Seconds in which it neither held nor ended belong to the run around them.
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
