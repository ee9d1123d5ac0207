"""The operations of a trace, counted by groups in SQL and added to the ledger that counts runs.

A trace is read several times, a million rows at once. How many partitions it has, and how many
entities, makes no difference to memory: the heaviest are found by the sums of hash buckets first.
"""

from __future__ import annotations

import collections
import math
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harness.measure.counts.heatmap import Band, banded
from harness.measure.counts.heavy_hitters import Weights
from harness.measure.counts.ledger import Delta, Ledger
from harness.measure.counts.snapshot import Snapshot
from harness.measure.counts.tally import (
    ANSWERED,
    LONG_S,
    SUMMED,
    WAITED,
    PartitionTally,
    add_counts,
)
from harness.measure.counts.time_course import LONGEST_S, Columns, Slots
from harness.model.errors import SetupError, cut
from harness.model.operation import FOLDED, WHOLE_TABLE
from harness.model.outcome import Scope, throttled_of
from harness.model.partition import EXACT_PARTITIONS, Partition
from harness.trace import grouping
from harness.trace.engine import Engine, Tell
from harness.trace.head import TraceError
from harness.trace.operations import UNKNOWN, TracedShape
from harness.trace.reader import Trace
from harness.trace.schema import MOST_KEY, MOST_LISTED
from harness.trace.spans import Span
from harness.trace.valid_values import LATEST_MS, require_numbers, shape_of

PASSES, ENTITY_PASSES = 4, 2
"""How often a trace is read to be counted, and for its hottest entities."""
_ROWS_AT_ONCE = 1_000_000
_MOST_SHAPES = 50_000
_MOST_CLIENTS = 100
_LONGEST = {"bytes in a key": 4 * MOST_KEY, "attempts": MOST_LISTED, "parts": MOST_LISTED}
_HEAVY_BUCKETS = 1000
_ONE_THROTTLED_IN = 10
"""One partition in so many has a row for its throttled attempts, the others for their entities."""
_MOST_CELLS = 15_000_000
"""Seconds of all partitions that are counted each: of a trace of a day 173, of two weeks 12."""
_SAMPLED = 16_384
"""The ranges of the heat map are made by so many partitions; by all of them if they are fewer."""

_Columns = Mapping[str, Any]
_Totals = dict[Partition, tuple[int, int]]
"""Entities and throttled attempts."""


