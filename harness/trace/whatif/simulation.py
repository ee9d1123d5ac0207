"""The loads of a trace before the limits of the gateway's model, in simulated time.

Partitions whose requests of a second no limit could refuse, in whatever order they arrive, pass as
a whole. Each request of the others is decided about at its instant.
"""

from __future__ import annotations

import copy
import heapq
import math
import operator
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence, Set

from harness.gateway.demand import Demand, Place
from harness.gateway.limits import GatewayLimits
from harness.gateway.model import Model
from harness.gateway.storage import Passage
from harness.measure.record.whatif import SimulatedPart
from harness.model.entity import of_sort_key
from harness.trace.whatif.rows import OTHER, Arrivals, Changes, Effects, MissingRows, RowScan
from harness.trace.whatif.units import NOTHING, PagedScan, Scanned, name_of
from harness.workload.retry import RetryPolicy

_MOST_LOST = 50_000
_DRAWN = 1009
MOST_WAIT_S = 8.0
"""Upper limit of the wait that a refusal states, as in the shipped profiles."""

Origin = tuple[Effects, int] | None
"""Where the effect of a request on rows is looked up; None if it has none."""
Request = tuple[float, int, Place, int, int, int, Origin]
"""An attempt: instant, number, partition, how many attempts with it, and entities; by how many rows
its operation changes the partition (`harness.trace.whatif.rows.Effects.shifts`), and the operation.

The number is that of a retry. At one instant, the order is that of the numbers.
"""
FIRST = sys.maxsize
"""Number of all first attempts."""


