"""The master's part: prepares a run, leads it through the documented procedure, ends it one way.

Every end (run time, Stop, Ctrl-C, SIGTERM, budget, throttling of the account) goes through
`Conductor.finish`: pacers say STOP, operations in flight finish, workers report for the last time,
the run is judged and recorded, and what it made is deleted.
"""

from __future__ import annotations

import datetime as dt
import logging
import math
import random
import secrets
from collections.abc import Callable

import gevent
import gevent.event
from gevent import GreenletExit
from locust.env import Environment
from locust.rpc import Message
from locust.runners import STATE_SPAWNING, MasterRunner

from harness.endpoint.clock import monotonic_utc
from harness.endpoint.connection import Endpoint
from harness.endpoint.sessions import open_session
from harness.endpoint.table_names import new_table_name
from harness.endpoint.tables import (
    create_table,
    delete_run_entities,
    delete_table,
    require_empty_table,
)
from harness.measure.record import RunRecord
from harness.measure.snapshot import Snapshot
from harness.model.errors import SetupError
from harness.model.target import targets_for
from harness.profile.build import (
    loaded_entities,
    most_transactions,
    retry_of,
    wanted_rate,
    workload_of,
)
from harness.profile.load import NamedProfile
from harness.report.live import live_line, step
from harness.report.terminal import summary
from harness.report.words import counted
from harness.swarm.loading import LoadingStopped, load_table
from harness.swarm.output import write_run
from harness.swarm.plan import OPTION, RunPlan, Share
from harness.swarm.run import Phase, Run
from harness.swarm.terminal import Terminal
from harness.swarm.worker import (
    REFUSED_MESSAGE,
    REPORT_MESSAGE,
    SHARE_MESSAGE,
    STOP_MESSAGE,
    THROTTLED_MESSAGE,
)

GRACE_S = 10.0
"""How long operations in flight may take after the end."""
REPORTS_WITHIN_S = 15.0
"""How long the master waits for the workers' last reports."""
_WATCH_EVERY_S = 0.25
_LIVE_EVERY_S = 5.0


