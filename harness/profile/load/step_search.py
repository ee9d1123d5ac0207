"""The steps of a search for the highest sustainable rate: the next rate to try, and the result.

The rate climbs until a step fails. If it was throttled, what was served is an estimate of the limit
(`saturation`): a rate a little above it is held until the interval of the estimate is narrow. Then
two steps check the interval from both sides: above it, at another rate, as much must be served,
and its lower end must be held for longer, or a lower rate is. If the same share was refused at the
other rate, that is no limit, and higher rates are measured.

If other causes limit the rate, or less is served of higher rates, then the gap between the highest
rate that passed and the lowest that failed is halved until it is small, and the rate is held once
more, for longer, or a lower one is. The steps taken are the whole state of the search.

The lowest failed step decides what limited the result. If the generator was the limit of a step,
the step says nothing about the endpoint. This reason therefore takes precedence, and makes the
result a lower bound ("at least"). Throttling is second, because the service itself reports it.
"""

from __future__ import annotations

import math

from harness.measure.record.findings import LimitPart, SearchPart
from harness.model.figures import counted, number, percent
from harness.model.services.service import ENTITIES, CountedUnit
from harness.profile.load.saturation import APART, entities_of_request, exponent, limit_in
from harness.profile.load.search import Limit, Search, Step, StepOutcome, limit_words

_SLACK = 1.0 + 1e-9
"""Tolerance for rounding where a gap is exactly as wide as the precision."""
_OVER = 1.25
"""Multiple of the limit at which it is measured: the service has to throttle all the time, and
refused requests may be billed."""
_FIRST = 2.5
"""Multiple of the time of a step for which the limit is measured before it is looked at."""
_FAR_OVER = 1.6
"""From this multiple on, measuring goes on at a lower rate."""
_MOST_REPEATED = 3
"""Steps that are taken again, because the generator was the limit."""
_NOT_MET = 1.5
"""Growth of the rate after a step that met no limit, or to check one that is not precise."""
_MOST_LIMITS = 3
"""After so many limits that were not near their rates, what is served depends on the load."""
_LONGER = 1.5
"""Growth of the measured time while the interval is too wide."""
_CHECKED = 0.5
"""Share of the measured time for which the interval is checked from above, and"""
_REFUSED_ABOVE = 2.0
"""the fewest requests that are above the limit in this time."""
_OF_THE_ENDPOINT = (Limit.THROTTLED, Limit.NOT_HELD, Limit.LATENCY)
_THROTTLED_AT_MOST = (None, Limit.THROTTLED)


