"""What a profile would send, found by driving the source of one worker without a service.

One dry run collects, in bounded memory, what the practices, the prediction and the plan need.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import re
from collections.abc import Callable, Mapping

from harness.measure.counts.behaviour import BATCH
from harness.measure.counts.key_sample import BusiestRows
from harness.measure.record.behaviour import WritesPart
from harness.measure.record.findings import PredictionPart
from harness.model.key_shapes import FEWEST_CREATED, growth_of, period_s, shapes_of
from harness.model.key_tokens import tokens_of
from harness.model.operation import WHOLE_TABLE, Kind, Operation
from harness.model.partition import EXACT_PARTITIONS, Partition
from harness.model.services import USUAL
from harness.model.services.service import Service
from harness.profile.build.scenarios import dry_run, own_mistakes, try_out
from harness.profile.build.workload import entity_sizes, source_of, stores_of
from harness.profile.checks.prediction import SAMPLE, ChargedLoad, LoadShares, exact_shares, thinned
from harness.profile.checks.seen import ChargesSeen, GrowthSeen, QuerySeen, Seen, TableSeen
from harness.profile.settings.parts import EXAMPLE_RUN_ID
from harness.profile.settings.schema import Profile
from harness.trace.replay.preparation import Preparation
from harness.trace.replay.source import ReplaySource
from harness.workload.entity_factory import GROUP_PROPERTY, GROUPS, NUMBER_PROPERTY, wire_bytes
from harness.workload.operation_source import OperationSource

_MOST_KEYS = 5_000
_MOST_ROWS = 1_000
_MOST_PARTS = 50_000
"""Single operations and parts of transactions, after which the dry run ends."""
_PAUSE_EVERY = 500
"""Of these between two pauses: some milliseconds."""
_FEW_KEPT = 0.1
"""Share of the new rows: where most are deleted again, no more are left in the sample by chance."""
_LOADING = 3
"""Loading operations whose rows are looked at."""
_SIZED = 20
"""Operations of each name whose entities are measured in bytes."""
_APPENDING = frozenset((Kind.INSERT, Kind.TRANSACTION, Kind.QUERY))
_TERM = re.compile(rf"(?P<name>{NUMBER_PROPERTY}|{GROUP_PROPERTY}) (?P<side>ge|lt) (?P<value>\d+)")


@dataclasses.dataclass(slots=True)
class TableKeys:
    """The keys of one table, and where its new rows go.

    Attributes:
        complete: True if `load` gets every loaded partition, not a choice of them.
        rows: PartitionKeys and RowKeys of some rows.
    """

    complete: bool = True
    created: int = 0
    deleted: int = 0
    rows: dict[tuple[str, str], None] = dataclasses.field(default_factory=dict)
    _created: list[str] = dataclasses.field(default_factory=list)
    _loaded: dict[str, None] = dataclasses.field(default_factory=dict)
    _used: dict[str, None] = dataclasses.field(default_factory=dict)

    def load(self, partition_key: str) -> None:
        self._loaded[partition_key] = None

    def load_rows(self, operation: Operation) -> None:
        for part in operation.parts or (operation,):
            self.rows[part.partition_key, part.row_key] = None

    def add(self, operation: Operation) -> int:
        """Count an operation; the number of rows that it certainly makes."""
        if operation.partition_key == WHOLE_TABLE:
            return 0
        before = self.created
        for part in operation.parts or (operation,):
            if part.kind is not Kind.QUERY and len(self.rows) < _MOST_ROWS:
                self.rows[part.partition_key, part.row_key] = None
            self.deleted += part.kind is Kind.DELETE
            if self.creates_row(part):
                self.created += 1
                if len(self._created) < _MOST_KEYS:
                    self._created.append(part.partition_key)
        if len(self._used) < _MOST_KEYS:
            self._used[operation.partition_key] = None
        return self.created - before

    def creates_row(self, part: Operation) -> bool:
        """Whether a write certainly makes a new row."""
        if part.kind is Kind.INSERT:
            return True
        # An upsert certainly makes a row in a partition that did not exist.
        known = part.partition_key in self._loaded or part.partition_key in self._used
        return part.kind.upserts and self.complete and not known

    @property
    def partitions(self) -> list[str]:
        """PartitionKeys that are loaded or used, in key order."""
        return sorted({*self._loaded, *self._used})

    @property
    def creates(self) -> bool:
        """Whether enough new rows come to find out where they go."""
        return len(self._created) >= FEWEST_CREATED

    @property
    def growth(self) -> int:
        """1 if new rows come at ever later keys, -1 if at ever earlier keys, else 0."""
        return growth_of(self._created, self._loaded)


@dataclasses.dataclass(slots=True)
class Sent:
    """Operations that are alike.

    Attributes:
        requests: Fewest requests, with further pages of queries and without retries.
        scanned: Entities in the key ranges of queries.
        matching: Entities of these that pass the filter; None if unknown.
        returned: Fewest entities that come back.
        page: Most entities in the answer of one request.
    """

    example: Operation
    page: int
    count: int = 0
    entities: int = 0
    requests: int = 0
    scanned: int = 0
    matching: int | None = 0
    returned: int = 0
    _body: int = 0

    def add(self, operation: Operation) -> None:
        if self.count < _SIZED:
            self._body += sum(
                wire_bytes(part.partition_key, part.row_key, part.properties)
                for part in operation.parts or (operation,)
                if part.properties is not None
            )
        self.count += 1
        self.entities += operation.entities_asked
        if operation.kind is not Kind.QUERY:
            self.requests += 1
            self.returned += operation.entities_asked if operation.kind.reads else 0
            return
        self.scanned += operation.key_range.entities or 0
        matching = matching_of(operation)
        if matching is None or self.matching is None:
            self.matching = None
        else:
            self.matching += matching
        most = matching or 0
        returned = most if operation.top is None else min(most, operation.top)
        self.returned += returned
        self.requests += max(1, -(-returned // self.page))

    @property
    def kind(self) -> Kind:
        return self.example.kind

    @property
    def label(self) -> str:
        return self.example.label

    @property
    def body_bytes(self) -> float:
        """Mean size of the entities in one operation, as JSON."""
        return self._body / min(self.count, _SIZED) if self.count else 0.0

    def seen(self) -> QuerySeen:
        """What the practices see of these queries."""
        example, count, keys = self.example, self.count, self.example.key_range
        ends = (keys.row_from, keys.row_before, keys.partition_from, keys.partition_before)
        return QuerySeen(
            name=self.label,
            table=example.table,
            count=count,
            single=count if self.scanned == count else 0,
            entities=self.scanned,
            entities_returned=self.returned,
            exact=0 if self.matching is None else count,
            exact_entities=self.scanned,
            exact_returned=self.matching or 0,
            over_partitions=count if example.partition_key == WHOLE_TABLE else 0,
            unbounded=count if all(end is None for end in ends) else 0,
            by_number=f"{NUMBER_PROPERTY} ge" in (example.filter or ""),
            filtered=count if example.filter else 0,
            limited=0 if example.top is None else count,
            unselected=0 if example.select else count,
            full=count if self.returned > self.page * count else 0,
        )


@dataclasses.dataclass(slots=True, kw_only=True)
class WriteOrder:
    """How writes follow one another.

    Attributes:
        singles: Writes of one entity.
        together: Of these, those that go to the partition of the single write before them.
        batch_inserts: Tables with transactions that insert many rows.
        mixed_transactions: Tables with transactions that do not only insert.
        read_first: Writes whose key was read right before them, only to choose how to write.
    """

    singles: int = 0
    together: int = 0
    transactions: int = 0
    batch_inserts: set[str] = dataclasses.field(default_factory=set)
    mixed_transactions: set[str] = dataclasses.field(default_factory=set)
    read_first: int = 0
    _place: str | None = None
    _read: tuple[int, tuple[str, str]] | None = None

    def add(self, task: int, operation: Operation) -> None:
        """Count the next operation; ``task`` is the number of its task."""
        key = (operation.partition, operation.row_key)
        if operation.kind is Kind.TRANSACTION:
            self.transactions += 1
            inserts = sum(part.kind is Kind.INSERT for part in operation.parts)
            if inserts < len(operation.parts):
                self.mixed_transactions.add(operation.table)
            elif inserts >= BATCH:
                self.batch_inserts.add(operation.table)
        elif not operation.kind.reads:
            self.singles += 1
            self.together += operation.partition == self._place
            self._place = operation.partition
            chosen = operation.kind is not Kind.DELETE and operation.etag is None
            self.read_first += chosen and (task, key) == self._read
        self._read = (task, key) if operation.kind is Kind.POINT_QUERY else None


def matching_of(query: Operation) -> int | None:
    """Entities of a query's key range that pass its filter; None if unknown."""
    entities = query.key_range.entities
    if entities is None:
        return None
    share, low, high = 1.0, 0, None
    for term in filter(None, (query.filter or "").split(" and ")):
        known = _TERM.fullmatch(term)
        if known is None:
            return None
        value = int(known["value"])
        if known["name"] == GROUP_PROPERTY:
            share = value / GROUPS
        elif known["side"] == "ge":
            low = value
        else:
            high = value
    wanted = entities if high is None else min(entities, high - low)
    return round(wanted * share)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What a profile would send; what `Seen` has too is described there.

    Attributes:
        sent: Operations by name, those with the highest entity count first.
        keys: Keys by the ending of the table's name.
        tables: Endings of the table names.
        grown: Shares of the new rows.
        scans: Queries of whole partitions, by partition.
        partitions: The busiest ones, as many as are counted exactly.
    """

    profile: Profile
    kind: Service
    charges: ChargedLoad | None
    prediction: PredictionPart
    partitions: tuple[str, ...]
    hot_row_share: float
    sent: tuple[Sent, ...]
    keys: Mapping[str, TableKeys]
    writes: WriteOrder
    tables: tuple[str, ...]
    loaded_entities: int
    loading_requests: int
    loaded_partitions: int
    grown: PredictionPart
    scans: Mapping[str, int]
    pointing: bool

    @property
    def operations(self) -> int:
        return sum(sent.count for sent in self.sent)

    @property
    def entities(self) -> int:
        return sum(sent.entities for sent in self.sent)

    def seen(self) -> Seen:
        """What the practices are compared with."""
        largest = self.loaded_entities // self.loaded_partitions if self.loaded_partitions else 0
        if self.profile.mixed:
            largest = self.profile.design.rows.most
        each = self.entities / self.operations
        load = self.profile.load_model
        requested = load.highest_per_s(self.kind, each)
        operations_per_s = None if requested is None else requested / each
        writes = self.writes
        return Seen(
            profile=self.profile,
            service=self.kind,
            shares=self.prediction,
            operations=self.operations,
            reads=sum(sent.count for sent in self.sent if sent.kind.reads),
            labels=frozenset(sent.label for sent in self.sent),
            tables=tuple(self._table(name, keys) for name, keys in self.keys.items()),
            queries=tuple(sent.seen() for sent in self.sent if sent.kind is Kind.QUERY),
            writes=WritesPart(
                singles=writes.singles,
                together=writes.together,
                transactions=writes.transactions,
                read_first=writes.read_first,
            ),
            hot_row_share=self.hot_row_share,
            requested=requested,
            requested_setting=load.setting,
            loaded_entities=self.loaded_entities,
            loaded_partitions=self.loaded_partitions,
            largest=largest,
            growth=self._growth(operations_per_s or 0.0),
            pointing=self.pointing,
            entity_bytes=None if self.profile.replay else self.profile.entity.size_bytes,
            charges=self.charged(operations_per_s),
        )

    def charged(self, operations_per_s: float | None) -> ChargesSeen | None:
        """The request units at a rate of operations; None where the kind is not Cosmos DB."""
        if self.charges is None:
            return None
        keys = [(table.partitions, [row for _, row in table.rows]) for table in self.keys.values()]
        new_rows = sum(table.created - table.deleted for table in self.keys.values())
        return self.charges.seen(operations_per_s, keys, new_rows)

    def _growth(self, operations_per_s: float) -> GrowthSeen | None:
        name, each = self.grown.hottest, operations_per_s / self.operations
        if not self.grown.hottest_share:
            return None
        table = self.keys[Partition.named(name).table]
        kept = 1 - table.deleted / table.created
        if table.growth or kept < _FEW_KEPT:
            return None
        created = sum(keys.created for keys in self.keys.values())
        return GrowthSeen(
            partition=name,
            per_s=created * self.grown.hottest_share * kept * each,
            scans_per_s=self.scans.get(name, 0) * each,
            period_s=period_s(tokens_of(table.partitions)),
            lasting=self.profile.load_model.lasting,
        )

    def _table(self, name: str, keys: TableKeys) -> TableSeen:
        kinds = {sent.kind for sent in self.sent if sent.example.table == name}
        mixed = name in self.writes.mixed_transactions
        return TableSeen(
            table=name,
            partitions=len(keys.partitions),
            writing=keys.created,
            growth=keys.growth if keys.creates else None,
            inserted=Kind.INSERT in kinds,
            batches=name in self.writes.batch_inserts,
            touched=mixed or not kinds <= _APPENDING,
            keys=(*keys.partitions, *(row for _, row in keys.rows)),
            **shapes_of(keys.partitions, [row for _, row in keys.rows]),
        )


def observe(
    profile: Profile,
    sample: int = SAMPLE,
    kind: Service = USUAL,
    preparation: Preparation | None = None,
    pause: Callable[[], object] = lambda: None,
) -> Observed:
    """What one worker sends in its first ``sample`` operations, or fewer if they are large.

    ``preparation`` belongs to the trace of a replay. This can take seconds: ``pause`` is called now
    and then. A `SetupError` says why a scenario cannot be made, or which line of it raises.
    """
    if profile.scenario is not None:
        try_out(source_of(profile, run_id=EXAMPLE_RUN_ID, worker=0), profile)
    source = source_of(profile, run_id=EXAMPLE_RUN_ID, worker=0, preparation=preparation)
    try:
        return _observed(profile, source, sample, kind, preparation, pause)
    finally:
        if isinstance(source, ReplaySource):
            # Else a part of the trace stays in memory, and a log as a temporary trace.
            source.close()


def _observed(
    profile: Profile,
    source: OperationSource,
    sample: int,
    kind: Service,
    preparation: Preparation | None,
    pause: Callable[[], object],
) -> Observed:
    with own_mistakes(profile.scenario or ""):
        loaded, count = thinned(source.partitions())
    shares, grown = LoadShares(loaded), LoadShares(())
    kind, charges = profile.endpoint.of(kind), None
    _, entity_bytes = entity_sizes(profile, EXAMPLE_RUN_ID)
    if kind.charges:
        stored_bytes = source.loaded_entities * entity_bytes
        throughput = dataclasses.replace(profile.endpoint.throughput, stored_bytes=stored_bytes)
        charges = ChargedLoad(loaded, entity_bytes, throughput)
    keys: dict[str, TableKeys] = {}
    stored = loaded
    if preparation is not None:
        # The trace has partitions that are only made by its operations.
        stored, count = thinned(preparation.loaded_partitions())
    for name in stored:
        table, key = Partition.named(name)
        keys.setdefault(table, TableKeys(complete=len(stored) == count)).load(key)
    for operation in itertools.islice(source.loading(), _LOADING):
        keys.setdefault(operation.table, TableKeys()).load_rows(operation)
        if charges is not None:
            charges.load(operation)
    sent: dict[tuple[str, bool], Sent] = {}
    writes = WriteOrder()
    rows = BusiestRows()
    on_partition: collections.Counter[str] = collections.Counter()
    scans: collections.Counter[str] = collections.Counter()
    stores = stores_of(profile, source)
    parts = paused = 0
    for task, operation in itertools.islice(dry_run(source, profile), sample):
        if parts >= paused:
            pause()
            paused = parts + _PAUSE_EVERY
        alike = (operation.label, NUMBER_PROPERTY in (operation.filter or ""))
        sent.setdefault(alike, Sent(operation, kind.page_of(entity_bytes))).add(operation)
        shares.add(operation, operation.entities_asked)
        writes.add(task, operation)
        table_keys = keys.setdefault(operation.table, TableKeys())
        if charges is not None:
            creates = table_keys.creates_row((operation.parts or (operation,))[0])
            charges.add(operation, creates=creates, matching=matching_of(operation))
        if new := table_keys.add(operation):
            grown.add(operation, new)
        on_partition[operation.partition] += len(operation.parts) or 1
        asked = operation.key_range
        if operation.kind is not Kind.QUERY:
            for part in operation.parts or (operation,):
                rows.add((operation.partition, part.row_key))
        elif (
            operation.partition_key != WHOLE_TABLE
            and asked.row_from is None
            and asked.row_before is None
            and operation.top is None
        ):
            # It scans more where its partition has more rows.
            scans[operation.partition] += 1
        parts += len(operation.parts) or 1
        if parts > _MOST_PARTS:
            break
    prediction = exact_shares(profile) or shares.prediction()
    hottest = max(on_partition.values(), default=1)
    return Observed(
        profile=profile,
        kind=kind,
        charges=charges,
        prediction=prediction,
        partitions=shares.busiest(EXACT_PARTITIONS),
        hot_row_share=min(1.0, rows.most / (on_partition[prediction.hottest] or hottest)),
        sent=tuple(sorted(sent.values(), key=lambda alike: -alike.entities)),
        keys=keys,
        writes=writes,
        tables=stores,
        loaded_entities=source.loaded_entities,
        loading_requests=kind.requests_of(source.loading_requests, count),
        loaded_partitions=count,
        grown=grown.prediction(),
        scans=scans,
        pointing=bool(getattr(source, "pointers", ()))
        or any(label == "insert_copy" for label, _ in sent),
    )
