"""The limit of a partition server, for all ranges on it together.

Source: partitioning strategy, "Table partitions" and "Range partitions". The capacity of a server
is not published.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.gateway.limits import Servers
from harness.gateway.rules.bucket import Bucket


class ServerRule:
    """One bucket per server."""

    def __init__(self, servers: Servers, now_s: float) -> None:
        self._buckets = [
            Bucket(servers.entities_per_s, servers.burst_s, now_s) for _ in range(servers.count)
        ]

    def __getitem__(self, server: int) -> Bucket:
        return self._buckets[server]

    def full(
        self,
        by_server: Mapping[int, int],
        since_s: float,
        limited: Mapping[int, Sequence[Bucket]],
        overdraft: int,
    ) -> set[int]:
        """The servers that might refuse requests from a time on, or are used much.

        See `Bucket.holds` and `Bucket.hardly_used_by`. What the buckets in ``limited`` pass is not
        in ``by_server``.
        """
        return {
            server
            for server, count in by_server.items()
            if not self._buckets[server].hardly_used_by(count)
            or not self._buckets[server].holds(count, since_s, limited.get(server, ()), overdraft)
        }
