"""Decides whether the published limits pass, refuse or delay a request.

The model is pure: time is an argument, chance comes from the seeds in the limits, and there is no
I/O. A refused request takes nothing from any limit. A request that passes takes its entities at
once. The answer decides whether these entities are kept or given back, and whether more are taken.
Every request that passed must therefore be ended by one of `Model.answered`, `Model.not_done` and
`Model.lost`.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import random
from collections.abc import Mapping, Sequence

from harness.gateway.contents import Contents
from harness.gateway.limits import GatewayLimits
from harness.gateway.look import TableLook
from harness.gateway.reading import Answered
from harness.gateway.requests import Asked
from harness.gateway.rules.account import AccountRule
from harness.gateway.rules.counting import NO_ENTITIES, Count, count_of, query_count
from harness.gateway.rules.faults import FaultRule, InjectedFault
from harness.gateway.rules.moving import Move, MovingRule
from harness.gateway.rules.partition import PartitionRule
from harness.gateway.rules.ramping import RampingRule
from harness.gateway.rules.ranges import Range, Ranges
from harness.gateway.rules.servers import ServerRule
from harness.model.operation import Kind
from harness.model.outcome import Scope

# Looked up once: access to a member of an enumeration takes several times as long as a plain name.
_QUERY = Kind.QUERY
_TRANSACTION = Kind.TRANSACTION


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
        status: HTTP status of a refusal.
        retry_after_ms: Wait before a retry, as stated in a refusal; 0 for none.
        scope: Scope of a refusal: partition or account.
        rule: The rule that refused: partition, server, moving or account.
        delay_s: Delay before the action.
        fault: A fault that is applied although no limit is reached.
    """

    action: GatewayAction = GatewayAction.PASS
    status: int = 503
    retry_after_ms: int = 0
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
        stored: False if there is no endpoint behind the gateway.
        looks: False if rows that were there before must not be read.
        shared: Whether other gateways pass writes to the same tables.

    Attributes:
        slow_s: Delay of a slow response.
    """

    def __init__(
        self,
        limits: GatewayLimits,
        now_s: float,
        *,
        stored: bool = True,
        looks: bool = True,
        shared: bool = False,
    ) -> None:
        self.slow_s = limits.faults.slow_s
        self._started_s = now_s
        # Without limits, no bucket and no range has to be kept.
        self._unlimited = limits.unlimited
        self._refusal = limits.refusal
        self._chance = random.Random(f"{limits.refusal.seed}/refusal")
        self._ramping = RampingRule(limits.ramping, limits.servers)
        self._ranges = Ranges(
            None if self._ramping.by_load else limits.servers.keys_per_range, limits.servers.count
        )
        self._partitions = PartitionRule(limits.partition)
        self._servers = ServerRule(limits.servers, now_s)
        self._moving = MovingRule(limits.moving)
        self._account = AccountRule(limits.account, now_s)
        self._faults = FaultRule(limits.faults)
        self._contents = Contents(stored=stored)
        self._looks = looks and not shared
        self._shared = shared

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
        if not self._faults.any:
            return _PASS if asked.kind is None else self._refusal_of(asked, now_s, 0.0) or _PASS
        stalled_s = self._faults.stalled_for_s(now_s - self._started_s)
        fault, refused = None, None
        if asked.kind is not None:
            fault = self._faults.draw(writes=asked.writes)
            refused = self._refusal_of(asked, now_s, stalled_s)
        return refused or Decision(delay_s=stalled_s, fault=fault)

    def serve(
        self, entities: Mapping[tuple[str, str | None], int], since_s: float, until_s: float
    ) -> bool:
        """Pass all requests of some time as a whole, unless a limit could refuse one of them.

        Args:
            entities: Entities by table and PartitionKey, which is None for several partitions.
            since_s: The first request arrives at or after this time.
            until_s: The last request arrives before this time.

        Returns:
            False if a request might be refused, in some order of arrival: then nothing is taken.
        """
        if self._unlimited:
            return True
        if not self._account.holds(sum(entities.values()), since_s):
            return False
        # So few that their bucket is as full afterwards as it was before.
        least = self._partitions.refilled((until_s - since_s) / 100)
        find, allows, holds = self._ranges.find, self._moving.allows, self._partitions.holds
        by_place: dict[tuple[str, str], int] = {}
        by_server: dict[int, int] = {}
        for (table, key), count in entities.items():
            place = find(table, key or "")
            first = (table, "") if place.first == ("", "") else place.first
            if first in by_place:
                by_place[first] += count
            else:
                if not allows(place, since_s):
                    return False
                by_place[first] = count
            by_server[place.server] = by_server.get(place.server, 0) + count
            if key is not None and count > least and not holds(table, key, count, since_s):
                return False
        for server, count in by_server.items():
            if not self._servers[server].holds(count, since_s):
                return False
        middle_s = (since_s + until_s) / 2
        for (table, key), count in entities.items():
            if key is not None and count > least:
                self._partitions.take(table, key, count, middle_s)
        for (table, key), count in by_place.items():
            self._take(table, None, find(table, key), count, middle_s)
        for table, key in entities:
            self._ranges.open_table(table, middle_s)
            if key is not None:
                self._ranges.write(table, key, middle_s)
        return True

    def answered(self, asked: Asked, answered: Answered, now_s: float) -> Count:
        """End a request that the endpoint answered, and return its entity count.

        The entities of a refused request are given back. A query takes the entities that it
        scanned. Written keys are stored, so that the number of entities that later queries scan is
        known.
        """
        if asked.kind is None:
            self._table_changed(asked, answered)
            return NO_ENTITIES
        if asked.kind is _QUERY:
            count, by_partition = query_count(asked, answered, self._contents)
            if answered.succeeded and not self._unlimited:
                self._take_walked(asked, by_partition, now_s)
        else:
            count = count_of(asked, answered)
        if not answered.succeeded:
            if not count.entities:
                self.not_done(asked, now_s)
            return count
        if asked.rows:
            self._contents.wrote(asked.table, asked.rows)
        if not self._unlimited:
            self._ranges.open_table(asked.table, now_s)
            for key in {row.partition_key for row in asked.rows if row.stays}:
                if key is not None:
                    self._ranges.write(asked.table, key, now_s)
        return count

    def not_done(self, asked: Asked, now_s: float) -> None:
        """End a request that was not executed: its entities are given back."""
        if self._unlimited:
            return
        for key, entities in _parts(asked, self._first_key(asked)):
            place = self._ranges.find(asked.table, self._position(asked, key))
            if key is not None:
                self._partitions.give_back(asked.table, key, entities, now_s)
            self._servers[place.server].give_back(entities, now_s)
            self._account.give_back(entities, now_s)

    def lost(self, asked: Asked) -> None:
        """End a request whose answer was lost: it may have been executed."""
        if asked.writes:
            self._contents.doubt(asked.table)

    def look(self, asked: Asked, target: str) -> TableLook | None:
        """Return the `TableLook` that has to precede a query, or None.

        Args:
            asked: A query that passes.
            target: Its path and query.
        """
        if asked.kind is not _QUERY or asked.in_batch or not self._looks:
            return None
        if not self._contents.begin_look(asked.table):
            return None
        return TableLook(self._contents, asked.table, target)

    def cut(self, asked: Asked, answered: Answered) -> int | None:
        """Return the number of entities after which the page of a query ends, or None.

        A page ends where the table continues on another server, if the answer contains the
        PartitionKey of each entity.
        """
        if asked.keys is None or asked.partition_key is not None or asked.in_batch:
            return None
        if self._unlimited:
            return None
        if not answered.keys or None in answered.keys:
            return None
        for border in self._ranges.borders(asked.table, asked.keys.first):
            before = sum(key < border for key in answered.keys if key is not None)
            if before == len(answered.keys):
                return None
            if before:
                return before
        return None

    def _table_changed(self, asked: Asked, answered: Answered) -> None:
        if not answered.succeeded:
            return
        if asked.makes_table:
            self._contents.made(asked.table)
            if self._shared:
                self._contents.doubt(asked.table)
        elif asked.drops_table:
            self._contents.dropped(asked.table)
            self._ranges.drop_table(asked.table)

    def _first_key(self, asked: Asked) -> str | None:
        """Return the partition at which a request begins, or None if it is unknown."""
        if asked.partition_key is not None or asked.keys is None:
            return asked.partition_key
        return self._contents.first_partition(asked.table, asked.keys)

    @staticmethod
    def _position(asked: Asked, key: str | None) -> str:
        """Return the key whose range serves a request."""
        if key is not None:
            return key
        return "" if asked.keys is None else asked.keys.first

    def _refusal_of(self, asked: Asked, now_s: float, stalled_s: float) -> Decision | None:
        """Return the refusal of a request, or take its entities."""
        if self._unlimited:
            return None
        table = asked.table
        parts = _parts(asked, self._first_key(asked))
        for key, entities in parts:
            position = self._position(asked, key)
            place = self._ranges.find(table, position)
            if not self._moving.allows(place, now_s):
                return self._refuse("moving", stalled_s)
            if key is not None and not self._partitions.allows(table, key, entities, now_s):
                self._moving.refused(place, self._ranges, table, position, now_s)
                return self._refuse("partition", stalled_s)
            if not self._servers[place.server].allows(entities, now_s):
                self._moving.refused(place, self._ranges, table, position, now_s)
                return self._refuse("server", stalled_s)
        if not self._account.allows(asked.entities, now_s):
            return self._busy("account", stalled_s)
        for key, entities in parts:
            if len(parts) > 1:
                # What the part before took may have split the range.
                place = self._ranges.find(table, self._position(asked, key))
            self._take(table, key, place, entities, now_s)
        return None

    def _take_walked(
        self, asked: Asked, by_partition: Mapping[str | None, int], now_s: float
    ) -> None:
        """Take what a page walked, of which one entity is taken already."""
        taken = 1
        for key, entities in by_partition.items():
            left, taken = max(0, entities - taken), max(0, taken - entities)
            if left:
                place = self._ranges.find(asked.table, self._position(asked, key))
                self._take(asked.table, key, place, left, now_s)

    def _take(self, table: str, key: str | None, place: Range, entities: int, now_s: float) -> None:
        if key is not None:
            self._partitions.take(table, key, entities, now_s)
        self._servers[place.server].take(entities, now_s)
        self._account.take(entities, now_s)
        self._ranges.served(place, entities, now_s)
        self._ramping.served(place, self._ranges, entities, now_s)

    def _refuse(self, rule: str, stalled_s: float) -> Decision:
        """Refuse a request for a partition: at once, or for a share late with a time-out."""
        refusal = self._refusal
        if refusal.timeout_share == 0 or self._chance.random() >= refusal.timeout_share:
            return self._busy(rule, stalled_s)
        statuses = refusal.timeout_statuses
        return Decision(
            action=GatewayAction.TIMED_OUT,
            status=statuses[0] if len(statuses) == 1 else self._chance.choice(statuses),
            scope=Scope.PARTITION,
            rule=rule,
            delay_s=stalled_s + refusal.timeout_after_s,
        )

    def _busy(self, rule: str, stalled_s: float) -> Decision:
        return Decision(
            action=GatewayAction.BUSY,
            status=self._refusal.status,
            retry_after_ms=self._refusal.retry_after_ms,
            scope=Scope.ACCOUNT if rule == "account" else Scope.PARTITION,
            rule=rule,
            delay_s=stalled_s,
        )


def _parts(asked: Asked, first_key: str | None) -> Sequence[tuple[str | None, int]]:
    """Return the entities of a request by partition."""
    if asked.kind is not _TRANSACTION or asked.partition_key is not None:
        return ((first_key, asked.entities),)
    # The service refuses a transaction over several partitions. Azurite accepts it.
    return tuple(collections.Counter(row.partition_key for row in asked.rows).items())
