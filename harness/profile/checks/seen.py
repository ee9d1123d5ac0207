"""What the practices are compared with: what a profile would send, or what a run did send.

`harness.profile.checks.observed` makes it of a dry run of a profile, and
`harness.profile.checks.recorded` of the record of a run.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from harness.measure.record.behaviour import WaitsPart
from harness.measure.record.findings import PredictionPart
from harness.model.physical_partitions import MAX_PARTITION_KEY_BYTES, MAX_ROW_KEY_BYTES
from harness.model.target import Throughput
from harness.profile.settings.schema import Profile

MISSING = "is in records of harness watch only."
"""The end of a sentence about a figure that a `harness.measure.counts.behaviour` counts."""
OTHER_KEYS = "replay.keys"
"""The setting with which a replay has other keys than the recorded ones."""
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
class ChargedKind:
    """Operations of one name, the mean charge of one, and their share of all request units."""

    label: str
    each: float
    share: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ChargesSeen:
    """The request units that a load takes at Cosmos DB.

    Attributes:
        kinds: Those with the highest share first.
        each: Mean charge of an operation, in request units.
        entity_bytes: An entity as JSON, which charges depend on; None where it is unknown.
        per_s: RU/s at the highest rate; None if the rate has no limit.
        shares: Of the request units, as `Seen.shares` are of the entities.
        physical_share: Of the hottest of ``throughput.fewest_partitions`` physical partitions; None
            where not all keys are known.
        longest_partition_key: Bytes in UTF-8; None where keys are not known, as for RowKeys.
        largest_transaction: Bytes of the entities in one, as JSON.
    """

    kinds: tuple[ChargedKind, ...]
    each: float
    entity_bytes: int | None
    per_s: float | None
    shares: PredictionPart
    physical_share: float | None
    throughput: Throughput
    longest_partition_key: int | None
    longest_row_key: int | None
    largest_transaction: int

    def keys_over(self) -> Iterator[tuple[str, int, int]]:
        """Keys that are longer than Cosmos DB allows: which, bytes, and the most bytes."""
        for name, length, limit in (
            ("PartitionKey", self.longest_partition_key, MAX_PARTITION_KEY_BYTES),
            ("RowKey", self.longest_row_key, MAX_ROW_KEY_BYTES),
        ):
            if length is not None and length > limit:
                yield name, length, limit

    @property
    def known(self) -> bool:
        """False if no answer of a run named its charge: no share and no rate is known."""
        return bool(self.kinds)

    @property
    def hottest_share(self) -> float:
        """Share of the hottest physical partition; of one PartitionKey if there may be any number.

        Without the provisioned throughput nothing is known of the number.
        """
        if self.throughput.ru_per_s is None:
            return self.shares.hottest_share
        even = 1 / self.throughput.fewest_partitions
        return max(even, self.physical_share or 0.0, self.shares.hottest_share)

    @property
    def reached_per_s(self) -> float | None:
        """RU/s in total at which the first physical partition has no more; None if there is none.

        It is no more than what is provisioned, if that is known.
        """
        if not self.hottest_share:
            return None
        first = self.throughput.partition_ru_per_s / self.hottest_share
        return min(first, self.throughput.ru_per_s or first)


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
        charges: The request units; None where the service is not Cosmos DB.
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
    charges: ChargesSeen | None = None

    @property
    def cosmos(self) -> bool:
        """Whether the service is Cosmos DB, which has other limits than Storage."""
        return self.charges is not None

    @property
    def in_blobs(self) -> bool:
        """Whether entities are lines of blobs, in place of rows of tables."""
        return self.profile is not None and self.profile.session.kind == "blob"

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

        Of a replay only the keys can be changed. Empty where nothing can, as for an application.
        """
        if self.profile is None:
            return ""
        part = name.partition(".")[0]
        if self.profile.replay is not None:
            if part == "keys":
                return OTHER_KEYS
            return "" if part in (*_WORKLOAD_PARTS, "entity") else name
        scenario = self.profile.scenario
        if scenario is None or part not in _WORKLOAD_PARTS:
            return name
        return f"scenario {scenario}: {action}" if action else f"scenario {scenario}"
