"""Failed attempts with what the service's support asks for, up to a cap."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from harness.model.operation import Operation
from harness.model.outcome import Attempt

ERROR_CAP = 1000


class FailedAttempts:
    """Keeps the first ones of a run, and counts the others.

    Args:
        source: Name of the worker whose they are.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._kept = 0
        self.rows: list[dict[str, Any]] = []
        self.dropped = 0

    def note(self, operation: Operation, attempt: Attempt) -> None:
        """Keep one attempt of ``operation``."""
        if self._kept >= ERROR_CAP:
            self.dropped += 1
            return
        self._kept += 1
        self.rows.append(
            {
                "time_s": round(attempt.sent_s, 6),
                "operation": operation.label,
                "table": operation.table,
                "partition_key": operation.partition_key,
                "row_key": operation.row_key,
                "status": attempt.status,
                "error_code": attempt.error_code,
                "scope": str(attempt.scope),
                "latency_s": round(attempt.latency_s, 6),
                "message": attempt.message,
                "request_id": attempt.request_id,
                "client_request_id": attempt.client_request_id,
                "worker": self._source,
            }
        )

    def drain(self) -> tuple[list[dict[str, Any]], int]:
        """Those since the last drain, and how many were not kept."""
        drained = self.rows, self.dropped
        self.rows, self.dropped = [], 0
        return drained

    def merge(self, rows: Iterable[dict[str, Any]], dropped: int) -> None:
        """Add what another one drained."""
        rows = list(rows)
        room = max(0, ERROR_CAP - len(self.rows))
        self.rows += rows[:room]
        self.dropped += dropped + len(rows[room:])
