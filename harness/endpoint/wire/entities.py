"""Entities as the service's JSON and back, as the SDK writes and reads them, in less time.

`harness.endpoint.lean_writes.json_of` says what is written. This gives the same text: what was put
together for the entity before, of the same properties, is used again where a value is the same
object. Entities of one size differ in few properties.
"""

from __future__ import annotations

import binascii
import datetime as dt
import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from itertools import compress
from json.encoder import encode_basestring_ascii
from operator import is_not
from typing import Any
from urllib.parse import quote

from harness.endpoint.lean_writes import edm_json
from harness.model.entity import ETAG, Int64
from harness.model.operation import Operation

_quoted: Callable[[str], str] = encode_basestring_ascii

_MOST_REMEMBERED = 64
"""So many kinds of entities are told apart by the names of their properties."""
_LONGEST_REMEMBERED = 65_536
"""Characters of an entity that is kept, so that memory is bounded by a few megabytes."""
_NOT_REMEMBERED = object()

_TYPE = "@odata.type"


class EntityWriter:
    """Writes entities."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        # By the names of an entity's properties.
        self._last: dict[tuple[str, ...], _Written] = {}

    def text(self, operation: Operation) -> str:
        """The entity that a write stores, as JSON in ASCII.

        Raises:
            TypeError: a value has no Edm type, or does not fit into Edm.Int32.
        """
        properties = operation.properties
        own = self._own(properties) if properties else ""
        return (
            f'{{"PartitionKey": {_quoted(operation.partition_key)}, '
            f'"PartitionKey@odata.type": "Edm.String", "RowKey": {_quoted(operation.row_key)}, '
            f'"RowKey@odata.type": "Edm.String"{own}}}'
        )

    def _own(self, properties: Mapping[str, Any]) -> str:
        names = tuple(properties)
        known = self._last.get(names)
        if known is None:
            known = _Written(names)
            if len(self._last) < _MOST_REMEMBERED:
                self._last[names] = known
        last, texts = known.values, known.texts
        # Which values are others than those of the entity before; found without a loop of Python's.
        for place in compress(known.places, map(is_not, properties.values(), last)):
            value = properties[names[place]]
            if type(value) is int and -(2**31) <= value < 2**31:
                texts[place] = f"{known.heads[place]}{value}"
                last[place] = value
            else:
                texts[place] = _text(names[place], value)
                last[place] = value if type(value) in _IMMUTABLE else _NOT_REMEMBERED
        text = "".join(texts)
        if len(text) > _LONGEST_REMEMBERED:
            self._last.pop(names, None)
        return text


class _Written:
    """The last entity with properties of these names.

    Attributes:
        values: Its values.
        texts: What was written of each.
        heads: What comes before each where it is a number.
        places: Of all of them.
    """

    __slots__ = ("heads", "places", "texts", "values")

    def __init__(self, names: tuple[str, ...]) -> None:
        self.values: list[object] = [_NOT_REMEMBERED] * len(names)
        self.texts = [""] * len(names)
        self.heads = [f", {_quoted(name)}: " for name in names]
        self.places = range(len(names))


def _text(name: str, value: Any) -> str:
    edm_type, plain = edm_json(value)
    text = f", {_quoted(name)}: {json.dumps(plain)}"
    return f'{text}, {_quoted(name + _TYPE)}: "{edm_type}"' if edm_type else text


_IMMUTABLE = frozenset((str, bool, int, Int64, float, bytes, dt.datetime, uuid.UUID))
"""Types whose objects say the same for ever."""


class Moment(dt.datetime):
    """A time as the service told it.

    Attributes:
        tables_service_value: Its text. The service is ten times as precise as Python.
    """

    tables_service_value: str


class Found(Mapping[str, Any]):
    """An entity that was read. Its values are made when somebody asks for one.

    Args:
        document: The entity as the service's JSON.
    """

    __slots__ = ("_document", "_values")

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._values: dict[str, Any] | None = None

    def __getitem__(self, name: str) -> Any:
        """The value of a property."""
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        """Names of its properties."""
        return iter(self._all())

    def __len__(self) -> int:
        """How many properties it has."""
        return len(self._all())

    def __repr__(self) -> str:
        return repr(self._all())

    def _all(self) -> dict[str, Any]:
        values = self._values
        if values is None:
            values = self._values = value_of(self._document)
        return values


def value_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """An entity as a dict, in the shape that `harness.endpoint.translate` describes.

    Raises:
        ValueError: a value is not of the type that it says it is.
    """
    values: dict[str, Any] = {}
    for name, plain in document.items():
        if name.startswith("odata.") or name.endswith(_TYPE):
            continue
        edm_type = document.get(name + _TYPE)
        if edm_type is None:
            wide = type(plain) is int and not -(2**31) <= plain < 2**31
            values[name] = Int64(plain) if wide else plain
        else:
            read = _READERS.get(edm_type)
            values[name] = plain if read is None else read(plain)
    told = values.pop("Timestamp", None)
    etag = document.get(ETAG)
    if told and not etag:
        etag = f"W/\"datetime'{quote(document['Timestamp'])}'\""
    values[ETAG] = etag
    values["Timestamp"] = _moment(told) if type(told) is str and told else told
    return values


def _moment(told: str) -> Moment:
    moment = Moment.fromisoformat(told)
    moment.tables_service_value = told
    return moment


_READERS: dict[str, Callable[[Any], Any]] = {
    "Edm.Binary": binascii.a2b_base64,
    "Edm.Int64": Int64,
    "Edm.Double": float,
    "Edm.DateTime": _moment,
    "Edm.Guid": uuid.UUID,
}
