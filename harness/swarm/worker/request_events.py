"""What Locust is told of each operation: its request event."""

from __future__ import annotations

import collections
import contextlib
from typing import Any

from locust.env import Environment
from locust.exception import (
    InterruptTaskSet,
    RescheduleTask,
    RescheduleTaskImmediately,
    StopTest,
    StopUser,
)

from harness.model.operation import Kind
from harness.model.outcome import SUCCESS, Outcome, Result

_METHODS = {
    Kind.POINT_QUERY: "GET",
    Kind.QUERY: "GET",
    Kind.INSERT: "POST",
    Kind.UPSERT_MERGE: "PATCH",
    Kind.UPSERT_REPLACE: "PUT",
    Kind.UPDATE_MERGE: "PATCH",
    Kind.UPDATE_REPLACE: "PUT",
    Kind.DELETE: "DELETE",
    Kind.TRANSACTION: "POST",
}

_STEERING = (StopUser, StopTest, RescheduleTask, RescheduleTaskImmediately, InterruptTaskSet)
"""What Locust lets a listener raise."""

_TOGETHER = 64
_LARGE_BYTES = 65_536
_LONGEST_S = 0.05


class OperationFailed(Exception):
    """What Locust is told of an operation that did not succeed. Its text has few variants."""


class Teller:
    """Fires Locust's request event, once for each operation.

    Listeners may raise what steers a user, such as ``StopUser``. It goes through to the caller: the
    user whose operation it was, but for a success that is told together with others.

    Args:
        environment: Whose event it is.
    """

    def __init__(self, environment: Environment) -> None:
        self._fire = environment.events.request.fire
        self._untold: collections.deque[Result] = collections.deque()
        self._since_s = 0.0

    def tell(self, result: Result) -> None:
        """Tell of one operation now."""
        operation = result.operation
        failure = None if result.outcome is SUCCESS else _failure_of(result)
        context: dict[str, Any] = {}
        self._fire(
            request_type=_METHODS[operation.kind],
            name=operation.label,
            response_time=result.service_s * 1000.0,
            response_length=result.bytes_received,
            exception=failure,
            context=context,
        )

    def tell_soon(self, result: Result) -> None:
        """Tell of one operation together with those around it, which takes half the time.

        A success is told with one of the next that end, within `_LONGEST_S` if they come that
        soon; or by `tell_rest`. All else is told at once.
        """
        untold = self._untold
        if not untold:
            self._since_s = result.done_s
        untold.append(result)
        if (
            len(untold) >= _TOGETHER
            or result.outcome is not SUCCESS
            or result.done_s - self._since_s >= _LONGEST_S
            # What was read is kept as long.
            or result.bytes_received > _LARGE_BYTES
        ):
            self.tell_all()

    def tell_all(self) -> None:
        """Tell of what was not told yet."""
        untold = self._untold
        while untold:
            self.tell(untold.popleft())

    def tell_rest(self) -> None:
        """Tell of what was not told yet, where no user is at hand that could be steered."""
        while self._untold:
            with contextlib.suppress(*_STEERING):
                self.tell_all()


def _failure_of(result: Result) -> OperationFailed | None:
    outcome = result.outcome
    looked_up = outcome is Outcome.NOT_FOUND and result.operation.kind is Kind.POINT_QUERY
    if outcome.succeeded or looked_up:
        return None
    last = result.attempts[-1]
    return OperationFailed(f"{outcome}: {last.status or ''} {last.error_code}".rstrip())
