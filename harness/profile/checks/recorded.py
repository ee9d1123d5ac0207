"""What a run did send, read from its record.

Every record has rates, operations and partitions. Records of `harness watch` also have a
`BehaviourPart`; for other runs some practices cannot be compared.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Callable, Iterator

import pydantic

from harness.measure.record.behaviour import QueriesPart, TableBehaviourPart
from harness.measure.record.findings import PredictionPart
from harness.measure.record.measured import OperationPart, PartitionPart
from harness.measure.record.record import RunRecord
from harness.model.entity import characters
from harness.model.key_shapes import are_dates, are_guids, needs_escaping, unpadded
from harness.model.operation import FOLDED, Kind, over_partitions, table_and_key
from harness.model.physical_partitions import PhysicalPartitions
from harness.model.target import UNKNOWN_THROUGHPUT
from harness.profile.checks.charges import utf8_bytes
from harness.profile.checks.observed import requested_rate
from harness.profile.checks.prediction import KeyRanges
from harness.profile.checks.seen import (
    ChargedKind,
    ChargesSeen,
    QuerySeen,
    Seen,
    TableSeen,
    WritesSeen,
)
from harness.profile.settings.schema import Profile

_READS = frozenset(kind.value for kind in Kind if kind.reads)
_ABOVE_CAP = 1.5
_HALF = 0.5
"""Share of the queries for which the number of walked entities has to be known."""


def seen_in(record: RunRecord) -> Seen:
    """What the practices are compared with."""
    profile, behaviour = _profile_of(record), record.behaviour
    operations = sum(part.count for part in record.operations)
    entities = sum(part.entities for part in record.operations)
    setting, requested = "", None
    if profile is not None and operations:
        setting, requested = requested_rate(profile, lambda: entities / operations)
    reached = record.account.entities_per_s.best_1s
    if requested is not None and reached > _ABOVE_CAP * requested:
        # JSON has no infinity: in a record, no cap reads like the usual one.
        requested = None
    writes = None
    if behaviour is not None:
        counts = behaviour.writes
        writes = WritesSeen(
            singles=counts.singles,
            together=counts.together,
            saved=counts.saved,
            transactions=counts.transactions,
            read_first=counts.read_first,
            conditional=counts.read_first_conditional,
            updates=counts.updates,
            unconditional=counts.unconditional,
        )
    keys = None
    if profile is not None and profile.scenario is None and profile.replay is None:
        # Of other loads the record does not say how the loaded entities are spread.
        keys = profile.keys
    labels = frozenset(part.kind for part in record.operations)
    pointing = bool(record.pointers) or "insert_copy" in labels
    return Seen(
        recorded=True,
        profile=profile,
        shares=measured_shares(record),
        operations=operations,
        reads=sum(part.count for part in record.operations if _kind_of(part) in _READS),
        labels=labels,
        tables=_tables(record, profile),
        queries=_queries(record),
        writes=writes,
        waits=None if behaviour is None else behaviour.waits,
        throttled=sum(record.throttled.values()),
        requested=requested,
        requested_setting=setting,
        accounts=max(1, len(record.accounts)),
        reached=reached,
        jump=_jump(record),
        loaded_entities=None if keys is None else record.loading.entities,
        loaded_partitions=None if keys is None else keys.partitions,
        largest=0 if keys is None else keys.most_rows,
        pointing=None if profile is None else pointing,
        entity_bytes=record.entity.stored_bytes or None,
        charges=measured_charges(record, profile),
    )


def measured_shares(record: RunRecord) -> PredictionPart:
    """Shares of the entities of the whole run, in the form of a prediction.

    There are no ranges of neighbouring keys where not every partition has a row, and none in a
    redacted record, because aliases have another order.
    """
    return _shares(record, lambda part: part.entities, record.counts.entities)


def measured_charges(record: RunRecord, profile: Profile | None) -> ChargesSeen | None:
    """The request units of a run; None where the service was not Cosmos DB.

    Where keys are redacted or folded, the shares of physical partitions are unknown.
    """
    if not record.endpoint.cosmos:
        return None
    units = record.request_units
    total = 0.0 if units is None else units.total
    throughput = UNKNOWN_THROUGHPUT if profile is None else profile.endpoint.throughput
    physical = PhysicalPartitions.even(throughput.fewest_partitions)
    by_physical = dict.fromkeys(range(len(physical)), 0.0)
    known = not record.redacted and record.partitions_folded is None
    keys = [table_and_key(part.key)[1] for part in _single(record)] if known else []
    for part, key in zip(_single(record), keys, strict=False):
        by_physical[physical.of(key)] += _units_of(part)
    over = sum(_units_of(part) for part in record.partitions if over_partitions(part.key))
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
        shares=_shares(record, _units_of, total),
        physical_share=hottest / (total or 1.0) if known else None,
        throughput=throughput,
        longest_partition_key=max(map(utf8_bytes, keys), default=0) if known else None,
        longest_row_key=None,
        largest_transaction=0,
    )


def _units_of(part: PartitionPart | OperationPart) -> float:
    return 0.0 if part.request_units is None else part.request_units.total


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
    over = sum(amount(part) for part in record.partitions if over_partitions(part.key))
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
    if record.replay is not None and "replay" in known:
        found = record.replay.model_dump(mode="json")
        known["replay"] = {**known["replay"], "found": found}
    try:
        # As JSON, because lists stand for tuples in a record.
        return Profile.model_validate_json(json.dumps(known))
    except pydantic.ValidationError:
        return None


def _single(record: RunRecord) -> Iterator[PartitionPart]:
    """The partitions, without queries over several of them."""
    return (part for part in record.partitions if not over_partitions(part.key))


def _kind_of(part: OperationPart) -> str:
    """The kind of the operations; records of early versions have only its default names."""
    if part.type:
        return part.type
    return Kind.QUERY.value if part.kind.endswith("_scan") else part.kind


def _tables(record: RunRecord, profile: Profile | None) -> tuple[TableSeen, ...] | None:
    keys: dict[str, list[str]] = {}
    if not record.redacted:
        for part in _single(record):
            table, key = table_and_key(part.key)
            keys.setdefault(table, []).append(key)
    if record.behaviour is not None:
        parts = [part for part in record.behaviour.tables if part.table != FOLDED]
        tables = (_counted_table(part, sorted(keys.get(part.table, ()))) for part in parts)
        # The tables of an application have names of its own.
        whole = profile is None
        return tuple(dataclasses.replace(table, whole=whole) for table in tables)
    if record.redacted:
        return None
    return tuple(_named_table(name, sorted(known)) for name, known in sorted(keys.items()))


def _counted_table(part: TableBehaviourPart, keys: list[str]) -> TableSeen:
    """A table as a `BehaviourPart` describes it; ``keys`` are examples of its PartitionKeys."""
    return TableSeen(
        name=part.table,
        operations=part.operations,
        partitions=part.partitions,
        created=part.writing,
        growth=part.growth,
        dates=part.dates,
        guids=part.guids,
        row_guids=part.row_guids,
        unpadded=part.unpadded,
        example=unpadded(keys),
        longest=part.longest_key,
        escaped=part.escaped > 0,
        foreign=part.foreign > 0,
        odd=_odd(keys, foreign=part.foreign > 0),
        inserted=part.inserted > 0,
        batched=part.batches > 0,
        appended=part.inserted > 0 and not part.touched,
    )


def _named_table(name: str, keys: list[str]) -> TableSeen:
    """A table of which only the most used PartitionKeys are known."""
    pair = unpadded(keys)
    return TableSeen(
        name=name,
        partitions=len(keys),
        dates=are_dates(keys),
        guids=are_guids(keys),
        unpadded=pair is not None,
        example=pair,
        longest=max(map(characters, keys), default=0),
        escaped=any(map(needs_escaping, keys)),
        foreign=not all(map(str.isascii, keys)),
        odd=_odd(keys, foreign=not all(map(str.isascii, keys))),
    )


def _odd(keys: list[str], *, foreign: bool) -> str | None:
    odd = (key for key in keys if needs_escaping(key) and (not foreign or not key.isascii()))
    return next(odd, None)


def _queries(record: RunRecord) -> tuple[QuerySeen, ...]:
    if record.behaviour is not None:
        return tuple(_counted_queries(part) for part in record.behaviour.queries if part.count)
    over = {
        label
        for part in record.partitions
        if over_partitions(part.key)
        for label in part.entities_by_kind
    }
    queries = [part for part in record.operations if _kind_of(part) == Kind.QUERY]
    return tuple(
        _named_queries(part, over_several=part.kind in over)
        for part in sorted(queries, key=lambda part: -part.entities)
        if part.count
    )


def _counted_queries(part: QueriesPart) -> QuerySeen:
    """Queries as a `BehaviourPart` describes them."""
    known = part.exact >= _HALF * part.count and part.exact_entities > 0
    sizes = part.unselected_bytes / part.unselected_entities if part.unselected_entities else None
    return QuerySeen(
        label=part.name,
        table=part.table,
        count=part.count,
        many=max(0, part.count - part.single),
        walked=part.entities,
        returned=part.entities_returned,
        density=part.exact_returned / part.exact_entities if known else None,
        over_partitions=part.over_partitions > 0,
        bounded=not part.unbounded,
        filtered=part.filtered,
        limited=part.limited > 0,
        unselected=part.unselected,
        full=part.full,
        entity_bytes=sizes,
    )


def _named_queries(part: OperationPart, *, over_several: bool) -> QuerySeen:
    """Queries of which only sums are known."""
    known = "entities_returned" in part.model_fields_set and part.entities and not part.uncertain
    return QuerySeen(
        label=part.kind,
        table=None,
        count=part.count,
        many=part.count if part.entities != part.count else 0,
        walked=part.entities,
        returned=part.entities_returned,
        density=part.entities_returned / part.entities if known else None,
        over_partitions=over_several,
        bounded=part.kind != "full_table_scan",
    )


def _jump(record: RunRecord) -> tuple[float, float] | None:
    """The rates of the two consecutive seconds with the steepest rise; None of a long run."""
    series = record.series
    if not series or any(point.width_s > 1 for point in series):
        return None
    rates = [0.0, *(point.entities for point in series)]
    return max(itertools.pairwise(rates), key=lambda pair: pair[1] - pair[0])
