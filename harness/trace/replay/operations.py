"""The operations of a trace as a run sends them again, with made data: a trace holds only sizes."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.model.entity import MAX_PAGE_ENTITIES, EdmValue
from harness.model.operation import (
    WHOLE_TABLE,
    KeyRange,
    Kind,
    Operation,
    new_key_range,
    new_operation,
)
from harness.model.outcome import Outcome
from harness.trace.head import TraceHead
from harness.trace.operations import (
    ASSUMED_PROPERTIES,
    TracedOperation,
    TracedParts,
    TracedQuery,
    by_page,
    part_bytes,
    written_bytes,
)
from harness.trace.whatif.queries import recorded_range
from harness.workload.entity_factory import RUN_PROPERTY, wire_bytes

GROUPS = 1000
"""Rows have one of so many numbers in each property that filters compare, so that a filter returns
about any share of them."""
_TEXT_CHARACTERS = 30_000
_LEAST_TEXT = 40
"""Bytes of a text property as sent, beside its text."""
UNKNOWN_KEYS = "the trace does not hold their keys"
REFUSED = "the service refused them as invalid"
NO_ORDER = "they read ranges of keys, and the aliases in the trace do not keep the order of keys"
_STALE_ETAG = "W/\"datetime'2000-01-01T00%3A00%3A00.0000000Z'\""
"""Of no stored version: the answer is 412, as in the recording."""
_QUERY, _TRANSACTION = Kind.QUERY, Kind.TRANSACTION
_INSERT = Kind.INSERT


class MadeData:
    """Makes properties of about a wanted size as sent, marked with the run id."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._fixed = wire_bytes("", "", {RUN_PROPERTY: run_id})
        self._each = wire_bytes("", "", {"": 0}) - wire_bytes("", "", {})

    def properties(
        self, partition_key: str, row_key: str, compared: Sequence[str], sent_bytes: int
    ) -> dict[str, EdmValue]:
        """The properties of one entity.

        Args:
            sent_bytes: Wanted size of the entity in a request, keys included. Smaller entities than
                the least possible have that.
        """
        made: dict[str, EdmValue] = {RUN_PROPERTY: self._run_id}
        group = zlib.crc32(row_key.encode("utf-8", "surrogatepass")) % GROUPS
        missing = sent_bytes - self._fixed - len(partition_key) - len(row_key)
        for name in map(_made, compared):
            made[name] = group
            missing -= self._each + len(name) + 2
        # As many properties as request units are estimated for, where they have room.
        texts = max(1, min(ASSUMED_PROPERTIES - len(made), missing // (2 * _LEAST_TEXT)))
        number = 0
        while missing > _LEAST_TEXT:
            length = min(missing // max(1, texts - number) - _LEAST_TEXT, _TEXT_CHARACTERS)
            made.setdefault(f"Text{number}", "x" * length)
            missing -= length + _LEAST_TEXT
            number += 1
        return made


def _made(compared: str) -> str:
    """The made property in place of a compared one: a key has a value of its own."""
    return f"{compared}Group" if compared in ("PartitionKey", "RowKey") else compared


def filter_for(compared: Sequence[str], returned: int, scanned: int) -> str:
    """A filter on these properties that returns about ``returned`` of ``scanned`` rows."""
    share = min(1.0, returned / scanned)
    first, *others = map(_made, compared)
    terms = [f"{first} lt {round(share * GROUPS)}", *(f"{name} ge 0" for name in others)]
    return " and ".join(terms)


def why_left_out(row: TracedOperation, head: TraceHead) -> str:
    """Why an operation of a trace cannot be sent again; empty if it can."""
    if row.partition_key is None:
        return UNKNOWN_KEYS
    kind, detail = row.shape.kind, row.detail
    if kind is _TRANSACTION:
        if not isinstance(detail, TracedParts) or None in detail.row_keys or not detail.kinds:
            return UNKNOWN_KEYS
    elif kind is _QUERY:
        if not head.keeps_order and isinstance(detail, TracedQuery):
            ends = (*detail.bounds, detail.continued_at)
            if any(end is not None for end in ends):
                return NO_ORDER
    elif row.row_key is None:
        return UNKNOWN_KEYS
    return "" if row.shape.outcome.charged else REFUSED


def bound(text: str | None) -> str | None:
    """A bound of a range as it can be sent.

    The first text after a key ends in U+0000, which no request can contain. The first key after it
    has a space there, because keys contain no control characters.
    """
    return f"{text[:-1]} " if text is not None and text.endswith("\0") else text


def key_range(row: TracedOperation, **known: Any) -> KeyRange:
    """The keys that a recorded query scanned, or a page of it, with what else is known of them."""
    query = row.detail if isinstance(row.detail, TracedQuery) else TracedQuery()
    # A page over several partitions needs `continuation_filter` too.
    scanned = recorded_range(row.partition_key or "", query)
    return new_key_range(
        partition_from=bound(scanned.partition_from),
        partition_before=bound(scanned.partition_before),
        row_from=bound(scanned.row_from),
        row_before=bound(scanned.row_before),
        **known,
    )


def continuation_filter(continued_at: tuple[str, str]) -> str:
    """The filter for a further page over several partitions, in the range from its first one on."""
    partition_key, row_key = (text.replace("'", "''") for text in continued_at)
    return f"(PartitionKey gt '{partition_key}' or RowKey ge '{row_key}')"


def page_limit(query: TracedQuery, head: TraceHead) -> int | None:
    """The most entities that a recorded query could return; None for one with all its pages."""
    return MAX_PAGE_ENTITIES if query.top is None and by_page(head) else query.top


def count_is_assumed(row: TracedOperation, head: TraceHead) -> bool:
    """Whether a replay takes the entity count of a query from the recording.

    An answer shows what a filter left of the scanned rows. How many these were is known of a
    partition, whose writes are in order, and not of several, nor where a page ended early.
    """
    query = row.detail
    if not (isinstance(query, TracedQuery) and query.compared and row.entities):
        return False
    if row.shape.estimated or row.partition_key == WHOLE_TABLE:
        return True
    most = page_limit(query, head)
    return most is not None and row.returned >= most


def units_of(row: TracedOperation) -> int:
    """The entity count of an operation if it succeeds; see `Operation.entities_asked`."""
    if row.shape.kind is _QUERY:
        return max(1, row.entities)
    detail = row.detail
    return len(detail.kinds) if isinstance(detail, TracedParts) else 1


@dataclasses.dataclass(frozen=True, slots=True)
class OperationMaker:
    """Makes the operations of one trace.

    Attributes:
        tables: Ending of the table's name by recorded name, in lower case.
        compared: Properties that filters compare, by ending of the table's name.
    """

    head: TraceHead
    tables: Mapping[str, str]
    compared: Mapping[str, tuple[str, ...]]
    data: MadeData

    def of(self, row: TracedOperation) -> Operation:
        """The operation for one that is not left out."""
        shape = row.shape
        kind, table = shape.kind, self.tables[shape.table.lower()]
        assert row.partition_key is not None
        if kind is _QUERY:
            return self._query(row, table)
        if kind is _TRANSACTION:
            return self._transaction(row, table)
        assert row.row_key is not None
        etag = None
        if shape.outcome is Outcome.PRECONDITION and kind.needs_row:
            etag = _STALE_ETAG
        size = written_bytes(row, self.head)
        return self._single(kind, table, row.partition_key, row.row_key, size, etag, shape.label)

    def loaded(self, table: str, partition_key: str, row_key: str, size: int) -> Operation:
        return self._single(_INSERT, table, partition_key, row_key, size)

    def _single(
        self,
        kind: Kind,
        table: str,
        partition_key: str,
        row_key: str,
        size: int,
        etag: str | None = None,
        name: str = "",
    ) -> Operation:
        properties = None
        if kind.stores:
            compared = self.compared.get(table, ())
            properties = self.data.properties(partition_key, row_key, compared, size)
        return new_operation(
            kind=kind,
            partition_key=partition_key,
            row_key=row_key,
            table=table,
            name=name,
            properties=properties,
            etag=etag,
        )

    def _transaction(self, row: TracedOperation, table: str) -> Operation:
        return new_operation(
            kind=_TRANSACTION,
            partition_key=row.partition_key or "",
            table=table,
            name=row.shape.label,
            parts=tuple(self._parts(row, table)),
        )

    def _parts(self, row: TracedOperation, table: str) -> Iterator[Operation]:
        detail, stale = row.detail, row.shape.outcome is Outcome.PRECONDITION
        assert isinstance(detail, TracedParts)
        parts, attempts = len(detail.kinds), len(row.shape.attempts)
        for kind, row_key, whole, _ in detail.each():
            size = part_bytes(whole, parts, attempts, self.head)
            etag = None
            if stale and kind.needs_row:
                etag, stale = _STALE_ETAG, False
            yield self._single(kind, table, row.partition_key or "", row_key or "", size, etag)

    def _query(self, row: TracedOperation, table: str) -> Operation:
        shape = row.shape
        query = row.detail if isinstance(row.detail, TracedQuery) else TracedQuery()
        served = shape.outcome.succeeded and row.entities > 0
        if served:
            exact = not (shape.estimated or count_is_assumed(row, self.head))
            keys = key_range(row, entities=row.entities, exact=exact, scanned=row.entities)
        else:
            keys = key_range(row)
        terms = []
        if query.compared:
            # Of a query that failed it is not known what it would have found.
            part = (row.returned, row.entities) if served else (1, 1)
            terms.append(filter_for(query.compared, *part))
        if row.partition_key == WHOLE_TABLE and query.continued_at is not None:
            terms.append(continuation_filter(query.continued_at))
        return new_operation(
            kind=_QUERY,
            partition_key=row.partition_key or "",
            table=table,
            name=shape.label,
            key_range=keys,
            filter=" and ".join(terms) or None,
            select=query.selected,
            top=page_limit(query, self.head),
        )
