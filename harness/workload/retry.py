"""Retry policies: whether and when to send an operation again.

The formulas are those of the documents: exponential back-off of "Retry strategy" (partitioning
strategy), the schedule of 2, 4, 10 and 30 seconds of "Timeout and Server Busy errors"
(performance checklist). Connection errors are retried at once, because they are not the result
of throttling. Time-outs of an answer wait like refusals: "errors like Server Busy or Timeout are
related to the load-balancing features" (partitioning strategy, "Retry strategy").
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from typing import Protocol

from harness.model.outcome import Attempt, Fault, is_retryable


class RetryPolicy(Protocol):
    @property
    def retries(self) -> int:
        """The largest number of retries of an operation."""

    def delay_s(self, retry: int, rng: random.Random) -> float | None:
        """Seconds to wait before retry number ``retry`` (from 1); None if there is none."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledBackoff:
    """One retry after each of these waits; by default none."""

    delays_s: tuple[float, ...] = ()

    @property
    def retries(self) -> int:
        return len(self.delays_s)

    def delay_s(self, retry: int, rng: random.Random) -> float | None:
        return self.delays_s[retry - 1] if retry <= len(self.delays_s) else None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialBackoff:
    """y = Rand(0.8 z, 1.2 z) (2^x - 1), then min(z_min + y, z_max), for retry number x."""

    retries: int
    backoff_s: float
    minimum_s: float
    maximum_s: float

    def delay_s(self, retry: int, rng: random.Random) -> float | None:
        if retry > self.retries:
            return None
        step = rng.uniform(0.8 * self.backoff_s, 1.2 * self.backoff_s) * (2.0**retry - 1.0)
        return min(self.minimum_s + step, self.maximum_s)


def next_delay_s(
    policy: RetryPolicy, attempts: Sequence[Attempt], rng: random.Random, longest_s: float
) -> float | None:
    """Seconds until the operation is sent again after these attempts; None if it is not.

    ``longest_s`` is the upper limit of the wait that the service requests (``Retry-After``).
    """
    last = attempts[-1]
    if not is_retryable(last):
        return None
    delay = policy.delay_s(len(attempts), rng)
    if delay is None:
        return None
    if last.fault is not None and last.fault is not Fault.READ_TIMEOUT:
        return 0.0
    return max(delay, min(last.retry_after_s, longest_s))
