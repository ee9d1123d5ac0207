"""How large the entities in a request are: bytes of their JSON, and properties besides the keys."""

from __future__ import annotations

import json

from harness.gateway.requests import Asked, Weight
from harness.gateway.transactions import batch_parts
from harness.model.operation import Kind

_KEYS = ("PartitionKey", "RowKey")


def weights_in(asked: Asked, body: bytes) -> tuple[Weight, ...]:
    """Return the weight of each entity that a request writes, in the order of ``asked.rows``."""
    if asked.kind is Kind.TRANSACTION:
        return tuple([_weight(part.body) for part in batch_parts(body) if part.method != "GET"])
    return (_weight(body),) if asked.writes else ()


def _weight(body: bytes) -> Weight:
    body = body.strip()
    try:
        names = tuple(json.loads(body)) if body.startswith(b"{") else ()
    except (ValueError, RecursionError):
        names = ()
    # Annotations are the names of types, such as ``Total@odata.type``, and ``odata.etag``.
    own = [name for name in names if "@" not in name and not name.startswith("odata.")]
    return Weight(len(body), sum(name not in _KEYS for name in own))
