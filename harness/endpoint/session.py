"""The seam behind which requests are sent: one operation in, one result out."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from typing import Protocol

import gevent

from harness.endpoint.clock import Clock
from harness.endpoint.connection import Endpoint
from harness.model.operation import Operation
from harness.model.outcome import Result
from harness.workload.budget import Budget
from harness.workload.retry import RetryPolicy


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SessionOptions:
    """What a session is opened with, whatever its kind.

    Attributes:
        endpoint: Where to, and signed with what.
        table: Name of the first table; an operation on another adds its ending to it.
        run_id: Begins the client request id of every request.
        retry: Whether and when an attempt is followed by another.
        budget: Requests that may be sent; one is taken before each.
        clock: UTC seconds, for all times of results.
        rng: Source of the retry formula's random factor.
        connections: At most so many connections at once. Waiting for one is the generator's
            time and part of no latency but the response latency.
        connect_timeout_s: For each address of the host.
        read_timeout_s: For each wait for more of an answer.
        sleep: Waits between attempts, in seconds.
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
    sleep: Callable[[float], None] = gevent.sleep


class TableSession(Protocol):
    """Sends operations to one table. Shared by all users of a process; safe among greenlets."""

    def execute(self, operation: Operation, due_s: float | None = None) -> Result:
        """Do one operation, its retries and further pages included, and say what became of it.

        Args:
            operation: What is wanted.
            due_s: When the schedule wanted it, UTC seconds of the session's clock; None in a
                closed loop.

        Returns:
            The result, every attempt in it. Failures of the service are results, not errors.

        Raises:
            BudgetSpent: before anything is sent, where the budget is used up.
        """

    @property
    def connections_in_use(self) -> int:
        """Connections that carry a request at this moment; 0 where that is not known."""

    def close(self) -> None:
        """Close every connection."""
