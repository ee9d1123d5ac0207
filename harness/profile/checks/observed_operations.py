"""What operations that are alike have in common, and how writes follow one another."""

from __future__ import annotations

import dataclasses
import re

from harness.model.operation import Kind, Operation, over_partitions
from harness.workload.entity_factory import GROUP_PROPERTY, GROUPS, NUMBER_PROPERTY, wire_bytes

PAGE_ENTITIES = 1000
"""Most entities in one answer to a query. Source: "Query timeout and pagination"."""
_SIZED = 20
"""Operations of each name whose entities are measured in bytes; the others are like them."""
_BATCH = 10
"""So many new rows at a time are a batch, and not one thing in several rows."""
_TERM = re.compile(rf"(?P<name>{NUMBER_PROPERTY}|{GROUP_PROPERTY}) (?P<side>ge|lt) (?P<value>\d+)")


class Sent:
    """Operations of one name, as far as they are alike.

    Attributes:
        example: One of them.
        count: How many there were.
        entities: What they count for by the counting rule.
        requests: The fewest they take: further pages of queries included, retries not.
        walked: Entities in the key ranges of queries.
        matching: Entities of these that a filter lets through; None where it is not known.
        returned: The fewest entities that come back; of an unknown filter none.
        body_bytes: Mean of the entities in one of them, as JSON.
    """

    __slots__ = ("_body", "count", "entities", "example", "matching", "requests", "returned",
                 "walked")  # fmt: skip

    def __init__(self, example: Operation) -> None:
        self.example = example
        self.count = self.entities = self.requests = self.walked = self.returned = 0
        self.matching: int | None = 0
        self._body = 0

    def add(self, operation: Operation) -> None:
        """Count one."""
        if self.count < _SIZED:
            self._body += sum(
                wire_bytes(part.partition_key, part.row_key, part.properties)
                for part in operation.parts or (operation,)
                if part.properties is not None
            )
        self.count += 1
        self.entities += operation.entities_asked
        if operation.kind is not Kind.QUERY:
            self.requests += 1
            self.returned += operation.kind is Kind.POINT_QUERY
            return
        self.walked += operation.key_range.entities or 0
        matching = matching_of(operation)
        if matching is None or self.matching is None:
            self.matching = None
        else:
            self.matching += matching
        most = matching or 0
        returned = most if operation.top is None else min(most, operation.top)
        self.returned += returned
        self.requests += max(1, -(-returned // PAGE_ENTITIES))

    @property
    def kind(self) -> Kind:
        """What they do."""
        return self.example.kind

    @property
    def label(self) -> str:
        """Their name in reports."""
        return self.example.label

    @property
    def body_bytes(self) -> float:
        """See above."""
        return self._body / min(self.count, _SIZED) if self.count else 0.0

    @property
    def density(self) -> float | None:
        """Share of the walked entities that a filter lets through; None where it is not known."""
        return self.matching / self.walked if self.matching is not None and self.walked else None

    @property
    def of_many(self) -> bool:
        """Whether it is a query that walks more than one entity, or nobody knows how many."""
        return self.kind is Kind.QUERY and self.walked != self.count

    @property
    def bounded(self) -> bool:
        """Whether a query names a range of keys, and not all of them."""
        keys = self.example.key_range
        ends = (keys.row_from, keys.row_before, keys.partition_from, keys.partition_before)
        return any(end is not None for end in ends)

    @property
    def by_number(self) -> bool:
        """Whether a query asks by a property for a range that keys could have given."""
        return f"{NUMBER_PROPERTY} ge" in (self.example.filter or "")

    @property
    def over_partitions(self) -> bool:
        """Whether a query goes over several partitions."""
        return over_partitions(self.example.partition)


@dataclasses.dataclass(slots=True, kw_only=True)
class WritesSeen:
    """How writes follow one another.

    Attributes:
        singles: Writes of one entity.
        together: Of these, those that go to the partition of the single write before them.
        transactions: Entity group transactions.
        batch_inserts: Tables that get many new rows at a time.
        mixed_transactions: Tables in which transactions do something else than insert.
        read_first: Writes whose key was read right before them only to choose how to write.
    """

    singles: int = 0
    together: int = 0
    transactions: int = 0
    batch_inserts: set[str] = dataclasses.field(default_factory=set)
    mixed_transactions: set[str] = dataclasses.field(default_factory=set)
    read_first: int = 0
    _place: str | None = None
    _read: tuple[int, tuple[str, str]] | None = None

    def add(self, task: int, operation: Operation) -> None:
        """Count the next operation; ``task`` is the number of its task."""
        key = (operation.partition, operation.row_key)
        if operation.kind is Kind.TRANSACTION:
            self.transactions += 1
            inserts = sum(part.kind is Kind.INSERT for part in operation.parts)
            if inserts < len(operation.parts):
                self.mixed_transactions.add(operation.table)
            elif inserts >= _BATCH:
                self.batch_inserts.add(operation.table)
        elif not operation.kind.reads:
            self.singles += 1
            self.together += operation.partition == self._place
            self._place = operation.partition
            chosen = operation.kind is not Kind.DELETE and operation.etag is None
            self.read_first += chosen and (task, key) == self._read
        self._read = (task, key) if operation.kind is Kind.POINT_QUERY else None


def matching_of(query: Operation) -> int | None:
    """Entities of a query's key range that its filter lets through, where that is known."""
    entities = query.key_range.entities
    if entities is None:
        return None
    share, low, high = 1.0, 0, None
    for term in filter(None, (query.filter or "").split(" and ")):
        known = _TERM.fullmatch(term)
        if known is None:
            return None
        value = int(known["value"])
        if known["name"] == GROUP_PROPERTY:
            share = value / GROUPS
        elif known["side"] == "ge":
            low = value
        else:
            high = value
    wanted = entities if high is None else min(entities, high - low)
    return round(wanted * share)
