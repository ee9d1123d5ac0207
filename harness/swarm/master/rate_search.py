"""Leads the search for the highest sustainable rate: the one way back from what was measured.

Every step is a rate that all workers hold from an agreed instant on. It is looked at over whole
UTC seconds, when the reports of all workers about them have come.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Self

from harness.measure.bottleneck import GROWN_FROM, limit_of
from harness.measure.findings import SearchPart, StepPart
from harness.measure.latency import LatencyHistogram, LatencyView
from harness.swarm.narrator import Narrator
from harness.swarm.run import Run
from harness.swarm.sharing import NOTICE_S, Sharing
from harness.workload.search import Found, Search
from harness.workload.steps import Limit, SearchBounds, Step, StepOutcome, TakenStep

_REPORTED_S = 2.5
"""Reports of a second have come so much later."""
_ON_TIME_S = 0.1
"""So little behind its schedule on average, a generator sends no bursts."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Latencies:
    """All latencies of a run up to some instant."""

    service: LatencyHistogram
    response: LatencyHistogram

    @classmethod
    def of(cls, run: Run) -> Self:
        """Up to now."""
        return cls(run.ledger.overall("service"), run.ledger.overall("response"))

    def since(self, before: _Latencies | None) -> tuple[LatencyView | None, LatencyView | None]:
        """What came between ``before`` and this; None of it is all."""
        if before is None:
            return self.service.view(), self.response.view()
        return (
            self.service.since(before.service).view(),
            self.response.since(before.response).view(),
        )


@dataclasses.dataclass(slots=True)
class _Now:
    """The step that is being taken. Seconds are UTC, whole ones.

    Attributes:
        before: All latencies up to ``start``; None before it.
        after: The same up to ``end``.
    """

    step: Step
    start: int
    end: int
    spent: int
    before: _Latencies | None = None
    after: _Latencies | None = None


class Searching:
    """One search.

    Args:
        run: The run it is.
        sharing: Tells the workers their rate.
        narrator: Says each step.
        bounds: What is searched.
    """

    def __init__(
        self, run: Run, sharing: Sharing, narrator: Narrator, bounds: SearchBounds
    ) -> None:
        self._run = run
        self._sharing = sharing
        self._narrator = narrator
        self._bounds = bounds
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
            now.before = _Latencies.of(self._run)
        if now.after is None and now_s >= now.end + 1.0:
            now.after = _Latencies.of(self._run)
        if now_s < now.end + _REPORTED_S:
            return False
        taken = self._search.note(self._outcome(now))
        self._narrator.step_taken(taken)
        return self._begin(now_s)

    def _begin(self, now_s: float) -> bool:
        step = self._search.next()
        self._run.search = self._found(step, "the run was ended")
        # For those who look on meanwhile.
        self._run.search_so_far = self._found(step, "the search goes on")
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
        self._narrator.step_begins(step, from_s)
        return False

    def _found(self, step: Step | Found, if_not: str) -> SearchPart:
        """What was found, or would be if no step followed; then ``if_not`` says why."""
        return part_of(step if isinstance(step, Found) else self._search.ended(if_not))

    def _outcome(self, now: _Now) -> StepOutcome:
        """What was seen while the step was looked at."""
        run, seconds = self._run, now.end - now.start
        snapshot = run.ledger.snapshot(start=now.start, end=now.end)
        points = [point for point in snapshot.series if now.start <= point.second < now.end]
        attempts = sum(point.attempts for point in points)
        throttled = sum(
            point.throttled_503 + point.throttled_500 + point.throttled_429 for point in points
        )
        service, response = (now.after or _Latencies.of(run)).since(now.before)
        outcome = StepOutcome(
            wanted_per_s=now.step.rate_per_s,
            achieved_per_s=sum(point.entities for point in points) / seconds,
            throttled_ratio=throttled / attempts if attempts else 0.0,
            p99_ms=None if response is None else response.p99_s * 1000.0,
            client_limited=False,
            endpoint_limited=self._slow(service),
            billable_transactions=run.billable_transactions - now.spent,
            seconds=float(seconds),
        )
        failed = self._bounds.failed(outcome)
        # What was refused although it was sent on time was not refused for a busy machine.
        fine = failed is None or (failed is Limit.THROTTLED and _on_time(service, response))
        generator = run.generator.view(now.start, now.end)
        limited = limit_of(generator, run.endpoint.kind, held=fine) is not None
        return dataclasses.replace(outcome, client_limited=limited)

    def _slow(self, service: LatencyView | None) -> bool:
        """Whether the endpoint took too long, or longer than it does under little load."""
        if service is None:
            return True
        light_s = self._run.light_latency_s
        grew = light_s is not None and service.total_s / service.count > light_s * GROWN_FROM
        return grew or service.p99_s * 1000.0 > self._bounds.most_p99_ms


def _on_time(service: LatencyView | None, response: LatencyView | None) -> bool:
    """Whether operations left when they were due: what response latency has more than service."""
    if service is None or response is None:
        return False
    return response.total_s / response.count - service.total_s / service.count < _ON_TIME_S


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
