"""Throttles with a known limit in simulated time, independent of the gateway's."""

from __future__ import annotations

import dataclasses
import random
from collections import deque
from collections.abc import Callable

Throttle = Callable[[int, float], bool]
"""Whether so many entities are served at this time; times never decrease."""


@dataclasses.dataclass(slots=True, kw_only=True)
class TokenBucket:
    """Serves a rate, and a burst after idle time.

    Attributes:
        noise: Relative standard deviation of the rate, which changes every second.
        charged: The share of a refused request that is taken from the bucket.
    """

    per_s: float
    burst_s: float = 1.0
    noise: float = 0.0
    charged: float = 0.0
    rng: random.Random = dataclasses.field(default_factory=lambda: random.Random(1))
    _level: float | None = None
    _at_s: float = 0.0
    _rate: float = 0.0
    _second: int = -1

    def __call__(self, entities: int, now_s: float) -> bool:
        full = max(self.per_s * self.burst_s, 2.0 * entities)
        if self._level is None:
            self._level, self._at_s = full, now_s
        if int(now_s) != self._second:
            self._second = int(now_s)
            self._rate = self.per_s * max(0.0, self.rng.gauss(1.0, self.noise))
        self._level = min(full, self._level + self._rate * (now_s - self._at_s))
        self._at_s = now_s
        served = self._level >= entities
        taken = entities if served else self.charged * entities
        self._level = max(0.0, self._level - taken)
        return served


@dataclasses.dataclass(slots=True, kw_only=True)
class FixedWindow:
    """Serves so much in every window of the clock."""

    per_s: float
    window_s: float = 1.0
    _window: int = -1
    _left: float = 0.0

    def __call__(self, entities: int, now_s: float) -> bool:
        if (window := int(now_s / self.window_s)) != self._window:
            # What a request did not fit into is not lost.
            kept = self._left if self._window >= 0 else 0.0
            self._window, self._left = window, self.per_s * self.window_s + min(kept, entities)
        if self._left < entities:
            return False
        self._left -= entities
        return True


@dataclasses.dataclass(slots=True, kw_only=True)
class SlidingWindow:
    """Serves so much in any window, wherever it begins."""

    per_s: float
    window_s: float = 1.0
    _served: deque[tuple[float, int]] = dataclasses.field(default_factory=deque)
    _sum: int = 0

    def __call__(self, entities: int, now_s: float) -> bool:
        while self._served and self._served[0][0] <= now_s - self.window_s:
            self._sum -= self._served.popleft()[1]
        if self._sum + entities > self.per_s * self.window_s:
            return False
        self._served.append((now_s, entities))
        self._sum += entities
        return True


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Unreliable:
    """Refuses a share of all requests, whatever the load is."""

    throttle: Throttle
    refused: float
    rng: random.Random

    def __call__(self, entities: int, now_s: float) -> bool:
        return self.rng.random() >= self.refused and self.throttle(entities, now_s)
