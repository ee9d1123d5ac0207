"""What a search tries and sees: its bounds, its steps, and why a step fails.

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
