"""What the practices are compared with: what a profile would send, or what a run did send.

`harness.profile.checks.observed` makes it of a dry run of a profile, and
`harness.profile.checks.recorded` of the record of a run.
"""

from __future__ import annotations

import dataclasses

from harness.measure.record.behaviour import WaitsPart
from harness.measure.record.findings import PredictionPart
from harness.profile.settings.schema import Profile

MISSING = "is in records of harness watch only."
"""The end of a sentence about a figure that a `harness.measure.counts.behaviour` counts."""
_WORKLOAD_PARTS = frozenset(("keys", "mix", "query", "transaction"))
"""Parts of a profile that a scenario replaces."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TableSeen:
    """The keys of one table, and what is done to its rows.

    Attributes:
        name: Ending of the table's name, or the ``whole`` name.
        operations: Operations on the table; None if unknown.
        partitions: Number of PartitionKeys.
        created: Operations, or rows of a profile, that make new rows.
        growth: 1 if new rows come at ever later keys, -1 if at ever earlier ones, 0 if at several
            places; None if there are too few, or the record does not say.
        unpadded: Whether numbers in PartitionKeys have different widths.
        example: Two such keys, if they are known.
        escaped: Whether a key has to be escaped in an address.
        foreign: Whether a key is not ASCII.
        odd: Such a key, if one is known.
        inserted: Whether rows are inserted one by one.
        batched: Whether rows are inserted in batches.
        appended: Whether rows are inserted and then only read together.
    """

    name: str
    whole: bool = False
    partitions: int
    operations: int | None = None
    created: int = 0
    growth: int | None = None
    dates: bool = False
    guids: bool = False
    row_guids: bool = False
    unpadded: bool = False
    example: tuple[str, str] | None = None
    longest: int = 0
    escaped: bool = False
    foreign: bool = False
    odd: str | None = None
    inserted: bool = False
    batched: bool = False
    appended: bool = False

    @property
    def named(self) -> str:
        """How a sentence names the table."""
        if not self.name:
            return "the table"
        return f"table {self.name}" if self.whole else f"table ...{self.name}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class QuerySeen:
    """Queries of one name, which are not point queries.

    Attributes:
        table: Ending of the table's name; None if unknown.
        count: Number of queries, of which ``many`` may walk more than one entity.
        walked: Entities that all of them walk; 0 if unknown.
        density: Share of these that is returned; None if unknown.
        bounded: Whether every query names a range of keys.
        by_number: Whether they filter by a property for a range that could be a range of keys.
        filtered: Queries that compare a property other than the keys.
        limited: Whether they ask for the first entities only.
        unselected: Queries that return all properties.
        full: Queries that return 1,000 entities or more.
        entity_bytes: Size of a returned entity with all properties, as sent; None if unknown.
    """

    label: str
    table: str | None
    count: int
    many: int
    walked: int
    returned: int
    density: float | None
    over_partitions: bool
    bounded: bool
    by_number: bool = False
    filtered: int = 0
    limited: bool = False
    unselected: int = 0
    full: int = 0
    entity_bytes: float | None = None

    def of_table(self, name: str) -> bool:
        """Whether the queries go, or may go, to the table with this ending."""
        return self.table is None or self.table == name


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WritesSeen:
    """How writes follow one another.

    Attributes:
        singles: Writes of one entity.
        together: Of these, those that could share a transaction with others. In a profile, those
            that go to the partition of the single write before them.
        saved: Requests fewer with such transactions; None if unknown.
        transactions: Entity group transactions.
        read_first: Writes of an entity that was read right before, only to choose how to write.
        conditional: Writes right after a read of the entity that name its ETag.
        updates: Updates and deletes of one entity, of which ``unconditional`` with any ETag.
    """

    singles: int = 0
    together: int = 0
    saved: int | None = None
    transactions: int = 0
    read_first: int = 0
    conditional: int = 0
    updates: int = 0
    unconditional: int = 0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a profile would send, or what a run sent. None is what a source does not say.

    Attributes:
        recorded: True for the record of a run.
        profile: Its settings; None of an application without a profile.
        shares: Predicted or measured shares of the load.
        operations: Number of operations, of which ``reads`` read.
        labels: Names of the operations.
        queries: Those with the highest entity count first.
        waits: The waits of retries.
        throttled: Throttled attempts.
        requested: The rate of an account that the settings allow, in entities/s; None without a
            limit. ``requested_setting`` is what limits it.
        reached: The best second of a record, in entities/s.
        jump: The steepest rise of the rate in a record: entities/s of two consecutive seconds.
        loaded_partitions: Number of partitions before the load, with ``loaded_entities``, of which
            the largest has ``largest``.
        pointing: Whether rows of one table refer to rows of another, without a transaction.
        entity_bytes: Size of a stored entity.
        accounts: Number of accounts over which the partitions are spread.
    """

    recorded: bool
    profile: Profile | None
    shares: PredictionPart
    operations: int
    reads: int
    labels: frozenset[str]
    tables: tuple[TableSeen, ...] | None
    queries: tuple[QuerySeen, ...]
    writes: WritesSeen | None
    waits: WaitsPart | None = None
    throttled: int = 0
    requested: float | None
    requested_setting: str = ""
    reached: float | None = None
    jump: tuple[float, float] | None = None
    loaded_entities: int | None
    loaded_partitions: int | None
    largest: int = 0
    pointing: bool | None
    entity_bytes: int | None
    accounts: int = 1

    @property
    def written(self) -> int:
        """Operations that write."""
        return self.operations - self.reads

    @property
    def peak(self) -> float | None:
        """The highest rate in entities/s, requested or measured; None if it has no limit."""
        return self.reached if self.recorded else self.requested

    def setting(self, name: str, action: str = "") -> str:
        """``name``, or the scenario, and its action, where that replaces the setting.

        Empty for an application, which has no settings.
        """
        if self.profile is None:
            return ""
        scenario = self.profile.scenario
        if scenario is None or name.partition(".")[0] not in _WORKLOAD_PARTS:
            return name
        return f"scenario {scenario}: {action}" if action else f"scenario {scenario}"
