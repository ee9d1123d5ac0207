"""Runs the search for the highest sustainable rate under load.

In every step all workers hold one rate from an agreed time on. The step is judged by whole UTC
seconds, when the reports of all workers about these seconds have come.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Self

from harness.measure.counts.latency import LatencyHistogram
from harness.measure.record.findings import SearchPart, StepPart
from harness.measure.record.record import LatencyPart
from harness.measure.verdict.evidence import GROWN_FROM, limit_of
from harness.swarm.master.console_messages import ConsoleMessages
from harness.swarm.master.master_run import MasterRun
from harness.swarm.master.sharing import NOTICE_S, Sharing
from harness.workload.load.search import (
    Limit,
    SearchBounds,
    SearchResult,
    Step,
    StepOutcome,
    StepSearch,
    TakenStep,
)

_REPORTED_S = 2.5
"""Delay after which the reports about a second have come."""
_ON_TIME_S = 0.1
"""A mean delay behind the schedule below which the generator sends no bursts."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Latencies:
    """The cumulated latencies of a run at one time."""

    service: LatencyHistogram
    response: LatencyHistogram

    @classmethod
    def of(cls, run: MasterRun) -> Self:
        return cls(run.ledger.overall("service"), run.ledger.overall("response"))

    def since(self, before: _Latencies | None) -> tuple[LatencyPart | None, LatencyPart | None]:
        """Service and response latency since ``before``; since the beginning if that is None."""
        if before is None:
            return self.service.view(), self.response.view()
        return (
            self.service.since(before.service).view(),
            self.response.since(before.response).view(),
        )


@dataclasses.dataclass(slots=True)
class _CurrentStep:
    """The step that is held now. Seconds are whole UTC seconds.

    Attributes:
        spent: Billable transactions of the run when the step began.
        before: The latencies at ``start``; None before it.
        after: The latencies at ``end``; None before it.
    """

    step: Step
    start: int
    end: int
    spent: int
    before: _Latencies | None = None
    after: _Latencies | None = None


class RateSearch:
    """One search.

    Args:
        run: The run, which keeps the result so far.
        sharing: Sends the workers their rate.
        messages: Shows each step.
        bounds: What is searched.
    """

    def __init__(
        self, run: MasterRun, sharing: Sharing, messages: ConsoleMessages, bounds: SearchBounds
    ) -> None:
        self._run = run
        self._sharing = sharing
        self._messages = messages
        self._bounds = bounds
        self._search = StepSearch(bounds)
        self._current: _CurrentStep | None = None

    def step(self, now_s: float) -> bool:
        """Continue the search at ``now_s``, UTC; return whether it is over."""
        current = self._current
        if current is None:
            return self._begin(now_s)
        # Latencies are cumulated: those of a step are a difference.
        if current.before is None and now_s >= current.start + 1.0:
            current.before = _Latencies.of(self._run)
        if current.after is None and now_s >= current.end + 1.0:
            current.after = _Latencies.of(self._run)
        if now_s < current.end + _REPORTED_S:
            return False
        taken = self._search.note(self._outcome(current))
        self._messages.search_step_ends(taken)
        return self._begin(now_s)

    def _begin(self, now_s: float) -> bool:
        step = self._search.next()
        self._run.search = self._found(step, "the run was ended")
        self._run.search_so_far = self._found(step, "the search goes on")
        if isinstance(step, SearchResult):
            return True
        from_s = now_s + NOTICE_S
        self._sharing.hold(from_s, step.rate_per_s)
        start = math.ceil(from_s + step.settle_s)
        self._current = _CurrentStep(
            step=step,
            start=start,
            end=start + math.ceil(step.hold_s),
            spent=self._run.billable_transactions,
        )
        self._messages.search_step_begins(step, from_s)
        return False

    def _found(self, step: Step | SearchResult, if_not: str) -> SearchPart:
        """The result, or the result if no step followed, for the reason ``if_not``."""
        return part_of(step if isinstance(step, SearchResult) else self._search.ended(if_not))

    def _outcome(self, current: _CurrentStep) -> StepOutcome:
        """What was measured while the step was held."""
        run, seconds = self._run, current.end - current.start
        snapshot = run.ledger.snapshot(start=current.start, end=current.end)
        points = [point for point in snapshot.series if current.start <= point.second < current.end]
        attempts = sum(point.attempts for point in points)
        throttled = sum(point.throttled for point in points)
        service, response = (current.after or _Latencies.of(run)).since(current.before)
        outcome = StepOutcome(
            wanted_per_s=current.step.rate_per_s,
            achieved_per_s=sum(point.entities for point in points) / seconds,
            throttled_ratio=throttled / attempts if attempts else 0.0,
            p99_ms=None if response is None else response.p99,
            client_limited=False,
            endpoint_limited=self._slow(service),
            billable_transactions=run.billable_transactions - current.spent,
            seconds=float(seconds),
        )
        failed = self._bounds.failed(outcome)
        # Throttling of operations that left on time is not the fault of a busy generator.
        fine = failed is None or (failed is Limit.THROTTLED and _on_time(service, response))
        generator = run.generator.view(current.start, current.end)
        limited = limit_of(generator, run.endpoint.kind, held=fine) is not None
        return dataclasses.replace(outcome, client_limited=limited)

    def _slow(self, service: LatencyPart | None) -> bool:
        """Whether the latency was above the limit, or much higher than under little load."""
        if service is None:
            return True
        light_s = self._run.light_latency_s
        grew = light_s is not None and service.mean / 1000 > light_s * GROWN_FROM
        return grew or service.p99 > self._bounds.most_p99_ms


def _on_time(service: LatencyPart | None, response: LatencyPart | None) -> bool:
    """Whether operations left when they were due: response latency minus service latency."""
    if service is None or response is None:
        return False
    return (response.mean - service.mean) / 1000 < _ON_TIME_S


def part_of(found: SearchResult) -> SearchPart:
    """Convert the result of a search for the record."""
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
