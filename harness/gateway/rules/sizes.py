"""Keys, entities and transactions that are too large for Azure Cosmos DB.

Source: "Azure Cosmos DB service quotas": a partition key has at most 2,048 bytes, or 101 in a
container without large partition keys, and an item at most 2 MB in JSON ("Per-item limits").
"Frequently asked questions about Azure Cosmos DB for Table": a RowKey has at most 255 bytes, and a
batch at most 2 MB. Assumed: the size of a transaction is that of its entities.
"""

from __future__ import annotations

from harness.gateway.limits import RequestUnitLimits
from harness.gateway.requests import Asked


def keys_too_long(asked: Asked, limits: RequestUnitLimits) -> bool:
    keys = [(asked.partition_key, asked.row_key), *(row[:2] for row in asked.rows)]
    return any(
        _over(partition_key, limits.partition_key_bytes) or _over(row_key, limits.row_key_bytes)
        for partition_key, row_key in keys
    )


def _over(key: str | None, most: int) -> bool:
    # No character takes more than four bytes.
    return key is not None and 4 * len(key) > most and len(key.encode("utf-8", "replace")) > most


def too_large(asked: Asked, limits: RequestUnitLimits) -> bool:
    """Whether a request writes too many bytes."""
    return sum([weight.size for weight in asked.weights]) > limits.request_bytes
