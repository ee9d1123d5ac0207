"""A worker's part of the audit: what it writes is noted, and after the run looked up again."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Iterator
from typing import Any

import gevent
import gevent.lock
import gevent.pool

from harness.endpoint.session import SessionOptions, TableSession
from harness.endpoint.sessions import open_session
from harness.measure.audit import Tally
from harness.measure.journal import Journal
from harness.measure.look_up import LookUp
from harness.measure.writes import Row
from harness.model.operation import Kind, Operation
from harness.model.outcome import Outcome, Result
from harness.profile.pace import loading_pacer_of
from harness.swarm.plan import RunPlan
from harness.workload.budget import BudgetSpent
from harness.workload.pacing import STOP, Pacer
from harness.workload.retry import ExponentialBackoff

LOOK_UP_MESSAGE = "aztables-look-up"
LOOK_UP_NO_MORE_MESSAGE = "aztables-look-up-no-more"
FOUND_MESSAGE = "aztables-found"

FOUND_EVERY_S = 1.0
CONCURRENCY = 16
_MOST_IN_VAIN = 4 * CONCURRENCY
"""After so many rows in a row that could not be read, no more are tried."""
_RETRY = ExponentialBackoff(retries=6, backoff_s=0.1, minimum_s=0.05, maximum_s=2.0)


class AuditedSession:
    """A session whose writes are noted. See `harness.endpoint.session.TableSession`.

    Args:
        session: Sends.
        auditor: Notes.
    """

    def __init__(self, session: TableSession, auditor: Auditor) -> None:
        self._session = session
        self._auditor = auditor

    def execute(self, operation: Operation, due_s: float | None = None) -> Result:
        """Do one operation; a write is marked, and is so in its result.

        Raises:
            BudgetSpent: before anything is sent, where the budget is used up.
        """
        if operation.kind.reads:
            return self._session.execute(operation, due_s)
        return self._auditor.noted(operation, lambda marked: self._session.execute(marked, due_s))

    @property
    def connections_in_use(self) -> int:
        """Connections that carry a request at this moment; 0 where that is not known."""
        return self._session.connections_in_use

    def close(self) -> None:
        """Close every connection; nothing is looked up any more."""
        self._auditor.close()
        self._session.close()


class Auditor:
    """Notes what one worker writes in a run, and looks it up again.

    For every row that is to be looked up one request of the budget is kept back.

    Args:
        plan: The run.
        worker: Number of the worker.
        options: What its session is opened with.
        send: Sends a message to the master.
    """

    def __init__(
        self,
        plan: RunPlan,
        worker: int,
        options: SessionOptions,
        send: Callable[[str, dict[str, Any]], None],
    ) -> None:
        self._plan = plan
        self._options = options
        self._send = send
        self._journal = Journal(worker, seed=plan.run_id, most_rows=plan.profile.audit.most_rows)
        self._granted: int | None = None
        self._tally = Tally()
        self._handed_out = 0
        self._in_vain = 0
        self._cut_short = ""
        self._readers = gevent.pool.Group()
        self._looking: gevent.Greenlet | None = None

    def noted(self, write: Operation, execute: Callable[[Operation], Result]) -> Result:
        """Note ``write``, do it, and note what became of it. What is never answered stays open.

        Args:
            write: A single write or a transaction.
            execute: Sends it.

        Raises:
            BudgetSpent: ``execute`` did.
        """
        noted = self._journal.sent(write, self._options.clock())
        self._keep_back()
        try:
            result = execute(noted.operation)
        except BudgetSpent:
            self._journal.unsent(noted)
            raise
        self._journal.done(noted, result)
        return result

    def grant(self, requests: int | None) -> None:
        """The worker may send so many requests in all; None is without bound."""
        self._granted = requests
        self._keep_back()

    def written(self) -> dict[str, Any]:
        """Which rows were written, for the master."""
        return self._journal.written().to_message()

    def look_up(self, content: dict[str, Any]) -> None:
        """Begin to look up; what is found is told every second.

        Args:
            content: The master's message: what, and this worker's part of the pace.
        """
        if self._looking is None:
            self._options.budget.limit = self._granted
            pacer = loading_pacer_of(self._plan.profile, self._options.endpoint.kind)
            part = pacer.share(content["rank"], content["count"])
            plan = LookUp.from_message(content["plan"])
            self._looking = gevent.spawn(self._look_up, plan, part)

    def no_more(self) -> None:
        """Look up no more, and tell what was found."""
        self._cut_short = "it was not waited for"
        self._readers.kill(block=False)

    def close(self) -> None:
        """Stop, whatever it does."""
        gevent.killall([self._looking] if self._looking is not None else [])

    def _keep_back(self) -> None:
        if self._granted is not None and self._looking is None:
            self._options.budget.limit = self._granted - len(self._journal)

    def _look_up(self, plan: LookUp, pacer: Pacer) -> None:
        session = open_session(
            "sdk",
            dataclasses.replace(
                self._options,
                retry=_RETRY,
                rng=random.Random(f"{self._plan.profile.seed}/audit"),
                connections=CONCURRENCY,
            ),
        )
        rows = self._journal.rows(plan.below)
        rest = iter(rows)
        turn = gevent.lock.Semaphore(1)
        began_s = self._options.clock()
        try:
            for _ in range(CONCURRENCY):
                self._readers.spawn(self._read_all, session, rest, plan, pacer, turn, began_s)
            while not self._readers.join(timeout=FOUND_EVERY_S):
                self._tell(done=False)
        finally:
            self._readers.kill()
            session.close()
        if not self._cut_short and self._tally.rows + self._tally.unread < len(rows):
            # What was raised is in the log.
            self._cut_short = "a defect of the harness"
        self._tell(done=True)

    def _read_all(
        self,
        session: TableSession,
        rows: Iterator[Row],
        plan: LookUp,
        pacer: Pacer,
        turn: gevent.lock.Semaphore,
        began_s: float,
    ) -> None:
        for row in rows:
            with turn:
                now_s = self._options.clock()
                due_s = pacer.next(now_s - began_s, self._handed_out)
                if due_s is STOP or self._cut_short:
                    return
                self._handed_out += 1
                gevent.sleep(max(0.0, began_s + due_s - now_s))
            try:
                self._read(session, row, plan)
            except BudgetSpent:
                self._cut_short = "the budget limits.billable_transactions is used up"

    def _read(self, session: TableSession, row: Row, plan: LookUp) -> None:
        """Look up one row, and compare."""
        table, partition_key, row_key = row.key
        result = session.execute(
            Operation(
                kind=Kind.POINT_QUERY,
                table=table,
                partition_key=partition_key,
                row_key=row_key,
            )
        )
        if not (result.outcome.succeeded or result.outcome is Outcome.NOT_FOUND):
            self._tally.unread += 1
            self._in_vain += 1
            if self._in_vain >= _MOST_IN_VAIN:
                last = result.attempts[-1]
                answer = f"{last.status or ''} {last.error_code}".strip()
                self._cut_short = f"{self._in_vain} rows in a row could not be read ({answer})"
            return
        self._in_vain = 0
        stored: Any = result.value if result.outcome.succeeded else None
        others = plan.others(row.place)
        self._tally.add(row, stored, mine=self._journal.mine, others=others)

    def _tell(self, *, done: bool) -> None:
        self._send(
            FOUND_MESSAGE,
            {
                "run_id": self._plan.run_id,
                "tally": self._tally.to_message(),
                "done": done,
                "cut_short": self._cut_short,
                "billable_transactions": self._options.budget.spent,
            },
        )


def worker_session(
    plan: RunPlan, worker: int, options: SessionOptions, send: Callable[[str, dict[str, Any]], None]
) -> tuple[TableSession, Auditor | None]:
    """The session of a worker, and who notes its writes; None where there is no audit.

    Args:
        plan: The run.
        worker: Number of the worker.
        options: What the session is opened with.
        send: Sends a message to the master.
    """
    session = open_session(plan.session, options)
    if not plan.profile.audit.enabled:
        return session, None
    auditor = Auditor(plan, worker, options, send)
    return AuditedSession(session, auditor), auditor
