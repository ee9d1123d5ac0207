"""Prediction of the load on partitions and key ranges, and of request units at Cosmos DB.

The load follows from the mix and the keys alone. Every field is drawn by a distribution of its own,
so that the probability of a partition is a product; the actions of the mix say how many entities go
there. Where it cannot be calculated (`exact_shares`), it is counted in a sample of operations. Key
ranges count because one server may serve neighbouring keys ("range partitions" of the partitioning
strategy). The largest of many random counts overestimates its share. Therefore one half of the
operations selects the hottest partition and range, and the other half measures them.

The charges are those of `harness.model.request_units`, which says what is published and what is
assumed. Assumed here: an upsert replaces an entity unless its partition is new, every point query
finds its entity, and a query whose filter is not known returns all that it scans.
"""

from __future__ import annotations

import bisect
import collections
import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Self, TypeVar

from harness.measure.record.findings import PredictionPart
from harness.model.entity import MAX_PAGE_ENTITIES
from harness.model.operation import WHOLE_TABLE, Kind, Operation
from harness.model.partition import Partition
from harness.model.physical_partitions import PhysicalPartitions
from harness.model.request_units import QUERY_PAGE, RU, UNKNOWN_BYTES, charge, copy_charge
from harness.model.target import Throughput
from harness.profile.checks.seen import ChargedKind, ChargesSeen
from harness.profile.settings.schema import Profile
from harness.workload.entity_factory import wire_bytes
from harness.workload.keys.design import KeyDesign
from harness.workload.mix import Action
from harness.workload.queries import Queries, QueryShape

RANGES = 20
"""Number of ranges of each table, with equal numbers of partitions."""
SAMPLE = 8_000
"""Operations in a prediction. More would delay the start of a run and hardly improve it."""
_MOST_PARTITIONS = 20_000
"""If more partitions are loaded, every n-th of them defines the ranges."""
_BLOCK = 50
"""Consecutive operations that go to the same half, so that most tasks stay together."""
_NOTHING = collections.Counter[str]()
_T = TypeVar("_T")
_SELECTED_BYTES = 40
"""A property in an answer, if not all are returned."""
_Written = tuple[Kind, int, int, int, bool]


class KeyRanges:
    """Ranges of key order, table by table, with the bounds of `PredictionPart.ranges`.

    Keys outside of all ranges of a table belong to its first or last range: a table grows at its
    ends.
    """

    def __init__(self, bounds: Iterable[tuple[str, str]]) -> None:
        self.bounds = tuple(bounds)
        self._firsts: dict[str, list[str]] = {}
        self._numbers: dict[str, list[int]] = {}
        for number, (first, _) in enumerate(self.bounds):
            table, key = Partition.named(first)
            self._firsts.setdefault(table, []).append(key)
            self._numbers.setdefault(table, []).append(number)

    @classmethod
    def over(cls, partitions: Iterable[str]) -> Self:
        """Ranges with equal numbers of ``partitions``."""
        tables: dict[str, list[str]] = {}
        for table, key in sorted({Partition.named(name) for name in partitions}):
            tables.setdefault(table, []).append(Partition(table, key).name)
        return cls(bounds for loaded in tables.values() for bounds in _cut(loaded))

    def of(self, partition: str) -> int | None:
        """Number of the range of a partition; None if its table has none."""
        table, key = Partition.named(partition)
        firsts = self._firsts.get(table)
        if firsts is None:
            return None
        return self._numbers[table][max(0, bisect.bisect_right(firsts, key) - 1)]


class LoadShares:
    """Adds up entity counts, or other amounts; ``partitions`` are loaded ones, or `thinned`."""

    def __init__(self, partitions: Iterable[str]) -> None:
        self.ranges = KeyRanges.over(partitions)
        self._seen = 0
        self._all = [0, 0]
        self._scans = 0
        self._partitions = [collections.Counter[str](), collections.Counter[str]()]
        self._ranges = [collections.Counter[int](), collections.Counter[int]()]

    def add(self, operation: Operation, amount: int) -> None:
        """Add what one operation takes. Blocks of operations go to the two halves in turn."""
        partition = operation.partition
        half = self._seen // _BLOCK % 2
        self._seen += 1
        self._all[half] += amount
        if Partition.named(partition).whole_table:
            self._scans += amount
            return
        self._partitions[half][partition] += amount
        number = self.ranges.of(partition)
        if number is not None:
            self._ranges[half][number] += amount

    def largest(self, group: Callable[[str], _T], scattered: int = 1) -> float:
        """The share of the largest group of partitions.

        What goes over several partitions belongs to all ``scattered`` groups in equal parts.
        """
        halves = [collections.Counter[_T](), collections.Counter[_T]()]
        for half, counts in zip(halves, self._partitions, strict=True):
            for partition, amount in counts.items():
                half[group(partition)] += amount
        largest = _largest(halves, self._all)
        over = self._scans / (sum(self._all) or 1) / scattered
        return over + (0.0 if largest is None else largest[1])

    def busiest(self, most: int) -> tuple[str, ...]:
        """The partitions with the largest shares, ``most`` of them or all."""
        return tuple(name for name, _ in sum(self._partitions, _NOTHING).most_common(most))

    def prediction(self) -> PredictionPart:
        partition = _largest(self._partitions, self._all)
        key_range = _largest(self._ranges, self._all)
        return PredictionPart(
            hottest="" if partition is None else partition[0],
            hottest_share=0.0 if partition is None else partition[1],
            ranges=self.ranges.bounds,
            hottest_range=None if key_range is None else key_range[0],
            hottest_range_share=0.0 if key_range is None else key_range[1],
            over_partitions_share=self._scans / (sum(self._all) or 1),
            sampled=self._seen,
        )


