"""What a request to Azure Cosmos DB costs in request units (RU), in hundredths of one.

Sources: (1) Microsoft, "Understand request units consumption in Azure Cosmos DB" (2026): charges by
size, and how they add up; Microsoft calls the figures illustrative. (2) Microsoft, "Troubleshoot
query issues when using Azure Cosmos DB": the charges of two queries. What no document says is
marked as assumed. Charges hold for session and eventual consistency and for one region.

Hundredths are integers, so that sums are exact in any order. The service states two digits.
"""

from __future__ import annotations

import bisect
import decimal
from collections.abc import Sequence
from typing import Final

from harness.model.entity import MAX_PAGE_ENTITIES
from harness.model.operation import Kind

RU: Final = 100
"""One request unit, in hundredths."""
HUNDREDTHS = "request_units_hundredths"
"""Name of the request units of a row in JSON; integers, so that sums are exact."""

_KB: Final = 1024
_Charges = Sequence[tuple[int, int]]

READ_CHARGES: Final[_Charges] = (
    (1, 100),
    (2, 104),
    (4, 114),
    (8, 133),
    (16, 167),
    (32, 219),
    (64, 476),
    (128, 995),
    (256, 2028),
    (512, 4095),
    (1024, 14590),
    (2048, 29180),
)
"""KB, and the charge for reading one entity of this size by its keys. Published (1). Assumed:
charges between two sizes are in proportion, and smaller entities cost as much as 1 KB."""

WRITE_CHARGES: Final[_Charges] = (
    (1, 495),
    (2, 629),
    (4, 667),
    (8, 704),
    (16, 952),
    (32, 1123),
    (64, 2267),
    (128, 4819),
    (256, 9829),
    (512, 18457),
    (1024, 62500),
    (2048, 125000),
)
"""The same for storing or removing one entity, without its index. Published (1)."""

INDEX_TERM: Final = 20
"""For each indexed property of an entity that is stored or removed. Published (1). All properties
are indexed by default ("Frequently asked questions about Azure Cosmos DB for Table"). Assumed: a
property has one term, and the keys have none."""

QUERY_PAGE: Final = 172
"""For a page of a query, in each physical partition that it asks. Published (2): a query with an
index that returns one entity of 6.5 KB costs 2.98 RU; reading the entity is 1.26 RU of these."""

SCANNED_ENTITY: Final = 7
"""For an entity that a query scans and does not return. Published (2): 4,059.95 RU for a query that
loads 60,951 entities and returns 7. Assumed: its size does not matter."""

MISSING: Final = 100
"""For a request about an entity that does not exist, exists already or has another ETag (404, 409,
412). Assumed: what reading 1 KB costs."""

UNKNOWN_BYTES: Final = _KB
"""Assumed size of an entity that a request deletes: the request does not tell it."""


def charge(
    kind: Kind,
    size_bytes: int,
    *,
    properties: int = 0,
    replaces: bool = False,
    scanned: int = 0,
    returned: int = 0,
    physical: int = 1,
) -> int:
    """The charge of a request that succeeds, in hundredths of an RU.

    An update removes the old entity and stores the new one, so it costs twice as much as an insert
    (published (1)). Assumed: the old entity is as large as the new one, and every property changes;
    a merge costs as much as a replacement of what it sends. Returned entities cost what reading
    them by their keys costs (published (1) of feeds; assumed of queries).

    Args:
        kind: Kind of a request. A transaction is charged for each of its parts: add them up.
        size_bytes: Bytes of the entity in JSON, of a query those of all returned entities.
        properties: Properties of a written entity, without the keys.
        replaces: Whether an upsert finds an entity.
        scanned: Entities that a query scans, those that it returns included.
        physical: Physical partitions that a query asks.

    Raises:
        ValueError: the kind is a transaction.
    """
    if kind is Kind.TRANSACTION:
        raise ValueError("a transaction is charged for each of its parts")
    if kind is Kind.POINT_QUERY:
        return _by_size(READ_CHARGES, size_bytes)
    if kind is Kind.QUERY:
        read = returned * _by_size(READ_CHARGES, size_bytes // returned) if returned else 0
        return physical * QUERY_PAGE + read + max(0, scanned - returned) * SCANNED_ENTITY
    once = _by_size(WRITE_CHARGES, size_bytes) + properties * INDEX_TERM
    return once * (2 if kind.updates or (replaces and kind.upserts) else 1)


def copy_charge(size_bytes: int, properties: int) -> int:
    """The charge of copying an entity to another table: read in a full page, and inserted."""
    page = MAX_PAGE_ENTITIES
    read = charge(Kind.QUERY, page * size_bytes, scanned=page, returned=page) // page
    return read + charge(Kind.INSERT, size_bytes, properties=properties)


def hundredths(text: str) -> int | None:
    """The charge that the header ``x-ms-request-charge`` states; None where it is no number."""
    try:
        value = decimal.Decimal(text.strip())
    except decimal.InvalidOperation:
        return None
    if not value.is_finite() or not 0 <= value < 10**9:
        return None
    return int((value * RU).to_integral_value(decimal.ROUND_HALF_UP))


def charge_text(charged: int) -> str:
    """A charge as the header ``x-ms-request-charge`` states it: ``4.95``, or ``1``."""
    whole, part = divmod(charged, RU)
    return f"{whole}.{part:02}".rstrip("0") if part else str(whole)


def _by_size(charges: _Charges, size_bytes: int) -> int:
    """The charge for a size, in proportion between the sizes of the table and above them."""
    at = bisect.bisect_left(charges, (size_bytes / _KB, 0))
    if at == 0:
        return charges[0][1]
    (low, low_charge), (high, high_charge) = charges[min(at, len(charges) - 1) - 1 :][:2]
    span = (high - low) * _KB
    more = (size_bytes - low * _KB) * (high_charge - low_charge)
    return low_charge + (2 * more + span) // (2 * span)
