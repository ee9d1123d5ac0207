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
import random
import types
from collections.abc import Mapping, Sequence, Set

from harness.gateway.contents import Contents
from harness.gateway.cosmos import CosmosLimits
from harness.gateway.decision import Decision, GatewayAction
from harness.gateway.demand import Demand, Place
from harness.gateway.limits import GatewayLimits
from harness.gateway.look import TableLook
from harness.gateway.reading import Answered
from harness.gateway.requests import Asked
from harness.gateway.rules.account import AccountRule
from harness.gateway.rules.bucket import Bucket
from harness.gateway.rules.counting import NO_ENTITIES, Count, count_of, query_count
from harness.gateway.rules.faults import FaultRule
from harness.gateway.rules.moving import Move, MovingRule
from harness.gateway.rules.partition import PartitionRule
from harness.gateway.rules.ramping import RampingRule
from harness.gateway.rules.ranges import Bound, Range, Ranges
from harness.gateway.rules.servers import ServerRule
from harness.model.operation import Kind
from harness.model.outcome import Scope

# Looked up once: access to a member of an enumeration takes several times as long as a plain name.
_QUERY = Kind.QUERY
_TRANSACTION = Kind.TRANSACTION

_PASS = Decision()
NOTHING: Mapping[Place, int] = types.MappingProxyType({})


