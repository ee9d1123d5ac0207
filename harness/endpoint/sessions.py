"""The sessions there are, by the names they have on the command line."""

from __future__ import annotations

import logging

from harness.endpoint.sdk import SdkSession
from harness.endpoint.sdk_default import SdkDefaultSession
from harness.endpoint.session import SessionOptions, TableSession
from harness.endpoint.wire.session import WireSession

_SESSIONS: dict[str, type[SdkSession] | type[WireSession] | type[SdkDefaultSession]] = {
    "sdk": SdkSession,
    "wire": WireSession,
    "sdk-default": SdkDefaultSession,
}

SESSION_KINDS = tuple(_SESSIONS)
"""What `open_session` knows."""

_TALKATIVE = {"azure": logging.WARNING, "urllib3": logging.ERROR}
"""Libraries that log each request, and from which level on they may. A SAS is part of a URL."""


def open_session(kind: str, options: SessionOptions) -> TableSession:
    """The session of that kind.

    Raises:
        ValueError: there is no such kind; the message names those there are.
        SetupError: the environment names a bundle of certificates that cannot be read.
    """
    if kind not in _SESSIONS:
        raise ValueError(f"no session is called {kind!r}; there are {', '.join(SESSION_KINDS)}")
    for library, level in _TALKATIVE.items():
        logging.getLogger(library).setLevel(level)
    return _SESSIONS[kind](options)
