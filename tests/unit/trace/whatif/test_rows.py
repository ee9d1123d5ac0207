"""Queries in simulated time scan the rows that are there, whatever the limits refused before."""

from __future__ import annotations

import heapq
import random
from collections import Counter
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from harness.gateway.demand import Demand
from harness.gateway.limits import GatewayLimits, Rate
from harness.gateway.model import Model
from harness.model.operation import Kind
from harness.trace.operations import Batch, Detail, TracedParts, TracedQuery
from harness.trace.whatif.rekeying import Rekeying
from harness.trace.whatif.rows import Arrivals, Changes, KnownRows, MissingRows, RowScan
from harness.trace.whatif.scheme import as_recorded
from harness.trace.whatif.simulation import FIRST, Request, Simulation
from harness.trace.whatif.units import Loads, PagedScan, Scanned, ScanPage
from harness.workload.retry import ScheduledBackoff
from tests.support.traced import shape

PLACE = "", "p"
# No multiple of a millisecond fills a bucket to a whole number, where rounding would decide.
LIMITS = GatewayLimits(
    partition=Rate(entities_per_s=12.345678901), account=Rate(entities_per_s=1e6)
)
SECONDS = 6


class Made(NamedTuple):
    """An operation on rows of one partition; a query scans those from the first to the last."""

    at_ms: int
    kind: Kind
    rows: tuple[str, ...]

    def apply(self, rows: set[str]) -> int:
        """Do it, and return its entity count."""
        if self.kind is Kind.QUERY:
            first, before = self.rows
            return sum(first <= row < before for row in rows)
        if self.kind is Kind.DELETE:
            there = len(rows.intersection(self.rows))
            rows.difference_update(self.rows)
            return there
        rows.update(self.rows)
        return len(self.rows)

    @property
    def asked(self) -> int:
        return 1 if self.kind is Kind.QUERY else len(self.rows)


def drawn(rng: random.Random) -> list[Made]:
    """Rows are written in bulk, one by one and again; queries may find some that come later."""
    made, numbers = [], iter(range(10_000))
    names: list[str] = []
    for at_ms in sorted(rng.sample(range(SECONDS * 1000), k=120)):
        kind = rng.choice((Kind.INSERT, Kind.UPSERT_MERGE, Kind.TRANSACTION, Kind.QUERY))
        if kind is Kind.QUERY:
            rows = tuple(sorted(rng.choices(["", *names, "r0100", "s"], k=2)))
        elif kind is Kind.UPSERT_MERGE and names and rng.random() < 0.5:
            rows = (rng.choice(names),)
        else:
            parts = 3 if kind is Kind.TRANSACTION else 1
            rows = tuple(f"r{next(numbers):04}" for _ in range(parts))
            names += rows
        made.append(Made(at_ms, kind, rows))
    return made


def recorded(made: list[Made]) -> Batch:
    """The operations as a trace without throttling has them."""
    there: set[str] = set()
    columns = []
    shapes = {kind: shape(kind) for kind in {one.kind for one in made}}
    for one in made:
        row = one.rows[0]
        detail: Detail = None
        if one.kind is Kind.QUERY:
            row, detail = "", TracedQuery(row_from=one.rows[0], row_before=one.rows[1])
        elif one.kind is Kind.TRANSACTION:
            parts = len(one.rows)
            row, detail = "", TracedParts((Kind.INSERT,) * parts, one.rows, (0,) * parts)
        entities = one.apply(there)
        at_ms = one.at_ms
        columns.append((at_ms, at_ms, shapes[one.kind], "p", row, entities, 0, 0, 0, detail, None))
    return Batch(*[list(column) for column in zip(*columns, strict=True)])


def with_rows(made: list[Made], waits: tuple[float, ...]) -> Counter[str]:
    """What the model decides in order of time, with the rows that are there at each instant."""
    model, there = Model(LIMITS, 0.0, stored=False), set[str]()
    found: Counter[str] = Counter()
    heap = [(one.at_ms / 1000, 1, number, 0) for number, one in enumerate(made)]
    while heap:
        at_s, _, number, attempt = heapq.heappop(heap)
        one = made[number]
        found["attempts"] += 1
        scanned = one.apply(there) - 1 if one.kind is Kind.QUERY else 0
        if model.admit("", "p", one.asked, at_s, scanned):
            found["refused"] += 1
            if attempt < len(waits):
                heapq.heappush(heap, (at_s + waits[attempt], 0, number, attempt + 1))
        elif one.kind is not Kind.QUERY:
            one.apply(there)
    return found


def requested(loads: Loads) -> list[Request]:
    """The first attempts at the operations."""
    assert loads.effects is not None
    effects, shifts = loads.effects, loads.effects.shifts
    return [
        (at_ms / 1000, FIRST, PLACE, 1, amount, shifts[origin], (effects, origin))
        for at_ms, _, amount, origin in zip(*loads[:4], strict=True)
    ]


