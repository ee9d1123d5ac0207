"""Entities and their EDM types, written as the service's JSON and read from it.

The JSON and the values are those of azure-data-tables. An entity that was read holds
``PartitionKey``, ``RowKey``, the properties as Python values (`Int64` for Edm.Int64),
``Timestamp``, and the ETag under ``odata.etag``. No property can have these names.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import json
import math
import uuid
from collections.abc import Callable, Iterator, Mapping
from itertools import compress
from json.encoder import encode_basestring_ascii
from operator import is_not
from typing import Any
from urllib.parse import quote

from harness.model.entity import ETAG, EdmValue, Int64
from harness.model.operation import Operation

_quoted: Callable[[str], str] = encode_basestring_ascii

_MAX_TEMPLATES = 64
"""Entities are told apart by the names of their properties, up to this many sets of names."""
_MAX_TEMPLATE_CHARACTERS = 65_536
"""Longer entities are not kept, which bounds the memory to a few megabytes."""
_NO_VALUE = object()

_TYPE = "@odata.type"
_TIME = "%Y-%m-%dT%H:%M:%S.%fZ"


def edm_json(value: EdmValue) -> tuple[str, Any]:
    """EDM type, empty where JSON implies it, and JSON value; a `TypeError` if no type fits."""
    if isinstance(value, str):
        return "Edm.String", value
    if isinstance(value, bool):
        return "", value
    if isinstance(value, Int64):
        return "Edm.Int64", str(value)
    if isinstance(value, int):
        if not -(2**31) <= value < 2**31:
            raise TypeError(f"{value} does not fit into Edm.Int32; wrap it in Int64")
        return "", value
    if isinstance(value, float):
        return "Edm.Double", value if math.isfinite(value) else _NOT_FINITE[str(value)]
    if isinstance(value, bytes):
        return "Edm.Binary", base64.b64encode(value).decode()
    if isinstance(value, dt.datetime):
        # A time that was read goes back unchanged: the service is ten times as precise as Python.
        unchanged = getattr(value, "tables_service_value", None)
        return "Edm.DateTime", unchanged or value.astimezone(dt.UTC).strftime(_TIME)
    if isinstance(value, uuid.UUID):
        return "Edm.Guid", str(value)
    raise TypeError(f"no Edm type for {type(value).__name__}")


_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def is_etag(etag: object) -> bool:
    """Whether ``etag`` can be sent back as a header, or is None."""
    return etag is None or (type(etag) is str and etag.isascii() and etag.isprintable())


class EntityWriter:
    """Writes entities as JSON.

    Entities of one size differ in few properties. The text of the last entity with the same
    property names is kept, and used again for every value that is the same object.
    """

    __slots__ = ("_templates",)

    def __init__(self) -> None:
        # By the names of an entity's properties.
        self._templates: dict[tuple[str, ...], _Template] = {}

    def text(self, operation: Operation) -> str:
        """The entity that a write stores, as JSON in ASCII; a `TypeError` as in `edm_json`."""
        properties = operation.properties
        own = self._own(properties) if properties else ""
        return (
            f'{{"PartitionKey": {_quoted(operation.partition_key)}, '
            f'"PartitionKey@odata.type": "Edm.String", "RowKey": {_quoted(operation.row_key)}, '
            f'"RowKey@odata.type": "Edm.String"{own}}}'
        )

    def _own(self, properties: Mapping[str, Any]) -> str:
        names = tuple(properties)
        template = self._templates.get(names)
        if template is None:
            template = _Template(names)
            if len(self._templates) < _MAX_TEMPLATES:
                self._templates[names] = template
        last, texts = template.values, template.texts
        # The places whose values differ from the last entity's, found without a loop in Python.
        for place in compress(template.places, map(is_not, properties.values(), last)):
            value = properties[names[place]]
            if type(value) is int and -(2**31) <= value < 2**31:
                texts[place] = f"{template.heads[place]}{value}"
                last[place] = value
            else:
                texts[place] = _property_text(names[place], value)
                last[place] = value if type(value) in _IMMUTABLE else _NO_VALUE
        text = "".join(texts)
        if len(text) > _MAX_TEMPLATE_CHARACTERS:
            self._templates.pop(names, None)
        return text


class _Template:
    """The last entity with these property names; ``heads`` are its texts without the values."""

    __slots__ = ("heads", "places", "texts", "values")

    def __init__(self, names: tuple[str, ...]) -> None:
        self.values: list[object] = [_NO_VALUE] * len(names)
        self.texts = [""] * len(names)
        self.heads = [f", {_quoted(name)}: " for name in names]
        self.places = range(len(names))


def _property_text(name: str, value: Any) -> str:
    edm_type, plain = edm_json(value)
    text = f", {_quoted(name)}: {json.dumps(plain)}"
    return f'{text}, {_quoted(name + _TYPE)}: "{edm_type}"' if edm_type else text


_IMMUTABLE = frozenset((str, bool, int, Int64, float, bytes, dt.datetime, uuid.UUID))


class ServiceDateTime(dt.datetime):
    """A time with the text of the service, under the SDK's name for it."""

    tables_service_value: str


class ReadEntity(Mapping[str, Any]):
    """An entity that was read, decoded when its first value is asked for."""

    __slots__ = ("_document", "_values")

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._values: dict[str, Any] | None = None

    def __getitem__(self, name: str) -> Any:
        return self._decoded()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._decoded())

    def __len__(self) -> int:
        return len(self._decoded())

    def __repr__(self) -> str:
        return repr(self._decoded())

    def _decoded(self) -> dict[str, Any]:
        values = self._values
        if values is None:
            values = self._values = values_of(self._document)
        return values


def values_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """The values of an entity. A value that does not fit its declared type stays as it came."""
    values: dict[str, Any] = {}
    for name, plain in document.items():
        if name.startswith("odata.") or name.endswith(_TYPE):
            continue
        edm_type = document.get(name + _TYPE)
        if edm_type is None:
            wide = type(plain) is int and not -(2**31) <= plain < 2**31
            values[name] = Int64(plain) if wide else plain
        else:
            values[name] = _read(edm_type, plain)
    timestamp = values.pop("Timestamp", None)
    etag = document.get(ETAG)
    if timestamp and not etag:
        etag = f"W/\"datetime'{quote(str(document['Timestamp']))}'\""
    values[ETAG] = etag if is_etag(etag) else None
    is_text = type(timestamp) is str and timestamp
    values["Timestamp"] = _read("Edm.DateTime", timestamp) if is_text else timestamp
    return values


def _read(edm_type: Any, plain: Any) -> Any:
    try:
        read = _READERS.get(edm_type)
        return plain if read is None else read(plain)
    except (ValueError, TypeError, AttributeError, OverflowError):
        # What the readers raise for a text of another form, and for a value that is not a text.
        return plain


def _date_time(text: str) -> ServiceDateTime:
    moment = ServiceDateTime.fromisoformat(text)
    moment.tables_service_value = text
    return moment


_READERS: dict[str, Callable[[Any], Any]] = {
    "Edm.Binary": binascii.a2b_base64,
    "Edm.Int64": Int64,
    "Edm.Double": float,
    "Edm.DateTime": _date_time,
    "Edm.Guid": uuid.UUID,
}
