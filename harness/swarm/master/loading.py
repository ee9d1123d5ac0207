"""Step 2 of the procedure: inserts the entities into the table before the load begins."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import gevent
import gevent.lock
import gevent.pool

from harness.endpoint.clock import Clock
from harness.endpoint.sessions.session import TableSession
from harness.measure.counts.redaction import Aliases
from harness.measure.figures import counted
from harness.model.errors import SetupError
from harness.model.operation import Operation
from harness.model.outcome import Attempt, Outcome, Result, Scope
from harness.workload.budget import BudgetSpent
from harness.workload.load.pacing import STOP, Pacer

PROGRESS_EVERY_S = 0.5
_SILENT_S = 120.0
"""Longer than all retries of an operation take if every attempt is refused at once."""


class LoadingFailed(SetupError):
    """The table exists, and not all entities could be inserted."""


@dataclasses.dataclass(slots=True)
class Loaded:
    """What was loaded so far.

    Attributes:
        entities: Inserted entities.
        attempts: Requests.
        defects: Responses that the harness does not understand.
        seconds: Duration of loading.
        account_throttled: Whether an attempt was throttled for the whole account.
    """

    entities: int = 0
    attempts: int = 0
    defects: int = 0
    seconds: float = 0.0
    account_throttled: bool = False

    def on_attempt(self, operation: Operation, attempt: Attempt) -> None:
        """Count an attempt when its response is there."""
        self.attempts += 1
        self.account_throttled |= attempt.scope is Scope.ACCOUNT

    def add(self, result: Result) -> None:
        """Count the result of an operation, and its attempts that were not counted before."""
        for attempt in result.attempts[result.told :]:
            self.on_attempt(result.operation, attempt)
        self.entities += result.entities
        self.defects += result.outcome is Outcome.DEFECT


def load_table(
    session: TableSession,
    operations: Iterator[Operation],
    *,
    total: int,
    concurrency: int,
    pacer: Pacer,
    clock: Clock,
    loaded: Loaded,
    on_progress: Callable[[int, int, float, float], None],
    aliases: Aliases | None = None,
    silent_s: float = _SILENT_S,
    spare_account: bool = False,
) -> None:
    """Execute every operation of ``operations`` concurrently; each must succeed.

    Args:
        session: Sends the operations.
        operations: The operations, one insert or transaction each.
        total: Entities to load.
        concurrency: Operations in flight at the same time.
        pacer: Limits the rate, so that loading does not flood the account either.
        clock: UTC seconds.
        loaded: Counts, also of an aborted loading.
        on_progress: Called twice a second with loaded entities, entities to load, seconds since
            the beginning, and seconds since the last response.
        aliases: Replace the keys in error messages; None shows the keys.
        silent_s: Loading fails after so many seconds without a response.
        spare_account: Whether loading fails if the whole account is throttled.

    Raises:
        LoadingFailed: an operation failed, or the budget is used up.
    """
    began = clock()
    failures: list[str] = []
    handed_out = [0]
    on_the_way, heard_s = [0], [began]
    turn = gevent.lock.Semaphore(1)

    def send() -> None:
        for operation in operations:
            if failures:
                return
            with turn:
                now_s = clock()
                due_s = pacer.next(now_s - began, handed_out[0])
                if due_s is STOP:
                    return
                handed_out[0] += operation.entities_asked
                if began + due_s > now_s:
                    gevent.sleep(began + due_s - now_s)
            if not on_the_way[0]:
                heard_s[0] = clock()
            on_the_way[0] += 1
            try:
                result = session.execute(operation)
            except BudgetSpent:
                failures.append(
                    "the budget limits.billable_transactions is used up by loading the table; "
                    "raise it or load fewer entities (keys.rows_per_partition)"
                )
                return
            finally:
                on_the_way[0] -= 1
                heard_s[0] = clock()
            loaded.add(result)
            if not result.outcome.succeeded:
                failures.append(_sentence(result, aliases))

    pool = gevent.pool.Group()
    try:
        for _ in range(concurrency):
            pool.spawn(send)
        while not pool.join(timeout=PROGRESS_EVERY_S):
            loaded.seconds = clock() - began
            silence_s = clock() - heard_s[0] if on_the_way[0] else 0.0
            on_progress(loaded.entities, total, loaded.seconds, silence_s)
            if silence_s >= silent_s:
                failures.append(f"loading the table failed: no answer for {silent_s:g} s")
                break
            if loaded.account_throttled and spare_account:
                failures.append(
                    "loading the table failed: the account is throttled; lower "
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
        f"loading the table failed: partition {key!r} answered "
        f"{answer} after {counted(len(result.attempts), 'attempt')} ({message or result.outcome})"
    )
