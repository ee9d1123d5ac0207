"""Searches for the highest sustainable rate, held against model servers with a known limit."""

from __future__ import annotations

import dataclasses
import math
import random

from harness.measure.record.findings import SearchPart
from harness.profile.load.search import Search, Step, StepOutcome, StepSearch

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
    """A partition that throttles all above its limit, and a generator that makes no more."""

    limit_per_s: float = math.inf
    long_limit_per_s: float = math.inf
    slow_from_per_s: float = math.inf
    capacity_per_s: float = math.inf
    ceiling_per_s: float = math.inf
    users_per_s: float = math.inf
    noise: float = 0.0

    def take(self, step: Step, rng: random.Random) -> StepOutcome:
        def noisy(value: float) -> float:
            return value * rng.uniform(1.0 - self.noise, 1.0 + self.noise)

        wanted = step.rate_per_s
        sent = min(wanted, self.ceiling_per_s, self.users_per_s)
        limit = min(self.limit_per_s, self.long_limit_per_s if step.confirming else math.inf)
        served = min(sent, limit, self.capacity_per_s)
        return StepOutcome(
            rate_per_s=wanted,
            achieved_per_s=noisy(served),
            throttled_ratio=min(noisy(max(0.0, 1.0 - limit / sent)), 1.0),
            p99_ms=noisy(500.0 if wanted > self.slow_from_per_s else 20.0),
            client_limited=wanted > self.ceiling_per_s,
            endpoint_limited=sent > min(self.capacity_per_s, self.slow_from_per_s),
            billable_transactions=int(sent * (step.settle_s + step.hold_s)),
            hold_s=step.hold_s,
            confirming=step.confirming,
        )


def searched(model: Model, bounds: Search = BOUNDS, seed: int = 1) -> SearchPart:
    """The result of a whole search."""
    search, rng = StepSearch(bounds), random.Random(seed)
    for _ in range(bounds.most_steps):
        step = search.next()
        if isinstance(step, SearchPart):
            return step
        assert step.rate_per_s <= bounds.max_per_s
        search.note(model.take(step, rng))
    found = search.next()
    assert isinstance(found, SearchPart)
    return found
