"""The range of PartitionKeys that a ``$filter`` scans.

Only comparisons of PartitionKey that every row must pass narrow the range. A filter with ``or`` or
``not`` scans the whole table, because the service has one index (partitioning strategy, "Determine
queries").
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import re

_TOKENS = re.compile(r"'(?:[^']|'')*'|[A-Za-z_][A-Za-z0-9_.]*|\S")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRange:
    """PartitionKeys from ``first`` to ``last``, both included; ``last`` None is the table's end."""

    first: str = ""
    last: str | None = None

    @property
    def only(self) -> str | None:
        """The key if the range has only one."""
        return self.last if self.last == self.first else None


WHOLE = PartitionRange()


def key_range(text: str, *, next_key: str | None = None) -> PartitionRange:
    """Return the range of keys that a filter scans.

    Args:
        text: The filter, decoded; empty for none.
        next_key: ``NextPartitionKey`` of a continued query; None for the first page.
    """
    tokens = _TOKENS.findall(text)
    lowered = [token.lower() for token in tokens]
    found = WHOLE
    if "or" not in lowered and "not" not in lowered:
        for at in range(len(tokens) - 2):
            if tokens[at] == "PartitionKey" and tokens[at + 2].startswith("'"):
                value = tokens[at + 2][1:-1].replace("''", "'")
                found = _narrowed(found, lowered[at + 1], value)
    if next_key is not None and found.only is None:
        found = dataclasses.replace(found, first=max(found.first, _continued_at(next_key)))
    return found


def _continued_at(next_key: str) -> str:
    """Decode a continuation: base64; Azure puts exclamation marks before it and - for =."""
    try:
        encoded = next_key.rpartition("!")[2].replace("-", "=")
        return base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _narrowed(found: PartitionRange, comparison: str, value: str) -> PartitionRange:
    first, last = found.first, found.last
    if comparison in ("eq", "ge", "gt"):
        first = max(first, value)
    if comparison in ("eq", "le", "lt"):
        last = value if last is None else min(last, value)
    return PartitionRange(first=first, last=last)
