"""Which operations of a trace are sent, and under which keys: the recorded ones, or a scheme's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.model.entity import key_problem
from harness.model.operation import WHOLE_TABLE, Kind
from harness.model.partition import Partition
from harness.trace.head import TraceHead
from harness.trace.operations import TracedOperation, TracedParts, TracedQuery
from harness.trace.replay.operations import key_range, why_left_out
from harness.trace.whatif.rekeying import Rekeying
from harness.trace.whatif.scheme import Scheme

_QUERY, _TRANSACTION = Kind.QUERY, Kind.TRANSACTION


class RekeyedOperations:
    """Gives operations the keys of a scheme. Keys that the scheme does not match stay.

    A transaction that would span partitions becomes one for each of them, and so does a query. A
    query whose partitions cannot be told reads the whole table.
    """

    def __init__(self, scheme: Scheme) -> None:
        self.scheme = scheme
        self._rekeying = Rekeying(scheme)

    def keys(self, table: str, partition_key: str, row_key: str) -> tuple[str, str]:
        new = None
        if self.scheme.applies_to(table):
            new = self.scheme.keys(partition_key, row_key)
        return (partition_key, row_key) if new is None else new

    def matches(self, row: TracedOperation) -> bool:
        """Whether an operation has new keys, as far as its own keys tell; True without keys."""
        key = row.partition_key
        if key is None or key == WHOLE_TABLE or not self.scheme.applies_to(row.shape.table):
            return True
        single = row.shape.kind is not _QUERY and row.shape.kind is not _TRANSACTION
        return self.scheme.values(key, row.row_key if single else None) is not None

    def of(self, row: TracedOperation) -> Iterator[TracedOperation]:
        """The operations that take the place of a recorded one."""
        kind, table = row.shape.kind, row.shape.table
        if not self.scheme.applies_to(table) or row.partition_key is None:
            yield row
        elif kind is _QUERY:
            yield from self._queries(row)
        elif kind is _TRANSACTION:
            yield from self._transactions(row)
        else:
            partition_key, row_key = self.keys(table, row.partition_key, row.row_key or "")
            yield row._replace(partition_key=partition_key, row_key=row_key)

    def _transactions(self, row: TracedOperation) -> Iterator[TracedOperation]:
        detail, table = row.detail, row.shape.table
        assert isinstance(detail, TracedParts)
        # By new PartitionKey and RowKey: the service accepts a RowKey once.
        groups: dict[str, dict[str, tuple[Kind, int]]] = {}
        for kind, row_key, size in zip(*detail, strict=True):
            new = self.keys(table, row.partition_key or "", row_key or "")
            groups.setdefault(new[0], {}).setdefault(new[1], (kind, size))
        whole = len(detail.kinds)
        for partition_key, parts in groups.items():
            kinds, sizes = zip(*parts.values(), strict=True)
            yield row._replace(
                partition_key=partition_key,
                entities=len(parts) if row.entities else 0,
                bytes_sent=row.bytes_sent * len(parts) // whole,
                bytes_received=row.bytes_received * len(parts) // whole,
                detail=TracedParts(kinds=kinds, row_keys=tuple(parts), sizes=sizes),
            )

    def _queries(self, row: TracedOperation) -> Iterator[TracedOperation]:
        query = row.detail if isinstance(row.detail, TracedQuery) else TracedQuery()
        treated = self._rekeying.treated(row.shape.table, row.partition_key, query)
        number = max(1, len(treated.names))
        for place, name in enumerate(treated.names):
            partition = Partition.named(name)
            yield row._replace(
                partition_key=partition.key,
                entities=_part(row.entities, place, number),
                returned=_part(row.returned, place, number),
                bytes_received=row.bytes_received // number,
                detail=self._bounds(row, query, over=partition.whole_table),
            )

    def _bounds(self, row: TracedOperation, query: TracedQuery, *, over: bool) -> TracedQuery:
        """The query with the bounds of its rows under the new keys."""
        bare = TracedQuery(compared=query.compared, selected=query.selected, top=query.top)
        keys, scheme = key_range(row), self.scheme
        if row.partition_key == WHOLE_TABLE:
            # New PartitionKeys sort in another way.
            return query if scheme.identity else bare
        values = scheme.values(row.partition_key or "", None)
        if values is None:
            return query
        if over or not scheme.row_template.keeps_row_order:
            return bare
        start = scheme.row_template.fill({**values, "row_key": ""})
        row_from = None if keys.row_from is None else start + keys.row_from
        row_before = None if keys.row_before is None else start + keys.row_before
        if start:
            row_from = row_from or start
            row_before = row_before or start[:-1] + chr(ord(start[-1]) + 1)
        return bare._replace(row_from=row_from, row_before=row_before)


def _part(whole: int, place: int, number: int) -> int:
    """A part of a whole that is divided evenly."""
    each, rest = divmod(whole, number)
    return each + (place < rest)


class Selection:
    """Decides about each operation of a trace."""

    def __init__(self, head: TraceHead, scheme: Scheme | None = None) -> None:
        self._head = head
        self.rekeyed = None if scheme is None else RekeyedOperations(scheme)

    def why_left_out(self, row: TracedOperation) -> str:
        """Why an operation is not sent; empty if it is."""
        if reason := why_left_out(row, self._head):
            return reason
        if self.rekeyed is not None:
            for new in self.rekeyed.of(row):
                for key in _keys(new):
                    if problem := key_problem(key):
                        return f"a new key {problem}"
        return ""

    def sent(self, row: TracedOperation) -> Sequence[TracedOperation]:
        """The operations that are sent for one that is not left out; one with recorded keys."""
        return (row,) if self.rekeyed is None else tuple(self.rekeyed.of(row))


def _keys(row: TracedOperation) -> Iterator[str]:
    if row.partition_key != WHOLE_TABLE:
        yield row.partition_key or ""
    yield row.row_key or ""
    if isinstance(row.detail, TracedParts):
        yield from (key or "" for key in row.detail.row_keys)
