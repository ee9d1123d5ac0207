"""Operations: what the application wants done, before anything is sent."""

from __future__ import annotations

import dataclasses
import enum

from harness.model.entity import MAX_TRANSACTION_OPERATIONS, Properties


class Kind(enum.StrEnum):
    """What an operation does. The value is its name in profiles, metrics and reports."""

    POINT_QUERY = "point_query"
    QUERY = "query"
    INSERT = "insert"
    UPSERT_MERGE = "upsert_merge"
    UPSERT_REPLACE = "upsert_replace"
    UPDATE_MERGE = "update_merge"
    UPDATE_REPLACE = "update_replace"
    DELETE = "delete"
    TRANSACTION = "transaction"

    @property
    def reads(self) -> bool:
        """True for what the documented procedure calls GET; everything else is its PUT."""
        return self in _READS


_READS = frozenset((Kind.POINT_QUERY, Kind.QUERY))
PART_KINDS = frozenset(Kind) - _READS - {Kind.TRANSACTION}
"""What may stand inside an entity group transaction that writes."""


WHOLE_TABLE = "/"
"""In place of the PartitionKey of a query over the whole table. No key contains a slash."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One thing the application wants done. It leads to one or more attempts.

    Attributes:
        kind: What is done.
        partition_key: The partition it is counted for; `WHOLE_TABLE` for a query over all of them.
        row_key: The row; empty for a query and for a transaction.
        properties: What a write stores, keys not included.
        etag: For update and delete: act only if the entity still has this ETag; None is any.
        parts: The operations of a transaction, at most 100, one partition, each RowKey once.
        row_from: First RowKey of a query, included; None is the first of the partition.
        row_before: RowKey before which a query ends; None is the end of the partition.
        filter: OData filter on properties, added to the key range of a query.
        select: Properties to return; empty is all.
        top: At most so many entities of a query; None is all, following every page.
    """

    kind: Kind
    partition_key: str
    row_key: str = ""
    properties: Properties | None = None
    etag: str | None = None
    parts: tuple[Operation, ...] = ()
    row_from: str | None = None
    row_before: str | None = None
    filter: str | None = None
    select: tuple[str, ...] = ()
    top: int | None = None

    @property
    def entities_asked(self) -> int:
        """Entities this counts for if it succeeds; for a query, the least it can scan."""
        return len(self.parts) if self.kind is Kind.TRANSACTION else 1


def transaction_problem(parts: tuple[Operation, ...]) -> str | None:
    """Why these cannot be one entity group transaction, or None where they can."""
    if not 1 <= len(parts) <= MAX_TRANSACTION_OPERATIONS:
        return f"a transaction has 1 to {MAX_TRANSACTION_OPERATIONS} operations, not {len(parts)}"
    if any(part.kind not in PART_KINDS for part in parts):
        return "a transaction holds only single writes"
    if len({part.partition_key for part in parts}) > 1:
        return "a transaction stays in one partition"
    if len({part.row_key for part in parts}) < len(parts):
        return "a transaction names each RowKey once"
    return None


def transaction(parts: tuple[Operation, ...]) -> Operation:
    """The entity group transaction of ``parts``.

    Raises:
        ValueError: they cannot be one; the message says why.
    """
    problem = transaction_problem(parts)
    if problem is not None:
        raise ValueError(problem)
    return Operation(kind=Kind.TRANSACTION, partition_key=parts[0].partition_key, parts=parts)
