"""A session over several accounts: each operation goes to the account of its partition."""

from __future__ import annotations

from collections.abc import Sequence

from harness.endpoint.session import TableSession
from harness.model.accounts import account_of
from harness.model.operation import Operation
from harness.model.outcome import Result


class AccountsSession:
    """A `TableSession` made of one for each account."""

    def __init__(self, sessions: Sequence[TableSession]) -> None:
        self._sessions = tuple(sessions)

    def execute(
        self, operation: Operation, due_s: float | None = None, *, keep: bool = True
    ) -> Result:
        sessions = self._sessions
        session = sessions[account_of(operation.partition_key, len(sessions))]
        return session.execute(operation, due_s, keep=keep)

    def abandon(self) -> None:
        for session in self._sessions:
            session.abandon()

    @property
    def connections_in_use(self) -> int:
        """The most connections to one account, because each account has its own limit."""
        return max(session.connections_in_use for session in self._sessions)

    def close(self) -> None:
        for session in self._sessions:
            session.close()
