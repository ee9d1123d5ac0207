"""Read-back: whether a write whose response was lost was applied, judged by what is stored now.

A transaction is all or nothing, so one part that can be decided decides for all.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Mapping
from typing import Any

from harness.model.entity import ETAG, Int64
from harness.model.operation import Kind, Operation

# How much a stored row proves: a row that an insert created most, a row that may be deleted least.
_STRENGTH = {
    Kind.INSERT: 0,
    Kind.UPDATE_REPLACE: 1,
    Kind.UPDATE_MERGE: 1,
    Kind.UPSERT_REPLACE: 2,
    Kind.UPSERT_MERGE: 2,
    Kind.DELETE: 3,
}


def in_order_of_evidence(parts: Iterable[Operation]) -> list[Operation]:
    """The parts of a transaction, the ones whose rows prove most first."""
    return sorted(parts, key=lambda part: _STRENGTH[part.kind])


def applied(part: Operation, stored: Mapping[str, Any] | None, *, alone: bool) -> bool | None:
    """Whether ``part`` was applied, judged by the row as it is stored now.

    A row with all the written values was written by ``part``. An inserted row has the values of
    its insert, or belongs to another writer. A row that others may change can have been changed
    again since. A row that is gone does not show who deleted it.

    Args:
        part: A write, or one part of a transaction.
        stored: The row as read; None where there is none.
        alone: True for a single write, False for a part of a transaction. The retry of a single
            write already showed whether the row existed, so only another writer explains a change
            since. In a transaction one part was refused, and the rows of all others are unchanged.

    Returns:
        None where the row does not prove either.
    """
    if part.kind is Kind.DELETE:
        return None if stored is None or alone else False
    if stored is None:
        return None if alone else False
    wanted = part.properties or {}
    if part.etag not in (None, "*") and stored.get(ETAG) == part.etag:
        return False
    if wanted and all(name in stored and _same(wanted[name], stored[name]) for name in wanted):
        return True
    return False if wanted and part.kind is Kind.INSERT else None


def _same(sent: object, read: object) -> bool:
    if isinstance(sent, float) and isinstance(read, float) and math.isnan(sent):
        return math.isnan(read)
    if isinstance(sent, dt.datetime) and isinstance(read, dt.datetime) and sent.tzinfo is None:
        return sent.replace(tzinfo=dt.UTC) == read
    kinds_differ = isinstance(sent, bool) != isinstance(read, bool)
    kinds_differ |= isinstance(sent, Int64) != isinstance(read, Int64)
    return not kinds_differ and sent == read
