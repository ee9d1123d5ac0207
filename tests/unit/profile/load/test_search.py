"""The search for the highest sustainable rate, held against model servers with a known limit."""

from __future__ import annotations

import math
import random
from typing import Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.measure.record.findings import SearchPart, StepPart
from harness.profile.load.search import Limit, Search, Step, StepOutcome
from harness.profile.load.step_search import StepSearch
from tests.support.examples import examples
from tests.support.records import altered
from tests.support.searches import BOUNDS, Model, searched


def rates(found: SearchPart) -> list[float]:
    return [step.rate_per_s for step in found.steps]


def refuted(found: SearchPart, step: StepPart) -> bool:
    """Whether as much failed in another step."""
    return any(other.failed and other.rate_per_s <= step.rate_per_s for other in found.steps)


limits = st.floats(BOUNDS.start_per_s * 1.05, BOUNDS.max_per_s * 0.95)


@examples(200)
@given(limits, st.integers(0, 1000), st.sampled_from([1.2, 1.5, 2.0, 3.0]))
def test_a_known_limit_is_found_within_five_percent(limit: float, seed: int, factor: float) -> None:
    """Whatever the limit, the seed of the noise and the factor of the climb."""
    bounds = altered(BOUNDS, factor=factor)
    found = searched(Model(limit_per_s=limit, noise=0.02), bounds, seed)
    assert found.rate_per_s == pytest.approx(limit, rel=0.05)
    assert found.limited_by == Limit.THROTTLED
    assert found.confirmed
    assert not found.at_least


@examples(200)
@given(limits, st.floats(1.0, 10.0), st.integers(0, 1000))
def test_the_generators_ceiling_is_never_taken_for_the_partitions(
    ceiling: float, above: float, seed: int
) -> None:
    """With a ceiling below the limit the result is "at least", and names the generator."""
    model = Model(limit_per_s=ceiling * above, ceiling_per_s=ceiling, noise=0.02)
    found = searched(model, seed=seed)
    assert found.at_least
    assert found.limited_by == Limit.CLIENT
    assert found.sentence.startswith("At least ")
    assert "the generator was the limit" in found.sentence
    assert found.rate_per_s is not None
    assert ceiling * 0.95 <= found.rate_per_s <= ceiling


@examples(100)
@given(limits, st.floats(1.01, 10.0), st.integers(0, 1000))
def test_a_ceiling_that_is_met_first_does_not_hide_a_limit_below_it(
    limit: float, above: float, seed: int
) -> None:
    """Where the climb meets the ceiling first, halving the gap still meets the throttling."""
    model = Model(limit_per_s=limit, ceiling_per_s=limit * above * 1.05, noise=0.02)
    found = searched(model, seed=seed)
    assert found.limited_by == Limit.THROTTLED
    assert found.rate_per_s == pytest.approx(limit, rel=0.05)


@examples(100)
@given(
    st.lists(st.booleans(), min_size=60, max_size=60),
    st.integers(2, 40),
    st.sampled_from([0.5, 0.7, 0.95, 2.0]),
)
def test_a_search_ends_whatever_comes_of_its_steps(
    passes: list[bool], most_steps: int, throttled: float
) -> None:
    """Steps that pass and fail at random: never more steps than allowed, each kept."""
    bounds = altered(BOUNDS, most_steps=most_steps)
    search = StepSearch(bounds)
    for number, passed in enumerate(passes):
        step = search.next()
        if isinstance(step, SearchPart):
            assert len(step.steps) == number <= most_steps
            assert step.confirmed == any(
                taken.confirming and taken.failed is None and not refuted(step, taken)
                for taken in step.steps
            )
            return
        assert 0.0 < step.rate_per_s <= bounds.max_per_s
        limit = Model(limit_per_s=throttled * step.rate_per_s)
        refused = limit if throttled < 0.9 else Model(slow_from_per_s=0.0)
        taken = search.note((Model() if passed else refused).take(step, NO_CHANCE))
        assert (taken.failed is None) == passed or step.rate_per_s < 10.0
    pytest.fail("the search did not end")


NO_CHANCE = random.Random(1)


def test_the_climb_then_the_halves_then_the_longer_window() -> None:
    """The steps of a search in their order."""
    bounds = altered(BOUNDS, factor=2.0, precision=0.1)
    found = searched(Model(slow_from_per_s=1000.0), bounds)
    assert rates(found) == [100.0, 200.0, 400.0, 800.0, 1600.0, 1200.0, 1000.0, 1100.0, 1000.0]
    assert [taken.failed is None for taken in found.steps] == [
        True, True, True, True, False, False, True, False, True,
    ]  # fmt: skip
    assert {taken.hold_s for taken in found.steps[:-1]} == {10.0}
    last = found.steps[-1]
    assert (last.rate_per_s, last.hold_s, last.confirming) == (1000.0, 30.0, True)


def test_the_climb_ends_at_the_maximum() -> None:
    """No step has a higher rate than the maximum, which is confirmed when it passes."""
    bounds = altered(BOUNDS, factor=3.0, max_per_s=1000.0)
    assert rates(searched(Model(), bounds)) == [100.0, 300.0, 900.0, 1000.0, 1000.0]


@examples(100)
@given(st.floats(150.0, 10_000.0), st.floats(0.1, 1.0))
def test_what_does_not_last_is_not_confirmed(limit: float, lasting: float) -> None:
    """A rate that holds for a moment only is lowered until it holds for the longer time."""
    model = Model(limit_per_s=limit, long_limit_per_s=max(limit * lasting, 110.0))
    found = searched(model)
    assert found.rate_per_s is not None
    assert found.confirmed
    assert found.limited_by == Limit.THROTTLED
    assert found.rate_per_s == pytest.approx(model.long_limit_per_s, rel=0.05)


