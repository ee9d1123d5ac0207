"""The classes of the kinds of sessions; see `harness.model.sessions`."""

import logging
from collections.abc import Callable, Iterable, Sequence

from harness.endpoint.accounts import AccountsSession
from harness.endpoint.session import SessionOptions, TableSession
from harness.endpoint.sessions.blob import BlobSession, blob_problem
from harness.endpoint.sessions.queue import QueueSession, queue_problem
from harness.endpoint.sessions.sdk import SdkSession
from harness.endpoint.sessions.sdk_default import SdkDefaultSession
from harness.endpoint.sessions.wire import WireSession
from harness.model.errors import SetupError
from harness.model.operation import Operation
from harness.model.sessions import SDK, TABLE_SESSIONS, session_named

_SESSIONS: dict[str, Callable[[SessionOptions], TableSession]] = {
    "sdk": SdkSession,
    "wire": WireSession,
    "sdk-default": SdkDefaultSession,
    "blob": BlobSession,
    "queue": QueueSession,
}
_PROBLEMS: dict[str, Callable[[Operation], str | None]] = {
    "blob": blob_problem,
    "queue": queue_problem,
}

_LOG_LEVELS = {"azure": logging.WARNING, "urllib3": logging.ERROR}
"""Levels for libraries that log the URL of each request, which may contain a SAS."""


def operation_problem(kind: str, operation: Operation) -> str | None:
    """Why a session of a kind cannot send ``operation``; None where it can."""
    return _PROBLEMS.get(kind, _table_problem)(operation)


def _table_problem(operation: Operation) -> str | None:
    if operation.kind.on_rows:
        return None
    able = [kind for kind, problem in _PROBLEMS.items() if problem(operation) is None]
    use = f": use session {able[0]}" if able else ""
    return f"the operation {operation.label!r} is not one on rows of a table{use}"


def require_sendable(
    name: str, kind: str, problem: str | None, operations: Iterable[Operation]
) -> None:
    """A `SetupError` about ``name`` if a session of a kind cannot send its operations.

    ``problem`` is the one of its settings, if there is one.
    """
    problems = (operation_problem(kind, operation) for operation in operations)
    if (found := problem or next(filter(None, problems), None)) is not None:
        raise SetupError(f"{name} cannot use session {kind}: {found}")


def loading_session(kind: str) -> str:
    """The kind of session that loads for a session of a kind.

    The retries of azure-data-tables itself send no transaction again after the 429 of Cosmos DB.
    Loading is not part of the test, and must be patient.
    """
    return SDK.name if session_named(kind).as_is else kind


def open_session(kind: str, options: SessionOptions) -> TableSession:
    """Open a session of a kind; an unknown kind is a `ValueError` that lists the known ones.

    A `SetupError` says that an environment variable names certificates that cannot be loaded, or
    that the library for blobs is missing.
    """
    if kind not in _SESSIONS:
        raise ValueError(f"unknown session {kind!r}; the sessions are {', '.join(TABLE_SESSIONS)}")
    for library, level in _LOG_LEVELS.items():
        logging.getLogger(library).setLevel(level)
    return _SESSIONS[kind](options)


def open_sessions(kind: str, options: Sequence[SessionOptions]) -> TableSession:
    """Open one session over several accounts, whose ``options`` are in the order of the accounts.

    The errors are those of `open_session`.
    """
    sessions = [open_session(kind, one) for one in options]
    return sessions[0] if len(sessions) == 1 else AccountsSession(sessions)
