"""Parses responses: entities by partition, and the status of a failed part of a transaction."""

from __future__ import annotations

import collections
import gzip
import json
import re
import zlib
from collections.abc import Mapping
from urllib.parse import parse_qsl, quote

from harness.gateway.answers import GatewayAnswer
from harness.gateway.requests import Asked
from harness.model.operation import Kind
from harness.model.target import counted

_PART_STATUS = re.compile(rb"^HTTP/1\.1 (\d{3})", re.MULTILINE)
UNTOLD = ""
"""Replaces the PartitionKey of entities without one."""


def status_told(asked: Asked, answer: GatewayAnswer) -> int:
    """Return the status; for a transaction with a failed part, the status of that part."""
    if asked.kind is Kind.TRANSACTION and answer.status == 202:
        for match in _PART_STATUS.finditer(answer.body):
            if (status := int(match[1])) >= 300:
                return status
    return answer.status


def found_by_key(answer: GatewayAnswer) -> dict[str, int]:
    """Return the number of entities of a query page by PartitionKey, or `UNTOLD`."""
    return dict(collections.Counter(_keys(answer)))


def entities_of(asked: Asked, status: int, found: Mapping[str, int]) -> int:
    """Return the entity count of a request with its response.

    Args:
        asked: The request.
        status: The result of `status_told`.
        found: The result of `found_by_key` for a query.
    """
    if asked.kind is None:
        return 0
    return counted(
        asked.kind,
        asked.entities,
        succeeded=200 <= status < 300,
        missing=status == 404,
        scanned=sum(found.values()),
    )


def rows_before(answer: GatewayAnswer, border: str) -> int:
    """Return the number of entities before the key; 0 if an entity has no PartitionKey."""
    keys = _keys(answer)
    return 0 if UNTOLD in keys else sum(key < border for key in keys)


def with_top(target: str, rows: int) -> str:
    """Return the target of a query with ``$top``, which no signature covers."""
    path, _, query = target.partition("?")
    parameters = [
        (name, value) for name, value in parse_qsl(query, keep_blank_values=True) if name != "$top"
    ]
    encoded = "&".join(f"{quote(name, safe='$')}={quote(text)}" for name, text in parameters)
    return f"{path}?{encoded}&$top={rows}" if encoded else f"{path}?$top={rows}"


def _keys(answer: GatewayAnswer) -> list[str]:
    if answer.status != 200:
        return []
    body = answer.body
    try:
        if answer.headers.get("Content-Encoding", "") == "gzip":
            body = gzip.decompress(body)
        document = json.loads(body)
        return [str(row.get("PartitionKey", UNTOLD)) for row in document["value"]]
    except (ValueError, OSError, EOFError, zlib.error, KeyError, TypeError, AttributeError):
        return []
