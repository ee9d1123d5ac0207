"""A worker's part of a run: it sends, counts, and reports what it counted every second.

A local run has this part and the master's in one process; both talk by the same messages.
"""

from __future__ import annotations

import os
import random

import gevent
import gevent.event
import gevent.lock
from gevent import GreenletExit
from locust.env import Environment
from locust.exception import StopUser
from locust.rpc import Message
from locust.runners import LocalRunner

from harness.endpoint.clock import Clock, monotonic_utc
from harness.endpoint.connection import behind_gateway, endpoint_from
from harness.endpoint.sessions import open_session
from harness.measure.generator import CpuSample
from harness.measure.ledger import Ledger
from harness.model.errors import SetupError
from harness.model.operation import Operation
from harness.model.outcome import Result, Scope
from harness.profile.build import pacer_of, retry_of, workload_of
from harness.swarm.cpu import sample_forever
from harness.swarm.plan import RunPlan, Share
from harness.workload.budget import Budget
from harness.workload.pacing import STOP

SHARE_MESSAGE = "aztables-share"
STOP_MESSAGE = "aztables-stop"
REPORT_MESSAGE = "aztables-report"
REFUSED_MESSAGE = "aztables-refused"
HELLO_MESSAGE = "aztables-hello"
THROTTLED_MESSAGE = "aztables-account-throttled"

REPORT_EVERY_S = 1.0
_HOOKED_UP_EVERY_S = 0.05
_HOOKED_UP_TRIES = 200


