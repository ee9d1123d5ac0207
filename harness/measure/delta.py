"""What a worker counted since it last reported, on its way to the master."""

from __future__ import annotations

import dataclasses
from typing import Any

from harness.measure.course import Course
from harness.measure.latency import Wire
from harness.measure.tally import PartitionTally, Tally


@dataclasses.dataclass(slots=True, kw_only=True)
class Delta:
    """What a ledger counted since it was last drained.

    Attributes:
        source: The worker that counted.
        folding: Whether it has more keys than places.
        lost: Keys that gave up their place after the drain before; what comes later is folded.
    """

    source: str
    folding: bool
    lost: list[str]
    tally: Tally
    partitions: dict[str, PartitionTally]
    folded: PartitionTally | None
    accessed: bytes
    throttled: bytes
    course: Course
    errors: list[dict[str, Any]]
    errors_dropped: int

    def encode(self) -> Wire:
        """Its content for the wire."""
        return {
            "source": self.source,
            "folding": self.folding,
            "lost": self.lost,
            "tally": self.tally.encode(),
            "partitions": {key: row.encode() for key, row in self.partitions.items()},
            "folded": None if self.folded is None else self.folded.encode(),
            "accessed": self.accessed,
            "throttled": self.throttled,
            "course": self.course.encode(),
            "errors": self.errors,
            "errors_dropped": self.errors_dropped,
        }

    @classmethod
    def decode(cls, content: Wire) -> Delta:
        """What `encode` gave."""
        folded = content["folded"]
        return cls(
            source=content["source"],
            folding=content["folding"],
            lost=content["lost"],
            tally=Tally.decode(content["tally"]),
            partitions={
                key: PartitionTally.decode(row) for key, row in content["partitions"].items()
            },
            folded=None if folded is None else PartitionTally.decode(folded),
            accessed=content["accessed"],
            throttled=content["throttled"],
            course=Course.decode(content["course"]),
            errors=content["errors"],
            errors_dropped=content["errors_dropped"],
        )
