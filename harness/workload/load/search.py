"""The search for the highest sustainable rate: which rate is tried next, and what was found.

The rate climbs until a step fails, then the gap between the highest step that passed and the lowest
that failed is halved until it is small, and then the rate is held once more, for longer. Where it
does not last it is lowered, and the gap halved again, with the longer time. All of it is read off
the steps that were taken; nothing else is remembered.

What limits the found rate is why the lowest failed step failed. A step in which the generator was
the limit says nothing about what is tested, whatever else was seen in it: then the result is "at
least", so that the generator's own ceiling is never taken for the endpoint's.

A step in which the generator was the limit says nothing about what is tested, whatever else was
seen in it, so that this is the first thing that is asked. Throttling comes next, because the
service says it itself.
"""

from __future__ import annotations

import dataclasses
import enum
import math

_REACHED_FROM = 0.95
"""Share of the wanted rate from which it counts as held."""
_SLACK = 1.0 + 1e-9
"""A gap that was made as wide as the precision counts as closed, whatever the rounding."""


class Limit(enum.StrEnum):
    """Why no higher rate was found. The first five are reasons why a step failed."""

    CLIENT = "client-limited"
    USERS = "users"
    """Answers took no longer than before, and those who send were too few."""
    THROTTLED = "throttled"
    NOT_HELD = "not-held"
    LATENCY = "latency"
    MAXIMUM = "maximum"
    """The highest rate of the search passed."""
    UNFINISHED = "unfinished"
    """The search ended before a step failed."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SearchBounds:
    """What is searched, and when a step passes.

    Attributes:
        start_per_s: Rate of the first step, units a second.
        max_per_s: No step has a higher rate.
        factor: Each step of the climb has so many times the rate of the one before.
        step_per_s: Each step of the climb has so much more than the one before; in place of
            ``factor``.
        settle_s: Of each step, before it is looked at.
        hold_s: How long it is looked at then.
        confirm_s: The same for a step that confirms.
        precision: The gap between the highest passed and the lowest failed rate, as a share of
            the former, that is not halved any more.
        most_throttled: Highest share of throttled attempts with which a step passes.
        most_p99_ms: Highest 99th percentile of latency with which a step passes.
        most_steps: The search has no more; the last one is kept for confirming.
        unit: What is counted, in the sentences.

    Raises:
        ValueError: a bound makes no sense; the sentence names it.
    """

    start_per_s: float
    max_per_s: float
    factor: float = 1.5
    step_per_s: float | None = None
    settle_s: float
    hold_s: float
    confirm_s: float
    precision: float = 0.02
    most_throttled: float
    most_p99_ms: float
    most_steps: int = 40
    unit: str = "entities"

    def __post_init__(self) -> None:
        for name, holds in {
            "start_per_s": 0.0 < self.start_per_s < math.inf,
            "max_per_s": self.start_per_s <= self.max_per_s < math.inf,
            "factor": 1.0 < self.factor < math.inf,
            "step_per_s": self.step_per_s is None or 0.0 < self.step_per_s < math.inf,
            "settle_s": 0.0 <= self.settle_s < math.inf,
            "hold_s": 0.0 < self.hold_s < math.inf,
            "confirm_s": 0.0 < self.confirm_s < math.inf,
            "precision": 0.0 < self.precision < 1.0,
            "most_throttled": 0.0 <= self.most_throttled <= 1.0,
            "most_p99_ms": self.most_p99_ms > 0.0,
            "most_steps": self.most_steps >= 2,
        }.items():
            if not holds:
                raise ValueError(f"{name} cannot be {getattr(self, name)}")

    def above(self, per_s: float) -> float:
        """The rate of the climb that follows ``per_s``."""
        higher = per_s * self.factor if self.step_per_s is None else per_s + self.step_per_s
        return min(higher, self.max_per_s)

    def failed(self, outcome: StepOutcome) -> Limit | None:
        """Why a step failed; None where it passed."""
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
        """Why a step failed, in half a sentence with its figures."""
        outcome = taken.outcome
        achieved = f"{outcome.achieved_per_s:,.0f} came through"
        if taken.failed is Limit.CLIENT:
            return (
                f"the generator was the limit ({achieved}), so that the endpoint may serve more; "
                "add processes or machines"
            )
        if taken.failed is Limit.THROTTLED:
            return (
                f"{outcome.throttled_ratio:.2%} of attempts were throttled, more than "
                f"{self.most_throttled:.2%}"
            )
        if taken.failed is Limit.LATENCY:
            return f"p99 was {outcome.p99_ms:,.0f} ms, more than {self.most_p99_ms:,.0f} ms"
        throttled = f"{outcome.throttled_ratio:.2%} of attempts were throttled"
        if taken.failed is Limit.NOT_HELD:
            return f"{achieved}, {throttled}, and answers became slower with the load"
        return f"{achieved}, {throttled}, and answers took no longer: more users may get more"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A rate to try.

    Attributes:
        rate_per_s: Units a second.
        settle_s: How long it is held before it is looked at.
        hold_s: How long it is looked at.
        confirming: True where it is held for the longer time, because the shorter one was passed.
    """

    rate_per_s: float
    settle_s: float
    hold_s: float
    confirming: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StepOutcome:
    """What was seen while a step was looked at.

    Attributes:
        wanted_per_s: Units a second that were due.
        achieved_per_s: Units a second that were served.
        throttled_ratio: Throttled attempts / all attempts.
        p99_ms: 99th percentile of response latency; None where nothing was answered.
        client_limited: True where the generator was the limit.
        endpoint_limited: True where answers became slower with the load, or took too long.
        billable_transactions: What the step cost, settling included.
        seconds: How long it was looked at.
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
    """A step with what came of it.

    Attributes:
        failed: Why it failed; None where it passed.
    """

    step: Step
    outcome: StepOutcome
    failed: Limit | None

    @property
    def of_what_is_tested(self) -> bool:
        """Whether it failed for what is tested, and not for what tests it."""
        return self.failed in (Limit.THROTTLED, Limit.NOT_HELD, Limit.LATENCY)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The result of a search.

    Attributes:
        rate_per_s: The highest sustainable rate, units a second: what was served of the highest
            wanted rate that passed. None where not one was found.
        at_least: True where what is tested may sustain more: something else was the limit.
        confirmed: True where the rate was held for the longer time too.
        limited_by: Why no higher rate was found.
        sentence: All of it in plain words.
        steps: Every step, in the order in which they were taken.
    """

    rate_per_s: float | None
    at_least: bool
    confirmed: bool
    limited_by: Limit
    sentence: str
    steps: tuple[TakenStep, ...]


