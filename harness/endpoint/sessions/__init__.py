"""The kinds of sessions, by their names on the command line."""

import logging
from collections.abc import Sequence

from harness.endpoint.accounts import AccountsSession
from harness.endpoint.session import SessionOptions, TableSession
from harness.endpoint.sessions.blob import BlobSession, blob_problem
from harness.endpoint.sessions.sdk import SdkSession
from harness.endpoint.sessions.sdk_default import SdkDefaultSession
from harness.endpoint.sessions.wire import WireSession
from harness.model.operation import Operation
from harness.model.services import service_of_session

_SDK, _SDK_DEFAULT = "sdk", "sdk-default"

_SESSIONS: dict[
    str, type[SdkSession] | type[WireSession] | type[SdkDefaultSession] | type[BlobSession]
] = {
    _SDK: SdkSession,
    "wire": WireSession,
    _SDK_DEFAULT: SdkDefaultSession,
    "blob": BlobSession,
}

SESSION_KINDS = tuple(kind for kind in _SESSIONS if service_of_session(kind) is None)
"""The names of the sessions that send to tables."""

_LOG_LEVELS = {"azure": logging.WARNING, "urllib3": logging.ERROR}
"""Levels for libraries that log the URL of each request, which may contain a SAS."""


def operation_problem(kind: str, operation: Operation) -> str | None:
    """Why a session of a kind cannot send ``operation``; None where it can."""
    return None if service_of_session(kind) is None else blob_problem(operation)


def loading_session(kind: str) -> str:
    """The kind of session that loads for a session of a kind.

    *sdk-default* has the retries of azure-data-tables, which sends no transaction again after the
    429 of Cosmos DB. Loading is not part of the test, and must be patient.
    """
    return _SDK if kind == _SDK_DEFAULT else kind


def open_session(kind: str, options: SessionOptions) -> TableSession:
    """Open a session of a kind; an unknown kind is a `ValueError` that lists the known ones.

    A `SetupError` says that an environment variable names certificates that cannot be loaded, or
    that the library for blobs is missing.
    """
    if kind not in _SESSIONS:
        raise ValueError(f"unknown session {kind!r}; the sessions are {', '.join(SESSION_KINDS)}")
    for library, level in _LOG_LEVELS.items():
        logging.getLogger(library).setLevel(level)
    return _SESSIONS[kind](options)


def open_sessions(kind: str, options: Sequence[SessionOptions]) -> TableSession:
    """Open one session over several accounts, whose ``options`` are in the order of the accounts.

    The errors are those of `open_session`.
    """
    sessions = [open_session(kind, one) for one in options]
    return sessions[0] if len(sessions) == 1 else AccountsSession(sessions)