def test_what_lasts_less_than_half_is_found_too() -> None:
    """What is served for the longer time is the limit, also far below the first rate."""
    found = searched(Model(limit_per_s=1000.0, long_limit_per_s=50.0))
    assert found.limit is not None
    assert found.limit.per_s == pytest.approx(50.0, rel=0.02)
    assert found.rate_per_s == pytest.approx(50.0, rel=0.05)


def test_steps_that_do_not_suffice_leave_it_open() -> None:
    """The last step confirms what is known, and the result is a lower bound."""
    higher = searched(Model(), altered(BOUNDS, most_steps=4))
    assert rates(higher) == [100.0, 150.0, 225.0, 225.0]
    assert (higher.limited_by, higher.at_least) == (Limit.UNFINISHED, True)
    assert higher.sentence == (
        "At least 225 of 225 wanted entities/s, held for 30 s; no steps were left to look higher."
    )
    closer = searched(Model(slow_from_per_s=200.0), altered(BOUNDS, most_steps=4))
    assert rates(closer) == [100.0, 150.0, 225.0, 150.0]
    assert (closer.limited_by, closer.at_least) == (Limit.LATENCY, True)
    assert closer.sentence.startswith(
        "At least 150 of 150 wanted entities/s, held for 30 s; no steps were left to look closer; "
    )


def test_a_run_that_ends_early_says_what_is_known() -> None:
    """What passed so far is a lower bound that nothing confirmed."""
    search = StepSearch(BOUNDS)
    nothing = search.ended("the budget was used up")
    assert nothing.rate_per_s is None
    assert nothing.sentence == "No sustainable rate was found: the budget was used up."
    for _ in range(2):
        step = search.next()
        assert isinstance(step, Step)
        search.note(Model().take(step, NO_CHANCE))
    found = search.ended("the budget was used up")
    assert (found.rate_per_s, found.at_least, found.confirmed) == (150.0, True, False)
    assert found.sentence == (
        "At least 150 of 150 wanted entities/s, held for 10 s; not confirmed, because the budget "
        "was used up."
    )
    assert len(found.steps) == 2


def test_nothing_is_noted_after_the_end() -> None:
    """A search that is over takes no more steps, and says the same again."""
    search = StepSearch(BOUNDS)
    step = search.next()
    assert isinstance(step, Step)
    assert search.next() == step
    outcome = Model(slow_from_per_s=1.0).take(step, NO_CHANCE)
    search.note(outcome)
    found = search.next()
    assert isinstance(found, SearchPart)
    assert search.next() == search.ended("somebody was bored") == found
    with pytest.raises(ValueError, match="end of the search"):
        search.note(outcome)


def test_a_busy_moment_is_no_ceiling() -> None:
    """A step that the generator failed is taken again, and no longer counts if it passes then."""
    search, models = (
        StepSearch(BOUNDS),
        [Model(), Model(ceiling_per_s=1.0), Model(limit_per_s=300.0)],
    )
    for place in range(BOUNDS.most_steps):
        step = search.next()
        if isinstance(step, SearchPart):
            break
        search.note(models[min(place, 2)].take(step, NO_CHANCE))
    assert [taken.rate_per_s for taken in search.steps[:4]] == [100.0, 150.0, 150.0, 225.0]
    assert isinstance(step, SearchPart)
    assert step.limited_by == Limit.THROTTLED


NOTHING_CAME = StepOutcome(
    rate_per_s=100.0,
    achieved_per_s=0.0,
    throttled_ratio=0.0,
    p99_ms=None,
    client_limited=False,
    endpoint_limited=True,
    billable_transactions=500,
    hold_s=10.0,
    confirming=False,
)


def test_a_step_that_answered_nothing_was_not_held() -> None:
    """Where nothing is answered there is no percentile, and the step fails for its rate."""
    assert BOUNDS.failed(NOTHING_CAME) is Limit.NOT_HELD
    assert BOUNDS.failed(NOTHING_CAME.model_copy(update={"achieved_per_s": 95.0})) is None


def test_waiting_for_few_users_is_no_slow_endpoint() -> None:
    """Late answers that took no longer than under little load waited for somebody to send them."""
    outcome = NOTHING_CAME.model_copy(
        update={"achieved_per_s": 97.0, "p99_ms": 900.0, "endpoint_limited": False}
    )
    assert BOUNDS.failed(outcome) is Limit.USERS
    assert BOUNDS.failed(outcome.model_copy(update={"failing": True})) is Limit.FAILING
    assert BOUNDS.failed(outcome.model_copy(update={"endpoint_limited": True})) is Limit.LATENCY
    assert BOUNDS.failed(outcome.model_copy(update={"p99_ms": 20.0})) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"start_per_s": 0.0},
        {"start_per_s": math.nan},
        {"max_per_s": 99.0},
        {"max_per_s": math.inf},
        {"factor": 1.0},
        {"settle_s": -1.0},
        {"hold_s": 0.0},
        {"confirm_s": math.inf},
        {"precision": 0.0},
        {"throttled_ratio": 1.5},
        {"p99_ms": 0.0},
        {"most_steps": 1},
    ],
    ids=str,
)
def test_bounds_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    """No profile has a search with such a bound; the sentence names it."""
    with pytest.raises(pydantic.ValidationError, match=next(iter(wrong))):
        Search(**wrong)
