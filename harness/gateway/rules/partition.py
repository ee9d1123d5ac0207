"""The limit of a partition: 2,000 entities/s.

Source: performance checklist, "Entities per second (partition)"; partitioning strategy, "Table
partitions". Every PartitionKey of a table is a partition.
"""

from __future__ import annotations

from collections import OrderedDict

from harness.gateway.limits import Rate
from harness.gateway.rules.bucket import Bucket

_FORGET_AT_ONCE = 4
_MOST_PARTITIONS = 50_000


class PartitionRule:
    """One bucket per recently used partition.

    A partition without requests for the time of a burst has a full bucket, as a new one has, so it
    is dropped: a million keys take no more memory than those of the last seconds. Above 50,000
    partitions in use at once, the least recently used are dropped too.
    """

    def __init__(self, rate: Rate) -> None:
        self._rate = rate
        self._buckets: OrderedDict[tuple[str, str], Bucket] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def allows(self, table: str, key: str, entities: int, now_s: float) -> bool:
        """Whether the partition may serve ``entities`` now."""
        bucket = self._buckets.get((table, key))
        return bucket is None or bucket.allows(entities, now_s)

    def take(self, table: str, key: str, entities: int, now_s: float) -> None:
        """Take ``entities`` from the bucket of the partition."""
        partition = (table, key)
        buckets = self._buckets
        bucket = buckets.get(partition)
        if bucket is None:
            bucket = Bucket(self._rate.entities_per_s, self._rate.burst_s, now_s)
            buckets[partition] = bucket
            self._forget(now_s)
        else:
            buckets.move_to_end(partition)
        bucket.take(entities, now_s)

    def give_back(self, table: str, key: str, entities: int, now_s: float) -> None:
        """Give back ``entities`` to the bucket of the partition."""
        bucket = self._buckets.get((table, key))
        if bucket is not None:
            bucket.give_back(entities, now_s)

    def _forget(self, now_s: float) -> None:
        """For each new partition check some old ones, so that the number stays bounded."""
        buckets = self._buckets
        for _ in range(_FORGET_AT_ONCE):
            oldest = next(iter(buckets))
            if len(buckets) <= _MOST_PARTITIONS and not buckets[oldest].full(now_s):
                return
            if len(buckets) == 1:
                return
            del buckets[oldest]
