"""Steps 1 and 2 of the procedure, and their undoing: the table that a run stresses."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable

import gevent

from harness.endpoint.clock import Clock
from harness.endpoint.pointers import follow
from harness.endpoint.sessions import open_session
from harness.endpoint.tables import create_table, delete_run_entities, delete_table
from harness.measure.findings import PointersPart
from harness.model.errors import SetupError
from harness.profile.build import LOADING_RETRY, adds_rows, loading_transactions, source_of
from harness.profile.pace import loading_pacer_of
from harness.report.live import step
from harness.report.words import counted
from harness.swarm.loading import LoadingStopped, load_table
from harness.swarm.opening import options_of
from harness.swarm.run import Run
from harness.swarm.terminal import Terminal
from harness.workload.budget import BudgetSpent, equal_parts

_ENTITIES_A_PAGE = 1000
_SETTLE_STEP_S = 0.1
_CLEAN_WITHIN_S = 60.0
_CLEAN_IN_A_HURRY_S = 5.0


class Staging:
    """Makes and loads the table of one run, and leaves nothing of it behind.

    Args:
        run: Whose table it is; everything is taken from its budget.
        terminal: Where steps and progress are said.
        clock: UTC seconds.
    """

    def __init__(self, run: Run, terminal: Terminal, clock: Clock) -> None:
        self._run = run
        self._terminal = terminal
        self._clock = clock
        self._made = False
        self._source = source_of(run.plan.profile, run_id=run.plan.run_id, worker=0)

    def set_up(self, stopped: Callable[[], bool]) -> None:
        """Create the table, load it, let it settle.

        Args:
            stopped: True when it is to end before its end.

        Raises:
            SetupError: the service refuses, or the budget is used up.
            LoadingStopped: ``stopped`` said so.
        """
        try:
            self._create()
            self._load(stopped)
        except BudgetSpent:
            raise SetupError(
                "limits.billable_transactions is too small even to make and load the table"
            ) from None
        settle_s = self._run.plan.profile.loading.settle_s
        deadline = self._clock() + settle_s
        while self._clock() < deadline:
            if stopped():
                raise LoadingStopped
            gevent.sleep(min(_SETTLE_STEP_S, settle_s))

    def clean_up(self, *, hurry: bool) -> str | None:
        """Delete what the run made, and nothing else; what could not be done, as a sentence."""
        if not self._made:
            return None
        self._made = False
        problem: str | None = "the endpoint does not answer"
        with gevent.Timeout(_CLEAN_IN_A_HURRY_S if hurry else _CLEAN_WITHIN_S, False):
            problem = self._delete()
        if problem is None:
            return None
        return f"Not cleaned up: {problem}. `harness sweep` lists tables that were left behind."

    def pointers(self) -> tuple[PointersPart, ...]:
        """Count index rows whose row is gone, and rows that no index row names.

        Rows that are being written at the end of a run are why there may be some: nothing keeps
        several partitions in step but the application.
        """
        run, plan = self._run, self._run.plan
        found: list[PointersPart] = []
        with gevent.Timeout(_CLEAN_WITHIN_S, False):
            try:
                for pointers in getattr(self._source, "pointers", ()):
                    found.append(follow(run.endpoint, plan.table, pointers, run.budget))
            except SetupError as error:
                self._terminal.say(f"The index tables were not followed: {error}")
            except BudgetSpent:
                self._terminal.say("The index tables were not followed: the budget is used up")
        return tuple(found)

    def _delete(self) -> str | None:
        run = self._run
        # Cleaning is not refused: what it needs was kept back from the workers' shares.
        run.budget.limit = None
        try:
            if run.plan.own_table:
                for name in run.plan.table_names:
                    delete_table(run.endpoint, name, run.budget)
            else:
                delete_run_entities(
                    run.endpoint, run.plan.table, run.plan.run_id, lambda _: None, run.budget
                )
        except SetupError as error:
            return str(error)
        return None

    def worker_budgets(self, count: int) -> list[int | None]:
        """What ``count`` workers may spend, after what cleaning will need is kept back."""
        run = self._run
        limit = run.budget.limit
        if limit is None:
            return [None] * count
        left = limit - run.budget.spent
        if run.plan.own_table:
            left -= len(run.plan.tables)
        else:
            profile = run.plan.profile
            left -= loading_transactions(profile)
            left -= self._source.loaded_entities // _ENTITIES_A_PAGE + 1
            if adds_rows(profile):
                # In the worst case each insert is deleted by a transaction of its own.
                left = left * _ENTITIES_A_PAGE // (2 * _ENTITIES_A_PAGE + 1)
        return list(equal_parts(max(0, left), count))

    def _create(self) -> None:
        run, plan = self._run, self._run.plan
        where = f"{plan.table} at {run.endpoint.host}, {run.endpoint.kind.described}"
        if not plan.own_table:
            self._terminal.say(step(1, f"there is {where}, and it is empty"))
            self._made = True
            return
        if len(plan.tables) > 1:
            where = f"{len(plan.tables)} tables, {where}"
        self._terminal.say(step(1, where))
        for name in plan.table_names:
            create_table(run.endpoint, name, run.budget)
            self._made = True

    def _load(self, stopped: Callable[[], bool]) -> None:
        run, plan, profile = self._run, self._run.plan, self._run.plan.profile
        total = self._source.loaded_entities
        into = counted(profile.keys.partitions, "partition")
        if profile.scenario is not None:
            into = f"the tables of {profile.scenario}"
        size = profile.entity.size_bytes
        self._terminal.say(
            step(2, f"{counted(total, 'entity', 'entities')} of {size:,} B into {into}")
        )
        options = dataclasses.replace(
            options_of(plan, 0, run.endpoint, run.budget, self._clock),
            retry=LOADING_RETRY,
            rng=random.Random(f"{profile.seed}/loading"),
            connections=profile.loading.concurrency,
        )
        session = open_session(plan.session, options)
        try:
            load_table(
                session,
                self._source.loading(),
                total=total,
                concurrency=profile.loading.concurrency,
                pacer=loading_pacer_of(profile, run.endpoint.kind),
                clock=self._clock,
                loaded=run.loaded,
                stopped=stopped,
                on_progress=self._terminal.progress,
                aliases=run.aliases,
            )
        finally:
            session.close()
