"""Follows a run under load: its workers, its stages of users or its search, and its end."""

from __future__ import annotations

import dataclasses
import math

import gevent
from locust.env import Environment

from harness.measure.counts.latency import LatencyHistogram
from harness.measure.record.findings import SearchPart
from harness.measure.record.measured import LatencyPart
from harness.measure.verdict.client_limit import latency_doubt, limit_of
from harness.measure.verdict.conditions import Extent
from harness.measure.verdict.evidence import GROWN_FROM
from harness.measure.verdict.failures import failures_of
from harness.measure.verdict.quantities import Facts
from harness.profile.load.saturation import Second, throttled_throughout
from harness.profile.load.search import Limit, Search, SearchedRate, Step, StepOutcome
from harness.profile.load.step_search import StepSearch
from harness.swarm.master.console import ConsoleMessages
from harness.swarm.master.master_run import Cause, Ending, MasterRun, Phase
from harness.swarm.master.sharing import NOTICE_S, Sharing

_POLL_S = 0.25
_MAX_SPAWN_RATE_PER_S = 100.0
"""Locust warns about higher rates."""
_REPORTED_S = 2.5
"""Delay after which the reports about a second have come."""
_ON_TIME_S = 0.1
"""A mean delay behind the schedule below which the generator sends no bursts."""

_Latencies = tuple[LatencyHistogram, LatencyHistogram]
"""Service and response latency, cumulated since the load began."""


class LoadMonitor:
    """Follows one run from its ramp to its end."""

    def __init__(
        self, environment: Environment, run: MasterRun, sharing: Sharing, messages: ConsoleMessages
    ) -> None:
        self._environment = environment
        self._run = run
        self._sharing = sharing
        self._messages = messages
        profile = run.plan.profile
        self._load = profile.load_model
        self._search = None
        if isinstance(self._load, SearchedRate):
            self._search = RateSearch(run, sharing, messages, self._load.search)
        self._conditions = run.conditions if profile.fail_fast else ()
        self._conditions_checked_s = 0.0

    def follow(self) -> Ending | None:
        """Follow the run until it is over; return why, or None if something else ended it."""
        run, runner = self._run, self._environment.runner
        while True:
            gevent.sleep(_POLL_S)
            if run.phase not in (Phase.RAMPING, Phase.MEASURING):
                return None
            now_s = self._run.clock()
            self._messages.workers_changed(*self._sharing.follow(now_s))
            run.note_offered(now_s)
            run.write_seconds(int(now_s - _REPORTED_S))
            if run.window is not None:
                if run.phase is Phase.RAMPING and now_s >= run.window[0]:
                    run.phase = Phase.MEASURING
                if (ending := self._ending(run.window, now_s)) is not None:
                    return ending
                self._adjust_users(run.window, now_s)
            if run.reports and all(state.exhausted for state in run.reports.values()):
                return Ending(Cause.BUDGET)
            self._messages.load_progress(now_s, runner.user_count, len(self._sharing.workers))

    def _ending(self, window: tuple[int, int], now_s: float) -> Ending | None:
        """Why the run is over now; None if it goes on."""
        if self._search is not None and self._search.step(now_s):
            return Ending(Cause.SEARCH)
        run = self._run
        if (finished_s := run.finished_s) is not None:
            # The window is open longer, for late operations.
            end = max(window[0] + 1, math.ceil(finished_s))
            if now_s >= end:
                run.window = window[0], min(end, window[1])
                return Ending(Cause.TRACE)
        if now_s >= window[1]:
            return Ending(Cause.RUN_TIME)
        due = now_s >= self._conditions_checked_s + 1.0 and run.phase is Phase.MEASURING
        if self._conditions and due:
            self._conditions_checked_s = now_s
            snapshot = run.redacted(run.snapshot(now_s))
            generator = run.generator.view(snapshot.start, snapshot.end)
            facts = Facts(latency_doubt=latency_doubt(generator))
            for condition in self._conditions:
                if condition.cannot_hold_any_more(snapshot, facts, self._extent(window)):
                    return Ending(Cause.CONDITION, condition)
        return None

    def _extent(self, window: tuple[int, int]) -> Extent:
        """The longest window and the most operations that the run can reach."""
        start, end = window
        operations, origin_s = None, self._run.origin_s
        due = None if origin_s is None else self._load.most_due_by(end - origin_s)
        if due is not None:
            # An operation is one unit or more; each worker may be within its first one.
            operations = math.ceil(due) + len(self._run.reports)
        return Extent(window_s=end - start, operations=operations)

    def _adjust_users(self, window: tuple[int, int], now_s: float) -> None:
        """In stages of users, start or stop users."""
        wanted, runner = self._load.users_at(now_s - window[0]), self._environment.runner
        if wanted is not None and wanted != runner.target_user_count:
            change = abs(wanted - runner.target_user_count)
            rate_per_s = min(max(1.0, float(change)), _MAX_SPAWN_RATE_PER_S)
            runner.start(wanted, spawn_rate=rate_per_s, wait=False)


