"""When an operation is sent again.

The formulas are those of the documents: exponential back-off of "Retry strategy" (partitioning
strategy), the schedule of 2, 4, 10 and 30 seconds of "Timeout and Server Busy errors"
(performance checklist). Connection errors are retried at once, because they are not the result
of throttling.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from typing import Protocol

from harness.model.outcome import Attempt, is_retryable


class RetryPolicy(Protocol):
    """How long to wait before retry number ``retry`` (1 is the first), in seconds."""

    def delay_s(self, retry: int, rng: random.Random) -> float | None:
        """The wait, or None where there is no such retry any more."""


@dataclasses.dataclass(frozen=True, slots=True)
class NoRetry:
    """One attempt an operation."""

    def delay_s(self, retry: int, rng: random.Random) -> float | None:
        """Always None."""
        return None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FixedBackoff:
    """The same wait before each of ``retries`` retries."""

    retries: int
    backoff_s: float

    def delay_s(self, retry: int, rng: random.Random) -> float | None:
        """``backoff_s``, or None after the last retry."""
        return self.backoff_s if retry <= self.retries else None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialBackoff:
    """y = Rand(0.8 z, 1.2 z) (2^x - 1), then min(z_min + y, z_max), for retry number x."""

    retries: int
    backoff_s: float
    minimum_s: float
    maximum_s: float

    def delay_s(self, retry: int, rng: random.Random) -> float | None:
        """The wait of the formula, or None after the last retry."""
        if retry > self.retries:
            return None
        step = rng.uniform(0.8 * self.backoff_s, 1.2 * self.backoff_s) * (2.0**retry - 1.0)
        return min(self.minimum_s + step, self.maximum_s)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledBackoff:
    """The waits of a list, one a retry."""

    delays_s: tuple[float, ...]

    def delay_s(self, retry: int, rng: random.Random) -> float | None:
        """The wait number ``retry`` of the list, or None behind its end."""
        return self.delays_s[retry - 1] if retry <= len(self.delays_s) else None


def next_delay_s(
    policy: RetryPolicy, attempts: Sequence[Attempt], rng: random.Random, longest_s: float
) -> float | None:
    """Seconds until the operation is sent again, or None where it is not.

    Args:
        policy: The strategy of the profile.
        attempts: All attempts so far; the last one failed.
        rng: Source of the formula's random factor.
        longest_s: What the service asks to wait (``Retry-After``) is honoured up to so many
            seconds.
    """
    last = attempts[-1]
    if not is_retryable(last):
        return None
    delay = policy.delay_s(len(attempts), rng)
    if delay is None:
        return None
    if last.fault is not None:
        return 0.0
    return max(delay, min(last.retry_after_s, longest_s))