class Model:
    """The limits of one account: those of Storage, or those of Cosmos DB.

    Args:
        limits: The limits.
        now_s: The time now, on any steady clock.
        stored: False if there is no endpoint behind the gateway.
        looks: False if rows that were there before must not be read.
        shared: Whether other gateways pass writes to the same tables.

    Attributes:
        slow_s: Delay of a slow response.
        cosmos: The limits of Cosmos DB; None for those of Storage.
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
        self.cosmos = None
        if limits.cosmos is not None:
            self.cosmos = CosmosLimits(limits.cosmos, self._contents)
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
        self, demand: Demand, since_s: float, until_s: float, more: Mapping[Place, int] = NOTHING
    ) -> Set[Place]:
        """Pass all requests of some time as a whole, unless a limit could refuse one of them.

        Afterwards `alone` has the places of the result that only their own limit could refuse.

        Args:
            demand: What is asked for: entities, or at the limits of Cosmos DB hundredths of an RU.
            since_s: The first request arrives at or after this time.
            until_s: The last request arrives before this time.
            more: Entities of further requests. Their partitions are always returned.

        Returns:
            Places whose requests might be refused, in some order of arrival: nothing is taken for
            them, and each of their requests has to be decided about.
        """
        self.alone: set[Place] = set()
        if self.cosmos is not None:
            return self.cosmos.serve(demand.entities, more, since_s)
        if self._unlimited:
            return more.keys()
        entities, ranges = demand.entities, self._ranges
        if not self._account.holds(demand.total + sum(more.values()), since_s):
            return entities.keys() | more.keys()
        spans = [
            (table, *span) for table in demand.tables for span in ranges.spans(table[0], table[1])
        ]
        by_server: dict[int, int] = {}
        limited: dict[int, list[Bucket]] = {}
        for (_, _, before), place, start, end in spans:
            count = before[end] - before[start]
            by_server[place.server] = by_server.get(place.server, 0) + count
        for (table, key), count in more.items():
            server = ranges.find(table, key or "").server
            by_server[server] = by_server.get(server, 0) + count
        doubtful: set[Place] = set(more)
        metered = self._partitions.metered(entities, until_s - since_s)
        asked = self._partitions.asked(metered, entities, more)
        # Retried scans are decided about after the partitions that are simulated alone.
        scans = any(key is None for _, key in more)
        capacity = self._partitions.capacity
        for (table, key), count in asked.items():
            if not self._partitions.holds(table, key, count, since_s):
                doubtful.add((table, key))
            if count > capacity and not scans:
                # Whatever it is asked for, its server sees no more of it than its bucket passes.
                server = ranges.find(table, key).server
                by_server[server] -= count
                limited.setdefault(server, []).append(self.bucket(table, key, since_s))
        overdraft = demand.largest if demand.walks or demand.largest > capacity else 0
        full = self._servers.full(by_server, since_s, limited, overdraft)
        # Entities of doubtful partitions by table and range.
        held_back: dict[tuple[str, Bound], int] = {}
        refusing = [ranges.find(table, key or "") for table, key in doubtful]
        for (table, key), place in zip(doubtful, refusing, strict=True):
            at = table, place.first
            held_back[at] = held_back.get(at, 0) + entities.get((table, key), 0)
        for (table, keys, before), place, start, end in spans if full or self._moving.count else ():
            if place.server in full or not self._moving.allows(place, since_s):
                refusing.append(place)
                held_back[table, place.first] = before[end] - before[start]
                ends = (None,) if not keys[start] else ()
                span = [(table, key) for key in (*ends, *keys[start:end])]
                doubtful.update(one for one in span if one in entities)
        if any(self._moving.may_move(place, since_s, until_s) for place in refusing):
            # Its other partitions would be offline too, and its load on another server.
            return entities.keys() | more.keys()
        middle_s = (since_s + until_s) / 2
        for table, key in doubtful:
            place = ranges.find(table, key or "")
            open_now = place.server not in full and self._moving.allows(place, since_s)
            if key is not None and open_now:
                self.alone.add((table, key))
        for table, key, count in metered:
            if (table, key) not in doubtful:
                self._partitions.take(table, key, count, middle_s)
        loads = [
            (place, count)
            for (table, _, before), place, start, end in spans
            if (count := before[end] - before[start] - held_back.get((table, place.first), 0))
        ]
        for server, count in ranges.served_together(loads, middle_s).items():
            # What flows in until the end is then added: a steady load leaves a bucket full.
            self._servers[server].take(count, since_s)
            self._account.take(count, since_s)
        if self._ramping.by_load:
            for place, count in loads:
                self._ramping.served(place, ranges, count, middle_s)
        for table, _, _ in demand.tables:
            ranges.open_table(table, middle_s)
        ranges.write_all((place for place in entities if place not in doubtful), middle_s)
        return doubtful

    def admit(
        self, table: str, key: str | None, entities: int, now_s: float, walked: int = 0
    ) -> str:
        """Decide about a request that succeeds if it passes, and end it.

        Args:
            table: Its table.
            key: Its partition; None for several.
            entities: What it asks for, in the unit of the limits.
            now_s: When it arrives.
            walked: What it takes besides if it passes, such as the entities that a query scans.

        Returns:
            The rule that refuses it; empty if it passes.
        """
        if self._unlimited:
            return "" if self.cosmos is None else self.cosmos.admit(key, entities + walked, now_s)
        place = self._ranges.find(table, key or "")
        rule = self._rule_against(place, table, key, key or "", entities, now_s)
        if rule:
            return rule
        if not self._account.allows(entities, now_s):
            return "account"
        self._take(table, key, place, entities + walked, now_s)
        self._ranges.open_table(table, now_s)
        if key is not None:
            self._ranges.write(table, key, now_s)
        return ""

    def bucket(self, table: str, key: str, now_s: float) -> Bucket:
        """The bucket of a partition, to decide about its requests where nothing else matters."""
        return self._partitions.bucket(table, key, now_s)

    def decided(
        self,
        table: str,
        key: str,
        entities: int,
        refused_s: Sequence[float],
        since_s: float,
        until_s: float,
    ) -> None:
        """End the requests of a partition that its bucket alone decided about.

        Args:
            table: Its table.
            key: The partition.
            entities: What passed.
            refused_s: The first and last instant of a refusal; empty if there was none.
            since_s: The beginning of the time.
            until_s: Its end.
        """
        now_s = (since_s + until_s) / 2
        place = self._ranges.find(table, key)
        for at_s in refused_s:
            self._moving.refused(place, self._ranges, table, key, at_s)
        if entities:
            self._servers[place.server].take(entities, since_s)
            self._account.take(entities, since_s)
            self._ranges.served(place, entities, now_s)
            self._ramping.served(place, self._ranges, entities, now_s)
            self._ranges.open_table(table, now_s)
            self._ranges.write(table, key, now_s)

    def answered(self, asked: Asked, answered: Answered, now_s: float) -> Count:
        """End a request that the endpoint answered, and return its entity count.

        The entities of a refused request are given back. A query takes the entities that it
        scanned. Written keys are stored, so that the number of entities that later queries scan is
        known.
        """
        if asked.kind is None:
            self._table_changed(asked, answered)
            return NO_ENTITIES
        by_partition: Mapping[str | None, int] = {}
        if asked.kind is _QUERY:
            count, by_partition = query_count(asked, answered, self._contents)
            if answered.succeeded and not self._unlimited:
                self._take_walked(asked, by_partition, now_s)
        else:
            count = count_of(asked, answered)
        if self.cosmos is not None:
            charged = self.cosmos.answered(asked, answered, by_partition, now_s)
            count = dataclasses.replace(count, charged=charged)
        if not answered.succeeded:
            if not count.entities:
                self._give_back(asked, now_s)
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
        if self.cosmos is not None:
            self.cosmos.not_done(asked, now_s)
        self._give_back(asked, now_s)

    def _give_back(self, asked: Asked, now_s: float) -> None:
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
        if self.cosmos is not None:
            return self._cosmos_refusal(self.cosmos, asked, now_s, stalled_s)
        if self._unlimited:
            return None
        table = asked.table
        parts = _parts(asked, self._first_key(asked))
        for key, entities in parts:
            position = self._position(asked, key)
            place = self._ranges.find(table, position)
            if rule := self._rule_against(place, table, key, position, entities, now_s):
                return self._refuse(rule, stalled_s)
        if not self._account.allows(asked.entities, now_s):
            return self._busy("account", stalled_s)
        for key, entities in parts:
            if len(parts) > 1:
                # What the part before took may have split the range.
                place = self._ranges.find(table, self._position(asked, key))
            self._take(table, key, place, entities, now_s)
        return None

    @staticmethod
    def _cosmos_refusal(
        cosmos: CosmosLimits, asked: Asked, now_s: float, stalled_s: float
    ) -> Decision | None:
        refused = cosmos.refusal(asked, now_s)
        if refused is None:
            return None
        return Decision(
            action=GatewayAction.BUSY,
            status=refused.status,
            retry_after_ms=refused.wait_ms,
            scope=Scope.PARTITION if refused.wait_ms else Scope.NONE,
            rule=refused.rule,
            delay_s=stalled_s,
        )

    def _rule_against(
        self,
        place: Range,
        table: str,
        key: str | None,
        position: str,
        entities: int,
        now_s: float,
    ) -> str:
        """Return the rule of a partition or its server that refuses a request; empty for none."""
        if not self._moving.allows(place, now_s):
            return "moving"
        if key is not None and not self._partitions.allows(table, key, entities, now_s):
            rule = "partition"
        elif not self._servers[place.server].allows(entities, now_s):
            rule = "server"
        else:
            return ""
        self._moving.refused(place, self._ranges, table, position, now_s)
        return rule

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
