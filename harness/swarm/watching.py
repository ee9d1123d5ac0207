"""Follows a run under load: its workers, its stages or its search, and its end."""

from __future__ import annotations

import math
from collections.abc import Callable

import gevent
from locust.env import Environment

from harness.endpoint.clock import Clock
from harness.measure.quantities import Facts
from harness.measure.reachable import Extent
from harness.profile.pace import schedule_of, search_bounds
from harness.swarm.narrator import Narrator
from harness.swarm.offered import note_offered
from harness.swarm.run import Phase, Run
from harness.swarm.searching import Searching
from harness.swarm.sharing import GRACE_S, Sharing

_WATCH_EVERY_S = 0.25
_MOST_SPAWNED_PER_S = 100.0
"""Locust warns of more."""


class Watch:
    """Follows one run from its ramp to its end.

    Args:
        environment: Locust's.
        run: The run.
        sharing: How it is shared out.
        narrator: Says how it goes.
        clock: UTC seconds.
        end: Ends the run, for a reason in a few words.
    """

    def __init__(
        self,
        environment: Environment,
        run: Run,
        *,
        sharing: Sharing,
        narrator: Narrator,
        clock: Clock,
        end: Callable[[Run, str], None],
    ) -> None:
        self._environment = environment
        self._run = run
        self._sharing = sharing
        self._narrator = narrator
        self._clock = clock
        self._end = end
        profile = run.plan.profile
        bounds = search_bounds(profile)
        self._searching = None if bounds is None else Searching(run, sharing, narrator, bounds)
        self._conditions = run.conditions if profile.fail_fast else ()
        even = profile.load.arrivals == "constant" and profile.search is None
        self._schedule = schedule_of(profile) if even else None
        self._looked_s = 0.0

    def follow(self) -> None:
        """Until the run ends, by itself or otherwise."""
        # A user that has to go, in a stage or to another worker, ends its operation first.
        self._environment.stop_timeout = GRACE_S
        # Whatever goes wrong here, a load that nobody watches does not go on.
        reason: str | None = "a failure of the harness"
        try:
            reason = self._until_over()
        finally:
            self._environment.stop_timeout = 0.0
            if reason is not None:
                self._end(self._run, reason)

    def _until_over(self) -> str | None:
        """Follow the run until it is over; why it is, or None where something else ended it."""
        run = self._run
        while True:
            gevent.sleep(_WATCH_EVERY_S)
            if run.phase not in (Phase.RAMPING, Phase.MEASURING):
                return None
            now_s = self._clock()
            self._sharing.follow(now_s)
            note_offered(run, now_s)
            if run.window is not None:
                if run.phase is Phase.RAMPING and now_s >= run.window[0]:
                    run.phase = Phase.MEASURING
                if (reason := self._over(now_s)) is not None:
                    return reason
            if run.reports and all(report.exhausted for report in run.reports.values()):
                return "budget of billable transactions"
            runner = self._environment.runner
            self._narrator.live(now_s, runner.user_count, len(self._sharing.workers))

    def _over(self, now_s: float) -> str | None:
        """Why the run is over now; None where it is not."""
        run = self._run
        assert run.window is not None
        if self._searching is not None and self._searching.step(now_s):
            return "the end of the search"
        if now_s >= run.window[1]:
            return "run time"
        self._lead_users(now_s)
        if self._conditions and now_s >= self._looked_s + 1.0 and run.phase is Phase.MEASURING:
            self._looked_s = now_s
            snapshot = run.shown(run.snapshot(now_s))
            for condition in self._conditions:
                if condition.cannot_hold_any_more(snapshot, Facts(), self._extent()):
                    return f"{condition.text!r}, which cannot hold any more"
        return None

    def _extent(self) -> Extent:
        """The most that the run can still come to."""
        run = self._run
        assert run.window is not None
        start, end = run.window
        operations = None
        if self._schedule is not None and run.origin_s is not None:
            # An operation is one unit or more; each worker may be within its first one.
            due = self._schedule.due_by(end - run.origin_s)
            operations = math.ceil(due) + len(run.reports)
        return Extent(window_s=end - start, operations=operations)

    def _lead_users(self, now_s: float) -> None:
        """In stages of users, as many as there are to be now."""
        run = self._run
        profile = run.plan.profile
        if run.window is None or not profile.stage or profile.stage[0].unit != "to_users":
            return
        wanted = users_at(
            [(stage.for_s, stage.to, stage.jump) for stage in profile.stage],
            float(profile.load.users),
            now_s - run.window[0],
        )
        runner = self._environment.runner
        if wanted != runner.target_user_count:
            change = abs(wanted - runner.target_user_count)
            rate_per_s = min(max(1.0, float(change)), _MOST_SPAWNED_PER_S)
            runner.start(wanted, spawn_rate=rate_per_s, wait=False)


def users_at(stages: list[tuple[float, float, bool]], start: float, at_s: float) -> int:
    """How many users there are to be at an instant.

    Args:
        stages: Of each how long it takes, users at its end, and whether it jumps there at once.
        start: Users before the first.
        at_s: Seconds since the first began.
    """
    users = start
    for for_s, to, jump in stages:
        if at_s < for_s:
            part = 1.0 if jump else max(0.0, at_s) / for_s
            return math.floor(users + (to - users) * part)
        at_s -= for_s
        users = to
    return math.floor(users)
