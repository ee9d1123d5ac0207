"""The limit of a partition server, for all ranges on it together.

Source: partitioning strategy, "Table partitions" and "Range partitions". The capacity of a server
is not published.
"""

from __future__ import annotations

from harness.gateway.limits import Servers
from harness.gateway.rules.bucket import Bucket


class ServerRule:
    """One bucket per server."""

    def __init__(self, servers: Servers, now_s: float) -> None:
        self._buckets = [
            Bucket(servers.entities_per_s, servers.burst_s, now_s) for _ in range(servers.count)
        ]

    def __getitem__(self, server: int) -> Bucket:
        """The bucket of a server."""
        return self._buckets[server]
