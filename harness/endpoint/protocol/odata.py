"""The OData side of the protocol, the same for all sessions: addresses, filters, verbs, headers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote

from harness.model.operation import WHOLE_TABLE, Kind, Operation

MAX_PAGE_ENTITIES = 1000
"""The service returns at most this many entities in one page."""

JSON = "application/json"
JSON_MINIMAL = "application/json;odata=minimalmetadata"
JSON_PLAIN = "application/json;odata=nometadata"

VERSION = "2019-02-02"
VERSION_HEADERS = {"x-ms-version": VERSION, "DataServiceVersion": "3.0"}

Token = Mapping[str, str]
"""Where the next page of a query begins: the continuation token of a response."""

_MERGES = frozenset((Kind.UPSERT_MERGE, Kind.UPDATE_MERGE))
_CONDITIONAL = frozenset((Kind.UPDATE_MERGE, Kind.UPDATE_REPLACE, Kind.DELETE))
_needs_no_encoding = re.compile(r"[A-Za-z0-9_.~-]*").fullmatch


def row_address(table: str, partition_key: str, row_key: str) -> str:
    """The address of one entity: ``table`` (a path or URL) with the key behind it."""
    # Most keys are plain, and one match over both keys costs half of two.
    if not _needs_no_encoding(partition_key + row_key):
        partition_key, row_key = _in_address(partition_key), _in_address(row_key)
    return f"{table}(PartitionKey='{partition_key}',RowKey='{row_key}')"


def write_request(kind: Kind, etag: str | None, *, cosmos: bool) -> tuple[str, dict[str, str]]:
    """Verb and headers of a single write, without the headers that describe its body.

    Without an ETag, or with ``*``, it matches any stored version. Cosmos DB accepts no PATCH.
    """
    condition = {"If-Match": _if_match(etag)} if kind in _CONDITIONAL else {}
    if kind is Kind.INSERT:
        return "POST", {"Prefer": "return-no-content", "Accept": JSON_MINIMAL}
    if kind is Kind.DELETE:
        return "DELETE", {"Accept": JSON_MINIMAL, **condition}
    if kind in _MERGES:
        if cosmos:
            return "POST", {"Accept": JSON, **condition, "X-HTTP-Method": "MERGE"}
        return "PATCH", {"Accept": JSON, **condition}
    return "PUT", {"Accept": JSON, **condition}


def filter_of(query: Operation) -> str:
    """The OData filter of a query; empty for the whole table."""
    terms = []
    if query.partition_key != WHOLE_TABLE:
        terms.append(f"PartitionKey eq {_literal(query.partition_key)}")
    keys = query.key_range
    for name, comparison, key in (
        ("PartitionKey", "ge", keys.partition_from),
        ("PartitionKey", "lt", keys.partition_before),
        ("RowKey", "ge", keys.row_from),
        ("RowKey", "lt", keys.row_before),
    ):
        if key is not None:
            terms.append(f"{name} {comparison} {_literal(key)}")
    if query.filter:
        terms.append(f"({query.filter})" if terms else query.filter)
    return " and ".join(terms)


def page_size(query: Operation, found: int) -> int | None:
    """Entities to ask for after ``found`` ones; None asks for as many as the service gives."""
    return None if query.top is None else min(query.top - found, MAX_PAGE_ENTITIES)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _in_address(key: str) -> str:
    return quote(key.replace("'", "''"), safe="")


def _if_match(etag: str | None) -> str:
    """An ETag for the header: in quotation marks, unless it has some or stands for any."""
    if etag in (None, "", "*"):
        return "*"
    quoted = any(etag.startswith(mark) and etag.endswith(mark) for mark in ('"', "'"))
    return etag if quoted or etag.startswith("W/") else f'"{etag}"'
