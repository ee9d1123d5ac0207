"""What the practices are compared with: what a profile would send, or what a run did send.

`harness.profile.checks.observed` makes it of a dry run of a profile, and
`harness.profile.checks.recorded` of the record of a run.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from harness.measure.record.behaviour import QueriesPart, TableBehaviourPart, WritesPart
from harness.measure.record.enforced import LIMITS
from harness.measure.record.findings import PredictionPart
from harness.measure.record.measured import PartitionPart, RatesPart
from harness.measure.record.record import RunRecord, share_sign
from harness.measure.verdict.evidence import of_one_partition
from harness.measure.verdict.verdict import VerdictResult
from harness.model.key_shapes import needs_escaping
from harness.model.operation import FOLDED, Kind
from harness.model.outcome import PARTITION_FULL_CODE
from harness.model.partition import Partition
from harness.model.physical_partitions import MAX_PARTITION_KEY_BYTES, MAX_ROW_KEY_BYTES
from harness.model.services import service_beside, service_of_session
from harness.model.services.service import PUBLISHED, LimitUnit, Service, Targets
from harness.model.target import Throughput
from harness.profile.settings.schema import Profile

MISSING = "is in records of harness watch only."
"""The end of a sentence about a figure that a `harness.measure.counts.behaviour` counts."""
REDACTED = "Keys are redacted in the record."
OTHER_KEYS = "replay.keys"
"""The setting with which a replay has other keys than the recorded ones."""
FEWEST_ROWS = 20
"""Rows of a list from which on what their keys look like is evidence. No document has a figure."""
_HOT_ROW = 0.5
_HALF = 0.5
"""Share of the queries for which the number of scanned entities has to be known."""
_MANY_WRITES = 0.25
"""Share of the operations."""
_OF_ENTITIES = frozenset((*LIMITS, "unknown"))
_OF_REQUESTS = frozenset((*_OF_ENTITIES, "endpoint"))
"""Limits of a load that fewer and larger requests relieve."""
_LIMITED = (VerdictResult.CLIENT_LIMITED, VerdictResult.ENDPOINT_LIMITED)
_WORKLOAD_PARTS = frozenset(("keys", "mix", "query", "transaction"))
"""Parts of a profile that a scenario replaces."""


class TableSeen(TableBehaviourPart):
    """The keys of one table, and what is done to its rows; counts that are unknown are 0.

    Attributes:
        whole: Whether ``table`` is the whole name, not only its ending.
        keys: Some PartitionKeys and RowKeys in order, if they are known.
        sampled: How many of ``keys`` are PartitionKeys, if they are not all of them.
        refused: Keys that the service refuses, with the reason for one of them; of a profile and a
            run there are none.
        doubt: A text in a PartitionKey that is taken for a time, and may be none; empty where there
            is no doubt.
    """

    whole: bool = False
    keys: tuple[str, ...] = ()
    sampled: int | None = None
    refused: int = 0
    refusal: str = ""
    doubt: str = ""

    @property
    def partition_keys(self) -> tuple[str, ...]:
        return self.keys[: self.partitions if self.sampled is None else self.sampled]

    @property
    def row_keys(self) -> tuple[str, ...]:
        return self.keys[len(self.partition_keys) :]

    @property
    def named(self) -> str:
        """How a sentence names the table."""
        if not self.table:
            return "the table"
        return f"table {self.table}" if self.whole else f"table ...{self.table}"

    @property
    def appended(self) -> bool:
        """Whether rows are inserted and then only read together."""
        return bool(self.inserted or self.batches) and not self.touched

    @property
    def odd(self) -> str | None:
        """A key that has to be escaped, one that is not ASCII before others, if one is known."""
        odd = filter(needs_escaping, self.keys)
        return next((key for key in odd if not self.foreign or not key.isascii()), None)


class QuerySeen(QueriesPart):
    """Queries of one name, which are not point queries; the table may be unknown."""

    by_number: bool = False
    """Whether they filter by a property for a range that could be a range of keys."""

    @property
    def many(self) -> int:
        """Queries that may scan more than one entity."""
        return max(0, self.count - self.single)

    @property
    def of_row_range(self) -> bool:
        return not self.over_partitions and self.many > self.unbounded

    @property
    def density(self) -> float | None:
        """Share of the scanned entities that is returned; None if unknown."""
        known = self.exact >= _HALF * self.count and self.exact_entities > 0
        return self.exact_returned / self.exact_entities if known else None

    @property
    def entity_bytes(self) -> float | None:
        """Size of a returned entity with all properties, as sent; None if unknown."""
        if not self.unselected_entities:
            return None
        return self.unselected_bytes / self.unselected_entities

    def of_table(self, name: str) -> bool:
        """Whether the queries go, or may go, to the table with this ending."""
        return self.table in (FOLDED, name)


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
        shares: Of the request units, as `Seen.shares` of a profile are of the entities.
        physical_share: Of the hottest of ``throughput.fewest_partitions`` physical partitions; None
            where not all keys are known.
        longest_partition_key: Bytes in UTF-8; None where keys are not known, as for RowKeys.
        largest_transaction: Bytes of the entities in one, as JSON.
        grown_per_s: By how many bytes the stored entities grow; None if the rate has no limit.
        copied: Request units of copying all loaded entities to another table; None if unknown.
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
    grown_per_s: float | None = None
    copied: float | None = None

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
        """Share of the hottest physical partition, or PartitionKey if the number is unknown."""
        if self.throughput.ru_per_s is None:
            return self.shares.hottest_share
        even = 1 / self.throughput.fewest_partitions
        return max(even, self.physical_share or 0.0, self.shares.hottest_share)

    @property
    def reached_per_s(self) -> float | None:
        """RU/s in total at which the first physical partition has no more; None if none is hot."""
        if not self.hottest_share:
            return None
        first = self.throughput.partition_ru_per_s / self.hottest_share
        return min(first, self.throughput.ru_per_s or first)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class GrowthSeen:
    """The partition that gets most new rows, at the highest rate of the load.

    Attributes:
        per_s: New rows a second, without those that are deleted; 0 where the rate has no limit.
        scans_per_s: Queries a second of all its rows.
        period_s: Seconds after which new rows go to a next partition; inf if they never do.
        lasting: Whether the rate may last, as that of an application does and a stress rate not.
    """

    partition: str
    per_s: float
    scans_per_s: float = 0.0
    period_s: float
    lasting: bool = True


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a profile would send, or what a run sent. None is what a source does not say.

    Attributes:
        keys_only: Nothing but keys is known; each operation writes one.
        operations: Number of operations, of which ``reads`` read.
        labels: Names of the operations.
        queries: Those with the highest entity count first.
        writes: How writes follow one another. Of a profile those go ``together`` that go to the
            partition of the single write before them, and ``saved`` is 0.
        hot_row_share: Share of the hottest partition's entities that are of one row, at least.
        requested: The rate of an account that the settings allow, in entities/s; None without a
            limit. ``requested_setting`` is what limits it.
        loaded_partitions: Number of partitions before the load, with ``loaded_entities``, of which
            the largest has ``largest``.
        growth: Of the partition that grows most; None if none grows.
        pointing: Whether rows of one table refer to rows of another, without a transaction.
        entity_bytes: Size of a stored entity.
        charges: The request units; None where the service is not Cosmos DB.
    """

    record: RunRecord | None = None
    keys_only: bool = False
    profile: Profile | None = None
    service: Service
    shares: PredictionPart
    operations: int
    reads: int = 0
    labels: frozenset[str] = frozenset()
    tables: tuple[TableSeen, ...] | None
    queries: tuple[QuerySeen, ...] = ()
    writes: WritesPart | None
    hot_row_share: float | None = None
    requested: float | None
    requested_setting: str = ""
    loaded_entities: int | None
    loaded_partitions: int | None
    largest: int = 0
    growth: GrowthSeen | None = None
    pointing: bool | None = None
    entity_bytes: int | None = None
    accounts: int = 1
    charges: ChargesSeen | None = None

    @property
    def recorded(self) -> bool:
        """Whether it was read from the record of a run."""
        return self.record is not None

    @property
    def hottest_sign(self) -> str:
        """Before the share of the hottest partition: that of a bound, or nothing."""
        record, hottest = self.record, self.shares.hottest
        parts = () if record is None else record.partitions
        part = next((one for one in parts if one.key == hottest), None)
        return "" if record is None else share_sign(record, part)

    @property
    def targets(self) -> Targets:
        """Those of the service, or the published ones where its limits are others."""
        return self.service.targets or PUBLISHED

    @property
    def hottest_service(self) -> Service:
        """That of the partition with the largest share, which may be beside tables."""
        beside = service_beside(Partition.named(self.shares.hottest).table)
        return beside or self.without_rows or self.service

    @property
    def over_partitions(self) -> list[QuerySeen]:
        """The queries that go over several partitions."""
        return [query for query in self.queries if query.over_partitions]

    @property
    def unobserved(self) -> bool:
        """Whether it is a run whose single requests nobody looked at, as `harness watch` does."""
        return self.record is not None and self.record.behaviour is None

    @property
    def limits(self) -> tuple[str, ...]:
        """What held a run back, or was exceeded, the most important first; empty for a profile.

        They are those of `VerdictPart.limited_by`, with ``scans`` before them where queries scanned
        most of the load, else ``writes`` behind them where many operations wrote; ``throttling``;
        and ``missed`` where queries missed what they asked for.
        """
        record = self.record
        if record is None:
            return ()
        verdict, found = record.verdict, [record.verdict.limited_by]
        throttled = verdict.result == VerdictResult.THROTTLED
        if verdict.result == VerdictResult.OVER_TARGET:
            found = _exceeded(record) or ["partition"]
        elif verdict.result == VerdictResult.ENDPOINT_LIMITED and found == ["unknown"]:
            # More users tell whether it was the endpoint.
            found = ["users"]
        elif throttled and found == ["unknown"]:
            if self.charges is not None:
                found = ["partition", "throughput"]
            elif record.endpoint.service.throttles and record.enforced is None:
                # An emulator has no servers, and what is in front of it has limits of its own.
                found = ["partition" if self.one_throttled else "server"]
        elif throttled and found == ["generator"]:
            found = ["generator", "partition"]
        elif not throttled and verdict.result not in _LIMITED and found != ["size"]:
            found = []
        scanned = sum(part.entities for part in record.operations if part.type == Kind.QUERY)
        if _OF_ENTITIES.intersection(found) and scanned * 2 > record.counts.entities:
            found.insert(0, "scans")
        elif _OF_REQUESTS.intersection(found) and self.written >= _MANY_WRITES * self.operations:
            found.append("writes")
        if throttled:
            found.append("throttling")
        if any(part.entities_missed for part in record.operations):
            found.append("missed")
        return tuple(found)

    @property
    def most_throttled(self) -> PartitionPart | None:
        """The partition with the most throttled attempts; None without any."""
        every = () if self.record is None else self.record.partitions
        parts = [part for part in every if part.partition.documented]
        return max(filter(_refused, parts), key=_refused, default=None)

    @property
    def full(self) -> list[str]:
        """The partitions to which writes were refused because they store no more."""
        parts = () if self.record is None else self.record.partitions
        return [
            part.key for part in parts if f"403 {PARTITION_FULL_CODE}" in part.attempts_by_status
        ]

    @property
    def one_throttled(self) -> bool:
        """Whether one partition of several was throttled alone: no server's limit does that."""
        record = self.record
        if record is None:
            return False
        each = [_refused(part) for part in record.partitions if part.partition.targeted]
        return len(each) > 1 and of_one_partition(each, sum(record.throttled.values()))

    @property
    def hot_row(self) -> bool:
        """Whether one row has most of the load of the hottest partition: no other key splits it."""
        return (self.hot_row_share or 0.0) >= _HOT_ROW

    @property
    def limited_in(self) -> LimitUnit:
        """What the limits of the service count, by which practices apply."""
        return (self.without_rows or self.service).limits

    @property
    def without_rows(self) -> Service | None:
        """The service whose entities are not rows of tables; None where they are."""
        return None if self.profile is None else service_of_session(self.profile.session.kind)

    @property
    def several(self) -> list[TableSeen]:
        """The tables with several partitions, whose order can be a cause."""
        return [table for table in self.tables or () if table.partitions > 1]

    @property
    def written(self) -> int:
        """Operations that write."""
        return self.operations - self.reads

    @property
    def peak(self) -> float | None:
        """The highest rate in entities/s, requested or measured; None if it has no limit."""
        if self.record is None:
            return self.requested
        return self.record.account.entities_per_s.best_1s

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


def _exceeded(record: RunRecord) -> list[str]:
    """Which targets a run exceeded, on average or in its best 10 s."""

    def over(rates: RatesPart, target: float | None) -> bool:
        return target is not None and target < rates.judged(by_best=record.by_best)

    found = []
    if any(over(part.entities_per_s, part.target) for part in record.partitions):
        found.append("partition")
    if any(over(part.entities_per_s, part.target) for part in record.accounts or (record.account,)):
        found.append("account")
    charged = [part.request_units for part in record.partitions if part.request_units]
    if any(over(part.per_s, part.target) for part in charged):
        found.append("partition")
    whole = [part.request_units for part in record.accounts] or [record.request_units]
    if any(part is not None and over(part.per_s, part.target) for part in whole):
        found.append("throughput")
    return found


def _refused(part: PartitionPart) -> float:
    return part.throttled_ratio * sum(part.attempts_by_status.values())
