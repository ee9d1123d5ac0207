"""Key schemes: what holds for all of them, and the keys that each is documented with."""

from __future__ import annotations

import itertools
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.entity import key_problem
from harness.workload.keys.row_keys import ROW_KEYS, guid, new_number, scattered
from harness.workload.keys.scheme import Key, KeyScheme, RowCounts
from harness.workload.keys.schemes import SCHEMES
from tests.support.keys import sized

WORKERS = (0, 1, 12, 9999)


def loaded(scheme: KeyScheme) -> list[list[Key]]:
    """The loaded keys of each partition, by number."""
    return [
        [
            Key(
                partition_key=scheme.partition_key(partition),
                row_key=scheme.row_key(partition, row),
            )
            for row in range(scheme.rows.of(partition))
        ]
        for partition in range(scheme.count)
    ]


def inserted(scheme: KeyScheme, each: int = 8) -> list[Key]:
    """Keys of new rows of several workers, with the drawn partitions in turn."""
    return [
        scheme.inserted((worker + number) % scheme.count, worker, number)
        for worker in WORKERS
        for number in range(1, each + 1)
    ]


def texts(keys: list[Key]) -> list[tuple[str, str]]:
    return [(key.partition_key, key.row_key) for key in keys]


@st.composite
def schemes(draw: st.DrawFn, name: str) -> KeyScheme:
    """A scheme of this name, with whatever it takes of partitions, rows, periods and RowKeys."""
    partitions, periods = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    few = draw(st.integers(1, 6) | st.lists(st.integers(1, 6), min_size=1, max_size=7))
    each = few if isinstance(few, int) else few * partitions * periods
    named = draw(st.sampled_from([None, *ROW_KEYS]))
    prefix = draw(st.sampled_from(["p", "", "blog-", "🦊"]))
    # What a scheme refuses is taken back, one after the other; the last one suits them all.
    for count, of_each, kind, span in itertools.product(
        (partitions * periods, 1), (each, 1), (named, None), (periods, 1)
    ):
        rows = RowCounts(count, of_each if isinstance(of_each, int) else of_each[:count])
        row_keys = None if kind is None else ROW_KEYS[kind](rows.partitions)
        if not any(SCHEMES[name].problems(rows, span, row_keys)):
            return SCHEMES[name](rows, prefix=prefix, periods=span, row_keys=row_keys)
    raise AssertionError(f"{name} takes nothing")


every_scheme = pytest.mark.parametrize("name", SCHEMES)
some = settings(max_examples=12, deadline=None)


@every_scheme
@some
@given(data=st.data())
def test_keys_are_taken_by_the_service_and_distinct(name: str, data: st.DataObject) -> None:
    """Loaded and inserted keys, of whichever workers, are valid, and none comes twice."""
    scheme = data.draw(schemes(name))
    keys = texts([*itertools.chain(*loaded(scheme)), *inserted(scheme)])
    assert len(set(keys)) == len(keys)
    assert [text for key in keys for text in key if key_problem(text) is not None] == []


@every_scheme
@some
@given(data=st.data())
def test_what_a_scheme_says_of_itself_is_true_of_its_keys(name: str, data: st.DataObject) -> None:
    """Order, rows of their own and growth are read off the keys."""
    scheme = data.draw(schemes(name))
    partitions = [scheme.partition_key(number) for number in range(scheme.count)]
    assert len(set(partitions)) == scheme.count
    if scheme.in_order:
        assert partitions == sorted(partitions)
    new = inserted(scheme)
    if scheme.one_row:
        assert scheme.rows.total == scheme.count
        every = [*partitions, *(key.partition_key for key in new)]
        assert len(set(every)) == len(every)
    # A period ends after the rows of the last partition; seven inserts of one worker are enough.
    elsewhere = any(
        scheme.inserted(drawn, 0, number).partition_key != partitions[drawn]
        for drawn in range(scheme.count)
        for number in (1, 7)
    )
    assert scheme.grows == elsewhere


@every_scheme
def test_schemes_without_order_have_none(name: str) -> None:
    """In a table of some size the numbers are in key order exactly where the scheme says so."""
    scheme = sized(name, 120)
    partitions = [scheme.partition_key(number) for number in range(scheme.count)]
    assert (partitions == sorted(partitions)) == scheme.in_order


@every_scheme
@some
@given(data=st.data())
def test_rows_ascend_or_descend_as_they_say(name: str, data: st.DataObject) -> None:
    """From the bound before the first to the bound behind the last, RowKeys are in their order.

    New rows lie outside of all that was loaded.
    """
    scheme = data.draw(schemes(name))
    order = scheme.row_keys.order
    if order == 0:
        return
    for partition in range(scheme.count):
        rows = scheme.rows.of(partition)
        keys = [scheme.row_key(partition, row) for row in range(-1, rows + 1)]
        assert keys == sorted(keys, reverse=order < 0)
        for worker in WORKERS:
            new = [scheme.inserted(partition, worker, number).row_key for number in (1, 2)]
            assert new == sorted(new, reverse=order < 0)
            assert all((key > max(keys[:-1])) == (order > 0) for key in new)


