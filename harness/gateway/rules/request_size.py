"""Entities and transactions that are too large for Azure Cosmos DB.

Source: "Frequently asked questions about Azure Cosmos DB for Table": a batch has at most 2 MB.
"Azure Cosmos DB service quotas", "Per-item limits": an item has at most 2 MB in JSON. Assumed: the
size of a transaction is that of its entities.
"""

from __future__ import annotations

from harness.gateway.limits import RequestUnitLimits
from harness.gateway.requests import Asked


def too_large(asked: Asked, limits: RequestUnitLimits) -> bool:
    """Whether a request writes too many bytes."""
    return sum([weight.size for weight in asked.weights]) > limits.request_bytes