class WorkerRun:
    """One run in one worker process.

    Attributes:
        plan: What the master decided.
        workload: Makes the operations; shared by all users of the process.
        rng: Its random source.
    """

    def __init__(self, environment: Environment, plan: RunPlan, worker: int, source: str) -> None:
        self.plan = plan
        self.clock: Clock = monotonic_utc()
        endpoint = endpoint_from(environment.host or "", {} if plan.embedded else os.environ)
        if plan.throttled:
            endpoint = behind_gateway(endpoint)
        if endpoint.fingerprint != plan.fingerprint:
            raise SetupError(
                f"this worker would talk to account {endpoint.account!r} at {endpoint.host}, the "
                "master to another; give both the same host and credentials"
            )
        profile = plan.profile
        self.rng = random.Random(f"{profile.seed}/{worker}")
        self.workload = workload_of(profile, run_id=plan.run_id, worker=worker)
        self.ledger = Ledger(source)
        self.budget = Budget()
        self.session = open_session(
            plan.session,
            endpoint=endpoint,
            table=plan.table,
            run_id=plan.run_id,
            retry=retry_of(profile),
            budget=self.budget,
            clock=self.clock,
            # Its own source, so that retries do not change the list of operations.
            rng=random.Random(f"{profile.seed}/{worker}/retry"),
            connections=profile.session.connections,
            connect_timeout_s=profile.session.connect_timeout_s,
            read_timeout_s=profile.session.read_timeout_s,
        )
        self.fire_request = environment.events.request.fire
        self._send_message = environment.runner.send_message
        # Within one process a delta is handed over as it is.
        self._encoded = not isinstance(environment.runner, LocalRunner)
        self._all_workers = pacer_of(profile, endpoint.kind)
        self._pacer = self._all_workers
        self._epoch_s = 0.0
        self._shared = gevent.event.Event()
        # One user at a time has a slot and waits for it, so that a new share holds at once.
        self._turn = gevent.lock.Semaphore(1)
        self._stopping = False
        self._handed_out = 0
        self._active = 0
        self._abandoned = 0
        self._defects = 0
        self._lag_s = 0.0
        self._samples: list[CpuSample] = []
        self._said_throttled = False
        self._greenlets = [
            gevent.spawn(sample_forever, self.clock, self._take_lag, self._samples.append),
            gevent.spawn(self._report_forever),
        ]

    def take_share(self, share: Share) -> None:
        """Follow a new share of the load."""
        self._pacer = self._all_workers.share(share.rank, share.count)
        self._epoch_s = share.epoch_s
        self.budget.limit = share.budget
        if share.window is not None:
            start, end = share.window
            self.ledger.open_window(start, end)
            self._pacer.end(end - share.epoch_s)
        self._shared.set()

    def perform(self, operation: Operation) -> Result:
        """Wait until ``operation`` may leave, do it, and count what became of it.

        Raises:
            StopUser: the run is over.
        """
        due_s = self._wait_until_due(operation)
        ledger = self.ledger
        ledger.note_due()
        if self.budget.exhausted:
            ledger.note_dropped()
            raise StopUser
        ledger.note_sent()
        self._active += 1
        try:
            result = self.session.execute(operation, due_s)
            ledger.add(result)
        except GreenletExit:
            self._abandoned += 1
            raise
        except Exception:
            # No failure of the service comes as an exception.
            self._abandoned += 1
            self._defects += 1
            raise
        finally:
            self._active -= 1
        if not self._said_throttled and _throttled_by_account(result):
            self._said_throttled = True
            self._send_message(THROTTLED_MESSAGE, {"run_id": self.plan.run_id})
        return result

    def stop(self, at_s: float, grace_s: float) -> None:
        """Send nothing new from ``at_s`` on, let operations finish, then report for the last time.

        Args:
            at_s: UTC seconds.
            grace_s: How long operations in flight may take.
        """
        if self._stopping:
            return
        self._stopping = True
        self._pacer.end(at_s - self._epoch_s)
        self.ledger.close_window(at_s)
        self._shared.set()
        gevent.spawn(self._end, grace_s)

    def close(self) -> None:
        """Stop every greenlet and close every connection."""
        gevent.killall(self._greenlets)
        self.session.close()
        self.ledger.close()

    def _wait_until_due(self, operation: Operation) -> float | None:
        self._shared.wait()
        with self._turn:
            now = self.clock()
            due = self._pacer.next(now - self._epoch_s, self._handed_out)
            if due is STOP or self._stopping or self.budget.exhausted:
                raise StopUser
            self._handed_out += operation.entities_asked
            at_s = self._epoch_s + due.at_s
            if at_s > now:
                gevent.sleep(at_s - now)
                if self._stopping:
                    raise StopUser
                self._lag_s = max(self._lag_s, self.clock() - at_s)
            return at_s if due.scheduled else None

    def _take_lag(self) -> float:
        lag_s, self._lag_s = self._lag_s, 0.0
        return lag_s

    def _report_forever(self) -> None:
        while True:
            gevent.sleep(REPORT_EVERY_S)
            self._report(final=False)

    def _end(self, grace_s: float) -> None:
        deadline = self.clock() + grace_s
        while self._active and self.clock() < deadline:
            gevent.sleep(0.02)
        gevent.killall(self._greenlets)
        self._report(final=True)

    def _report(self, *, final: bool) -> None:
        samples = list(self._samples)
        self._samples.clear()
        delta = self.ledger.drain()
        self._send_message(
            REPORT_MESSAGE,
            {
                "run_id": self.plan.run_id,
                "final": final,
                "delta": delta.encode() if self._encoded else delta,
                "samples": [[s.second, s.cpu_percent, s.machine_percent, s.lag_s] for s in samples],
                "in_flight": self._active + self._abandoned,
                "defects": self._defects,
                "billable_transactions": self.budget.spent,
                "exhausted": self.budget.exhausted,
            },
        )


def _throttled_by_account(result: Result) -> bool:
    return any(attempt.scope is Scope.ACCOUNT for attempt in result.attempts)


class WorkerPart:
    """What a worker process keeps between runs: the current run, and the share that came early."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._early: Share | None = None
        self.run: WorkerRun | None = None
        self.refused = False

    def register(self) -> None:
        """Listen to the master."""
        runner = self._environment.runner
        runner.register_message(SHARE_MESSAGE, self._on_share)
        runner.register_message(STOP_MESSAGE, self._on_stop)

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

    def end(self) -> None:
        """Drop the current run."""
        if self.run is not None:
            self.run.close()
            self.run = None

    def _on_share(self, environment: Environment, msg: Message) -> None:
        share = Share.from_message(msg.data)
        self._early = share
        if self.run is not None and self.run.plan.run_id == share.run_id:
            self.run.take_share(share)

    def _on_stop(self, environment: Environment, msg: Message) -> None:
        if self.run is not None and self.run.plan.run_id == msg.data["run_id"]:
            self.run.stop(msg.data["at_s"], msg.data["grace_s"])


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
