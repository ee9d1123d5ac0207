"""The tables of a run: checked, created, loaded, and deleted at the end."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple, TypeVar

import gevent
import gevent.lock
import gevent.pool

from harness.endpoint.accounts import of_one_kind
from harness.endpoint.admin.housekeeping import Ambiguous, Housekeeping, HousekeepingEnded
from harness.endpoint.admin.probe import check
from harness.endpoint.admin.stores import create_store, delete_store, require_library
from harness.endpoint.admin.tables import (
    MOST_REQUESTS,
    delete_run_entities,
    follow,
    require_empty_table,
)
from harness.endpoint.endpoint import Endpoint
from harness.endpoint.session import TableSession
from harness.endpoint.sessions import loading_session, open_sessions
from harness.measure.counts.redaction import Aliases
from harness.measure.record.findings import PointersPart
from harness.model.errors import SetupError
from harness.model.figures import counted
from harness.model.operation import Operation
from harness.model.outcome import Result
from harness.profile.build.workload import LOADING_RETRY, source_of
from harness.swarm.master.console import CTRL_C_ENDS, ConsoleMessages
from harness.swarm.master.master_run import MasterRun
from harness.swarm.worker.admission import PacedItems
from harness.workload.budget import Budget, BudgetSpent, equal_parts

PROGRESS_EVERY_S = 0.5
_T = TypeVar("_T")
_SILENT_S = 120.0
"""Longer than all retries of an operation take if every attempt is refused at once."""
_ENTITIES_A_PAGE = 1000
_WITHIN_S = 60.0
_DELETE_IN_A_HURRY_S = 5.0


class LoadingFailed(SetupError):
    """The table exists, and not all entities could be inserted."""


class StoredTable(NamedTuple):
    """A table of a run in one account, and the budget that pays for its requests."""

    endpoint: Endpoint
    name: str
    budget: Budget


class RunTables:
    """The tables of one run, whose budgets pay for every request.

    ``cleaning`` is True while `clean_up` runs. ``loading_requests`` load them, without retries.
    """

    def __init__(
        self, run: MasterRun, messages: ConsoleMessages, housekeeping: Housekeeping
    ) -> None:
        self._run = run
        self._messages = messages
        self._housekeeping = housekeeping
        self.cleaning = False
        self._to_delete: list[StoredTable] = []
        self._deleted_entities = 0
        self._source = source_of(
            run.plan.profile, run_id=run.plan.run_id, worker=0, preparation=run.preparation
        )
        # Nothing is loaded for a class that brings its own entities.
        self._entities = self._source.loaded_entities if run.plan.loads else 0
        self.loading_requests = 0
        if run.plan.loads:
            writes = self._source.loading_requests
            partitions = sum(1 for _ in self._source.partitions())
            self.loading_requests = run.plan.kind.requests_of(writes, partitions)
        # In each account: every table with all retries, or pages and transactions of entities.
        self._for_deleting = MOST_REQUESTS * len(run.plan.tables)
        if not run.plan.own_table:
            self._for_deleting = self.loading_requests + self._entities // _ENTITIES_A_PAGE + 1

    def check(self) -> None:
        """Check that the tables can be created and loaded, else raise a `SetupError`.

        Nothing is changed yet. The accounts of the run get the kind that their answers tell.
        """
        run, plan = self._run, self._run.plan
        self._check_budget()
        known: list[Endpoint] = []
        try:
            for endpoint, budget in run.paid_accounts:
                host = endpoint.host
                require_library(endpoint)
                budget.take()
                # The probe has a bound of its own, and its error says how far the probe came.
                known.append(self._do(f"asking {host}", partial(check, endpoint), within_s=None))
                if not plan.own_table:
                    read = partial(require_empty_table, endpoint, plan.table, budget)
                    self._do(f"looking for entities in {plan.table} at {host}", read)
        except HousekeepingEnded:
            raise SetupError("the start was stopped; nothing was changed") from None
        run.recognise(of_one_kind(known))

    def _do(self, doing: str, work: Callable[[], _T], within_s: float | None = _WITHIN_S) -> _T:
        return self._housekeeping.do(doing, work, within_s=within_s, note=lambda: CTRL_C_ENDS)

    def _check_budget(self) -> None:
        run, kind = self._run, self._run.plan.kind
        limit, accounts = run.plan.profile.limits.billable_transactions, len(run.accounts)
        if limit is None:
            return
        # The first request is the probe. One of several accounts gets at least its equal part.
        needed = 1 + -(-self.loading_requests // accounts) + self._for_deleting
        if run.plan.own_table:
            needed += len(run.plan.tables)
        if limit < needed:
            each = " in each account" if accounts > 1 else ""
            raise SetupError(
                f"limits.billable_transactions is {limit:,}, and {needed:,} are needed{each} to "
                f"make, load and delete the {kind.store}: raise it, or load fewer "
                f"{kind.unit.many} (keys.rows_per_partition)"
            )
        run.budgets.grant([limit - self._for_deleting] * accounts)

    def set_up(self) -> None:
        """Create and load the tables, and let the service settle.

        Raises:
            SetupError: the service refuses, or the budget is used up; `LoadingFailed` if a table
                was created but could not be loaded.
            HousekeepingEnded: the user ended it.
        """
        try:
            self._create()
            self._load()
        except BudgetSpent:
            raise SetupError(
                "limits.billable_transactions is too small to create and load the table"
            ) from None
        settle_s = self._run.plan.profile.loading.settle_s
        self._do(f"settling for {settle_s:g} s", partial(gevent.sleep, settle_s), within_s=None)

    def _create(self) -> None:
        run, plan = self._run, self._run.plan
        self._messages.table_is_created()
        stored = [
            StoredTable(endpoint, name, budget)
            for endpoint, budget in run.paid_accounts
            for name in plan.table_names
        ]
        if not plan.own_table:
            self._to_delete += stored
            return
        for one in stored:
            # Without an answer the table may exist all the same.
            self._to_delete.append(one)
            at = f" at {one.endpoint.host}" if len(run.accounts) > 1 else ""
            try:
                self._do(
                    f"creating the {plan.kind.store} {one.name}{at}", partial(create_store, *one)
                )
            except SetupError as error:
                if not isinstance(error, Ambiguous):
                    self._to_delete.remove(one)
                raise

    def _load(self) -> None:
        run, plan, profile = self._run, self._run.plan, self._run.plan.profile
        total = self._entities
        self._messages.table_is_loaded(total)
        if not total or not plan.loads:
            return
        rng = random.Random(f"{profile.seed}/loading")
        options = [
            dataclasses.replace(
                one,
                run_id=f"{plan.run_id}-loading",
                retry=LOADING_RETRY,
                rng=rng,
                connections=profile.loading.concurrency,
                on_attempt=run.loaded.on_attempt,
            )
            for one in plan.session_options(0, run.accounts, run.budgets, run.clock)
        ]
        session = open_sessions(loading_session(plan.session), options)
        try:
            operations, progress = self._source.loading(), self._messages.console.progress
            load = partial(load_table, run, session, operations, total, progress)
            doing = f"loading the {plan.kind.store}"
            self._housekeeping.do(doing, load, within_s=None, note=None)
        finally:
            session.close()

    def worker_budgets(self, count: int) -> list[tuple[int, ...] | None]:
        """Divide the budget of each account among ``count`` workers, less what deleting needs."""
        run = self._run
        if run.plan.profile.limits.billable_transactions is None:
            return [None] * count
        left = [budget.left or 0 for budget in run.budgets.each]
        if not run.plan.own_table and (run.plan.own_class or self._source.adds_rows):
            # In the worst case each inserted entity is deleted by a request of its own.
            left = [one * _ENTITIES_A_PAGE // (2 * _ENTITIES_A_PAGE + 1) for one in left]
        return list(zip(*(equal_parts(amount, count) for amount in left), strict=True))

    def _grant_the_rest(self, kept: int) -> None:
        """Let the master send what the workers did not, less what is ``kept`` for deleting."""
        run, limit = self._run, self._run.plan.profile.limits.billable_transactions
        if limit is None:
            return
        for budget, spent in zip(run.budgets.each, run.billable_by_account, strict=True):
            rest = limit - spent
            if run.plan.own_table and run.silent_workers:
                # A lost worker may have spent all that it was given.
                rest = self._for_deleting
            budget.limit = budget.spent + max(0, rest - kept)

    def pointers(self) -> tuple[PointersPart, ...]:
        """Count index rows without their row, and the reverse; a run that ends leaves some."""
        run, plan = self._run, self._run.plan
        found: list[PointersPart] = []

        def follow_all() -> None:
            for pointers in getattr(self._source, "pointers", ()):
                found.append(follow(run.accounts, plan.table, pointers, run.budgets))

        self._grant_the_rest(self._for_deleting)
        try:
            self._do("following the index tables", follow_all)
        except BudgetSpent:
            self._messages.index_not_followed("the budget is used up")
        except (HousekeepingEnded, SetupError) as error:
            self._messages.index_not_followed(_reason(error))
        return tuple(found)

    def clean_up(self, *, hurry: bool) -> None:
        """Delete what the run created and nothing else; a ``hurry`` allows 5 s in place of 60."""
        if not self._to_delete:
            return
        what = ", ".join(dict.fromkeys(one.name for one in self._to_delete))
        if not self._run.plan.own_table:
            what = f"the run's entities from {what}"
        self.cleaning = True
        try:
            self._housekeeping.do(
                f"deleting {what}",
                self._delete,
                within_s=_DELETE_IN_A_HURRY_S if hurry else _WITHIN_S,
                note=self._deleted,
            )
        except (HousekeepingEnded, SetupError, BudgetSpent) as error:
            left: dict[Endpoint, list[str]] = {}
            for one in self._to_delete:
                left.setdefault(one.endpoint, []).append(one.name)
            self._messages.left_behind(left, _reason(error))
        finally:
            self.cleaning = False
            self._to_delete.clear()

    def _deleted(self) -> str:
        deleted = "" if self._run.plan.own_table else f"{self._deleted_entities:,} deleted; "
        return f"{deleted}a second Ctrl-C ends the wait"

    def _delete(self) -> None:
        plan = self._run.plan
        self._grant_the_rest(0)
        for one in tuple(self._to_delete):
            if plan.own_table:
                delete_store(*one)
            else:
                before = self._deleted_entities

                def count(deleted: int, before: int = before) -> None:
                    self._deleted_entities = before + deleted

                delete_run_entities(one.endpoint, one.name, plan.run_id, count, one.budget)
            self._to_delete.remove(one)


def _reason(error: Exception) -> str:
    return "interrupted" if isinstance(error, HousekeepingEnded) else str(error)


def load_table(
    run: MasterRun,
    session: TableSession,
    operations: Iterator[Operation],
    total: int,
    on_progress: Callable[[int, int, float, float], None],
    silent_s: float = _SILENT_S,
) -> None:
    """Execute every operation of ``operations`` concurrently, or raise `LoadingFailed`.

    Args:
        run: Counts what is loaded, also of an aborted loading.
        on_progress: Called twice a second with loaded entities, entities to load, seconds since
            the beginning, and seconds since the last response.
        silent_s: Loading fails after so many seconds without a response.
    """
    clock, loaded = run.clock, run.loaded
    loaded.total = total
    kind = run.plan.kind
    doing = f"loading the {kind.store}"
    began = heard_s = clock()
    # Loading must not flood the account either.
    pacer = run.plan.profile.load_model.loading_pacer(run.accounts.kind)
    failures: list[str] = []
    on_the_way = 0
    paced = PacedItems(operations, pacer, clock, units=lambda operation: operation.entities_asked)

    def send() -> None:
        nonlocal on_the_way, heard_s
        for operation in paced:
            if failures:
                return
            if not on_the_way:
                heard_s = clock()
            on_the_way += 1
            try:
                result = session.execute(operation)
            except BudgetSpent:
                failures.append(
                    f"the budget limits.billable_transactions is used up by {doing}; "
                    f"raise it or load fewer {kind.unit.many} (keys.rows_per_partition)"
                )
                return
            finally:
                on_the_way -= 1
                heard_s = clock()
            loaded.add(result)
            if not result.outcome.succeeded:
                failures.append(f"{doing} failed: {_sentence(result, run.aliases)}")

    pool = gevent.pool.Group()
    try:
        for _ in range(run.plan.profile.loading.concurrency):
            pool.spawn(send)
        while not pool.join(timeout=PROGRESS_EVERY_S):
            loaded.seconds = clock() - began
            silence_s = clock() - heard_s if on_the_way else 0.0
            on_progress(loaded.entities, total, loaded.seconds, silence_s)
            if silence_s >= silent_s:
                failures.append(f"{doing} failed: no answer for {silent_s:g} s")
                break
            if loaded.throttled is not None and run.stops_on_account_throttling:
                which = ""
                if len(run.accounts) > 1:
                    which = f" {run.accounts.of(loaded.throttled)}"
                failures.append(
                    f"{doing} failed: the account{which} is throttled; lower "
                    "load.max_entities_per_s, or set limits.stop_on_account_throttling = false"
                )
                break
    finally:
        pool.kill()
        loaded.seconds = clock() - began
    on_progress(loaded.entities, total, loaded.seconds, 0.0)
    if failures:
        raise LoadingFailed(failures[0])


def _sentence(result: Result, aliases: Aliases | None) -> str:
    last = result.attempts[-1]
    key, message = result.operation.partition_key, last.message
    if aliases is not None:
        # The message of the service may contain a key.
        key, message = aliases(key), ""
    answer = f"{last.status} {last.error_code}".strip() if last.status else last.error_code
    return (
        f"partition {key!r} answered "
        f"{answer} after {counted(len(result.attempts), 'attempt')} ({message or result.outcome})"
    )
