"""The keys of a part of a trace in columns, and as digests what schemes make of them.

Each different key, and each part that a template takes of it, is looked at once for all schemes.
"""

from __future__ import annotations

import functools
import itertools
import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from harness.model.operation import WHOLE_TABLE
from harness.trace.operations import TracedQuery
from harness.trace.whatif.digests import (
    Array,
    Digests,
    checksums_of,
    digests_of,
    joined,
    scattered,
)
from harness.trace.whatif.load_sums import PartitionLoads, summed
from harness.trace.whatif.scheme import PARTITION_KEY, ROW_KEY, NewKey, Scheme, groups_of
from harness.workload.keys.template import Reference

Columns = dict[str, Array]
Places = Mapping[str, Array]
Pattern = re.Pattern[str] | None

_BOUNDS = ("partition_from", "partition_before", "row_from", "row_before")
_SECONDS = 32


class KeyTexts:
    """Different texts of a source of new keys, and what the templates of schemes take of each."""

    def __init__(self, source: str, texts: Iterable[str | None]) -> None:
        self._source = source
        self.texts = [text for text in texts if text is not None]
        self._values: dict[Pattern, tuple[list[dict[str, str] | None], Array]] = {}
        self._taken: dict[object, Digests] = {}

    @functools.cached_property
    def digests(self) -> Digests:
        return digests_of(self.texts)

    @functools.cached_property
    def checksums(self) -> Array:
        return checksums_of(self.texts)

    def values(self, pattern: Pattern) -> tuple[list[dict[str, str] | None], Array]:
        """The values of each, by their names, and which of them the pattern matches."""
        if pattern not in self._values:
            values = [groups_of(self._source, text, pattern) for text in self.texts]
            self._values[pattern] = values, np.array([one is not None for one in values], bool)
        return self._values[pattern]

    def taken(self, reference: Reference, pattern: Pattern) -> Digests:
        """What a reference takes of each of them."""
        function, whole = reference.function, reference.names == (self._source,)
        if whole and not function.text:
            return self.digests
        at = None if whole else pattern, reference.names, function.text
        if at not in self._taken:
            found = self.texts
            if not whole:
                found = [
                    "" if one is None else "".join(map(one.__getitem__, reference.names))
                    for one in self.values(pattern)[0]
                ]
            if function.divisor:
                checksums = self.checksums if whole else checksums_of(found)
                rests = checksums % np.uint32(function.divisor)
                self._taken[at] = _choices(function.choices).at(rests)
            else:
                self._taken[at] = digests_of(list(map(function.of, found)))
        return self._taken[at]


@functools.lru_cache(64)
def _choices(choices: tuple[str, ...]) -> Digests:
    return digests_of(choices)


class KeyColumns:
    """The operations of one table, of a part of a trace.

    Attributes:
        second: Of what is asked of single entities, with ``amount``, ``key`` and ``row``.
        key: Places of their PartitionKeys in ``keys``; -1 where a trace does not say it.
        row: The same of RowKeys.
        places: Both, and the same of properties, by the name of the source of parts of new keys.
        texts: What the places are of.
        first: Places in these columns at which an operation begins.
        asked: Of each query the place of what it asks for in ``queries``.
        whole: Which queries are over several partitions.
    """

    def __init__(self, name: str, kinds: Sequence[Columns], properties: Sequence[str]) -> None:
        self.name = name
        singles, parts, queries = kinds
        known: dict[str | None, int] = {None: -1}
        rows: dict[str | None, int] = {None: -1}
        self.second = np.concatenate([singles["second"], parts["second"]])
        self.amount = np.concatenate([singles["amount"], parts["amount"]])
        self.key = np.concatenate([_places(known, one["key"]) for one in (singles, parts)])
        self.row = np.concatenate([_places(rows, one["row"]) for one in (singles, parts)])
        count = len(singles["second"])
        of_transactions = np.flatnonzero(np.diff(parts["number"], prepend=-1)) + count
        self.transactions = len(of_transactions)
        self.first = np.concatenate([np.arange(count), of_transactions])
        asked_for = [*_BOUNDS, *map(column_of, properties)]
        bounds = [queries[name].tolist() for name in asked_for]
        numbers: dict[tuple[Any, ...], int] = {}
        asked = zip(queries["key"].tolist(), *bounds, strict=True)
        self.asked = np.array([numbers.setdefault(one, len(numbers)) for one in asked], np.int64)
        self.queries = [(key, _query_of(properties, of)) for key, *of in numbers]
        self.query_second, self.query_amount = queries["second"], queries["amount"]
        self.query_returned = queries["returned"]
        self.query_key = _places(known, queries["key"])
        self.whole = np.array([key == WHOLE_TABLE for key, _ in self.queries], bool)[self.asked]
        self.keys = KeyTexts(PARTITION_KEY, known)
        self.places = {PARTITION_KEY: self.key, ROW_KEY: self.row}
        self.texts = {PARTITION_KEY: self.keys, ROW_KEY: KeyTexts(ROW_KEY, rows)}
        for one in properties:
            # A value that is not known is at the place of another: it is never used.
            values: dict[str | None, int] = {None: -1, "": 0}
            of_both = [_places(values, of[column_of(one)]) for of in (singles, parts)]
            self.places[one], self.texts[one] = np.concatenate(of_both), KeyTexts(one, values)
        # Equal keys of different tables are different partitions.
        self._salt = scattered(digests_of([name]).value)

    @functools.cached_property
    def whole_rows(self) -> Array:
        """Of which entities both keys are known."""
        found: Array = (self.key >= 0) & (self.row >= 0)
        return found

    @functools.cached_property
    def by_partition(self) -> PartitionLoads:
        """The loads of recorded partitions, which are named by the places of their keys."""
        of_rows, of_queries = self.key >= 0, (self.query_key >= 0) & ~self.whole
        keys = np.concatenate([self.key[of_rows], self.query_key[of_queries]])
        seconds = np.concatenate([self.second[of_rows], self.query_second[of_queries]])
        amounts = np.concatenate([self.amount[of_rows], self.query_amount[of_queries]])
        pairs, sums = summed(keys << _SECONDS | seconds, amounts)
        return PartitionLoads(pairs >> _SECONDS, pairs & (2**_SECONDS - 1), sums)

    def numbers(self, digests: Array) -> Array:
        """The numbers of partitions, by the digests of their PartitionKeys."""
        return scattered(digests ^ self._salt)


