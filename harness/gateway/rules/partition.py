"""The limit of a partition: 2,000 entities/s, and beside tables what its service has as a target.

Source: performance checklist, "Entities per second (partition)"; partitioning strategy, "Table
partitions". Every PartitionKey of a table is a partition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.gateway.demand import Place
from harness.gateway.limits import Rate
from harness.gateway.rules.bucket import Bucket
from harness.model.partition import is_beside, limit_at
from harness.model.services import BESIDE
from harness.model.services.service import Service

_MOST_PARTITIONS = 50_000
_MOST_KEPT = 45_000
_CHECKED_AT = 1000
_HARDLY = 0.05
"""Of a full bucket: of so much it does not matter when in a second it is taken."""


class PartitionRule:
    """One bucket per recently used partition.

    A partition without requests for the time of a burst has a full bucket, as a new one has, so it
    is dropped: a million keys take no more memory than those of the last seconds. Above 50,000
    partitions in use at once, the least recently used are dropped too.

    Args:
        rate: That of a partition of a table.
        beside: The services beside tables, whose partitions may have another one.
    """

    def __init__(self, rate: Rate, beside: Sequence[Service] = BESIDE) -> None:
        self._rate = rate
        self._beside = beside
        per_s = rate.entities_per_s
        self._lowest_per_s = min([per_s, *(one.limit(per_s) for one in beside)])
        self._buckets: dict[tuple[str, str], Bucket] = {}
        self._checked_at = _CHECKED_AT

    def allows(self, table: str, key: str, entities: int, now_s: float) -> bool:
        """Whether the partition may serve ``entities`` now."""
        bucket = self._buckets.get((table, key))
        return bucket is None or bucket.allows(entities, now_s)

    def capacity(self, table: str) -> float:
        """Entities in a full bucket of a partition of ``table``, or of what is in its place."""
        return self._per_s(table) * self._rate.burst_s

    def holds(self, table: str, key: str, entities: int, now_s: float) -> bool:
        """Whether requests with ``entities`` in all pass in the second from now on, at any time.

        False too if it matters when they do: a partition may have traffic for a second alone.
        """
        if entities > _HARDLY * self.capacity(table):
            return False
        bucket = self._buckets.get((table, key))
        return bucket is None or bucket.holds(entities, now_s)

    def metered(self, entities: Mapping[Place, int], seconds: float) -> list[tuple[str, str, int]]:
        """Table, key and entities of the partitions whose buckets matter.

        The others are asked for so few that a bucket, which is full, is as full again within a
        hundredth of this time.
        """
        part_s = min(seconds / 100, self._rate.burst_s)
        least = self._lowest_per_s * part_s
        buckets = self._buckets
        if not buckets and max(entities.values(), default=0) <= least:
            return []
        return [
            (table, key, count)
            for (table, key), count in entities.items()
            if key is not None
            and ((count > least and count > self._per_s(table) * part_s) or (table, key) in buckets)
        ]

    def take(self, table: str, key: str, entities: int, now_s: float) -> None:
        self.bucket(table, key, now_s).take(entities, now_s)

    def bucket(self, table: str, key: str, now_s: float) -> Bucket:
        """The bucket of the partition, which is full if it is new."""
        partition = (table, key)
        bucket = self._buckets.get(partition)
        if bucket is None:
            if len(self._buckets) >= self._checked_at:
                self._forget(now_s)
            bucket = Bucket(self._per_s(table), self._rate.burst_s, now_s)
            self._buckets[partition] = bucket
        return bucket

    def give_back(self, table: str, key: str, entities: int, now_s: float) -> None:
        bucket = self._buckets.get((table, key))
        if bucket is not None:
            bucket.give_back(entities, now_s)

    def _per_s(self, table: str) -> float:
        per_s = self._rate.entities_per_s
        return limit_at(table, per_s, self._beside) if is_beside(table) else per_s

    def _forget(self, now_s: float) -> None:
        """Drop full buckets; the next search follows when there are twice as many as now."""
        kept = {key: bucket for key, bucket in self._buckets.items() if not bucket.full(now_s)}
        if len(kept) > _MOST_KEPT:
            latest = sorted(kept, key=lambda key: kept[key].used_s)[-_MOST_KEPT:]
            kept = {key: kept[key] for key in latest}
        self._buckets = kept
        self._checked_at = min(_MOST_PARTITIONS, max(_CHECKED_AT, 2 * len(kept)))
