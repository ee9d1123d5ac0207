"""What a worker learns of its master's clock from questions and answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.swarm.worker.worker import Difference


@given(ahead_s=st.floats(-100.0, 100.0), there_s=st.floats(0.0, 2.0), back_s=st.floats(0.0, 2.0))
def test_the_difference_is_known_within_half_the_way(
    ahead_s: float, there_s: float, back_s: float
) -> None:
    """However long question and answer were underway, the stated error holds."""
    asked_s = 1_790_000_000.0
    answered_s = asked_s - ahead_s + there_s
    difference = Difference.of(asked_s, answered_s, asked_s + there_s + back_s)
    assert difference.within_s == pytest.approx((there_s + back_s) / 2, abs=1e-6)
    assert abs(difference.ahead_s - ahead_s) <= difference.within_s + 1e-6


def test_a_difference_that_the_way_explains_is_none() -> None:
    """Two workers on one machine keep one clock, however busy the machine is."""
    assert Difference(ahead_s=0.02, within_s=0.03).known_s == 0.0
    assert Difference(ahead_s=2.0, within_s=0.03).known_s == 2.0


@pytest.mark.parametrize(
    ("ahead_s", "within_s", "said"),
    [
        (0.0, 0.1, None),
        (4.9, 0.1, None),
        (-4.9, 0.1, None),
        (7.0, 8.0, None),
        (7200.0, 0.1, "7,200 s ahead of"),
        (-61.0, 0.1, "61 s behind"),
    ],
)
def test_a_clock_that_is_far_off_is_told(ahead_s: float, within_s: float, said: str | None) -> None:
    """A sentence says how far, and what to do; a slow connection is not a wrong clock."""
    problem = Difference(ahead_s, within_s).problem
    if said is None:
        assert problem is None
    else:
        assert problem is not None
        assert said in problem
        assert "NTP" in problem
