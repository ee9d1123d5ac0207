"""Decides whether the published limits pass, refuse or delay a request.

The model is pure: time is an argument, chance comes from the seeds in the limits, and there is no
I/O. A refused request takes nothing from any limit.
"""

from __future__ import annotations

import dataclasses
import enum
import random
from collections.abc import Mapping, Sequence

from harness.gateway.limits import GatewayLimits
from harness.gateway.requests import Asked
from harness.gateway.rules.account import AccountRule
from harness.gateway.rules.faults import FaultRule, InjectedFault
from harness.gateway.rules.moving import Move, MovingRule
from harness.gateway.rules.partition import PartitionRule
from harness.gateway.rules.ranges import Range, Ranges
from harness.gateway.rules.servers import ServerRule
from harness.model.outcome import Scope


class GatewayAction(enum.Enum):
    """What the proxy does with a request."""

    PASS = enum.auto()
    BUSY = enum.auto()
    TIMED_OUT = enum.auto()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The decision about one request.

    Attributes:
        action: Pass, or the kind of refusal.
        scope: Scope of a refusal: partition or account.
        rule: The rule that refused: partition, server, moving or account.
        delay_s: Delay before the action.
        fault: A fault that is applied although no limit is reached.
    """

    action: GatewayAction = GatewayAction.PASS
    scope: Scope = Scope.NONE
    rule: str = ""
    delay_s: float = 0.0
    fault: InjectedFault | None = None


_PASS = Decision()


class Model:
    """The limits of one account.

    Args:
        limits: The limits.
        now_s: The time now, on any steady clock.

    Attributes:
        slow_s: Delay of a slow response.
    """

    def __init__(self, limits: GatewayLimits, now_s: float) -> None:
        self.slow_s = limits.faults.slow_s
        self._started_s = now_s
        self._refusal = limits.refusal
        self._chance = random.Random(f"{limits.refusal.seed}/refusal")
        self._ranges = Ranges(limits.servers.keys_per_range, limits.servers.count)
        self._partitions = PartitionRule(limits.partition)
        self._servers = ServerRule(limits.servers, now_s)
        self._moving = MovingRule(limits.moving)
        self._account = AccountRule(limits.account, now_s)
        self._faults = FaultRule(limits.faults)

    @property
    def partitions(self) -> int:
        """Number of partitions in memory."""
        return len(self._partitions)

    @property
    def ranges(self) -> Sequence[tuple[str, str, int]]:
        """Table, first key and server of every range."""
        return [(*place.first, place.server) for place in self._ranges]

    @property
    def moves(self) -> Sequence[Move]:
        """The latest moves, oldest first."""
        return tuple(self._moving.moves)

    @property
    def move_count(self) -> int:
        """Number of moves."""
        return self._moving.count

    def decide(self, asked: Asked, now_s: float) -> Decision:
        """Decide about a request that arrives now. A passing request takes its entities."""
        stalled_s = self._faults.stalled_for_s(now_s - self._started_s)
        if asked.kind is None:
            return _PASS if not stalled_s else Decision(delay_s=stalled_s)
        fault = self._faults.draw(writes=asked.writes)
        refused = self._refusal_of(asked, now_s, stalled_s)
        if refused is not None:
            return refused
        if fault is None and not stalled_s:
            return _PASS
        return Decision(delay_s=stalled_s, fault=fault)

    def scanned(self, asked: Asked, found: Mapping[str, int], now_s: float) -> None:
        """Take the entities that a query scanned, which only its response tells.

        Args:
            asked: The query, which has passed and taken one entity.
            found: Number of entities by PartitionKey.
            now_s: The time now.
        """
        taken = 1
        for key, entities in found.items():
            left, taken = max(0, entities - taken), max(0, taken - entities)
            if left:
                self._take(asked.table, key, self._ranges.find(asked.table, key), left, now_s)

    def border(self, asked: Asked) -> str | None:
        """Return the key at which a query reaches another server and its page ends, or None."""
        keys = asked.keys
        if keys is None or keys.only is not None:
            return None
        border = self._ranges.next_border(asked.table, keys.first)
        return border if border is not None and (keys.last is None or border <= keys.last) else None

    def table_deleted(self, table: str) -> None:
        """Remove the ranges of a deleted table."""
        self._ranges.drop_table(table)

    def _refusal_of(self, asked: Asked, now_s: float, stalled_s: float) -> Decision | None:
        """Return the refusal of a request, or take its entities."""
        table, entities = asked.table, asked.entities
        self._ranges.open_table(table, now_s)
        key = asked.partition_key
        first = key if key is not None else "" if asked.keys is None else asked.keys.first
        place = self._ranges.find(table, first)
        if not self._moving.allows(place, now_s):
            return self._refuse("moving", stalled_s)
        if key is not None and not self._partitions.allows(table, key, entities, now_s):
            self._moving.refused(place, self._ranges, table, first, now_s)
            return self._refuse("partition", stalled_s)
        if not self._servers.allows(place.server, entities, now_s):
            self._moving.refused(place, self._ranges, table, first, now_s)
            return self._refuse("server", stalled_s)
        if not self._account.allows(entities, now_s):
            return Decision(
                action=GatewayAction.BUSY, scope=Scope.ACCOUNT, rule="account", delay_s=stalled_s
            )
        self._take(table, key, place, entities, now_s)
        if asked.writes and key is not None:
            self._ranges.write(table, key, now_s)
        return None

    def _take(self, table: str, key: str | None, place: Range, entities: int, now_s: float) -> None:
        if key is not None:
            self._partitions.take(table, key, entities, now_s)
        self._servers.take(place.server, entities, now_s)
        self._account.take(entities, now_s)
        self._ranges.served(place, entities, now_s)

    def _refuse(self, rule: str, stalled_s: float) -> Decision:
        refusal = self._refusal
        timed_out = refusal.timeout_share > 0 and self._chance.random() < refusal.timeout_share
        return Decision(
            action=GatewayAction.TIMED_OUT if timed_out else GatewayAction.BUSY,
            scope=Scope.PARTITION,
            rule=rule,
            delay_s=stalled_s + (refusal.timeout_after_s if timed_out else 0.0),
        )
