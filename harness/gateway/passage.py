"""Requests of a second, decided about one by one where the limits of Storage could refuse some.

The load of the ranges of keys is noted at the end of the second, which saves most of the work.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Protocol

from harness.gateway.demand import Place
from harness.gateway.rules.bucket import Bucket


class _Storage(Protocol):
    """Of `harness.gateway.storage.StorageLimits`."""

    def admit(self, table: str, key: str | None, entities: int, now_s: float, walked: int) -> str:
        """As there."""

    def wrote(self, place: Place, now_s: float) -> int:
        """As there."""

    def decided(
        self,
        table: str,
        key: str | None,
        entities: int,
        refused_s: list[float],
        now_s: float,
    ) -> None:
        """As there."""


@dataclasses.dataclass(slots=True)
class Entrance:
    """What requests of one place have to pass, and what became of them.

    Attributes:
        bucket: That of the partition; None where it does not matter.
        server: That of its server.
        version: Of the ranges when the server was looked up.
        taken: Entities that passed.
        refused_s: The first and last instant of a refusal that heats its range.
    """

    bucket: Bucket | None
    server: Bucket
    version: int
    taken: int = 0
    refused_s: list[float] = dataclasses.field(default_factory=list)


class Passage:
    """Decides about requests in order of time; `end` notes what became of them.

    Args:
        storage: The limits.
        account: The bucket of the account.
        entrance: Makes that of a place; None where a range is offline, or could move.
        version: Of the ranges.
        middle_s: The middle of the second.
    """

    def __init__(
        self,
        storage: _Storage,
        account: Bucket,
        entrance: Callable[[Place], Entrance | None],
        version: int,
        middle_s: float,
    ) -> None:
        self._storage, self._account = storage, account
        self._entrance = entrance
        self._version = version
        self._middle_s = middle_s
        self._entrances: dict[Place, Entrance | None] = {}

    def admit(self, place: Place, asked: int, taken: int, now_s: float) -> str:
        """Decide about a request that succeeds if it passes.

        Args:
            place: Its table and partition.
            asked: What it asks for.
            taken: What it takes if it passes.
            now_s: When it arrives.

        Returns:
            The rule that refuses it; empty if it passes.
        """
        entrances = self._entrances
        if place not in entrances:
            entrances[place] = self._entrance(place)
        entrance = entrances[place]
        if entrance is None:
            return self._storage.admit(*place, asked, now_s, taken - asked)
        if entrance.version != self._version and (moved := self._entrance(place)) is not None:
            entrance.server, entrance.version = moved.server, self._version
        bucket, server, account = entrance.bucket, entrance.server, self._account
        if bucket is not None and not bucket.allows(asked, now_s):
            rule = "partition"
        elif not server.allows(asked, now_s):
            rule = "server"
        elif not account.allows(asked, now_s):
            return "account"
        else:
            if bucket is not None:
                bucket.take(taken, now_s)
            server.take(taken, now_s)
            account.take(taken, now_s)
            if not entrance.taken:
                self._version = self._storage.wrote(place, now_s)
            entrance.taken += taken
            return ""
        entrance.refused_s[1:] = [now_s]
        return rule

    def end(self) -> None:
        """Note the loads and the refusals."""
        for (table, key), entrance in self._entrances.items():
            if entrance is not None:
                self._storage.decided(
                    table, key, entrance.taken, entrance.refused_s, self._middle_s
                )
