"""The search for the highest sustainable rate: the next rate to try, and the result.

The rate climbs until a step fails. Then the gap between the highest rate that passed and the lowest
that failed is halved until it is small, and the rate is held once more, for longer. A rate that
fails then is lowered, and the gap is halved again with the longer time. The steps taken are the
whole state of the search.

The lowest failed step decides what limited the result. If the generator was the limit of a step,
the step says nothing about the endpoint. This reason therefore takes precedence, and makes the
result a lower bound ("at least"). Throttling is second, because the service itself reports it.
"""

from __future__ import annotations

import dataclasses
import enum
import math

from harness.model.figures import milliseconds, number, percent

_REACHED_FROM = 0.95
"""A step holds its rate if it achieves this share of it."""
_SLACK = 1.0 + 1e-9
"""Tolerance for rounding where a gap is exactly as wide as the precision."""


class Limit(enum.StrEnum):
    """Why no higher rate was found. The first five are why a step failed."""

    CLIENT = "client-limited"
    USERS = "users"
    """Latency did not grow: there were too few users to send more."""
    THROTTLED = "throttled"
    NOT_HELD = "not-held"
    LATENCY = "latency"
    MAXIMUM = "maximum"
    """The maximum rate passed."""
    UNFINISHED = "unfinished"
    """The search ended before a step failed."""


_OF_THE_ENDPOINT = (Limit.THROTTLED, Limit.NOT_HELD, Limit.LATENCY)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SearchBounds:
    """Range and precision of a search, and when a step passes. Rates are entities/s.

    Attributes:
        factor: Ratio of two consecutive rates of the climb.
        settle_s: Time at the start of each step that is not measured.
        precision: The search ends when the gap between the highest passed and the lowest failed
            rate is at most this share of the former.
        most_throttled: Highest share of throttled attempts with which a step passes.
        most_p99_ms: Highest 99th percentile of latency with which a step passes.
        most_steps: Largest number of steps, at least 2; the last is reserved for confirming.
    """

    start_per_s: float
    max_per_s: float
    factor: float = 1.5
    settle_s: float
    hold_s: float
    confirm_s: float
    precision: float = 0.02
    most_throttled: float
    most_p99_ms: float
    most_steps: int = 40

    def failed(self, outcome: StepOutcome) -> Limit | None:
        """Why a step failed; None if it passed."""
        if outcome.client_limited:
            return Limit.CLIENT
        if outcome.throttled_ratio > self.most_throttled:
            return Limit.THROTTLED
        held = outcome.achieved_per_s >= _REACHED_FROM * outcome.wanted_per_s
        late = outcome.p99_ms is not None and outcome.p99_ms > self.most_p99_ms
        if (late or not held) and not outcome.endpoint_limited:
            return Limit.USERS
        if not held:
            return Limit.NOT_HELD
        return Limit.LATENCY if late else None

    def why(self, taken: TakenStep) -> str:
        """Clause that says why a step failed, with its figures."""
        outcome = taken.outcome
        achieved = f"{number(outcome.achieved_per_s)} were served"
        if taken.failed is Limit.CLIENT:
            return (
                f"the generator was the limit ({achieved}), so that the endpoint may serve more; "
                "add processes or machines"
            )
        if taken.failed is Limit.THROTTLED:
            return (
                f"{percent(outcome.throttled_ratio)} of attempts were throttled, more than "
                f"{percent(self.most_throttled)}"
            )
        if taken.failed is Limit.LATENCY and outcome.p99_ms is not None:
            return (
                f"p99 was {milliseconds(outcome.p99_ms)} ms, more than "
                f"{milliseconds(self.most_p99_ms)} ms"
            )
        throttled = f"{percent(outcome.throttled_ratio)} of attempts were throttled"
        if taken.failed is Limit.NOT_HELD:
            return f"{achieved}, {throttled}, and latency grew with the load"
        return (
            f"{achieved}, {throttled}, and latency did not grow: more users may reach a higher rate"
        )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A rate to try, for ``settle_s`` and then ``hold_s``, which is measured.

    ``confirming``: ``hold_s`` is the longer time, because the rate passed the shorter one.
    """

    rate_per_s: float
    settle_s: float
    hold_s: float
    confirming: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StepOutcome:
    """What a step measured. Rates are entities/s.

    Attributes:
        p99_ms: 99th percentile of response latency; None if there were no answers.
        client_limited: True if the generator was the limit.
        endpoint_limited: True if latency grew with the load, or was too high.
        billable_transactions: Billable transactions of the whole step, including settling.
        seconds: Measured time.
    """

    wanted_per_s: float
    achieved_per_s: float
    throttled_ratio: float
    p99_ms: float | None
    client_limited: bool
    endpoint_limited: bool
    billable_transactions: int
    seconds: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TakenStep:
    """A step and its outcome; ``failed`` is why it failed, None if it passed."""

    step: Step
    outcome: StepOutcome
    failed: Limit | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The result of a search.

    Attributes:
        rate_per_s: The highest sustainable rate in entities/s: the achieved rate of the highest
            step that passed. None if no step passed.
        at_least: True if the endpoint may sustain more, because something else was the limit.
        confirmed: True if the rate was also held for the longer time.
    """

    rate_per_s: float | None
    at_least: bool
    confirmed: bool
    limited_by: Limit
    sentence: str
    steps: tuple[TakenStep, ...]


