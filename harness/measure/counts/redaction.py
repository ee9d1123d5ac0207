"""Aliases for PartitionKeys, which can be personal data.

A key has the same alias in every output. The alias does not reveal the key to anyone without the
secret. Tables, and names that stand for several partitions, are not replaced.
"""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
from typing import Any

from harness.measure.counts.snapshot import Snapshot
from harness.measure.record.over_time import HeatPart
from harness.model.operation import over_partitions

_HEX_DIGITS = 12


class Aliases:
    """Makes the aliases of one secret, which tells whether a key is behind an alias."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def __call__(self, key: str) -> str:
        """The alias of ``key``; the name of a table before the key stays."""
        if over_partitions(key):
            return key
        table, slash, own = key.rpartition("/")
        digest = hmac.new(self._secret, own.encode("utf-8", "surrogatepass"), hashlib.sha256)
        return f"{table}{slash}key-{digest.hexdigest()[:_HEX_DIGITS]}"

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
