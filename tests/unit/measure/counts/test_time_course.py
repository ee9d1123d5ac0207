"""Latencies over time."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from harness.measure.counts.time_course import BOUNDS_S, MOST_COLUMNS, LatencyCourse
from tests.support.wire import over_the_wire

START = 1_700_000_000


def test_a_latency_is_in_the_row_that_holds_it() -> None:
    """A row holds what is at most its bound and more than the bound below it."""
    course = LatencyCourse()
    course.add(START, [0.0035])
    view = course.view()
    assert view is not None
    [bound_ms] = view.bounds_ms
    below = max(bound for bound in BOUNDS_S if bound * 1000 < bound_ms * 0.99)
    assert below * 1000 < 3.5 <= bound_ms
    assert view.rows == ((1,),)


def test_what_is_too_short_or_too_long_is_in_the_outer_rows() -> None:
    """Nothing is left out."""
    course = LatencyCourse()
    course.add(START, (0.0, 1e-9, 1e6))
    view = course.view()
    assert view is not None
    assert (view.rows[0], view.rows[-1]) == ((2,), (1,))


def test_nothing_measured_is_no_course() -> None:
    """Before the first operation, and for the response latency of a closed loop."""
    assert LatencyCourse().view() is None


@given(
    st.lists(st.tuples(st.integers(0, 1000), st.floats(0, 200)), max_size=200),
    st.integers(1, 4),
    st.randoms(use_true_random=False),
)
def test_sums_are_the_same_in_any_order(
    happened: list[tuple[int, float]], workers: int, rng: random.Random
) -> None:
    """However the load is shared out and merged, the course is the same."""
    whole = LatencyCourse()
    parts = [LatencyCourse() for _ in range(workers)]
    for second, latency_s in happened:
        whole.add(START + second, [latency_s])
        rng.choice(parts).add(START + second, [latency_s])
    rng.shuffle(parts)
    master = LatencyCourse()
    for part in parts:
        master.merge(over_the_wire(part))
    assert master.view() == whole.view()
    if (view := whole.view()) is not None:
        assert sum(map(sum, view.rows)) == len(happened)
        assert len(view.rows[0]) <= MOST_COLUMNS
