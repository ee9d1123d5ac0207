"""The limit of a throttled service, held against simulated throttles whose limit is known."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.measure.record.findings import LimitPart, SearchPart
from harness.profile.load.saturation import Second, exponent, limit_in, throttled_throughout
from harness.profile.load.search import Limit
from harness.profile.load.step_search import StepSearch
from tests.support.examples import examples
from tests.support.profiles import shipped
from tests.support.records import altered
from tests.support.searches import ThrottledService, searched
from tests.support.throttles import FixedWindow, SlidingWindow, Throttle, TokenBucket, Unreliable

FIND_LIMIT = shipped("find-limit")
assert FIND_LIMIT.search is not None
SHORT = altered(FIND_LIMIT.search, hold_s=2.0, measure_s=10.0, confirm_s=5.0)
SEARCHES = 20
Kind = Callable[[float, random.Random], Throttle]


def bucket(per_s: float, rng: random.Random) -> TokenBucket:
    burst_s, noise = rng.uniform(0.2, 5.0), rng.choice([0.0, 0.05, 0.15])
    return TokenBucket(per_s=per_s, burst_s=burst_s, noise=noise, rng=rng)


THROTTLES: dict[str, Kind] = {
    "a token bucket with a burst and noise": bucket,
    "the same, and a few requests refused for other reasons": lambda per_s, rng: Unreliable(
        throttle=bucket(per_s, rng), refused=0.004, rng=rng
    ),
    "a count by windows of the clock": lambda per_s, rng: FixedWindow(
        per_s=per_s, window_s=rng.choice([1, 2, 5])
    ),
    "a count by sliding windows of at least 20 transactions": lambda per_s, rng: SlidingWindow(
        per_s=per_s, window_s=max(rng.choice([1, 2, 5]), 2000 / per_s)
    ),
}


LOST = 200.0
"""Entities of a sliding window, which are not enough for a transaction or are free before one."""


def covers(limit: LimitPart, throttle: Throttle, per_s: float) -> bool:
    if limit.high_per_s is None:
        return False
    lost = LOST / throttle.window_s if isinstance(throttle, SlidingWindow) else 0.0
    return limit.low_per_s <= per_s <= limit.high_per_s + lost


@pytest.mark.parametrize("kind", THROTTLES)
def test_limits_are_found_within_five_percent_and_the_interval_covers_them(kind: str) -> None:
    """In 19 of 20 searches, for less than the budget of the shipped profile."""
    rng, bounds = random.Random(7), FIND_LIMIT.search
    budget = FIND_LIMIT.limits.billable_transactions
    assert bounds is not None
    assert budget is not None
    near = covered = 0
    for _ in range(SEARCHES):
        per_s = rng.uniform(200.0, 8000.0)
        throttle = THROTTLES[kind](per_s, rng)
        service = ThrottledService(throttle)
        limit = searched(service, bounds, seed=rng.randrange(1000)).limit
        assert service.billed < budget
        if limit is not None:
            near += abs(limit.per_s / per_s - 1.0) <= 0.05
            covered += covers(limit, throttle, per_s)
    assert min(near, covered) >= 0.95 * SEARCHES


@pytest.mark.parametrize("charged", [0.1, 0.5, 1.0])
def test_charged_refusals_do_not_hide_what_is_sustained(charged: float) -> None:
    """A service that charges refused requests serves the less, the more it is sent."""
    bounds = FIND_LIMIT.search
    assert bounds is not None
    for per_s in (600.0, 2000.0, 7000.0):
        bucket = TokenBucket(per_s=per_s, charged=charged)
        found = searched(ThrottledService(bucket), bounds)
        assert found.rate_per_s == pytest.approx(per_s, rel=0.08)


@pytest.mark.parametrize("refused", [0.02, 0.05, 0.1, 0.2])
@pytest.mark.parametrize("short", [False, True])
def test_requests_refused_at_random_show_no_limit(refused: float, short: bool) -> None:
    """A service that refuses a share of any load has no limit, and nearly always it is said."""
    bounds, said = SHORT if short else FIND_LIMIT.search, 0
    assert bounds is not None
    for seed in range(SEARCHES):
        chance = Unreliable(throttle=lambda *_: True, refused=refused, rng=random.Random(seed))
        found = searched(ThrottledService(chance), bounds, seed)
        assert found.limit is None
        said += found.limited_by == Limit.FAILING
        assert found.sentence.startswith("No limit was found, because ") == (
            found.limited_by == "failing"
        )
    assert said >= 0.8 * SEARCHES


@pytest.mark.parametrize("kind", THROTTLES)
def test_a_limit_is_claimed_only_where_a_step_at_another_rate_shows_it_too(kind: str) -> None:
    """Also after a step that was hardly above the limit, or too short for an interval."""
    rng, claimed = random.Random(5), 0
    for _ in range(SEARCHES):
        service = ThrottledService(THROTTLES[kind](rng.uniform(200.0, 8000.0), rng))
        found = searched(service, SHORT, seed=rng.randrange(1000))
        if found.limit is not None:
            claimed += 1
            first = next(place for place, one in enumerate(found.steps) if one.measuring)
            rates = [one.rate_per_s for one in found.steps[first:] if not one.confirming]
            assert max(rates) > 1.05 * min(rates)
    assert claimed >= 0.5 * SEARCHES


def test_a_limit_that_nothing_checked_is_not_claimed() -> None:
    """A search that ends with the step that measured the limit has a lower bound."""
    bounds, rng = FIND_LIMIT.search, random.Random(1)
    assert bounds is not None
    search, service = StepSearch(bounds), ThrottledService(TokenBucket(per_s=1000.0))
    while not (search.steps and search.steps[-1].measuring):
        step = search.next()
        assert not isinstance(step, SearchPart)
        search.note(service.take(step, rng))
    assert search.steps[-1].limit is not None
    found = search.ended("the run was ended")
    assert (found.limit, found.at_least) == (None, True)
    assert found.sentence.startswith("At least 800 of 800 wanted entities/s")


def seconds(*served: int, refused: int = 5) -> list[Second]:
    return [Second(100 * count, count + refused, refused) for count in served]


def test_a_burst_does_not_count() -> None:
    """What was served before the limit was met, and in that second, says nothing about it."""
    limit = limit_in([*seconds(30, 30, refused=0), *seconds(20, *[10] * 20)])
    assert limit is not None
    assert (limit.per_s, limit.measured_s) == (1000.0, 20)
    assert limit.within(0.02)


def test_what_is_served_is_the_same_at_a_limit_and_the_same_share_without_one() -> None:
    """The power is 0 or 1; rates that are hardly different show neither."""
    low, high = seconds(*[90] * 10, refused=10), seconds(*[180] * 10, refused=20)
    assert exponent(low, high) == exponent(high, low) == 1
    assert exponent(low, seconds(*[92] * 10, refused=60)) == 0
    assert exponent(low, seconds(*[60] * 10, refused=60)) == -2
    assert exponent(low, seconds(*[91] * 10, refused=11)) is None


def test_throttling_now_and_then_is_not_throughout() -> None:
    """A generator that pauses sends less than the limit, which throttles what it sends at once."""
    served, pauses = seconds(*[10] * 20), seconds(*[10] * 20, refused=0)
    assert throttled_throughout(served)
    assert not throttled_throughout(
        [one for pair in zip(served, pauses, strict=True) for one in pair]
    )
    assert not throttled_throughout(())


def test_a_short_time_has_a_limit_without_an_interval() -> None:
    """It is good enough for the rate of the next step."""
    limit = limit_in(seconds(10, 10, 10))
    assert limit is not None
    assert (limit.per_s, limit.high_per_s) == (1000.0, None)
    assert not limit.within(0.5)


@examples(100)
@given(st.lists(st.integers(0, 50), max_size=60), st.integers(0, 2))
def test_a_limit_is_within_what_was_served(served: list[int], refused: int) -> None:
    """Of any counts the limit is at most what the best second served; without refusals is none."""
    counts = seconds(*served, refused=refused)
    limit = limit_in(counts)
    if limit is not None:
        assert refused
        assert limit.low_per_s <= limit.per_s <= max(one.entities for one in counts)
