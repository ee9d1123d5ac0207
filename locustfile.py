"""The locustfile of the stress test: ``locust --headless --profile single-partition``.

docs/application.md shows how to write your own user class.
"""

import os
import sys

if os.name != "posix":
    sys.exit("error: a run needs Linux or macOS; on Windows use WSL 2")

# Before the other imports, which take seconds, so that Ctrl-C works from the start.
from harness import startup

startup.begin()

from locust import events  # noqa: E402

from harness.swarm import KeySpreadUser, ProfileUser, SinglePartitionUser, wire  # noqa: E402

__all__ = ["KeySpreadUser", "ProfileUser", "SinglePartitionUser"]

wire(events)
