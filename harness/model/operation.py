"""Operations: what the application wants done, before anything is sent."""

from __future__ import annotations

import dataclasses
import enum
from typing import TYPE_CHECKING, Protocol

from harness.model.entity import MAX_TRANSACTION_OPERATIONS, Properties
from harness.model.lean import lean

if TYPE_CHECKING:
    from harness.model.outcome import Result


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
_QUERY = Kind.QUERY
"""Looked up once: to ask an enumeration for a member, or a member for its value, takes several
times as long as a plain name, and a run does so for every operation."""
PART_KINDS = frozenset(Kind) - _READS - {Kind.TRANSACTION}
"""What may stand inside an entity group transaction that writes."""


WHOLE_TABLE = "/"
"""In place of the PartitionKey of a query over several partitions. No key contains a slash."""


def over_partitions(partition: str) -> bool:
    """Whether a partition's name, as `Operation.partition` gives it, stands for several."""
    return partition == WHOLE_TABLE or partition.endswith("/" + WHOLE_TABLE)


@dataclasses.dataclass(frozen=True, slots=True)
class Range:
    """What the run knows of the key range that a query walks.

    Attributes:
        entities: Entities in it, filter and ``top`` aside.
        exact: False where somebody may be writing rows into it or out of it meanwhile.
    """

    entities: int
    exact: bool


class Follow(Protocol):
    """What an application does next, once it knows what became of an operation."""

    def __call__(self, result: Result, /) -> Operation | None:
        """The next operation of the same task; None where there is none."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One thing the application wants done. It leads to one or more attempts.

    Attributes:
        kind: What is done.
        partition_key: Where; `WHOLE_TABLE` for a query over several partitions.
        row_key: The row; empty for a query and for a transaction.
        table: Ending of the table's name, where a workload has several; empty is the first one.
        name: What the application calls it; empty is named by what it does.
        properties: What a write stores, keys not included.
        etag: For update and delete: act only if the entity still has this ETag; None is any.
        parts: The operations of a transaction, at most 100, one partition, each RowKey once.
        partition_from: First PartitionKey of a query over several, included.
        partition_before: PartitionKey before which such a query ends.
        row_from: First RowKey of a query, included; None is the first of the partition.
        row_before: RowKey before which a query ends; None is the end of the partition.
        filter: OData filter on properties, added to the key range of a query.
        select: Properties to return; empty is all.
        top: At most so many entities of a query; None is all, following every page.
        walks: What is known of the key range of a query; None is nothing.
        then: What follows in the same task; None is nothing.
    """

    kind: Kind
    partition_key: str
    row_key: str = ""
    table: str = ""
    name: str = ""
    properties: Properties | None = None
    etag: str | None = None
    parts: tuple[Operation, ...] = ()
    partition_from: str | None = None
    partition_before: str | None = None
    row_from: str | None = None
    row_before: str | None = None
    filter: str | None = None
    select: tuple[str, ...] = ()
    top: int | None = None
    walks: Range | None = None
    then: Follow | None = dataclasses.field(default=None, compare=False, repr=False)

    @property
    def entities_asked(self) -> int:
        """Entities this counts for if it succeeds; for a query, as far as it is known before."""
        if self.walks is None:
            # Nothing but a transaction has parts.
            return len(self.parts) or 1
        walked = self.walks.entities
        return max(1, walked if self.top is None or self.filter else min(walked, self.top))

    @property
    def partition(self) -> str:
        """Name of the partition it is counted for: its PartitionKey, and its table if several."""
        return f"{self.table}/{self.partition_key}" if self.table else self.partition_key

    @property
    def label(self) -> str:
        """Its name in metrics and reports; a query without one is named by its documented type."""
        if self.name:
            return self.name
        if self.kind is not _QUERY:
            return self.kind._value_
        if self.partition_key != WHOLE_TABLE:
            whole = self.row_from is None and self.row_before is None
            return "partition_scan" if whole else "row_range_scan"
        whole = self.partition_from is None and self.partition_before is None
        return "full_table_scan" if whole else "partition_range_scan"


new_operation = lean(Operation)
"""Makes an `Operation`, for those who make one after the other."""


def require_text(operation: Operation) -> None:
    """See to it that the keys and names of ``operation`` can be counted.

    Raises:
        AttributeError: one is no text.
        TypeError: one is no text.
        UnicodeEncodeError: one holds half a surrogate pair, which is no text either.
    """
    # One look at all of them, because it is done for every operation.
    text = operation.partition_key + operation.row_key + operation.table + operation.name
    if not text.isascii():
        text.encode()


def transaction_problem(parts: tuple[Operation, ...]) -> str | None:
    """Why these cannot be one entity group transaction, or None where they can."""
    if not 1 <= len(parts) <= MAX_TRANSACTION_OPERATIONS:
        return f"a transaction has 1 to {MAX_TRANSACTION_OPERATIONS} operations, not {len(parts)}"
    if any(part.kind not in PART_KINDS for part in parts):
        return "a transaction holds only single writes"
    if len({part.partition for part in parts}) > 1:
        return "a transaction stays in one partition of one table"
    if len({part.row_key for part in parts}) < len(parts):
        return "a transaction names each RowKey once"
    return None


def transaction(
    parts: tuple[Operation, ...], *, name: str = "", then: Follow | None = None
) -> Operation:
    """The entity group transaction of ``parts``.

    Args:
        parts: What it holds.
        name: What the application calls it.
        then: What follows in the same task.

    Raises:
        ValueError: they cannot be one; the message says why.
    """
    problem = transaction_problem(parts)
    if problem is not None:
        raise ValueError(problem)
    return new_operation(
        kind=Kind.TRANSACTION,
        partition_key=parts[0].partition_key,
        table=parts[0].table,
        name=name,
        parts=parts,
        then=then,
    )