class StepSearch:
    """A search: call `next`, take that step, pass its outcome to `note`, and repeat."""

    def __init__(self, settings: Search, unit: CountedUnit = ENTITIES) -> None:
        self._settings = settings
        self._rate = unit.rate
        self.steps: tuple[StepOutcome, ...] = ()

    def next(self) -> Step | SearchPart:
        """The next step, or the result; the same until an outcome is noted."""
        settings, failure, measured = self._settings, self._lowest_failed(), self._measured()
        left = settings.most_steps - len(self.steps)
        if not self.steps:
            return self._step(settings.start_per_s)
        confirmed = self._highest(confirming=True)
        if confirmed is not None:
            unsettled = self._unsettled(confirmed.rate_per_s, failure)
            cut_short = unsettled and left <= 0 and measured is None
            return self._found(f"no steps were left {unsettled}" if cut_short else None)
        if left <= 0:
            return self._found("no steps were left")
        if left > 1 and (again := self._again()) is not None:
            return again
        if measured is not None:
            return self._around(measured)
        if left > 1 and failure is not None and failure.failed is Limit.THROTTLED:
            rate = self._measuring_rate(failure)
            if rate is not None:
                return self._step(rate, hold_s=_FIRST * settings.hold_s, measuring=True)
        return self._found() if self._refused_anyway() else self._by_halves(failure, left)

    def _again(self) -> Step | None:
        """The last step, if the generator failed it, which may have been busy for a moment."""
        last = self.steps[-1]
        rates = [taken.rate_per_s for taken in self.steps if taken.failed is Limit.CLIENT]
        known = last.rate_per_s in rates[:-1] or len(rates) > _MOST_REPEATED
        if last.failed is not Limit.CLIENT or known:
            return None
        return self._step(
            last.rate_per_s,
            hold_s=last.hold_s,
            confirming=last.confirming,
            measuring=last.measuring,
        )

    def _measuring_rate(self, failure: StepOutcome) -> float | None:
        """A rate that a service that throttled should not reach; None if there is no such rate."""
        tried = [taken for taken in self.steps if taken.measuring]
        last = (tried or [failure])[-1]
        met, per_s = last.limit is not None, last.served_per_s
        if met and 1 in self._exponents(last):
            met, per_s = False, last.rate_per_s
        rate = min((_OVER if met else _NOT_MET) * per_s, self._settings.max_per_s)
        limits = sum(taken.limit is not None for taken in tried)
        if (last.measuring and met != (rate <= last.rate_per_s)) or limits >= _MOST_LIMITS:
            return None
        others = (one.rate_per_s for one in self._valid() if one.failed not in _THROTTLED_AT_MOST)
        least = APART**2 * last.served_per_s if met else 0.0
        return rate if least < rate < min(others, default=math.inf) else None

    def _around(self, measured: StepOutcome) -> Step:
        """Check the interval of the limit from above, then from below."""
        settings, limit = self._settings, measured.met
        if measured.measuring and self._checked(measured) is None:
            above = (1.0 + settings.precision) * (limit.high_per_s or math.inf)
            if APART * above > measured.rate_per_s:
                times = _OVER if limit.within(settings.precision) else _NOT_MET
                above = min(times * measured.rate_per_s, settings.max_per_s)
            refused = _REFUSED_ABOVE * entities_of_request(measured.seconds)
            hold_s = max(_CHECKED * measured.hold_s, refused / (settings.precision * above))
            return self._step(above, hold_s=max(hold_s, settings.hold_s))
        return self._step(self._below(limit), confirming=True)

    def _below(self, limit: LimitPart) -> float:
        """The next rate below the interval that may be held."""
        return self._lower(limit.low_per_s or limit.per_s / (1.0 + self._settings.precision))

    def _lower(self, per_s: float) -> float:
        """Lower, by twice the distance after each rate that did not last."""
        refuted = sum(taken.confirming for taken in self.steps)
        return per_s / (1.0 + self._settings.precision * (2.0**refuted - 1.0) / 2.0)

    def _by_halves(self, failure: StepOutcome | None, left: int) -> Step | SearchPart:
        settings, passed = self._settings, self._highest(confirming=False)
        if passed is None:
            return self._found()
        low = passed.rate_per_s
        if any(taken.confirming for taken in self.steps):
            assert failure is not None
            lower = max(self._lower(failure.rate_per_s), settings.start_per_s)
            return self._step(lower, confirming=True)
        if left == 1 or self._unsettled(low, failure) is None:
            return self._step(low, confirming=True)
        if failure is None:
            return self._step(min(low * settings.factor, settings.max_per_s))
        return self._step((low + failure.rate_per_s) / 2.0)

    def longer_s(self, so_far: StepOutcome) -> float | None:
        """How long to measure a step in all, if what it measured so far does not suffice."""
        settings, limit = self._settings, limit_in(so_far.seconds)
        if not so_far.measuring or limit is None or limit.within(settings.precision):
            return None
        if so_far.rate_per_s > _FAR_OVER * limit.per_s or so_far.hold_s >= settings.measure_s:
            return None
        return min(math.ceil(_LONGER * so_far.hold_s), settings.measure_s)

    def price(self, rate_per_s: float, seconds: float) -> float:
        """Billable transactions of so many seconds, by those of the dearest step so far."""
        lengths = ((taken, self._settings.settle_s + taken.hold_s) for taken in self.steps)
        each = max(
            (one.billable_transactions / (one.rate_per_s * s) for one, s in lengths), default=0
        )
        return each * rate_per_s * seconds

    def note(self, outcome: StepOutcome) -> StepOutcome:
        """Add the outcome of the step that `next` returned; a `ValueError` after the end."""
        step = self.next()
        if isinstance(step, SearchPart):
            raise ValueError("a step was taken after the end of the search")
        known = {"failed": self._settings.failed(outcome), "limit": limit_in(outcome.seconds)}
        taken = outcome.model_copy(update=known)
        self.steps += (taken,)
        return taken

    def ended(self, why: str) -> SearchPart:
        """The result so far, if the run ends early; ``why`` is such as "the budget was used up"."""
        found = self.next()
        return found if isinstance(found, SearchPart) else self._found(why)

    def _step(
        self,
        per_s: float,
        *,
        hold_s: float | None = None,
        confirming: bool = False,
        measuring: bool = False,
    ) -> Step:
        settings = self._settings
        return Step(
            rate_per_s=per_s,
            settle_s=settings.settle_s,
            hold_s=hold_s or (settings.confirm_s if confirming else settings.hold_s),
            confirming=confirming,
            measuring=measuring,
        )

    def _throttled(self) -> list[StepOutcome]:
        return [one for one in self.steps if one.measuring and one.failed is Limit.THROTTLED]

    def _measured(self) -> StepOutcome | None:
        """The step that measured the limit; None if none did, or if later steps contradict it."""
        near = filter(self._near, self._throttled())
        measured = next((taken for taken in near if self._checked(taken) is not False), None)
        if measured is None:
            return None
        for taken in self.steps:
            # If the limit did not last, what is served for longer is a lower one.
            high_per_s = (taken.limit and taken.limit.high_per_s) or math.inf
            if taken.confirming and taken.failed and high_per_s < measured.met.low_per_s:
                measured = taken
        low_rates_too = min(self._settings.start_per_s, measured.met.per_s / 2.0)
        return None if self._below(measured.met) < low_rates_too else measured

    def _near(self, outcome: StepOutcome) -> bool:
        """Whether a step was so little above the limit that it is measured there."""
        limit = outcome.limit
        return limit is not None and (
            outcome.rate_per_s <= _FAR_OVER * limit.per_s or limit.within(self._settings.precision)
        )

    def _exponents(self, measured: StepOutcome) -> list[int | None]:
        """Of each step that checked a limit from above; -1 if it passed: it was not above one."""
        later = self.steps[self.steps.index(measured) + 1 :]
        checks = [taken for taken in later if not taken.confirming][:2]
        return [exponent(measured.seconds, one.seconds) if one.failed else -1 for one in checks]

    def _checked(self, measured: StepOutcome) -> bool | None:
        """Whether what is served does not depend on the rate; None if it takes one more check.

        One check of two has to show it; both, where the limit has no interval. A service that
        charges refused requests, too, serves more where it refuses less.
        """
        same = [power == 0 for power in self._exponents(measured)]
        both = len(same) == 2
        if measured.met.high_per_s is None:
            return (True if both else None) if all(same) else False
        return True if any(same) else (False if both else None)

    def _refused_anyway(self) -> str:
        """What is said if about the same share was refused at two rates; empty if it was not."""
        tried = sorted(self._throttled(), key=lambda taken: taken.rate_per_s)
        # Where far more was refused, a limit was met on top.
        alike = [one for one in tried if one.throttled_ratio <= 3.0 * tried[0].throttled_ratio]
        if not alike or exponent(alike[0].seconds, alike[-1].seconds) != 1:
            return ""
        low, high = (
            f"{percent(one.throttled_ratio)} at {number(one.rate_per_s)} {self._rate}"
            for one in (alike[0], alike[-1])
        )
        return f"No limit was found, because requests are refused at every rate: {low}, and {high}."

    def _valid(self) -> list[StepOutcome]:
        """All steps but those that a busy generator failed, and later sent as much."""
        sent, valid = 0.0, []
        for taken in reversed(self.steps):
            if taken.failed is not Limit.CLIENT or taken.rate_per_s > sent:
                valid.append(taken)
            if taken.failed is not Limit.CLIENT:
                sent = max(sent, taken.rate_per_s)
        return valid

    def _lowest_failed(self) -> StepOutcome | None:
        """Once the limit is known, refusals in a short step below it were not its doing."""
        low_per_s = 0.0 if (measured := self._measured()) is None else measured.met.low_per_s
        failures = [
            taken
            for taken in self._valid()
            if taken.failed not in _THROTTLED_AT_MOST
            or (taken.failed and (taken.confirming or taken.rate_per_s > low_per_s))
        ]
        return min(failures, key=lambda taken: taken.rate_per_s, default=None)

    def _highest(self, *, confirming: bool) -> StepOutcome | None:
        """The step with the highest rate that passed, below all that failed."""
        failure = self._lowest_failed()
        below = math.inf if failure is None else failure.rate_per_s
        passed = [
            taken
            for taken in self.steps
            if taken.failed is None and taken.confirming >= confirming and taken.rate_per_s < below
        ]
        return max(passed, key=lambda taken: taken.rate_per_s, default=None)

    def _unsettled(self, low: float, failure: StepOutcome | None) -> str | None:
        """Why more steps are needed, besides confirming; None if they are not."""
        if failure is None:
            return "to look higher" if low < self._settings.max_per_s else None
        gap = failure.rate_per_s / low - 1.0
        return "to look closer" if gap > self._settings.precision * _SLACK else None

    def _found(self, ended: str | None = None) -> SearchPart:
        """The result; ``ended`` is why the search is incomplete, None if it is complete."""
        failure, measured = self._lowest_failed(), self._measured()
        passed = self._highest(confirming=True) or self._highest(confirming=False)
        if measured is not None and measured.measuring and not self._checked(measured):
            measured = None
        if anyway := "" if measured else self._refused_anyway():
            passed, limited_by = None, Limit.FAILING
        elif measured is not None:
            limited_by = Limit.THROTTLED
        elif failure is not None:
            assert failure.failed is not None
            limited_by = failure.failed
        elif passed is not None and passed.rate_per_s >= self._settings.max_per_s:
            limited_by = Limit.MAXIMUM
        else:
            limited_by = Limit.UNFINISHED
        rate, at_least = None, False
        if passed is not None:
            rate = min(passed.rate_per_s, passed.achieved_per_s)
            at_least = ended is not None or limited_by not in _OF_THE_ENDPOINT
        if measured is not None:
            sentence = self._limit(measured, passed, ended)
        elif passed is None or rate is None:
            sentence = anyway or self._nothing(failure, ended)
        else:
            lead = "At least" if at_least else "Highest sustainable rate:"
            sentence = f"{lead} {self._something(rate, passed, failure, ended)}"
        limit = None if measured is None else measured.limit
        return SearchPart(
            rate_per_s=rate,
            at_least=at_least,
            confirmed=self._highest(confirming=True) is not None,
            limited_by=limited_by.value,
            limit=limit and LimitPart.recorded(limit),
            sentence=sentence,
            steps=tuple(taken.recorded_part() for taken in self.steps),
        )

    def _limit(self, measured: StepOutcome, passed: StepOutcome | None, ended: str | None) -> str:
        """The limit, its interval, what was held below it, and the price."""
        limit, precision = measured.met, self._settings.precision
        parts = [f"The limit is {limit_words(limit, self._rate)}"]
        if not limit.within(precision):
            parts.append(
                f"not within {percent(precision)} after {measured.hold_s:g} s of throttling"
            )
        if passed is not None and passed.confirming:
            held = f"{number(passed.rate_per_s)} {self._rate} held for {passed.hold_s:g} s"
            parts.append(held)
        else:
            parts.append(ended or "no lower rate was held without throttling")
        billed = sum(taken.billable_transactions for taken in self.steps)
        parts.append(f"price of the steps: {counted(billed, 'billable transaction')}")
        return f"{'; '.join(parts)}."

    def _nothing(self, failure: StepOutcome | None, ended: str | None) -> str:
        if failure is None:
            return f"No sustainable rate was found: {ended}."
        lower = "" if failure.failed is Limit.FAILING else " Start at a lower rate."
        return (
            f"No sustainable rate was found: the first rate, {number(failure.rate_per_s)} "
            f"{self._rate}, failed; {self._settings.why(failure)}.{lower}"
        )

    def _something(
        self, rate: float, passed: StepOutcome, failure: StepOutcome | None, ended: str | None
    ) -> str:
        settings = self._settings
        held = f"held for {passed.hold_s:g} s"
        parts = [f"{number(rate)} of {number(passed.rate_per_s)} wanted {self._rate}, {held}"]
        if ended is not None:
            parts.append(ended if passed.confirming else f"not confirmed, because {ended}")
        if failure is not None:
            failed = f"{number(failure.rate_per_s)} {self._rate} failed"
            parts.append(f"{failed}: {settings.why(failure)}")
        elif passed.rate_per_s >= settings.max_per_s:
            parts.append("this is the highest rate of the search")
        return f"{'; '.join(parts)}."
