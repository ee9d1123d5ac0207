"""The order of keys, which are compared as text: it decides which ranges can be queried."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from harness.workload.keys.fields import Number, Numbered, Time, ValueSet
from harness.workload.keys.layout import Layout
from harness.workload.keys.template import PERIODS, Reference, Template


class KeySorting:
    """How partitions and rows sort.

    Attributes:
        partitions: Whether PartitionKeys sort by number.
        descending: Whether later entities sort first, each of them in a partition of its own; the
            numbers of partitions follow the keys then.
        rows: 1 if the rows of a partition sort by number, -1 in reverse, 0 if neither.
        by_cell: Rows of one cell follow one another, where a partition has several.
        by_value: Rows with one value follow one another, where the value is in the RowKey only.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.by_cell = self.by_value = False
        leading = next(iter(layout.keys.partition_key.references), None)
        rising = 0 if leading is None else _rising(layout, leading)
        self.descending = layout.own and not layout.dimensions and rising < 0
        if layout.own:
            self.partitions = bool(rising) and not layout.dimensions
        else:
            self.partitions = layout.by_entity or layout.joined or self._cells_rise()
        self.rows = self._rows()

    def _cells_rise(self) -> bool:
        template, seen = self._layout.keys.partition_key, set()
        for place, part in enumerate(template.parts):
            if isinstance(part, str) or (len(part.names) == 1 and part.names[0] in seen):
                continue
            field = self._layout.fields[part.names[0]]
            if len(part.names) > 1:
                return False
            if isinstance(field, Time) and part.function.name != self._layout.finest:
                return False
            if isinstance(field, ValueSet) and not _values_rise(field, part, template, place):
                return False
            seen.add(field.name)
        return True

    def _rows(self) -> int:
        layout, template = self._layout, self._layout.keys.row_key
        shared = layout.joined or layout.by_entity
        for place, part in enumerate(template.parts):
            if isinstance(part, str):
                continue
            if len(part.names) > 1:
                return 0
            field = layout.fields[part.names[0]]
            if isinstance(field, ValueSet):
                if field in layout.dimensions and not shared:
                    # The same in all rows of a partition.
                    continue
                grouped = layout.further if field in layout.further else layout.dimensions
                if len(grouped) > 1 or not _values_rise(field, part, template, place):
                    return 0
                if field in layout.further:
                    self.by_value = True
                else:
                    self.by_cell = True
                continue
            if isinstance(field, Time) and part.function.name in PERIODS:
                if layout.finest and not shared and _as_coarse(part, layout.finest):
                    continue
                return 0
            if isinstance(field, Time) and layout.by_entity:
                # The entities of one cell follow those of another, whatever their times.
                return 0
            rising = _rising(layout, part)
            return rising if rising > 0 or not (self.by_cell or self.by_value) else 0
        return 1


def _as_coarse(part: Reference, finest: str) -> bool:
    return PERIODS.index(part.function.name) <= PERIODS.index(finest)


def _rising(layout: Layout, part: Reference) -> int:
    """1 if later entities have higher texts, -1 if lower, 0 if neither."""
    field = layout.fields[part.names[0]]
    if len(part.names) > 1 or isinstance(field, ValueSet):
        return 0
    rises = ("pad",) if isinstance(field, Number) else ("", "ticks")
    return 1 if part.function.name in rises else -1 if part.function.name == "inverted" else 0


def _values_rise(field: ValueSet, part: Reference, template: Template, place: int) -> bool:
    """Whether the texts of the values rise with their numbers, with what follows them."""
    if part.function.text not in ("", "lower") and part.function.name != "pad":
        return False
    if isinstance(field.values, Numbered):
        return part.function.name != "lower" or field.values.prefix.islower()
    following = template.parts[place + 1] if place + 1 < len(template.parts) else ""
    texts: Iterable[str] = map(part.function.of, field.values)
    if not isinstance(following, str):
        texts = list(texts)
        return len(set(map(len, texts))) == 1 and _rise(texts)
    return _rise(text + following for text in texts)


def _rise(texts: Iterable[str]) -> bool:
    """Whether each is higher than the one before, whatever follows both."""
    return all(
        one < other and not other.startswith(one) for one, other in itertools.pairwise(texts)
    )
