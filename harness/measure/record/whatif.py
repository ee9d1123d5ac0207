"""What a calculation says about the traffic of a trace under several key schemes.

It is the record of a what-if: reports are functions of it. Rates and totals are in the unit of the
limits: entities, or request units (RU) of Cosmos DB.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Annotated

from harness.measure.record.findings import IF_ANY, RecordPart
from harness.measure.record.over_time import HeatPart


class PeakPart(RecordPart):
    """A highest mean rate over ``width_s`` seconds.

    Attributes:
        at_s: Second of the trace at which the window begins.
        partition: Its partition; empty for the account. Of a physical partition its number.
    """

    width_s: int
    per_s: float
    at_s: int
    partition: str = ""


def peak_over(width_s: int, peaks: Sequence[PeakPart]) -> PeakPart:
    """The one of ``peaks`` over a window of this width."""
    return next(peak for peak in peaks if peak.width_s == width_s)


@dataclasses.dataclass(slots=True, kw_only=True)
class SimulatedPart:
    """What the limits would do to the operations; counted as they are simulated.

    Attributes:
        by_rule: Throttled attempts by what refused them: partition, server (of a range of keys),
            moving (a partition that is offline while it moves) or account; of Cosmos DB throughput
            (of a physical partition).
        failed: Operations whose last attempt was throttled.
        moves: How often a range of partitions moved to another server.
        first_s: When an attempt was throttled first; None if none was.
        hottest_share: Share of the hottest partition of what is served.
    """

    attempts: int
    by_rule: dict[str, int]
    failed: int
    moves: int
    first_s: float | None = None
    first_partition: str = ""
    hottest_share: float = 0.0

    @property
    def throttled(self) -> int:
        return sum(self.by_rule.values())

    @property
    def ratio(self) -> float:
        """Throttled attempts of all attempts."""
        return self.throttled / self.attempts if self.attempts else 0.0


class DrawPart(RecordPart):
    """The least or the most of all draws of the random waits of back-off: see `SimulatedPart`."""

    ratio: float
    attempts: int
    failed: int


class HotPart(RecordPart):
    """One of the hottest partitions, with bounds of its share of everything."""

    partition: str
    at_least: float
    at_most: float


@dataclasses.dataclass(slots=True, kw_only=True)
class PricePart:
    """What a scheme costs, in operations and entities of the trace; counted as it is read.

    Attributes:
        unknown: Operations whose new PartitionKey cannot be told, because the trace lacks a key.
        unmatched: Operations whose keys no regular expression of the scheme matches; they keep
            their keys.
        split: Transactions whose parts would be in several partitions.
        spread: Queries that would become several, of a partition or of a range of them each.
        needed: Queries that these would become, added up.
        most_needed: Queries that one of them would become.
        scans: Queries of fewer partitions before that would have to read the whole table.
        unbounded: Queries of a range of RowKeys that would have to read the whole partition.
        unvalued: Operations on rows of which the trace does not show a property that the scheme
            needs; they keep their keys.
        moved: Writes that change a property that keys are made of: the entity would have to move.
        refused: Operations with a key that the service refuses. Their load counts nevertheless.
        ranged: Queries of one partition before that would need a range of partitions.
        billable: Billable requests: attempts, pages, and the parts of split queries.
        scanned: Entities that the queries would scan.
        scanned_is_lower_bound: They may scan more, because rows that were there before the trace,
            and that no operation showed, may be in what they read.
    """

    operations: int = 0
    unknown: int = 0
    unmatched: int = 0
    transactions: int = 0
    split: int = 0
    queries: int = 0
    spread: int = 0
    needed: int = 0
    most_needed: int = 0
    scans: int = 0
    unbounded: int = 0
    collisions: int = 0
    collisions_estimated: bool = False
    unvalued: Annotated[int, IF_ANY] = 0
    moved: Annotated[int, IF_ANY] = 0
    refused: int = 0
    ranged: int = 0
    billable: int = 0
    scanned: int = 0
    scanned_is_lower_bound: bool = False


class FirstLimitPart(RecordPart):
    """The traffic at which the first attempt is throttled.

    Attributes:
        factor: Multiple of the recorded traffic; 0 if it is met at every one that was tried.
        per_s: Best second of the account at that traffic.
        rule: What refuses it, as in `SimulatedPart.by_rule`.
        partition: Partition of the first throttled attempt.
    """

    factor: float
    per_s: float
    rule: str
    partition: str


class SchemePart(RecordPart):
    """The traffic under one key scheme.

    Attributes:
        total: All entities or request units.
        partitions_estimated: It is an estimate, within about 2 %.
        partition_peaks: Highest rates of any one partition, the shortest window first.
        hot: The hottest partitions, the hottest first.
        once: Throttling if no operation is retried.
        retried: Throttling with exponential back-off: the median draw of its random waits.
        draws: The least and the most of all draws; None if they are equal, or there was one.
        refused: An example of a key that the service would refuse, and why.
        heat: Load in the recorded seconds, whatever the rate is.
        first_limit: None if none was looked for (`WhatIfRecord.most_factor`), or none throttles.
        properties: Those that its keys are made of.
        rank: 1 is the best of all schemes, equals share a rank; 0 would break the application. See
            `harness.measure.verdict.ranking`.
        breaks: What would break the application, as clauses.
    """

    name: str
    question: str = ""
    sample: tuple[tuple[str, str], ...] = ()
    total: int
    partitions: int
    partitions_estimated: bool
    partition_peaks: tuple[PeakPart, ...]
    physical_peaks: Annotated[tuple[PeakPart, ...], IF_ANY] = ()
    account_peaks: tuple[PeakPart, ...]
    hot: tuple[HotPart, ...]
    once: SimulatedPart
    retried: SimulatedPart
    draws: Annotated[tuple[DrawPart, DrawPart] | None, IF_ANY] = None
    price: PricePart
    refused: str = ""
    heat: HeatPart | None = None
    first_limit: FirstLimitPart | None = None
    properties: Annotated[tuple[str, ...], IF_ANY] = ()
    rank: int = 0
    breaks: tuple[str, ...] = ()


class PhysicalPart(RecordPart):
    """The physical partitions of Cosmos DB.

    Attributes:
        properties: Assumed properties of a written entity.
    """

    count: int
    properties: int


class WhatIfRecord(RecordPart):
    """The schemes side by side; the first is the recorded one.

    Attributes:
        started_at: UTC second at which it starts.
        seconds: From its first operation to its last.
        rate: Multiple of the recorded traffic.
        unit: Of all rates and totals: entities or RU.
        partition_per_s: Limit of a partition; of Cosmos DB what a physical partition can serve: its
            even share of what is provisioned, but no more than the limits allow to each.
        account_per_s: Limit of the account; of Cosmos DB what is provisioned.
        physical: None for limits of Azure Storage.
        retry: The back-off, in words.
        most_factor: Multiple of the traffic up to which the first limit was looked for; 0 if it was
            not.
    """

    schema_version: int = 4
    harness_version: str = ""
    trace: str
    started_at: int
    seconds: float
    rate: float
    limits: str
    unit: str = "entities"
    partition_per_s: float
    account_per_s: float
    physical: Annotated[PhysicalPart | None, IF_ANY] = None
    retry: str
    most_factor: float = 0.0
    damage: tuple[str, ...] = ()
    schemes: tuple[SchemePart, ...]
