"""Entities: their stored size, and the limits of the service.

The size follows Microsoft's formula; the limits are those of "Understanding the Table service data
model". Both count characters in UTF-16 code units.
"""

from __future__ import annotations

import base64
import datetime as dt
import re
import struct
import uuid
from collections.abc import Iterator, Mapping

MAX_KEY_CHARACTERS = 1024
"""Of each key ("Scalability and performance targets for Table storage")."""
SURE_KEY_CHARACTERS = 512
"""1 KiB of UTF-16, to which other documents limit a key, or both together. Azurite refuses more."""
MAX_ENTITY_BYTES = 1024 * 1024
MAX_PROPERTIES = 252
MAX_PROPERTY_BYTES = 64 * 1024
MAX_TRANSACTION_OPERATIONS = 100
MAX_PAGE_ENTITIES = 1000
"""Of one answer to a query ("Query timeout and pagination")."""
MAX_TRANSACTION_BYTES = 4 * 1024 * 1024
MOST_PROPERTIES = 20
"""Properties whose values a trace has."""

ETAG = "odata.etag"
"""Key of the ETag in an entity that was read; no property can have this name."""

_EXACT = 2.0**53
"""Integers below it are exact as Edm.Double."""
_PAIRED = re.compile("[\U00010000-\U0010ffff]")
_REFUSED = re.compile(r"[/\\#?\x00-\x1f\x7f-\x9f\ud800-\udfff]")


class Int64(int):
    """An integer stored as Edm.Int64. A plain ``int`` is stored as Edm.Int32."""

    __slots__ = ()


EdmValue = str | bool | int | Int64 | float | bytes | dt.datetime | uuid.UUID
Properties = Mapping[str, EdmValue]


def canonical_text(value: object, edm_type: str = "") -> str | None:
    """The text of a property's value, which equal values share; None if it is not a value.

    Numbers have no needless zeros, times neither, GUIDs are in lower case, bytes are base64.

    Args:
        value: As `EdmValue`, or as in the JSON of an entity, with its ``edm_type``.
    """
    match value:
        case str():
            if edm_type == "Edm.DateTime" and "." in value:
                return value.removesuffix("Z").rstrip("0").rstrip(".") + "Z"
            return value.lower() if edm_type == "Edm.Guid" else value
        case bool():
            return str(value).lower()
        case float():
            return f"{value:.0f}" if value.is_integer() and abs(value) < _EXACT else repr(value)
        case int() | uuid.UUID():
            return str(value)
        case bytes():
            return base64.b64encode(value).decode()
        case dt.datetime():
            utc = value.astimezone(dt.UTC)
            return canonical_text(f"{utc:%Y-%m-%dT%H:%M:%S.%f}Z", "Edm.DateTime")
    return None


def characters(text: str) -> int:
    """Length of ``text`` in UTF-16 code units."""
    if text.isascii():
        return len(text)
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def sort_key(text: str) -> str:
    """A text that compares with others as a key does: by UTF-16 code units, surrogate pairs apart.

    So do Azurite and ordinal comparisons of .NET. That the service does too is assumed.
    """
    if text.isascii():
        return text
    return _PAIRED.sub(lambda one: "".join(map(chr, _units(one[0]))), text)


def of_sort_key(text: str) -> str:
    """The key that sorts so."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _units(character: str) -> tuple[int, ...]:
    return struct.unpack(">2H", character.encode("utf-16-be"))


def value_size(value: EdmValue) -> int:
    """Stored bytes of a property's value; a `TypeError` if it has no Edm type."""
    # bool and Int64 are subclasses of int, and come before it.
    if isinstance(value, str):
        return 2 * characters(value) + 4
    if isinstance(value, bytes):
        return len(value) + 4
    if isinstance(value, bool):
        return 1
    if isinstance(value, (Int64, float, dt.datetime)):
        return 8
    if isinstance(value, int):
        return 4
    if isinstance(value, uuid.UUID):
        return 16
    raise TypeError(f"no Edm type for {type(value).__name__}")


def stored_size(partition_key: str, row_key: str, properties: Properties) -> int:
    """Stored bytes: 4 + 2 x key characters, and for each property 8 + 2 x name + value."""
    size = 4 + 2 * (characters(partition_key) + characters(row_key))
    for name, value in properties.items():
        size += 8 + 2 * characters(name) + value_size(value)
    return size


def key_problem(key: str) -> str | None:
    """Why the service refuses ``key`` as PartitionKey or RowKey; None where it is valid."""
    length = characters(key)
    if length > MAX_KEY_CHARACTERS:
        return f"has {length:,} characters; a key has at most {MAX_KEY_CHARACTERS:,}"
    if (found := _REFUSED.search(key)) is None:
        return None
    character = found[0]
    code = f"U+{ord(character):04X}"
    if character >= "\ud800":
        return f"contains half a surrogate pair ({code})"
    shown = character if character.isprintable() else code
    return f"contains {shown}; forbidden in a key are / \\ # ? and control characters"


def entity_problems(partition_key: str, row_key: str, properties: Properties) -> Iterator[str]:
    """Every reason for which the service would refuse this entity."""
    for name, key in (("PartitionKey", partition_key), ("RowKey", row_key)):
        if (problem := key_problem(key)) is not None:
            yield f"{name} {problem}"
    if len(properties) > MAX_PROPERTIES:
        yield f"has {len(properties)} properties; an entity has at most {MAX_PROPERTIES} of its own"
    for name, value in properties.items():
        if isinstance(value, (str, bytes)):
            if value_size(value) - 4 > MAX_PROPERTY_BYTES:
                yield f"property {name} is over 64 KiB"
        elif isinstance(value, Int64):
            if not -(2**63) <= value < 2**63:
                yield f"property {name} does not fit into Edm.Int64"
        elif isinstance(value, int) and not -(2**31) <= value < 2**31:
            yield f"property {name} does not fit into Edm.Int32; wrap it in Int64"
    size = stored_size(partition_key, row_key, properties)
    if size > MAX_ENTITY_BYTES:
        yield f"is {size:,} bytes; an entity has at most 1 MiB"
