"""The limits of Azure Storage: entities a second of a partition, of its server, of the account.

The part of the model that the limits of Cosmos DB have no place for. A request that passes takes
its entities at once, from all three. What it took is given back if it fails, and a query takes what
it scanned besides when it is answered.
"""

from __future__ import annotations

import bisect
import collections
import dataclasses
import math
from collections.abc import Callable, Container, Mapping, Sequence, Set

from harness.gateway.contents import Contents
from harness.gateway.demand import Demand, Place
from harness.gateway.limits import GatewayLimits
from harness.gateway.reading import Answered
from harness.gateway.requests import Asked
from harness.gateway.rules.bucket import Bucket
from harness.gateway.rules.moving import Move, MovingRule
from harness.gateway.rules.partition import PartitionRule
from harness.gateway.rules.ramping import RampingRule
from harness.gateway.rules.ranges import MOST_RANGES, Bound, Range, Ranges
from harness.gateway.rules.servers import ServerRule
from harness.model.entity import sort_key
from harness.model.operation import Kind

# Looked up once: access to a member of an enumeration takes several times as long as a plain name.
_QUERY, _TRANSACTION = Kind.QUERY, Kind.TRANSACTION


class StorageLimits:
    """The limits of one account; ``now_s`` is the time now, on any steady clock.

    Attributes:
        alone: Places that `serve` returned last because of the limit of their partition alone.
    """

    def __init__(self, limits: GatewayLimits, contents: Contents, now_s: float) -> None:
        self._contents = contents
        self._ramping = RampingRule(limits.ramping, limits.servers)
        self._ranges = Ranges(
            None if self._ramping.by_load else limits.servers.keys_per_range, limits.servers.count
        )
        self._partitions = PartitionRule(limits.partition)
        self._servers = ServerRule(limits.servers, now_s)
        self._moving = MovingRule(limits.moving)
        # Performance checklist, "Entities per second (storage account)".
        self._account = Bucket(limits.account.entities_per_s, limits.account.burst_s, now_s)
        self.alone: set[Place] = set()
        # The second that was served last, and the partitions whose buckets matter in it.
        self._metered: tuple[float, Container[Place]] | None = None

    @property
    def moves(self) -> Sequence[Move]:
        """The latest moves, oldest first."""
        return tuple(self._moving.moves)

    @property
    def move_count(self) -> int:
        return self._moving.count

    def refusal(self, asked: Asked, now_s: float) -> str:
        """The rule that refuses a request; empty if it passes, which takes its entities."""
        table = asked.ranged_table
        parts = _parts(asked, self._first_key(asked))
        for key, entities in parts:
            position = self._position(asked, key)
            place = self._ranges.find(table, position)
            if rule := self._rule_against(place, table, key, position, entities, now_s):
                return rule
        if not self._account.allows(asked.entities, now_s):
            return "account"
        for key, entities in parts:
            if len(parts) > 1:
                # What the part before took may have split the range.
                place = self._ranges.find(table, self._position(asked, key))
            self._take(table, key, place, entities, now_s)
        return ""

    def served(self, asked: Asked, scanned: Mapping[str | None, int], now_s: float) -> None:
        """End a request that succeeded; ``scanned`` is what it scanned: entities, or messages."""
        if asked.kind is _QUERY or asked.receives:
            self._take_scanned(asked, scanned, now_s)
        self._ranges.open_table(asked.ranged_table, now_s)
        for key in {row.partition_key for row in asked.rows if row.stays}:
            if key is not None:
                self._ranges.write(asked.table, key, now_s)

    def give_back(self, asked: Asked, now_s: float) -> None:
        """End a request that failed: give back what it took when it arrived."""
        table = asked.ranged_table
        for key, entities in _parts(asked, self._first_key(asked)):
            place = self._ranges.find(table, self._position(asked, key))
            if key is not None:
                self._partitions.give_back(table, key, entities, now_s)
            self._servers[place.server].give_back(entities, now_s)
            self._account.give_back(entities, now_s)

    def drop_table(self, table: str) -> None:
        """Forget the ranges of a table that was deleted."""
        self._ranges.drop_table(table)

    def cut(self, asked: Asked, answered: Answered) -> int | None:
        """Return the number of entities after which the page of a query ends, or None.

        A page ends where the table continues on another server, if the answer contains the
        PartitionKey of each entity.
        """
        if asked.keys is None or asked.partition_key is not None or asked.in_batch:
            return None
        if not answered.keys or None in answered.keys:
            return None
        keys = [sort_key(key) for key in answered.keys if key is not None]
        for border in self._ranges.borders(asked.table, asked.keys.first[0]):
            before = sum(key < border for key in keys)
            if before == len(answered.keys):
                return None
            if before:
                return before
        return None

    def serve(
        self, demand: Demand, since_s: float, until_s: float, more: Mapping[Place, int]
    ) -> Set[Place]:
        """Pass all requests of some time, unless one could be refused; see `Model.serve`."""
        self.alone = set()
        entities, ranges = demand.entities, self._ranges
        totals = entities
        if more:
            again = {place: count + entities.get(place, 0) for place, count in more.items()}
            totals = {**entities, **again}
        metered = self._partitions.metered(totals, until_s - since_s)
        asked = {(table, key): count for table, key, count in metered}
        self._metered = since_s, asked
        whole = demand.total + sum(more.values())
        capacity = {table: self._partitions.capacity(table) for table in {one for one, _ in asked}}
        # Whatever a partition is asked for, no more of it comes further than its bucket passes.
        passing = whole - sum(
            count - self.bucket(table, key, since_s).most(since_s, until_s)
            for (table, key), count in asked.items()
            if count > capacity[table]
        )
        if not self._account.hardly_used_by(passing) or not self._account.holds(whole, since_s):
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
        # Retried scans are decided about after the partitions that are simulated alone.
        scans = any(key is None for _, key in more)
        for (table, key), count in asked.items():
            if not self._partitions.holds(table, key, count, since_s):
                doubtful.add((table, key))
            if count > capacity[table] and not scans:
                # Whatever it is asked for, its server sees no more of it than its bucket passes.
                server = ranges.find(table, key).server
                by_server[server] -= count
                limited.setdefault(server, []).append(self.bucket(table, key, since_s))
        exceeds = demand.largest > min(capacity.values(), default=math.inf)
        overdraft = demand.largest if demand.scans or exceeds else 0
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
        written = (at for at, count in entities.items() if count and at not in doubtful)
        ranges.write_all(written, middle_s)
        return doubtful

    def admit(self, table: str, key: str | None, entities: int, now_s: float, scanned: int) -> str:
        """Decide about a request that succeeds if it passes, and end it; see `Model.admit`."""
        place = self._ranges.find(table, key or "")
        rule = self._rule_against(place, table, key, key or "", entities, now_s)
        if rule:
            return rule
        if not self._account.allows(entities, now_s):
            return "account"
        self._take(table, key, place, entities + scanned, now_s)
        # What takes nothing found no row there.
        if entities + scanned:
            self.wrote((table, key), now_s)
        return ""

    def passage(self, since_s: float, until_s: float) -> Passage:
        """Decides about requests of the second that was served last, or of a later one."""
        metered = None
        if self._metered is not None and self._metered[0] == since_s:
            metered = self._metered[1]
        self._metered = None
        # The server to which one range moves depends on the loads of all until then.
        moves = any(self._moving.may_move(one, since_s, until_s) for one in self._ranges)

        def entrance(place: Place) -> tuple[Bucket | None, Bucket, Range] | None:
            table, key = place
            there = self._ranges.find(table, key or "")
            if moves or not self._moving.allows(there, since_s):
                return None
            bucket = None
            if key is not None and (metered is None or place in metered):
                bucket = self._partitions.bucket(table, key, since_s)
            return bucket, self._servers[there.server], there

        return Passage(self, self._account, entrance, len(self._ranges), (since_s + until_s) / 2)

    def wrote(self, place: Place, now_s: float) -> int:
        """Note a request that passed; the result differs from before if ranges were split."""
        table, key = place
        self._ranges.open_table(table, now_s)
        if key is not None:
            self._ranges.write(table, key, now_s)
        return len(self._ranges)

    def bucket(self, table: str, key: str, now_s: float) -> Bucket:
        """The bucket of a partition, to decide about its requests where nothing else matters."""
        return self._partitions.bucket(table, key, now_s)

    def decided(
        self, table: str, key: str, entities: int, refused_s: Sequence[float], now_s: float
    ) -> None:
        """Note what became of requests that were decided about by the bucket of a partition alone.

        ``entities`` passed; ``refused_s`` is the first and last instant of a refusal, if there was
        one, and ``now_s`` the middle of the time.
        """
        self.note(self._ranges.find(table, key), (table, key), entities, refused_s, now_s)
        if entities:
            self.wrote((table, key), now_s)

    def note(
        self, there: Range, place: Place, entities: int, refused_s: Sequence[float], now_s: float
    ) -> None:
        """Note what a range served, and that it refused requests, one of them for a place."""
        table, key = place
        for at_s in refused_s:
            self._moving.refused(there, self._ranges, table, key or "", at_s)
        if entities:
            self._ranges.served(there, entities, now_s)
            self._ramping.served(there, self._ranges, entities, now_s)

    def take(self, table: str, key: str | None, entities: int, now_s: float) -> None:
        """Take what a page of a query scans besides those of its first partition."""
        self._take(table, key, self._ranges.find(table, key or ""), entities, now_s)

    def take_spread(self, table: str, firsts: Sequence[str], entities: int, now_s: float) -> None:
        """Take what a page scans of partitions that are not told apart.

        They are taken to be evenly spread over the ranges of these keys.
        """
        each, rest = divmod(entities, len(firsts))
        for number, key in enumerate(firsts if each else firsts[:rest]):
            part = each + (number < rest)
            self._take(table, None, self._ranges.find(table, key), part, now_s)

    def borders(self, table: str, first: str, before: str | None) -> Sequence[str]:
        """The keys of a range, but for its first one, at which the table is on another server.

        They are as `harness.model.entity.sort_key` has them.
        """
        found = self._ranges.borders(table, first)
        return found if before is None else found[: bisect.bisect_left(found, sort_key(before))]

    def take_elsewhere(self, table: str, key: str, entities: int, now_s: float) -> None:
        """Take what passed the bucket of a partition from those of its server and the account."""
        self._servers[self._ranges.find(table, key).server].take(entities, now_s)
        self._account.take(entities, now_s)

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
        return "" if asked.keys is None else asked.keys.first[0]

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

    def _take_scanned(
        self, asked: Asked, by_partition: Mapping[str | None, int], now_s: float
    ) -> None:
        """Take what a page scanned: more than the one entity of its arrival, or that one back."""
        taken, table = 1, asked.ranged_table
        for key, entities in by_partition.items():
            left, taken = max(0, entities - taken), max(0, taken - entities)
            if left:
                place = self._ranges.find(table, self._position(asked, key))
                self._take(table, key, place, left, now_s)
        if taken:
            self.give_back(asked, now_s)

    def _take(self, table: str, key: str | None, place: Range, entities: int, now_s: float) -> None:
        if key is not None:
            self._partitions.take(table, key, entities, now_s)
        self._servers[place.server].take(entities, now_s)
        self._account.take(entities, now_s)
        self._ranges.served(place, entities, now_s)
        self._ramping.served(place, self._ranges, entities, now_s)


