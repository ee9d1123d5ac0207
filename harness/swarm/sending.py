"""What a worker sends of a run: paced, counted, and reported every second.

A local run has this part and the master's in one process; both talk by the same messages.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import gevent
from gevent import GreenletExit
from locust.env import Environment
from locust.exception import StopUser
from locust.runners import LocalRunner

from harness.endpoint.clock import Clock, monotonic_utc
from harness.measure.generator import CpuSample
from harness.measure.ledger import Ledger
from harness.model.errors import SetupError
from harness.model.operation import Kind, Operation, require_text
from harness.model.outcome import Result
from harness.profile.build import source_of
from harness.profile.pace import counts_operations, pacer_of
from harness.profile.scenarios import fingerprint, mistake_of
from harness.swarm.cpu import sample_forever
from harness.swarm.departures import Departures
from harness.swarm.looking_up import worker_session
from harness.swarm.opening import endpoint_of, options_of
from harness.swarm.plan import RunPlan, Share
from harness.swarm.telling import Teller
from harness.workload.budget import Budget

REPORT_MESSAGE = "aztables-report"
THROTTLED_MESSAGE = "aztables-account-throttled"
DEFECT_MESSAGE = "aztables-defect"

REPORT_EVERY_S = 1.0
_QUERY = Kind.QUERY


class WorkerRun:
    """One run in one worker process.

    Attributes:
        plan: What the master decided.
        workload: Makes the operations; shared by all users of the process.
        rng: Its random source.
        teller: Tells Locust of what was done.
    """

    def __init__(self, environment: Environment, plan: RunPlan, worker: int, source: str) -> None:
        self.plan = plan
        self.clock: Clock = monotonic_utc()
        endpoint = endpoint_of(plan, environment.host or "")
        profile = plan.profile
        self.rng = random.Random(f"{profile.seed}/{worker}")
        if fingerprint(profile.scenario) != plan.scenario_hash:
            raise SetupError(
                f"this worker has another {profile.scenario} than the master; give both the same"
            )
        self.workload = source_of(profile, run_id=plan.run_id, worker=worker)
        self.ledger = Ledger(source)
        self.budget = Budget()
        options = options_of(plan, worker, endpoint, self.budget, self.clock)
        self.teller = Teller(environment)
        self._send_message = environment.runner.send_message
        self.session, self.auditor = worker_session(plan, worker, options, self._send_message)
        # Within one process a delta is handed over as it is.
        self._encoded = not isinstance(environment.runner, LocalRunner)
        # Its own source, so that random arrivals do not change the list of operations.
        arrivals = random.Random(f"{profile.seed}/{worker}/arrivals")
        self._departures = Departures(
            pacer_of(profile, endpoint.kind, arrivals),
            clock=self.clock,
            budget=self.budget,
            ledger=self.ledger,
            give_up_after_s=profile.load.give_up_after_s,
            by_operation=counts_operations(profile),
        )
        self._stopping = False
        self._ending: gevent.Greenlet | None = None
        self._active = 0
        self._most_connections = 0
        self._light = [0, 0.0]
        self._abandoned = 0
        self._defects = 0
        self._samples: list[CpuSample] = []
        self._said_throttled = False
        self._greenlets = [
            gevent.spawn(
                sample_forever, self.clock, self._departures.take_lag, self._samples.append
            ),
            gevent.spawn(self._report_forever),
        ]

    def take_share(self, share: Share) -> None:
        """Follow a new share of the load. What is repeated changes nothing."""
        if self._stopping:
            return
        self.budget.limit = share.budget
        if self.auditor is not None:
            self.auditor.grant(share.budget)
        if share.window is not None:
            self.ledger.open_window(*share.window)
        self._departures.take_share(share)

    def perform(self, operation: Operation) -> Result:
        """Wait until ``operation`` may leave, do it, and count what became of it.

        Raises:
            StopUser: the run is over.
        """
        due_s = self._departures.wait(operation.entities_asked)
        ledger = self.ledger
        ledger.note_due()
        ledger.note_sent()
        alone = self._active == 0
        self._active += 1
        try:
            result = self.session.execute(operation, due_s)
            ledger.add(result)
            if operation.kind is _QUERY and result.entities > operation.entities_asked:
                # What it walked uses up the schedule too.
                self._departures.walked(result.entities - operation.entities_asked)
            if alone and self._active == 1:
                self._light[0] += 1
                self._light[1] += result.service_s
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
        if not self._said_throttled and result.throttled_by_account:
            self._said_throttled = True
            self._send_message(THROTTLED_MESSAGE, {"run_id": self.plan.run_id})
        return result

    def perform_one_of_many(self, operation: Operation) -> Result:
        """Do as `perform` does, and tell Locust, by and by.

        Raises:
            StopUser: the run is over.
        """
        result = self.perform(operation)
        self.teller.tell_soon(result)
        if not self._active:
            # Nobody knows when the next one ends.
            self.teller.tell_all()
        return result

    def made(self, make: Callable[[], Operation | None]) -> Operation | None:
        """What the workload makes. Where it raises, that is no failure of the service.

        Nor is a key or a name that cannot even be counted.

        Raises:
            StopUser: it raised, or made none that can be counted. The run ends, and is not valid.
        """
        try:
            operation = make()
            if operation is not None:
                require_text(operation)
            return operation
        except Exception as error:
            self._defects += 1
            self._send_message(
                DEFECT_MESSAGE, {"run_id": self.plan.run_id, "sentence": mistake_of(error)}
            )
            raise StopUser from error

    def stop(self, at_s: float, grace_s: float) -> gevent.Greenlet:
        """Send nothing new from ``at_s`` on, let operations finish, then report for the last time.

        Returns what does so; it has ended when the last report has left.

        Args:
            at_s: UTC seconds.
            grace_s: How long operations in flight may take.
        """
        if self._ending is not None:
            return self._ending
        self._stopping = True
        self.ledger.close_window(self._departures.stop(at_s))
        self._ending = gevent.spawn(self._end, grace_s)
        return self._ending

    def close(self) -> None:
        """Stop every greenlet and close every connection."""
        gevent.killall(self._greenlets)
        self.session.close()
        self.ledger.close()

    def _report_forever(self) -> None:
        while True:
            gevent.sleep(REPORT_EVERY_S)
            self._report(final=False)

    def _end(self, grace_s: float) -> None:
        deadline = self.clock() + grace_s
        while self._active and self.clock() < deadline:
            gevent.sleep(0.02)
        gevent.killall(self._greenlets)
        self.ledger.note_due(self._departures.waiting())
        self._report(final=True)

    def _report(self, *, final: bool) -> None:
        # While all wait for a stalled service nobody else would.
        self.teller.tell_rest()
        self._most_connections = max(self._most_connections, self.session.connections_in_use)
        samples = list(self._samples)
        self._samples.clear()
        waiting = self._departures.waiting()
        self.ledger.note_waiting(self.clock(), waiting)
        delta = self.ledger.drain()
        self._send_message(
            REPORT_MESSAGE,
            {
                "run_id": self.plan.run_id,
                "final": final,
                "delta": delta.encode() if self._encoded else delta,
                "samples": [[s.second, s.cpu_percent, s.machine_percent, s.lag_s] for s in samples],
                "in_flight": self._active + self._abandoned,
                "waiting": waiting,
                "connections_in_use": self._most_connections,
                "light": list(self._light),
                "defects": self._defects,
                "billable_transactions": self.budget.spent,
                "exhausted": self.budget.exhausted,
                "written": self.auditor.written() if final and self.auditor is not None else None,
            },
        )