@every_scheme
@some
@given(data=st.data())
def test_rows_of_a_transaction_are_distinct(name: str, data: st.DataObject) -> None:
    """New rows of one worker have RowKeys of their own, wherever they go in the end."""
    scheme = data.draw(schemes(name))
    if scheme.one_row:
        return
    drawn = data.draw(st.integers(0, scheme.count - 1))
    rows = [scheme.inserted(drawn, 7, number).row_key for number in range(1, 101)]
    assert len(set(rows)) == 100


@every_scheme
@some
@given(data=st.data())
def test_one_row_is_found_by_its_row_key(name: str, data: st.DataObject) -> None:
    """RowKeys differ between partitions too, unless the design has none."""
    scheme = data.draw(schemes(name))
    rows = [key.row_key for key in [*itertools.chain(*loaded(scheme)), *inserted(scheme)]]
    assert len(set(rows)) == (1 if name == "natural-key" else len(rows))


@every_scheme
@some
@given(data=st.data())
def test_copies_are_keys_too(name: str, data: st.DataObject) -> None:
    """Each entity has one further key for each further table, valid, and none comes twice."""
    scheme = data.draw(schemes(name))
    keys = [*itertools.chain(*loaded(scheme))]
    numbers = [*range(len(keys))]
    for worker in WORKERS:
        for number in range(1, 4):
            keys.append(scheme.inserted(number % scheme.count, worker, number))
            numbers.append(scheme.rows.total + number)
    found: list[tuple[str, str, str]] = []
    for key, number in zip(keys, numbers, strict=True):
        copies = scheme.copies(key, number)
        assert tuple(table for table, _ in copies) == scheme.tables[1:]
        found += [(table, copy.partition_key, copy.row_key) for table, copy in copies]
    assert len(set(found)) == len(found)
    assert [text for copy in found for text in copy[1:] if key_problem(text) is not None] == []


@every_scheme
@some
@given(data=st.data())
def test_every_loaded_partition_has_an_age(name: str, data: st.DataObject) -> None:
    """Ages name each partition once; whoever is older than all is the oldest."""
    scheme = data.draw(schemes(name))
    ages = [scheme.by_age(age) for age in range(scheme.count)]
    assert sorted(ages) == list(range(scheme.count))
    assert scheme.by_age(scheme.count + 5) == ages[-1]


@every_scheme
def test_a_scheme_says_what_it_is_and_who_says_so(name: str) -> None:
    """The docstring opens with a sentence in one line, and names the documents it is from."""
    first, *rest = (SCHEMES[name].__doc__ or "").splitlines()
    assert first.endswith(".")
    assert any(
        document in " ".join(rest)
        for document in (
            "partitioning strategy",
            "key design for blog posts",
            "performance checklist",
            "data partitioning strategies",
        )
    )


def test_growing_keys_go_to_one_end() -> None:
    """Of all workers, every appended key is behind the loaded ones, every prepended one before.

    The number decides, then the worker.
    """
    for name, sign in (("append-only", 1), ("prepend-only", -1)):
        scheme = sized(name, 50)
        last = scheme.partition_key(49 if sign > 0 else 0)
        by_number = [
            [scheme.inserted(0, worker, number).partition_key for worker in WORKERS]
            for number in (1, 2, 1_000_000_000)
        ]
        flat = [key for keys in by_number[::sign] for key in keys]
        assert flat == sorted(flat)
        assert (min(flat) > last) if sign > 0 else (max(flat) < last)


def test_unpadded_numbers_are_in_the_order_of_text() -> None:
    """The mistake, as the document has it: 111 comes before 2."""
    scheme = sized("append-only-unpadded", 200)
    assert scheme.partition_key(11) < scheme.partition_key(111) < scheme.partition_key(2)
    # 201 to 299 are between what was loaded as 20 and as 3, not behind the last.
    new = scheme.inserted(0, 5, 2).partition_key
    assert new.startswith("p201")
    assert scheme.partition_key(20) < new < scheme.partition_key(3)


def tenth(key: str) -> int:
    """The tenth, from 0, that a scattered PartitionKey is in, of all there may be in key order."""
    prefix, _, rest = key.partition("-")
    if prefix == "user":
        return int(rest, 16) * 10 >> 64
    return int(prefix) // 100 if len(prefix) == 3 else uuid.UUID(key).int * 10 >> 128


@pytest.mark.parametrize("name", ["unique", "natural-key", "hash-prefix"])
def test_scattered_keys_are_even_over_the_table(name: str) -> None:
    """Loaded and new keys fall evenly over tenths of key order: chi-square of 10 cells."""
    scheme = sized(name, 2000)
    loaded_keys = [scheme.partition_key(number) for number in range(2000)]
    new_keys = [
        scheme.inserted(0, worker, number).partition_key
        for worker in (0, 1)
        for number in range(1000)
    ]
    for keys in (loaded_keys, new_keys):
        tenths = [tenth(key) for key in sorted(keys)]
        assert tenths == sorted(tenths), "a later key is in no earlier tenth"
        cells = [tenths.count(cell) for cell in range(10)]
        # 9 degrees of freedom: 33.7 is exceeded once in ten thousand; nothing here is by chance.
        assert sum((cell - 200) ** 2 / 200 for cell in cells) < 33.7


