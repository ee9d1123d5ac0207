"""Was a transaction applied whose answer was lost? What is stored now decides.

A transaction is all or nothing, so one part that can be decided decides for all.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Mapping
from typing import Any

from harness.model.entity import Int64
from harness.model.operation import Kind, Operation

# A row that must not have been there before says most, a row that anybody may write says least.
_STRENGTH = {
    Kind.INSERT: 0,
    Kind.UPDATE_REPLACE: 1,
    Kind.UPDATE_MERGE: 1,
    Kind.UPSERT_REPLACE: 2,
    Kind.UPSERT_MERGE: 2,
    Kind.DELETE: 3,
}


def in_order_of_evidence(parts: Iterable[Operation]) -> list[Operation]:
    """The parts of a transaction, those first whose rows can decide best."""
    return sorted(parts, key=lambda part: _STRENGTH[part.kind])


def applied(part: Operation, stored: Mapping[str, Any] | None) -> bool | None:
    """Whether ``part`` was done, judged by the row as it is stored now.

    Args:
        part: One part of the transaction.
        stored: The row as read; None where there is none.

    Returns:
        None where the row cannot tell: an upsert may have been overwritten since.
    """
    if part.kind is Kind.DELETE:
        return stored is None
    if stored is None:
        return False
    wanted = part.properties or {}
    if all(name in stored and _same(value, stored[name]) for name, value in wanted.items()):
        return True
    return None if part.kind in (Kind.UPSERT_MERGE, Kind.UPSERT_REPLACE) else False


def _same(sent: object, read: object) -> bool:
    if isinstance(sent, float) and isinstance(read, float) and math.isnan(sent):
        return math.isnan(read)
    if isinstance(sent, dt.datetime) and isinstance(read, dt.datetime) and sent.tzinfo is None:
        return sent.replace(tzinfo=dt.UTC) == read
    kinds_differ = isinstance(sent, bool) != isinstance(read, bool)
    kinds_differ |= isinstance(sent, Int64) != isinstance(read, Int64)
    return not kinds_differ and sent == read
