"""The search for the highest sustainable rate: which rate is tried next, and what was found.

The rate climbs until a step fails, then the gap between the highest step that passed and the lowest
that failed is halved until it is small, and then the rate is held once more, for longer. Where it
does not last it is lowered, and the gap halved again, with the longer time. All of it is read off
the steps that were taken; nothing else is remembered.

What limits the found rate is why the lowest failed step failed. A step in which the generator was
the limit says nothing about what is tested, whatever else was seen in it: then the result is "at
least", so that the generator's own ceiling is never taken for the endpoint's.
"""

from __future__ import annotations

import dataclasses
import math

from harness.workload.steps import Limit, SearchBounds, Step, StepOutcome, TakenStep

_SLACK = 1.0 + 1e-9
"""A gap that was made as wide as the precision counts as closed, whatever the rounding."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Found:
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


class Search:
    """One search; ask `next`, take that step, `note` what came of it, and so on.

    Attributes:
        steps: The steps that were taken.
    """

    def __init__(self, bounds: SearchBounds) -> None:
        self._bounds = bounds
        self.steps: tuple[TakenStep, ...] = ()

    def next(self) -> Step | Found:
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
        if isinstance(step, Found):
            raise ValueError("a step was taken after the end of the search")
        taken = TakenStep(step=step, outcome=outcome, failed=self._bounds.failed(outcome))
        self.steps += (taken,)
        return taken

    def ended(self, why: str) -> Found:
        """What is known where the run ends before the search does.

        Args:
            why: Half a sentence, such as "the budget was used up".
        """
        found = self.next()
        return found if isinstance(found, Found) else self._found(why)

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

    def _found(self, ended: str | None = None) -> Found:
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
        return Found(
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
