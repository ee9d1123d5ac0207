"""Leads the search for the highest sustainable rate: the one way back from what was measured.

Every step is a rate that all workers hold from an agreed instant on. It is looked at over whole
UTC seconds, when the reports of all workers about them have come.
"""

from __future__ import annotations

import dataclasses
import math

from harness.endpoint.clock import Clock
from harness.measure.bottleneck import GROWN_FROM, REACHED_FROM, limit_of
from harness.measure.findings import SearchPart, StepPart
from harness.measure.latency import LatencyHistogram
from harness.swarm.narrator import Narrator
from harness.swarm.run import Run
from harness.swarm.sharing import NOTICE_S, Sharing
from harness.workload.search import Found, Search
from harness.workload.steps import SearchBounds, Step, StepOutcome, TakenStep

_REPORTED_S = 2.5
"""Reports of a second have come so much later."""


@dataclasses.dataclass(slots=True)
class _Now:
    """The step that is being taken. Seconds are UTC, whole ones.

    Attributes:
        before: All response latencies up to ``start``; None before it.
    """

    step: Step
    start: int
    end: int
    spent: int
    before: LatencyHistogram | None = None
    after: LatencyHistogram | None = None


class Searching:
    """One search.

    Args:
        run: The run it is.
        sharing: Tells the workers their rate.
        narrator: Says each step.
        clock: UTC seconds.
        bounds: What is searched.
    """

    def __init__(
        self, run: Run, sharing: Sharing, narrator: Narrator, clock: Clock, bounds: SearchBounds
    ) -> None:
        self._run = run
        self._sharing = sharing
        self._narrator = narrator
        self._clock = clock
        self._search = Search(bounds)
        self._now: _Now | None = None

    def step(self, now_s: float) -> bool:
        """Go on; whether the search is over. What is known is kept in the run at any time.

        Args:
            now_s: UTC seconds.
        """
        now = self._now
        if now is None:
            return self._begin(now_s)
        # Latencies are cumulated: those of a step are what was added in it.
        if now.before is None and now_s >= now.start + 1.0:
            now.before = self._run.ledger.overall("response")
        if now.after is None and now_s >= now.end + 1.0:
            now.after = self._run.ledger.overall("response")
        if now_s < now.end + _REPORTED_S:
            return False
        taken = self._search.note(self._outcome(now))
        self._narrator.step_taken(taken)
        return self._begin(now_s)

    def _begin(self, now_s: float) -> bool:
        step = self._search.next()
        ended = step if isinstance(step, Found) else self._search.ended("the run was ended")
        self._run.search = part_of(ended)
        if isinstance(step, Found):
            return True
        from_s = now_s + NOTICE_S
        self._sharing.hold(from_s, step.rate_per_s)
        start = math.ceil(from_s + step.settle_s)
        self._now = _Now(
            step=step,
            start=start,
            end=start + math.ceil(step.hold_s),
            spent=self._run.billable_transactions,
        )
        self._narrator.step_begins(step)
        return False

    def _outcome(self, now: _Now) -> StepOutcome:
        """What was seen while the step was looked at."""
        run, seconds = self._run, now.end - now.start
        snapshot = run.ledger.snapshot(start=now.start, end=now.end)
        points = [point for point in snapshot.series if now.start <= point.second < now.end]
        attempts = sum(point.attempts for point in points)
        throttled = sum(
            point.throttled_503 + point.throttled_500 + point.throttled_429 for point in points
        )
        later = (now.after or run.ledger.overall("response")).since(now.before).view()
        p99_s = None if later is None else later.p99_s
        generator = run.generator.view(now.start, now.end)
        light_s = run.light_latency_s
        grew = (
            later is not None
            and light_s is not None
            and (later.total_s / later.count > light_s * GROWN_FROM)
        )
        achieved_per_s = sum(point.entities for point in points) / seconds
        held = achieved_per_s >= REACHED_FROM * now.step.rate_per_s
        return StepOutcome(
            wanted_per_s=now.step.rate_per_s,
            achieved_per_s=achieved_per_s,
            throttled_ratio=throttled / attempts if attempts else 0.0,
            p99_ms=None if p99_s is None else p99_s * 1000.0,
            client_limited=limit_of(generator, run.endpoint.kind, held=held) is not None,
            endpoint_limited=grew,
            billable_transactions=run.billable_transactions - now.spent,
            seconds=float(seconds),
        )


def part_of(found: Found) -> SearchPart:
    """What a search found, for the record."""
    return SearchPart(
        rate_per_s=found.rate_per_s,
        at_least=found.at_least,
        confirmed=found.confirmed,
        limited_by=str(found.limited_by.value),
        sentence=found.sentence,
        steps=tuple(_step_part(taken) for taken in found.steps),
    )


def _step_part(taken: TakenStep) -> StepPart:
    outcome = taken.outcome
    return StepPart(
        rate_per_s=round(taken.step.rate_per_s, 3),
        achieved_per_s=round(outcome.achieved_per_s, 3),
        throttled_ratio=round(outcome.throttled_ratio, 6),
        p99_ms=None if outcome.p99_ms is None else round(outcome.p99_ms, 3),
        hold_s=outcome.seconds,
        confirming=taken.step.confirming,
        billable_transactions=outcome.billable_transactions,
        failed=None if taken.failed is None else taken.failed.value,
    )