def _parts(asked: Asked, first_key: str | None) -> Sequence[tuple[str | None, int]]:
    """Return the entities of a request by partition."""
    if asked.kind is not _TRANSACTION or asked.partition_key is not None:
        return ((first_key, asked.entities),)
    # The service refuses a transaction over several partitions. Azurite accepts it.
    return tuple(collections.Counter(row.partition_key for row in asked.rows).items())


@dataclasses.dataclass(slots=True)
class _Passed:
    """What became of the requests to a range.

    Attributes:
        place: One of its places.
        taken: Entities that passed.
        refused_s: The first and last instant of a refusal that heats the range.
    """

    there: Range
    server: Bucket
    place: Place
    taken: int = 0
    refused_s: list[float] = dataclasses.field(default_factory=list)


class Passage:
    """Decides one by one about requests of a second that the limits could refuse, in order of time.

    The load of a range of keys is noted at the `end` of the second, or before it may be split,
    which saves most of the work. ``entrance`` finds what a place has to pass: the bucket of its
    partition, if that matters, and that of the server of its range; None where the range is
    offline, or could move.
    """

    def __init__(
        self,
        storage: StorageLimits,
        account: Bucket,
        entrance: Callable[[Place], tuple[Bucket | None, Bucket, Range] | None],
        version: int,
        middle_s: float,
    ) -> None:
        self._storage, self._account = storage, account
        self._entrance = entrance
        # The number of ranges.
        self._version = version
        self._middle_s = middle_s
        # By the identities of ranges.
        self._ranges: dict[int, _Passed] = {}
        # Forgotten as soon as a range is split.
        self._places: dict[Place, tuple[Bucket | None, _Passed] | None] = {}
        # Places that are known to have rows; it does not matter once no range can be split.
        self._written: set[Place] = set()

    def admit(self, place: Place, asked: int, taken: int, now_s: float) -> str:
        """Decide about a request; see `Model.admit`. ``taken`` includes what it asks for."""
        known = self._places
        entered = known[place] if place in known else self._entered(place)
        if entered is None:
            return self._storage.admit(*place, asked, now_s, taken - asked)
        bucket, passed = entered
        server = passed.server
        if bucket is not None and not bucket.allows(asked, now_s):
            rule = "partition"
        elif not server.allows(asked, now_s):
            rule = "server"
        elif not self._account.admit(asked, taken, now_s):
            return "account"
        else:
            if bucket is not None:
                bucket.take(taken, now_s)
            server.take(taken, now_s)
            passed.taken += taken
            # What takes nothing found no row there.
            if taken and self._version < MOST_RANGES and place not in self._written:
                self._wrote(place, passed, now_s)
            return ""
        passed.refused_s[1:] = [now_s]
        return rule

    def take(self, place: Place, entities: int, now_s: float) -> None:
        """Take what a request that was admitted scans besides, as its answer tells."""
        known = self._places
        entered = known[place] if place in known else self._entered(place)
        if entered is None:
            self._storage.take(*place, entities, now_s)
            return
        bucket, passed = entered
        if bucket is not None:
            bucket.take(entities, now_s)
        passed.server.take(entities, now_s)
        self._account.take(entities, now_s)
        passed.taken += entities

    def end(self) -> None:
        """Note the loads and the refusals."""
        for passed in self._ranges.values():
            self._note(passed)

    def _entered(self, place: Place) -> tuple[Bucket | None, _Passed] | None:
        found, entered = self._entrance(place), None
        if found is not None:
            bucket, server, there = found
            passed = self._ranges.get(id(there))
            if passed is None:
                passed = self._ranges[id(there)] = _Passed(there, server, place)
            entered = bucket, passed
        self._places[place] = entered
        return entered

    def _wrote(self, place: Place, passed: _Passed, now_s: float) -> None:
        """Note that a place has rows, which may split its range."""
        self._written.add(place)
        self._note(passed)
        version = self._storage.wrote(place, now_s)
        if version != self._version:
            self._version = version
            self._places.clear()

    def _note(self, passed: _Passed) -> None:
        self._storage.note(
            passed.there, passed.place, passed.taken, passed.refused_s, self._middle_s
        )
        passed.taken, passed.refused_s = 0, []
