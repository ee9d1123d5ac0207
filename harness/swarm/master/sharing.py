"""Divides the load of a run among its workers, and collects their last reports.

Every worker gets a token of its login before anything is created.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

import gevent
import gevent.event
from locust.env import Environment
from locust.runners import MasterRunner

from harness.model.errors import SetupError
from harness.model.figures import counted
from harness.swarm.master.master_run import MasterRun
from harness.swarm.messages import REPORTS_WITHIN_S, RunStop, Share, SignedIn, SignIn, host_of, send

GRACE_S = 10.0
"""How long operations in flight may take after the end."""
NOTICE_S = 0.5
"""Changes that hold for all workers from one moment on are sent this long before it."""
_ASK_EVERY_S = 2.0
_REPEATED_EVERY_S = 3.0
_POLL_S = 0.02


class SignIns:
    """The workers of one run that have a token. Each fetches its own: none is sent to it."""

    def __init__(self, environment: Environment, run: MasterRun) -> None:
        self._environment = environment
        self._run = run
        self._asked: list[str] = []
        self._problems: dict[str, str] = {}

    @property
    def needed(self) -> bool:
        """True where the run uses a login, and other processes send the load."""
        has_workers = isinstance(self._environment.runner, MasterRunner)
        return has_workers and bool(self._run.accounts.logins)

    def take(self, worker: str, answer: SignedIn) -> None:
        self._problems[worker] = answer.problem

    def wait(self) -> None:
        """Ask every worker for a token; a `SetupError` if one that is still there gets none."""
        run = self._run
        self._asked = live_workers(self._environment)
        plan = run.plan.to_options()
        message = SignIn(run_id=run.plan.run_id, host=run.accounts.url, plan=plan)
        for worker in self._asked:
            send(self._environment.runner, message, worker)
        while self._waited_for():
            for worker, problem in self._problems.items():
                if problem:
                    raise SetupError(f"the worker on {host_of(worker)} refused the run: {problem}")
            gevent.sleep(_POLL_S)

    def waits_for(self) -> str:
        return f"{counted(len(self._waited_for()), 'worker')} without one"

    def _waited_for(self) -> list[str]:
        """The workers without a token; one with a problem stays among them."""
        alive = live_workers(self._environment)
        return [one for one in self._asked if one in alive and self._problems.get(one) != ""]


class Sharing:
    """Divides one run among the ``workers``, again whenever a worker comes or goes.

    The budget of billable transactions is divided once, so that it cannot be exceeded: a worker
    that comes later gets none of it, and no part of the rate. Only those that are ``ready`` take
    messages: one that has just connected may not yet.
    """

    def __init__(self, environment: Environment, run: MasterRun, ready: Set[str]) -> None:
        self._environment = environment
        self._run = run
        self._ready = ready
        self._repeat_s = 0.0
        # Of the workers that were there at the beginning.
        self._budgets: dict[str, tuple[int, ...] | None] = {}
        self._from_s = 0.0
        self._hold: tuple[float, float] | None = None
        self.workers: list[str] = []

    def begin(self, divided: Callable[[int], Sequence[tuple[int, ...] | None]]) -> None:
        """Let the run begin with the current workers, each with its part of the budgets.

        ``divided`` divides the budget of each account among a number of workers.
        """
        self.workers = live_workers(self._environment)
        self._run.took_part.update(self.workers)
        budgets = divided(max(1, len(self.workers)))
        self._budgets = dict(zip(self.workers, budgets[: len(self.workers)], strict=True))

    def needs(self, worker: str) -> bool:
        """True if the worker was there at the beginning: the run cannot go on without it."""
        return worker in self._budgets

    def follow(self, now_s: float) -> tuple[list[str], list[str]]:
        """Divide the load again if a worker came or went by ``now_s``, UTC; return who did.

        Shares are sent again every few seconds, because a connection that breaks loses messages.
        """
        earlier, workers = self.workers, self._taking_part()
        if workers != self.workers:
            self.workers = workers
            if self._run.origin_s is not None:
                # A moment in the future, the same for all, so that the total rate stays exact.
                self._from_s = now_s + NOTICE_S - self._run.origin_s
            self.share_out()
        elif now_s >= self._repeat_s:
            self.share_out()
        came = [worker for worker in workers if worker not in earlier]
        return came, [worker for worker in earlier if worker not in workers]

    def hold(self, from_s: float, per_s: float) -> None:
        """Set the total rate of all workers from ``from_s``, UTC, on."""
        assert self._run.origin_s is not None
        self._hold = (from_s - self._run.origin_s, per_s)
        self.share_out()

    def share_out(self) -> None:
        """Send every worker its share, if the beginning of the schedule is known."""
        run = self._run
        if run.origin_s is None:
            return
        self._repeat_s = run.clock() + _REPEATED_EVERY_S
        bounded = run.plan.profile.limits.billable_transactions is not None
        nothing = (0,) * len(run.accounts) if bounded else None
        sending = [worker for worker in self.workers if worker in self._budgets or not bounded]
        for worker in filter(self._ready.__contains__, self.workers):
            share = Share(
                run_id=run.plan.run_id,
                rank=sending.index(worker) if worker in sending else 0,
                count=len(sending) or 1,
                budget=self._budgets.get(worker, nothing),
                epoch_s=run.origin_s,
                from_s=self._from_s,
                hold=self._hold,
                window=run.window,
            )
            send(self._environment.runner, share, worker)

    def collect(self, stopped_s: float, hurry: gevent.event.Event) -> None:
        """Ask every worker for its last report; wait 15 s, or until ``hurry`` is set.

        Nothing is sent that is due at ``stopped_s``, UTC, or later.
        """
        run = self._run
        grace_s = 0.0 if hurry.is_set() else GRACE_S
        stop = RunStop(run_id=run.plan.run_id, at_s=stopped_s, grace_s=grace_s)
        run.took_part.update(self._taking_part())
        deadline, ask_s = run.clock() + REPORTS_WITHIN_S, 0.0
        while missing := [one for one in self._taking_part() if not run.has_final_report(one)]:
            if run.clock() >= ask_s:
                # Again, because a connection that breaks loses messages.
                ask_s = run.clock() + _ASK_EVERY_S
                for worker in missing:
                    send(self._environment.runner, stop, worker)
            if run.clock() >= deadline or hurry.is_set():
                return
            gevent.sleep(_POLL_S)

    def _taking_part(self) -> list[str]:
        """The connected workers that began the run, and those that have reported since."""
        joined = self._budgets.keys() | self._run.reports.keys()
        return [worker for worker in live_workers(self._environment) if worker in joined]


def live_workers(environment: Environment) -> list[str]:
    """Return the ids of the connected workers, in the order in which they came."""
    runner = environment.runner
    if not isinstance(runner, MasterRunner):
        return ["local"]
    alive = [*runner.clients.ready, *runner.clients.spawning, *runner.clients.running]
    return sorted((node.id for node in alive), key=runner.get_worker_index)
