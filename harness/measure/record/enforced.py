"""The limits that a gateway held a run to, and the moves of partitions meanwhile."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any

import pydantic

from harness.measure.record.findings import RecordPart, rounded
from harness.model.services.service import UNLIMITED_PER_S

_Rate = Annotated[float, pydantic.Field(gt=0)]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class EnforcedRule:
    """A rule by which a gateway refuses requests, in words.

    Attributes:
        refused: How requests were refused, as a part of a sentence.
        whose: Whose limit it is; empty for a rule that only follows from the limits of others.
        covers: What one limit covers, where no service tells a client about it.
    """

    refused: str
    whose: str = ""
    covers: str = ""

    @property
    def described(self) -> str:
        return f"{self.whose}, for {self.covers}" if self.covers else self.whose


RULES = {
    "partition": EnforcedRule(refused="by a partition's limit", whose="the partition"),
    "account": EnforcedRule(refused="by the account's limit", whose="the account"),
    "server": EnforcedRule(
        refused="by a server's limit", whose="a server", covers="all key ranges on it"
    ),
    "moving": EnforcedRule(refused="while a partition moved"),
}
"""The rules of `harness.gateway.storage` by their name in records. The rate that a rule allows is
the field of `EnforcedPart` with its name and ``_per_s``."""
LIMITS = {name: rule for name, rule in RULES.items() if rule.whose}
"""Those that are limits of their own."""


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
        partition_per_s: Of a partition of the endpoint. A queue beside tables has the same share of
            its own target.
        refusals: Requests refused under load, by partition, account, server or moving.
    """

    partition_per_s: _Rate
    account_per_s: _Rate
    server_per_s: _Rate
    moves: tuple[MovePart, ...] = ()
    refusals: dict[str, int] = pydantic.Field(default_factory=dict)

    @property
    def refused_by(self) -> str | None:
        """Which of `LIMITS` refused most; None if that is unknown."""
        limits = {rule: self.refusals.get(rule, 0) for rule in LIMITS}
        most = max(limits, key=limits.__getitem__)
        return most if limits[most] else None

    @property
    def refused_words(self) -> str:
        """The refusals by rule, as a part of a sentence; empty if they are unknown."""
        ordered = sorted(self.refusals.items(), key=lambda item: -item[1])
        return ", ".join(
            f"{count:,} {RULES[rule].refused if rule in RULES else rule}" for rule, count in ordered
        )

    @property
    def rates(self) -> dict[str, float]:
        """The entities/s that each of `LIMITS` allows."""
        return {rule: getattr(self, f"{rule}_per_s") for rule in LIMITS}

    @property
    def limits(self) -> bool:
        """Whether anything is limited."""
        return min(self.rates.values()) < UNLIMITED_PER_S


def partition_limit_of(enforced: EnforcedPart | None) -> float | None:
    """The limit of a partition that a gateway enforces; None where there is none."""
    if enforced is None or enforced.partition_per_s >= UNLIMITED_PER_S:
        return None
    return enforced.partition_per_s


def refusals_of(rows: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """The requests that a gateway refused by a limit, by its rule."""
    refused: Counter[str] = Counter()
    for row in rows:
        if row["result"] == "refused" and row["rule"] in RULES:
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
