"""The course of throttling and of outages, read from the series of every second.

A partition that is moved to another server is offline for seconds (partitioning strategy, "Load
balancing"). Such an outage of the only partition is a gap, in which nothing succeeds. With several
partitions it is a stall: all users end up waiting for the one partition. An endpoint that stops for
a part of a second is silent: no answer comes, refusals included, although requests wait for one.
"""

from __future__ import annotations

import collections
import heapq
from collections.abc import Container, Sequence

from harness.measure.counts.latency import BUCKETS_S, CountedLatency
from harness.measure.counts.snapshot import CountedPartition, SeriesPoint, Snapshot
from harness.measure.counts.tally import LONG_S
from harness.measure.counts.time_course import SLOTS
from harness.measure.record.findings import (
    GapPart,
    SilencesPart,
    StallPart,
    ThrottlingPart,
    rounded,
)

RECOVERED_FROM = 0.9
"""Share of the rate before a gap from which the rate counts as recovered."""
MOST_GAPS = 20
STALLED_UPTO = 0.1
"""Share of the rate before it up to which a second belongs to a stall."""
SHORTEST_STALL_S = 2
MOST_KEYS = 3
_BEFORE_S = 5
"""The rate before a gap or a stall is the mean of up to this many seconds."""
_USUAL_TIMES = 10
"""A silence is longer than this multiple of the mean time between two answers."""
_QUICK_TIMES = 3
_QUICK_FROM = 0.05
"""In a silence of an endpoint that is not just slow, this share of the operations takes less than a
third of its length."""


def throttling_of(
    points: Sequence[SeriesPoint],
    partitions: Sequence[CountedPartition] = (),
    *,
    end: int | None = None,
) -> ThrottlingPart:
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
    # an entity without success. Both were served, and so was a delete of a row that is not there.
    succeeded = [
        point.entities > 0 or point.operations > point.unsuccessful - point.unchanged
        for point in loaded
    ]
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
        stalls=_stalls(loaded, partitions),
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


def _stalls(
    points: Sequence[SeriesPoint], partitions: Sequence[CountedPartition]
) -> tuple[StallPart, ...]:
    found: list[StallPart] = []
    normal: collections.deque[int] = collections.deque(maxlen=_BEFORE_S)
    first: int | None = None
    for place, point in enumerate([*points, None]):
        before = sum(normal) / len(normal) if normal else 0.0
        if point is not None and before and point.entities <= STALLED_UPTO * before:
            first = place if first is None else first
            continue
        if first is not None and _stalled(points[first:place]):
            found.append(_stall(points, first, place, before, partitions))
        first = None
        if point is not None:
            normal.append(point.entities)
    longest = heapq.nlargest(MOST_GAPS, found, key=lambda stall: stall.length_s)
    return tuple(sorted(longest, key=lambda stall: stall.start_s))


def _stalled(points: Sequence[SeriesPoint]) -> bool:
    """Whether these slow seconds are a stall: most of them have throttling, and operations wait."""
    throttled = sum(point.throttled > 0 for point in points)
    waited = any(point.retrying for point in points)
    return len(points) >= SHORTEST_STALL_S and throttled * 2 >= len(points) and waited


def _stall(
    points: Sequence[SeriesPoint],
    first: int,
    end: int,
    before: float,
    partitions: Sequence[CountedPartition],
) -> StallPart:
    worst = max(points[first:end], key=lambda point: point.retrying)
    waited = [
        (part.key, count) for part in partitions if (count := part.retrying.get(worst.second, 0))
    ]
    return StallPart(
        start_s=first,
        length_s=end - first,
        before_per_s=rounded(before),
        rate_per_s=rounded(sum(point.entities for point in points[first:end]) / (end - first)),
        waited=worst.retrying,
        keys=tuple(sorted(waited, key=lambda one: -one[1])[:MOST_KEYS]),
    )


def _recovered_s(points: Sequence[SeriesPoint], first: int, length: int) -> int | None:
    before = points[max(0, first - _BEFORE_S) : first]
    rate = sum(point.entities for point in before) / len(before) if before else 0.0
    if not rate:
        return None
    for place in range(first + length, len(points)):
        if points[place].entities >= RECOVERED_FROM * rate:
            return place - first
    return None


def silences_of(snapshot: Snapshot, full: Container[int] = ()) -> SilencesPart | None:
    """The times in the measured window in which requests waited and no answer came; None if none.

    An answer is one of any worker; see `harness.measure.counts.tally.ANSWERED`. Left out are those
    that reach into UTC seconds in which a processor was ``full``: answers may have been read late.
    """
    inside = [point for point in snapshot.series if snapshot.start <= point.second < snapshot.end]
    answers = sum(point.attempts for point in inside)
    if not answers or snapshot.service_ms is None:
        return None
    shortest_s = max(LONG_S, _USUAL_TIMES * len(inside) / answers)
    found: list[tuple[float, int]] = []
    first = length = 0
    # One more second ends the last silence.
    for second, silent in [*((p.second, p.waited & ~p.answered) for p in inside), (0, 0)]:
        for place in range(SLOTS if silent or length else 0):
            if silent >> place & 1:
                length += 1
                first = second * SLOTS + place + 1 - length
                continue
            around = range((first - 1) // SLOTS, (first + length) // SLOTS + 1)
            doubtful = any(reached in full for reached in around)
            long = not doubtful and length >= shortest_s * SLOTS
            if long and _quick(snapshot.service_ms, length / SLOTS):
                found.append((first / SLOTS - snapshot.series[0].second, length))
            length = 0
    if not found:
        return None
    longest_at_s, longest = max(found, key=lambda silence: silence[1])
    return SilencesPart(
        count=len(found),
        longest_s=rounded(longest / SLOTS),
        longest_at_s=rounded(longest_at_s),
        total_s=rounded(sum(slots for _, slots in found) / SLOTS),
    )


def _quick(service: CountedLatency, silence_s: float) -> bool:
    """Whether operations are usually so much quicker that a silence is none of their latency."""
    quick = sum(bound <= silence_s / _QUICK_TIMES for bound in BUCKETS_S)
    return bool(quick) and service.buckets[quick - 1] >= _QUICK_FROM * service.count