@given(st.integers(0, 2**64 - 1))
def test_scattered_numbers_have_one_origin(number: int) -> None:
    """What was scattered can be traced back, so that no two numbers meet."""
    value = scattered(number)
    for factor, shift in (
        (0xD1342543DE82EF95DA942042E4DD58B5, 61),
        (0x9E3779B97F4A7C15F39CC0605CEDC835, 67),
    ):
        unshifted = value
        for _ in range(2):
            unshifted = value ^ unshifted >> shift
        value = unshifted * pow(factor, -1, 2**128) % 2**128
    assert value - 1 == number


def test_new_numbers_are_no_one_elses() -> None:
    """Workers, and what was loaded, have ranges of 2^44 numbers each, all under 2^64."""
    assert new_number(0, 1) > 2**44
    assert new_number(1, 1) - new_number(0, 1) == 2**44
    assert new_number(9999, 2**44 - 1) < 2**64


@given(st.integers(0, 2**128 - 1))
def test_a_guid_is_spelled_as_any(value: int) -> None:
    """As `uuid` spells it."""
    assert guid(value) == str(uuid.UUID(int=value))


def test_a_new_day_begins_when_a_day_is_full() -> None:
    """Inserts go to the last day, whatever was drawn, until it had its rows; then to the next."""
    scheme = SCHEMES["date"](RowCounts(2, [9, 3]), prefix="p", periods=1, row_keys=None)
    days = [scheme.inserted(0, 5, number).partition_key for number in range(1, 8)]
    assert days == ["2024-01-02"] * 3 + ["2024-01-03"] * 3 + ["2024-01-04"]


def test_time_ends_with_the_calendar() -> None:
    """The last day takes all that comes after it."""
    scheme = SCHEMES["publish-month"](RowCounts(1, 1), prefix="p", periods=1, row_keys=None)
    assert scheme.inserted(0, 0, 95_712).partition_key == "9999-12"
    assert scheme.inserted(0, 0, 10**9).partition_key == "9999-12"


def test_new_rows_of_a_customer_go_to_its_newest_month() -> None:
    """Whichever month was drawn, the customer stays and the month is the newest."""
    scheme = SCHEMES["customer-month"](RowCounts(6, 2), prefix="p", periods=3, row_keys=None)
    partitions = [scheme.inserted(drawn, 0, 1).partition_key for drawn in range(6)]
    assert partitions == ["customer-0__2024-03"] * 3 + ["customer-1__2024-03"] * 3
    assert [scheme.by_age(age) for age in range(6)] == [5, 2, 4, 1, 3, 0]


def test_the_index_is_by_date() -> None:
    """Each day of the index has orders of many customers; new orders are of the newest day."""
    scheme = SCHEMES["index-table"](RowCounts(3, 4), prefix="p", periods=1, row_keys=None)
    key = Key(partition_key="customer-1", row_key="order-5")
    days = [scheme.copies(key, number)[0][1].partition_key for number in range(12)]
    assert days == ["2024-01-01", "2024-01-02", "2024-01-03"] * 4
    table, copy = scheme.copies(key, 13)[0]
    assert (table, copy.partition_key, copy.row_key) == (
        "Index", "2024-01-03", "customer-1__order-5",
    )  # fmt: skip
    assert scheme.copies(key, 16)[0][1].partition_key == "2024-01-04"


def test_a_scheme_that_cannot_be_is_not_made() -> None:
    """Its sentences are those of a profile."""
    with pytest.raises(ValueError, match=r"^keys\.partitions has to be 1"):
        SCHEMES["single"](RowCounts(3, 5), prefix="p", periods=1, row_keys=None)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=9))
def test_rows_are_counted_per_partition(each: list[int]) -> None:
    """Rows of one partition, of those before it, and of all; one number stands for equal ones."""
    rows = RowCounts(len(each), each)
    assert [rows.of(number) for number in range(len(each))] == each
    assert [rows.before(number) for number in range(len(each) + 1)] == [
        sum(each[:number]) for number in range(len(each) + 1)
    ]
    assert rows.total == sum(each)
    same, listed = RowCounts(len(each), each[0]), RowCounts(len(each), [each[0]] * len(each))
    assert same.total == listed.total
    assert same.before(len(each)) == listed.before(len(each))


@pytest.mark.parametrize("rows", [0, [], [1], [1, 0], [1, 2, 3]])
def test_every_partition_has_rows(rows: int | list[int]) -> None:
    """Two partitions need two numbers of rows, none of them 0."""
    with pytest.raises(ValueError, match="2 partitions need as many numbers of rows"):
        RowCounts(2, rows)