class Simulation:
    """Operations that arrive as the trace says, and retry as ``policy`` says, if there is one.

    What are called entities here are hundredths of an RU at the limits of Cosmos DB.

    Attributes:
        throttling: What became of the requests.
        first_rule: The rule that refused the first throttled attempt.
        throttled: Throttled attempts of the second that was simulated last, by partition.
        lost: Entities of operations that failed, and of rows that queries did not find because of
            refused writes, by partition, of 50,000 partitions at most.
        lost_entities: The same of all partitions.
    """

    def __init__(self, limits: GatewayLimits, policy: RetryPolicy | None, seed: int = 0) -> None:
        self._model = Model(limits, 0.0, stored=False)
        self._waits = _waits(policy, seed)
        self.throttling = SimulatedPart(attempts=0, by_rule={}, failed=0, moves=0)
        self.first_rule = ""
        self.throttled: dict[Place, int] = {}
        # Retries by the second in which they are due, and those of this second.
        self._later: dict[int, list[Request]] = {}
        self._due: list[Request] = []
        self._number = 0
        self._doubtful: Set[Place] = frozenset()
        self._paged = False
        self._missing = MissingRows()
        self._arrivals = Arrivals()
        # Refused queries by the numbers of their retries: when they were refused, where they were
        # sent to, and whether they read several partitions.
        self._queries: dict[int, tuple[float, Place, bool]] = {}
        # The tables of which it is noted what comes to partitions that nothing could refuse.
        self._followed: set[str] = set()
        self._passed_whole: Callable[[str], Sequence[Request]] | None = None
        self.lost: dict[Place, int] = {}
        self.lost_entities = 0

    def begin(self, places: Iterable[Place]) -> None:
        """Let partitions have rows: the ranges of keys that the service made of them are there."""
        if self._model.storage is not None:
            for place in places:
                self._model.storage.wrote(place, 0.0)

    def physical(self, demand: Demand) -> dict[str, int]:
        """The demand of each physical partition, by its number."""
        assert self._model.units is not None
        loads = self._model.units.loads(demand.entities)
        return {str(number): charged for number, charged in loads.items()}

    def forked(self, policy: RetryPolicy, seed: int) -> Simulation:
        """A simulation that goes on from here with another policy, whose waits ``seed`` draws."""
        other = copy.deepcopy(self)
        other._waits = _waits(policy, seed)
        return other

    def serve(
        self, second: int, demand: Demand, operations: int, scanned: Set[Place] = frozenset()
    ) -> Set[Place]:
        """Pass the operations of a second that no limit could refuse, as a whole.

        Args:
            scanned: Where queries with several pages or partitions are sent: they are always
                simulated.

        Returns:
            The partitions whose operations have to be simulated one by one; all others are done.
        """
        self._retry(second)
        self._due = self._later.pop(second, [])
        retries = dict.fromkeys(scanned, 0)
        # What comes to a partition while a query of it waits has to be seen.
        retries.update((place, 0) for _, place, _ in self._queries.values())
        self._paged = bool(scanned)
        for _, _, place, _, entities, _, _ in self._due:
            retries[place] = retries.get(place, 0) + entities
            if type(entities) is PagedScan:
                self._paged = True
                for other, count in entities.pages[0].shares:
                    retries[other] = retries.get(other, 0) + count
        if missing := self._missing.places:
            for place in demand.entities:
                if place in missing:
                    retries.setdefault(place, 0)
        self.throttled = {}
        self._doubtful = self._model.serve(demand, second, second + 1, retries)
        self.throttling.attempts += operations
        return self._doubtful

    def simulate(
        self,
        second: int,
        operations: Sequence[Request],
        passed: Callable[[str], Sequence[Request]] | None = None,
    ) -> None:
        """Simulate the operations of a second, in order, and the retries that are due in it.

        Of them, only those of the partitions that `serve` returned are simulated.

        Args:
            passed: The operations of the second to the partitions of a table that `serve` did not
                return. They matter to a query over several partitions that is tried again.
        """
        self._passed_whole = passed
        self._followed.clear()
        if len(self._waits) > 1:
            self._note(request for request in operations if request[2] in self._doubtful)
            for _, (table, _), several in self._queries.values():
                if several:
                    self._follow(table)
        # A query over several partitions takes from those that nothing else could refuse too.
        alone = () if self._paged else self._model.alone
        of_place: dict[Place, list[Request]] = {place: [] for place in alone}
        others: list[Request] = []
        for request in _in_order([*self._due, *operations]):
            place = request[2]
            if place in of_place:
                of_place[place].append(request)
            elif place in self._doubtful:
                others.append(request)
        # In an order that is the same in each run, because retries are numbered as they are drawn.
        for place, requests in sorted(of_place.items(), key=lambda item: name_of(item[0])):
            self._simulate_alone(place, requests, second)
        self._simulate(others, second)
        self._arrivals.forget(second - MOST_WAIT_S if self._queries else math.inf)

    def _note(self, requests: Iterable[Request]) -> None:
        """Note the rows that the operations of a second add and remove."""
        note = self._arrivals.note
        for now_s, _, place, _, _, shift, origin in requests:
            if shift and origin is not None:
                note(place, now_s, *origin)

    def _follow(self, table: str) -> None:
        """Note what this second brings to the other partitions of a table."""
        if table not in self._followed and self._passed_whole is not None:
            self._followed.add(table)
            self._note(self._passed_whole(table))

    def _grown(self, request: Request) -> Request:
        """A query that is tried again, with the rows that came or went since it was refused."""
        now_s, number, place, attempt, entities, shift, origin = request
        since_s, _, several = self._queries.pop(number)
        # At one instant retries come first. What comes with a first attempt came before it.
        since_s = since_s if attempt > 2 else math.nextafter(since_s, math.inf)
        effect = None if origin is None else origin[0].of(origin[1])
        scan = effect if isinstance(effect, RowScan) else None
        own, rows = 0, {}
        known = entities if type(entities) is PagedScan else scan
        if several and not (known is not None and known.full):
            keys = (None, None) if known is None else known.keys
            rows = self._arrivals.in_table(place[0], since_s, now_s, keys)
        elif scan is not None and origin is not None:
            key, _ = origin[0].keys(origin[1])
            own = self._arrivals.in_partition(place, since_s, now_s, key, scan)
        if type(entities) is PagedScan:
            grown: int = entities.grown(own, rows)
            for at, more in rows.items():
                self._lose(at, -more)
        else:
            more = round((own + sum(rows.values())) * (scan.each if scan else 1))
            grown = Scanned(max(0, entities + more))
        self._lose(place, entities - grown)
        return now_s, number, place, attempt, grown, shift, origin

    def _simulate_alone(self, place: Place, requests: Sequence[Request], second: int) -> None:
        """Simulate requests of a second to a partition that only its own limit can refuse."""
        table, key = place
        storage = self._model.storage
        assert key is not None
        assert storage is not None
        admit, again = storage.bucket(table, key, second).admit, self._again
        taken, refused, first_s, last_s = 0, 0, 0.0, 0.0
        soon: list[Request] = []
        for request, entities, about_rows in self._arriving(requests, soon):
            now_s = request[0]
            if admit(1 if type(entities) is Scanned else entities, entities, now_s):
                taken += entities
                if about_rows:
                    self._passed(request, entities)
                continue
            refused, first_s, last_s = refused + 1, first_s or now_s, now_s
            again(request, soon, second)
        if refused:
            self._refused(place, "partition", refused, first_s)
        moments = (first_s, last_s) if refused else ()
        storage.take_elsewhere(table, key, taken, second)
        storage.decided(table, key, taken, moments, second + 0.5)

    def _simulate(self, requests: Sequence[Request], second: int) -> None:
        storage, units = self._model.storage, self._model.units
        passage = None if storage is None else storage.passage(second, second + 1)
        throttled = self.throttled
        # Attempts by rule after the first one, which says when it was, and where.
        refused: dict[str, int] = {}
        soon: list[Request] = []
        # What the queries of the latest instant scanned: other requests of it came before the
        # answers that tell.
        scanned: list[tuple[Place, int, float]] = []
        for request, entities, about_rows in self._arriving(requests, soon):
            now_s, _, place, _, _, _, _ = request
            if scanned and now_s > scanned[0][2]:
                _take(passage, scanned)
            # Of a query, and where nothing was found, one entity is asked for.
            asked, taken = entities, entities
            if type(entities) is Scanned:
                asked, taken = 1, min(1, entities)
            if type(entities) is PagedScan:
                assert passage is not None
                rule = self._rule_against_page(request, entities, passage, soon, second)
            elif passage is not None:
                rule = passage.admit(place, asked, taken, now_s)
                if entities > asked and not rule:
                    scanned.append((place, entities - asked, now_s))
            else:
                rule = self._model.admit(*place, asked, now_s, entities - asked)
            if rule:
                if rule in refused:
                    refused[rule] += 1
                    throttled[place] = throttled.get(place, 0) + 1
                else:
                    refused[rule] = 0
                    self._refused(place, rule, 1, now_s)
                least_s = 0.0
                if units is not None:
                    least_s = min(MOST_WAIT_S, units.retry_after_s(place[1], now_s))
                self._again(request, soon, second, least_s)
            elif about_rows:
                self._passed(request, entities)
        by_rule = self.throttling.by_rule
        for rule, attempts in refused.items():
            by_rule[rule] += attempts
        if passage is not None:
            _take(passage, scanned)
            passage.end()

    def _arriving(
        self, requests: Sequence[Request], soon: list[Request]
    ) -> Iterator[tuple[Request, int, bool]]:
        """Requests in order with the retries of a heap, what they take, and whether they may be
        about rows that are missing.
        """
        missing, waiting = self._missing.places, self._queries
        for request in _with_retries(requests, soon):
            if request[1] in waiting:
                request = self._grown(request)
            _, _, place, attempt, entities, shift, _ = request
            # What adds a row for the first time is about no row that is missing.
            about_rows = place in missing and (shift != 1 or attempt > 1)
            yield request, self._asked_for(request) if about_rows else entities, about_rows

    def _rule_against_page(
        self, request: Request, paged: PagedScan, passage: Passage, soon: list[Request], second: int
    ) -> str:
        """Send a page to its first partition; if it passes, the next one follows.

        What others than doubtful partitions are asked for is taken already, but for retries.
        """
        now_s, _, place, attempt, _, _, origin = request
        storage = self._model.storage
        assert storage is not None
        net = {} if paged.full else self._missing.net
        if paged.returned:
            paged = paged.cut(storage.borders(place[0], *paged.keys), net)
        page = paged.pages[0]
        late = attempt > 1
        takes = [
            (at, max(0, count - net.get(at, 0)))
            for at, count in page.shares
            if late or at in self._doubtful
        ]
        first = page.shares[0][0] if page.shares else place
        several = place[1] is None
        if not several:
            takes.append((place, page.own))
        rule = passage.admit(first, 1, sum(count for at, count in takes if at == first), now_s)
        if rule:
            return rule
        for at, count in takes:
            if at != first:
                storage.take(*at, count, now_s)
        if several and page.own:
            borders = () if page.firsts else storage.borders(place[0], *paged.keys)
            firsts = page.firsts or (paged.keys[0], *map(of_sort_key, borders))
            storage.take_spread(place[0], firsts, page.own, now_s)
        if (rest := paged.rest) is not None:
            self._number = number = self._number + 1
            self.throttling.attempts += 1
            due_s = now_s + paged.page_s
            self._send((due_s, number, place, 1, rest, 0, origin), soon, second)
        return ""

    def _asked_for(self, request: Request) -> int:
        """What a request to a partition with missing rows takes if it passes."""
        _, _, place, _, entities, shift, origin = request
        if origin is None or shift == 1:
            return entities
        effects, at = origin
        key, row = effects.keys(at)
        if shift != OTHER:
            if self._missing.of(place, key, row) != 1:
                return entities
            effect = effects.of(at)
            return effect.without or NOTHING if isinstance(effect, Changes) else entities
        effect = effects.of(at) if type(entities) is Scanned else None
        if not isinstance(effect, RowScan):
            return entities
        fewer = round(self._missing.in_scan(place, key, effect) * effect.each)
        return Scanned(max(0, entities - fewer)) if fewer else entities

    def _passed(self, request: Request, entities: int) -> None:
        """Note that a request passed that may be about rows that are missing."""
        _, _, place, _, wanted, shift, origin = request
        if entities != wanted:
            self._lose(place, wanted - entities)
        if origin is None:
            return
        effects, at = origin
        key, row = effects.keys(at)
        if shift == OTHER or self._missing.of(place, key, row):
            effect = effects.of(at)
            if isinstance(effect, Changes):
                self._missing.passed(place, key, effect)

    def _again(
        self, request: Request, soon: list[Request], second: int, least_s: float = 0.0
    ) -> None:
        """Note the retry of a request that was refused in a second, or its failure.

        ``soon`` is the heap of the retries that are due in this second, and ``least_s`` the wait
        that the refusal states.
        """
        now_s, _, place, attempt, entities, shift, origin = request
        known = self.throttling
        waits = self._waits
        if shift and attempt == 1 and origin is not None:
            effects, at = origin
            key, _ = effects.keys(at)
            for row, by in effects.changed(at):
                self._missing.shift(place, key, row, by)
        if attempt >= len(waits):
            known.failed += 1
            self._lose(place, entities)
            if type(entities) is PagedScan:
                for page in entities.pages:
                    for other, count in page.shares:
                        self._lose(other, count)
            return
        self._number = number = self._number + 1
        if type(entities) is PagedScan or type(entities) is Scanned:
            several = place[1] is None or (
                type(entities) is PagedScan and bool(entities.pages[-1].shares)
            )
            self._queries[number] = now_s, place, several
            if several:
                self._follow(place[0])
        due_s = now_s + max(least_s, waits[attempt][number % _DRAWN])
        known.attempts += 1
        self._send((due_s, number, place, attempt + 1, entities, shift, origin), soon, second)

    def _send(self, request: Request, soon: list[Request], second: int) -> None:
        """Send a request later, which may be in this second."""
        due_in = int(request[0])
        if due_in <= second:
            heapq.heappush(soon, request)
        else:
            self._later.setdefault(due_in, []).append(request)

    def _lose(self, place: Place, entities: int) -> None:
        self.lost_entities += entities
        if place in self.lost or len(self.lost) < _MOST_LOST:
            self.lost[place] = self.lost.get(place, 0) + entities

    def _refused(self, place: Place, rule: str, attempts: int, now_s: float) -> None:
        """Count attempts that were refused, the first of them at an instant."""
        known = self.throttling
        known.by_rule[rule] = known.by_rule.get(rule, 0) + attempts
        self.throttled[place] = self.throttled.get(place, 0) + attempts
        if known.first_s is None or now_s < known.first_s:
            known.first_s, self.first_rule = now_s, rule
            known.first_partition = name_of(place)

    def finish(self) -> None:
        """Simulate what still waits at the end of the trace."""
        self._retry(math.inf)
        self.throttling.moves = self._model.move_count

    def _retry(self, until_s: float) -> None:
        """Simulate the retries of the seconds before one."""
        while self._later and (second := min(self._later)) < until_s:
            self._simulate(_in_order(self._later.pop(second)), second)


def _take(passage: Passage | None, scanned: list[tuple[Place, int, float]]) -> None:
    for place, entities, at_s in scanned:
        assert passage is not None
        passage.take(place, entities, at_s)
    scanned.clear()


def _in_order(requests: list[Request]) -> list[Request]:
    """Requests by their instants; of those at one instant, the first remains the first."""
    return sorted(requests, key=operator.itemgetter(0))


def _with_retries(requests: Sequence[Request], soon: list[Request]) -> Iterator[Request]:
    """Requests in order of their instants, and between them retries that are added to a heap."""
    for request in requests:
        while soon and soon[0] < request:
            yield heapq.heappop(soon)
        yield request
    while soon:
        yield heapq.heappop(soon)


def _waits(policy: RetryPolicy | None, seed: int) -> list[list[float]]:
    """Waits after an attempt, by its number from 1. They repeat after 1,009."""
    waits: list[list[float]] = [[]]
    if policy is not None:
        rng = random.Random(seed)
        for attempt in range(1, policy.retries + 1):
            drawn = [policy.delay_s(attempt, rng) for _ in range(_DRAWN)]
            waits.append([wait_s for wait_s in drawn if wait_s is not None])
    return waits