class Conductor:
    """Leads the runs of one Locust process, one at a time.

    Args:
        environment: Locust's.
        endpoint: Whom every run stresses; fixed when Locust starts.
        embedded: True where the endpoint is the harness's own Azurite.
        terminal: Where steps and progress are said.
        leave: Called when a headless run is over, to end the process.
    """

    def __init__(
        self,
        environment: Environment,
        endpoint: Endpoint,
        *,
        embedded: bool,
        terminal: Terminal,
        leave: Callable[[], None],
    ) -> None:
        self.environment = environment
        self.endpoint = endpoint
        self.run: Run | None = None
        self.record: RunRecord | None = None
        self.clock = monotonic_utc()
        self._embedded = embedded
        self._terminal = terminal
        self._leave = leave
        self._made_table = False
        self._budgets: dict[str, int | None] = {}
        self.workers: list[str] = []
        self._report = ""
        self._said: Snapshot | None = None
        self._finished = gevent.event.Event()
        self._hurry = gevent.event.Event()
        self._loading_over = gevent.event.Event()
        runner = environment.runner
        runner.register_message(REPORT_MESSAGE, self._on_report)
        runner.register_message(REFUSED_MESSAGE, self._on_refused)
        runner.register_message(THROTTLED_MESSAGE, self._on_account_throttled)

    @property
    def busy(self) -> bool:
        """True while a run goes on."""
        return self.run is not None and self.run.phase not in (Phase.PREPARED, Phase.DONE)

    def prepare(self, named: NamedProfile, *, session: str | None, table: str | None) -> Run:
        """Decide on the next run. Nothing is sent but a look at ``table``.

        Args:
            named: What is asked.
            session: Which kind of session sends; None is the profile's.
            table: An existing, empty table to use; None is one of the run's own.

        Raises:
            SetupError: the run cannot be.
        """
        # Two runs of the same seed must not get one name.
        chance = random.SystemRandom()
        now = dt.datetime.now(dt.UTC)
        own_table = table is None
        name = new_table_name(now, chance) if table is None else table
        plan = RunPlan(
            run_id=f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}",
            profile_name=named.name,
            profile=named.profile,
            table=name,
            own_table=own_table,
            session=session or named.profile.session.kind,
            fingerprint=self.endpoint.fingerprint,
            remote=self.endpoint.remote,
            embedded=self._embedded,
        )
        run = Run(plan, self.endpoint, self.clock())
        if not own_table:
            require_empty_table(self.endpoint, name, run.budget)
        self.run = run
        return run

    def start(self) -> None:
        """Steps 1 and 2 of the procedure, then let the users come. Blocks until it is done.

        Raises:
            GreenletExit: the run ended before it began; the greenlet that starts users ends too.
        """
        run = self.run
        if run is None or run.phase is not Phase.PREPARED:
            raise GreenletExit
        self._finished.clear()
        self._hurry.clear()
        self._loading_over.clear()
        self.record = None
        self._said = None
        run.phase = Phase.LOADING
        # So that Stop works while the table is loaded.
        self.environment.runner.update_state(STATE_SPAWNING)
        try:
            self._set_up(run)
        except SetupError as error:
            self._loading_over.set()
            gevent.spawn(self._give_up, run, str(error))
            raise GreenletExit from None
        except LoadingStopped:
            raise GreenletExit from None
        finally:
            self._loading_over.set()
        vars(self.environment.parsed_options)[OPTION] = run.plan.to_options()
        run.epoch_s = self.clock()
        run.phase = Phase.RAMPING
        self.workers = self._live_workers()
        shares = run.budget.shares(max(1, len(self.workers)))
        self._budgets = dict(zip(self.workers, shares, strict=False))
        self._say_peak(run)
        gevent.spawn(self._watch, run)

    def break_off(self, error: Exception) -> None:
        """End a run that failed by a defect of the harness before it began."""
        logging.getLogger(__name__).error("the harness failed", exc_info=error)
        if self.run is not None and self.run.phase < Phase.ENDING:
            self.run.phase = Phase.ENDING
            gevent.spawn(self._give_up, self.run, f"the harness failed: {error!r}", 4)

    def forget(self) -> None:
        """Let go of the last run, at the end of the process."""
        self.run = None

    def share_out(self) -> None:
        """Tell every worker its part of the load."""
        run = self.run
        if run is None or run.phase not in (Phase.RAMPING, Phase.MEASURING):
            return
        unknown = 0 if run.budget.limit is not None else None
        for rank, worker in enumerate(self.workers):
            share = Share(
                run_id=run.plan.run_id,
                rank=rank,
                count=len(self.workers),
                budget=self._budgets.get(worker, unknown),
                epoch_s=run.epoch_s,
                window=None if run.window is None else (run.window[0], run.window[1]),
            )
            self.environment.runner.send_message(SHARE_MESSAGE, share.to_message(), worker)

    def users_are_up(self, user_count: int) -> None:
        """All users were spawned: settle, then open the measured window."""
        run = self.run
        if run is None:
            return
        run.users = user_count
        if run.phase is Phase.RAMPING and run.window is None:
            settled_s = self.clock() + run.plan.profile.load.settle_s
            # A moment ahead, so that every worker knows of the window before it opens.
            start = math.ceil(settled_s + 0.3)
            run.window = (start, start + run.plan.profile.load.run_time_s)
            self.share_out()

    def finish(self, reason: str) -> None:
        """End the run, whatever it does, and return when all is done.

        Args:
            reason: Why it ends, in a few words; the first one counts.
        """
        run = self.run
        if run is None or run.phase in (Phase.PREPARED, Phase.DONE):
            return
        if run.phase is Phase.ENDING:
            self._finished.wait()
            return
        run.phase = Phase.ENDING
        run.ended_by = reason
        stopped_s = self.clock()
        try:
            self._loading_over.wait()
            self._collect(run, stopped_s)
            self._examine(run, stopped_s)
        finally:
            try:
                self._clean_up(run)
            finally:
                run.phase = Phase.DONE
                self._finished.set()

    def hurry(self) -> None:
        """Wait for nothing any more."""
        self._hurry.set()

    def linger(self, seconds: float) -> None:
        """Wait so long, or until somebody hurries."""
        self._hurry.wait(timeout=seconds)

    def _set_up(self, run: Run) -> None:
        plan, profile = run.plan, run.plan.profile
        say = self._terminal.say
        self._made_table = False
        if plan.remote:
            say(self._price(run))
        where = f"{self.endpoint.host}, {self.endpoint.kind.described}"
        if plan.own_table:
            say(step(1, f"{plan.table} at {where}"))
            create_table(self.endpoint, plan.table, run.budget)
        else:
            say(step(1, f"there is {plan.table}, empty, at {where}"))
        self._made_table = True
        total = loaded_entities(profile)
        size = profile.entity.size_bytes
        into = counted(profile.keys.partitions, "partition")
        say(step(2, f"{total:,} entities of {size:,} B into {into}"))
        session = open_session(
            plan.session,
            endpoint=self.endpoint,
            table=plan.table,
            run_id=plan.run_id,
            retry=retry_of(profile),
            budget=run.budget,
            clock=self.clock,
            rng=random.Random(f"{profile.seed}/loading"),
            connections=profile.loading.concurrency,
            connect_timeout_s=profile.session.connect_timeout_s,
            read_timeout_s=profile.session.read_timeout_s,
        )
        try:
            load_table(
                session,
                workload_of(profile, run_id=plan.run_id, worker=0).loading(),
                total=total,
                concurrency=profile.loading.concurrency,
                clock=self.clock,
                loaded=run.loaded,
                stopped=lambda: run.phase is Phase.ENDING,
                on_progress=self._terminal.progress,
            )
        finally:
            session.close()
        deadline = self.clock() + profile.loading.settle_s
        while self.clock() < deadline:
            if run.phase is Phase.ENDING:
                raise LoadingStopped
            gevent.sleep(min(0.1, profile.loading.settle_s))

    def _price(self, run: Run) -> str:
        """What the run may cost, before anything is sent."""
        profile = run.plan.profile
        loading, load = most_transactions(profile, self.endpoint.kind)
        limit = profile.limits.billable_transactions
        if limit is not None and limit < loading + load:
            bound = f"{limit:,} billable transactions (limits.billable_transactions)"
        elif math.isinf(load):
            bound = "any number of billable transactions: neither its rate nor its cost is limited"
        else:
            bound = f"{loading + load:,.0f} billable transactions, every retry included"
        return f"Account {self.endpoint.account}: this run may make up to {bound}"

    def _say_peak(self, run: Run) -> None:
        load = run.plan.profile.load
        wanted = wanted_rate(run.plan.profile, run.endpoint.kind)
        cap = "as fast as answers come" if wanted is None else f"at most {wanted:,.0f} entities/s"
        options = self.environment.parsed_options
        users = counted(options.num_users or load.users, "user")
        measured = (
            f"{load.run_time_s:,} s measured after the ramp and {load.settle_s:g} s to settle"
        )
        self._terminal.say(step(3, f"{users}, {cap}, {measured}"))

    def _watch(self, run: Run) -> None:
        """Follow the workers, say how it goes, and end the run when its time is over."""
        next_live_s = self.clock() + _LIVE_EVERY_S
        while run.phase in (Phase.RAMPING, Phase.MEASURING):
            gevent.sleep(_WATCH_EVERY_S)
            now_s = self.clock()
            workers = self._live_workers()
            if workers != self.workers:
                self.workers = workers
                self.share_out()
            if run.window is not None:
                if run.phase is Phase.RAMPING and now_s >= run.window[0]:
                    run.phase = Phase.MEASURING
                if now_s >= run.window[1]:
                    self._end(run, "run time")
                    return
            if run.reports and all(report.exhausted for report in run.reports.values()):
                self._end(run, "budget of billable transactions")
                return
            if now_s >= next_live_s:
                next_live_s += _LIVE_EVERY_S
                self._say_live(run, now_s)

    def _end(self, run: Run, reason: str) -> None:
        if run is not self.run or run.phase in (Phase.ENDING, Phase.DONE):
            return
        self.finish(reason)
        options = self.environment.parsed_options
        if options is not None and options.headless:
            self._leave()
        else:
            self.environment.runner.stop()

    def _collect(self, run: Run, stopped_s: float) -> None:
        """Ask every worker for its last report, and wait for them."""
        grace_s = 0.0 if self._hurry.is_set() else GRACE_S
        message = {"run_id": run.plan.run_id, "at_s": stopped_s, "grace_s": grace_s}
        if run.epoch_s == 0.0:
            # No worker was told of the run yet.
            return
        run.asked = tuple(self._live_workers())
        for worker in run.asked:
            self.environment.runner.send_message(STOP_MESSAGE, message, worker)
        deadline = self.clock() + REPORTS_WITHIN_S
        while self.clock() < deadline and not self._hurry.is_set():
            finals = {worker for worker, report in run.reports.items() if report.final}
            if finals.issuperset(run.asked):
                return
            gevent.sleep(0.02)

    def _examine(self, run: Run, stopped_s: float) -> None:
        options = self.environment.parsed_options
        self._terminal.say(step(4, f"the run ended by {run.ended_by}"))
        self.record = run.judged(stopped_s)
        errors, dropped = run.ledger.errors()
        folder = write_run(options.out, self.record, errors, dropped)
        self.environment.process_exit_code = self.record.exit_code
        terminal = self._terminal
        self._report = summary(
            self.record,
            width=terminal.width,
            colour=terminal.colour,
            ascii_only=terminal.ascii_only,
        )
        self._report += f"\nRecord: {folder / 'run.json'}\nExit code: {self.record.exit_code}"
        if not options.headless:
            self.say_report()

    def say_report(self) -> None:
        """Say what the last run found, once."""
        if self._report:
            self._terminal.say(self._report)
            self._report = ""

    def _clean_up(self, run: Run) -> None:
        """Delete what the run made, and nothing else."""
        if not self._made_table:
            return
        self._made_table = False
        plan = run.plan
        try:
            if plan.own_table:
                delete_table(self.endpoint, plan.table)
            else:
                delete_run_entities(self.endpoint, plan.table, plan.run_id, lambda done: None)
        except SetupError as error:
            self._terminal.say(
                f"Not cleaned up: {error}. `harness sweep` finds tables that were left behind."
            )

    def _give_up(self, run: Run, sentence: str, code: int = 2) -> None:
        """A run that could not begin: say why, leave nothing behind."""
        self._terminal.say(f"error: {sentence}")
        self.environment.process_exit_code = code
        self._clean_up(run)
        run.phase = Phase.DONE
        self._finished.set()
        if self.environment.parsed_options.headless:
            self._leave()
        else:
            self.environment.runner.stop()

    def _live_workers(self) -> list[str]:
        """Ids of the workers that take part, in the order they came."""
        runner = self.environment.runner
        if not isinstance(runner, MasterRunner):
            return ["local"]
        alive = [*runner.clients.ready, *runner.clients.spawning, *runner.clients.running]
        return sorted((node.id for node in alive), key=runner.get_worker_index)

    def _say_live(self, run: Run, now_s: float) -> None:
        now = int(now_s)
        snapshot = run.ledger.snapshot(start=now - int(_LIVE_EVERY_S), end=now, latencies=False)
        cpu = max((s.cpu_percent for s in run.generator.latest().values()), default=0.0)
        line = live_line(
            snapshot,
            earlier=self._said,
            elapsed_s=now_s - run.epoch_s,
            users=self.environment.runner.user_count,
            workers=len(self.workers),
            in_flight=run.in_flight,
            cpu_percent=cpu,
            wanted_per_s=wanted_rate(run.plan.profile, run.endpoint.kind),
            targets=targets_for(run.endpoint.kind),
            ascii_only=self._terminal.ascii_only,
        )
        self._said = snapshot
        self._terminal.say(line)

    def _on_report(self, environment: Environment, msg: Message) -> None:
        run = self.run
        if run is not None and msg.data["run_id"] == run.plan.run_id and run.phase < Phase.DONE:
            run.take_report(msg.node_id, msg.data)

    def _on_refused(self, environment: Environment, msg: Message) -> None:
        run = self.run
        if run is None or msg.data["run_id"] != run.plan.run_id or run.phase >= Phase.ENDING:
            return
        run.phase = Phase.ENDING
        gevent.spawn(self._give_up, run, msg.data["sentence"])

    def _on_account_throttled(self, environment: Environment, msg: Message) -> None:
        run = self.run
        if run is None or msg.data["run_id"] != run.plan.run_id:
            return
        if run.plan.remote and run.plan.profile.limits.stop_on_account_throttling:
            gevent.spawn(self._end, run, "throttling of the account")
