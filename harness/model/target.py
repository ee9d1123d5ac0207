"""The published targets, the endpoints they hold for, and the rule by which they count entities.

"Each entity that is inserted, updated, deleted, or scanned counts" (performance checklist,
"Entities per second (storage account)"): a transaction of 100 counts 100, a query that scans
1,000 and returns 5 counts 1,000, a point query counts 1 whether or not it found its entity.

For queues the document says only "messages per second". Each message that is put, returned by a get
or a peek, updated or deleted counts 1; a get that returns none counts 0.
"""

from __future__ import annotations

import dataclasses
import math

from harness.model.operation import Kind, Operation
from harness.model.outcome import Outcome
from harness.model.physical_partitions import (
    MAX_PARTITION_RU_PER_S,
    MAX_PHYSICAL_PARTITION_BYTES,
    share_ru_per_s,
)

TARGET_ENTITY_BYTES = 1024
"""The targets are published for entities of 1 KB."""


def indicative(entity_bytes: int) -> bool:
    """Whether targets are only indicative, because entities do not have their size of 1 KiB.

    A size of 0 is unknown.
    """
    return entity_bytes > 0 and not 0.9 <= entity_bytes / TARGET_ENTITY_BYTES <= 1.1


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """What was provisioned at Cosmos DB for the tables of a run, and so what a partition may use.

    Attributes:
        ru_per_s: Provisioned request units a second; None if unknown.
        physical_partitions: Their number; None if unknown. Cosmos DB does not tell it to a client.
        stored_bytes: What the tables store, as JSON; 0 if unknown.
    """

    ru_per_s: float | None = None
    physical_partitions: int | None = None
    stored_bytes: int = 0

    @property
    def fewest_partitions(self) -> int:
        """The smallest number of physical partitions for the throughput and for what is stored."""
        return max(self.serving_partitions, self.storing_partitions)

    @property
    def serving_partitions(self) -> int:
        """The known number, or the smallest that can have the throughput: 10,000 RU/s each."""
        if self.physical_partitions is not None:
            return self.physical_partitions
        return max(1, math.ceil((self.ru_per_s or 0.0) / MAX_PARTITION_RU_PER_S))

    @property
    def storing_partitions(self) -> int:
        """The smallest number that can store it: 50 GB each."""
        return max(1, math.ceil(self.stored_bytes / MAX_PHYSICAL_PARTITION_BYTES))

    @property
    def partition_ru_per_s(self) -> float:
        """RU/s that a physical partition, and so one PartitionKey, can have at most.

        "Throughput provisioned for a container is divided evenly among physical partitions"
        (partitioning in Azure Cosmos DB, "Physical partitions"): 18,000 RU/s over three are 6,000
        each. With an unknown number of partitions it is an upper bound.
        """
        if self.ru_per_s is None:
            return float(MAX_PARTITION_RU_PER_S)
        return float(share_ru_per_s(self.ru_per_s, self.fewest_partitions))


UNKNOWN_THROUGHPUT = Throughput()


_QUERY = Kind.QUERY
_NOT_FOUND = Outcome.NOT_FOUND


def entity_count(operation: Operation, outcome: Outcome, scanned: int = 0) -> int:
    """The entity count of an operation; ``scanned`` counts even where a later page failed.

    Of messages ``scanned`` are those that a get or a peek returned.
    """
    return counted(
        operation.kind,
        operation.entities_asked,
        succeeded=outcome.succeeded,
        missing=outcome is _NOT_FOUND,
        scanned=scanned,
    )


def counted(
    kind: Kind, asked: int, *, succeeded: bool, missing: bool = False, scanned: int = 0
) -> int:
    """The entity count of an operation, or of a request of any client.

    ``asked`` is its entity count if it succeeds; ``missing``, that no entity has the key.
    """
    if kind.receives or kind is _QUERY:
        return scanned
    # Also a point query that finds no entity has looked for it.
    return asked if succeeded or (missing and kind.reads) else 0


def entities_scanned(operation: Operation, returned: int, *, whole: bool) -> tuple[int, bool]:
    """Entities that a query scanned, and whether the number is an estimate.

    A client sees only what is returned. The number is exact for a key range that this run loaded
    and nobody writes to, if the query was read to its end (``whole``); else it is a lower bound.
    """
    present = operation.key_range.entities
    if present is None:
        return returned, True
    exact = operation.key_range.exact and whole and returned <= present
    cut = operation.top is not None and returned >= operation.top
    if not operation.filter:
        # All that was scanned was returned. Fewer than present need a reason.
        return returned, not (exact and (cut or returned == present))
    if cut or not whole:
        # Where in the range the query stopped is not visible.
        return max(operation.key_range.scanned or 0, returned), True
    return max(present, returned), not exact
