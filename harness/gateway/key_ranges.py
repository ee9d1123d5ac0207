"""The range of keys that a query scans, derived from ``$filter``.

The service has one index, ordered by PartitionKey and then by RowKey (partitioning strategy, "Table
primary key" and "Analyze data"). What narrows a scan are comparisons of keys that every row has to
pass: of the PartitionKey, and within a single partition of the RowKey. A comparison by ``ne``, or
one inside ``or`` or ``not``, narrows nothing: a partition is scanned for ``or`` of RowKeys ("Design
Azure Table storage for queries"). That a table is scanned for ``or`` of PartitionKeys is assumed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from harness.gateway.filters import FilterError, PropertyComparison, parse_filter
from harness.model.entity import sort_key

Key = tuple[str, str]
"""PartitionKey and RowKey; keys are compared in this order."""


@dataclasses.dataclass(frozen=True, slots=True)
class IndexRange:
    """Keys from ``first`` up to, but not including, ``end``; None is the end of the table."""

    first: Key = ("", "")
    end: Key | None = None

    def __contains__(self, key: Key) -> bool:
        place, end = placed(key), self.end
        return placed(self.first) <= place and (end is None or place < placed(end))

    @property
    def only(self) -> str | None:
        """The partition if the range is of only one."""
        partition, end = self.first[0], self.end
        single = end is not None and placed(end) <= placed((after(partition), ""))
        return partition if single else None

    def within(self, first: Key = ("", ""), end: Key | None = None) -> IndexRange:
        """Return the part from ``first`` to before ``end``."""
        ends = [one for one in (self.end, end) if one is not None]
        return IndexRange(max(self.first, first, key=placed), min(ends, key=placed, default=None))


WHOLE = IndexRange()


def placed(key: Key) -> Key:
    """The place of a key in the index."""
    partition, row = key
    # Nearly all keys are in ASCII, and need no call.
    return key if partition.isascii() and row.isascii() else (sort_key(partition), sort_key(row))


def after(text: str) -> str:
    """Return the first text that sorts after ``text``."""
    return text + "\0"


def index_range(text: str) -> IndexRange:
    """Return the range of keys that is scanned for a filter, which is decoded.

    It is the whole table for an empty text, or one that is not a filter.
    """
    return _narrowed(text)[0]


def compared_properties(text: str) -> tuple[str, ...]:
    """Names of the properties that a filter compares without narrowing the range of keys."""
    return tuple(dict.fromkeys(one.name for one in _narrowed(text)[1]))


def _narrowed(text: str) -> tuple[IndexRange, list[PropertyComparison]]:
    """The range that a filter leaves, and the comparisons that do not narrow it."""
    try:
        found = parse_filter(text)
    except FilterError:
        return WHOLE, []
    (partition, before), found = _span("PartitionKey", found)
    if before != after(partition):
        return IndexRange((partition, ""), None if before is None else (before, "")), found
    (row, row_before), found = _span("RowKey", found)
    end = (before, "") if row_before is None else (partition, row_before)
    return IndexRange((partition, row), end), found


def _span(
    key: str, found: Sequence[PropertyComparison]
) -> tuple[tuple[str, str | None], list[PropertyComparison]]:
    """The first text of a key, and the one before which it ends; and the other comparisons."""
    firsts, ends, others = [""], [], []
    for one in found:
        name, operator, text, required = one
        if name != key or operator == "ne" or text is None or not required:
            others.append(one)
            continue
        if operator in ("eq", "ge", "gt"):
            firsts.append(after(text) if operator == "gt" else text)
        if operator in ("eq", "le", "lt"):
            ends.append(text if operator == "lt" else after(text))
    return (max(firsts, key=sort_key), min(ends, key=sort_key, default=None)), others
