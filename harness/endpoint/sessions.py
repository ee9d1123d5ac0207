"""The sessions there are, by the names they have on the command line."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable

import gevent

from harness.endpoint.clock import Clock
from harness.endpoint.connection import Endpoint
from harness.endpoint.sdk import SdkSession
from harness.endpoint.sdk_default import SdkDefaultSession
from harness.endpoint.session import TableSession
from harness.workload.budget import Budget
from harness.workload.retry import RetryPolicy

_SESSIONS: dict[str, type[SdkSession] | type[SdkDefaultSession]] = {
    "sdk": SdkSession,
    "sdk-default": SdkDefaultSession,
}

SESSION_KINDS = tuple(_SESSIONS)
"""What `open_session` knows."""

_TALKATIVE = {"azure": logging.WARNING, "urllib3": logging.ERROR}
"""Libraries that log each request, and from which level on they may. A SAS is part of a URL."""


def open_session(
    kind: str,
    *,
    endpoint: Endpoint,
    table: str,
    run_id: str,
    retry: RetryPolicy,
    budget: Budget,
    clock: Clock,
    rng: random.Random,
    connections: int,
    connect_timeout_s: float,
    read_timeout_s: float,
    sleep: Callable[[float], None] = gevent.sleep,
) -> TableSession:
    """The session of that kind; for the arguments see `harness.endpoint.sdk.SdkSession`.

    Raises:
        ValueError: there is no such kind; the message names those there are.
        SetupError: the environment names a bundle of certificates that cannot be read.
    """
    if kind not in _SESSIONS:
        raise ValueError(f"no session is called {kind!r}; there are {', '.join(SESSION_KINDS)}")
    for library, level in _TALKATIVE.items():
        logging.getLogger(library).setLevel(level)
    return _SESSIONS[kind](
        endpoint=endpoint,
        table=table,
        run_id=run_id,
        retry=retry,
        budget=budget,
        clock=clock,
        rng=rng,
        connections=connections,
        connect_timeout_s=connect_timeout_s,
        read_timeout_s=read_timeout_s,
        sleep=sleep,
    )
