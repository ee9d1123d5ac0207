"""Parses requests as far as the limits need it: kind, keys and entity count.

Keys are in the path of a request about one entity, in the JSON body of an insert, in the parts of
a ``$batch``, and in the ``$filter`` of a query. An unreadable request is not an error here; the
endpoint responds to it.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from urllib.parse import parse_qs, unquote

from harness.gateway.filters import PartitionRange, key_range
from harness.model.operation import Kind

_ENTITY_PATH = re.compile(r"([A-Za-z][A-Za-z0-9]{2,62})\((.*)\)", re.DOTALL)
_TABLE_PATH = re.compile(r"[A-Za-z][A-Za-z0-9]{2,62}")
_PARTITION = re.compile(r"PartitionKey\s*=\s*'((?:[^']|'')*)'")
_ROW = re.compile(r"RowKey\s*=\s*'((?:[^']|'')*)'")
_PART = re.compile(rb"^(GET|POST|PUT|PATCH|MERGE|DELETE) (\S+) HTTP/1\.1\r?$", re.MULTILINE)
_WRITES = {"PUT": Kind.UPSERT_REPLACE, "PATCH": Kind.UPSERT_MERGE, "MERGE": Kind.UPSERT_MERGE}
_UPDATES = {
    Kind.UPSERT_REPLACE: Kind.UPDATE_REPLACE,
    Kind.UPSERT_MERGE: Kind.UPDATE_MERGE,
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One parsed request.

    Attributes:
        kind: Kind of operation; None for requests that are not about entities.
        table: Name of the table; empty without one.
        partition_key: The partition; None for several partitions, or if unknown.
        entities: Entity count if the request succeeds; for a query the minimum.
        keys: Range of PartitionKeys that a query scans.
    """

    kind: Kind | None
    table: str = ""
    partition_key: str | None = None
    entities: int = 0
    keys: PartitionRange | None = None

    @property
    def writes(self) -> bool:
        """True if the request changes entities."""
        return self.kind is not None and not self.kind.reads


_NOTHING = Asked(kind=None)


def read_request(method: str, target: str, headers: Mapping[str, str], body: bytes) -> Asked:
    """Parse a request.

    Args:
        method: HTTP method.
        target: Path and query, percent-encoded.
        headers: Case-insensitive headers.
        body: The complete body.
    """
    path, _, query = target.partition("?")
    # No key contains a slash, so the last segment is complete.
    segment = path.rpartition("/")[2]
    if "%" in segment:
        segment = unquote(segment)
    if method == "POST" and "X-HTTP-Method" in headers:
        method = headers["X-HTTP-Method"].upper()
    if segment == "$batch":
        return _read_batch(body) if method == "POST" else _NOTHING
    if segment == "Tables" or segment.startswith("Tables("):
        return _NOTHING
    if (match := _ENTITY_PATH.fullmatch(segment)) is not None:
        return _read_entity(method, match[1], match[2], query, headers)
    if _TABLE_PATH.fullmatch(segment) is not None and "comp=" not in query:
        if method == "POST":
            return _read_insert(segment, body)
        if method == "GET" and path.count("/") > 1:
            return _read_query(segment, query)
    return _NOTHING


def table_deleted(method: str, target: str) -> str | None:
    """Return the table that a request deletes, or None."""
    if method != "DELETE":
        return None
    segment = unquote(target.partition("?")[0].rpartition("/")[2])
    if segment.startswith("Tables('") and segment.endswith("')"):
        return segment[8:-2]
    return None


def _read_entity(
    method: str, table: str, inside: str, query: str, headers: Mapping[str, str]
) -> Asked:
    key, row = _PARTITION.search(inside), _ROW.search(inside)
    if key is None or row is None:
        return _read_query(table, query) if method == "GET" and not inside else _NOTHING
    kind: Kind | None
    if method == "GET":
        kind = Kind.POINT_QUERY
    elif method == "DELETE":
        kind = Kind.DELETE
    else:
        kind = _WRITES.get(method)
        if kind is not None and "If-Match" in headers:
            kind = _UPDATES[kind]
    if kind is None:
        return _NOTHING
    return Asked(kind=kind, table=table, partition_key=_plain(key[1]), entities=1)


def _read_query(table: str, query: str) -> Asked:
    parameters = parse_qs(query, keep_blank_values=True)
    keys = key_range(
        parameters.get("$filter", [""])[0], next_key=parameters.get("NextPartitionKey", [None])[0]
    )
    return Asked(kind=Kind.QUERY, table=table, partition_key=keys.only, entities=1, keys=keys)


def _read_insert(table: str, body: bytes) -> Asked:
    return Asked(kind=Kind.INSERT, table=table, partition_key=_key_of(body), entities=1)


def _read_batch(body: bytes) -> Asked:
    parts = list(_PART.finditer(body))
    table, keys = "", set()
    for part in parts:
        segment = unquote(part[2].decode("utf-8", "replace").partition("?")[0].rpartition("/")[2])
        if (match := _ENTITY_PATH.fullmatch(segment)) is not None:
            table = match[1]
            key = _PARTITION.search(match[2])
            keys.add(None if key is None else _plain(key[1]))
        else:
            table = segment
            keys.add(_key_of(_part_body(body, part.end())))
    if not parts or not _TABLE_PATH.fullmatch(table):
        return _NOTHING
    # The service refuses a transaction over several partitions; Azurite accepts it.
    key_of_all = keys.pop() if len(keys) == 1 else None
    return Asked(kind=Kind.TRANSACTION, table=table, partition_key=key_of_all, entities=len(parts))


def _part_body(body: bytes, at: int) -> bytes:
    begin = body.find(b"\r\n\r\n", at)
    return body[begin + 4 : body.find(b"\r\n--", begin + 4)] if begin >= 0 else b""


def _key_of(body: bytes) -> str | None:
    try:
        key = json.loads(body)["PartitionKey"]
    except (ValueError, KeyError, TypeError):
        return None
    return key if isinstance(key, str) else None


def _plain(text: str) -> str:
    """Undo the doubled quotes of the protocol."""
    return text.replace("''", "'") if "''" in text else text
