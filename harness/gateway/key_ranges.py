"""The ranges of keys that a query scans, derived from ``$filter``.

The service has one index, ordered by PartitionKey and then by RowKey (partitioning strategy, "Table
primary key" and "Analyze data"). A comparison of keys narrows the scan; a comparison of other
properties does not. A RowKey narrows the scan within a single partition only. It is assumed that
``or`` scans the ranges of each side, but not the keys between them.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterable
from typing import TypeVar

from harness.gateway.filters import (
    Both,
    Constant,
    Either,
    FilterError,
    KeyComparison,
    Negated,
    Node,
    Unknown,
    parse_filter,
)

_NEGATED = {"eq": "ne", "ne": "eq", "lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}
_MOST_BOXES = 1000
"""A filter that would have more is simplified to the one range that holds all of them."""

Key = tuple[str, str]
"""PartitionKey and RowKey; keys are compared in this order."""


@dataclasses.dataclass(frozen=True, slots=True)
class IndexRange:
    """Keys from ``first`` up to, but not including, ``end``; None is the end of the table."""

    first: Key
    end: Key | None

    def __contains__(self, key: Key) -> bool:
        return key >= self.first and (self.end is None or key < self.end)


@dataclasses.dataclass(frozen=True, slots=True)
class IndexRanges:
    """Ranges in order that do not overlap."""

    ranges: tuple[IndexRange, ...]

    def __contains__(self, key: Key) -> bool:
        return any(key in one for one in self.ranges)

    @property
    def first(self) -> str:
        """PartitionKey at which the scan begins; empty if there is nothing to scan."""
        return self.ranges[0].first[0] if self.ranges else ""

    @property
    def only(self) -> str | None:
        """The partition if the ranges are of only one."""
        if not self.ranges:
            return None
        key, last = self.ranges[0].first[0], self.ranges[-1].end
        return key if last is not None and last <= (after(key), "") else None

    def within(self, first: Key = ("", ""), end: Key | None = None) -> IndexRanges:
        """Return the part from ``first`` to before ``end``."""
        clipped = (IndexRange(max(one.first, first), _least(one.end, end)) for one in self.ranges)
        return IndexRanges(tuple(one for one in clipped if one.end is None or one.first < one.end))


WHOLE = IndexRanges((IndexRange(("", ""), None),))


def after(text: str) -> str:
    """Return the first text that sorts after ``text``."""
    return text + "\0"


def key_ranges(text: str) -> IndexRanges:
    """Return the ranges of keys that hold every row that passes a filter, which is decoded.

    They are the whole table for an empty text, or one that is not a filter.
    """
    try:
        tree = parse_filter(text)
    except FilterError:
        return WHOLE
    return _merged(box.in_order() for box in _boxes(tree, negated=False))


@dataclasses.dataclass(frozen=True, slots=True)
class _Span:
    """Texts from ``first`` up to, but not including, ``end``; None is no end."""

    first: str = ""
    end: str | None = None

    @property
    def empty(self) -> bool:
        return self.end is not None and self.first >= self.end

    def both(self, other: _Span) -> _Span:
        return _Span(max(self.first, other.first), _least(self.end, other.end))


_EVERY = _Span()


@dataclasses.dataclass(frozen=True, slots=True)
class _Box:
    """Rows whose PartitionKey and RowKey are each in a span."""

    partitions: _Span = _EVERY
    rows: _Span = _EVERY

    def both(self, other: _Box) -> _Box:
        return _Box(self.partitions.both(other.partitions), self.rows.both(other.rows))

    @property
    def empty(self) -> bool:
        return self.partitions.empty or self.rows.empty

    def in_order(self) -> IndexRange:
        """Return the part of the index that is scanned for the box."""
        first, end = self.partitions.first, self.partitions.end
        if end == after(first):
            rows = self.rows
            return IndexRange(
                (first, rows.first), (end, "") if rows.end is None else (first, rows.end)
            )
        return IndexRange((first, ""), None if end is None else (end, ""))


def _boxes(node: Node, *, negated: bool) -> list[_Box]:
    """Return boxes that hold every row that may pass the node, or its negation."""
    match node:
        case KeyComparison():
            return _compared(node, negated=negated)
        case Constant():
            return [_Box()] if node.passes is not negated else []
        case Unknown():
            return [_Box()]
        case Negated():
            return _boxes(node.part, negated=not negated)
        case Both() | Either():
            parts = [_boxes(part, negated=negated) for part in node.parts]
            if isinstance(node, Both) is negated:
                boxes = list(itertools.chain.from_iterable(parts))
                return boxes if len(boxes) <= _MOST_BOXES else _hull(boxes)
            return functools.reduce(_crossed, parts)


def _compared(node: KeyComparison, *, negated: bool) -> list[_Box]:
    below, above = _Span("", node.text), _Span(after(node.text), None)
    operator = _NEGATED[node.operator] if negated else node.operator
    spans = {
        "eq": [_Span(node.text, after(node.text))],
        "ne": [below, above],
        "lt": [below],
        "le": [_Span("", after(node.text))],
        "gt": [above],
        "ge": [_Span(node.text, None)],
    }[operator]
    spans = [span for span in spans if not span.empty]
    if node.key == "PartitionKey":
        return [_Box(partitions=span) for span in spans]
    return [_Box(rows=span) for span in spans]


def _crossed(left: list[_Box], right: list[_Box]) -> list[_Box]:
    if len(left) * len(right) > _MOST_BOXES:
        left, right = _hull(left), _hull(right)
    both = (one.both(other) for one in left for other in right)
    return [box for box in both if not box.empty]


def _hull(boxes: list[_Box]) -> list[_Box]:
    """Return the one box around all."""
    if not boxes:
        return []
    spans = [box.partitions for box in boxes]
    ends = [span.end for span in spans if span.end is not None]
    last = max(ends) if len(ends) == len(spans) else None
    return [_Box(partitions=_Span(min(span.first for span in spans), last))]


def _merged(ranges: Iterable[IndexRange]) -> IndexRanges:
    merged: list[IndexRange] = []
    for one in sorted(ranges, key=lambda one: one.first):
        if merged and (merged[-1].end is None or one.first <= merged[-1].end):
            end = merged[-1].end
            last = None if end is None or one.end is None else max(end, one.end)
            merged[-1] = IndexRange(merged[-1].first, last)
        else:
            merged.append(one)
    return IndexRanges(tuple(merged))


_Bound = TypeVar("_Bound", str, Key)


def _least(one: _Bound | None, other: _Bound | None) -> _Bound | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
