"""The operation of a request, as runs and their counts name it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import parse_qs

from harness.gateway.key_ranges import WHOLE, IndexRanges, after, key_ranges
from harness.gateway.messages import Request
from harness.gateway.requests import Asked
from harness.model.operation import (
    ALL_KEYS,
    WHOLE_TABLE,
    KeyRange,
    Kind,
    Operation,
    new_key_range,
    new_operation,
)

_QUOTED = re.compile(r"'[^']*(?:''[^']*)*'")
_WORD = re.compile(r"[A-Za-z_]\w*")
_KEY_WORDS = frozenset(
    ("PartitionKey", "RowKey", "and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge")
)
# Looked up once: access to a member of an enumeration takes several times as long as a plain name.
_QUERY, _TRANSACTION = Kind.QUERY, Kind.TRANSACTION
_CONDITIONAL = frozenset((Kind.UPDATE_MERGE, Kind.UPDATE_REPLACE, Kind.DELETE))


def operation_of(asked: Asked, request: Request) -> Operation:
    """The operation of a request about entities."""
    kind, key = asked.kind, asked.partition_key
    assert kind is not None
    if kind is _QUERY:
        return _query(asked)
    partition_key = WHOLE_TABLE if key is None else key
    if kind is _TRANSACTION:
        parts = tuple(
            [
                new_operation(
                    kind=part,
                    partition_key=partition_key,
                    row_key=row.row_key or "",
                    table=asked.spelled,
                )
                for part, row in zip(asked.kinds, asked.rows, strict=True)
            ]
        )
        return new_operation(
            kind=kind, partition_key=partition_key, table=asked.spelled, parts=parts
        )
    etag = request.headers.get("If-Match") if kind in _CONDITIONAL else None
    return new_operation(
        kind=kind,
        partition_key=partition_key,
        row_key=asked.row_key,
        table=asked.spelled,
        etag=None if etag == "*" else etag,
    )


def _query(asked: Asked) -> Operation:
    parameters = parse_qs(asked.query)
    text = parameters.get("$filter", [""])[0]
    select = parameters.get("$select", [""])[0]
    key, keys = asked.partition_key, asked.keys
    if "NextPartitionKey" in parameters:
        # A further page is named as its query, not by the keys that are left.
        keys = key_ranges(text)
    return new_operation(
        kind=_QUERY,
        partition_key=WHOLE_TABLE if key is None else key,
        table=asked.spelled,
        key_range=_key_range(key, keys),
        filter=text if names_properties(text) else None,
        select=tuple(select.split(",")) if select else (),
        top=asked.top,
    )


def _key_range(partition_key: str | None, keys: IndexRanges | None) -> KeyRange:
    if keys is None or keys == WHOLE or not keys.ranges:
        return ALL_KEYS
    (first, first_row), end = keys.ranges[0].first, keys.ranges[-1].end
    if partition_key is None:
        return new_key_range(partition_from=first, partition_before=None if end is None else end[0])
    whole = end is None or end == (after(first), "")
    return new_key_range(
        row_from=first_row or None, row_before=None if whole or end is None else end[1]
    )


def names_properties(text: str) -> bool:
    """Whether a filter compares other properties than the keys."""
    words: Iterable[str] = _WORD.findall(_QUOTED.sub("", text)) if text else ()
    return any(word not in _KEY_WORDS for word in words)
