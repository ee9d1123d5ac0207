"""How many entities a request counts for, and how many of these by partition.

Source: performance checklist, "Entities per second (storage account)" and "Query density": each
entity that is inserted, updated, deleted or scanned counts, whether or not a query returns it. A
refused request does not count. A message that is put, got, peeked at, updated or deleted counts as
an entity (data partitioning strategies, "Partitioning Azure storage queues": messages a second). A
request about a blob counts 1 under the same rule, for its partition alone.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Mapping

from harness.gateway.contents import Contents
from harness.gateway.key_ranges import IndexRange, after
from harness.gateway.reading import Answered
from harness.gateway.requests import Asked
from harness.model.operation import Kind
from harness.model.outcome import Outcome, outcome_of
from harness.model.target import counted

# Looked up once: access to a member of an enumeration takes several times as long as a plain name.
_POINT_QUERY, _NOT_FOUND = Kind.POINT_QUERY, Outcome.NOT_FOUND


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """The entities of one request.

    Attributes:
        entities: Entity count by the rule of the targets: written or scanned entities.
        returned: Entities in the answer.
        estimated: ``entities`` if scanned keys may be unknown, or messages were not counted but are
            the most that were asked for; else 0.
        charged: Request units in hundredths, where the limits are in request units.
    """

    entities: int = 0
    returned: int = 0
    estimated: int = 0
    charged: int = 0


NO_ENTITIES = Count()
_ONE = Count(entities=1)
_ONE_RETURNED = Count(entities=1, returned=1)


def count_of(asked: Asked, answered: Answered) -> Count:
    """Return the count of a request that is not a query."""
    if asked.kind is None:
        return NO_ENTITIES
    done = answered.succeeded
    missing = not done and outcome_of(answered.status, answered.error_code) is _NOT_FOUND
    entities = counted(asked.kind, asked.entities, succeeded=done, missing=missing)
    if entities == 1:
        return _ONE_RETURNED if asked.kind is _POINT_QUERY and done else _ONE
    return Count(entities=entities)


def received_count(asked: Asked, answered: Answered) -> tuple[Count, Mapping[str | None, int]]:
    """Return the count of a request that gets messages, and the messages by queue."""
    messages = answered.returned
    estimated = 0 if answered.certain else messages
    return Count(entities=messages, returned=messages, estimated=estimated), answered.found


def query_count(
    asked: Asked, answered: Answered, contents: Contents
) -> tuple[Count, Mapping[str | None, int]]:
    """Return the count of a page of a query, and the scanned entities by PartitionKey.

    The scan of a page begins at the start of the query or of its continuation, and ends where the
    next page begins. None stands for an unknown partition.
    """
    if answered.status != 200:
        return NO_ENTITIES, {}
    found: collections.Counter[str | None] = collections.Counter()
    for key, count in answered.found.items():
        found[asked.partition_key if key is None else key] += count
    keys, certain = _scanned_keys(asked, answered)
    scan = contents.scan(asked.table, keys)
    certain = certain and scan.certain
    by_partition: dict[str | None, int] = {}
    by_partition.update(scan.by_partition)
    unplaced = found.pop(None, 0)
    for key, count in found.items():
        if count > by_partition.get(key, 0):
            by_partition[key] = count
            certain = False
    entities, returned = sum(by_partition.values()), answered.returned
    if unplaced and returned > entities:
        by_partition[None] = returned - entities
        entities, certain = returned, False
    estimated = 0 if certain else entities
    return Count(entities=entities, returned=returned, estimated=estimated), by_partition


def _scanned_keys(asked: Asked, answered: Answered) -> tuple[IndexRange, bool]:
    """Return the range that the page scanned, and whether its end is known."""
    assert asked.keys is not None
    if answered.next_key is not None:
        return asked.keys.within(end=answered.next_key), True
    if asked.top is None or answered.returned < asked.top:
        return asked.keys, True
    # The page is full: the scan ended at its last entity.
    if answered.last is None:
        return asked.keys.within(end=asked.keys.first), False
    return asked.keys.within(end=(answered.last[0], after(answered.last[1]))), True
