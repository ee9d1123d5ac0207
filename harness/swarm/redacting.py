"""Where the aliases of a run's PartitionKeys come from."""

from __future__ import annotations

import argparse
import os
import secrets

from harness.measure.redaction import Aliases

REDACT_SECRET = "STRESS_REDACT_SECRET"
"""Names the environment variable whose secret gives the same aliases in every run."""
_SECRET_BYTES = 32


def aliases_of(options: argparse.Namespace) -> Aliases | None:
    """The aliases that ``--redact-keys`` asks for; None where keys are shown."""
    if not options.redact_keys:
        return None
    secret = os.environ.get(REDACT_SECRET)
    return Aliases(secret.encode() if secret else secrets.token_bytes(_SECRET_BYTES))
