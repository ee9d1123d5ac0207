"""What queries scan: what is said of each range is what is in it, whatever the keys."""

from __future__ import annotations

import collections
import random
import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.operation import WHOLE_TABLE, Kind, Operation
from harness.workload.entity_factory import GROUPS, EntityFactory
from harness.workload.keys.design import KeyDesign
from harness.workload.mix import Action, ActionMix
from harness.workload.queries import Queries, QueryShape
from harness.workload.workload import Workload
from tests.support.driving import first_of
from tests.support.examples import examples
from tests.support.keys import NAMES, design, sized, spread

SCANS = (
    Action.ROW_RANGE_SCAN,
    Action.PARTITION_SCAN,
    Action.PARTITION_RANGE_SCAN,
    Action.FULL_TABLE_SCAN,
)
Row = tuple[str, str, int, int]
"""PartitionKey, RowKey, Number, Group."""
ROW_KEYS = (
    "{row:pad8}",
    "{row}",
    "{row:inverted}",
    "{row:guid}",
    "{row:hash4}-{row:pad8}",
    "{kind}-{row:pad8}",
    "{row:pad8}-{kind}",
)


DESIGNS = [*((name, None) for name in NAMES), *(("rows", row_key) for row_key in ROW_KEYS)]
"""Names of documented designs; and other RowKeys of partitions that are spread."""


def designed(name: str, partitions: int, rows: int, row_key: str | None = None) -> KeyDesign:
    """The documented design of this name, or one with these RowKeys."""
    if row_key is None:
        return sized(name, partitions, rows)
    fields = {"key": {"values": partitions}}
    if "{kind}" in row_key:
        fields["kind"] = {"values": 3}
    return design("{key}", row_key, fields=fields, rows_per_partition=rows)


def workload(
    of: KeyDesign, *actions: Action, kinds: tuple[Kind, ...] = (), **shape: object
) -> Workload:
    return Workload(
        transaction_size=2,
        transaction_kinds=kinds or (Kind.UPSERT_MERGE,),
        design=of,
        mix=ActionMix(dict.fromkeys(actions, 1.0)),
        entities=EntityFactory(1024, "run1"),
        queries=QueryShape(**shape),  # type: ignore[arg-type]
    )


def loaded(of: Workload) -> list[Row]:
    """Every row of the first table, after loading."""
    return [row for operation in of.loading() for row in rows_of(operation) if not operation.table]


def rows_of(operation: Operation) -> Iterator[Row]:
    for part in operation.parts or (operation,):
        assert part.properties is not None
        number, group = part.properties["Number"], part.properties["Group"]
        assert isinstance(number, int)
        assert isinstance(group, int)
        yield part.partition_key, part.row_key, number, group


def in_range(query: Operation, rows: list[Row]) -> list[Row]:
    """Rows of the key range, compared as text: what a service scans."""
    return [
        row
        for row in rows
        if query.partition_key in (WHOLE_TABLE, row[0])
        and (query.key_range.partition_from is None or query.key_range.partition_from <= row[0])
        and (query.key_range.partition_before is None or row[0] < query.key_range.partition_before)
        and (query.key_range.row_from is None or query.key_range.row_from <= row[1])
        and (query.key_range.row_before is None or row[1] < query.key_range.row_before)
    ]


TERM = re.compile(r"(Number|Group) (ge|lt) (\d+)")


def passing(query: Operation, rows: list[Row]) -> list[Row]:
    """Of these rows those that the filter lets through."""
    kept = rows
    for term in (query.filter or "").split(" and ") if query.filter else ():
        match = TERM.fullmatch(term)
        assert match is not None, term
        place = 2 if match[1] == "Number" else 3
        bound = int(match[3])
        kept = [row for row in kept if (int(row[place]) >= bound) is (match[2] == "ge")]
    return kept


