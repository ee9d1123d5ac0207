"""Step 2 of the procedure: puts the entities into the table before anything is measured."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import gevent
import gevent.lock
import gevent.pool

from harness.endpoint.clock import Clock
from harness.endpoint.session import TableSession
from harness.measure.figures import counted
from harness.measure.redaction import Aliases
from harness.model.errors import SetupError
from harness.model.operation import Operation
from harness.model.outcome import Result
from harness.workload.budget import BudgetSpent
from harness.workload.pacing import STOP, Pacer

PROGRESS_EVERY_S = 0.5


class LoadingStopped(Exception):
    """Loading was ended before its end, because the run is."""


@dataclasses.dataclass(slots=True)
class Loaded:
    """What was put into the table so far."""

    entities: int = 0
    attempts: int = 0
    seconds: float = 0.0


def load_table(
    session: TableSession,
    operations: Iterator[Operation],
    *,
    total: int,
    concurrency: int,
    pacer: Pacer,
    clock: Clock,
    loaded: Loaded,
    stopped: Callable[[], bool],
    on_progress: Callable[[int, int, float], None],
    aliases: Aliases | None = None,
) -> None:
    """Send every operation of ``operations``, some at once, and see that each succeeds.

    Args:
        total: Entities in all.
        concurrency: Operations on the way at once.
        pacer: Decides when each leaves; an account is not flooded by loading either.
        loaded: Kept up to date, also where loading ends early.
        stopped: True when loading is to end.
        on_progress: Told entities so far, entities in all, and seconds, now and then.
        aliases: Stand for keys where a failure is told; None shows them.

    Raises:
        SetupError: the service did not take an operation, or the budget is used up.
        LoadingStopped: ``stopped`` said so.
    """
    began = clock()
    failures: list[str] = []
    handed_out = [0]
    turn = gevent.lock.Semaphore(1)

    def send() -> None:
        for operation in operations:
            if failures or stopped():
                return
            with turn:
                now_s = clock()
                due_s = pacer.next(now_s - began, handed_out[0])
                if due_s is STOP:
                    return
                handed_out[0] += operation.entities_asked
                if began + due_s > now_s:
                    gevent.sleep(began + due_s - now_s)
            try:
                result = session.execute(operation)
            except BudgetSpent:
                failures.append(
                    "the budget limits.billable_transactions is used up by loading the table; "
                    "raise it or load fewer entities (keys.rows_per_partition)"
                )
                return
            loaded.attempts += len(result.attempts)
            loaded.entities += result.entities
            if not result.outcome.succeeded:
                failures.append(_sentence(result, aliases))

    pool = gevent.pool.Group()
    try:
        for _ in range(concurrency):
            pool.spawn(send)
        while not pool.join(timeout=PROGRESS_EVERY_S):
            loaded.seconds = clock() - began
            on_progress(loaded.entities, total, loaded.seconds)
            if not pool or stopped():
                break
    finally:
        pool.kill()
        loaded.seconds = clock() - began
    on_progress(loaded.entities, total, loaded.seconds)
    if failures:
        raise SetupError(failures[0])
    if stopped():
        raise LoadingStopped


def _sentence(result: Result, aliases: Aliases | None) -> str:
    last = result.attempts[-1]
    key, message = result.operation.partition_key, last.message
    if aliases is not None:
        # What the service said may repeat a key.
        key, message = aliases(key), ""
    answer = f"{last.status} {last.error_code}".strip() if last.status else last.error_code
    return (
        f"loading the table failed: partition {key!r} answered "
        f"{answer} after {counted(len(result.attempts), 'attempt')} ({message or result.outcome})"
    )
