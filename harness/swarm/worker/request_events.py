"""Locust's request event, fired once for every operation."""

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

from harness.model.outcome import SUCCESS, Result

_CONTROL_FLOW = (
    *(StopUser, StopTest, InterruptTaskSet),
    *(RescheduleTask, RescheduleTaskImmediately),
)
"""Exceptions with which a listener may control the user."""

_MAX_BATCH = 64
_LARGE_BYTES = 65_536
_MAX_DELAY_S = 0.05


class OperationFailed(Exception):
    """The exception in the event of a failed operation. The text has few variants."""


class RequestEvents:
    """Fires the request event, for a single result or for a batch of results.

    Listeners may raise exceptions that control a user, such as ``StopUser``. These exceptions
    reach the caller: the user of the operation, or for a batch the user whose result completed it.
    """

    def __init__(self, environment: Environment) -> None:
        self._fire = environment.events.request.fire
        self._batch: collections.deque[Result] = collections.deque()
        self._batch_since_s = 0.0

    def fire(self, result: Result) -> None:
        operation = result.operation
        failure = None if result.outcome is SUCCESS else _failure_of(result)
        context: dict[str, Any] = {}
        self._fire(
            request_type=operation.kind.method,
            name=operation.label,
            response_time=result.service_s * 1000.0,
            response_length=result.bytes_received,
            exception=failure,
            context=context,
        )

    def enqueue(self, result: Result) -> None:
        """Add a result to the batch. Firing events in batches takes half the CPU time.

        The batch is flushed when it is full or old. A failure flushes it at once, and so
        does a large response, whose content would otherwise stay in memory.
        """
        batch = self._batch
        if not batch:
            self._batch_since_s = result.done_s
        batch.append(result)
        if (
            len(batch) >= _MAX_BATCH
            or result.outcome is not SUCCESS
            or result.done_s - self._batch_since_s >= _MAX_DELAY_S
            or result.bytes_received > _LARGE_BYTES
        ):
            self.flush()

    def flush(self) -> None:
        batch = self._batch
        while batch:
            self.fire(batch.popleft())

    def flush_without_user(self) -> None:
        """Fire the events of the batch where there is no user that a listener could control."""
        while self._batch:
            with contextlib.suppress(*_CONTROL_FLOW):
                self.flush()


def _failure_of(result: Result) -> OperationFailed | None:
    if not result.outcome.failed:
        return None
    last = result.attempts[-1]
    return OperationFailed(f"{result.outcome}: {last.status or ''} {last.error_code}".rstrip())
