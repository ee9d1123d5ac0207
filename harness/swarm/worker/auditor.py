"""The worker's part of the audit: it journals its writes and reads them back after the load."""

from __future__ import annotations

import copy
import dataclasses
import random
from collections.abc import Callable, Sequence
from typing import Any

import gevent
import gevent.lock
import gevent.pool

from harness.endpoint.session import SessionOptions, TableSession, ignore_attempt
from harness.endpoint.sessions import open_sessions
from harness.measure.audit.audit import AuditTally, LookUp
from harness.measure.audit.journal import Journal, Row, Written
from harness.model.operation import Kind, Operation
from harness.model.outcome import Outcome, Result
from harness.profile.build.pace import loading_pacer_of
from harness.swarm.messages import AuditRequest, AuditResult
from harness.swarm.plan import RunPlan
from harness.swarm.worker.departures import PacedItems
from harness.workload.budget import Budgets, BudgetSpent
from harness.workload.load.pacing import Pacer
from harness.workload.retry import ExponentialBackoff

REPORT_EVERY_S = 1.0
CONCURRENCY = 16
_MAX_FAILURES_IN_A_ROW = 4 * CONCURRENCY
"""After so many consecutive rows that cannot be read, the worker stops."""
_RETRY = ExponentialBackoff(retries=6, backoff_s=0.1, minimum_s=0.05, maximum_s=2.0)


class Auditor:
    """Journals what one worker writes in a run, and reads it back.

    The budget reserves one request for every row that may be read back.
    """

    def __init__(
        self,
        plan: RunPlan,
        worker: int,
        session: TableSession,
        options: Sequence[SessionOptions],
        budgets: Budgets,
        send: Callable[[AuditResult], None],
    ) -> None:
        self._plan = plan
        self._session = session
        self._options = options
        self._clock = options[0].clock
        self._budgets = budgets
        self._send = send
        self._journal = Journal(worker, seed=plan.run_id, most_rows=plan.profile.audit.most_rows)
        self._granted: tuple[int, ...] | None = None
        self._tally = AuditTally()
        self._failures_in_a_row = 0
        self._cut_short = ""
        self._readers = gevent.pool.Group()
        self._reading: gevent.Greenlet | None = None

    def execute(
        self, operation: Operation, due_s: float | None = None, *, keep: bool = True
    ) -> Result:
        """Execute an operation with the session, and journal the operation if it is a write.

        A journaled write is marked, and the result contains the marked operation. A write without
        an answer stays open in the journal.
        """
        if operation.kind.reads:
            return self._session.execute(operation, due_s, keep=keep)
        noted = self._journal.sent(operation, self._clock())
        self._keep_back()
        try:
            result = self._session.execute(noted.operation, due_s)
        except BudgetSpent:
            self._journal.unsent(noted)
            raise
        self._journal.done(noted, result)
        return result

    def grant(self, requests: tuple[int, ...] | None) -> None:
        """Set how many requests the worker may send to each account; None is unlimited."""
        self._granted = requests
        self._keep_back()

    def written(self) -> Written:
        return self._journal.written()

    def read_back(self, request: AuditRequest) -> None:
        """Begin to read rows back; a result is sent every second."""
        if self._reading is None:
            if self._granted is not None:
                self._budgets.grant(self._granted)
            pacer = loading_pacer_of(self._plan.profile, self._options[0].endpoint.kind)
            part = pacer.share(request.rank, request.count)
            self._reading = gevent.spawn(self._read_back, request.plan, part)

    def stop(self) -> None:
        """Stop reading back and send the result so far."""
        self._cut_short = "interrupted"
        self._readers.kill(block=False)

    def close(self) -> None:
        """Stop at once; nothing is sent."""
        gevent.killall([self._reading] if self._reading is not None else [])

    def _keep_back(self) -> None:
        if self._granted is not None and self._reading is None:
            # Which account holds a journaled row does not matter: each may have to read all.
            reserved = len(self._journal)
            self._budgets.grant(granted - reserved for granted in self._granted)

    def _read_back(self, plan: LookUp, pacer: Pacer) -> None:
        rng = random.Random(f"{self._plan.profile.seed}/audit")
        session = open_sessions(
            "sdk",
            [
                dataclasses.replace(
                    one,
                    retry=_RETRY,
                    on_attempt=ignore_attempt,
                    rng=rng,
                    connections=CONCURRENCY,
                )
                for one in self._options
            ],
        )
        rows = self._journal.rows(plan.below)
        paced = PacedItems(rows, pacer, self._clock, units=lambda _: 1)

        def read_rows() -> None:
            for row in paced:
                if self._cut_short:
                    return
                try:
                    self._read_row(session, row, plan)
                except BudgetSpent:
                    self._cut_short = "the budget limits.billable_transactions is used up"

        try:
            for _ in range(CONCURRENCY):
                self._readers.spawn(read_rows)
            while not self._readers.join(timeout=REPORT_EVERY_S):
                self._report(done=False)
        finally:
            self._readers.kill()
            session.close()
        if not self._cut_short and self._tally.rows + self._tally.unread < len(rows):
            # The log has the exception.
            self._cut_short = "a defect of the harness"
        self._report(done=True)

    def _read_row(self, session: TableSession, row: Row, plan: LookUp) -> None:
        table, partition_key, row_key = row.key
        result = session.execute(
            Operation(
                kind=Kind.POINT_QUERY, table=table, partition_key=partition_key, row_key=row_key
            )
        )
        if not (result.outcome.succeeded or result.outcome is Outcome.NOT_FOUND):
            self._tally.unread += 1
            self._failures_in_a_row += 1
            if self._failures_in_a_row >= _MAX_FAILURES_IN_A_ROW:
                last = result.attempts[-1]
                answer = f"{last.status or ''} {last.error_code}".strip()
                self._cut_short = (
                    f"{self._failures_in_a_row} rows in a row could not be read ({answer})"
                )
            return
        self._failures_in_a_row = 0
        stored: Any = result.value if result.outcome.succeeded else None
        self._tally.add(row, stored, mine=self._journal.mine, others=plan.others(row.place))

    def _report(self, *, done: bool) -> None:
        self._send(
            AuditResult(
                run_id=self._plan.run_id,
                # In a local run the receiver gets this object, and the tally goes on changing.
                tally=copy.deepcopy(self._tally),
                done=done,
                cut_short=self._cut_short,
                billable_transactions=self._budgets.spent,
            )
        )
