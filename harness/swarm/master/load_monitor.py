"""Follows a run under load: its workers, its stages of users or its search, and its end."""

from __future__ import annotations

import math

import gevent
from locust.env import Environment

from harness.endpoint.clock import Clock
from harness.measure.verdict.quantities import Facts
from harness.measure.verdict.reachable import Extent
from harness.profile.build.pace import schedule_of, search_bounds
from harness.swarm.master.console_messages import ConsoleMessages
from harness.swarm.master.master_run import Cause, Ending, MasterRun, Phase
from harness.swarm.master.rate_search import RateSearch
from harness.swarm.master.sharing import Sharing

_POLL_S = 0.25
_MAX_SPAWN_RATE_PER_S = 100.0
"""Locust warns about higher rates."""


class LoadMonitor:
    """Follows one run from its ramp to its end.

    Args:
        environment: Locust's.
        run: The run.
        sharing: Divides the load among the workers.
        messages: Shows the progress.
        clock: UTC seconds.
    """

    def __init__(
        self,
        environment: Environment,
        run: MasterRun,
        sharing: Sharing,
        messages: ConsoleMessages,
        clock: Clock,
    ) -> None:
        self._environment = environment
        self._run = run
        self._sharing = sharing
        self._messages = messages
        self._clock = clock
        profile = run.plan.profile
        bounds = search_bounds(profile)
        self._search = None if bounds is None else RateSearch(run, sharing, messages, bounds)
        self._conditions = run.conditions if profile.fail_fast else ()
        even = profile.load.arrivals == "constant" and profile.search is None
        self._schedule = schedule_of(profile) if even else None
        self._conditions_checked_s = 0.0

    def follow(self) -> Ending | None:
        """Follow the run until it is over.

        Returns:
            Why the run is over, or None if something else ended it.
        """
        run, runner = self._run, self._environment.runner
        while True:
            gevent.sleep(_POLL_S)
            if run.phase not in (Phase.RAMPING, Phase.MEASURING):
                return None
            now_s = self._clock()
            self._sharing.follow(now_s)
            run.note_offered(now_s)
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
        if now_s >= window[1]:
            return Ending(Cause.RUN_TIME)
        run = self._run
        due = now_s >= self._conditions_checked_s + 1.0 and run.phase is Phase.MEASURING
        if self._conditions and due:
            self._conditions_checked_s = now_s
            snapshot = run.redacted(run.snapshot(now_s))
            for condition in self._conditions:
                if condition.cannot_hold_any_more(snapshot, Facts(), self._extent(window)):
                    return Ending(Cause.CONDITION, condition)
        return None

    def _extent(self, window: tuple[int, int]) -> Extent:
        """The longest window and the most operations that the run can reach."""
        start, end = window
        operations = None
        if self._schedule is not None and self._run.origin_s is not None:
            # An operation is one unit or more; each worker may be within its first one.
            due = self._schedule.due_by(end - self._run.origin_s)
            operations = math.ceil(due) + len(self._run.reports)
        return Extent(window_s=end - start, operations=operations)

    def _adjust_users(self, window: tuple[int, int], now_s: float) -> None:
        """In stages of users, start or stop users."""
        profile = self._run.plan.profile
        if not profile.stage or profile.stage[0].unit != "to_users":
            return
        wanted = users_at(
            [(stage.for_s, stage.to, stage.jump) for stage in profile.stage],
            float(profile.load.users),
            now_s - window[0],
        )
        runner = self._environment.runner
        if wanted != runner.target_user_count:
            change = abs(wanted - runner.target_user_count)
            rate_per_s = min(max(1.0, float(change)), _MAX_SPAWN_RATE_PER_S)
            runner.start(wanted, spawn_rate=rate_per_s, wait=False)


def users_at(stages: list[tuple[float, float, bool]], start: float, at_s: float) -> int:
    """Return the number of users at a moment of the stages.

    Args:
        stages: Duration in seconds, users at the end, and whether the stage begins with a jump to
            that number.
        start: Users before the first stage.
        at_s: Seconds since the first stage began.
    """
    users = start
    for for_s, to, jump in stages:
        if at_s < for_s:
            part = 1.0 if jump else max(0.0, at_s) / for_s
            return math.floor(users + (to - users) * part)
        at_s -= for_s
        users = to
    return math.floor(users)
