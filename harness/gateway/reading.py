"""What an answer tells: how many entities of which partition it brought, whether a part failed."""

from __future__ import annotations

import collections
import gzip
import json
import re
import zlib
from collections.abc import Mapping
from urllib.parse import parse_qsl, quote

from harness.gateway.answers import Answer
from harness.gateway.requests import Asked
from harness.model.counting import counted
from harness.model.operation import Kind

_PART_STATUS = re.compile(rb"^HTTP/1\.1 (\d{3})", re.MULTILINE)
UNTOLD = ""
"""In place of the PartitionKey of entities that came without one."""


def status_told(asked: Asked, answer: Answer) -> int:
    """The status that decides: of a transaction whose part failed, the part's."""
    if asked.kind is Kind.TRANSACTION and answer.status == 202:
        for match in _PART_STATUS.finditer(answer.body):
            if (status := int(match[1])) >= 300:
                return status
    return answer.status


def found_by_key(answer: Answer) -> dict[str, int]:
    """Entities of a query's page by PartitionKey; those without one are under `UNTOLD`."""
    return dict(collections.Counter(_keys(answer)))


def entities_of(asked: Asked, status: int, found: Mapping[str, int]) -> int:
    """What a request counts for, by its answer.

    Args:
        asked: The request.
        status: As of `status_told`.
        found: As of `found_by_key`, for a query.
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


def rows_before(answer: Answer, border: str) -> int:
    """How many entities of a page come before the key, where each of them has one; else 0."""
    keys = _keys(answer)
    return 0 if UNTOLD in keys else sum(key < border for key in keys)


def with_top(target: str, rows: int) -> str:
    """The target of a query, asking for so many rows. No signature covers the query's options."""
    path, _, query = target.partition("?")
    parameters = [
        (name, value) for name, value in parse_qsl(query, keep_blank_values=True) if name != "$top"
    ]
    encoded = "&".join(f"{quote(name, safe='$')}={quote(text)}" for name, text in parameters)
    return f"{path}?{encoded}&$top={rows}" if encoded else f"{path}?$top={rows}"


def _keys(answer: Answer) -> list[str]:
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
