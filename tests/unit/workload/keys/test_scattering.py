"""Numbers that are spread, those of new rows, and the counts of loaded rows."""

from __future__ import annotations

import uuid

from hypothesis import given
from hypothesis import strategies as st

from harness.workload.keys.design import RowCounts
from harness.workload.keys.scattering import guid, new_number, scattered

workers = st.integers(0, 9999)
numbers = st.integers(1, 10**9)


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


@given(st.integers(0, 2**128 - 1))
def test_a_guid_is_spelled_as_any(value: int) -> None:
    """As `uuid` spells it."""
    assert guid(value) == str(uuid.UUID(int=value))


@given(workers, numbers, workers, numbers)
def test_new_numbers_are_no_one_elses(one: int, first: int, other: int, second: int) -> None:
    """Two workers, or two rows of one, never have the same number, and each worker counts up."""
    same = (one, first) == (other, second)
    assert (new_number(one, first) == new_number(other, second)) is same
    assert new_number(one, first + 1) > new_number(one, first) > 0


@given(st.lists(st.integers(1, 9), min_size=1, max_size=9))
def test_rows_are_counted_per_partition(each: list[int]) -> None:
    """Rows of one partition, of those before it, and of all; one number stands for equal ones."""
    rows = RowCounts(len(each), each)
    assert [rows.of(number) for number in range(len(each))] == each
    assert [rows.before(number) for number in range(len(each) + 1)] == [
        sum(each[:number]) for number in range(len(each) + 1)
    ]
    assert (rows.total, rows.most) == (sum(each), max(each))
    same, listed = RowCounts(len(each), each[0]), RowCounts(len(each), [each[0]] * len(each))
    assert (same.total, same.most) == (listed.total, listed.most)
    assert same.before(len(each)) == listed.before(len(each))
