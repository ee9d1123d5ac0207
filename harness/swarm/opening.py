"""What a worker's session is opened with: the endpoint, which has to be the master's, and the rest.

Each worker finds endpoint and credentials in its own environment; a plan holds no secret.
"""

from __future__ import annotations

import os
import random

from harness.endpoint.clock import Clock
from harness.endpoint.connection import Endpoint, behind_gateway, endpoint_from
from harness.endpoint.session import SessionOptions
from harness.model.errors import SetupError
from harness.profile.build import retry_of
from harness.swarm.plan import RunPlan
from harness.workload.budget import Budget


def endpoint_of(plan: RunPlan, host: str) -> Endpoint:
    """Where this worker sends.

    Raises:
        SetupError: it would talk to another endpoint or account than the master.
    """
    endpoint = endpoint_from(host, {} if plan.embedded else os.environ)
    if plan.throttled:
        endpoint = behind_gateway(endpoint)
    if endpoint.fingerprint != plan.fingerprint:
        raise SetupError(
            f"this worker would talk to account {endpoint.account!r} at {endpoint.host}, the "
            "master to another; give both the same host and credentials"
        )
    return endpoint


def options_of(
    plan: RunPlan, worker: int, endpoint: Endpoint, budget: Budget, clock: Clock
) -> SessionOptions:
    """What the session of worker number ``worker`` is opened with."""
    profile = plan.profile
    return SessionOptions(
        endpoint=endpoint,
        table=plan.table,
        run_id=plan.run_id,
        retry=retry_of(profile),
        budget=budget,
        clock=clock,
        # Its own source, so that retries do not change the list of operations.
        rng=random.Random(f"{profile.seed}/{worker}/retry"),
        connections=profile.session.connections,
        connect_timeout_s=profile.session.connect_timeout_s,
        read_timeout_s=profile.session.read_timeout_s,
    )