class TraceCounts:
    """The counts of a trace; memory grows with its seconds, not with its operations.

    The trace will be read ``passes`` times: `PASSES`, and what is asked for later.

    Attributes:
        partitions: Number of different partitions, ``exact`` or about.
        clients: Operations by client; those of many clients are folded.
        unknown: What the source left out, and of how many operations.
    """

    def __init__(
        self, trace: Trace, name: str, tell: Tell = lambda done, total: None, passes: int = PASSES
    ) -> None:
        self._trace, self._name = trace, name
        self._tell, self._rows_told, self._passes = tell, 0, passes
        self._scratch = tempfile.TemporaryDirectory(prefix="table-trace-")
        self._engine = Engine(Path(self._scratch.name), threads=os.cpu_count() or 1)
        self.ledger = Ledger()
        self.partitions, self.exact = 0, True
        self.clients: dict[str, int] = {}
        self.unknown = dict.fromkeys(grouping.MISSING, 0)
        self._spans: list[Span] = []
        self._shapes: dict[int, TracedShape] = {}
        self._first_ms, self._last_ms, self._done_ms = LATEST_MS, 0, 0

    def count(self) -> None:
        """Count all operations that can be read.

        Raises:
            SetupError: there is none, or more than two weeks are between two of them.
        """
        try:
            self._look()
            tracked, bands = self._weigh()
            self.ledger.merge(self._counted(tracked, bands))
        except TraceError as error:
            raise SetupError(f"{cut(self._name)} cannot be read ({error})") from error

    @property
    def seconds(self) -> float:
        """From the first operation to the last, as `ReplayPart.seconds`."""
        return (self._last_ms - self._first_ms) / 1000

    @property
    def started_s(self) -> float:
        """When the first operation was sent, UTC seconds."""
        return self._first_ms / 1000

    @property
    def ended_s(self) -> float:
        """When the last answer was whole, UTC seconds."""
        return self._done_ms / 1000

    def snapshot(self, *, latencies: bool = True) -> Snapshot:
        """The counts, with the rates over the whole seconds from the first operation to the end.

        ``latencies`` as in a ledger: without them a trace of many seconds takes less memory.
        """
        return self.ledger.snapshot(
            start=int(self.started_s), end=int(self.ended_s) + 1, latencies=latencies
        )

    def entities(self, most: int) -> dict[str, int] | None:
        """The entities of every partition that has any; None if there are more partitions."""
        if self.partitions > most:
            return None
        totals, _ = self._totals((), one_in=1)
        return {
            partition.name: entities
            for partition, (entities, _) in totals.items()
            if entities and partition.key != UNKNOWN
        }

    def hottest_entities(self, most: int) -> list[tuple[Partition, str, int]]:
        """The entities with most accesses, and how many they are, without those with only one.

        Fewer than ``most`` if others may have more accesses.
        """
        weights = np.zeros(grouping.FEWER_BUCKETS, dtype=np.int64)
        for found in self._pass(grouping.ENTITY_BUCKETS):
            weights[found["bucket"]] += found["weight"]
        heavy = _heaviest(weights, _HEAVY_BUCKETS + 1)
        least = int(weights[heavy[-1]]) if len(heavy) > _HEAVY_BUCKETS else 0
        accesses: collections.Counter[tuple[str, str, str]] = collections.Counter()
        for found in self._pass(grouping.ENTITIES, buckets=heavy[:_HEAVY_BUCKETS]):
            *keys, counts = _lists(found, "table_name", "key", "row_key", "accesses")
            accesses.update(dict(zip(zip(*keys, strict=True), counts, strict=True)))
        hottest = sorted((-count, *keys) for keys, count in accesses.items())[:most]
        return [
            (Partition(table, key), row_key, -count)
            for count, table, key, row_key in hottest
            if -count >= max(2, least)
        ]

    def close(self) -> None:
        self._engine.close()
        self._scratch.cleanup()
        self.ledger.close()

    def _pass(self, sql: str, **values: object) -> Iterator[_Columns]:
        """The columns of a query about each span."""
        for span in self._spans:
            yield self._engine.columns(sql, {**span.place, **values})
            self._say(span.rows)

    def _say(self, rows: int) -> None:
        self._rows_told += rows
        self._tell(self._rows_told, self._passes * self._trace.operations)

    def _look(self) -> None:
        """Find the spans that can be read, their extent, and what operations have in common."""
        damage, waiting = self._trace.damage, self._trace.spans(_ROWS_AT_ONCE)[::-1]
        damage.rows = 0
        while waiting:
            span = waiting.pop()
            try:
                self._look_at(span)
            except TraceError as error:
                parts = span.parts()
                waiting += parts[::-1]
                if not parts:
                    damage.reason = damage.reason or str(error)
                    damage.rows += span.rows
                    self._say(self._passes * span.rows)
            else:
                self._spans.append(span)
                self._say(span.rows)
        if not self._spans:
            raise self._trace.unreadable(self._name)
        if self._done_ms - self._first_ms >= LONGEST_S * 1000:
            raise SetupError(
                f"{cut(self._name)} spans more than two weeks, and every second would be in "
                "memory. Of a log, give the folders of two weeks at a time; `harness whatif` reads "
                "any length"
            )

    def _look_at(self, span: Span) -> None:
        engine, place = self._engine, span.place
        ((*found, rows),) = engine.rows(grouping.LOOK, place)
        for at, name in enumerate(grouping.NUMBERS):
            count, *extent = found[3 * at : 3 * at + 3]
            require_numbers(name, rows - count, *extent)
        _, first_ms, last_ms = found[:3]
        done_ms, *found = found[3 * len(grouping.NUMBERS) :]
        for (name, most), longest in zip(_LONGEST.items(), found, strict=False):
            if (longest or 0) > most:
                raise TraceError(f"an operation has too many {name}")
        shapes = engine.rows(grouping.SHAPES, place)
        new = {number: fields for number, *fields in shapes if number not in self._shapes}
        if len(self._shapes) + len(new) > _MOST_SHAPES:
            raise TraceError("operations have too little in common")
        clients = engine.rows(grouping.CLIENTS, {**place, "most": _MOST_CLIENTS})
        self._shapes.update({number: shape_of(*fields) for number, fields in new.items()})
        self._first_ms, self._last_ms = min(self._first_ms, first_ms), max(self._last_ms, last_ms)
        self._done_ms = max(self._done_ms, done_ms)
        add_counts(self.unknown, dict(zip(self.unknown, found[len(_LONGEST) :], strict=True)))
        for name, count in [*clients, (FOLDED, rows - sum(count for _, count in clients))]:
            known = name in self.clients or len(self.clients) < _MOST_CLIENTS
            if count:
                add_counts(self.clients, {name if known else FOLDED: count})

    def _weigh(self) -> tuple[list[Partition], list[Band]]:
        """The partitions to count each, and the key ranges of the heat map."""
        entities, throttled = np.zeros((2, grouping.BUCKETS), dtype=np.int64)
        used = np.zeros(grouping.BUCKETS, dtype=np.bool_)
        for found in self._pass(grouping.PARTITION_BUCKETS):
            used[found["bucket"]] = True
            entities[found["bucket"]] += found["entities"]
            throttled[found["bucket"]] += found["throttled"]
        one_in = _one_in(int(used.sum()))
        heavy = {
            *_heaviest(entities, _HEAVY_BUCKETS),
            *_heaviest(throttled, _HEAVY_BUCKETS // _ONE_THROTTLED_IN),
        }
        totals, sampled = self._totals([*heavy], one_in)
        named = [one for one in sampled if one.key not in (UNKNOWN, WHOLE_TABLE)]
        self.partitions, self.exact = one_in * len(named), one_in == 1
        cells = 1 + (self._done_ms - self._first_ms) // 1000
        tracked = _tracked(totals, min(EXACT_PARTITIONS, _MOST_CELLS // cells))
        weights = {one.name: sum(totals[one]) * one_in for one in sampled if not one.whole_table}
        weights |= {one.name: sum(totals[one]) for one in tracked if not one.whole_table}
        return tracked, banded({name: weight for name, weight in weights.items() if weight})[1]

    def _totals(self, buckets: Sequence[int], one_in: int) -> tuple[_Totals, set[Partition]]:
        """Those of the partitions of some buckets, and of one in so many, which are a sample."""
        totals: _Totals = {}
        sampled: set[Partition] = set()
        for found in self._pass(grouping.PARTITIONS, buckets=buckets, one_in=one_in):
            names = ("table_name", "key", "entities", "throttled", "sampled")
            for table, key, *more, in_sample in zip(*_lists(found, *names), strict=True):
                partition = Partition(table, key)
                entities, throttled = totals.get(partition, (0, 0))
                totals[partition] = (entities + more[0], throttled + more[1])
                if in_sample:
                    sampled.add(partition)
        return totals, sampled

    def _counted(self, tracked: Sequence[Partition], bands: Sequence[Band]) -> Delta:
        columns = Columns()
        columns.cover(self._first_ms // 1000)
        columns.cover(self._done_ms // 1000)
        books = _Books(self._shapes, len(tracked), bands, columns.width_s)
        self._engine.rows(
            grouping.TRACKED,
            {
                "tables": [partition.table for partition in tracked],
                "keys": [partition.key for partition in tracked],
                "numbers": [*range(1, len(tracked) + 1)],
            },
        )
        width = {"width": columns.width_s}
        firsts = {"firsts": [band.first for band in bands]} if len(bands) > 1 else {}
        heat = grouping.heat(len(bands))
        for span in self._spans:
            ask, place = self._engine.columns, span.place
            books.add_operations(ask(grouping.OPERATIONS, place | width))
            books.add_attempts(ask(grouping.ATTEMPTS, place))
            books.add_waits(ask(grouping.WAITS, place | {"long_ms": round(LONG_S * 1000)}))
            books.add_heat(ask(heat, place | width | firsts))
            self._say(span.rows)
        return books.delta([partition.name for partition in tracked])


class _Books:
    """Counts groups into a `Delta`, as a ledger counts results.

    Args:
        rows: Number of partitions that are counted each, by the numbers from 1; 0 is all others.
        width_s: Of the columns of time.
    """

    def __init__(
        self, shapes: Mapping[int, TracedShape], rows: int, bands: Sequence[Band], width_s: int
    ) -> None:
        self._delta, self._width_s = Delta(source="trace"), width_s
        self._tally = self._delta.tally
        self._delta.service.widen(width_s)
        self._shapes = shapes
        self._labels = {
            number: self._tally.label_of(shape.label, shape.kind)
            for number, shape in shapes.items()
        }
        self._rows = [PartitionTally() for _ in range(rows + 1)]
        self._bands = [Band(band.first, band.last, band.last) for band in bands]
        self._tables: dict[str, Band] = {}

    def add_operations(self, found: _Columns) -> None:
        tally = self._tally
        for number, (seconds, *columns) in _groups(found, "shape", "second", *SUMMED):
            shape, by_name = self._shapes[number], dict(zip(SUMMED, columns, strict=True))
            attempts = len(shape.attempts) * sum(by_name["operations"])
            label = self._labels[number]
            tally.add_sums(label, shape.outcome, shape.estimated, attempts, seconds, by_name)
        for number, columns in _groups(found, "shape", "number", *SUMMED):
            answers = collections.Counter(
                (answer.status, answer.error_code, Scope(answer.scope))
                for answer in self._shapes[number].attempts
            )
            # The first column has the numbers of the partitions, the next one the operations.
            tally.kinds[self._labels[number]].throttled += throttled_of(answers) * sum(columns[1])
            for place, *sums in zip(*columns, strict=True):
                of = dict(zip(SUMMED, sums, strict=True))
                self._rows[place].add_sums(self._labels[number], answers, of)
        for place, columns in _groups(found, "number", "second", "entities"):
            self._rows[place].seconds.add_all(*columns)
        for number, (took, counts) in _groups(found, "shape", "took", "operations"):
            latencies = tally.kinds[self._labels[number]].latencies
            latencies.record([ms / 1000 for ms in took], (), counts)
        for place, (took, counts) in _groups(found, "number", "took", "operations"):
            self._rows[place].latencies.record([ms / 1000 for ms in took], (), counts)
        for place, columns in _groups(found, "place", "took", "operations"):
            for ms, count in zip(*columns, strict=True):
                self._delta.service.add(place * self._width_s, (ms / 1000,), count)

    def add_attempts(self, found: _Columns) -> None:
        attempts: collections.Counter[int] = collections.Counter()
        answered = self._tally.series[ANSWERED]
        names = ("second", "status", "throttled", "attempts", "slots")
        for second, status, throttled, count, slots in zip(*_lists(found, *names), strict=True):
            attempts[second] += count
            if status:
                answered.add(second, slots)
            if throttled:
                self._tally.throttled[status].add(second, count)
        self._tally.add_attempts(attempts)

    def add_waits(self, found: _Columns) -> None:
        waited = self._tally.series[WAITED]
        assert isinstance(waited, Slots)
        for slot, before in zip(*_lists(found, "slot", "before"), strict=True):
            waited.mark_slots(slot, before)

    def add_heat(self, found: _Columns) -> None:
        names = ("range", "name", "place", *grouping.HEAT)
        for number, name, place, *counts in zip(*_lists(found, *names), strict=True):
            if number:
                band = self._bands[number - 1]
            else:
                band = self._tables.setdefault(name, Band(name, name, name))
            band.weight += counts[0] + counts[1]
            band.add(place, counts)

    def delta(self, names: Sequence[str]) -> Delta:
        """All of it; ``names`` are those of the rows from 1."""
        delta, counts = self._delta, self._tally.counts
        counts.due = counts.sent = counts.operations
        folded, *rows = self._rows
        delta.partitions = dict(zip(names, rows, strict=True))
        delta.folded = folded if folded.operations else None
        delta.accessed, delta.throttled = Weights().drain()
        bands = [band for band in (*self._tables.values(), *self._bands) if band.weight]
        delta.heat.add_bands(bands, self._width_s)
        return delta


def _lists(found: _Columns, *names: str) -> list[list[Any]]:
    return [found[name].tolist() for name in names]


def _groups(found: _Columns, by: str, *names: str) -> Iterator[tuple[int, list[list[Any]]]]:
    """The columns of each value of one, in the set of `grouping.OPERATIONS` by it and another."""
    places = np.flatnonzero(found["set"] == grouping.set_of(by, names[0]))
    values = np.asarray(found[by])[places]
    order = np.argsort(values, kind="stable")
    ends = np.flatnonzero(np.diff(values[order])) + 1
    for part in np.split(places[order], ends):
        if len(part):
            yield (
                int(found[by][part[0]]),
                [np.asarray(found[name])[part].tolist() for name in names],
            )


def _heaviest(weights: Any, most: int) -> list[int]:
    """The places of the highest weights above 0, the highest first."""
    order: list[int] = np.argsort(-weights, kind="stable")[:most].tolist()
    return [place for place in order if weights[place]]


def _one_in(used: int) -> int:
    """A sample of one partition in so many, a power of two, if so many buckets have any."""
    if used >= grouping.BUCKETS:
        return grouping.BUCKETS // _SAMPLED * 1024
    about = -grouping.BUCKETS * math.log1p(-used / grouping.BUCKETS)
    return 1 << max(0, math.ceil(math.log2(max(1.0, about) / _SAMPLED)))


def _tracked(totals: _Totals, most: int) -> list[Partition]:
    """The partitions that are counted each: all, or the heaviest."""
    if len(totals) <= most:
        return [*totals]

    def by(place: int) -> list[Partition]:
        return sorted(totals, key=lambda one: (-totals[one][place], one))

    throttled = by(1)[: most // _ONE_THROTTLED_IN]
    chosen = dict.fromkeys(one for one in throttled if totals[one][1])
    return [*dict.fromkeys((*chosen, *by(0)))][:most]
