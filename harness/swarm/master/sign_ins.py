"""Every worker gets a token of its login, before anything is created."""

from __future__ import annotations

import gevent
from locust.env import Environment
from locust.runners import MasterRunner

from harness.model.errors import SetupError
from harness.model.figures import counted
from harness.swarm.master.master_run import MasterRun
from harness.swarm.master.sharing import live_workers
from harness.swarm.messages import SignedIn, SignIn, host_of, send

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
        """Ask every worker to get a token; return when all that are still there have one.

        Raises:
            SetupError: a worker gets none.
        """
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
