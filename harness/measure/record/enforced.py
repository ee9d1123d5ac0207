"""The limits that a gateway held a run to, and the moves of partitions meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Annotated, Any

import pydantic

from harness.measure.record.findings import RecordPart, rounded
from harness.model.target import UNLIMITED_PER_S

_REFUSED_BY = {
    "partition": "by a partition's limit",
    "server": "by a server's limit",
    "account": "by the account's limit",
    "moving": "while a partition moved",
}
_Rate = Annotated[float, pydantic.Field(gt=0)]


class MovePart(RecordPart):
    """A partition whose range moved to another server and was offline meanwhile.

    Attributes:
        start_s: When it went offline, in seconds from the start of the load.
        key: The partition whose refusal caused the move.
    """

    start_s: float
    offline_s: float
    key: str
    from_server: int
    to_server: int


class EnforcedPart(RecordPart):
    """What a gateway enforced, in entities/s: pages can draw these lines beside the targets.

    Attributes:
        refusals: Requests refused under load, by the rule: partition, server, account, or moving;
            empty in records of earlier versions.
    """

    partition_per_s: _Rate
    account_per_s: _Rate
    server_per_s: _Rate
    moves: tuple[MovePart, ...] = ()
    refusals: dict[str, int] = pydantic.Field(default_factory=dict)

    @property
    def refused_by(self) -> str | None:
        """Whose limit refused most: partition, server or account; None if that is unknown.

        A partition that moves refuses as well, as a consequence of one of these limits.
        """
        limits = {rule: self.refusals.get(rule, 0) for rule in ("partition", "server", "account")}
        most = max(limits, key=limits.__getitem__)
        return most if limits[most] else None

    @property
    def refused_words(self) -> str:
        """The refusals by rule, as a part of a sentence; empty if they are unknown."""
        ordered = sorted(self.refusals.items(), key=lambda item: -item[1])
        return ", ".join(f"{count:,} {_REFUSED_BY.get(rule, rule)}" for rule, count in ordered)

    @property
    def partition_limit(self) -> float | None:
        """The limit of a partition; None where it has none."""
        return self.partition_per_s if self.partition_per_s < UNLIMITED_PER_S else None

    @property
    def limits(self) -> bool:
        """Whether anything is limited."""
        every = (self.partition_per_s, self.account_per_s, self.server_per_s)
        return min(every) < UNLIMITED_PER_S


def refusals_of(
    rows: Iterable[Mapping[str, Any]], tables: Container[str] | None = None
) -> Counter[str]:
    """The requests that a gateway refused by a limit, by its rule.

    Args:
        tables: Names of the tables that count; None is all.
    """
    refused: Counter[str] = Counter()
    for row in rows:
        of_limit = row["result"] == "refused" and row["rule"] in _REFUSED_BY
        if of_limit and (tables is None or row["table"] in tables):
            refused[row["rule"]] += row["requests"]
    return refused


def moves_of(
    moves: Iterable[Mapping[str, Any]], began_s: float, name_of: Callable[[str, str], str]
) -> tuple[MovePart, ...]:
    """The moves on the page of a gateway.

    Args:
        moves: As on the page, times in UTC seconds.
        began_s: Start of the load, UTC seconds.
        name_of: The name in the record of a partition, by its table and PartitionKey.
    """
    return tuple(
        MovePart(
            start_s=rounded(move["at_s"] - began_s),
            offline_s=rounded(move["until_s"] - move["at_s"]),
            key=name_of(move["table"], move["partition_key"]),
            from_server=move["from_server"],
            to_server=move["to_server"],
        )
        for move in moves
        if move["until_s"] > began_s
    )
