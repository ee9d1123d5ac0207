"""The master's part: prepares a run, leads it through the documented procedure, ends it one way.

Every end (run time, Stop, Ctrl-C, SIGTERM, budget, throttling of the account) goes through
`Conductor.finish`: pacers say STOP, operations in flight finish, workers report for the last time,
the run is judged and recorded, and what it made is deleted.
"""

from __future__ import annotations

import datetime as dt
import logging
import math
from collections.abc import Callable
from functools import partial

import gevent
import gevent.event
from gevent import GreenletExit
from locust.env import Environment
from locust.runners import STATE_SPAWNING

from harness.endpoint.clock import monotonic_utc
from harness.endpoint.connection import Endpoint
from harness.endpoint.probe import check
from harness.endpoint.tables import require_empty_table
from harness.gateway.process import GatewayProcess
from harness.measure.record import RunRecord
from harness.model.errors import SetupError
from harness.profile.load import NamedProfile
from harness.profile.observed import observe
from harness.profile.pace import staged, window_s
from harness.swarm.auditing import Auditing
from harness.swarm.keeping import keep
from harness.swarm.loading import LoadingStopped
from harness.swarm.narrator import Narrator
from harness.swarm.output import check_folder
from harness.swarm.plan import OPTION, new_plan
from harness.swarm.redacting import aliases_of
from harness.swarm.rehearsal import Rehearsal
from harness.swarm.run import Phase, Run
from harness.swarm.sharing import Sharing
from harness.swarm.staging import Staging
from harness.swarm.terminal import Terminal
from harness.swarm.watching import Watch

_WINDOW_NOTICE_S = 0.3
"""The measured window is announced so long before it opens, so that every worker knows of it."""


