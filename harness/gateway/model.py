"""Decides for each request what the published limits do with it: pass, refuse, delay.

Pure: time is an argument, chance comes from the limits' seeds, nothing is sent or read. A request
that is refused takes nothing from any limit.
"""

from __future__ import annotations

import dataclasses
import enum
import random
from collections.abc import Mapping, Sequence

from harness.gateway.limits import Limits
from harness.gateway.requests import Asked
from harness.gateway.rules.account import AccountRule
from harness.gateway.rules.faults import Fault, FaultRule
from harness.gateway.rules.moving import Move, MovingRule
from harness.gateway.rules.partition import PartitionRule
from harness.gateway.rules.ranges import Range, Ranges
from harness.gateway.rules.servers import ServerRule
from harness.model.outcome import Scope


class Action(enum.Enum):
    """What is done with a request."""

    PASS = enum.auto()
    BUSY = enum.auto()
    TIMED_OUT = enum.auto()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What happens to one request.

    Attributes:
        action: Pass it on, or refuse it one way or the other.
        scope: What a refusal is about.
        rule: Which rule refused: partition, server, moving or account.
        delay_s: How long to wait before.
        fault: What goes wrong with it, though no limit is met.
    """

    action: Action = Action.PASS
    scope: Scope = Scope.NONE
    rule: str = ""
    delay_s: float = 0.0
    fault: Fault | None = None


_PASS = Decision()


class Model:
    """The limits of one account.

    Args:
        limits: What holds.
        now_s: When it begins, on any clock that goes on evenly.

    Attributes:
        slow_s: How much later a slow answer comes.
    """

    def __init__(self, limits: Limits, now_s: float) -> None:
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
        """Partitions that are kept in mind."""
        return len(self._partitions)

    @property
    def ranges(self) -> Sequence[tuple[str, str, int]]:
        """Every range: table, first key, server."""
        return [(*place.first, place.server) for place in self._ranges]

    @property
    def moves(self) -> Sequence[Move]:
        """The latest moves, oldest first."""
        return tuple(self._moving.moves)

    @property
    def move_count(self) -> int:
        """How many moves there were."""
        return self._moving.count

    def decide(self, asked: Asked, now_s: float) -> Decision:
        """What happens to a request that comes now. One that passes takes its entities."""
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
        """Take what a query walked, which is known when it is answered.

        Args:
            asked: The query, which passed and has taken one entity.
            found: Entities by PartitionKey.
            now_s: Now.
        """
        taken = 1
        for key, entities in found.items():
            left, taken = max(0, entities - taken), max(0, taken - entities)
            if left:
                self._take(asked.table, key, self._ranges.find(asked.table, key), left, now_s)

    def border(self, asked: Asked) -> str | None:
        """The key at which a query meets another server, so that its page ends there; or None."""
        keys = asked.keys
        if keys is None or keys.only is not None:
            return None
        border = self._ranges.next_border(asked.table, keys.first)
        return border if border is not None and (keys.last is None or border <= keys.last) else None

    def table_deleted(self, table: str) -> None:
        """A table is gone; so are its ranges."""
        self._ranges.drop_table(table)

    def _refusal_of(self, asked: Asked, now_s: float, stalled_s: float) -> Decision | None:
        """Refuse what has to be; else take its entities."""
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
                action=Action.BUSY, scope=Scope.ACCOUNT, rule="account", delay_s=stalled_s
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
            action=Action.TIMED_OUT if timed_out else Action.BUSY,
            scope=Scope.PARTITION,
            rule=rule,
            delay_s=stalled_s + (refusal.timeout_after_s if timed_out else 0.0),
        )
