"""The operation of a request, as runs and their counts name it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import parse_qs

from harness.gateway.key_ranges import (
    WHOLE,
    IndexRange,
    Key,
    after,
    compared_properties,
    index_range,
)
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

# Looked up once: access to a member of an enumeration takes several times as long as a plain name.
_QUERY, _TRANSACTION = Kind.QUERY, Kind.TRANSACTION


def operation_of(
    asked: Asked, etag: str | None = None, properties: Sequence[Mapping[str, str]] = ()
) -> Operation:
    """The operation of a request about entities.

    ``etag`` is its header If-Match; ``properties`` are some of those of each entity that it writes.
    """
    kind, key = asked.kind, asked.partition_key
    assert kind is not None
    if kind is _QUERY:
        return _query(asked)
    partition_key = WHOLE_TABLE if key is None else key
    if not kind.on_rows:
        table = asked.spelled
        return new_operation(kind=kind, partition_key=partition_key, table=table, top=asked.top)
    if kind is _TRANSACTION:
        parts = tuple(
            [
                new_operation(
                    kind=part,
                    partition_key=partition_key,
                    row_key=row.row_key or "",
                    table=asked.spelled,
                    properties=written,
                )
                for part, row, written in zip(
                    asked.kinds, asked.rows, properties or (None,) * len(asked.rows), strict=True
                )
            ]
        )
        return new_operation(
            kind=kind, partition_key=partition_key, table=asked.spelled, parts=parts
        )
    return new_operation(
        kind=kind,
        partition_key=partition_key,
        row_key=asked.row_key,
        table=asked.spelled,
        properties=properties[0] if properties else None,
        etag=etag if etag != "*" and kind.needs_row else None,
    )


def continuation_of(asked: Asked) -> Key | None:
    """The key at which a further page of a query begins; None for another request."""
    if "NextPartitionKey" not in asked.query or asked.keys is None:
        return None
    return asked.keys.first


def _query(asked: Asked) -> Operation:
    parameters = parse_qs(asked.query)
    text = parameters.get("$filter", [""])[0]
    select = parameters.get("$select", [""])[0]
    key, keys = asked.partition_key, asked.keys
    if "NextPartitionKey" in parameters:
        # A further page is named as its query, not by the keys that are left.
        keys = index_range(text)
    return new_operation(
        kind=_QUERY,
        partition_key=WHOLE_TABLE if key is None else key,
        table=asked.spelled,
        key_range=_key_range(key, keys),
        filter=text if compared_properties(text) else None,
        select=tuple(select.split(",")) if select else (),
        top=asked.top,
    )


def _key_range(partition_key: str | None, keys: IndexRange | None) -> KeyRange:
    if keys is None or keys == WHOLE:
        return ALL_KEYS
    (first, first_row), end = keys.first, keys.end
    if partition_key is None:
        return new_key_range(partition_from=first, partition_before=None if end is None else end[0])
    whole = end is None or end == (after(first), "")
    return new_key_range(
        row_from=first_row or None, row_before=None if whole or end is None else end[1]
    )
