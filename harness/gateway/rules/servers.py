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

    def allows(self, server: int, entities: int, now_s: float) -> bool:
        """Whether the server may serve ``entities`` now."""
        return self._buckets[server].allows(entities, now_s)

    def take(self, server: int, entities: int, now_s: float) -> None:
        """Take ``entities`` from the bucket of the server."""
        self._buckets[server].take(entities, now_s)

    def give_back(self, server: int, entities: int, now_s: float) -> None:
        """Give back ``entities`` to the bucket of the server."""
        self._buckets[server].give_back(entities, now_s)
