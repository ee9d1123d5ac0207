"""Operations in the order in which they took effect, as far as a trace shows it.

A trace is in the order of sending. Where a write and a query of its partition overlapped, the query
did not see a write that was answered after it, as a rule. Such a write is moved behind the query.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Iterator

from harness.model.operation import WHOLE_TABLE, Kind
from harness.trace.operations import TracedOperation

_LONGEST_MS = 5000
"""Writes that took longer stay where they are: the operations of this time are held in memory."""
_QUERY = Kind.QUERY
_SAME_ROWS = frozenset((Kind.QUERY, Kind.POINT_QUERY, Kind.UPDATE_MERGE, Kind.UPDATE_REPLACE))
"""Operations that add and remove no rows."""


class _Held:
    """A place in the order; ``row`` is None if its write was moved behind a query."""

    __slots__ = ("key", "row")

    def __init__(self, row: TracedOperation, key: tuple[str, str | None] | None) -> None:
        self.row: TracedOperation | None = row
        self.key = key


def in_order_of_effect(rows: Iterable[TracedOperation]) -> Iterator[TracedOperation]:
    """The operations of a trace, in order of their instants; a moved one has that of its query."""
    held: collections.deque[_Held] = collections.deque()
    # Writes that a query may move yet, by table and PartitionKey.
    writes: dict[tuple[str, str | None], list[_Held]] = {}
    for row in rows:
        shape, at_ms = row.shape, row.at_ms
        while held:
            first = held[0]
            if first.row is not None:
                if first.key is not None:
                    if first.row.done_ms >= at_ms:
                        break
                    _forget(writes, first)
                yield first.row
            held.popleft()
        if shape.kind in _SAME_ROWS:
            if held:
                held.append(_Held(row, None))
                if shape.kind is _QUERY:
                    held.extend(_moved(writes, row))
            else:
                yield row
        elif row.done_ms - at_ms > _LONGEST_MS:
            held.append(_Held(row, None))
        else:
            key = shape.table, row.partition_key
            write = _Held(row, key)
            held.append(write)
            writes.setdefault(key, []).append(write)
    for one in held:
        if one.row is not None:
            yield one.row


def _moved(
    writes: dict[tuple[str, str | None], list[_Held]], query: TracedOperation
) -> Iterator[_Held]:
    """Take the writes that were answered after a query from their places."""
    table, key = query.shape.table, query.partition_key
    keys = [(table, key)]
    if key == WHOLE_TABLE:
        keys = [known for known in writes if known[0] == table]
    for known in keys:
        for write in tuple(writes.get(known, ())):
            row = write.row
            assert row is not None
            if row.done_ms > query.done_ms:
                moved = _Held(row._replace(at_ms=query.at_ms), known)
                write.row = None
                of_key = writes[known]
                of_key[of_key.index(write)] = moved
                yield moved


def _forget(writes: dict[tuple[str, str | None], list[_Held]], write: _Held) -> None:
    assert write.key is not None
    of_key = writes[write.key]
    of_key.remove(write)
    if not of_key:
        del writes[write.key]