class Conductor:
    """Leads the runs of one Locust process, one at a time.

    Args:
        environment: Locust's.
        endpoint: Whom every run stresses; fixed when Locust starts.
        embedded: True where the endpoint is the harness's own Azurite.
        gateway: The harness's own gateway before it, where there is one.
        terminal: Where steps and progress are said.
        leave: Called when a headless run is over, to end the process.
    """

    def __init__(
        self,
        environment: Environment,
        endpoint: Endpoint,
        *,
        embedded: bool,
        gateway: GatewayProcess | None,
        terminal: Terminal,
        leave: Callable[[], None],
    ) -> None:
        self.environment = environment
        self.endpoint = endpoint
        self.clock = monotonic_utc()
        self.run: Run | None = None
        self.record: RunRecord | None = None
        self._embedded = embedded
        self._gateway = gateway
        self._terminal = terminal
        self._leave = leave
        self._finished = gevent.event.Event()
        self._hurry = gevent.event.Event()
        self._staged = gevent.event.Event()

    @property
    def busy(self) -> bool:
        """True while a run goes on."""
        return self.run is not None and self.run.phase not in (Phase.PREPARED, Phase.DONE)

    @property
    def unready(self) -> str | None:
        """Why users cannot be started or changed now, or None where they can."""
        return None if self.run is None else self.run.phase.unready

    @property
    def sharing(self) -> Sharing:
        """How the current run is shared out."""
        return self._sharing

    @property
    def workers(self) -> int:
        """Workers that take part."""
        return 0 if self.run is None else len(self._sharing.workers)

    def prepare(self, named: NamedProfile, *, session: str | None, table: str | None) -> Run:
        """Decide on the next run. Nothing is sent but a look at the endpoint and at ``table``.

        Args:
            named: What is asked.
            session: Which kind of session sends; None is the profile's.
            table: An existing, empty table to use; None is one of the run's own.

        Raises:
            SetupError: the run cannot be.
        """
        seen = observe(named.profile)
        plan = new_plan(
            named,
            dt.datetime.now(dt.UTC),
            session=session,
            table=table,
            tables=seen.tables,
            endpoint=self.endpoint,
            embedded=self._embedded,
        )
        # A new clock a run: the machine's may have been set, or have slept, since the last.
        self.clock = monotonic_utc()
        aliases = aliases_of(self.environment.parsed_options)
        run = Run(plan, self.endpoint, self.clock(), aliases)
        run.look_at(seen)
        run.budget.take()
        check(self.endpoint)
        if table is not None:
            require_empty_table(self.endpoint, table, run.budget)
        # Last, so that a run that is refused leaves no folder.
        check_folder(self.environment.parsed_options.out)
        self.run = run
        self._staging = Staging(run, self._terminal, self.clock)
        rehearsal = Rehearsal.of(self._gateway, plan.table, plan.tables, aliases or str)
        self._narrator = Narrator(run, self._terminal, rehearsal)
        self._sharing = Sharing(self.environment, run, self.clock)
        self._auditing = Auditing(self.environment, run, self._terminal, self.clock)
        return run

    def start(self) -> None:
        """Steps 1 and 2 of the procedure, then let the users come. Blocks until it is done.

        Raises:
            GreenletExit: the run ended before it began; the greenlet that starts users ends too.
        """
        run = self.run
        if run is None or run.phase is not Phase.PREPARED:
            raise GreenletExit
        for event in (self._finished, self._hurry, self._staged):
            event.clear()
        self.record = None
        run.phase = Phase.LOADING
        # So that Stop works while the table is loaded.
        self.environment.runner.update_state(STATE_SPAWNING)
        try:
            self._narrator.price()
            self._staging.set_up(stopped=lambda: run.phase is Phase.ENDING)
        except SetupError as error:
            if run.phase is Phase.LOADING:
                run.phase = Phase.ENDING
                gevent.spawn(self.give_up, run, str(error))
            raise GreenletExit from None
        except LoadingStopped:
            raise GreenletExit from None
        finally:
            self._staged.set()
        options = self.environment.parsed_options
        vars(options)[OPTION] = run.plan.to_options()
        run.epoch_s = self.clock()
        if not staged(run.plan.profile):
            run.origin_s = run.epoch_s
        run.phase = Phase.RAMPING
        workers = self._sharing.begin()
        run.began_with = tuple(workers)
        self._sharing.grant(self._staging.worker_budgets(max(1, len(workers)))[: len(workers)])
        self._narrator.peak(options.num_users)
        watch = Watch(
            self.environment,
            run,
            sharing=self._sharing,
            narrator=self._narrator,
            clock=self.clock,
            end=self.end,
        )
        gevent.spawn(watch.follow)

    def share_out(self) -> None:
        """Tell every worker its part of the load."""
        if self.run is not None and self.run.phase in (Phase.RAMPING, Phase.MEASURING):
            self._sharing.share_out()

    def users_are_up(self, user_count: int) -> None:
        """All users were spawned: settle, then open the measured window."""
        run = self.run
        if run is None:
            return
        run.users = max(run.users, user_count)
        if run.phase is Phase.RAMPING and run.window is None:
            load = run.plan.profile.load
            start = math.ceil(self.clock() + load.settle_s + _WINDOW_NOTICE_S)
            run.window = (start, start + window_s(run.plan.profile))
            if run.origin_s is None:
                # Stages begin when everybody is there to send.
                run.origin_s = float(start)
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
            self._auditing.hurry()
            self._finished.wait()
            return
        run.phase = Phase.ENDING
        run.ended_by = reason
        stopped_s = self.clock()
        # Unless it can be examined and written down, whatever keeps it from that.
        self.environment.process_exit_code = 4
        try:
            gevent.wait([self._staged, self._hurry], count=1)
            if run.epoch_s:
                # Else no worker was told of the run yet.
                self._sharing.collect(stopped_s, self._hurry)
            self._examine(run, stopped_s)
        except OSError as error:
            self._terminal.complain(f"the record cannot be written: {error}")
        finally:
            self._clean_up(run)
            run.phase = Phase.DONE
            self._finished.set()

    def break_off(self, error: Exception) -> None:
        """End a run that failed by a defect of the harness before it began."""
        logging.getLogger(__name__).error("the harness failed", exc_info=error)
        run = self.run
        if run is not None and run.phase < Phase.ENDING:
            run.phase = Phase.ENDING
            gevent.spawn(self.give_up, run, f"the harness failed: {error!r}", 4)

    def hurry(self) -> None:
        """Wait for nothing any more."""
        self._hurry.set()

    def linger(self, seconds: float) -> None:
        """Wait so long, or until somebody hurries."""
        self._hurry.wait(timeout=seconds)

    def say_found(self) -> None:
        """Say what the last run found, once."""
        self._narrator.say_found()

    def close(self) -> None:
        """Say what the last run found, and let go of it: the process ends."""
        if self.run is not None:
            self._narrator.say_found()
            self.run.ledger.close()
            self.run = None

    def end(self, run: Run, reason: str) -> None:
        """End ``run``, if it still goes on, and then the process or Locust's users."""
        if run is not self.run or run.phase in (Phase.ENDING, Phase.DONE):
            return
        try:
            self.finish(reason)
        finally:
            self._let_go()

    def _let_go(self) -> None:
        """After a run: end the process where it was started for this run, else Locust's users."""
        options = self.environment.parsed_options
        if options.headless:
            self._leave()
            return
        self.environment.runner.stop()
        if options.autostart and options.autoquit != -1:
            gevent.sleep(options.autoquit)
            self._leave()

    def _examine(self, run: Run, stopped_s: float) -> None:
        """Step 4: judge the run and write it down; then clean up, and say what was found."""
        self._narrator.examine()
        self._auditing.hold(self._hurry)
        record = run.judged(stopped_s, () if self._hurry.is_set() else self._staging.pointers())
        out = self.environment.parsed_options.out
        clean_up = partial(self._clean_up, run)
        self.record, path = keep(run, record, out, clean_up, self._terminal.complain)
        self.environment.process_exit_code = record.exit_code
        self._narrator.found(self.record, str(path))
        if not self.environment.parsed_options.headless:
            self._narrator.say_found()

    def _clean_up(self, run: Run) -> None:
        problem = self._staging.clean_up(hurry=self._hurry.is_set())
        if problem is not None:
            self._terminal.say(problem)

    def give_up(self, run: Run, sentence: str, code: int = 2) -> None:
        """End a run that could not begin: say why, leave nothing behind."""
        run.problem = sentence
        self._terminal.complain(sentence)
        self.environment.process_exit_code = code
        self._clean_up(run)
        run.phase = Phase.DONE
        self._finished.set()
        self._let_go()
