"""Blocks: operations as columns, on the way from the process that counts to the trace.

Instants are whole UTC milliseconds. Shapes are listed once for each block, and operations name
them by number.
"""

from __future__ import annotations

import array
import dataclasses
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import msgpack
import orjson

from harness.model.operation import WHOLE_TABLE, Kind
from harness.trace.operations import (
    Batch,
    Detail,
    RecordedValues,
    TracedParts,
    TracedQuery,
    address_of,
)

MOST_OPERATIONS = 4096
"""Operations of a block."""

RowShape = tuple[str, str, str, str, str, bool, tuple[tuple[int, str, str], ...]]
"""The fields of a `harness.trace.operations.TracedShape` in its order, with plain text for
enumerations."""

Alias = Callable[[str], str]

NUMBERS = ("at", "took", "shape", "entities", "returned", "sent", "received")
TEXTS = ("key", "row")
DETAILS = ("query", "parts", "properties")
"""Columns of a block: of integers of 64 bits, of a text for each operation, and of JSON with its
place for those that have any."""
_COUNT_BYTES = 4
_KINDS = {kind.value: kind for kind in Kind}
_BOUNDS = ("partition_from", "partition_before", "row_from", "row_before")
_CONTINUED = ("partition_key", "row_key")


@dataclasses.dataclass(slots=True, eq=False)
class BlockColumns:
    """The operations of a block that is being made.

    Lists of plain values, because the garbage collector would follow an object for each operation.
    """

    at: list[int] = dataclasses.field(default_factory=list)
    took: list[int] = dataclasses.field(default_factory=list)
    shapes: list[RowShape] = dataclasses.field(default_factory=list)
    shape_keys: dict[Hashable, int] = dataclasses.field(default_factory=dict)
    shape: list[int] = dataclasses.field(default_factory=list)
    key: list[str | None] = dataclasses.field(default_factory=list)
    row: list[str | None] = dataclasses.field(default_factory=list)
    entities: list[int] = dataclasses.field(default_factory=list)
    returned: list[int] = dataclasses.field(default_factory=list)
    sent: list[int] = dataclasses.field(default_factory=list)
    received: list[int] = dataclasses.field(default_factory=list)
    query: list[tuple[int, str]] = dataclasses.field(default_factory=list)
    parts: list[tuple[int, str]] = dataclasses.field(default_factory=list)
    properties: list[tuple[int, str]] = dataclasses.field(default_factory=list)

    @classmethod
    def of(cls, batch: Batch, started_ms: int) -> BlockColumns:
        """The operations of a trace that started at an instant."""
        columns = cls(
            at=[at_ms + started_ms for at_ms in batch.at_ms],
            took=[done - at for done, at in zip(batch.done_ms, batch.at_ms, strict=True)],
            key=batch.partition_keys,
            row=batch.row_keys,
            entities=batch.entities,
            returned=batch.returned,
            sent=batch.bytes_sent,
            received=batch.bytes_received,
        )
        for shape in dict.fromkeys(batch.shapes):
            columns.shape_keys[shape] = len(columns.shapes)
            columns.shapes.append(dataclasses.astuple(shape))
        columns.shape = list(map(columns.shape_keys.__getitem__, batch.shapes))
        for place, detail in enumerate(batch.details):
            if detail is not None:
                columns.detail(place, detail)
            equal = dict(detail.equal) if isinstance(detail, TracedQuery) else {}
            if values := batch.properties[place] or equal:
                columns.properties.append((place, dumped(values).decode()))
        return columns

    def detail(self, place: int, detail: TracedQuery | TracedParts) -> None:
        """Note the detail of an operation as JSON, which is not looked into on its way."""
        if isinstance(detail, TracedQuery):
            fields = detail._asdict()
            del fields["equal"]
            if detail.continued_at is not None:
                fields["continued_at"] = dict(zip(_CONTINUED, detail.continued_at, strict=True))
            self.query.append((place, dumped(fields).decode()))
        else:
            fields = {"kinds": detail.kinds, "row_keys": detail.row_keys, "bytes": detail.sizes}
            if detail.properties:
                fields["properties"] = detail.properties
            self.parts.append((place, dumped(fields).decode()))

    def encode(self) -> bytes:
        """The number of operations, and their columns."""
        content = {name: array.array("q", getattr(self, name)).tobytes() for name in NUMBERS}
        content |= {name: getattr(self, name) for name in ("shapes", *TEXTS, *DETAILS)}
        # Half of a surrogate pair is no text.
        packed: bytes = msgpack.packb(content, unicode_errors="backslashreplace")
        return len(self.at).to_bytes(_COUNT_BYTES, "big") + packed


