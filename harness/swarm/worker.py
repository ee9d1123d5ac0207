"""A worker's part of a run: it sends, counts, and reports what it counted every second.

A local run has this part and the master's in one process; both talk by the same messages.
"""

from __future__ import annotations

import os
import random

import gevent
import gevent.event
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
THROTTLED_MESSAGE = "aztables-account-throttled"

REPORT_EVERY_S = 1.0


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
        self._stopping = False
        self._handed_out = 0
        self._active = 0
        self._abandoned = 0
        self._lag_s = 0.0
        self._samples: list[CpuSample] = []
        self._said_throttled = False
        self._ended = False
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
        finished = False
        try:
            result = self.session.execute(operation, due_s)
            ledger.add(result)
            finished = True
        finally:
            self._active -= 1
            if not finished:
                self._abandoned += 1
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
        self._shared.set()
        gevent.spawn(self._end, grace_s)

    def close(self) -> None:
        """Stop every greenlet and close every connection."""
        gevent.killall(self._greenlets)
        self.session.close()
        self.ledger.close()

    def _wait_until_due(self, operation: Operation) -> float | None:
        self._shared.wait()
        while True:
            now = self.clock()
            pacer = self._pacer
            due = pacer.next(now - self._epoch_s, self._handed_out)
            if due is STOP or self.budget.exhausted:
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
        runner = self._environment.runner
        self.run = WorkerRun(
            self._environment, plan, worker=runner.worker_index, source=runner.client_id
        )
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

    Raises:
        StopUser: this worker refused to take part; the master ends the run.
        RuntimeError: the locustfile did not call `wire`.
    """
    part: WorkerPart | None = getattr(environment, _ATTRIBUTE, None)
    if part is None:
        raise RuntimeError("a locustfile with a TableUser has to call wire(events)")
    if part.run is None:
        raise StopUser
    return part.run