@dataclasses.dataclass(slots=True)
class _CurrentStep:
    """The step that is held now, in whole UTC seconds.

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
    """Runs the search for the highest sustainable rate.

    In every step all workers hold one rate from an agreed time on. The step is judged by whole UTC
    seconds, when the reports of all workers about these seconds have come.
    """

    def __init__(
        self, run: MasterRun, sharing: Sharing, messages: ConsoleMessages, settings: Search
    ) -> None:
        self._run = run
        self._sharing = sharing
        self._messages = messages
        self._settings = settings
        self._search = StepSearch(settings, run.accounts.kind.unit)
        self._current: _CurrentStep | None = None

    def step(self, now_s: float) -> bool:
        """Continue the search at ``now_s``, UTC; return whether it is over."""
        current = self._current
        if current is None:
            return self._begin(now_s)
        # Latencies are cumulated: those of a step are a difference.
        if current.before is None and now_s >= current.start + 1.0:
            current.before = _latencies(self._run)
        if current.after is None and now_s >= current.end + 1.0:
            current.after = _latencies(self._run)
        if now_s < current.end + _REPORTED_S:
            return False
        outcome = self._outcome(current)
        longer_s = self._search.longer_s(outcome)
        if longer_s is not None and self._affordable(current.step, longer_s - outcome.hold_s):
            current.end, current.after = current.start + math.ceil(longer_s), None
            return False
        self._messages.search_step_ends(self._search.note(outcome))
        return self._begin(now_s)

    def _affordable(self, step: Step, more_s: float) -> bool:
        """Whether the budget of billable transactions lasts for so many more seconds of a step."""
        run = self._run
        budget = run.plan.profile.limits.billable_transactions
        if budget is None:
            return True
        price = self._search.price(step.rate_per_s, more_s)
        return max(run.billable_by_account) + price / len(run.accounts) <= budget

    def _begin(self, now_s: float) -> bool:
        run, step = self._run, self._search.next()
        if not isinstance(step, SearchPart):
            length_s = step.settle_s + step.hold_s + _REPORTED_S + NOTICE_S
            if not self._affordable(step, length_s):
                step = self._search.ended("the budget does not last for another step")
        if isinstance(step, SearchPart):
            run.search = run.search_so_far = step
            return True
        run.search = self._search.ended("the run was ended")
        run.search_so_far = self._search.ended("the search goes on")
        from_s = now_s + NOTICE_S
        self._sharing.hold(from_s, step.rate_per_s)
        start = math.ceil(from_s + step.settle_s)
        end = start + math.ceil(step.hold_s)
        self._current = _CurrentStep(step, start, end, spent=run.billable_transactions)
        self._messages.search_step_begins(step, from_s)
        return False

    def _outcome(self, current: _CurrentStep) -> StepOutcome:
        run, seconds = self._run, current.end - current.start
        snapshot = run.ledger.snapshot(start=current.start, end=current.end)
        by_second = {point.second: point for point in snapshot.series}
        counts = tuple(
            Second(point.entities, point.attempts, point.throttled) if point else Second(0, 0, 0)
            for point in map(by_second.get, range(current.start, current.end))
        )
        attempts = sum(one.attempts for one in counts)
        throttled = sum(one.throttled for one in counts)
        after = current.after or _latencies(run)
        before = current.before or (None, None)
        service, response = (
            (now if then is None else now.since(then)).view()
            for now, then in zip(after, before, strict=True)
        )
        outcome = StepOutcome(
            rate_per_s=current.step.rate_per_s,
            achieved_per_s=sum(one.entities for one in counts) / seconds,
            throttled_ratio=throttled / attempts if attempts else 0.0,
            p99_ms=None if response is None else response.p99,
            client_limited=False,
            endpoint_limited=self._slow(service),
            failing=failures_of(snapshot).failing,
            billable_transactions=run.billable_transactions - current.spent,
            hold_s=float(seconds),
            confirming=current.step.confirming,
            measuring=current.step.measuring,
            seconds=counts,
        )
        failed = self._settings.failed(outcome)
        # Neither of operations that left on time, nor all the time, is throttling the fault of a
        # busy generator.
        sent_enough = _on_time(service, response) or throttled_throughout(counts)
        fine = failed is None or (failed is Limit.THROTTLED and sent_enough)
        generator = run.generator.view(current.start, current.end)
        limited = limit_of(generator, run.accounts.kind, held=fine) is not None
        return outcome.model_copy(update={"client_limited": limited})

    def _slow(self, service: LatencyPart | None) -> bool:
        """Whether the latency was above the limit, or much higher than under little load."""
        if service is None:
            return True
        light_s = self._run.light_latency_s
        grew = light_s is not None and service.mean / 1000 > light_s * GROWN_FROM
        return grew or service.p99 > self._settings.p99_ms


def _latencies(run: MasterRun) -> _Latencies:
    return run.ledger.overall("service"), run.ledger.overall("response")


def _on_time(service: LatencyPart | None, response: LatencyPart | None) -> bool:
    """Whether operations left when they were due: response latency minus service latency."""
    if service is None or response is None:
        return False
    return (response.mean - service.mean) / 1000 < _ON_TIME_S
