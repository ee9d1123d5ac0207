"""The Locust users: a base class for anybody's own, and those that the profiles name."""

from __future__ import annotations

import functools

from locust import User, task

from harness.model.operation import Operation
from harness.swarm.sending import WorkerRun
from harness.swarm.table import Table
from harness.swarm.worker import current_run

_TURN_S = 0.05


class TableUser(User):
    """A user of a table, as `HttpUser` is one of a web site.

    Subclass it and write ``@task`` methods on `table`; pacing, accounting, metrics and the
    verdict come with it.
    """

    abstract = True

    @functools.cached_property
    def run_state(self) -> WorkerRun:
        """The run this user takes part in."""
        return current_run(self.environment)

    @functools.cached_property
    def table(self) -> Table:
        """The client."""
        return Table(self.run_state)


class WorkloadUser(TableUser):
    """Sends the operations of the profile's workload, one after the other."""

    abstract = True

    @task
    def operate(self) -> None:
        """One task after the other, for a moment: Locust's own turn takes as long as an operation.

        In between Locust looks whether this user is to stop.
        """
        run = self.run_state
        first = functools.partial(run.workload.next, run.rng)
        now_s = run.clock()
        until_s = now_s + _TURN_S
        while now_s < until_s:
            # One task: its first operation, and what follows from the answers.
            operation: Operation | None = run.made(first)
            if operation is None:
                return
            while operation is not None:
                result = run.perform_one_of_many(operation)
                then = operation.then
                operation = None if then is None else run.made(functools.partial(then, result))
                now_s = result.done_s


class ProfileUser(WorkloadUser):
    """What the profile says, whatever it is."""


class SinglePartitionUser(WorkloadUser):
    """Peak load on one partition, as the documented stress test wants it."""


class KeySpreadUser(WorkloadUser):
    """The same load on a spread of partition keys."""