def thinned(names: Iterable[str], most: int = _MOST_PARTITIONS) -> tuple[list[str], int]:
    """``names``, or every n-th if there are more than ``most``; and the number of all names."""
    kept: list[str] = []
    step, number = 1, 0
    for name in names:
        if number % step == 0:
            kept.append(name)
        number += 1
        if len(kept) > most:
            kept = kept[::2]
            step *= 2
    return kept, number


def _cut(loaded: Sequence[str]) -> Iterable[tuple[str, str]]:
    count = min(RANGES, len(loaded))
    for number in range(count):
        first, end = (len(loaded) * place // count for place in (number, number + 1))
        yield loaded[first], loaded[end - 1]


def _largest(
    halves: Sequence[collections.Counter[_T]], everything: Sequence[int]
) -> tuple[_T, float] | None:
    """The item with the highest count in the first half, and its share in the second half."""
    choosing, telling = halves if everything[1] else (halves[0], halves[0])
    if not choosing:
        return None
    largest, _ = choosing.most_common(1)[0]
    return largest, telling[largest] / (everything[1] or everything[0])


class ChargedLoad:
    """Adds up the charges of operations; ``entity_bytes`` is the size of an entity as JSON.

    ``partitions`` are the loaded ones, or `thinned`.
    """

    def __init__(
        self, partitions: Iterable[str], entity_bytes: int, throughput: Throughput
    ) -> None:
        self._entity_bytes = entity_bytes
        self._throughput = throughput
        self._physical = PhysicalPartitions.even(throughput.fewest_partitions)
        self._shares = LoadShares(partitions)
        self._counts: collections.Counter[str] = collections.Counter()
        self._charges: collections.Counter[str] = collections.Counter()
        self._written: dict[_Written, tuple[int, int]] = {}
        self._largest_transaction = 0
        self._properties: int | None = None

    def load(self, operation: Operation) -> None:
        """See what the entities have that are loaded."""
        for part in operation.parts or (operation,):
            self._properties = len(part.properties or {})

    def add(self, operation: Operation, *, creates: bool, matching: int | None) -> None:
        """Count an operation: whether an upsert ``creates``, and how many pass a query's filter."""
        if operation.kind is Kind.QUERY:
            charged = self._queried(operation, matching)
        elif operation.kind is Kind.POINT_QUERY:
            charged = charge(operation.kind, self._returned_bytes(operation))
        else:
            parts = [self._of_write(part, creates) for part in operation.parts or (operation,)]
            charged = sum(each for each, _ in parts)
            if operation.parts:
                size = sum(size for _, size in parts)
                self._largest_transaction = max(self._largest_transaction, size)
        self._counts[operation.label] += 1
        self._charges[operation.label] += charged
        self._shares.add(operation, charged)

    def seen(
        self,
        operations_per_s: float | None,
        keys: Iterable[tuple[Iterable[str], Iterable[str]]],
        new_rows: int = 0,
    ) -> ChargesSeen:
        """What was added; ``keys`` are PartitionKeys and RowKeys of each table.

        Of the rows that it made, ``new_rows`` were left.
        """
        entity_bytes, stored_bytes = self._entity_bytes, self._throughput.stored_bytes
        copied = grown_per_s = None
        if self._properties is not None and entity_bytes:
            row = copy_charge(entity_bytes, self._properties) / RU
            copied = stored_bytes / entity_bytes * row
        if operations_per_s is not None:
            grown = new_rows * entity_bytes / (self._counts.total() or 1)
            grown_per_s = max(0.0, operations_per_s * grown)
        total = self._charges.total()
        each = total / RU / (self._counts.total() or 1)
        kinds = (
            ChargedKind(
                label=label,
                each=charged / RU / self._counts[label],
                share=charged / (total or 1),
            )
            for label, charged in self._charges.most_common()
        )
        known = [(longest_bytes(partitions), longest_bytes(rows)) for partitions, rows in keys]
        return ChargesSeen(
            kinds=tuple(kinds),
            each=each,
            entity_bytes=self._entity_bytes,
            per_s=None if operations_per_s is None else operations_per_s * each,
            shares=self._shares.prediction(),
            physical_share=self._shares.largest(
                lambda name: self._physical.of(Partition.named(name).key), len(self._physical)
            ),
            throughput=self._throughput,
            longest_partition_key=max((longest for longest, _ in known), default=0),
            longest_row_key=max((longest for _, longest in known), default=0),
            largest_transaction=self._largest_transaction,
            grown_per_s=grown_per_s,
            copied=copied,
        )

    def _of_write(self, part: Operation, creates: bool) -> tuple[int, int]:
        """Charge and bytes of a single write; those of one like it, if there was one."""
        properties = part.properties or {}
        shape = (part.kind, len(part.partition_key), len(part.row_key), len(properties), creates)
        known = self._written.get(shape)
        if known is None:
            size = UNKNOWN_BYTES
            if part.kind.stores:
                size = wire_bytes(part.partition_key, part.row_key, properties)
            charged = charge(part.kind, size, properties=len(properties), replaces=not creates)
            known = self._written[shape] = charged, size
        return known

    def _queried(self, query: Operation, matching: int | None) -> int:
        scanned = query.key_range.entities or 0
        found = scanned if matching is None else matching
        returned = found if query.top is None else min(found, query.top)
        if returned < found:
            # It ends where it has enough.
            scanned = scanned * returned // found
        physical = len(self._physical) if query.partition_key == WHOLE_TABLE else 1
        further = max(0, -(-returned // MAX_PAGE_ENTITIES) - 1)
        return further * physical * QUERY_PAGE + charge(
            query.kind,
            returned * self._returned_bytes(query),
            scanned=scanned,
            returned=returned,
            physical=physical,
        )

    def _returned_bytes(self, read: Operation) -> int:
        return len(read.select) * _SELECTED_BYTES or self._entity_bytes


def longest_bytes(keys: Iterable[str]) -> int:
    """Bytes of the longest key in UTF-8; 0 without keys."""
    return max((len(key.encode("utf-8", "surrogatepass")) for key in keys), default=0)


@dataclasses.dataclass(slots=True)
class _Amounts:
    """Entities of a mix, weighted: those of existing rows, of new rows, and over partitions.

    Attributes:
        by_rows: Further entities of existing rows, by the number of rows in a partition.
    """

    existing: float = 0.0
    new: float = 0.0
    over: float = 0.0
    by_rows: Callable[[int], float] = lambda rows: 0.0


def exact_shares(profile: Profile) -> PredictionPart | None:
    """The prediction for a mix; None where it cannot be calculated, as for a scenario.

    A delete takes a row that was inserted before, so that its partition is that of an insert.
    """
    if not profile.mixed:
        return None
    design = profile.design
    read, new = design.shares(), design.new_shares()
    unordered = design.row_order == 0 or not design.in_order
    if read is None or len(design.tables) > 1 or (profile.query.by_key_bounds and unordered):
        return None
    found = _amounts(profile, design)
    if new is None and found.new and not design.in_order and not design.hashed:
        # Where new partitions come in the order of keys is found by making them.
        return None
    amounts = [
        share * (found.existing + found.by_rows(design.rows.of(number)))
        for number, share in enumerate(read)
    ]
    if new is not None:
        for number, share in enumerate(new):
            amounts[number] += share * found.new
    total = sum(amounts) + found.over + (found.new if new is None else 0.0)
    names = [Partition("", design.partition_key(number)).name for number in range(design.count)]
    ranges = KeyRanges.over(thinned(names)[0])
    by_range = [0.0] * len(ranges.bounds)
    for name, amount in zip(names, amounts, strict=True):
        by_range[ranges.of(name) or 0] += amount
    if new is None and found.new:
        _place_new(design, found.new, ranges, by_range)
    hottest = max(range(design.count), key=amounts.__getitem__)
    hottest_range = max(range(len(by_range)), key=by_range.__getitem__)
    somewhere = amounts[hottest] > 0
    return PredictionPart(
        hottest=names[hottest] if somewhere else "",
        hottest_share=amounts[hottest] / total,
        ranges=ranges.bounds,
        hottest_range=hottest_range if by_range[hottest_range] > 0 else None,
        hottest_range_share=by_range[hottest_range] / total,
        over_partitions_share=found.over / total,
    )


def _amounts(profile: Profile, design: KeyDesign) -> _Amounts:
    found, weights = _Amounts(), profile.mix.weights()
    for action, weight in weights.items():
        found.existing += weight * action.existing
        found.new += weight * action.new
    entities = weights[Action.TRANSACTION] * profile.transaction.operations
    if all(profile.transaction.moving):
        found.new += entities
    else:
        found.existing += entities
    types = Queries(design, QueryShape(**profile.query.model_dump()), moving=False).types()
    asked = [(weights[action], query) for action, query in types.items() if weights[action]]
    inside = [(weight, query.entities) for weight, query in asked if not query.cross_partition]
    found.over = sum(weight * query.entities(0) for weight, query in asked if query.cross_partition)
    found.by_rows = lambda rows: sum(weight * entities(rows) for weight, entities in inside)
    return found


def _place_new(design: KeyDesign, amount: float, ranges: KeyRanges, by_range: list[float]) -> None:
    """Add the entities of new partitions: all to one range if keys grow, else to all evenly."""
    key = design.new(0, 0, 1).partition_key
    place = ranges.of(Partition("", key).name)
    if design.in_order and place is not None:
        by_range[place] += amount
        return
    for number in range(len(by_range)):
        by_range[number] += amount / len(by_range)
