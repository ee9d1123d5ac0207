"""Makes blocks of a trace from results, in the process that counts them.

An operation is recorded when it ends, and a trace is in the order in which operations begin. So
the operations of a block are sorted, and those that took much longer than others have blocks of
their own: otherwise a reader would have to keep many blocks to bring a trace into order.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from harness.gateway.filters import compared_properties
from harness.model.operation import Kind, Operation
from harness.model.outcome import Result
from harness.trace.blocks import (
    MOST_OPERATIONS,
    Row,
    RowShape,
    encode,
    parts_detail,
    query_detail,
)
from harness.trace.operations import UNKNOWN, TracedQuery

LATE_MS = 2000
"""An operation that began this much before the latest one goes to the late blocks."""
KEPT_S = 5.0
"""An operation is in a block after this time, so that a crash loses no more."""
# Looked up once: access to a member of an enumeration takes several times as long as a plain name.
_QUERY = Kind.QUERY
_at = operator.itemgetter(0)


class Recorder:
    """Records results; `drain` returns the blocks that are to be appended to the file."""

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._late: list[Row] = []
        self._since_s = 0.0
        self._newest_ms = 0
        self._blocks: list[bytes] = []

    def add(self, result: Result, client: str, detail: list[Any] | None = None) -> None:
        """Record one result.

        Args:
            result: The result. A key that is `UNKNOWN` itself is recorded as unknown.
            client: Who sent it.
            detail: What `harness.trace.blocks` makes of a query or a transaction; None makes it
                of the operation.
        """
        operation = result.operation
        kind = operation.kind
        if detail is None and (kind is _QUERY or operation.parts):
            detail = detail_of(operation, result.bytes_sent)
        at_ms = int(result.sent_s * 1000)
        partition_key, row_key = operation.partition_key, operation.row_key
        row: Row = (
            at_ms,
            max(at_ms, int(result.done_s * 1000)),
            shape_of(result, client),
            None if partition_key is UNKNOWN else partition_key,
            None if row_key is UNKNOWN else row_key,
            result.entities,
            result.entities_returned,
            result.bytes_sent,
            result.bytes_received,
            detail,
        )
        if at_ms < self._newest_ms - LATE_MS:
            rows = self._late
        else:
            rows = self._rows
            if at_ms > self._newest_ms:
                self._newest_ms = at_ms
        rows.append(row)
        if len(rows) >= MOST_OPERATIONS:
            self._pack(rows)

    def drain(self, now_s: float, *, final: bool = False) -> list[bytes]:
        """The blocks that are complete, or have been kept for `KEPT_S`; all if it is ``final``."""
        if final or now_s >= self._since_s + KEPT_S:
            self._since_s = now_s
            for rows in (self._rows, self._late):
                if rows:
                    self._pack(rows)
        blocks, self._blocks = self._blocks, []
        return blocks

    def _pack(self, rows: list[Row]) -> None:
        rows.sort(key=_at)
        self._blocks.append(encode(rows))
        rows.clear()


def shape_of(result: Result, client: str) -> RowShape:
    operation = result.operation
    return (
        client,
        operation.kind._value_,
        operation.table,
        operation.label,
        result.outcome._value_,
        result.estimated,
        tuple([(made.status, made.error_code, made.scope._value_) for made in result.attempts]),
    )


def detail_of(
    operation: Operation,
    bytes_sent: int,
    *,
    sizes: Sequence[int] = (),
    continued_at: tuple[str, str] | None = None,
) -> list[Any] | None:
    """The detail of a query or a transaction, as `harness.trace.blocks` writes it.

    Args:
        operation: The operation.
        bytes_sent: Bytes of its request.
        sizes: Bytes of each part of a transaction; empty takes them to be equal.
        continued_at: Where a further page of a query begins.
    """
    parts = operation.parts
    if parts:
        return parts_detail(
            [part.kind._value_ for part in parts],
            [part.row_key for part in parts],
            sizes or [bytes_sent // len(parts)],
        )
    if operation.kind is not _QUERY:
        return None
    keys = operation.key_range
    query = TracedQuery(
        partition_from=keys.partition_from,
        partition_before=keys.partition_before,
        row_from=keys.row_from,
        row_before=keys.row_before,
        compared=compared_properties(operation.filter) if operation.filter else (),
        selected=operation.select,
        top=operation.top,
        continued_at=continued_at,
    )
    return query_detail(query)
