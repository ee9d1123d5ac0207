"""A key design: PartitionKey and RowKey as templates over the fields of entities.

The values of the fields in the PartitionKey, and the periods of a time there, make *cells*: one for
each combination. A worker draws a cell, field by field. Usually a cell is a partition; a function
such as ``bucket16`` puts several cells, or the entities of a cell one by one, into partitions. A
sequence, or a time as such, in the PartitionKey gives each entity a partition of its own.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import random
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from harness.model.errors import echoed
from harness.model.figures import counted
from harness.model.operation import lean
from harness.workload.keys.expressions import Expressions
from harness.workload.keys.fields import NOW, Field, Number, Numbered, Time, ValueSet
from harness.workload.keys.layout import MOST_PARTITIONS, Layout, Templates
from harness.workload.keys.order import KeySorting
from harness.workload.keys.pickers import Latest, Uniform, Zipfian
from harness.workload.keys.scattering import new_number
from harness.workload.keys.template import SCATTERING, Template
from harness.workload.simulated_time import TICKS_A_ROW, ticks_of

INDEX = "Index"
"""Ending of the name of the second table."""
_ROWS, _ENTITIES, _PARTITIONS = 1000, 20_000, 2000
_NOW = ticks_of(NOW)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """PartitionKey and RowKey of an entity."""

    partition_key: str
    row_key: str


new_key = lean(Key)
"""Makes a `Key` in less time than the class does."""
Copies = tuple[tuple[str, Key], ...]
"""Further keys of an entity, each with the ending of the name of its table."""


class RowCounts:
    """Number of loaded rows of each partition: one number for all, or one for each."""

    __slots__ = ("_firsts", "_same", "partitions")

    def __init__(self, partitions: int, rows: int | Sequence[int]) -> None:
        self.partitions: int = partitions
        self._same = rows if isinstance(rows, int) else 0
        self._firsts: Sequence[int] = ()
        if not isinstance(rows, int):
            self._firsts = array("Q", itertools.accumulate(rows, initial=0))

    @property
    def total(self) -> int:
        return self.before(self.partitions)

    def of(self, partition: int) -> int:
        return self._same or self._firsts[partition + 1] - self._firsts[partition]

    def before(self, partition: int) -> int:
        """Rows of all partitions with a lower number than ``partition``."""
        return self._firsts[partition] if self._firsts else partition * self._same

    @property
    def most(self) -> int:
        return self._same or max(map(self.of, range(self.partitions)))


def usual_rows(partitions: int) -> int:
    """Rows of each partition where a profile does not say it: 1,000, or 20,000 in all."""
    return max(1, min(_ROWS, _ENTITIES // partitions))


class _Grouping:
    """Units, which are cells or entities, put into partitions by their PartitionKeys.

    Attributes:
        partition, place: Partition of each unit, and its place there.
        order: The units partition by partition, in the order of their numbers.
        firsts: Where in ``order`` each partition begins; the number of units at the end.
    """

    def __init__(self, names: list[str]) -> None:
        numbers = {name: number for number, name in enumerate(sorted(set(names)))}
        self.partition = array("I", [numbers[name] for name in names])
        self.order = array("I", sorted(range(len(names)), key=self.partition.__getitem__))
        self.firsts = array("I", [0] * (len(numbers) + 1))
        for number in self.partition:
            self.firsts[number + 1] += 1
        self.firsts = array("I", itertools.accumulate(self.firsts))
        self.place = array("I", self.partition)
        for at, unit in enumerate(self.order):
            self.place[unit] = at - self.firsts[self.partition[unit]]

    def __len__(self) -> int:
        return len(self.firsts) - 1

    def size(self, partition: int) -> int:
        return self.firsts[partition + 1] - self.firsts[partition]


class KeyDesign:
    """The keys of a table: those of loaded entities, the next to be used, and new ones.

    Loaded partitions and their rows have numbers from 0. Rows are also numbered over the whole
    table, partition by partition.

    Args:
        fields: All fields that the templates name; at most one `Time` and one `Number`.
        rows: Loaded rows of each partition (of each cell, if cells share partitions), or a number
            for each partition; None chooses.
        partitions: Loaded partitions where each entity has its own; None chooses.
        index: The keys of a second table that has every entity too.

    Raises:
        ValueError: the arguments do not fit together: see `design_problems`.

    Attributes:
        one_row: Whether each entity has a partition of its own: no transactions, no ranges of rows.
        creates: Whether new entities have keys of their own, so that inserts are possible.
        grows: Whether new rows may go to another partition than the one that was drawn.
        scatters: Whether the rows of one cell go to several partitions, by what is new for each.
        hashed: Whether PartitionKeys begin with a hash of what is new for each entity.
        random_suffixes: Partitions over which the entities of a cell are spread by what cannot be
            calculated from them; 1 without a random suffix.
        in_order: Whether PartitionKeys sort by number: a range of numbers is a range of keys.
        row_order: 1 if the rows of a partition sort by number, -1 in reverse, 0 if neither.
        rows_stay: Whether new rows sort before or after all loaded rows of a partition.
        newest_first: Whether reads prefer the newest rows of the table: draws are ages then.
        partition_key: PartitionKey of a loaded partition, by its number.
        row_key: RowKey of a loaded row, by the numbers of partition and row.
        key: Both keys of a loaded row.
        new: Both keys of a new row, which no two workers share: by what the picker drew, the number
            of the worker, below 10,000, and that of the row among all that it inserts, from 1.
    """

    def __init__(
        self,
        fields: Sequence[Field],
        keys: Templates,
        *,
        rows: int | tuple[int, ...] | None = None,
        partitions: int | None = None,
        index: Templates | None = None,
    ) -> None:
        layout = Layout(fields, keys, index)
        for problem in design_problems(layout, rows, partitions):
            raise ValueError(problem)
        self._layout = layout
        self.tables = ("", INDEX) if index is not None else ("",)
        self.one_row, self.creates = layout.own, layout.creates
        self.scatters = layout.by_entity and not layout.own
        self.grows = layout.by_entity or len(layout.starts) > 1
        leading = next(iter(keys.partition_key.references), None)
        drawn = [one for one in layout.suffixes if one.function.name == "random"]
        self.random_suffixes = math.prod(len(one.function.choices) for one in drawn)
        self.hashed = leading is not None and leading.function.name in SCATTERING
        self._order = order = KeySorting(layout)
        self.in_order, self.row_order = order.partitions, order.rows
        self.rows_stay = not order.by_cell and not order.by_value
        self._cells = math.prod(layout.sizes)
        self._further = math.prod(len(field.values) for field in layout.further)
        self._expressions = Expressions(layout)
        self._groups: _Grouping | None = None
        self._arrange(rows, partitions)
        self.count = self.rows.partitions
        digits = len(str(self.rows.total - 1))
        if _narrow(layout.keys.partition_key, digits):
            self.in_order = False
        if _narrow(layout.keys.row_key, digits):
            self.row_order = 0
        self._theta = _recency(layout)
        alone = self._cells * self._further == 1 and self.rows.total > 1
        self.newest_first = self._theta is not None and alone
        self._ages: dict[int, Latest] = {}
        self._compile(index)

    def _arrange(self, rows: int | tuple[int, ...] | None, partitions: int | None) -> None:
        """Decide how many rows each cell has, and which partition each row is in."""
        layout, cells, make = self._layout, self._cells, self._expressions.partition_key
        self._each = 0
        if layout.own:
            self._each = -(-(partitions or max(_PARTITIONS, cells)) // cells)
            self.rows = RowCounts(cells * self._each, 1)
            return
        suffixes = math.prod(len(one.function.choices) for one in layout.suffixes)
        if rows is None:
            rows = usual_rows(cells * suffixes) if layout.creates else self._further
        if isinstance(rows, tuple):
            self.rows = RowCounts(cells, rows)
            return
        self._each = each = rows
        if layout.by_entity:
            self._each = each = rows * suffixes
            ticks = self._expressions.ticks
            units = (divmod(unit, each) for unit in range(cells * each))
            names = [make(u, 0, u * each + k, ticks(u, k, each)) for u, k in units]
            self._groups = groups = _Grouping(names)
            sizes = [groups.size(number) for number in range(len(groups))]
        elif layout.joined:
            self._groups = groups = _Grouping([make(cell, 0, 0, 0) for cell in range(cells)])
            sizes = [groups.size(number) * each for number in range(len(groups))]
        else:
            self.rows = RowCounts(cells, rows)
            return
        self.rows = RowCounts(len(groups), sizes)

    def _compile(self, index: Templates | None) -> None:
        """Make the functions that make keys; what they do not need they do not compute."""
        layout, groups, each, further = self._layout, self._groups, self._each, self._further
        names: dict[str, Any] = {
            "before": self.rows.before,
            "rows_of": self.rows.of,
            "ticks": self._expressions.ticks,
            "new_number": new_number,
        }
        steps = {"n": str(each) if each else "rows_of(p)"}
        if layout.own:
            x = f"{self.count - 1} - p" if self._order.descending else "p"
            steps |= {"x": x, "u": f"x % {self._cells}", "k": f"x // {self._cells}", "s": "x"}
        elif groups is None:
            steps |= {
                "u": "p",
                "k": "r",
                "s": f"p * {each} + r" if each > 1 else "p + r" if each else "before(p) + r",
            }
        else:
            names |= {"order": groups.order, "firsts": groups.firsts, "size": groups.size}
            if layout.by_entity:
                steps |= {"x": "order[firsts[p] + r]", "s": "x"}
                steps |= {"u": f"x // {each}", "k": f"x % {each}"}
            else:
                first, second = (f"r // {each}", f"r % {each}")
                if not self._order.by_cell:
                    first, second = "r % size(p)", "r // size(p)"
                steps |= {"u": f"order[firsts[p] + {first}]", "k": second, "s": "before(p) + r"}
        steps["w"] = f"k * {further} // n" if self._order.by_value else f"k % {further}"
        steps["t"] = "ticks(u, k, n)"
        new_steps = {
            "u": f"drawn // {further}" if further > 1 else "0" if self.newest_first else "drawn",
            "w": f"drawn % {further}",
            "s": f"{self.rows.total} + new_number(worker, number)",
            "t": f"{_NOW} + number * {TICKS_A_ROW} + worker",
        }
        made, keys = self._expressions.function, layout.keys
        new_arguments = "drawn, worker, number"
        self.partition_key: Callable[[int], str] = made(
            "p, r=0", steps, (keys.partition_key,), names
        )
        self.row_key: Callable[[int, int], str] = made("p, r", steps, (keys.row_key,), names)
        both = (keys.partition_key, keys.row_key)
        self.key: Callable[[int, int], Key] = made("p, r", steps, both, names, new_key)
        self.new: Callable[[int, int, int], Key] = made(
            new_arguments, new_steps, both, names, new_key, new=True
        )
        self._copy: Callable[[int, int], Key] | None = None
        if index is not None:
            both = (index.partition_key, index.row_key)
            self._copy = made("p, r", steps, both, names, new_key)
            self._new_copy: Callable[[int, int, int], Key] = made(
                new_arguments, new_steps, both, names, new_key, new=True
            )

    def copies(self, partition: int, row: int) -> Copies:
        """The keys of a loaded row in the second table, if there is one."""
        return () if self._copy is None else ((INDEX, self._copy(partition, row)),)

    def new_copies(self, drawn: int, worker: int, number: int) -> Copies:
        """The keys of a new row in the second table, if there is one."""
        return () if self._copy is None else ((INDEX, self._new_copy(drawn, worker, number)),)

    def picker(self, worker: int = 0) -> Callable[[random.Random], int]:
        """Draws a cell, with the values that are in other keys only; or an age: `newest_first`."""
        if self.newest_first:
            return Zipfian(self.rows.total, self._theta or 0.0).draw
        layout = self._layout
        fields = [*zip(layout.dimensions, layout.sizes, strict=True)]
        fields += [(field, len(field.values)) for field in layout.further]
        steps = [
            (field.picker(worker if isinstance(field, ValueSet) else size).draw, size)
            for field, size in fields
        ]
        if len(steps) < 2:
            return steps[0][0] if steps else lambda rng: 0

        def draw(rng: random.Random) -> int:
            drawn = 0
            for one, size in steps:
                drawn = drawn * size + one(rng)
            return drawn

        return draw

    def row_of(self, drawn: int, rng: random.Random) -> tuple[int, int]:
        """Partition and row of an existing row for what was drawn."""
        if self.newest_first:
            return self._placed(0, max(0, self.rows.total - 1 - drawn))
        if self._further == 1:
            return self._placed(drawn, self._chosen(self._each or self.rows.of(drawn), rng))
        cell, value = divmod(drawn, self._further)
        each = self._each or self.rows.of(cell)
        if self._order.by_value:
            first, end = (-(-(value + one) * each // self._further) for one in (0, 1))
            return self._placed(cell, min(each - 1, first + self._chosen(end - first, rng)))
        rows = -(-(each - value) // self._further)
        row = self._chosen(rows, rng) * self._further + value if rows > 0 else value % each
        return self._placed(cell, row)

    def partition_of(self, drawn: int, rng: random.Random) -> int:
        """The loaded partition for what was drawn."""
        if self._groups is None and not self.one_row:
            return 0 if self.newest_first else drawn // self._further
        return self.row_of(drawn, rng)[0]

    def _chosen(self, rows: int, rng: random.Random) -> int:
        """One of a number of rows, of which the last is the newest."""
        if self._theta is None or rows < 2:
            return int(rng.random() * rows)
        ages = self._ages.get(rows)
        if ages is None:
            ages = self._ages[rows] = Latest(rows, self._theta)
        return ages.draw(rng)

    def _placed(self, cell: int, row: int) -> tuple[int, int]:
        """Partition and row of row ``row`` of a cell."""
        groups = self._groups
        if groups is None:
            if not self.one_row:
                return cell, row
            number = row * self._cells + cell
            return (self.count - 1 - number if self._order.descending else number), 0
        if self._layout.by_entity:
            unit = cell * self._each + row
            return groups.partition[unit], groups.place[unit]
        partition, place = groups.partition[cell], groups.place[cell]
        if self._order.by_cell:
            return partition, place * self._each + row
        return partition, row * groups.size(partition) + place

    def shares(self) -> Sequence[float] | None:
        """The probability of each loaded partition to be read from; None if it is not fixed.

        It is not calculated where the entities of a cell are put into partitions by a hash.
        """
        if self.newest_first:
            return [1.0] if self.count == 1 else None
        if self.scatters or (self._further > 1 and self.one_row):
            # The values in other keys decide which entities are read.
            return None
        return self._spread(self._cell_shares(newest=False))

    def new_shares(self) -> Sequence[float] | None:
        """The same for new rows; None if each has a partition of its own."""
        if self._layout.by_entity:
            return None
        return self._spread(self._cell_shares(newest=True))

    def _cell_shares(self, *, newest: bool) -> list[float]:
        """The probability of each cell to be drawn; that of new rows with ``newest``."""
        shares: list[float] = [1.0]
        for field, size in zip(self._layout.dimensions, self._layout.sizes, strict=True):
            if isinstance(field, ValueSet):
                each = list(field.picker().shares())
            else:
                each = [0.0] * (size - 1) + [1.0] if newest else list(field.picker(size).shares())
            shares = [before * share for before in shares for share in each]
        return shares

    def _spread(self, cells: list[float]) -> Sequence[float]:
        """Shares of the partitions for those of the cells."""
        if self._groups is None and not self.one_row:
            return cells
        shares = array("d", bytes(8 * self.count))
        rows = self._each if self.one_row else 1
        aged = Uniform(rows) if self._theta is None else Latest(rows, self._theta)
        each = list(aged.shares())
        for cell, share in enumerate(cells):
            for row, of_row in enumerate(each):
                shares[self._placed(cell, row)[0]] += share * of_row
        return shares


def design_problems(
    layout: Layout, rows: int | tuple[int, ...] | None = None, partitions: int | None = None
) -> Iterator[str]:
    """What does not fit together in a `KeyDesign`, each with its setting and a remedy."""
    found = list(layout.problems())
    yield from found
    if found:
        return
    cells = math.prod(layout.sizes)
    further = math.prod(len(field.values) for field in layout.further)
    if layout.own:
        if rows not in (None, 1):
            yield (
                "keys.rows_per_partition has to be 1: keys.partition_key gives each entity a "
                "partition of its own"
            )
    elif partitions is not None:
        yield (
            "keys.partitions: the number of partitions follows from the fields in "
            f"keys.partition_key; it is {cells:,}. Set the values of a field, or its history"
        )
    if isinstance(rows, tuple) and not layout.own:
        if layout.joined or layout.by_entity:
            yield (
                "keys.rows_per_partition: a list needs a partition for each combination of the "
                "fields in keys.partition_key; give one number"
            )
        elif len(rows) != cells:
            yield (
                f"keys.rows_per_partition lists {counted(len(rows), 'number')}, and the fields in "
                f"keys.partition_key make {counted(cells, 'partition')}"
            )
    yield from _same_key(layout, cells, further)
    most = rows if isinstance(rows, int) else max(rows or (1,))
    if not layout.creates and most > further:
        yield (
            f"keys.rows_per_partition: the keys tell {further:,} entities of a partition apart, "
            f"not {most:,}; add a field with sequence = true to keys.row_key"
        )
    units = cells
    if layout.by_entity and not layout.own:
        units *= most * math.prod(len(one.function.choices) for one in layout.suffixes)
    elif layout.own:
        units = max(partitions or 0, cells)
    if units > MOST_PARTITIONS:
        yield (
            f"keys: {units:,} entities would be put into partitions one by one, and at most "
            f"{MOST_PARTITIONS:,} can be; lower keys.rows_per_partition or the values of the fields"
        )


def _same_key(layout: Layout, cells: int, further: int) -> Iterator[str]:
    """Combinations of values whose texts make one key, such as a + bc and ab + c."""
    fields = [*layout.dimensions, *layout.further]
    listed = [
        field
        for field in fields
        if isinstance(field, ValueSet) and not isinstance(field.values, Numbered)
    ]
    parts = layout.keys.partition_key.references
    # The value of one field, with the same text before and after it.
    alone = len(parts) == 1 and not parts[0].function.text and len(parts[0].names) == 1
    if layout.by_entity or not listed or (alone and (layout.creates or len(fields) == 1)):
        return
    expressions, keys = Expressions(layout), layout.keys
    make = expressions.partition_key
    names = Counter(make(cell, 0, 0, 0) for cell in range(cells))
    key, times = names.most_common(1)[0]
    if times > 1 and not layout.joined:
        yield (
            f"keys.partition_key: {times} combinations of its fields give the key {echoed(key)}; "
            "write a text between them that no value contains"
        )
    elif not layout.creates and cells * further <= MOST_PARTITIONS:
        row = expressions.function("u, w, s, t", {}, (keys.row_key,), {})
        combinations = itertools.product(range(cells), range(further))
        both = Counter((make(u, w, 0, 0), row(u, w, 0, 0)) for u, w in combinations)
        found, times = both.most_common(1)[0]
        if times > 1:
            yield (
                f"keys.row_key: {times} combinations of the fields have the same keys, "
                f"{echoed(found[0])} and {echoed(found[1])}; write a text between fields that no "
                "value contains"
            )


def _narrow(template: Template, digits: int) -> bool:
    """Whether a sequence has fewer leading zeros than its numbers need."""
    return any(
        one.function.name == "pad" and one.function.size < digits for one in template.references
    )


def _recency(layout: Layout) -> float | None:
    """How much reads of a cell prefer its newest rows; None for not at all."""
    for field in layout.fields.values():
        if isinstance(field, Number) and field.theta is not None:
            return field.theta
        if isinstance(field, Time) and not layout.starts and field.name in layout.tells:
            return field.theta
    return None
