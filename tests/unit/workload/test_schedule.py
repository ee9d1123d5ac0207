"""Schedules: what is due by when, and back, over ramps, jumps, pauses and two weeks."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.workload.pacing import RateStage, Schedule
from tests.support.examples import examples

TWO_WEEKS_S = 14 * 24 * 3600.0

rates = st.one_of(st.just(0.0), st.floats(0.01, 20_000.0))
lasting = st.floats(0.1, TWO_WEEKS_S / 6)
stages = st.builds(
    RateStage, for_s=lasting, to_per_s=rates, from_per_s=st.one_of(st.none(), st.none(), rates)
)
schedules = st.lists(stages, min_size=1, max_size=6).map(Schedule.of)
instants = st.floats(0.0, TWO_WEEKS_S)


def rounding(units: float) -> float:
    """What may be lost of an amount; over two weeks at 20,000/s about a thousandth of a unit."""
    return 1e-9 + 5e-14 * units


@examples(300)
@given(schedules, instants)
def test_the_way_back_leads_to_the_same_amount(schedule: Schedule, at_s: float) -> None:
    """At the instant at which the unit after some units is due, so many are due."""
    units = schedule.due_by(at_s)
    back_s = schedule.at(units)
    if math.isinf(back_s):
        # Nothing more is ever due.
        assert schedule.due_by(2 * TWO_WEEKS_S) == units
    else:
        slack = rounding(units) + schedule.per_s(back_s) * at_s * 1e-15
        assert schedule.due_by(back_s) == pytest.approx(units, abs=slack, rel=1e-12)


@examples(300)
@given(schedules, st.floats(0.0, 1e10))
def test_the_way_there_leads_back_to_the_amount(schedule: Schedule, units: float) -> None:
    """By the instant at which a unit is due, exactly the units before it are due."""
    at_s = schedule.at(units)
    if math.isfinite(at_s):
        # An instant late in a run is exact to some nanoseconds.
        slack = rounding(units) + schedule.per_s(at_s) * at_s * 1e-15
        assert schedule.due_by(at_s) == pytest.approx(units, abs=slack, rel=1e-12)


@examples(200)
@given(st.lists(st.tuples(lasting, st.floats(1.0, 20_000.0)), min_size=1, max_size=6), instants)
def test_the_inverse_is_exact_where_something_is_always_due(
    ramps: list[tuple[float, float]], at_s: float
) -> None:
    """Where the rate is never 0, an instant is got back from its amount."""
    begin = RateStage(for_s=1.0, to_per_s=5.0, from_per_s=5.0)
    schedule = Schedule.of(
        [begin, *(RateStage(for_s=for_s, to_per_s=per_s) for for_s, per_s in ramps)]
    )
    assert schedule.at(schedule.due_by(at_s)) == pytest.approx(at_s, rel=1e-9, abs=1e-9)


@examples(200)
@given(schedules, st.lists(instants, min_size=2, max_size=30))
def test_what_is_due_never_falls(schedule: Schedule, at: list[float]) -> None:
    """Later is never less, also around the ends of stages; and the way back is never earlier."""
    due = [schedule.due_by(at_s) for at_s in sorted(at)]
    for earlier, later in itertools.pairwise(due):
        assert later >= earlier - rounding(earlier)
    back = [schedule.at(units) for units in sorted(due)]
    for earlier_s, later_s in itertools.pairwise(back):
        assert later_s >= earlier_s


def scanned(stages: list[RateStage], at_s: float) -> float:
    """What is due by an instant: the areas under the rate, added up one by one."""
    areas = []
    per_s = 0.0
    for stage in stages:
        begin = per_s if stage.from_per_s is None else stage.from_per_s
        share = min(at_s / stage.for_s, 1.0)
        end = begin + share * (stage.to_per_s - begin)
        areas.append((begin + end) / 2.0 * share * stage.for_s)
        per_s = stage.to_per_s
        at_s -= stage.for_s
        if at_s <= 0.0:
            return math.fsum(areas)
    return math.fsum([*areas, at_s * per_s])


@examples(200)
@given(st.lists(stages, min_size=1, max_size=6), instants)
def test_what_is_due_is_the_area_under_the_rate(stages: list[RateStage], at_s: float) -> None:
    """A scan over the stages comes to the same amount."""
    due = scanned(stages, at_s)
    assert Schedule.of(stages).due_by(at_s) == pytest.approx(due, rel=1e-9, abs=1e-3)


@examples(200)
@given(schedules, instants, st.floats(0.01, 20_000.0), st.floats(0.0, 1e5))
def test_a_held_rate_changes_nothing_before(
    schedule: Schedule, from_s: float, per_s: float, later_s: float
) -> None:
    """The past stays as it was, and from the instant on the rate is constant."""
    held = schedule.held(from_s, per_s)
    assert held.due_by(from_s / 2) == schedule.due_by(from_s / 2)
    until = schedule.due_by(from_s)
    assert held.due_by(from_s) == pytest.approx(until, abs=rounding(until))
    after = held.due_by(from_s + later_s) - until
    assert after == pytest.approx(later_s * per_s, rel=1e-6, abs=1e-2)
    assert held.per_s(from_s) == held.per_s(from_s + later_s) == per_s


@examples(200)
@given(schedules, st.lists(st.tuples(instants, st.integers(1, 16)), max_size=8), instants)
def test_parts_that_follow_each_other_add_up(
    whole: Schedule, changes: list[tuple[float, int]], at_s: float
) -> None:
    """Equal parts for which the same instants hold add up to the whole, whatever their number."""
    part = whole
    expected, since_s, count = 0.0, 0.0, 1
    for from_s, next_count in sorted(changes):
        part = part.then(from_s, whole, 1.0 / next_count)
        if from_s <= at_s:
            expected += (whole.due_by(from_s) - whole.due_by(since_s)) / count
            since_s, count = from_s, next_count
    expected += (whole.due_by(at_s) - whole.due_by(since_s)) / count
    assert part.due_by(at_s) == pytest.approx(expected, rel=1e-12, abs=rounding(expected) * 10)


@pytest.mark.parametrize(
    ("stages", "at_s", "due", "rate"),
    [
        # A ramp from 0 to 100/s in 10 s has half of 1,000 units.
        ([RateStage(for_s=10.0, to_per_s=100.0)], 10.0, 500.0, 100.0),
        # Half way it has a quarter of them.
        ([RateStage(for_s=10.0, to_per_s=100.0)], 5.0, 125.0, 50.0),
        # After the last stage its rate is held.
        ([RateStage(for_s=10.0, to_per_s=100.0)], 20.0, 1500.0, 100.0),
        # A hold.
        ([RateStage(for_s=10.0, to_per_s=50.0, from_per_s=50.0)], 4.0, 200.0, 50.0),
        # The next stage begins where the last one ended.
        (
            [RateStage(for_s=10.0, to_per_s=100.0), RateStage(for_s=10.0, to_per_s=0.0)],
            15.0,
            500.0 + 375.0,
            50.0,
        ),
        # A burst: the rate jumps up at once, and down again.
        (
            [
                RateStage(for_s=10.0, to_per_s=10.0, from_per_s=10.0),
                RateStage(for_s=2.0, to_per_s=500.0, from_per_s=500.0),
                RateStage(for_s=10.0, to_per_s=10.0, from_per_s=10.0),
            ],
            13.0,
            100.0 + 1000.0 + 10.0,
            10.0,
        ),
        # Where it jumps the rate is already the one after the jump.
        (
            [
                RateStage(for_s=10.0, to_per_s=10.0, from_per_s=10.0),
                RateStage(for_s=2.0, to_per_s=500.0, from_per_s=500.0),
            ],
            10.0,
            100.0,
            500.0,
        ),
        # Before the beginning there is nothing.
        ([RateStage(for_s=1.0, to_per_s=10.0, from_per_s=10.0)], -1.0, 0.0, 0.0),
        # No stages, no load.
        ([], 10.0, 0.0, 0.0),
    ],
)
def test_what_stages_add_up_to(
    stages: list[RateStage], at_s: float, due: float, rate: float
) -> None:
    """Ramps, holds, bursts and what comes after them."""
    schedule = Schedule.of(stages)
    assert schedule.due_by(at_s) == pytest.approx(due)
    assert schedule.per_s(at_s) == pytest.approx(rate)


PAUSED = Schedule.of(
    [
        RateStage(for_s=10.0, to_per_s=10.0, from_per_s=10.0),
        RateStage(for_s=60.0, to_per_s=0.0, from_per_s=0.0),
        RateStage(for_s=10.0, to_per_s=5.0, from_per_s=5.0),
        RateStage(for_s=10.0, to_per_s=0.0),
    ]
)


@pytest.mark.parametrize(
    ("units", "at_s"),
    [
        (-1.0, 0.0),
        (0.0, 0.0),
        (50.0, 5.0),
        # What follows the units before a pause is due after it.
        (100.0, 70.0),
        (125.0, 75.0),
        # A ramp down to 0 lasts to its end.
        (175.0 - 1e-9, pytest.approx(90.0, abs=1e-3)),
        # After it nothing is due any more.
        (175.0, math.inf),
        (1000.0, math.inf),
    ],
)
def test_pauses_and_the_end_of_a_schedule(units: float, at_s: float) -> None:
    """The unit after a pause waits for its end; where nothing more comes, for ever."""
    assert PAUSED.at(units) == at_s


def test_two_weeks_lose_no_unit() -> None:
    """At the end of two weeks at 20,000/s, neighbours are still a twenty-thousandth apart."""
    schedule = Schedule.of([RateStage(for_s=3600.0, to_per_s=20_000.0)])
    units = math.floor(schedule.due_by(TWO_WEEKS_S))
    gaps = [schedule.at(units + more + 1) - schedule.at(units + more) for more in range(1000)]
    assert sum(gaps) == pytest.approx(1000 / 20_000, rel=1e-6)
    assert all(0.4 / 20_000 < gap < 1.6 / 20_000 for gap in gaps)


def test_a_thousand_changes_lose_nothing() -> None:
    """A rate that is held anew every second adds up to the sum of its seconds."""
    schedule = Schedule.constant(1.0)
    for second in range(1000):
        schedule = schedule.held(float(second), 1.0 + second % 7)
    assert schedule.due_by(1000.0) == sum(1.0 + second % 7 for second in range(1000))


def test_an_instant_before_the_beginning_is_the_beginning() -> None:
    """Before 0 nothing is due, whatever is told to hold from then on."""
    held = Schedule.constant(5.0).held(-10.0, 2.0)
    assert (held.due_by(-5.0), held.due_by(10.0), held.at(20.0)) == (0.0, 20.0, 10.0)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"for_s": 0.0, "to_per_s": 1.0}, "a stage of"),
        ({"for_s": -1.0, "to_per_s": 1.0}, "a stage of"),
        ({"for_s": math.nan, "to_per_s": 1.0}, "a stage of"),
        ({"for_s": math.inf, "to_per_s": 1.0}, "a stage of"),
        ({"for_s": 1.0, "to_per_s": -1.0}, "is invalid"),
        ({"for_s": 1.0, "to_per_s": math.nan}, "is invalid"),
        ({"for_s": 1.0, "to_per_s": 1.0, "from_per_s": math.inf}, "is invalid"),
    ],
    ids=str,
)
def test_stages_that_cannot_be_are_refused(wrong: dict[str, Any], sentence: str) -> None:
    """No time, negative time, and rates that are negative or without bound."""
    with pytest.raises(ValueError, match=sentence):
        RateStage(**wrong)


@pytest.mark.parametrize("per_s", [-1.0, math.inf, math.nan])
def test_rates_that_cannot_be_held_are_refused(per_s: float) -> None:
    """The same for a constant rate and for one that is held from an instant on."""
    with pytest.raises(ValueError, match="is invalid"):
        Schedule.constant(per_s)
    with pytest.raises(ValueError, match="is invalid"):
        Schedule.constant(1.0).held(1.0, per_s)
