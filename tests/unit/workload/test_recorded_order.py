"""The pacer of a replay: every worker follows the schedule of all."""

from __future__ import annotations

import pytest

from harness.workload.pacing import STOP, RecordedOrder, Schedule


def test_an_operation_is_due_at_its_place_whoever_sends_it() -> None:
    """Shares change nothing: the place in the recording decides."""
    whole = RecordedOrder(Schedule.constant(2000.0), 60_000)
    for part in (whole, whole.share(0, 1), whole.share(2, 3, from_s=5.0)):
        part.reshare(7, 9.0)
        assert part.next(0.0, 0) == 0.0
        assert part.next(0.0, 10_000) == pytest.approx(5.0)


def test_nothing_is_due_after_the_recording() -> None:
    """The backlog ends with the last unit, however late it is."""
    pacer = RecordedOrder(Schedule.constant(10.0), 50)
    assert pacer.behind(3.0, 10) == pytest.approx(20.0)
    assert pacer.behind(100.0, 20) == pytest.approx(30.0)
    assert pacer.behind(100.0, 50) == 0.0


def test_it_stops_where_it_is_told() -> None:
    """What is due at the end or later does not leave, and nothing leaves after it."""
    pacer = RecordedOrder(Schedule.constant(10.0), 1000)
    pacer.end(5.0)
    assert pacer.next(0.0, 49) == pytest.approx(4.9)
    assert pacer.next(0.0, 50) is STOP
    assert pacer.next(6.0, 10) is STOP


def test_a_step_of_a_search_changes_the_rate() -> None:
    """From an agreed moment on, all workers follow the new rate; an earlier change is refused."""
    pacer = RecordedOrder(Schedule.constant(10.0), 10_000)
    pacer.hold(10.0, 100.0)
    assert pacer.next(0.0, 100) == pytest.approx(10.0)
    assert pacer.next(0.0, 200) == pytest.approx(11.0)
    with pytest.raises(ValueError, match="cannot follow"):
        pacer.hold(5.0, 1.0)