def column_of(name: str) -> str:
    """The name of the column with the values of a property."""
    return f"value of {name}"


def _query_of(names: Sequence[str], columns: Sequence[Any]) -> TracedQuery:
    """A query of its bounds, and of the values of properties that it demands."""
    bounds, values = columns[: len(_BOUNDS)], columns[len(_BOUNDS) :]
    pairs = zip(names, values, strict=True)
    equal = tuple((name, value) for name, value in pairs if value is not None)
    return TracedQuery(*bounds)._replace(equal=equal)


def _places(known: dict[str | None, int], keys: Array) -> Array:
    """The places of keys among the known ones, which are extended. That of none is -1."""
    listed = keys.tolist()
    new = [key for key in dict.fromkeys(listed) if key not in known]
    known.update(zip(new, itertools.count(len(known) - 1)))
    return np.fromiter(map(known.__getitem__, listed), np.int64, len(listed))


class NewKeys:
    """The keys of the operations of a table under a scheme, as digests.

    Attributes:
        by_key: The new partition depends on the recorded PartitionKey alone.
    """

    def __init__(self, scheme: Scheme, table: KeyColumns) -> None:
        self._scheme, self._table = scheme, table
        self._applies = scheme.applies_to(table.name)
        self.by_key = scheme.by_partition_key or not self._applies

    def partitions(self, places: Places) -> tuple[Array, Array, Array]:
        """The partitions of entities; which are not matched, and of which a property is not known.

        Args:
            places: As `KeyColumns.places`; without what the PartitionKey does not depend on.
        """
        table, scheme, key = self._table, self._scheme, places[PARTITION_KEY]
        recorded = table.keys.digests.value[key]
        nothing = np.zeros(len(key), bool)
        if not self._applies:
            return table.numbers(recorded), nothing, nothing
        matched = known = ~nothing
        for source, pattern in scheme.patterns.items():
            matched = matched & table.texts[source].values(pattern)[1][places[source]]
        for name in scheme.properties:
            known = known & (places[name] >= 0)
        new = self._filled(scheme.partition_template, places)
        numbers = table.numbers(np.where(matched & known, new, recorded))
        return numbers, ~matched, matched & ~known

    def entities(self, places: Places) -> tuple[Array, Array]:
        """Numbers of entities by their new keys, and by their recorded keys."""
        table, scheme = self._table, self._scheme
        partitions, unmatched, unvalued = self.partitions(places)
        recorded = new = table.texts[ROW_KEY].digests.value[places[ROW_KEY]]
        if not scheme.keeps_row_key:
            filled = self._filled(scheme.row_template, places)
            new = np.where(unmatched | unvalued, recorded, filled)
        before = table.numbers(table.keys.digests.value[places[PARTITION_KEY]])
        return _entities(partitions, new), _entities(before, recorded)

    def _filled(self, template: NewKey, places: Places) -> Array:
        whole: Array | None = None
        for part in template.parts:
            if isinstance(part, str):
                one = digests_of([part])
            elif len(sources := template.sources(part)) == 1:
                [source] = sources
                pattern = self._scheme.patterns.get(source)
                one = self._table.texts[source].taken(part, pattern).at(places[source])
            else:
                one = self._of_several(part, sources, places)
            whole = one.value if whole is None else joined(whole, one)
        assert whole is not None
        return np.broadcast_to(whole, places[PARTITION_KEY].shape)

    def _of_several(self, reference: Reference, sources: Iterable[str], places: Places) -> Digests:
        """What a reference takes of several sources."""
        found = []
        for source in sources:
            values, _ = self._table.texts[source].values(self._scheme.patterns.get(source))
            found.append([values[place] for place in places[source]])
        return digests_of(
            [
                "" if None in of else reference.of(functools.reduce(operator.or_, of))
                for of in zip(*found, strict=True)
            ]
        )


def _entities(partitions: Array, rows: Array) -> Array:
    return partitions.astype(np.uint64) << np.uint64(32) | scattered(rows).astype(np.uint64)
