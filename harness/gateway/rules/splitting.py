"""A physical partition that stores too much is split in two, and every share becomes smaller.

Source: "Partitioning and horizontal scaling in Azure Cosmos DB", "Physical partitions": a physical
partition stores up to 50 GB, the service splits those that grow, a split does not affect
availability, and a logical partition stays whole. Assumed: both halves store about the same, and
the provisioned throughput is divided among one more at once.
"""

from __future__ import annotations

import dataclasses
from collections import deque

from harness.gateway.limits import RequestUnitLimits
from harness.model.physical_partitions import HASHES, PhysicalPartitions, hash_of

_SLOTS = 4096
"""Number of ranges of hashes by which stored bytes are counted, so that memory is bounded."""
_SLOT_HASHES = HASHES // _SLOTS
_SPLITS_KEPT = 200
MOST_PARTITIONS = 1000
"""Then no physical partition is split."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """The split of a physical partition.

    Attributes:
        at_s: When, on the model's clock.
        number: The physical partition that was too large.
        new: The number of the one that took over the upper part of its hashes.
        count: Physical partitions afterwards.
    """

    at_s: float
    number: int
    new: int
    count: int


class SplittingRule:
    """Follows the stored bytes, and splits what grows too large.

    Attributes:
        count: Number of splits.
        splits: The latest splits, oldest first.
    """

    def __init__(self, limits: RequestUnitLimits) -> None:
        self._most_bytes = limits.partition_bytes
        self._bytes = [0] * _SLOTS
        self._by_number: dict[int, int] = {}
        self._unsplit: dict[int, int] = {}
        self.partitions = PhysicalPartitions.even(limits.physical_partitions)
        self.count = 0
        self.splits: deque[Split] = deque(maxlen=_SPLITS_KEPT)

    def stored_bytes(self, number: int) -> int:
        """Bytes of the entities in a physical partition, as far as the gateway saw them written."""
        return self._by_number.get(number, 0)

    def grew(self, key: str, by: int, now_s: float) -> bool:
        """What is stored with a PartitionKey grew by bytes, or shrank.

        Returns whether its physical partition was split.
        """
        slot = hash_of(key) // _SLOT_HASHES
        self._bytes[slot] += by
        number = self.partitions.at(slot * _SLOT_HASHES)
        stored = self._by_number[number] = self._by_number.get(number, 0) + by
        if by < 0:
            self._unsplit.clear()
        if by <= 0 or stored <= max(self._most_bytes, self._unsplit.get(number, 0)):
            return False
        return len(self.partitions) < MOST_PARTITIONS and self._split(number, now_s)

    def _split(self, number: int, now_s: float) -> bool:
        stored = self._by_number[number]
        middle, below = self._middle(number, stored)
        if not 0 < below < stored:
            # Keys with nearly one hash stay together. Look again when there is more.
            self._unsplit[number] = stored + stored // 100
            return False
        self.partitions = self.partitions.split(number, middle)
        new = max(self.partitions.numbers)
        self._by_number[number] = below
        self._by_number[new] = stored - below
        self.count += 1
        self.splits.append(Split(at_s=now_s, number=number, new=new, count=len(self.partitions)))
        return True

    def _middle(self, number: int, stored: int) -> tuple[int, int]:
        """The hash below which about half of the bytes are, and how many these are."""
        held = self.partitions.hashes(number)
        best, best_below, below = held.start, 0, 0
        for first in range(-(-held.start // _SLOT_HASHES) * _SLOT_HASHES, held.stop, _SLOT_HASHES):
            if abs(2 * below - stored) < abs(2 * best_below - stored):
                best, best_below = first, below
            below += self._bytes[first // _SLOT_HASHES]
        return best, best_below
