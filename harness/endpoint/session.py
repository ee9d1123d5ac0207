"""The seam behind which requests are sent: one operation in, one result out."""

from __future__ import annotations

from typing import Protocol

from harness.model.operation import Operation
from harness.model.outcome import Result


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

    def close(self) -> None:
        """Close every connection."""
