"""Which workers take part, and what part of the load each has."""

from __future__ import annotations

import gevent
import gevent.event
from locust.env import Environment
from locust.runners import MasterRunner

from harness.endpoint.clock import Clock
from harness.swarm.plan import Share
from harness.swarm.run import Run
from harness.swarm.worker import SHARE_MESSAGE, STOP_MESSAGE

GRACE_S = 10.0
"""How long operations in flight may take after the end."""
REPORTS_WITHIN_S = 15.0
"""How long the master waits for the workers' last reports."""
NOTICE_S = 0.5
"""What changes for all workers at once is announced so long before."""
_LOOK_EVERY_S = 0.02


class Sharing:
    """Divides one run among the workers, again whenever they change.

    The rate follows the workers that are there. The budget of billable transactions is divided
    once: a worker that comes later has none of it, so that it cannot be exceeded, and no part of
    the rate.

    Args:
        environment: Locust's.
        run: What is divided.
        clock: UTC seconds.
    """

    def __init__(self, environment: Environment, run: Run, clock: Clock) -> None:
        self._environment = environment
        self._run = run
        self._clock = clock
        self._budgets: dict[str, int | None] | None = None
        self._first: frozenset[str] = frozenset()
        self._excluded: set[str] = set()
        self._from_s = 0.0
        self._hold: tuple[float, float] | None = None
        self.workers: list[str] = []

    def begin(self) -> list[str]:
        """The workers that are there at the beginning."""
        self.workers = live_workers(self._environment)
        self._first = frozenset(self.workers)
        return self.workers

    def exclude(self, worker: str) -> bool:
        """Go on without a worker that came late; False where it was there at the beginning."""
        if worker in self._first:
            return False
        self._excluded.add(worker)
        return True

    def grant(self, budgets: list[int | None]) -> None:
        """Give each worker that is there its part of the budget."""
        self._budgets = dict(zip(self.workers, budgets, strict=True))

    def follow(self, now_s: float) -> None:
        """Share out again if a worker came or went; ``now_s`` is UTC."""
        workers = self._taking_part()
        if workers != self.workers:
            self.workers = workers
            if self._run.origin_s is not None:
                # An instant to come, the same for all, so that the whole rate does not drift.
                self._from_s = now_s + NOTICE_S - self._run.origin_s
            self.share_out()

    def hold(self, from_s: float, per_s: float) -> None:
        """From ``from_s``, UTC, on the rate of all workers together is another."""
        assert self._run.origin_s is not None
        self._hold = (from_s - self._run.origin_s, per_s)
        self.share_out()

    def share_out(self) -> None:
        """Tell every worker its part, once it is known when the schedule begins."""
        run = self._run
        if run.origin_s is None:
            return
        bounded = run.plan.profile.limits.billable_transactions is not None
        budgets = self._budgets or {}
        sending = [worker for worker in self.workers if worker in budgets or not bounded]
        for worker in self.workers:
            share = Share(
                run_id=run.plan.run_id,
                rank=sending.index(worker) if worker in sending else 0,
                count=len(sending) or 1,
                budget=budgets.get(worker, 0 if bounded else None),
                epoch_s=run.origin_s,
                from_s=self._from_s,
                hold=self._hold,
                window=run.window,
                told_s=self._clock(),
            )
            self._environment.runner.send_message(SHARE_MESSAGE, share.to_message(), worker)

    def collect(self, stopped_s: float, hurry: gevent.event.Event) -> None:
        """Ask every worker for its last report, and wait for them, 15 s at most.

        Args:
            stopped_s: From when on nothing new is sent, UTC seconds.
            hurry: Set when nothing is to be waited for any more.
        """
        run, runner = self._run, self._environment.runner
        grace_s = 0.0 if hurry.is_set() else GRACE_S
        message = {"run_id": run.plan.run_id, "at_s": stopped_s, "grace_s": grace_s}
        run.asked = tuple(self._taking_part())
        for worker in run.asked:
            runner.send_message(STOP_MESSAGE, message, worker)
        deadline = self._clock() + REPORTS_WITHIN_S
        while self._clock() < deadline and not hurry.is_set():
            finals = {worker for worker, report in run.reports.items() if report.final}
            if finals.issuperset(run.asked):
                return
            gevent.sleep(_LOOK_EVERY_S)

    def _taking_part(self) -> list[str]:
        alive = live_workers(self._environment)
        return [worker for worker in alive if worker not in self._excluded]


def live_workers(environment: Environment) -> list[str]:
    """Ids of the workers that take part, in the order in which they came."""
    runner = environment.runner
    if not isinstance(runner, MasterRunner):
        return ["local"]
    alive = [*runner.clients.ready, *runner.clients.spawning, *runner.clients.running]
    return sorted((node.id for node in alive), key=runner.get_worker_index)
