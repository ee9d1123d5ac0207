"""Key designs: what holds for all of them, whatever their fields and templates."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from harness.model.entity import key_problem
from harness.profile.settings.keys import FieldSettings, Keys, design_of, key_problems
from harness.workload.keys.design import Key, KeyDesign
from tests.support.examples import examples
from tests.support.keys import NAMES, design, documented, spread

WORKERS = (0, 1, 12, 99, 100, 9999)
TOLD_ENOUGH = examples(100)
FIELDS = {
    "city": FieldSettings(values=("A", "Aachen", "Köln 🦊")),
    "user": FieldSettings(values=5, distribution="zipfian"),
    "kind": FieldSettings(values=("b", "a"), distribution="hot", hot_share=0.7),
    "day": FieldSettings(history="3 days"),
    "row": FieldSettings(sequence=True),
    "late": FieldSettings(sequence=True, distribution="latest"),
}
PARTS = [
    "{city}",
    "{city:lower}",
    "{user}",
    "{user:bucket3}",
    "{user:hash2}",
    "{user:last1}",
    "{city+user:bucket2}",
    "{kind}",
    "{day:day}",
    "{day:month}",
    "{day:ticks}",
    "{day:inverted}",
    "{day}",
    "{row}",
    "{row:pad6}",
    "{row:inverted}",
    "{row:guid}",
    "{row:bucket4}",
    "{row:random4}",
    "{late:pad6}",
    "{late:guid}",
    "text",
]
templates = st.builds(
    str.join,
    st.sampled_from(["_", ""]),
    st.lists(st.sampled_from(PARTS), min_size=0, max_size=3),
)


@st.composite
def designs(draw: st.DrawFn) -> KeyDesign:
    """A design of any templates that fit together."""
    partition_key, row_key = draw(templates), draw(templates)
    used = {name for name in FIELDS if f"{{{name}" in partition_key + row_key}
    used |= {name for name in ("user",) if f"+{name}" in partition_key + row_key}
    fields = {name: FIELDS[name] for name in used}
    rows = draw(st.integers(1, 7) | st.none())
    keys = Keys(partition_key=partition_key, row_key=row_key, rows_per_partition=rows)
    if any(key_problems(fields, keys)):
        keys = Keys(partition_key=partition_key, row_key=f"{row_key}{{row:pad8}}")
        used.add("row")
        fields = {name: FIELDS[name] for name in used}
    if any(key_problems(fields, keys)):
        return design()
    note(repr(keys))
    return design_of(fields, keys)


def loaded(made: KeyDesign) -> list[list[Key]]:
    """The loaded keys of each partition, by number."""
    return [
        [made.key(partition, row) for row in range(made.rows.of(partition))]
        for partition in range(made.count)
    ]


def texts(keys: list[Key]) -> list[tuple[str, str]]:
    return [(key.partition_key, key.row_key) for key in keys]


def new(made: KeyDesign, each: int = 5) -> list[Key]:
    """Keys of new rows of several workers, of what they drew."""
    draw, rng = made.picker(), random.Random(1)
    return [
        made.new(draw(rng), worker, number) for worker in WORKERS for number in range(1, each + 1)
    ]


@TOLD_ENOUGH
@given(designs())
def test_loaded_keys_are_distinct_and_valid(made: KeyDesign) -> None:
    """No two loaded entities have the same keys, and the service takes all."""
    keys = texts([*itertools.chain(*loaded(made))])
    assert len(set(keys)) == len(keys) == made.rows.total
    assert [text for key in keys for text in key if key_problem(text) is not None] == []


@TOLD_ENOUGH
@given(designs())
def test_new_keys_are_distinct_over_all_workers(made: KeyDesign) -> None:
    """New entities never have the keys of a loaded one, or of one by another worker."""
    if made.creates:
        keys = texts([*itertools.chain(*loaded(made)), *new(made)])
        assert len(set(keys)) == len(keys)


@TOLD_ENOUGH
@given(designs())
def test_a_partition_has_one_key_and_its_rows(made: KeyDesign) -> None:
    """All rows of a number have its PartitionKey, which no other number has."""
    names = [made.partition_key(number) for number in range(made.count)]
    assert len(set(names)) == len(names)
    for name, rows in zip(names, loaded(made), strict=True):
        assert {key.partition_key for key in rows} == {name}


@TOLD_ENOUGH
@given(designs())
def test_keys_have_the_order_that_the_design_claims(made: KeyDesign) -> None:
    """Where it claims one, numbers of partitions and of rows follow the text of the keys."""
    names = [made.partition_key(number) for number in range(made.count)]
    if made.in_order:
        assert names == sorted(names)
    for number in range(made.count):
        keys = [made.row_key(number, row) for row in range(made.rows.of(number))]
        if made.row_order:
            assert keys == sorted(keys, reverse=made.row_order < 0)


@TOLD_ENOUGH
@given(designs())
def test_new_rows_are_outside_of_all_ranges_that_stay(made: KeyDesign) -> None:
    """Where ranges of rows stay as they are, no new row lies between two loaded ones."""
    if not (made.rows_stay and made.row_order and made.creates):
        return
    ends: dict[str, tuple[str, str]] = {}
    for rows in loaded(made):
        keys = sorted(key.row_key for key in rows)
        ends[rows[0].partition_key] = keys[0], keys[-1]
    for key in new(made):
        first, last = ends.get(key.partition_key, ("", ""))
        assert not first < key.row_key < last


@TOLD_ENOUGH
@given(designs(), st.integers(0, 1000))
def test_what_was_drawn_has_a_loaded_row(made: KeyDesign, seed: int) -> None:
    """Every draw leads to a row that there is."""
    draw, rng = made.picker(3), random.Random(seed)
    for _ in range(20):
        drawn = draw(rng)
        partition, row = made.row_of(drawn, rng)
        assert 0 <= partition < made.count
        assert 0 <= row < made.rows.of(partition)
        assert 0 <= made.partition_of(drawn, rng) < made.count


@TOLD_ENOUGH
@given(designs())
def test_shares_add_up(made: KeyDesign) -> None:
    """The shares of all partitions are 1 together, for reads and for new rows."""
    for shares in (made.shares(), made.new_shares()):
        assert shares is None or sum(shares) == pytest.approx(1)


@examples(25)
@given(designs())
def test_shares_are_those_of_draws(made: KeyDesign) -> None:
    """What is calculated is what many draws show, within their scatter."""
    shares = made.shares()
    if shares is None:
        return
    draw, rng, draws = made.picker(), random.Random(5), 4000
    counted = [0] * made.count
    for _ in range(draws):
        counted[made.partition_of(draw(rng), rng)] += 1
    for number, share in enumerate(shares):
        assert counted[number] / draws == pytest.approx(share, abs=0.05)


@pytest.mark.parametrize("name", NAMES)
def test_documented_designs_make_keys(name: str) -> None:
    """Each documented design can be loaded, and takes inserts with keys of their own."""
    made = documented(name)
    keys = texts([*itertools.chain(*loaded(made)), *new(made)])
    assert made.creates
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("months", [1, 12, 60])
def test_the_hottest_share_of_inserts_does_not_depend_on_the_history(months: int) -> None:
    """The customer is drawn by Zipf, and all inserts are now, however many months there are."""
    made = design(
        "{customer}_{time:month}",
        fields={
            "customer": {"values": 1000, "distribution": "zipfian"},
            "time": {"history": f"{months} months"},
        },
    )
    shares = made.new_shares()
    assert shares is not None
    assert max(shares) == pytest.approx(0.1294, abs=0.0001)


def test_a_calculated_suffix_can_be_calculated_from_the_row_key() -> None:
    """A loaded and a new row have the suffix that their number has, so that reads find them."""
    made = design("x{row:bucket8}", "{row}", rows_per_partition=20)
    suffixes: dict[str, set[str]] = {}
    for key in (*itertools.chain(*loaded(made)), *new(made)):
        again = design("x{n:bucket8}", "{n}", fields={"n": {"values": (key.row_key,)}})
        suffixes.setdefault(again.partition_key(0), set()).add(key.partition_key)
    assert {one: {one} for one in suffixes} == suffixes


def test_reads_prefer_the_newest_rows_of_a_partition() -> None:
    """A time in the RowKey is read by age: the last rows in time, which sort first here."""
    made = design(
        "{device}",
        "{time:inverted}",
        fields={"device": {"values": 2}, "time": {"history": "7 days"}},
        rows_per_partition=100,
    )
    draw, rng = made.picker(), random.Random(2)
    ages = [99 - made.row_of(draw(rng), rng)[1] for _ in range(1000)]
    assert sum(age < 10 for age in ages) > 500


def test_a_list_gives_each_partition_its_rows() -> None:
    """Rows are numbered over all partitions, one after the other."""
    made = spread(3, (2, 1, 3))
    assert [made.rows.of(number) for number in range(3)] == [2, 1, 3]
    assert [key.row_key[-1] for key in itertools.chain(*loaded(made))] == list("012345")
