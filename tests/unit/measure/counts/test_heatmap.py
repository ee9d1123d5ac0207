"""The heat map: what it shows of each key design, and that its sums stay exact."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from harness.measure.counts.heatmap import MOST_RANGES, HeatMap, PartitionCells, count_operation
from harness.measure.counts.time_course import MOST_COLUMNS
from harness.measure.record.over_time import HeatPart
from harness.model.operation import WHOLE_TABLE
from harness.workload.entity_factory import EntityFactory
from harness.workload.keys.design import KeyDesign
from harness.workload.mix import Action, ActionMix
from harness.workload.workload import Workload
from tests.support.driving import operations
from tests.support.keys import NAMES, sized, spread
from tests.support.wire import over_the_wire

START = 1_700_000_000
SECONDS = 60
PER_S = 100
PICTURES = {
    "compare-single": "line",
    "compare-append-only": "diagonal",
    # Inserts are now: all are of the current day or month.
    "log-by-date": "line",
    "publish-month": "line",
    "prepend-only": "falling diagonal",
    # Numbers that are not padded sort by their first digit: several diagonals in one.
    "append-only-unpadded": "steps",
    # Some customers, tenants and regions are hot.
    **dict.fromkeys(("customer-month", "customer-year", "tenants", "region-category"), "lines"),
    # Two tables: customers that are spread, and the current day of an index by date.
    "index-table": "lines",
}
"""Every other design is an even field."""


def view_of(design: KeyDesign) -> HeatPart:
    """A minute of inserts under these keys, at 100 a second, as a master hears of two workers."""
    source = Workload(
        design=design,
        mix=ActionMix({Action.INSERT: 1.0}),
        entities=EntityFactory(1024, "20260101T000000Z-00000000"),
    )
    inserts = operations(source, random.Random(1))
    master = HeatMap()
    for second in range(SECONDS):
        workers = (HeatMap(), HeatMap())
        for number, operation in enumerate(itertools.islice(inserts, PER_S)):
            workers[number % 2].add_second(START + second, {operation.partition: 1})
        for worker in workers:
            master.merge(over_the_wire(worker))
        # Somebody looks on now and then.
        if second % 10 == 9:
            view = master.view()
    assert view is not None
    return view


def picture(view: HeatPart) -> str:
    """What a reader would call it."""
    rows = [row.entities for row in view.ranges]
    whole = sum(map(sum, rows))
    if max(map(sum, rows)) > whole / 2:
        return "line"
    taken = [sum(1 for count in row if count) / view.columns for row in rows]
    if min(taken) > 0.5:
        even = max(map(sum, rows)) < 3 * whole / len(rows)
        return "field" if even else "lines"
    middles = [sum(n * count for n, count in enumerate(row)) / sum(row) for row in rows]
    steps = [later - earlier for earlier, later in itertools.pairwise(middles)]
    if max(taken) < 0.2 and all(step > 0 for step in steps):
        return "diagonal"
    if max(taken) < 0.2 and all(step < 0 for step in steps):
        return "falling diagonal"
    return "steps"


@pytest.mark.parametrize("name", NAMES)
def test_what_a_key_design_looks_like(name: str) -> None:
    """One key is a line, appended keys are a diagonal, a good spread is an even field."""
    view = view_of(sized(name, 500, 1))
    assert picture(view) == PICTURES.get(name, "field")
    assert sum(sum(row.entities) for row in view.ranges) == SECONDS * PER_S


def test_a_hot_key_is_a_line_of_its_own() -> None:
    """Of a skewed spread the hottest key has a row to itself, by far the brightest."""
    view = view_of(spread(500, 1, distribution="zipfian"))
    hottest, *others = sorted(view.ranges, key=lambda row: -sum(row.entities))
    assert hottest.first == hottest.last
    assert min(1 if count else 0 for count in hottest.entities[1:-1]) == 1
    typical = sorted(sum(row.entities) for row in others)[len(others) // 2]
    assert sum(hottest.entities) > 3 * typical


def test_few_partitions_have_a_row_each() -> None:
    """Up to 64 keys are told apart, however little one of them has."""
    heat = HeatMap()
    for number in range(MOST_RANGES):
        heat.add_second(START, {f"p{number:02d}": 1 if number else 10_000})
    view = heat.view()
    assert view is not None
    assert [(row.first, row.last) for row in view.ranges] == [
        (f"p{number:02d}",) * 2 for number in range(MOST_RANGES)
    ]


def test_edges_stay_where_a_load_stays_as_it_is() -> None:
    """Who follows a range by its first key finds most of them again after twice the load."""
    rng = random.Random(1)
    heat = HeatMap()

    def load(seconds: range) -> set[str]:
        for second in seconds:
            for _ in range(200):
                heat.add_second(START + second, {f"p{rng.randrange(1000):03d}": 1})
        view = heat.view()
        assert view is not None
        return {row.first for row in view.ranges}

    earlier, later = load(range(50)), load(range(50, 100))
    assert len(earlier & later) >= 0.8 * len(earlier)


def test_queries_over_several_partitions_have_a_row_for_each_table() -> None:
    """They are in no place of key order, and come first."""
    heat = HeatMap()
    for key in ("b", WHOLE_TABLE, f"Orders/{WHOLE_TABLE}", "a"):
        heat.add_second(START, {key: 7})
    view = heat.view()
    assert view is not None
    assert [row.first for row in view.ranges] == [WHOLE_TABLE, f"Orders/{WHOLE_TABLE}", "a", "b"]


def test_reads_writes_bytes_and_latencies_are_layers() -> None:
    """Each cell has the entities written, the bytes, and the mean latency, also when merged; a
    partition that is only refused has its row all the same."""
    heat, master = HeatMap(), HeatMap()
    cells: PartitionCells = {}
    count_operation(cells, "a", 1, written=0, transferred=900, took_us=2000)
    heat.add(START, cells)
    again: PartitionCells = {}
    for entities in (1, 2):
        count_operation(again, "a", entities, entities, transferred=50, took_us=3500)
    heat.add(START, again)
    heat.add_throttled("b", START + 1)
    master.merge(over_the_wire(heat))
    master.merge(over_the_wire(heat))
    view = master.view()
    assert view is not None
    assert [
        (row.entities, row.throttled, row.written, row.bytes, row.latency_us) for row in view.ranges
    ] == [
        ((8, 0), (0, 0), (6, 0), (2000, 0), (3000, 0)),
        ((0, 0), (0, 2), (0, 0), (0, 0), (0, 0)),
    ]


def test_nothing_counted_is_no_map() -> None:
    """Before the first operation there is nothing to show."""
    assert HeatMap().view() is None


def test_columns_double_when_all_are_taken() -> None:
    """A long run has as many columns as a short one, each of whole seconds, none lost."""
    heat = HeatMap()
    for second in range(1000):
        heat.add_second(START + second, {"a": 1})
    view = heat.view()
    assert view is not None
    assert view.width_s == 16
    assert view.columns <= MOST_COLUMNS
    [row] = view.ranges
    assert sum(row.entities) == 1000
    assert set(row.entities[1:-1]) == {16}
    assert view.start % 16 == 0


def test_many_keys_take_no_more_memory_than_few() -> None:
    """A hundred thousand keys are at most 64 ranges, in order, with every entity."""
    rng = random.Random(2)
    heat = HeatMap()
    for number in range(100_000):
        heat.add_second(START + number // 5000, {f"{rng.getrandbits(64):016x}": 1})
    heat.add_second(START, {WHOLE_TABLE: 1})
    heat.settle()
    sent = TypeAdapter(HeatMap).dump_python(heat)
    assert len(sent["_bands"]) + len(sent["_tables"]) <= 258
    assert not sent["_pending"]
    view = heat.view()
    assert view is not None
    assert (view.ranges[0].last, sum(view.ranges[0].entities)) == (WHOLE_TABLE, 1)
    assert len(view.ranges) <= MOST_RANGES + 1
    assert sum(sum(row.entities) for row in view.ranges) == 100_001


events = st.lists(
    st.tuples(
        st.text(st.sampled_from("abz09_é😀'\"/"), max_size=4),
        st.integers(0, 400),
        st.integers(1, 100),
        st.booleans(),
    ),
    max_size=200,
)


@given(events, st.integers(1, 5), st.randoms(use_true_random=False))
def test_sums_are_the_same_in_any_order(
    happened: list[tuple[str, int, int, bool]], workers: int, rng: random.Random
) -> None:
    """However the load is shared out and merged, each column holds exactly what happened in it."""
    deltas = [HeatMap() for _ in range(workers)]
    for key, second, entities, refused in happened:
        heat = rng.choice(deltas)
        if refused:
            heat.add_throttled(key, START + second)
        else:
            heat.add_second(START + second, {key: entities})
    rng.shuffle(deltas)
    master = HeatMap()
    for delta in deltas:
        master.merge(over_the_wire(delta) if rng.random() < 0.5 else delta)
    view = master.view()
    if view is None:
        assert not happened
        return
    served, throttled = [0] * view.columns, [0] * view.columns
    for _, second, count, refused in happened:
        column = (START + second - view.start) // view.width_s
        if refused:
            throttled[column] += 1
        else:
            served[column] += count
    assert _sums([row.entities for row in view.ranges]) == served
    assert _sums([row.throttled for row in view.ranges]) == throttled
    in_order = [row for row in view.ranges if not row.first.endswith("/")]
    for earlier, later in itertools.pairwise(in_order):
        assert earlier.first <= earlier.last < later.first <= later.last


def test_entities_of_a_whole_second_keep_its_throttled_attempts() -> None:
    """The order in which the entities and the refusals of a second are added does not matter."""
    heat = HeatMap()
    heat.add_throttled("p", START, 3)
    heat.add_second(START, {"p": 5, "q": 1})
    view = heat.view()
    assert view is not None
    assert [sum(row.throttled) for row in view.ranges] == [3, 0]
    assert [sum(row.entities) for row in view.ranges] == [5, 1]


def _sums(rows: Sequence[Sequence[int]]) -> list[int]:
    return [sum(column) for column in zip(*rows, strict=True)]
