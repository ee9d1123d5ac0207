"""The Locust users: the base class of your own, and those that the profiles name."""

from __future__ import annotations

import functools

from locust import User, task

from harness.swarm.worker.table import Table
from harness.swarm.worker.worker import current_run
from harness.swarm.worker.worker_run import WorkerRun

_TURN_S = 0.05


class TableUser(User):
    """A user of a table, as `HttpUser` is one of a web site.

    Subclass it and write ``@task`` methods on `table`; pacing, accounting, metrics and the
    verdict come with it.
    """

    abstract = True

    @functools.cached_property
    def run_state(self) -> WorkerRun:
        """The current run in this worker."""
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
        """Perform tasks for 50 ms: Locust's own loop costs as much as an operation.

        After that, Locust checks whether this user has to stop.
        """
        run = self.run_state
        now_s = run.clock()
        until_s = now_s + _TURN_S
        while now_s < until_s:
            now_s = run.perform_task()


class ProfileUser(WorkloadUser):
    """What the profile says, whatever it is."""


class SinglePartitionUser(WorkloadUser):
    """Peak load on one partition, as the documented stress test wants it."""


class KeySpreadUser(WorkloadUser):
    """The same load on a spread of partition keys."""
