"""Header fields of HTTP messages, as they arrived."""

from __future__ import annotations

import functools
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
    """

    __slots__ = ("_by_name", "fields")

    def __init__(self, fields: Sequence[tuple[bytes, bytes]]) -> None:
        self.fields = fields
        self._by_name: dict[bytes, bytes] | None = None

    @classmethod
    def of(cls, headers: Mapping[str, str]) -> Headers:
        """Return the same fields as they are written to the wire."""
        if isinstance(headers, Headers):
            return headers
        return cls([(name.encode(), value.encode(_CODING)) for name, value in headers.items()])

    def passed_on(self, unwanted: frozenset[bytes] = SINGLE_HOP) -> list[tuple[bytes, bytes]]:
        """Return the fields that a proxy passes on.

        Args:
            unwanted: Names to leave out besides those that Connection names, in lower case.
        """
        by_name = self._found()
        if b"connection" in by_name:
            named = by_name[b"connection"].lower().split(b",")
            unwanted = unwanted.union(name.strip() for name in named)
        return [field for field in self.fields if field[0].lower() not in unwanted]

    def get(self, name: str, default: Any = None) -> Any:
        # That of Mapping raises and catches an error for each field that is not there.
        value = self._found().get(_lowered(name))
        return default if value is None else value.decode(_CODING)

    def __getitem__(self, name: str) -> str:
        return self._found()[_lowered(name)].decode(_CODING)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and _lowered(name) in self._found()

    def __iter__(self) -> Iterator[str]:
        return (name.decode(_CODING) for name in self._found())

    def __len__(self) -> int:
        return len(self._found())

    def _found(self) -> dict[bytes, bytes]:
        by_name = self._by_name
        if by_name is None:
            by_name = self._by_name = {}
            for name, value in self.fields:
                name = name.lower()
                by_name[name] = by_name[name] + b", " + value if name in by_name else value
        return by_name


@functools.lru_cache(maxsize=256)
def _lowered(name: str) -> bytes:
    return name.lower().encode(_CODING)
