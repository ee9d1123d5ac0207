"""Keys alone, of a list or of recorded operations, and what the practices see of them.

Memory does not grow with the number of keys: of many, a sample is looked at, and their number is an
estimate. Each key counts as much as it has rows.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import sys
from collections.abc import Iterable

from datasketches import frequent_items_error_type, frequent_strings_sketch

from harness.measure.counts.key_sample import rank_of
from harness.measure.record.behaviour import WritesPart
from harness.measure.record.findings import PredictionPart
from harness.model.entity import MAX_KEY_CHARACTERS, characters, key_problem
from harness.model.errors import SetupError, cut
from harness.model.figures import counted
from harness.model.key_notations import SortOrder, TokenKind
from harness.model.key_shapes import begins_with_date, is_guid, needs_escaping, unpadded
from harness.model.key_tokens import KeyShape, tokens_of
from harness.model.partition import Partition
from harness.model.services import USUAL
from harness.profile.checks.seen import FEWEST_ROWS, Seen, TableSeen

SAMPLE = 2_048
"""Different keys that are kept of more than twice as many: their number is about 2 % exact."""
FEWEST_KEYS = 5
"""Different keys from which on what they look like is evidence, as `FEWEST_ROWS`."""
FEWEST_SHARED = 100
"""Rows from which on the share of one PartitionKey is evidence. No document has a figure."""
MOST_TABLES = 20
_SAMPLE_BYTES = 2 * 1024 * 1024
"""Of the keys that are kept of a column: fewer than `SAMPLE` if they are long."""
_SKETCH_LOG2 = 10
"""1,024 counters: a share is at most 0.4 % too low."""
_ALL = 2**32
_MOST_NAMED = 5
_OWN = 0.95
"""Share of the entities with a PartitionKey of their own: both numbers may be estimates."""
_SEPARATOR = "\0"


@dataclasses.dataclass(slots=True)
class Sample:
    """Different texts with the number of times that each was added: those of the lowest ranks.

    Counts are exact, because a text that is kept was never left out.
    """

    counts: dict[str, int] = dataclasses.field(default_factory=dict)
    _limit: int = _ALL
    _bytes: int = 0

    def add(self, text: str) -> None:
        counts = self.counts
        if text in counts:
            counts[text] += 1
        elif self._limit == _ALL or rank_of(text) <= self._limit:
            counts[text] = 1
            self._bytes += sys.getsizeof(text)
            if len(counts) > 2 * SAMPLE or self._bytes > 2 * _SAMPLE_BYTES:
                self._cut()

    def _cut(self) -> None:
        ranked = sorted((rank_of(text), text) for text in self.counts)
        kept = min(SAMPLE, len(ranked) // 2)
        self._limit = ranked[kept - 1][0]
        left = {text for _, text in ranked[kept:]}
        self.counts = {text: count for text, count in self.counts.items() if text not in left}
        self._bytes = sum(map(sys.getsizeof, self.counts))

    @property
    def exact(self) -> bool:
        """Whether all texts are kept."""
        return self._limit == _ALL

    @property
    def each(self) -> float:
        """How many different texts one that is kept stands for."""
        return _ALL / self._limit

    @property
    def distinct(self) -> int:
        return round(len(self.counts) * self.each)


@dataclasses.dataclass(slots=True)
class KeyColumn:
    """The PartitionKeys, or the RowKeys, of one table.

    Attributes:
        escaped: Keys that have to be escaped in an address, with ``foreign`` that are not ASCII.
        refused: Keys that the service refuses; ``problem`` says why and where of the first.
    """

    sample: Sample = dataclasses.field(default_factory=Sample)
    count: int = 0
    longest: int = 0
    escaped: int = 0
    foreign: int = 0
    refused: int = 0
    problem: str = ""

    def add(self, key: str, where: str) -> None:
        self.count += 1
        length = characters(key)
        self.longest = max(self.longest, length)
        if escaped := needs_escaping(key):
            self.escaped += 1
            self.foreign += not key.isascii()
        if (escaped or length > MAX_KEY_CHARACTERS) and (problem := key_problem(key)) is not None:
            self.refused += 1
            self.problem = self.problem or f"{cut(key)!r}{where} {problem}"
        # A longer key is refused, and would take memory.
        self.sample.add(key[:MAX_KEY_CHARACTERS])

    @property
    def distinct(self) -> int:
        """Number of different keys; an estimate unless the sample is exact."""
        return self.sample.distinct

    @property
    def keys(self) -> list[str]:
        """The sample, in order."""
        return sorted(self.sample.counts)

    def shape(self, frequent: dict[str, float]) -> KeyShape:
        """What keys look like, by their rows; those of ``frequent`` keys are known."""
        each = self.sample.each
        rows = {key: count * each for key, count in self.sample.counts.items()}
        return tokens_of(rows | frequent)


@dataclasses.dataclass
class ListedTable:
    """The keys of one table; ``uses`` are rows of the list, or operations."""

    uses: int = 0
    partition_keys: KeyColumn = dataclasses.field(default_factory=KeyColumn)
    row_keys: KeyColumn = dataclasses.field(default_factory=KeyColumn)
    _entities: Sample = dataclasses.field(default_factory=Sample)
    _often: frequent_strings_sketch = dataclasses.field(
        default_factory=lambda: frequent_strings_sketch(_SKETCH_LOG2)
    )

    def add(self, partition_key: str, row_keys: Iterable[str], where: str = "") -> None:
        """Count a use of a partition, and the entities that it names."""
        self.uses += 1
        kept = partition_key[:MAX_KEY_CHARACTERS]
        # The sketch takes UTF-8, which has no halves of surrogate pairs.
        self._often.update(kept if kept.isascii() else kept.encode("utf-8", "replace").decode())
        self.partition_keys.add(partition_key, where)
        for row_key in row_keys:
            self.row_keys.add(row_key, where)
            entity = f"{partition_key}{_SEPARATOR}{row_key}".encode("utf-8", "surrogatepass")
            self._entities.add(hashlib.blake2b(entity, digest_size=12).hexdigest())

    @property
    def entities(self) -> int:
        """Number of different pairs of keys; 0 if no RowKeys are known."""
        return self._entities.distinct

    @property
    def own_partitions(self) -> bool:
        """Whether nearly each entity has a partition of its own."""
        return self.entities > 1 and self.partition_keys.distinct >= _OWN * self.entities

    @property
    def _frequent(self) -> dict[str, tuple[int, int]]:
        """Uses of the most frequent PartitionKeys: a lower and an upper bound."""
        sample = self.partition_keys.sample
        if sample.exact:
            return {key: (count, count) for key, count in sample.counts.items()}
        items = self._often.get_frequent_items(frequent_items_error_type.NO_FALSE_POSITIVES)
        return {key: (least, most) for key, _, least, most in items}

    @property
    def hottest(self) -> tuple[str, float, bool]:
        """The most frequent PartitionKey, its share, and whether that is exact or a lower bound."""
        found = self._frequent.items()
        key, (least, most) = max(found, key=lambda item: item[1], default=("", (0, 0)))
        return key, least / (self.uses or 1), least == most

    @functools.cached_property
    def shapes(self) -> tuple[KeyShape, KeyShape]:
        """What PartitionKeys and RowKeys look like."""
        frequent = {key: float(least) for key, (least, _) in self._frequent.items()}
        return self.partition_keys.shape(frequent), self.row_keys.shape({})

    def telling(self, column: KeyColumn) -> bool:
        """Whether there are enough keys to conclude from what they look like."""
        return self.uses >= FEWEST_ROWS and column.distinct >= FEWEST_KEYS

    @property
    def growth(self) -> int | None:
        """Where new rows go, by what PartitionKeys begin with, as in a `TableSeen`.

        A sequence is told by its numbers, which have hardly any gaps, one for each entity.
        """
        token = self.shapes[0].leading if self.telling(self.partition_keys) else None
        if token is None:
            return None
        if token.timed:
            return {SortOrder.LATER: 1, SortOrder.EARLIER: -1}.get(token.order)
        if token.kind in (TokenKind.GUID, TokenKind.HASH, TokenKind.RANDOM):
            return 0
        if not self.own_partitions:
            return 0 if self.entities else None
        numbered = token.span is not None and token.distinct >= _OWN * self.shapes[0].keys
        gapless = numbered and (token.span or 0) <= 2 * self.partition_keys.distinct
        return 1 if gapless and token.order is SortOrder.LATER else None


@dataclasses.dataclass(slots=True, kw_only=True)
class ListedKeys:
    """The keys of a list or of recorded operations.

    Attributes:
        source: ``keys.csv``, or the name of another file.
        unit: What was counted: ``row`` or ``operation``.
        tables: By name; of a list one with an empty name.
        notes: Sentences about what was left out.
    """

    source: str
    unit: str = "row"
    tables: dict[str, ListedTable] = dataclasses.field(default_factory=dict)
    notes: list[str] = dataclasses.field(default_factory=list)
    bad: int = 0
    _bad_named: list[str] = dataclasses.field(default_factory=list)
    _left_out: int = 0

    def table(self, name: str) -> ListedTable | None:
        """The table of this name; None for the ones beyond `MOST_TABLES`."""
        if name not in self.tables and len(self.tables) == MOST_TABLES:
            self._left_out += 1
            return None
        return self.tables.setdefault(name, ListedTable())

    def reject(self, line: int, why: str) -> None:
        """Count a row that cannot be read."""
        self.bad += 1
        if self.bad <= _MOST_NAMED:
            self._bad_named.append(f"line {line:,} {why}")

    def ended(self) -> None:
        """Say what was left out; a `SetupError` if nothing is left."""
        if self.bad:
            more = f", and {self.bad - _MOST_NAMED:,} more" if self.bad > _MOST_NAMED else ""
            self.notes.append(f"Left out: {'; '.join(self._bad_named)}{more}.")
        if self._left_out:
            left_out = counted(self._left_out, "operation")
            self.notes.append(f"Left out: {left_out} on other tables than the first {MOST_TABLES}.")
        if few := [name for name, table in self.tables.items() if table.uses < FEWEST_ROWS]:
            of = f" on {', '.join(few)}" if self.unit == "operation" else ""
            self.notes.append(
                f"Fewer than {FEWEST_ROWS} {self.unit}s{of} are no evidence of what keys look like."
            )
        if not self.tables:
            notes = [f"{self.source} holds no keys.", *self.notes]
            raise SetupError(" ".join(notes).removesuffix("."))

    def seen(self) -> Seen:
        """What the practices are compared with."""
        uses = sum(table.uses for table in self.tables.values())
        name, table = max(self.tables.items(), key=lambda item: item[1].hottest[1] * item[1].uses)
        hottest, share, _ = table.hottest
        repeated = any(part.uses > part.partition_keys.distinct for part in self.tables.values())
        enough = uses >= FEWEST_SHARED
        # A list in which rows occur again is traffic, and not what a table holds.
        stored = self.unit == "row" and 0 < table.uses * _OWN <= table.entities
        return Seen(
            keys_only=True,
            service=USUAL,
            shares=PredictionPart(
                hottest=Partition(name, hottest).name,
                hottest_share=share * table.uses / uses if repeated and enough else 0.0,
                ranges=(),
                hottest_range=None,
                hottest_range_share=0.0,
                over_partitions_share=0.0,
            ),
            operations=uses,
            tables=tuple(_table_seen(*item) for item in self.tables.items()),
            writes=WritesPart(),
            requested=0.0,
            loaded_entities=table.entities if stored else None,
            loaded_partitions=table.partition_keys.distinct if stored else None,
            largest=round(share * table.uses) if stored else 0,
        )


def _table_seen(name: str, table: ListedTable) -> TableSeen:
    columns = (table.partition_keys, table.row_keys)
    partition_keys, row_keys = (column.keys for column in columns)
    shape, row_shape = table.shapes
    count = sum(column.count for column in columns)
    leading, doubt = shape.leading, ""
    telling = table.telling(table.partition_keys)
    if leading is not None and leading.doubtful:
        doubt = f"{leading.examples[0]!r} in a PartitionKey"
    return TableSeen(
        table=name,
        whole=True,
        operations=table.uses,
        partitions=table.partition_keys.distinct,
        writing=table.uses,
        growth=table.growth,
        keys=(*partition_keys, *row_keys),
        sampled=len(partition_keys),
        refused=sum(column.refused for column in columns),
        refusal=next((column.problem for column in columns if column.problem), ""),
        doubt=doubt,
        dates=telling and shape.mostly(begins_with_date),
        guids=telling and shape.mostly(is_guid),
        row_guids=table.telling(table.row_keys) and row_shape.mostly(is_guid),
        unpadded=unpadded(partition_keys, shape) is not None,
        row_unpadded=unpadded(row_keys, row_shape) is not None,
        longest_key=max(column.longest for column in columns),
        escaped=sum(column.escaped for column in columns) / count,
        foreign=sum(column.foreign for column in columns) / count,
    )
