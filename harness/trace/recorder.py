"""Recording: results become blocks in the process that counts them.

`harness.trace.writer` writes the blocks of all processes to one trace.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.gateway.filters import equal_values
from harness.gateway.key_ranges import compared_properties
from harness.model.entity import Properties, canonical_text
from harness.model.operation import Kind, Operation
from harness.model.outcome import Attempt, Result, Scope
from harness.trace.blocks import MOST_OPERATIONS, BlockColumns, dumped
from harness.trace.operations import UNKNOWN, TracedParts, TracedQuery
from harness.trace.schema import MOST_KEY

KEPT_S = 1.0
"""An operation is in a block after this time, and with the writer after the next report."""
# Looked up once: access to a member of an enumeration takes several times as long as a plain name.
_QUERY, _NO_SCOPE = Kind.QUERY, Scope.NONE


class Recorder:
    """Records results, with values of these properties; `drain` returns blocks for the writer."""

    def __init__(self, properties: Sequence[str] = ()) -> None:
        self.properties = properties
        self._columns = BlockColumns()
        self._since_s = 0.0
        self._blocks: list[bytes] = []

    def add(
        self, result: Result, client: str, detail: TracedQuery | TracedParts | None = None
    ) -> None:
        """Record one result. A key that is `UNKNOWN` itself is recorded as unknown.

        ``detail`` is what `detail_of` makes of a query or a transaction; None makes it of the
        operation.
        """
        operation, columns = result.operation, self._columns
        if detail is None and (operation.kind is _QUERY or operation.parts):
            detail = detail_of(operation, result.bytes_sent)
        if self.properties:
            detail = self._with_values(operation, detail)
        if detail is not None:
            columns.detail(len(columns.at), detail)
        # A trace has one latency. What counts by time follows the end of an operation.
        at_ms = int((result.sent_s + result.outside_s) * 1000)
        took_ms = int(result.done_s * 1000) - at_ms
        partition_key, row_key = operation.partition_key, operation.row_key
        columns.at.append(at_ms)
        columns.took.append(took_ms if took_ms > 0 else 0)
        columns.shape.append(_shape_number(columns, result, client))
        columns.key.append(None if partition_key is UNKNOWN else partition_key)
        columns.row.append(None if row_key is UNKNOWN else row_key)
        columns.entities.append(result.entities)
        columns.returned.append(result.entities_returned)
        columns.sent.append(result.bytes_sent)
        columns.received.append(result.bytes_received)
        if len(columns.at) >= MOST_OPERATIONS:
            self._pack()

    def _with_values(
        self, operation: Operation, detail: TracedQuery | TracedParts | None
    ) -> TracedQuery | TracedParts | None:
        names = self.properties
        if isinstance(detail, TracedParts):
            values = tuple([values_of(part.properties, names) for part in operation.parts])
            return detail._replace(properties=values)
        if operation.filter:
            found = equal_values(operation.filter, names)
        else:
            found = values_of(operation.properties, names)
        if found:
            self._columns.properties.append((len(self._columns.at), dumped(found).decode()))
        return detail

    def drain(self, now_s: float, *, final: bool = False) -> list[bytes]:
        """The blocks that are complete, or have been kept for `KEPT_S`; all if it is ``final``."""
        if final or now_s >= self._since_s + KEPT_S:
            self._since_s = now_s
            if self._columns.at:
                self._pack()
        blocks, self._blocks = self._blocks, []
        return blocks

    def _pack(self) -> None:
        self._blocks.append(self._columns.encode())
        self._columns = BlockColumns()


def values_of(properties: Properties | None, names: Sequence[str]) -> dict[str, str]:
    """The canonical texts of the named ones of properties."""
    if not properties:
        return {}
    texts = ((name, canonical_text(properties.get(name))) for name in names)
    return {name: text[:MOST_KEY] for name, text in texts if text is not None}


def _shape_number(columns: BlockColumns, result: Result, client: str) -> int:
    """The place of the result's shape among those of the block."""
    operation, attempts = result.operation, result.attempts
    last = attempts[-1]
    plain = len(attempts) == 1 and not last.error_code and last.scope is _NO_SCOPE
    kind = operation.kind
    # Plain text for enumerations, which take long to hash; and a label takes long to find.
    known = (
        client,
        kind._value_,
        operation.table,
        operation.label if kind is _QUERY else operation.name,
        result.outcome._value_,
        result.estimated,
        last.status if plain else _answers(attempts),
    )
    number = columns.shape_keys.get(known)
    if number is None:
        number = columns.shape_keys[known] = len(columns.shapes)
        columns.shapes.append((*known[:3], operation.label, *known[4:6], _answers(attempts)))
    return number


def _answers(attempts: Sequence[Attempt]) -> tuple[tuple[int, str, str], ...]:
    return tuple([(made.status, made.error_code, made.scope._value_) for made in attempts])


def detail_of(
    operation: Operation,
    bytes_sent: int,
    *,
    sizes: Sequence[int] = (),
    continued_at: tuple[str, str] | None = None,
) -> TracedQuery | TracedParts | None:
    """The detail of a query or a transaction.

    Args:
        sizes: Bytes of each part of a transaction; empty takes them to be equal.
        continued_at: Where a further page of a query begins.
    """
    parts = operation.parts
    if parts:
        return TracedParts(
            kinds=tuple([part.kind for part in parts]),
            row_keys=tuple([part.row_key for part in parts]),
            sizes=tuple(sizes) or (bytes_sent // len(parts),) * len(parts),
        )
    if operation.kind is not _QUERY:
        return None
    keys = operation.key_range
    return TracedQuery(
        partition_from=keys.partition_from,
        partition_before=keys.partition_before,
        row_from=keys.row_from,
        row_before=keys.row_before,
        compared=compared_properties(operation.filter) if operation.filter else (),
        selected=operation.select,
        top=operation.top,
        continued_at=continued_at,
    )
