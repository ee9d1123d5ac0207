"""Physical partitions of Azure Cosmos DB: which keys share one, and what one can serve.

Source: "Partitioning and horizontal scaling in Azure Cosmos DB" and "Azure Cosmos DB service
quotas". The service spreads the hashes of keys evenly over the physical partitions, and divides the
provisioned throughput evenly among them. Its hash is not documented: here another one stands in for
it. Which keys share a physical partition is therefore an example; how evenly keys spread is not.
"""

from __future__ import annotations

import bisect
import dataclasses
import hashlib
from typing import Final, Self

MAX_PARTITION_RU_PER_S: Final = 10_000
"""RU/s of a physical partition, and so of a logical one. Published (both sources)."""

_GB: Final = 10**9
MAX_LOGICAL_PARTITION_BYTES: Final = 20 * _GB
"""Of all entities with one PartitionKey. Published (both sources)."""

MAX_PHYSICAL_PARTITION_BYTES: Final = 50 * _GB
"""A physical partition that grows beyond this is split. Published (first source)."""

MAX_PARTITION_KEY_BYTES: Final = 2048
"""Bytes of a PartitionKey in UTF-8; 101 in containers without large partition keys. Published
(both sources)."""

MAX_ROW_KEY_BYTES: Final = 255
"""Bytes of a RowKey in UTF-8. Published: "Frequently asked questions about Azure Cosmos DB for
Table"."""

MAX_REQUEST_BYTES: Final = 2 * 1024 * 1024
"""Bytes of a transaction, and of an entity in JSON. Published: "Frequently asked questions about
Azure Cosmos DB for Table" (batches of 2 MB), and "Azure Cosmos DB service quotas" (items of 2 MB).
That MB means MiB is assumed."""

HASHES: Final = 1 << 32
"""Hashes of keys are below this."""

_DIGEST_BYTES: Final = 4


def hash_of(partition_key: str) -> int:
    """The hash of a PartitionKey, the same in every process."""
    key = partition_key.encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(key, digest_size=_DIGEST_BYTES, person=b"cosmos").digest()
    return int.from_bytes(digest)


def share_ru_per_s(provisioned_ru_per_s: float, count: int) -> float:
    """What one of ``count`` physical partitions can serve: its even share, 10,000 RU/s at most."""
    return min(provisioned_ru_per_s / count, MAX_PARTITION_RU_PER_S)


@dataclasses.dataclass(frozen=True, slots=True)
class PhysicalPartitions:
    """Ranges of hashes, each of one physical partition.

    Attributes:
        first: The first hash of each range, in order; the first range begins at 0.
        numbers: Number of the physical partition of each range.
    """

    first: tuple[int, ...]
    numbers: tuple[int, ...]

    @classmethod
    def even(cls, count: int) -> Self:
        """``count`` physical partitions with ranges of the same size, numbered from 0."""
        return cls(
            tuple(-(-number * HASHES // count) for number in range(count)), tuple(range(count))
        )

    def __len__(self) -> int:
        return len(self.first)

    def of(self, partition_key: str) -> int:
        """The number of the physical partition that holds a PartitionKey."""
        return self.at(hash_of(partition_key))

    def at(self, hashed: int) -> int:
        """The number of the physical partition that holds a hash."""
        return self.numbers[bisect.bisect_right(self.first, hashed) - 1]

    def hashes(self, number: int) -> range:
        at = self.numbers.index(number)
        return range(self.first[at], self.first[at + 1] if at + 1 < len(self.first) else HASHES)

    def split(self, number: int, middle: int | None = None) -> Self:
        """The partitions after one was split at ``middle``, by default that of its range.

        The upper half becomes a partition with the next free number. A logical partition is never
        split: all its entities have one hash.

        Raises:
            ValueError: there is no such partition, or one half would hold no hash.
        """
        at = self.numbers.index(number)
        held = self.hashes(number)
        middle = (held.start + held.stop) // 2 if middle is None else middle
        if middle == held.start or middle not in held:
            raise ValueError(f"physical partition {number} cannot be split there")
        first = (*self.first[: at + 1], middle, *self.first[at + 1 :])
        new = (*self.numbers[: at + 1], max(self.numbers) + 1, *self.numbers[at + 1 :])
        return type(self)(first, new)
