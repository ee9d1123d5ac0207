"""`TableSession`: the interface behind which requests are sent. An operation in, a result out."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from typing import Protocol

import gevent

from harness.endpoint.attempts import UNPACED, Pace
from harness.endpoint.endpoint import Endpoint
from harness.model.operation import Operation
from harness.model.outcome import Attempt, Result
from harness.model.process import Clock
from harness.workload.budget import Budget
from harness.workload.retry import RetryPolicy


def ignore_attempt(operation: Operation, attempt: Attempt) -> None:
    """An ``on_attempt`` for callers that read the attempts from the result."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SessionOptions:
    """The options of every kind of session.

    Attributes:
        table: Name of the first table; an operation on another table appends its ending.
        run_id: Prefix of the client request id of every request: the id of the run, and the number
            of the worker, or a word for requests that are not of the load.
        budget: The requests that may be sent; one is taken for each.
        clock: Gives all times of results.
        rng: The random factor of the retry formula.
        connections: The most connections at once. The wait for one counts only in the response
            latency.
        longest_wait_s: The longest wait that the service may ask for before a retry.
        on_attempt: Called with every attempt after which its operation goes on, as soon as its
            response is there. The other attempts are in the result, from ``Result.reported`` on.
    """

    endpoint: Endpoint
    table: str
    run_id: str
    retry: RetryPolicy
    budget: Budget
    clock: Clock
    rng: random.Random
    connections: int
    connect_timeout_s: float
    read_timeout_s: float
    longest_wait_s: float = 8.0
    on_attempt: Callable[[Operation, Attempt], None] = ignore_attempt
    pace: Pace = UNPACED
    sleep: Callable[[float], None] = gevent.sleep


class TableSession(Protocol):
    """Sends operations to one table. Shared by all users of a process; safe among greenlets."""

    def execute(
        self, operation: Operation, due_s: float | None = None, *, keep: bool = True
    ) -> Result:
        """Execute one operation with its retries and further pages.

        Args:
            due_s: When the schedule wanted it, by the session's clock; None in a closed loop.
            keep: False discards the entities that a query returns.

        Returns:
            The result with every attempt. Failures of the service are results, not errors.

        Raises:
            BudgetSpent: the budget was used up before the first request; nothing was sent.
            GreenletExit: the session was abandoned, or the greenlet was killed.
        """

    def abandon(self) -> None:
        """Send no further request: an operation that needs one ends with `GreenletExit`."""

    @property
    def connections_in_use(self) -> int:
        """Connections that carry a request at this moment; 0 where that is unknown."""

    def close(self) -> None:
        """Close every connection."""
