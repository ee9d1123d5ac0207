"""A worker without a master, in a process of its own: what a process can generate.

Each line of standard input is a kind of session, an address and a length in seconds. The process
sends single upserts of 1 KiB to that address as fast as it can, as the users of a run do, and
prints what came of it as a line of JSON. It ends when standard input closes.
"""

from locust import events  # isort: skip

import json
import os
import sys
import time

import gevent
from gevent.fileobject import FileObject
from locust.env import Environment

from harness.endpoint.accounts import Credentials, accounts_from
from harness.measure.counts.ledger import Ledger
from harness.model.process import steady_clock
from harness.model.services import EMBEDDED
from harness.profile.profile_loader import parse
from harness.profile.settings.parts import EXAMPLE_RUN_ID
from harness.swarm.messages import Share, WorkerReport, on
from harness.swarm.plan import RunPlan
from harness.swarm.worker.users import SinglePartitionUser
from harness.swarm.worker.worker import Worker, attach

USERS = 10
_WARM_UP_S = 0.25
_PROFILE = {
    "question": "What can a process generate?",
    "keys": {"rows_per_partition": 100},
    "mix": {"upsert_merge": 1},
    "load": {
        "users": USERS,
        "max_entities_per_s": float("inf"),
        "emulator_max_entities_per_s": float("inf"),
    },
}


class _Counting:
    """Counts what a worker does, in place of a master."""

    def __init__(self, environment: Environment, worker: Worker) -> None:
        self.worker = worker
        self._total = Ledger("master")
        on(environment.runner, WorkerReport, self._take)

    def _take(self, report: WorkerReport, _: str) -> None:
        self._total.merge(report.delta)
        if self.worker.run is not None:
            self.worker.run.confirm(report.number)

    def now(self) -> tuple[float, ...]:
        """Operations, entities, CPU time and time so far."""
        run = self.worker.run
        counts = [self._total.counts, *([] if run is None else [run.ledger.counts])]
        return (
            sum(one.operations for one in counts),
            sum(one.entities for one in counts),
            time.process_time(),
            time.perf_counter(),
        )


def measure(
    environment: Environment, counting: _Counting, session: str, seconds: float
) -> dict[str, float]:
    """Send for ``seconds``, after a warm-up; what was sent, and in which CPU time."""
    worker = counting.worker
    plan = RunPlan(
        run_id=EXAMPLE_RUN_ID,
        profile_name="capacity",
        profile=parse(_PROFILE, source="capacity"),
        table="stress",
        own_table=False,
        session=session,
        fingerprint=accounts_from(environment.host, {}).fingerprint,
        embedded=True,
        kind=EMBEDDED,
    )
    worker.start(plan, steady_clock())
    assert worker.run is not None
    now_s = worker.run.clock()
    worker.run.take_share(Share(run_id=EXAMPLE_RUN_ID, rank=0, count=1, epoch_s=now_s))
    environment.runner.start(USERS, spawn_rate=100)
    gevent.sleep(_WARM_UP_S)
    before = counting.now()
    gevent.sleep(seconds)
    after = counting.now()
    worker.run.stop(worker.run.clock(), 1.0).join()
    environment.runner.stop()
    worker.end()
    made = (b - a for a, b in zip(before, after, strict=True))
    return dict(zip(("operations", "entities", "cpu_s", "wall_s"), made, strict=True))


def main() -> None:
    environment = Environment(user_classes=[SinglePartitionUser], events=events)
    environment.create_local_runner()
    counting = _Counting(environment, attach(environment, Credentials({})))
    print("ready", flush=True)
    for line in FileObject(sys.stdin.fileno(), "r"):
        session, environment.host, seconds = line.split()
        print(json.dumps(measure(environment, counting, session, float(seconds))), flush=True)
    # There is nothing to end in order: all runs have ended.
    os._exit(0)


if __name__ == "__main__":
    main()
