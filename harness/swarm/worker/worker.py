"""The worker's side of a process: it takes the master's messages and holds the current run.

A local run has this side and the master's in one process; both exchange the same messages.
"""

from __future__ import annotations

import dataclasses

import gevent
import gevent.queue
from locust.env import Environment
from locust.exception import StopUser
from locust.runners import Runner

from harness import startup
from harness.endpoint.accounts import Accounts, Credentials
from harness.model.errors import SetupError
from harness.model.process import Clock, steady_clock
from harness.swarm import messages
from harness.swarm.messages import on, send
from harness.swarm.plan import RunPlan
from harness.swarm.worker.worker_run import WorkerRun

MAX_DIFFERENCE_S = 5.0
"""A worker whose clock is further off is refused: it would fail elsewhere, as with a SAS."""
_QUESTIONS = 5
_ANSWERED_WITHIN_S = 1.0
_LEAVING_S = 2.0
"""How long operations in flight may take when the process exits."""
_LAST_REPORT_WITHIN_S = 5.0
"""How long a process that exits waits for its last report to arrive, operations included."""
_TOLD_DIFFERENCE_S = 0.1
_ATTRIBUTE = "table_stress_worker"
_ATTACHED_EVERY_S = 0.05
_ATTACHED_TRIES = 200


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    """How far the clock of a worker is ahead of the master's, in seconds, and how exactly."""

    ahead_s: float
    within_s: float

    @classmethod
    def of(cls, asked_s: float, answered_s: float, received_s: float) -> Difference:
        """What one answer tells; only ``answered_s`` is a time of the master."""
        return cls((asked_s + received_s) / 2 - answered_s, (received_s - asked_s) / 2)

    @property
    def known_s(self) -> float:
        """The difference, or 0 where the way of the messages can explain it."""
        return 0.0 if abs(self.ahead_s) <= self.within_s else self.ahead_s

    @property
    def problem(self) -> str | None:
        """Why the worker cannot take part; None if it can."""
        if abs(self.known_s) <= MAX_DIFFERENCE_S:
            return None
        direction = "ahead of" if self.ahead_s > 0 else "behind"
        return (
            f"its clock is {abs(self.ahead_s):,.0f} s {direction} the master's; synchronize the "
            "clocks of both machines (NTP)"
        )


class MasterClock:
    """Reads the clock of the master that ``runner`` is connected to.

    Counts of all workers are merged second by second, and the schedule begins at one moment for
    all. So a worker takes its time from the master: it asks a few times, and the answer that came
    fastest tells best how far the clocks are apart (Cristian's algorithm, as in NTP).
    """

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._own = steady_clock()
        self._answers: gevent.queue.Queue[Difference] = gevent.queue.Queue()
        on(runner, messages.ClockAnswer, self._on_answer)

    def read(self, run_id: str) -> tuple[Clock, Difference]:
        """The master's clock for a run, and how far this machine's is ahead of it.

        Waits for the master for as long as that takes. A `SetupError` if they are too far apart.
        """
        self._own = own = steady_clock()
        self._answers = gevent.queue.Queue()
        found: list[Difference] = []
        while len(found) < _QUESTIONS:
            send(self._runner, messages.ClockQuestion(run_id=run_id, asked_s=own()))
            try:
                found.append(self._answers.get(timeout=_ANSWERED_WITHIN_S))
            except gevent.queue.Empty:
                continue
        best = min(found, key=lambda difference: difference.within_s)
        if best.problem is not None:
            raise SetupError(best.problem)
        known_s = best.known_s
        return (lambda: own() - known_s) if known_s else own, best

    def _on_answer(self, answer: messages.ClockAnswer, _: str) -> None:
        self._answers.put(Difference.of(answer.asked_s, answer.answered_s, self._own()))


