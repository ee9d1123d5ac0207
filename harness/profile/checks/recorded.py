"""What a run did send, read from its record.

Every record has rates, operations and partitions. Records of `harness watch` also have a
`BehaviourPart`; for other runs some practices cannot be compared.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterator

import pydantic

from harness.measure.record.behaviour import WritesPart
from harness.measure.record.findings import PredictionPart
from harness.measure.record.measured import OperationPart, PartitionPart
from harness.measure.record.record import RunRecord
from harness.model.entity import MAX_TRANSACTION_OPERATIONS
from harness.model.errors import SetupError
from harness.model.key_shapes import FEWEST_CREATED, growth_of, period_s, shapes_of
from harness.model.key_tokens import tokens_of
from harness.model.operation import BESIDE_ROWS, FOLDED, Kind
from harness.model.physical_partitions import PhysicalPartitions
from harness.model.target import UNKNOWN_THROUGHPUT, Throughput
from harness.profile.checks.prediction import KeyRanges, longest_bytes
from harness.profile.checks.seen import (
    ChargedKind,
    ChargesSeen,
    GrowthSeen,
    QuerySeen,
    Seen,
    TableSeen,
)
from harness.profile.load.registry import with_caps
from harness.profile.settings.schema import Profile
from harness.workload.keys.design import KeyDesign

_READS = frozenset(kind.value for kind in Kind if kind.reads)
_NEW_ROWS: dict[str, int] = {Kind.INSERT: 1, Kind.DELETE: -1}
"""Rows that an operation certainly adds; transactions and upserts may add some."""
_MOST_KEYS = 5_000


def seen_in(record: RunRecord) -> Seen:
    """What the practices are compared with."""
    profile = _profile_of(record)
    on_tables = [part for part in record.operations if _kind_of(part) not in BESIDE_ROWS]
    looked_at = on_tables or record.operations
    operations = sum(part.count for part in record.operations)
    entities = sum(part.entities for part in record.operations)
    setting, requested = "", None
    if profile is not None:
        load = profile.load_model
        setting = load.setting
        # The cap that was in force, whatever an account would have had.
        each = entities / operations if entities else 1.0
        requested = load.highest_per_s(record.endpoint.service, each)
    design = None if profile is None else _design_of(profile)
    labels = frozenset(part.kind for part in record.operations)
    pointing = bool(record.pointers) or "insert_copy" in labels
    shares, tables = measured_shares(record), _tables(record, profile, design)
    return Seen(
        record=record,
        profile=profile,
        service=record.endpoint.service,
        shares=shares,
        operations=sum(part.count for part in looked_at),
        reads=sum(part.count for part in looked_at if _kind_of(part) in _READS),
        labels=labels,
        tables=tables,
        queries=_queries(record),
        writes=_writes(record, design),
        hot_row_share=_hot_row_share(record, design, shares.hottest),
        requested=requested,
        requested_setting=setting,
        accounts=max(1, len(record.accounts)),
        loaded_entities=None if design is None else record.loading.entities,
        loaded_partitions=None if design is None else design.count,
        largest=0 if design is None else design.rows.most,
        growth=_growth_of_most(record, profile, tables),
        pointing=None if profile is None else pointing,
        entity_bytes=record.entity.stored_bytes or None,
        charges=measured_charges(record, profile),
    )


def measured_shares(record: RunRecord) -> PredictionPart:
    """Shares of the load, in the form of a prediction: those that the report of the run shows.

    The load is request units where they are charged, else entities. Shares are of the whole run
    where nothing was measured. There are no ranges of neighbouring keys where not every partition
    has a row, and none in a redacted record, because aliases have another order.
    """
    if record.request_units is not None:
        charged = record.request_units.per_s.mean
        if charged:
            return _shares(record, _units_rate_of, charged)
        return _shares(record, _units_of, record.request_units.total)
    rate = record.account.entities_per_s.mean
    if rate and record.counts.entities:
        return _shares(record, lambda part: part.entities_per_s.mean, rate)
    return _shares(record, lambda part: part.entities, record.counts.entities)


def measured_charges(record: RunRecord, profile: Profile | None) -> ChargesSeen | None:
    """The request units of a run at Cosmos DB, else None; physical shares need all keys."""
    if not record.endpoint.service.charges:
        return None
    units = record.request_units
    total = 0.0 if units is None else units.total
    throughput = _throughput_of(record) if profile is None else profile.endpoint.throughput
    physical = PhysicalPartitions.even(throughput.fewest_partitions)
    by_physical = dict.fromkeys(range(len(physical)), 0.0)
    known = not record.redacted and record.partitions_folded is None
    keys = [part.partition.key for part in _single(record)] if known else []
    for part, key in zip(_single(record), keys, strict=False):
        by_physical[physical.of(key)] += _units_of(part)
    over = sum(_units_of(part) for part in record.partitions if part.partition.whole_table)
    hottest = max(by_physical.values()) + over / len(physical)
    charged = [part for part in record.operations if part.request_units is not None]
    return ChargesSeen(
        kinds=tuple(
            ChargedKind(
                label=part.kind,
                each=part.request_units_each or 0.0,
                share=part.request_units.total / (total or 1.0),
            )
            for part in sorted(charged, key=_units_of, reverse=True)
            if part.request_units is not None
        ),
        each=total / (sum(part.count for part in record.operations) or 1),
        entity_bytes=None,
        per_s=None if units is None else units.per_s.best_1s,
        shares=measured_shares(record) if total else _shares(record, _units_of, total),
        physical_share=hottest / (total or 1.0) if known else None,
        throughput=throughput,
        longest_partition_key=longest_bytes(keys) if known else None,
        longest_row_key=None,
        largest_transaction=0,
    )


def _throughput_of(record: RunRecord) -> Throughput:
    """What was provisioned, by what the record holds its rates against."""
    units, each = record.request_units, [part.request_units for part in _single(record)]
    share = next((one.target for one in each if one is not None), None)
    if units is None or units.target is None or share is None:
        return UNKNOWN_THROUGHPUT
    provisioned = units.target / max(1, len(record.accounts))
    return Throughput(ru_per_s=provisioned, physical_partitions=round(provisioned / share))


def _units_of(part: PartitionPart | OperationPart) -> float:
    return 0.0 if part.request_units is None else part.request_units.total


def _units_rate_of(part: PartitionPart) -> float:
    return 0.0 if part.request_units is None else part.request_units.per_s.mean


def _shares(
    record: RunRecord, amount: Callable[[PartitionPart], float], total: float
) -> PredictionPart:
    parts = {part.key: amount(part) for part in _single(record)}
    total = total or 1
    hottest = max(parts, key=lambda key: parts[key], default="")
    whole = not record.redacted and record.partitions_folded is None
    ranges = KeyRanges.over(parts if whole else ())
    weights: dict[int, float] = {}
    for key, count in parts.items():
        if (number := ranges.of(key)) is not None:
            weights[number] = weights.get(number, 0) + count
    heaviest = max(weights, key=lambda number: weights[number], default=None)
    over = sum(amount(part) for part in record.partitions if part.partition.whole_table)
    return PredictionPart(
        hottest=hottest,
        hottest_share=parts.get(hottest, 0) / total,
        ranges=ranges.bounds,
        hottest_range=heaviest,
        hottest_range_share=0.0 if heaviest is None else weights[heaviest] / total,
        over_partitions_share=over / total,
    )


def _profile_of(record: RunRecord) -> Profile | None:
    """The settings; None where they do not say what was sent, or have changed since.

    They do not for an application and for a user's own class.
    """
    if record.watched is not None or "mix" not in record.profile:
        return None
    settings = {name: record.profile.get(name) for name in Profile.model_fields}
    known = {name: value for name, value in settings.items() if value is not None}
    if "load" in known:
        known["load"] = with_caps(known["load"])
    if record.replay is not None and "replay" in known:
        found = record.replay.model_dump(mode="json")
        known["replay"] = {**known["replay"], "found": found}
    try:
        # As JSON, because lists stand for tuples in a record.
        return Profile.model_validate_json(json.dumps(known))
    except pydantic.ValidationError:
        return None


def _design_of(profile: Profile) -> KeyDesign | None:
    """The keys of a mix; of other loads the settings do not say how loaded entities are spread."""
    if not profile.mixed:
        return None
    try:
        return profile.design
    except (SetupError, ValueError):
        # A file of values is elsewhere, or has changed.
        return None


def _single(record: RunRecord) -> Iterator[PartitionPart]:
    """The partitions that a target can be for, without queries over several of them."""
    return (part for part in record.partitions if part.partition.targeted)


def _kind_of(part: OperationPart) -> str:
    """The kind of the operations; records of early versions have only its default names."""
    if part.type:
        return part.type
    return Kind.QUERY.value if part.kind.endswith("_scan") else part.kind


def _writes(record: RunRecord, design: KeyDesign | None) -> WritesPart | None:
    """How writes came together; of a run from the mean rates of its partitions and their rows."""
    if record.behaviour is not None:
        return record.behaviour.writes
    if design is None:
        return None
    most_rows = design.rows.most
    writes = [part for part in record.operations if _kind_of(part) not in _READS | BESIDE_ROWS]
    inserts = [part.kind for part in writes if part.type == Kind.INSERT]
    others = [part.kind for part in writes if part.type not in (Kind.INSERT, Kind.TRANSACTION)]
    seconds = sum(point.width_s for point in record.series) or 1
    together = saved = 0.0
    for part in _single(record):
        new, old = (
            sum(part.entities_by_kind.get(kind, 0) for kind in kinds) / seconds
            for kinds in (inserts, others)
        )
        # A transaction names a row once.
        rows = new + min(old, most_rows)
        if rows > 1:
            together += rows * seconds
            saved += (rows - math.ceil(rows / MAX_TRANSACTION_OPERATIONS)) * seconds
    singles = sum(part.count for part in writes if part.type != Kind.TRANSACTION)
    return WritesPart(
        singles=singles,
        together=min(singles, round(together)),
        saved=min(singles, round(saved)),
        transactions=sum(part.count for part in writes if part.type == Kind.TRANSACTION),
    )


def _hot_row_share(record: RunRecord, design: KeyDesign | None, hottest: str) -> float | None:
    part = next((part for part in record.partitions if part.key == hottest), None)
    if part is None or not part.operations:
        return None
    if record.behaviour is not None:
        table = part.partition.table
        rows = [found.hottest_row for found in record.behaviour.tables if found.table == table]
        return min(1.0, sum(rows) / part.entities) if part.entities else None
    # A transaction names many rows at once. Operations that failed count no entities.
    everything = max(part.entities, part.operations)
    types = {kind.kind: kind.type for kind in record.operations}
    named = [
        (types.get(kind), count)
        for kind, count in part.entities_by_kind.items()
        if types.get(kind) != Kind.QUERY
    ]
    if design is None or not named or any(kind == Kind.INSERT for kind, _ in named):
        return None
    return min(1.0, sum(count for _, count in named) / design.rows.most / everything)


def _tables(
    record: RunRecord, profile: Profile | None, design: KeyDesign | None
) -> tuple[TableSeen, ...] | None:
    keys: dict[str, list[str]] = {}
    if not record.redacted:
        for part in _single(record):
            table, key = part.partition
            keys.setdefault(table, []).append(key)
    if record.behaviour is not None:
        # The tables of an application have names of its own.
        whole = profile is None
        return tuple(
            TableSeen(
                **part.model_dump(), whole=whole, keys=tuple(sorted(keys.get(part.table, ())))
            )
            for part in record.behaviour.tables
            if part.table != FOLDED
        )
    if record.redacted:
        return None
    created, growth = 0, None
    if design is not None:
        created = sum(part.count for part in record.operations if part.type == Kind.INSERT)
        growth = _growth(design) if created else None
    return tuple(
        TableSeen(
            table=name,
            partitions=len(known),
            writing=created,
            growth=growth,
            keys=tuple(sorted(known)),
            **shapes_of(sorted(known), ()),
        )
        for name, known in sorted(keys.items())
    )


def _growth_of_most(
    record: RunRecord, profile: Profile | None, tables: tuple[TableSeen, ...] | None
) -> GrowthSeen | None:
    """The partition that got most rows by inserts, if these did not go to ever later keys."""
    kinds = {part.kind: _kind_of(part) for part in record.operations}
    seconds = sum(point.width_s for point in record.series)

    def new_rows(part: PartitionPart) -> int:
        by_kind = part.entities_by_kind.items()
        return sum(_NEW_ROWS.get(kinds.get(kind, ""), 0) * count for kind, count in by_kind)

    most = max(_single(record), key=new_rows, default=None)
    if most is None or new_rows(most) < FEWEST_CREATED or not seconds:
        return None
    table = next((one for one in tables or () if one.table == most.partition.table), None)
    if table is None or table.growth or (len(record.partitions) > 1 and table.growth is None):
        return None
    return GrowthSeen(
        partition=most.key,
        per_s=new_rows(most) / seconds,
        period_s=period_s(tokens_of(table.partition_keys)),
        lasting=profile is None or profile.load_model.lasting,
    )


def _growth(design: KeyDesign) -> int:
    """Where the key design puts new rows, as in a `TableSeen`."""
    known = [design.partition_key(number) for number in range(min(design.count, _MOST_KEYS))]
    draw, rng = design.picker(), random.Random(1)
    inserted = (design.new(draw(rng), 0, number) for number in range(1, FEWEST_CREATED + 1))
    return growth_of([key.partition_key for key in inserted], known)


def _queries(record: RunRecord) -> tuple[QuerySeen, ...]:
    if record.behaviour is not None:
        asked = [part for part in record.behaviour.queries if part.count]
        return tuple(QuerySeen(**part.model_dump()) for part in asked)
    scans = [part.entities_by_kind for part in record.partitions if part.partition.whole_table]
    queries = [part for part in record.operations if _kind_of(part) == Kind.QUERY and part.count]
    # Only sums are known of them.
    return tuple(
        QuerySeen(
            name=part.kind,
            table=FOLDED,
            count=part.count,
            single=part.count if part.entities == part.count else 0,
            entities=part.entities,
            entities_returned=part.entities_returned,
            exact=part.count if _knows_returned(part) else 0,
            exact_entities=part.entities,
            exact_returned=part.entities_returned,
            over_partitions=part.count if any(part.kind in labels for labels in scans) else 0,
            unbounded=part.count if part.kind == "full_table_scan" else 0,
        )
        for part in sorted(queries, key=lambda part: -part.entities)
    )


def _knows_returned(part: OperationPart) -> bool:
    return "entities_returned" in part.model_fields_set and not part.uncertain
