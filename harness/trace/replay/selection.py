"""Which operations of a trace are sent, and under which keys: the recorded ones, or a scheme's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness.model.entity import key_problem
from harness.model.operation import WHOLE_TABLE, Kind
from harness.trace.head import TraceHead
from harness.trace.operations import TracedOperation, TracedParts, TracedQuery, by_page
from harness.trace.replay.operations import why_left_out
from harness.trace.whatif.queries import treated
from harness.trace.whatif.scheme import Scheme, as_recorded

_QUERY, _TRANSACTION = Kind.QUERY, Kind.TRANSACTION
_EVERY_PAGE = 10**9
"""The most entities of a query that is to be read to its end, where a trace has each page."""


class Selection:
    """Decides about each operation of a trace, and gives it the keys of a scheme.

    Keys that the scheme does not match stay. A transaction that would span partitions becomes one
    for each of them, and a query one for each range of keys that it needs: see
    `harness.trace.whatif.queries`.

    Args:
        scheme: By default the keys stay as they were recorded.
    """

    def __init__(self, head: TraceHead, scheme: Scheme | None = None) -> None:
        self._head = head
        self.scheme = as_recorded() if scheme is None else scheme

    def why_left_out(self, row: TracedOperation) -> str:
        """Why an operation is not sent; empty if it is."""
        if reason := why_left_out(row, self._head):
            return reason
        if not self.scheme.identity:
            for new in self.sent(row):
                for key in _keys(new):
                    if problem := key_problem(key):
                        return f"a new key {problem}"
        return ""

    def matches(self, row: TracedOperation) -> bool:
        """Whether an operation has new keys, as far as its own keys tell; True without keys."""
        key = row.partition_key
        if key is None or key == WHOLE_TABLE or not self.scheme.applies_to(row.shape.table):
            return True
        single = row.shape.kind is not _QUERY and row.shape.kind is not _TRANSACTION
        return self.scheme.values(key, row.row_key if single else None) is not None

    def lacks_values(self, row: TracedOperation) -> bool:
        """Whether an operation is on a row of which a property is not known: it keeps its keys."""
        if not self.scheme.applies_to(row.shape.table) or row.shape.kind is _QUERY:
            return False
        values = [row.properties]
        if isinstance(row.detail, TracedParts):
            values = [part.properties for part in row.detail.each()]
        return any(not self.scheme.takes_properties(one, {}) for one in values)

    def sent(self, row: TracedOperation) -> Iterable[TracedOperation]:
        """The operations that are sent for one that is not left out."""
        scheme, kind, table = self.scheme, row.shape.kind, row.shape.table
        if scheme.identity or not scheme.applies_to(table) or row.partition_key is None:
            return (row,)
        if kind is _QUERY:
            return self._queries(row)
        if kind is _TRANSACTION:
            return self._transactions(row)
        new = scheme.new_keys(table, row.partition_key, row.row_key or "", row.properties)
        return (row._replace(partition_key=new[0], row_key=new[1]),)

    def _transactions(self, row: TracedOperation) -> Iterator[TracedOperation]:
        detail, table = row.detail, row.shape.table
        assert isinstance(detail, TracedParts)
        # By new PartitionKey and RowKey: the service accepts a RowKey once.
        groups: dict[str, dict[str, tuple[Kind, int]]] = {}
        for kind, row_key, size, properties in detail.each():
            new = self.scheme.new_keys(table, row.partition_key or "", row_key or "", properties)
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
        found = treated(self.scheme, row.shape.table, row.partition_key, query)
        # A further page of several partitions begins at a recorded key.
        if found.kept and (row.partition_key != WHOLE_TABLE or query.continued_at is None):
            yield row
            return
        if found.continued:
            # Where it begins in each range, only answers tell.
            return
        number = len(found.ranges)
        # Every row of the ranges passes what its keys show.
        compared = tuple(name for name in query.compared if name not in found.in_keys)
        entities = row.entities if compared or not found.narrowed else max(1, row.returned)
        top = query.top if found.exact and found.ordered else None
        if top is None and by_page(self._head) and not found.limited:
            top = _EVERY_PAGE
        for place, one in enumerate(found.ranges):
            yield row._replace(
                partition_key=one.partition_key,
                entities=_part(entities, place, number),
                returned=_part(row.returned, place, number),
                bytes_received=row.bytes_received // number,
                detail=TracedQuery(
                    *one[1:],
                    compared=compared,
                    selected=query.selected,
                    top=top,
                ),
            )


def _part(whole: int, place: int, number: int) -> int:
    """A part of a whole that is divided evenly."""
    each, rest = divmod(whole, number)
    return each + (place < rest)


def _keys(row: TracedOperation) -> Iterator[str]:
    if row.partition_key != WHOLE_TABLE:
        yield row.partition_key or ""
    yield row.row_key or ""
    if isinstance(row.detail, TracedParts):
        yield from (key or "" for key in row.detail.row_keys)