class StepSearch:
    """One search; ask `next`, take that step, `note` what came of it, and so on.

    Attributes:
        steps: The steps that were taken.
    """

    def __init__(self, bounds: SearchBounds) -> None:
        self._bounds = bounds
        self.steps: tuple[TakenStep, ...] = ()

    def next(self) -> Step | SearchResult:
        """What to do now; the same until an outcome is noted."""
        bounds, steps = self._bounds, self.steps
        if not steps:
            return self._step(bounds.start_per_s)
        passed, confirmed, failure = self._passed(), self._confirmed(), self._lowest_failed()
        if passed is None:
            return self._found()
        low = passed.step.rate_per_s
        left, unsettled = bounds.most_steps - len(steps), self._unsettled()
        if confirmed is not None and (unsettled is None or left <= 0):
            return self._found(unsettled and f"no steps were left {unsettled}")
        if left <= 0:
            return self._found("no steps were left")
        refuted = sum(taken.step.confirming and taken.failed is not None for taken in steps)
        if refuted and confirmed is None:
            # Each time farther down, so that it ends soon where nothing lasts.
            assert failure is not None
            lower = failure.step.rate_per_s / (1.0 + bounds.precision * 2.0 ** (refuted - 1))
            return self._step(max(lower, bounds.start_per_s), confirming=True)
        if unsettled is None or (left == 1 and confirmed is None):
            return self._step(low, confirming=True)
        if failure is None:
            return self._step(bounds.above(low))
        # What was refuted once passed the shorter time: only the longer one tells then.
        return self._step((low + failure.step.rate_per_s) / 2.0, confirming=bool(refuted))

    def note(self, outcome: StepOutcome) -> TakenStep:
        """Keep what came of the step that `next` asked for.

        Raises:
            ValueError: the search is over.
        """
        step = self.next()
        if isinstance(step, SearchResult):
            raise ValueError("a step was taken after the end of the search")
        taken = TakenStep(step=step, outcome=outcome, failed=self._bounds.failed(outcome))
        self.steps += (taken,)
        return taken

    def ended(self, why: str) -> SearchResult:
        """What is known where the run ends before the search does.

        Args:
            why: Half a sentence, such as "the budget was used up".
        """
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

    def _confirmed(self) -> TakenStep | None:
        return self._highest(confirming=True)

    def _passed(self) -> TakenStep | None:
        """The step with the highest rate that may count as sustained, by what is known."""
        return self._confirmed() or self._highest(confirming=False)

    def _unsettled(self) -> str | None:
        """What more steps are needed for before a rate is confirmed."""
        bounds, passed, failure = self._bounds, self._passed(), self._lowest_failed()
        if passed is None:
            return None
        low = passed.step.rate_per_s
        if failure is None:
            return "to look higher" if low < bounds.max_per_s else None
        gap = failure.step.rate_per_s / low - 1.0
        return "to look closer" if gap > bounds.precision * _SLACK else None

    def _found(self, ended: str | None = None) -> SearchResult:
        """The result; ``ended`` says why the search is not through, None where it is."""
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
            at_least = ended is not None or failure is None or not failure.of_what_is_tested
            lead = "At least" if at_least else "Highest sustainable rate:"
            sentence = f"{lead} {self._something(rate, passed, failure, ended)}"
        return SearchResult(
            rate_per_s=rate,
            at_least=at_least,
            confirmed=self._confirmed() is not None,
            limited_by=limited_by,
            sentence=sentence,
            steps=self.steps,
        )

    def _nothing(self, failure: TakenStep | None, ended: str | None) -> str:
        """The sentence of a search that found no rate."""
        if failure is None:
            return f"No sustainable rate was found: {ended}."
        bounds = self._bounds
        return (
            f"No sustainable rate was found: the start of the search, "
            f"{failure.step.rate_per_s:,.0f} {bounds.unit}/s, failed already; "
            f"{bounds.why(failure)}. Begin lower."
        )

    def _something(
        self, rate: float, passed: TakenStep, failure: TakenStep | None, ended: str | None
    ) -> str:
        """The sentence, but for its beginning, of a search that found a rate."""
        bounds, step = self._bounds, passed.step
        unit = f"{bounds.unit}/s"
        parts = [f"{rate:,.0f} of {step.rate_per_s:,.0f} wanted {unit}, held for {step.hold_s:g} s"]
        if ended is not None:
            parts.append(ended if step.confirming else f"not confirmed, because {ended}")
        if failure is not None:
            parts.append(f"{failure.step.rate_per_s:,.0f} {unit} failed: {bounds.why(failure)}")
        elif step.rate_per_s >= bounds.max_per_s:
            parts.append("the search looks no higher")
        return f"{'; '.join(parts)}."