@pytest.mark.parametrize(("name", "row_key"), DESIGNS)
@examples(25)
@given(
    partitions=st.integers(1, 25),
    rows=st.integers(1, 30),
    width=st.integers(1, 40),
    across=st.integers(1, 12),
    by_key_bounds=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_a_range_has_as_many_entities_as_is_said(
    name: str,
    row_key: str | None,
    partitions: int,
    rows: int,
    width: int,
    across: int,
    by_key_bounds: bool,
    seed: int,
) -> None:
    """Every scan of every design scans exactly what it says, and brings what was asked for."""
    made = designed(name, partitions, rows, row_key)
    of = workload(made, *SCANS, rows=width, partitions=across, by_key_bounds=by_key_bounds)
    there = loaded(of)
    sizes = collections.Counter(row[0] for row in there)
    rng = random.Random(seed)
    for _ in range(8):
        query = first_of(of.next_task(rng))
        scanned = in_range(query, there)
        assert (query.key_range.entities, query.key_range.exact) == (len(scanned), True)
        expected = {
            "full_table_scan": len(there),
            "partition_scan": len(scanned),
            "row_range_scan": min(width, sizes[query.partition_key]),
        }.get(query.label)
        if query.filter is None and expected is not None:
            assert len(scanned) == expected


@pytest.mark.parametrize("name", NAMES)
def test_a_range_of_partitions_brings_the_same_entities_in_any_design(name: str) -> None:
    """Neighbours by number are asked for, whether keys keep them together or not."""
    made = sized(name, 20, 6)
    of = workload(made, Action.PARTITION_RANGE_SCAN, partitions=4)
    there = loaded(of)
    sizes = collections.Counter(row[0] for row in there)
    rng = random.Random(3)
    for _ in range(20):
        query = first_of(of.next_task(rng))
        found = passing(query, in_range(query, there))
        partitions = {row[0] for row in found}
        assert len(partitions) == min(4, made.count)
        assert len(found) == sum(sizes[partition] for partition in partitions)
        numbers = sorted(number for _, _, number, _ in found)
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        if made.in_order:
            assert query.filter is None
        else:
            assert query.key_range.entities == len(there)


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("compare-append-only", {}),
        # Two numbers of the same width have the order of their keys, 'p9' and 'p29' have not.
        ("append-only-unpadded", {**dict.fromkeys([*range(3, 10), *range(80, 100)], 20)}),
    ],
)
def test_bounds_of_keys_miss_numbers_that_are_not_padded(
    name: str, missing: dict[int, int]
) -> None:
    """Where the key of the last number sorts before that of the first, nothing is found."""
    of = workload(sized(name, 120), Action.PARTITION_RANGE_SCAN, partitions=20, by_key_bounds=True)
    there = loaded(of)
    rng = random.Random(3)
    for _ in range(400):
        query = first_of(of.next_task(rng))
        assert query.key_range.wanted == 20
        first = int((query.key_range.partition_from or "").removeprefix("p"))
        if name == "compare-append-only" or first > 2:
            found = passing(query, in_range(query, there))
            assert 20 - len(found) == missing.get(first, 0), first


@pytest.mark.parametrize("row_key", ROW_KEYS)
def test_a_range_of_rows_brings_neighbours_however_rows_are_named(row_key: str) -> None:
    """Where RowKeys keep no order the whole partition is scanned for the same rows."""
    made = designed("rows", 3, 50, row_key)
    of = workload(made, Action.ROW_RANGE_SCAN, rows=7)
    there = loaded(of)
    rng = random.Random(4)
    for _ in range(30):
        query = first_of(of.next_task(rng))
        found = passing(query, in_range(query, there))
        numbers = sorted(number for _, _, number, _ in found)
        assert numbers == list(range(numbers[0], numbers[0] + 7))
        assert query.key_range.entities == (7 if made.row_order else 50)


