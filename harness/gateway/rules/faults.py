"""Injected faults: drawn at random from a seed, or at a given time."""

from __future__ import annotations

import itertools
import random

from harness.gateway.limits import Faults, InjectedFault

_OF_WRITES = (InjectedFault.LOST_ANSWER, InjectedFault.UNAPPLIED_WRITE)


class FaultRule:
    """One draw per request: the same seed gives the same faults in the same order."""

    def __init__(self, faults: Faults) -> None:
        self._rng = random.Random(f"{faults.seed}/faults")
        self._until = tuple(zip(itertools.accumulate(faults.shares), InjectedFault, strict=True))
        self._drawn = self._until[-1][0] > 0
        self._stalls = faults.stalls
        self.any = self._drawn or bool(faults.stalls)
        """Whether there are any faults or stalls."""

    def draw(self, *, writes: bool) -> InjectedFault | None:
        """Draw the fault of the next request; None for no fault."""
        if not self._drawn:
            return None
        chance = self._rng.random()
        fault = next((fault for until, fault in self._until if chance < until), None)
        return None if fault in _OF_WRITES and not writes else fault

    def stalled_for_s(self, elapsed_s: float) -> float:
        """Return how long a request that arrives now waits for the end of a stall."""
        if not self._stalls:
            return 0.0
        ends = (stall.at_s + stall.for_s for stall in self._stalls if stall.holds(elapsed_s))
        return max(ends, default=elapsed_s) - elapsed_s
