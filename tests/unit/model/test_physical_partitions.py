"""Physical partitions: every key has one, keys spread evenly, and a split moves half of them."""

from __future__ import annotations

import collections

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.physical_partitions import HASHES, PhysicalPartitions

COUNTS = st.integers(min_value=1, max_value=100)


@given(key=st.text(), count=COUNTS)
def test_every_key_has_one_physical_partition(key: str, count: int) -> None:
    """Any key, of any characters, is in one of the partitions that there are."""
    assert 0 <= PhysicalPartitions.even(count).of(key) < count


@given(count=COUNTS, splits=st.lists(st.integers(min_value=0, max_value=99), max_size=8))
def test_ranges_cover_every_hash_once(count: int, splits: list[int]) -> None:
    """However often partitions are split, the ranges cover all hashes and have one number each."""
    partitions = PhysicalPartitions.even(count)
    for split in splits:
        partitions = partitions.split(partitions.numbers[split % len(partitions)])
    assert partitions.first[0] == 0
    assert all(
        a < b for a, b in zip(partitions.first, (*partitions.first[1:], HASHES), strict=True)
    )
    assert sorted(partitions.numbers) == list(range(count + len(splits)))


@given(key=st.text(), count=COUNTS, split=st.integers(min_value=0, max_value=99))
def test_a_split_moves_keys_of_one_partition_only(key: str, count: int, split: int) -> None:
    """A key of the partition that is split stays or moves to the new one; all others stay."""
    before = PhysicalPartitions.even(count)
    after = before.split(split % count)
    if before.of(key) == split % count:
        assert after.of(key) in (split % count, count)
    else:
        assert after.of(key) == before.of(key)


@pytest.mark.parametrize("count", [2, 3, 7])
def test_keys_that_hardly_differ_spread_evenly(count: int) -> None:
    """Of 3,000 keys that count up, each partition holds its even share to within a fifth."""
    partitions = PhysicalPartitions.even(count)
    found = collections.Counter(partitions.of(f"device-{number:05}") for number in range(3000))
    assert all(abs(found[number] * count / 3000 - 1) < 0.2 for number in range(count))


def test_a_split_halves_the_keys() -> None:
    """Of many keys about half move when their partition is split."""
    partitions = PhysicalPartitions.even(1).split(0)
    found = collections.Counter(partitions.of(str(number)) for number in range(3000))
    assert abs(found[1] / 3000 - 0.5) < 0.1


def test_the_hash_is_the_same_in_every_process() -> None:
    """Another process finds the same physical partition: the hash has no seed of the process."""
    found = [PhysicalPartitions.even(7).of(str(number)) for number in range(10)]
    assert found == [3, 3, 0, 1, 6, 2, 6, 3, 6, 5]


def test_a_range_of_one_hash_is_not_split() -> None:
    """A partition whose range holds one hash cannot be split, nor one outside its range."""
    partitions = PhysicalPartitions((0, 5, 6), (0, 1, 2))
    with pytest.raises(ValueError, match="cannot be split"):
        partitions.split(1)
    with pytest.raises(ValueError, match="cannot be split"):
        partitions.split(0, 6)
