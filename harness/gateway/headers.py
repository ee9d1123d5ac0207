"""Header fields of HTTP messages, as they arrived."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_CODING = "latin-1"

SINGLE_HOP = frozenset(
    (
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
        b"content-length",
    )
)
"""Fields of one connection or of its framing; no proxy passes them on (RFC 9110, 7.6.1)."""


NOT_SENT_ON = SINGLE_HOP | {b"host", b"expect"}
"""Fields of a request that the endpoint gets from the gateway, or not at all."""


class Headers(Mapping[str, str]):
    """Fields in order of arrival. Names are case-insensitive; repeated fields are joined by commas.

    Args:
        fields: Names and values as they were on the wire.

    Attributes:
        by_name: Fields by name in bytes and lower case, which is the fastest way to look one up.
    """

    __slots__ = ("by_name", "fields")

    def __init__(self, fields: Sequence[tuple[bytes, bytes]]) -> None:
        self.fields = fields
        by_name = {field[0].lower(): field for field in fields}
        self.by_name = by_name if len(by_name) == len(fields) else _joined(fields)

    @classmethod
    def of(cls, headers: Mapping[str, str]) -> Headers:
        """Return the same fields as they are written to the wire."""
        if isinstance(headers, Headers):
            return headers
        return cls([(name.encode(), value.encode(_CODING)) for name, value in headers.items()])

    def passed_on(self, unwanted: frozenset[bytes] = SINGLE_HOP) -> list[bytes]:
        """Return the fields that a proxy passes on, each as a line without its end.

        Left out are those that Connection names, and the ``unwanted``, which are in lower case.
        """
        by_name = self.by_name
        if b"connection" in by_name:
            unwanted = _with_named(unwanted, by_name[b"connection"][1])
        if len(by_name) == len(self.fields):
            # No field is repeated. Without a loop in Python this takes half the time.
            wanted = itertools.filterfalse(unwanted.__contains__, by_name)
            return [*map(b": ".join, map(by_name.__getitem__, wanted))]
        return [b": ".join(field) for field in self.fields if field[0].lower() not in unwanted]

    def get(self, name: str, default: Any = None) -> Any:
        # That of Mapping raises and catches an error for each field that is not there.
        field = self.by_name.get(_lowered(name))
        return default if field is None else field[1].decode(_CODING)

    def __getitem__(self, name: str) -> str:
        return self.by_name[_lowered(name)][1].decode(_CODING)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and _lowered(name) in self.by_name

    def __iter__(self) -> Iterator[str]:
        return (name.decode(_CODING) for name in self.by_name)

    def __len__(self) -> int:
        return len(self.by_name)


def _joined(fields: Sequence[tuple[bytes, bytes]]) -> dict[bytes, tuple[bytes, bytes]]:
    """Return fields by name in lower case; the values of a repeated field are joined."""
    by_name: dict[bytes, tuple[bytes, bytes]] = {}
    for name, value in fields:
        known = by_name.get(name.lower())
        by_name[name.lower()] = (name, value if known is None else known[1] + b", " + value)
    return by_name


@functools.lru_cache(maxsize=16)
def _with_named(unwanted: frozenset[bytes], connection: bytes) -> frozenset[bytes]:
    return unwanted.union(name.strip() for name in connection.lower().split(b","))


@functools.lru_cache(maxsize=256)
def _lowered(name: str) -> bytes:
    return name.lower().encode(_CODING)