class Worker:
    """The current run of a worker process, and a share that arrived before its run."""

    def __init__(
        self, environment: Environment, credentials: Credentials, *, verbose: bool
    ) -> None:
        self._environment = environment
        self._credentials = credentials
        self._verbose = verbose
        self._early: messages.Share | None = None
        self._joining: gevent.Greenlet | None = None
        self.run: WorkerRun | None = None
        self.refused = False
        runner = environment.runner
        self._master_clock = MasterClock(runner)
        on(runner, messages.SignIn, self._on_sign_in)
        on(runner, messages.Share, self._on_share)
        on(runner, messages.RunStop, self._on_stop)
        on(runner, messages.ReportTaken, self._on_report_taken)
        on(runner, messages.AuditRequest, self._on_audit_request)
        on(runner, messages.AuditStop, self._on_audit_stop)

    def wait_until_joined(self) -> None:
        """Wait until it is known whether this worker takes part in the run."""
        if self._joining is not None:
            self._joining.join()

    def join(self, plan: RunPlan) -> None:
        """Take part in the run that ``plan`` describes, as soon as the master's clock is known."""
        self.end()
        self._joining = gevent.spawn(self._join, plan)

    def _join(self, plan: RunPlan) -> None:
        self.refused = True
        try:
            clock, difference = self._master_clock.read(plan.run_id)
            self._begin(plan, clock)
        except SetupError as error:
            startup.complain(f"this worker takes no part in run {plan.run_id}: {error}")
            self._environment.process_exit_code = startup.BAD_SETUP
            refusal = messages.WorkerRefusal(run_id=plan.run_id, reason=str(error))
            send(self._environment.runner, refusal)
        else:
            self._environment.process_exit_code = None
            self._tell(f"Run {plan.run_id}: this worker sends the load of {plan.name}")
            if abs(difference.known_s) >= _TOLD_DIFFERENCE_S:
                direction = "ahead of" if difference.known_s > 0 else "behind"
                self._tell(
                    f"The clock of this machine is {abs(difference.known_s):.1f} s {direction} the "
                    "master's; the counts are in the master's time"
                )

    def _tell(self, line: str) -> None:
        if self._verbose:
            startup.tell(line)

    def start(self, plan: RunPlan, clock: Clock) -> None:
        """Begin the run that ``plan`` describes by the master's clock, or raise a `SetupError`."""
        self.end()
        self._begin(plan, clock)

    def _begin(self, plan: RunPlan, clock: Clock) -> None:
        self.refused = True
        # A worker that comes late gets its token here.
        accounts = self._accounts(plan, self._environment.host or "")
        self.run = WorkerRun(self._environment, plan, accounts, clock)
        self.refused = False
        if self._early is not None and self._early.run_id == plan.run_id:
            self.run.take_share(self._early)

    def leave(self, *, master_is_there: bool) -> None:
        """End and report the current run, because the process exits."""
        if self.run is not None:
            within_s = _LAST_REPORT_WITHIN_S if master_is_there else _LEAVING_S
            self.run.stop(self.run.clock(), _LEAVING_S).join(within_s)
        self.end()

    def end(self) -> None:
        if self._joining is not None:
            self._joining.kill()
            self._joining = None
        if self.run is not None:
            self.run.close()
            self.run = None

    def _accounts(self, plan: RunPlan, host: str) -> Accounts:
        def tell_master(text: str) -> None:
            send(self._environment.runner, messages.LoginNote(text=text))

        return plan.accounts(host, self._credentials, tell_master)

    def _on_sign_in(self, message: messages.SignIn, _: str) -> None:
        # Locust handles one message after the other.
        gevent.spawn(self._sign_in, message)

    def _sign_in(self, message: messages.SignIn) -> None:
        problem = ""
        try:
            self._accounts(RunPlan.from_options(message.plan), message.host)
        except SetupError as error:
            problem = str(error)
        send(self._environment.runner, messages.SignedIn(run_id=message.run_id, problem=problem))

    def _on_share(self, share: messages.Share, _: str) -> None:
        self._early = share
        if (run := self._run_of(share.run_id)) is not None:
            run.take_share(share)

    def _on_stop(self, stop: messages.RunStop, _: str) -> None:
        if (run := self._run_of(stop.run_id)) is not None:
            # The grace time replaces Locust's own stop timeout.
            self._environment.stop_timeout = 0.0
            run.stop(stop.at_s, stop.grace_s)

    def _on_report_taken(self, taken: messages.ReportTaken, _: str) -> None:
        if (run := self._run_of(taken.run_id)) is not None and run.confirm(taken.number):
            self._tell(f"Run {taken.run_id}: over; the master has all counts of this worker")

    def _on_audit_request(self, request: messages.AuditRequest, _: str) -> None:
        if (run := self._run_of(request.run_id)) is not None and run.auditor is not None:
            run.auditor.read_back(request)

    def _on_audit_stop(self, stop: messages.AuditStop, _: str) -> None:
        if (run := self._run_of(stop.run_id)) is not None and run.auditor is not None:
            run.auditor.stop()

    def _run_of(self, run_id: str) -> WorkerRun | None:
        return self.run if self.run is not None and self.run.plan.run_id == run_id else None


def attach(environment: Environment, credentials: Credentials, *, verbose: bool = False) -> Worker:
    """Give ``environment`` its worker side, which with ``verbose`` has a terminal of its own."""
    worker = Worker(environment, credentials, verbose=verbose)
    setattr(environment, _ATTRIBUTE, worker)
    return worker


def current_run(environment: Environment) -> WorkerRun:
    """The run that the users of ``environment`` take part in; `StopUser` if they take no part.

    Locust may start the users of a worker that joins a run before `attach` was called, so this
    function waits for it.
    """
    for _ in range(_ATTACHED_TRIES):
        worker: Worker | None = getattr(environment, _ATTRIBUTE, None)
        if worker is not None:
            worker.wait_until_joined()
            if worker.run is not None:
                return worker.run
            if worker.refused:
                raise StopUser
        gevent.sleep(_ATTACHED_EVERY_S)
    if worker is None:
        raise RuntimeError("a locustfile with a TableUser must call wire(events)")
    raise StopUser
