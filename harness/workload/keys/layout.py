"""What the templates of a key design depend on, and what does not fit together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.workload.keys.fields import (
    Field,
    Number,
    Time,
    ValueSet,
)
from harness.workload.keys.template import PERIODS, Reference, Template

MOST_PARTITIONS = 1_000_000
UNIQUE = frozenset(("", "pad", "guid", "ticks", "inverted"))
"""Functions whose results differ where the values do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Templates:
    """The keys of one table."""

    partition_key: Template
    row_key: Template

    @property
    def references(self) -> tuple[Reference, ...]:
        return self.partition_key.references + self.row_key.references


class Layout:
    """What the templates of a table, and of its index, depend on.

    Attributes:
        dimensions: Fields in the PartitionKey that make cells, in the order of the template.
        further: Fields with values that are in the other keys only.
        starts: Beginnings of the periods in the PartitionKey, the current one last.
        own: Whether each entity has a partition of its own.
        suffixes: What the PartitionKey takes of a sequence or a time, if that is not unique.
        joined: Whether several cells may share a partition.
        tells: Names of the fields that can be told from both keys together.
        creates: Whether there are always new keys, so that inserts are possible.
    """

    def __init__(
        self, fields: Sequence[Field], keys: Templates, index: Templates | None = None
    ) -> None:
        self.fields = {field.name: field for field in fields}
        self.keys, self.index = keys, index
        partition = keys.partition_key.references
        everywhere = keys.references + (index.references if index is not None else ())
        named = _names(partition)
        self.time = next((field for field in fields if isinstance(field, Time)), None)
        periods = [one.function.name for one in partition if self._is_period(one)]
        self.finest = max(periods, key=PERIODS.index, default="")
        self.starts = self.time.starts(self.finest) if self.time and self.finest else []
        self.dimensions = [
            field
            for field in (self.fields[name] for name in named)
            if isinstance(field, ValueSet) or (isinstance(field, Time) and self.finest)
        ]
        others = [self.fields[name] for name in _names(everywhere) if name not in named]
        self.further = [field for field in others if isinstance(field, ValueSet)]
        by_entity = [one for one in partition if self._by_entity(one)]
        self.by_entity = bool(by_entity)
        self.own = any(one.function.name in UNIQUE for one in by_entity)
        self.suffixes = [one for one in by_entity if one.function.name not in UNIQUE]
        told = {
            name
            for one in partition
            if one.function.name in UNIQUE or self._is_period(one)
            for name in one.names
        }
        self.joined = not self.by_entity and not {field.name for field in self.dimensions}.issubset(
            told
        )
        self.tells = {
            name for one in keys.references if one.function.name in UNIQUE for name in one.names
        }
        self.creates = any(not isinstance(self.fields[name], ValueSet) for name in self.tells)

    @property
    def sizes(self) -> list[int]:
        """Number of values, or of periods, of each dimension."""
        return [
            len(field.values) if isinstance(field, ValueSet) else len(self.starts)
            for field in self.dimensions
        ]

    def problems(self) -> Iterator[str]:
        """What does not fit together, each with its setting and a remedy."""
        used = {name for one in (self.keys, self.index) if one for name in _names(one.references)}
        for name in self.fields:
            if name not in used:
                yield f"fields.{name}: no key names it; write {{{name}}} into one, or leave it out"
        for kind, what in ((Time, "history"), (Number, "sequence")):
            several = [name for name, field in self.fields.items() if isinstance(field, kind)]
            if len(several) > 1:
                yield (
                    f"fields.{several[0]}: keys can have one {what}, and they have "
                    f"{' and '.join(f'{{{name}}}' for name in several)}; use one of them"
                )
        in_turn = [
            name
            for name, field in self.fields.items()
            if isinstance(field, ValueSet) and field.distribution == "sequential"
        ]
        if len(in_turn) > 1:
            yield (
                f"fields.{in_turn[1]}.distribution: one field can be sequential; "
                f"{' and '.join(in_turn)} would advance together"
            )
        if self.index is not None and self.creates:
            told = {
                type(self.fields[name])
                for one in self.index.references
                if one.function.name in UNIQUE
                for name in one.names
            }
            if Number not in told:
                yield (
                    "keys.index.row_key: copies of different entities may have the same keys; "
                    "write {row} into it"
                )
        for reference in self.suffixes:
            if not reference.function.choices and not self.own:
                yield (
                    f"keys.partition_key: {{{reference.names[0]}:{reference.function.text}}} of a "
                    "sequence or a time has too many results; use bucket16 or the like"
                )
            if not self.creates:
                yield (
                    f"keys.row_key: entities that differ in {reference.names[-1]} only may have "
                    f"the same keys; write {{{reference.names[-1]}}} into it"
                )
        cells = math.prod(self.sizes)
        if cells > MOST_PARTITIONS:
            yield (
                f"keys.partition_key: its fields have {cells:,} combinations, and at most "
                f"{MOST_PARTITIONS:,} can be loaded; lower their values or the history"
            )
        if not any(isinstance(self.fields[name], Number) for name in self.tells):
            for field in (*self.dimensions, *self.further):
                if isinstance(field, ValueSet) and field.name not in self.tells:
                    yield (
                        f"keys.row_key: entities that differ in {field.name} only have the same "
                        f"keys; write {{{field.name}}} into it, or a field with sequence = true"
                    )

    def _is_period(self, reference: Reference) -> bool:
        is_time = isinstance(self.fields[reference.names[0]], Time)
        return is_time and len(reference.names) == 1 and reference.function.name in PERIODS

    def _by_entity(self, reference: Reference) -> bool:
        return not self._is_period(reference) and any(
            not isinstance(self.fields[name], ValueSet) for name in reference.names
        )


def _names(references: Sequence[Reference]) -> list[str]:
    return list(dict.fromkeys(name for one in references for name in one.names))
