"""The worker's side of a process: it listens to the master, and has the run that is sent.

A local run has this part and the master's in one process; both talk by the same messages.
"""

from __future__ import annotations

import gevent
from locust.env import Environment
from locust.exception import StopUser
from locust.rpc import Message

from harness.endpoint.clock import monotonic_utc
from harness.swarm.looking_up import LOOK_UP_MESSAGE, LOOK_UP_NO_MORE_MESSAGE, Auditor
from harness.swarm.plan import RunPlan, Share
from harness.swarm.sending import WorkerRun

SHARE_MESSAGE = "aztables-share"
STOP_MESSAGE = "aztables-stop"
REFUSED_MESSAGE = "aztables-refused"
HELLO_MESSAGE = "aztables-hello"

_LEAVING_S = 2.0
"""How long operations in flight may take when the process is to end."""
_HOOKED_UP_EVERY_S = 0.05
_HOOKED_UP_TRIES = 200


class WorkerPart:
    """What a worker process keeps between runs: the current run, and the share that came early."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._early: Share | None = None
        self.run: WorkerRun | None = None
        self.refused = False
        self._apart_from: str | None = None

    def register(self) -> None:
        """Listen to the master."""
        runner = self._environment.runner
        runner.register_message(SHARE_MESSAGE, self._on_share)
        runner.register_message(STOP_MESSAGE, self._on_stop)
        runner.register_message(LOOK_UP_MESSAGE, self._on_look_up)
        runner.register_message(LOOK_UP_NO_MORE_MESSAGE, self._on_look_up_no_more)

    def start(self, plan: RunPlan) -> None:
        """Begin the run that ``plan`` says.

        Raises:
            SetupError: this worker cannot take part.
        """
        self.end()
        self.refused = True
        runner = self._environment.runner
        self.run = WorkerRun(
            self._environment, plan, worker=runner.worker_index, source=runner.client_id
        )
        self.refused = False
        if self._early is not None and self._early.run_id == plan.run_id:
            self.run.take_share(self._early)

    def leave(self) -> None:
        """End the current run here, and report it: the process ends, whatever the others do."""
        if self.run is not None:
            self.run.stop(self.run.clock(), _LEAVING_S).join()
        self.end()

    def end(self) -> None:
        """Drop the current run."""
        if self.run is not None:
            self.run.close()
            self.run = None

    def _on_share(self, environment: Environment, msg: Message) -> None:
        share = Share.from_message(msg.data)
        if share.run_id == self._apart_from:
            # Its users wait for a share that does not come.
            return
        # The first one alone is judged: a later one may have waited for a process that was busy.
        if self._early is None or self._early.run_id != share.run_id:
            clock = monotonic_utc() if self.run is None else self.run.clock
            problem = share.clock_problem(clock())
            if problem is not None:
                self._apart_from = share.run_id
                self._environment.runner.send_message(
                    REFUSED_MESSAGE, {"run_id": share.run_id, "sentence": problem}
                )
                return
        self._early = share
        if self.run is not None and self.run.plan.run_id == share.run_id:
            self.run.take_share(share)

    def _on_stop(self, environment: Environment, msg: Message) -> None:
        if self.run is not None and self.run.plan.run_id == msg.data["run_id"]:
            # That is the time that users have; Locust gives them no more.
            self._environment.stop_timeout = 0.0
            self.run.stop(msg.data["at_s"], msg.data["grace_s"])

    def _on_look_up(self, environment: Environment, msg: Message) -> None:
        auditor = self._auditor_of(msg)
        if auditor is not None:
            auditor.look_up(msg.data)

    def _on_look_up_no_more(self, environment: Environment, msg: Message) -> None:
        auditor = self._auditor_of(msg)
        if auditor is not None:
            auditor.no_more()

    def _auditor_of(self, msg: Message) -> Auditor | None:
        """Who notes the run that a message is about; None where that is not the current one."""
        run = self.run
        return run.auditor if run is not None and run.plan.run_id == msg.data["run_id"] else None


_ATTRIBUTE = "table_stress_worker"


def attach(environment: Environment) -> WorkerPart:
    """Give ``environment`` its worker part."""
    part = WorkerPart(environment)
    setattr(environment, _ATTRIBUTE, part)
    part.register()
    return part


def current_run(environment: Environment) -> WorkerRun:
    """The run that users of ``environment`` take part in.

    Locust may start the users of a worker that joins a run before the worker is hooked up, so
    that this waits a moment.

    Raises:
        StopUser: this worker takes no part; the master knows why.
        RuntimeError: the locustfile did not call `wire`.
    """
    for _ in range(_HOOKED_UP_TRIES):
        part: WorkerPart | None = getattr(environment, _ATTRIBUTE, None)
        if part is not None and part.run is not None:
            return part.run
        if part is not None and part.refused:
            raise StopUser
        gevent.sleep(_HOOKED_UP_EVERY_S)
    if part is None:
        raise RuntimeError("a locustfile with a TableUser has to call wire(events)")
    raise StopUser