class StepSearch:
    """A search: call `next`, take that step, pass its outcome to `note`, and repeat."""

    def __init__(self, bounds: SearchBounds) -> None:
        self._bounds = bounds
        self.steps: tuple[TakenStep, ...] = ()

    def next(self) -> Step | SearchResult:
        """The next step, or the result; the same until an outcome is noted."""
        bounds, steps = self._bounds, self.steps
        if not steps:
            return self._step(bounds.start_per_s)
        passed, failure = self._passed(), self._lowest_failed()
        if passed is None:
            return self._found()
        low, confirmed = passed.step.rate_per_s, self._highest(confirming=True)
        left, unsettled = bounds.most_steps - len(steps), self._unsettled(low, failure)
        if confirmed is not None and (unsettled is None or left <= 0):
            return self._found(unsettled and f"no steps were left {unsettled}")
        if left <= 0:
            return self._found("no steps were left")
        refuted = sum(taken.step.confirming and taken.failed is not None for taken in steps)
        if refuted and confirmed is None:
            # The distance doubles each time: the search ends soon even if no rate lasts.
            assert failure is not None
            lower = failure.step.rate_per_s / (1.0 + bounds.precision * 2.0 ** (refuted - 1))
            return self._step(max(lower, bounds.start_per_s), confirming=True)
        if unsettled is None or (left == 1 and confirmed is None):
            return self._step(low, confirming=True)
        if failure is None:
            return self._step(min(low * bounds.factor, bounds.max_per_s))
        # A refuted rate had passed the shorter time, so that only the longer one counts now.
        return self._step((low + failure.step.rate_per_s) / 2.0, confirming=bool(refuted))

    def note(self, outcome: StepOutcome) -> TakenStep:
        """Add the outcome of the step that `next` returned; a `ValueError` after the end."""
        step = self.next()
        if isinstance(step, SearchResult):
            raise ValueError("a step was taken after the end of the search")
        taken = TakenStep(step=step, outcome=outcome, failed=self._bounds.failed(outcome))
        self.steps += (taken,)
        return taken

    def ended(self, why: str) -> SearchResult:
        """The result so far, if the run ends early; ``why`` is such as "the budget was used up"."""
        found = self.next()
        return found if isinstance(found, SearchResult) else self._found(why)

    def _step(self, per_s: float, *, confirming: bool = False) -> Step:
        bounds = self._bounds
        return Step(
            rate_per_s=per_s,
            settle_s=bounds.settle_s,
            hold_s=bounds.confirm_s if confirming else bounds.hold_s,
            confirming=confirming,
        )

    def _lowest_failed(self) -> TakenStep | None:
        failures = [taken for taken in self.steps if taken.failed is not None]
        return min(failures, key=lambda taken: taken.step.rate_per_s, default=None)

    def _highest(self, *, confirming: bool) -> TakenStep | None:
        """The step with the highest rate that passed, below all that failed."""
        failure = self._lowest_failed()
        below = math.inf if failure is None else failure.step.rate_per_s
        passed = [
            taken
            for taken in self.steps
            if taken.failed is None
            and taken.step.confirming >= confirming
            and taken.step.rate_per_s < below
        ]
        return max(passed, key=lambda taken: taken.step.rate_per_s, default=None)

    def _passed(self) -> TakenStep | None:
        """The highest step that may count as sustained."""
        return self._highest(confirming=True) or self._highest(confirming=False)

    def _unsettled(self, low: float, failure: TakenStep | None) -> str | None:
        """Why more steps are needed, besides confirming; None if they are not."""
        if failure is None:
            return "to look higher" if low < self._bounds.max_per_s else None
        gap = failure.step.rate_per_s / low - 1.0
        return "to look closer" if gap > self._bounds.precision * _SLACK else None

    def _found(self, ended: str | None = None) -> SearchResult:
        """The result; ``ended`` is why the search is incomplete, None if it is complete."""
        failure, passed = self._lowest_failed(), self._passed()
        if failure is not None:
            assert failure.failed is not None
            limited_by = failure.failed
        elif passed is not None and passed.step.rate_per_s >= self._bounds.max_per_s:
            limited_by = Limit.MAXIMUM
        else:
            limited_by = Limit.UNFINISHED
        if passed is None:
            rate, at_least, sentence = None, False, self._nothing(failure, ended)
        else:
            rate = min(passed.step.rate_per_s, passed.outcome.achieved_per_s)
            at_least = ended is not None or limited_by not in _OF_THE_ENDPOINT
            lead = "At least" if at_least else "Highest sustainable rate:"
            sentence = f"{lead} {self._something(rate, passed, failure, ended)}"
        return SearchResult(
            rate_per_s=rate,
            at_least=at_least,
            confirmed=self._highest(confirming=True) is not None,
            limited_by=limited_by,
            sentence=sentence,
            steps=self.steps,
        )

    def _nothing(self, failure: TakenStep | None, ended: str | None) -> str:
        if failure is None:
            return f"No sustainable rate was found: {ended}."
        return (
            f"No sustainable rate was found: the first rate, {number(failure.step.rate_per_s)} "
            f"entities/s, failed; {self._bounds.why(failure)}. Start at a lower rate."
        )

    def _something(
        self, rate: float, passed: TakenStep, failure: TakenStep | None, ended: str | None
    ) -> str:
        bounds, step = self._bounds, passed.step
        held = f"held for {step.hold_s:g} s"
        parts = [f"{number(rate)} of {number(step.rate_per_s)} wanted entities/s, {held}"]
        if ended is not None:
            parts.append(ended if step.confirming else f"not confirmed, because {ended}")
        if failure is not None:
            failed = f"{number(failure.step.rate_per_s)} entities/s failed"
            parts.append(f"{failed}: {bounds.why(failure)}")
        elif step.rate_per_s >= bounds.max_per_s:
            parts.append("this is the highest rate of the search")
        return f"{'; '.join(parts)}."