@pytest.mark.parametrize("share", [0.001, 0.01, 0.25, 0.999])
def test_density_is_the_share_that_a_filter_lets_through(share: float) -> None:
    """Of entities numbered on end a filter lets through the share that was asked for."""
    of = workload(spread(4, 1000), Action.FULL_TABLE_SCAN, returned_share=share)
    query = first_of(of.next_task(random.Random(1)))
    there = loaded(of)
    assert len(passing(query, there)) == round(share * GROUPS) * 4
    assert query.key_range.entities == 4000


def test_density_of_one_is_no_filter() -> None:
    """What brings everything is asked for without a filter."""
    query = Queries(spread(4, 10), QueryShape(), moving=False).table()
    assert query.filter is None


def test_what_is_selected_and_how_much_at_most_is_handed_on() -> None:
    """Projection and $top are those of the shape, on every kind of scan."""
    shape = QueryShape(select=("Number", "Group"), top=10)
    queries = Queries(spread(4, 10), shape, moving=False)
    rng = random.Random(1)
    for query in (
        queries.row_range(1, rng),
        queries.partition(2),
        queries.partition_range(rng),
        queries.table(),
    ):
        assert (query.select, query.top) == (("Number", "Group"), 10)


MOVING = (Action.INSERT, Action.DELETE, Action.READ_THEN_WRITE, Action.KEY_CHANGE)


@pytest.mark.parametrize("moving", MOVING)
@pytest.mark.parametrize(("name", "row_key"), DESIGNS)
def test_what_is_said_to_be_exact_is_exact_while_rows_come_and_go(
    moving: Action, name: str, row_key: str | None
) -> None:
    """A range that is said to stand still holds the same rows after any number of inserts."""
    made = designed(name, 8, 6, row_key)
    of = workload(made, *SCANS, moving, rows=3, partitions=2)
    there = loaded(of)
    draw, rng = made.picker(), random.Random(5)
    for worker in (0, 1, 9999):
        for number in range(1, 60):
            key = made.new(draw(rng), worker, number)
            there.append((key.partition_key, key.row_key, -1, -1))
    for _ in range(60):
        query = first_of(of.next_task(rng))
        if query.key_range.entities is None:
            continue
        if query.key_range.exact:
            assert query.key_range.entities == len(in_range(query, there))
            assert query.label == "row_range_scan"


@pytest.mark.parametrize("action", [action for action in Action if action not in SCANS])
def test_scans_say_what_may_move(action: Action) -> None:
    """Beside a task that adds or removes rows, a scan of a partition is not sure of its count."""
    of = workload(spread(3, 20), Action.PARTITION_SCAN, action)
    rng = random.Random(6)
    scans = [
        one
        for one in (first_of(of.next_task(rng)) for _ in range(60))
        if one.label == "partition_scan"
    ]
    assert scans
    assert {one.key_range.exact for one in scans} == {action not in MOVING}


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind.part])
def test_transactions_that_move_rows_are_known(kind: Kind) -> None:
    """It depends on what is in the transactions whether a scan beside them is sure."""
    of = workload(spread(3, 20), Action.FULL_TABLE_SCAN, Action.TRANSACTION, kinds=(kind,))
    rng = random.Random(7)
    scans = [
        one
        for one in (first_of(of.next_task(rng)) for _ in range(60))
        if one.key_range.entities is not None
    ]
    assert scans
    moves = kind in (Kind.INSERT, Kind.DELETE)
    assert {one.key_range.exact for one in scans} == {not moves}


@pytest.mark.parametrize(("width", "share"), [(100, 0.01), (100, 0.5), (700, 0.05), (10, 0.3)])
def test_density_holds_in_any_range(width: int, share: float) -> None:
    """Also of a short range of neighbours a filter lets through about the share asked for."""
    of = workload(spread(4, 1000), Action.ROW_RANGE_SCAN, rows=width, returned_share=share)
    there = loaded(of)
    rng = random.Random(8)
    for _ in range(50):
        query = first_of(of.next_task(rng))
        found = len(passing(query, in_range(query, there)))
        assert abs(found - width * share) <= 2