def count_of(block: bytes) -> int:
    return int.from_bytes(block[:_COUNT_BYTES], "big")


def decoded(block: bytes, alias: Alias | None) -> dict[str, Any]:
    """The content of a block; with an alias for each key and value, and for clients' addresses."""
    content: dict[str, Any] = msgpack.unpackb(block[_COUNT_BYTES:])
    if alias is None:
        return content

    def of(key: str | None) -> str | None:
        return alias(key) if key and key != WHOLE_TABLE else key

    for shape in content["shapes"]:
        if address := address_of(shape[0]):
            shape[0] = alias(address) + shape[0][len(address) :]
    content["key"] = list(map(of, content["key"]))
    content["row"] = list(map(of, content["row"]))
    for pair in content["query"]:
        query = orjson.loads(pair[1])
        for fields, names in ((query, _BOUNDS), (query["continued_at"] or {}, _CONTINUED)):
            fields.update({name: of(fields.get(name)) for name in names})
        pair[1] = orjson.dumps(query).decode()
    for pair in content["parts"]:
        parts = orjson.loads(pair[1])
        parts["row_keys"] = list(map(of, parts["row_keys"]))
        if "properties" in parts:
            parts["properties"] = [_aliases(values, alias) for values in parts["properties"]]
        pair[1] = orjson.dumps(parts).decode()
    for pair in content["properties"]:
        pair[1] = orjson.dumps(_aliases(orjson.loads(pair[1]), alias)).decode()
    return content


def _aliases(values: RecordedValues, alias: Alias) -> RecordedValues:
    return values and {name: value and alias(value) for name, value in values.items()}


def values_in(text: str | None) -> RecordedValues:
    """The values in JSON; None if there are none. Raises as `detail_in`."""
    values = orjson.loads(text) if text else None
    return {name: value for name, value in (values or {}).items() if value is not None} or None


def detail_in(query: str | None, parts: str | None, values: str | None = None) -> Detail:
    """The detail in JSON, as `BlockColumns.detail` writes it; ``values`` are those of a query.

    Raises:
        KeyError, TypeError, ValueError: it is not one.
    """
    if query is not None:
        fields = orjson.loads(query)
        at = fields["continued_at"]
        return TracedQuery(
            partition_from=fields["partition_from"],
            partition_before=fields["partition_before"],
            row_from=fields["row_from"],
            row_before=fields["row_before"],
            compared=tuple(fields["compared"] or ()),
            selected=tuple(fields["selected"] or ()),
            top=fields["top"],
            continued_at=at and (at["partition_key"] or "", at["row_key"] or ""),
            equal=tuple((values_in(values) or {}).items()),
        )
    if parts is not None:
        fields = orjson.loads(parts)
        return TracedParts(
            kinds=tuple(map(_KINDS.__getitem__, fields["kinds"])),
            row_keys=tuple(fields["row_keys"]),
            sizes=tuple(map(int, fields["bytes"])),
            properties=tuple(
                values and {name: value for name, value in values.items() if value is not None}
                for values in fields.get("properties") or ()
            ),
        )
    return None


def dumped(content: Any) -> bytes:
    """JSON of a value. Half of a surrogate pair, which is no text, becomes an escape."""
    try:
        return orjson.dumps(content)
    except orjson.JSONEncodeError:
        return orjson.dumps(_text_only(content))


def _text_only(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Mapping):
        return {_text_only(name): _text_only(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_text_only(item) for item in value]
    return value
