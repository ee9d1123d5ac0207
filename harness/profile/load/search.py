"""The search for the highest sustainable rate: its settings, its steps, and why a step fails."""

from __future__ import annotations

import dataclasses
import enum
import math
import random
from typing import Annotated, Self

import pydantic
from pydantic import Field

from harness.measure.record.findings import LimitPart, StepPart
from harness.model.figures import milliseconds, number, percent
from harness.model.services.service import CountedUnit, Service
from harness.profile.load.model import Load, LoadModel, Replay
from harness.profile.load.saturation import Second, entities_of_request
from harness.profile.settings.parts import TWO_WEEKS_S, Part, Rate, Rest
from harness.workload.pacing import Pacer, Schedule

_STEP_OVERHEAD_S = 5
"""Longest time of a step beyond settling and measuring."""
_REACHED_FROM = 0.95
"""A step holds its rate if it achieves this share of it."""


class Limit(enum.StrEnum):
    """Why no higher rate was found. The first six are why a step failed.

    ``USERS``: latency did not grow, so that there were too few users to send more. ``FAILING`` is
    also the result of a search where requests were refused, but not for the rate.

    ``of_step`` is the result of a step that failed, in a table.
    """

    of_step: str

    CLIENT = "client-limited", "generator"
    USERS = "users", "few users"
    THROTTLED = "throttled"
    NOT_HELD = "not-held", "not held"
    LATENCY = "latency", "too slow"
    FAILING = "failing"
    MAXIMUM = "maximum"
    UNFINISHED = "unfinished"

    def __new__(cls, value: str, of_step: str = "") -> Self:
        made = str.__new__(cls, value)
        made._value_ = value
        made.of_step = of_step or value
        return made


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A rate to try, for ``settle_s`` and then ``hold_s``, which is measured.

    Attributes:
        confirming: ``hold_s`` is the longer time, because the rate is likely to be sustained.
        measuring: The rate is above the limit, and held until the limit is known.
    """

    rate_per_s: float
    settle_s: float
    hold_s: float
    confirming: bool
    measuring: bool = False


class StepOutcome(StepPart):
    """What a step measured, and what of it a record does not keep.

    Attributes:
        endpoint_limited: True if latency grew with the load, or was too high.
        failing: True if so much failed so far that the endpoint, or the way to it, fails.
        seconds: The measured seconds.
        limit: The limit that they show; None if they show none.
    """

    failed: Limit | None = None
    client_limited: bool
    endpoint_limited: bool
    failing: bool = False
    seconds: tuple[Second, ...] = ()
    limit: LimitPart | None = None

    @property
    def met(self) -> LimitPart:
        """The limit, where there is one."""
        assert self.limit is not None
        return self.limit

    @property
    def served_per_s(self) -> float:
        """The limit, or at least what was served."""
        return self.achieved_per_s if self.limit is None else self.limit.per_s

    def recorded_part(self) -> StepPart:
        return StepPart.recorded(
            self,
            throttled_ratio=round(self.throttled_ratio, 6),
            failed=None if self.failed is None else self.failed.value,
        )


class Search(Part):
    """Look for the highest rate that is sustained, in steps; entities per second."""

    start_per_s: Rate = 200.0
    """Rate of the first step."""
    max_per_s: Rate = 20_000.0
    """Highest rate of a step."""
    factor: Annotated[float, Field(gt=1, le=10)] = 1.5
    """Growth of the rate from one step to the next."""
    settle_s: Rest = 3.0
    """Seconds of each step before measuring."""
    hold_s: Annotated[float, Field(ge=2, le=3600)] = 10.0
    """Measured seconds of each step."""
    measure_s: Annotated[float, Field(ge=2, le=24 * 3600)] = 120.0
    """Most measured seconds of a step above the limit, which ends when the limit is precise."""
    confirm_s: Annotated[float, Field(ge=2, le=24 * 3600)] = 30.0
    """Measured seconds of the step that confirms the rate that was found."""
    precision: Annotated[float, Field(gt=0, lt=1)] = 0.03
    """The search ends when the interval of the limit reaches this share up and down; without
    throttling, when the gap to the lowest failed rate is this share."""
    throttled_ratio: Annotated[float, Field(ge=0, le=1)] = 0.01
    """A step passes up to this share of throttled attempts."""
    p99_ms: Annotated[float, Field(gt=0, allow_inf_nan=True)] = 1000.0
    """A step passes up to this p99 of response latency."""
    most_steps: Annotated[int, Field(ge=2, le=200)] = 30
    """Most steps of the search."""
    most_s: Annotated[int, Field(ge=1, le=TWO_WEEKS_S)] | None = None
    """Time limit of the search, as set by -t; the rate that was found until then counts."""

    @pydantic.model_validator(mode="after")
    def _goes_up(self) -> Self:
        if self.max_per_s < self.start_per_s:
            raise ValueError(
                f"search.max_per_s ({self.max_per_s:g}) is below search.start_per_s "
                f"({self.start_per_s:g})"
            )
        return self

    def failed(self, outcome: StepOutcome) -> Limit | None:
        """Why a step failed; None if it passed."""
        if outcome.client_limited:
            return Limit.CLIENT
        if outcome.throttled_ratio > self.throttled_ratio:
            return Limit.THROTTLED
        # One large request more or less is no shortfall in a short step.
        one_per_s = entities_of_request(outcome.seconds) / outcome.hold_s
        held = outcome.achieved_per_s + one_per_s >= _REACHED_FROM * outcome.rate_per_s
        late = outcome.p99_ms is not None and outcome.p99_ms > self.p99_ms
        if (late or not held) and outcome.failing:
            return Limit.FAILING
        if (late or not held) and not outcome.endpoint_limited:
            return Limit.USERS
        if not held:
            return Limit.NOT_HELD
        return Limit.LATENCY if late else None

    def why(self, outcome: StepOutcome) -> str:
        """Clause that says why a step failed, with its figures."""
        achieved = f"{number(outcome.achieved_per_s)} were served"
        if outcome.failed is Limit.CLIENT:
            return f"the generator was the limit ({achieved}), so that the endpoint may serve more"
        if outcome.failed is Limit.THROTTLED:
            return (
                f"{percent(outcome.throttled_ratio)} of attempts were throttled, more than "
                f"{percent(self.throttled_ratio)}"
            )
        if outcome.failed is Limit.LATENCY and outcome.p99_ms is not None:
            return (
                f"p99 was {milliseconds(outcome.p99_ms)} ms, more than "
                f"{milliseconds(self.p99_ms)} ms"
            )
        if outcome.failed is Limit.FAILING:
            return f"{achieved}, and requests fail otherwise than by throttling"
        throttled = f"{percent(outcome.throttled_ratio)} of attempts were throttled"
        if outcome.failed is Limit.NOT_HELD:
            return f"{achieved}, {throttled}, and latency grew with the load"
        return (
            f"{achieved}, {throttled}, and latency did not grow: more users may reach a higher rate"
        )


def limit_words(limit: LimitPart, rate: str) -> str:
    """The limit and its interval, such as ``990 entities/s (99% confidence: 970 to 1,010)``."""
    if limit.high_per_s is None:
        return f"about {number(limit.per_s)} {rate} (measured for {limit.measured_s} s)"
    between = f"{number(limit.low_per_s)} to {number(limit.high_per_s)}"
    return f"{number(limit.per_s)} {rate} ({percent(limit.confidence)} confidence: {between})"


class SearchedRate(LoadModel):
    """A rate that the search changes from step to step."""

    searched = True
    steady = False
    run_time_setting = "search.most_s"
    without_rate = "the search chooses its rates"
    may_end_early = (
        "The search ends at the first throttling of the account, and then reports the rate it "
        "found as a lower bound; limits.stop_on_account_throttling = false lets it go on."
    )

    def __init__(self, load: Load, replay: Replay | None, search: Search) -> None:
        super().__init__(load, replay)
        self.search = search
        self.rate_per_s = search.max_per_s
        self.setting = "search.max_per_s"

    def words(self, unit: CountedUnit) -> str:
        first, last = number(self.search.start_per_s), number(self.search.max_per_s)
        return f"in steps from {first} to {last} {unit.rate}"

    def pacer(self, kind: Service, arrivals: random.Random) -> Pacer:
        """It has the rate of the start until the first step is known."""
        return self._following(Schedule.constant(self.search.start_per_s), arrivals)

    @property
    def window_s(self) -> int:
        search = self.search
        step_s = search.settle_s + max(search.hold_s, search.confirm_s) + _STEP_OVERHEAD_S
        longer_s = 2.0 * search.measure_s
        every_step_s = math.ceil(search.most_steps * step_s + longer_s)
        return min(every_step_s, search.most_s or every_step_s)
