"""What a request is charged in request units, and which physical partitions pay for it.

Source: `harness.model.request_units`, which says what is published and what is assumed. Assumed: a
query without one PartitionKey asks every physical partition for each of its pages; a refused write
costs as much as a look at the entity; requests about tables cost nothing of a table's throughput.
"""

from __future__ import annotations

import collections
from collections.abc import Mapping

from harness.gateway.contents import Contents
from harness.gateway.reading import Answered
from harness.gateway.requests import Asked
from harness.model.operation import Kind
from harness.model.outcome import outcome_of
from harness.model.physical_partitions import PhysicalPartitions
from harness.model.request_units import MISSING, QUERY_PAGE, RU, UNKNOWN_BYTES, charge

# Looked up once: access to a member of an enumeration takes several times as long as a plain name.
_POINT_QUERY, _QUERY, _TRANSACTION = Kind.POINT_QUERY, Kind.QUERY, Kind.TRANSACTION
_DELETE = Kind.DELETE

Charges = Mapping[int, int]
"""Hundredths of an RU by the number of the physical partition."""


def asked_of(asked: Asked, partitions: PhysicalPartitions) -> Charges:
    """What a request takes before its answer is known: the least that it can cost."""
    if asked.kind is None:
        return {}
    if asked.kind is _QUERY:
        return dict.fromkeys(_asked_partitions(asked, partitions), QUERY_PAGE)
    if asked.writes:
        return _written(asked, partitions, None)
    return {partitions.of(asked.partition_key or ""): RU}


def charged_for(
    asked: Asked,
    answered: Answered,
    scanned: Mapping[str | None, int],
    contents: Contents,
    partitions: PhysicalPartitions,
) -> Charges:
    """The charge of a request that was answered.

    ``scanned`` is what a page of a query scanned, ``contents`` the rows before the request.
    """
    kind = asked.kind
    if kind is None:
        return {}
    if not answered.succeeded:
        if not outcome_of(answered.status, answered.error_code).regular:
            return {}
        return {partitions.of(asked.partition_key or ""): MISSING}
    if kind is _POINT_QUERY:
        return {partitions.of(asked.partition_key or ""): charge(kind, answered.body_bytes)}
    if kind is _QUERY:
        return _queried(asked, answered, scanned, partitions)
    return _written(asked, partitions, contents)


def _asked_partitions(asked: Asked, partitions: PhysicalPartitions) -> tuple[int, ...]:
    if asked.partition_key is not None:
        return (partitions.of(asked.partition_key),)
    return partitions.numbers


def _queried(
    asked: Asked,
    answered: Answered,
    scanned: Mapping[str | None, int],
    partitions: PhysicalPartitions,
) -> Charges:
    returned = answered.returned
    each = answered.body_bytes // returned if returned else 0
    scanned_by: collections.Counter[int] = collections.Counter()
    found_by: collections.Counter[int] = collections.Counter()
    for counts, by in ((scanned, scanned_by), (answered.found, found_by)):
        for key, count in counts.items():
            by[partitions.of(asked.partition_key or "" if key is None else key)] += count
    numbers = {*_asked_partitions(asked, partitions), *scanned_by, *found_by}
    return {
        number: charge(
            _QUERY,
            each * found_by[number],
            scanned=scanned_by[number],
            returned=found_by[number],
        )
        for number in numbers
    }


def _written(asked: Asked, partitions: PhysicalPartitions, contents: Contents | None) -> Charges:
    """The charge of a write; without ``contents`` no entity is there to be replaced."""
    kinds = asked.kinds if asked.kind is _TRANSACTION else (asked.kind,)
    by: collections.Counter[int] = collections.Counter()
    for kind, row, weight in zip(kinds, asked.rows, asked.weights, strict=False):
        assert kind is not None
        there = contents is not None and contents.holds(asked.table, row)
        by[partitions.of(row.partition_key or "")] += charge(
            kind,
            UNKNOWN_BYTES if kind is _DELETE else weight.size,
            properties=weight.properties,
            replaces=there,
        )
    return by
