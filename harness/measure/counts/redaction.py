"""Aliases for PartitionKeys, which can be personal data.

An alias is the same wherever its key is shown, and tells nothing of the key to who has not the
secret. Tables, and what stands for several partitions, keep their names.
"""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
from typing import Any

from harness.measure.counts.heatmap import HeatView
from harness.measure.counts.snapshot import Snapshot
from harness.model.operation import over_partitions

_HEX_DIGITS = 12


class Aliases:
    """Gives the alias of a key.

    Args:
        secret: Whoever has it can tell whether a key is behind an alias. The same secret gives the
            same aliases.
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def __call__(self, key: str) -> str:
        """The alias of ``key``; the name of a table before it stays."""
        if over_partitions(key):
            return key
        table, slash, own = key.rpartition("/")
        digest = hmac.new(self._secret, own.encode("utf-8", "surrogatepass"), hashlib.sha256)
        return f"{table}{slash}key-{digest.hexdigest()[:_HEX_DIGITS]}"

    def snapshot(self, snapshot: Snapshot) -> Snapshot:
        """``snapshot`` with aliases for keys."""
        return dataclasses.replace(
            snapshot,
            partitions=tuple(
                part.model_copy(update={"key": self(part.key)}) for part in snapshot.partitions
            ),
            course=dataclasses.replace(
                snapshot.course,
                heat=None if (heat := snapshot.heat) is None else self._heat(heat),
            ),
        )

    def error(self, error: dict[str, Any]) -> dict[str, Any]:
        """A failed attempt with aliases for its keys, and without what was said of it.

        A service or a library may repeat a key in its message, in a spelling of its own.
        """
        keys = ("partition_key", "row_key")
        return {**error, **{name: self(error[name]) for name in keys if error[name]}, "message": ""}

    def _heat(self, heat: HeatView) -> HeatView:
        return dataclasses.replace(
            heat,
            ranges=tuple(
                dataclasses.replace(row, first=self(row.first), last=self(row.last))
                for row in heat.ranges
            ),
        )
