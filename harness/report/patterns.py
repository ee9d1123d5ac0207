"""The pattern of a heat map of keys in a sentence, where the counts show it beyond doubt."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from harness.measure.record.over_time import HeatPart, KeyRangePart
from harness.model.figures import percent
from harness.model.partition import Partition
from harness.report.names import partition_name, shortened

_LEAST_COUNT, _LEAST_COLUMNS, _LEAST_ROWS = 500, 8, 4
"""With fewer counts, columns with counts, or rows, chance could make any pattern."""
_MOST_OF, _NEARLY_ALWAYS = 0.5, 0.75
"""The share of the load, and the share of the time."""
_IN_ORDER = 0.9
_RANGE_LOAD, _RANGE_ROWS = 0.75, 0.25
"""A hot range has this share of the load on at most this share of the keys."""
_EVEN = 1.5
_NAME_WIDTH = 40


def pattern(part: HeatPart) -> str:
    """What the map shows; empty where it shows none of the patterns for sure."""
    rows = [row for row in part.ranges if not Partition.named(row.first).whole_table]
    columns = [one for one in zip(*(row.entities for row in rows), strict=True) if sum(one)]
    total = sum(map(sum, columns))
    if total < _LEAST_COUNT or len(columns) < _LEAST_COLUMNS or len(rows) < _LEAST_ROWS:
        return ""
    singles = all(row.first == row.last for row in rows)
    return (
        _hot_key(rows, columns, total)
        or _moving_front(rows, columns)
        # Ranges of many keys are made so that they weigh the same.
        or (_hot_range(rows, columns, total) or _even(rows, columns, total) if singles else "")
    )


def _hot_key(rows: Sequence[KeyRangePart], columns: Sequence[tuple[int, ...]], total: int) -> str:
    place, row = max(enumerate(rows), key=lambda one: sum(one[1].entities))
    share = sum(row.entities) / total
    if row.first != row.last or share < _MOST_OF or not _lasts(columns, place, place + 1, _MOST_OF):
        return ""
    return f"One hot key: {_named(row.first)} has {percent(share)} of the load."


def _moving_front(rows: Sequence[KeyRangePart], columns: Sequence[tuple[int, ...]]) -> str:
    """The load is on one place of the key order at a time, and moves on in one direction."""
    # A front crosses the edge of a range within a column.
    places = [one.index(max(one)) for one in columns]
    narrow = sum(
        sum(one[max(0, place - 1) : place + 2]) >= _RANGE_LOAD * sum(one)
        for one, place in zip(columns, places, strict=True)
    )
    steps = [later - place for place, later in itertools.pairwise(places)]
    onward = max(sum(step >= 0 for step in steps), sum(step <= 0 for step in steps))
    moved = abs(places[-1] - places[0]) >= len(rows) / 2
    if not moved or narrow < _IN_ORDER * len(columns) or onward < _IN_ORDER * len(steps):
        return ""
    first, last = rows[places[0]].first, rows[places[-1]].last
    return (
        f"A moving front: the load moves from {_named(first)} to {_named(last)} in the order of "
        "the keys, so one partition after the other has nearly all of it."
    )


def _hot_range(rows: Sequence[KeyRangePart], columns: Sequence[tuple[int, ...]], total: int) -> str:
    sums = [sum(row.entities) for row in rows]
    for wide in range(2, int(len(rows) * _RANGE_ROWS) + 1):
        start = max(range(len(rows) - wide + 1), key=lambda at: sum(sums[at : at + wide]))
        share = sum(sums[start : start + wide]) / total
        if share >= _RANGE_LOAD and _lasts(columns, start, start + wide, _RANGE_LOAD):
            break
    else:
        return ""
    first, last = rows[start].first, rows[start + wide - 1].first
    return (
        f"A hot range: the {wide} keys from {_named(first)} to {_named(last)} of {len(rows)} have "
        f"{percent(share)} of the load."
    )


def _even(rows: Sequence[KeyRangePart], columns: Sequence[tuple[int, ...]], total: int) -> str:
    mean = total / len(rows)
    sums = [sum(row.entities) for row in rows]
    always = all(
        sum(count > 0 for count in one) >= _NEARLY_ALWAYS * len(columns)
        for one in zip(*columns, strict=True)
    )
    if not always or max(sums) > _EVEN * mean or min(sums) * _EVEN < mean:
        return ""
    return (
        f"An even spread: the busiest of {len(rows)} keys has {percent(max(sums) / total)} of the "
        f"load, and an equal share is {percent(1 / len(rows))}."
    )


def _lasts(columns: Sequence[tuple[int, ...]], first: int, end: int, share: float) -> bool:
    """Whether these rows have that share of the load nearly all the time."""
    found = sum(sum(one[first:end]) >= share * sum(one) for one in columns)
    return found >= _NEARLY_ALWAYS * len(columns)


def _named(key: str) -> str:
    return f"'{shortened(partition_name(key), _NAME_WIDTH)}'"
