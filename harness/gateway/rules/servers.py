"""A partition server serves the ranges that live on it, and no more than it can.

Source: partitioning strategy, "Table partitions" and "Range partitions". What one server carries
is not published.
"""

from __future__ import annotations

from harness.gateway.limits import Servers
from harness.gateway.rules.bucket import Bucket


class ServerRule:
    """A bucket for each server."""

    def __init__(self, servers: Servers, now_s: float) -> None:
        self._buckets = [
            Bucket(servers.entities_per_s, servers.burst_s, now_s) for _ in range(servers.count)
        ]

    def allows(self, server: int, entities: int, now_s: float) -> bool:
        """Whether the server may serve so many now."""
        return self._buckets[server].allows(entities, now_s)

    def take(self, server: int, entities: int, now_s: float) -> None:
        """The server serves so many."""
        self._buckets[server].take(entities, now_s)
