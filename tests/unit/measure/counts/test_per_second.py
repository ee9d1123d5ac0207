"""Counts by second: sums, best seconds, merging."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.measure.counts.time_course import PerSecond
from tests.support.wire import over_the_wire

START = 1_700_000_000
additions = st.lists(st.tuples(st.integers(START, START + 60), st.integers(0, 1000)), max_size=60)

dense = st.lists(st.tuples(st.integers(START, START + 12), st.integers(1, 9)), min_size=5)


def per_second(amounts: list[tuple[int, int]]) -> PerSecond:
    made = PerSecond()
    for second, amount in amounts:
        made.add(second, amount)
    return made


def sums(amounts: list[tuple[int, int]]) -> dict[int, int]:
    """What the amounts add up to, by second; seconds without anything left out."""
    made: dict[int, int] = {}
    for second, amount in amounts:
        made[second] = made.get(second, 0) + amount
    return {second: amount for second, amount in sorted(made.items()) if amount}


@given(additions)
def test_every_second_holds_its_sum(amounts: list[tuple[int, int]]) -> None:
    """Amounts may come in any order, earlier seconds after later ones too."""
    made = per_second(amounts)
    assert list(made.items()) == list(sums(amounts).items())
    assert all(made.at(second) == amount for second, amount in sums(amounts).items())
    assert made.at(START - 1) == made.at(START + 61) == 0


@given(additions, st.integers(-5, 65), st.integers(-5, 65))
def test_totals_take_the_start_and_leave_the_end(
    amounts: list[tuple[int, int]], first: int, last: int
) -> None:
    """A total covers the seconds from start up to, not including, end."""
    expected = sum(n for s, n in amounts if START + first <= s < START + last)
    assert per_second(amounts).total(START + first, START + last) == expected


@given(dense, st.integers(1, 6), st.integers(-2, 14), st.integers(-2, 14))
def test_best_is_the_best_of_all_windows(
    amounts: list[tuple[int, int]], width: int, first: int, last: int
) -> None:
    """The best mean over so many seconds in a row is found, wherever it is."""
    made = per_second(amounts)
    length = last - first
    best = made.best(width, START + first, START + last)
    if length <= 0:
        assert best == 0
        return
    width = min(width, length)
    windows = range(START + first, START + last - width + 1)
    assert best == max(made.total(start, start + width) for start in windows) / width


@given(st.lists(additions, max_size=5), st.randoms(use_true_random=False))
def test_merging_in_any_order_is_counting_all(
    parts: list[list[tuple[int, int]]], rng: object
) -> None:
    """However the amounts are spread over workers, the best second of all comes out."""
    shuffled = list(parts)
    rng.shuffle(shuffled)  # type: ignore[attr-defined]
    merged = PerSecond()
    for part in shuffled:
        merged.merge(over_the_wire(per_second(part)))
    every = per_second([amount for part in parts for amount in part])
    assert list(merged.items()) == list(every.items())
    assert merged.best(10, START, START + 61) == every.best(10, START, START + 61)


def test_a_broken_clock_does_not_take_all_memory() -> None:
    """A second that is weeks away is refused, in either direction."""
    made = per_second([(START, 1)])
    for second in (0, START + 15 * 24 * 3600):
        with pytest.raises(ValueError, match="far from"):
            made.add(second, 1)