@given(st.integers(0, 2**32), st.sampled_from([(), (0.30007,), (0.20003, 0.70011, 1.60023)]))
def test_refused_writes_leave_fewer_rows_to_scan(seed: int, waits: tuple[float, ...]) -> None:
    """The decisions are those of the model with all rows at hand: with retries and without."""
    made = drawn(random.Random(seed))
    loads = Rekeying(as_recorded()).loads(recorded(made))
    requests = requested(loads)
    simulation = Simulation(LIMITS, ScheduledBackoff(delays_s=waits), 1)
    for second in range(SECONDS):
        of_second = [one for one in requests if int(one[0]) == second]
        # More than a second can hold, so that each request is decided about at its instant.
        simulation.serve(second, Demand({PLACE: 10**6}, 100, scans=True), len(of_second))
        simulation.simulate(second, of_second)
    simulation.finish()
    found = simulation.throttling
    counts = Counter(attempts=found.attempts, refused=found.throttled)
    assert counts == with_rows(made, waits)


def test_what_queries_do_not_find_is_not_served() -> None:
    """The rows of a refused transaction are missing in the query after it."""
    made = [
        Made(0, Kind.TRANSACTION, tuple("abcdefghijkl")),
        Made(1, Kind.TRANSACTION, tuple("mnopqr")),
        Made(990, Kind.QUERY, ("a", "z")),
    ]
    batch = recorded(made)
    assert batch.entities == [12, 6, 18]
    loads = Rekeying(as_recorded()).loads(batch)
    assert type(loads.amounts[2]) is Scanned
    simulation = Simulation(LIMITS, None, 1)
    assert simulation.serve(0, Demand({PLACE: 36}, 18, scans=True), 3) == {PLACE}
    simulation.simulate(0, requested(loads))
    assert simulation.throttling.throttled == 1
    assert simulation.lost == {PLACE: 12}


def test_a_deleted_row_is_not_known_any_longer() -> None:
    """An upsert after it makes a new row."""
    batch = recorded(
        [
            Made(0, Kind.UPSERT_MERGE, ("a",)),
            Made(1, Kind.UPSERT_MERGE, ("a",)),
            Made(2, Kind.DELETE, ("a",)),
            Made(3, Kind.UPSERT_MERGE, ("a",)),
        ]
    )
    assert KnownRows().known(batch) == [False, True, True, False]


def test_a_query_misses_the_rows_of_its_own_recorded_partition_alone() -> None:
    """Although a scheme brings the rows of several into one."""
    missing = MissingRows()
    missing.shift(PLACE, "monday", "r1", 1)
    missing.shift(PLACE, "monday", "r2", 1)
    assert missing.in_scan(PLACE, "monday", RowScan(None, None, 1.0)) == 2
    assert missing.in_scan(PLACE, "monday", RowScan("r2", None, 1.0)) == 1
    assert missing.in_scan(PLACE, "tuesday", RowScan(None, None, 1.0)) == 0
    missing.passed(PLACE, "monday", Changes(("r1", "r2"), ("r1", "r2"), ()))
    assert missing.places == {}


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from((1, -1, 0)))),
    st.builds(RowScan, st.none() | st.sampled_from("bce"), st.none() | st.just("d"), st.just(1.0)),
)
def test_a_query_finds_fewer_for_each_missing_row_and_more_for_each_that_is_still_there(
    refused: list[tuple[str, int]], scan: RowScan
) -> None:
    """However the rows came to be missing; 0 is a write that passed."""
    missing = MissingRows()
    for row, by in refused:
        if by:
            missing.shift(PLACE, "monday", row, by)
        else:
            missing.passed(PLACE, "monday", Changes((row,), (), ()))
    found = [missing.of(PLACE, "monday", row) for row in "abcdef" if scan.finds(row)]
    assert missing.in_scan(PLACE, "monday", scan) == sum(found)


def test_a_scan_that_is_tried_again_finds_the_partitions_that_came_meanwhile() -> None:
    """Its load grows by what came to them."""
    came = requested(Rekeying(as_recorded()).loads(recorded([Made(500, Kind.INSERT, ("a",))])))
    came = [(1.5, FIRST, ("", "q"), 1, 1, 1, came[0][-1])]
    page = ScanPage(0, ((PLACE, 3),))
    scan: Request = 0.9, FIRST, ("", None), 1, PagedScan.of((page,), 0.0), 0, came[0][-1]
    writes: list[Request] = [(0.85, FIRST, PLACE, 1, 12, 0, came[0][-1])]
    simulation = Simulation(LIMITS, ScheduledBackoff(delays_s=(1.2,)), 1)
    demand = Demand({PLACE: 15}, 15, scans=True)
    simulation.serve(0, demand, 2, {("", None), PLACE})
    simulation.simulate(0, [*writes, scan], lambda table: [])
    assert simulation.throttling.throttled == 1
    doubtful = simulation.serve(1, Demand({("", "q"): 1}, 1, scans=True), 1)
    simulation.simulate(1, came, lambda table: [one for one in came if one[2] not in doubtful])
    simulation.finish()
    assert simulation.throttling.failed == 0
    assert simulation.lost == {("", "q"): -1, ("", None): 0}


def test_partitions_that_came_are_found_in_the_order_of_the_service() -> None:
    """By UTF-16 units, in which an emoji is before a full-width letter."""
    [request] = requested(Rekeying(as_recorded()).loads(recorded([Made(0, Kind.INSERT, ("a",))])))
    assert request[-1] is not None
    arrivals, emoji = Arrivals(), ("", "\U0001f600")
    arrivals.note(emoji, 1.0, *request[-1])
    assert arrivals.in_table("", 0.0, 2.0, ("a", "\uff21")) == {emoji: 1}
    assert arrivals.in_table("", 0.0, 2.0, ("\uff21", None)) == {}
