"""Aliases for PartitionKeys, which can be personal data.

A key has the same alias in every output. The alias does not reveal the key to anyone without the
secret. Tables, and names that stand for several partitions, are not replaced.
"""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import re
from typing import Any

from harness.measure.counts.snapshot import Snapshot
from harness.measure.record.over_time import HeatPart
from harness.model.entity import MAX_KEY_CHARACTERS
from harness.model.partition import Partition

_HEX_DIGITS = 12
_WORD = re.compile(r"[A-Za-z0-9\x80-\U0010ffff]+")
"""The parts of a key between its separators."""


class Aliases:
    """Makes the aliases of one secret, which tells whether a key is behind an alias.

    Args:
        secret: Random bytes.
        prefixes: Whether keys with a common beginning, up to a separator, have aliases with a
            common beginning. Each word of a key then has an alias, which depends on all before it.
    """

    def __init__(self, secret: bytes, *, prefixes: bool = False) -> None:
        self._secret = secret
        self._prefixes = prefixes

    @property
    def kept(self) -> str:
        """What aliases keep of the keys: ``nothing`` or ``prefixes``."""
        return "prefixes" if self._prefixes else "nothing"

    def __call__(self, key: str) -> str:
        """The alias of ``key``; the name of a table before the key stays."""
        partition = Partition.named(key)
        if partition.whole_table:
            return key
        return partition._replace(key=self.key(partition.key)).name

    def key(self, key: str) -> str:
        """The alias of a PartitionKey or RowKey; an empty one stays empty, as in traces."""
        if not key:
            return ""
        if self._prefixes:
            alias = _WORD.sub(lambda word: self._digest(key[: word.end()]), key)
            if len(alias) <= MAX_KEY_CHARACTERS:
                return alias
        return f"key-{self._digest(key)}"

    def _digest(self, text: str) -> str:
        digest = hmac.new(self._secret, text.encode("utf-8", "surrogatepass"), hashlib.sha256)
        return digest.hexdigest()[:_HEX_DIGITS]

    def snapshot(self, snapshot: Snapshot) -> Snapshot:
        return dataclasses.replace(
            snapshot,
            partitions=tuple(
                part.model_copy(update={"key": self(part.key)}) for part in snapshot.partitions
            ),
            heat=snapshot.heat and self._heat(snapshot.heat),
        )

    def error(self, error: dict[str, Any]) -> dict[str, Any]:
        """A failed attempt with aliases for keys and without its message.

        A service or a library may repeat a key in the message, in another spelling.
        """
        keys = ("partition_key", "row_key")
        return {**error, **{name: self(error[name]) for name in keys if error[name]}, "message": ""}

    def _heat(self, heat: HeatPart) -> HeatPart:
        ranges = tuple(
            row.model_copy(update={"first": self(row.first), "last": self(row.last)})
            for row in heat.ranges
        )
        return heat.model_copy(update={"ranges": ranges})
