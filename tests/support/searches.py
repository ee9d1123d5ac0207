"""Searches for the highest sustainable rate, held against model servers with a known limit."""

from __future__ import annotations

import dataclasses
import math
import random

from harness.measure.record.findings import SearchPart
from harness.profile.load.saturation import Second
from harness.profile.load.search import Search, Step, StepOutcome
from harness.profile.load.step_search import StepSearch
from tests.support.throttles import Throttle

BOUNDS = Search(
    start_per_s=100.0,
    max_per_s=20_000.0,
    settle_s=5.0,
    hold_s=10.0,
    confirm_s=30.0,
    throttled_ratio=0.01,
    p99_ms=200.0,
    precision=0.02,
    most_steps=40,
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A partition that throttles all above its limit, and a generator that makes no more.

    Attributes:
        refused: Share of all requests that is refused, whatever the rate.
    """

    limit_per_s: float = math.inf
    long_limit_per_s: float = math.inf
    slow_from_per_s: float = math.inf
    capacity_per_s: float = math.inf
    ceiling_per_s: float = math.inf
    users_per_s: float = math.inf
    noise: float = 0.0
    refused: float = 0.0

    def take(self, step: Step, rng: random.Random, *, goes_on: bool = False) -> StepOutcome:
        """Hold the rate of a step; every measurement of it is another one."""

        def noisy(value: float) -> float:
            return value * rng.uniform(1.0 - self.noise, 1.0 + self.noise)

        wanted = step.rate_per_s
        sent = min(wanted, self.ceiling_per_s, self.users_per_s)
        limit = min(self.limit_per_s, self.long_limit_per_s if step.confirming else math.inf)
        served = min(sent * (1.0 - self.refused), limit, self.capacity_per_s)
        refused = max(self.refused * sent, sent - limit)
        seconds = tuple(
            Second(entities, entities + round(refused), round(refused))
            for entities in (round(noisy(served)) for _ in range(math.ceil(step.hold_s)))
        )
        attempts = sum(one.attempts for one in seconds)
        return StepOutcome(
            rate_per_s=wanted,
            achieved_per_s=sum(one.entities for one in seconds) / len(seconds),
            throttled_ratio=sum(one.throttled for one in seconds) / max(attempts, 1),
            p99_ms=noisy(500.0 if wanted > self.slow_from_per_s else 20.0),
            client_limited=wanted > self.ceiling_per_s,
            endpoint_limited=sent > min(self.capacity_per_s, self.slow_from_per_s),
            billable_transactions=int(sent * (step.settle_s + step.hold_s)),
            hold_s=float(len(seconds)),
            confirming=step.confirming,
            measuring=step.measuring,
            seconds=seconds,
        )


def searched(model: Model | ThrottledService, bounds: Search = BOUNDS, seed: int = 1) -> SearchPart:
    """The result of a whole search."""
    search, rng = StepSearch(bounds), random.Random(seed)
    for _ in range(bounds.most_steps):
        step = search.next()
        if isinstance(step, SearchPart):
            return step
        assert step.rate_per_s <= bounds.max_per_s
        outcome = model.take(step, rng)
        while (hold_s := search.longer_s(outcome)) is not None:
            assert hold_s > outcome.hold_s
            outcome = model.take(dataclasses.replace(step, hold_s=hold_s), rng, goes_on=True)
        search.note(outcome)
    found = search.next()
    assert isinstance(found, SearchPart)
    return found


class ThrottledService:
    """A service in simulated time that is asked for transactions of one size, evenly spaced.

    Attributes:
        billed: All requests so far.
    """

    def __init__(self, throttle: Throttle, entities: int = 100) -> None:
        self._throttle = throttle
        self._entities = entities
        self._now_s = self._due_s = 0.37
        self._gap_s = math.inf
        self._started_s, self._billed_before = 0, 0
        self._counts: dict[int, list[int]] = {}
        self.billed = 0

    def take(self, step: Step, rng: random.Random, *, goes_on: bool = False) -> StepOutcome:
        """Hold the rate of a step; if it ``goes_on``, for its whole time from its beginning on."""
        if not goes_on:
            # Reports come late, and meanwhile the load goes on.
            self._send(self._now_s + 3.0, rng)
            self._gap_s = self._entities / step.rate_per_s
            self._started_s = math.ceil(self._now_s + step.settle_s)
            self._billed_before = self.billed
        length_s = math.ceil(step.hold_s)
        self._send(float(self._started_s + length_s), rng)
        measured = range(self._started_s, self._started_s + length_s)
        seconds = tuple(Second(*self._counts.get(second, (0, 0, 0))) for second in measured)
        attempts = sum(one.attempts for one in seconds)
        return StepOutcome(
            rate_per_s=step.rate_per_s,
            achieved_per_s=sum(one.entities for one in seconds) / length_s,
            throttled_ratio=sum(one.throttled for one in seconds) / max(attempts, 1),
            p99_ms=20.0,
            client_limited=False,
            endpoint_limited=False,
            billable_transactions=self.billed - self._billed_before,
            hold_s=float(length_s),
            confirming=step.confirming,
            measuring=step.measuring,
            seconds=seconds,
        )

    def _send(self, until_s: float, rng: random.Random) -> None:
        while self._due_s < until_s and self._gap_s < math.inf:
            counts = self._counts.setdefault(int(self._due_s), [0, 0, 0])
            served = self._throttle(self._entities, self._due_s)
            counts[0] += self._entities * served
            counts[1] += 1
            counts[2] += not served
            self.billed += 1
            # A client is not exact.
            self._due_s += self._gap_s * rng.uniform(0.9, 1.1)
        self._now_s = until_s
