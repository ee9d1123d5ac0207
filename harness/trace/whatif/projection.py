"""One key scheme: the trace under its keys, before the limits, summed up second by second.

Peaks are the highest rates of any one partition, and of all together, over 1 s, 10 s and a minute.
Queries over several partitions count for all together only: the share of each partition is unknown.
"""

from __future__ import annotations

import bisect
import dataclasses
import heapq
import itertools
import operator
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any

from datasketches import hll_sketch

from harness.gateway.demand import Demand, Place
from harness.gateway.limits import GatewayLimits
from harness.measure.counts.heatmap import HeatMap
from harness.measure.counts.heavy_hitters import Weights
from harness.measure.record.measured import EstimatePart
from harness.measure.record.whatif import (
    DrawPart,
    HotPart,
    PeakPart,
    SchemePart,
    SimulatedPart,
)
from harness.model.partition import EXACT_PARTITIONS
from harness.trace.operations import Batch
from harness.trace.whatif.rekeying import Rekeying
from harness.trace.whatif.scheme import sample_lines
from harness.trace.whatif.simulation import FIRST, MOST_WAIT_S, Request, Simulation
from harness.trace.whatif.units import Loads, name_of
from harness.workload.retry import ExponentialBackoff

Progress = Callable[[str, int], None]
"""Is told the name of a step, and how many operations were read since it was told last."""

WINDOWS_S = (1, 10, 60)
BACKOFF = ExponentialBackoff(retries=3, backoff_s=0.5, minimum_s=0.1, maximum_s=MOST_WAIT_S)
"""The back-off of the shipped profiles."""
DRAWS = 9
"""With so many draws of its random waits back-off is simulated; the median is shown, and how far
they lie apart: real traffic is one draw."""
_EXACT_PARTITIONS = 50_000
_SKETCH_LOG2 = 14
_HOTTEST = 5
"""Partitions of which the hottest is looked for once the limits have refused what they refuse."""
_COUNTED_TOGETHER = 20_000
"""Partitions whose entities of some seconds are added up before they are counted."""


class _Window:
    """Entities by partition over the latest seconds.

    Args:
        wider: A wider window, to which a second has been added before it is added here. A partition
            is looked at only if its entities there exceed the peak here.
    """

    def __init__(self, width_s: int, wider: _Window | None = None) -> None:
        self._width_s, self._wider = width_s, wider
        self._seconds: deque[tuple[int, Mapping[str, int]]] = deque()
        self._sums: dict[str, int] = {}
        self.peak = (0, 0, "")
        """The most entities, the first second of that window, and the partition."""

    def add(self, second: int, entities: Mapping[str, int]) -> None:
        seconds, sums, wider = self._seconds, self._sums, self._wider
        while seconds and seconds[0][0] <= second - self._width_s:
            for name, count in seconds.popleft()[1].items():
                if name in sums:
                    left = sums[name] - count
                    if left:
                        sums[name] = left
                    else:
                        del sums[name]
        seconds.append((second, entities))
        most, found = self.peak[0], None
        for name, count in entities.items():
            if name in sums:
                total = sums[name] = sums[name] + count
            elif wider is None:
                total = sums[name] = count
            elif wider._sums[name] > most:
                before = [counts[name] for _, counts in seconds if name in counts]
                total = sums[name] = sum(before)
            else:
                continue
            if total > most:
                most, found = total, name
        if found is not None:
            self.peak = most, max(0, second - self._width_s + 1), found


class Peaks:
    """Takes the entities of each second, in order. Memory is that of one minute.

    In a trace that is shorter than a window, the rate is the mean over the trace. So many of the
    entities as ``scale`` says are one of the rate.
    """

    def __init__(self, scale: int = 1) -> None:
        self._scale = scale
        second_s, *wider_s = WINDOWS_S
        assert second_s == 1
        self._second = (0, 0, "")
        self._wider: list[_Window] = []
        for width_s in reversed(wider_s):
            self._wider.append(_Window(width_s, self._wider[-1] if self._wider else None))
        # All partitions together have the empty name.
        self._account = [_Window(width_s) for width_s in WINDOWS_S]
        self._first = self._last = 0

    def add(self, second: int, entities: Mapping[str, int], cross_partition: int = 0) -> None:
        """Add a later second, with the entities by partition: the mapping is kept.

        ``cross_partition`` are those of queries over several partitions.
        """
        if not self._last:
            self._first = second
        self._last = second + 1
        most = max(entities.values(), default=0)
        if most > self._second[0]:
            name = next(name for name, count in entities.items() if count == most)
            self._second = most, second, name
        for window in self._wider:
            window.add(second, entities)
        everything = {"": sum(entities.values()) + cross_partition}
        for total in self._account:
            total.add(second, everything)

    @property
    def partition(self) -> tuple[PeakPart, ...]:
        """The highest rate of any one partition, the shortest window first."""
        return self._rates([self._second, *(window.peak for window in reversed(self._wider))])

    @property
    def account(self) -> tuple[PeakPart, ...]:
        """The highest rate of all partitions together."""
        return self._rates([total.peak for total in self._account])

    def _rates(self, peaks: Sequence[tuple[int, int, str]]) -> tuple[PeakPart, ...]:
        length_s = max(1, self._last - self._first)
        return tuple(
            PeakPart(
                width_s=width_s,
                per_s=most / min(width_s, length_s) / self._scale,
                at_s=since,
                partition=name,
            )
            for width_s, (most, since, name) in zip(WINDOWS_S, peaks, strict=True)
        )


class _Partitions:
    """The number of partitions: exact up to 50,000, above that an estimate in fixed memory."""

    def __init__(self) -> None:
        # In the order in which they came: the estimate depends on it.
        self._exact: dict[str, None] = {}
        self._sketch: hll_sketch | None = None

    @property
    def estimated(self) -> bool:
        return self._sketch is not None

    @property
    def count(self) -> int:
        if self._sketch is not None:
            return int(self._sketch.get_estimate() + 0.5)
        return len(self._exact)

    def add(self, names: Iterable[str]) -> None:
        if self._sketch is None:
            self._exact.update(dict.fromkeys(names))
            if len(self._exact) <= _EXACT_PARTITIONS:
                return
            self._sketch = hll_sketch(_SKETCH_LOG2)
            names, self._exact = self._exact, {}
        update = self._sketch.update
        for name in names:
            update(name)


def _apart(draws: Sequence[SimulatedPart]) -> tuple[DrawPart, DrawPart] | None:
    """The least and the most of each figure; None if all draws are equal."""

    def bound(of: Callable[[Iterable[Any]], Any]) -> DrawPart:
        return DrawPart(
            ratio=of(one.ratio for one in draws),
            attempts=of(one.attempts for one in draws),
            failed=of(one.failed for one in draws),
        )

    least, most = bound(min), bound(max)
    return None if least == most else (least, most)


class Projection:
    """Takes the batches of a trace in order; `finish` ends it.

    Args:
        rate: Multiple of the recorded traffic: the instants are divided by it.
        rekeying: Makes the loads, in its unit.
        draws: Back-off is simulated so many times, each with other random waits; if it is not, what
            it says is what is said without retries.
        until_throttled: Stop at the first throttled attempt, and keep nothing else.

    Attributes:
        once: What the limits do if no operation is retried.
    """

    def __init__(
        self,
        rekeying: Rekeying,
        limits: GatewayLimits,
        *,
        rate: float,
        started_s: int,
        draws: int = 1,
        until_throttled: bool = False,
    ) -> None:
        self._rekeying = rekeying
        self._scale = scale = rekeying.unit.scale
        self._rate = rate
        self._started_s = started_s
        self._brief = until_throttled
        self._peaks = Peaks(scale)
        # Of physical partitions, where there are such.
        self._physical = None if limits.units is None else Peaks(scale)
        # In recorded seconds, whatever the rate is, so that the map of a short trace has columns.
        self._heat = HeatMap()
        self._drawn: dict[str, int] = {}
        self._drawn_second = 0
        self._weights = Weights()
        self._partitions = _Partitions()
        self._counted: dict[str, int] = {}
        self._entities = 0
        self._largest = self._most = 0
        self.once = Simulation(limits, None)
        self.once.begin(rekeying.places_before)
        self._draws = draws
        self._retried: list[Simulation] = []
        # Of the first operation, in milliseconds: simulated time begins with it, as a replay does.
        self._first_ms: int | None = None
        self._second = 0
        self._sums: dict[str, int] = {}
        self._waiting: list[Loads] = []

    def throttled(self) -> bool:
        """Whether an attempt was throttled; ends the current second."""
        self._close()
        return self.once.throttling.throttled > 0

    @property
    def most_per_s(self) -> float:
        """The most that a second asked for of all partitions together."""
        return self._most / self._scale

    def add(self, batch: Batch) -> None:
        self.feed(self.rekeyed(batch))

    def rekeyed(self, batch: Batch) -> Loads:
        """The loads of a batch, to `feed`."""
        return self._rekeying.loads(batch)

    def feed(self, loads: Loads) -> None:
        """Add loads that follow those before."""
        instants, length, start = loads.instants, len(loads.instants), 0
        if self._first_ms is None and instants:
            self._first_ms = instants[0]
            self._drawn_second = instants[0] // 1000
        first_ms = self._first_ms or 0
        while start < length:
            end_ms = first_ms + (self._second + 1) * 1000 * self._rate
            end = bisect.bisect_left(instants, end_ms, lo=start)
            if end > start:
                part = loads.between(start, end)
                self._waiting.append(part)
                self._largest = max(self._largest, part.largest)
                sums = self._sums
                for name, count in zip(part.names, part.amounts, strict=True):
                    if name in sums:
                        sums[name] += count
                    else:
                        sums[name] = count
                for _, name, count in part.shares():
                    sums[name] = sums.get(name, 0) + count
                if self._rate != 1 and not self._brief:
                    self._draw(part)
            if end < length:
                self._close()
                self._second = max(
                    self._second + 1, int((instants[end] - first_ms) / (1000 * self._rate))
                )
                if self._brief and self.once.throttling.throttled:
                    return
            start = end

    def finish(self) -> SchemePart:
        """The last second and all retries; everything summed up."""
        self._close()
        self._settle()
        self._paint(self._started_s + self._drawn_second, self._drawn)
        for simulation in self._simulations():
            simulation.finish()
        draws = sorted(self._retried or [self.once], key=lambda one: one.throttling.throttled)
        retried = draws[len(draws) // 2]
        scheme, price = self._rekeying.scheme, self._rekeying.price
        collisions = self._rekeying.collisions
        hottest = self._weights.heaviest(EXACT_PARTITIONS)
        whole = max(1, self._entities)
        return SchemePart(
            name=scheme.name,
            question=scheme.question,
            properties=scheme.properties,
            sample=tuple(sample_lines(scheme, self._rekeying.samples)),
            total=self._entities // self._scale,
            partitions=self._partitions.count,
            partitions_estimated=self._partitions.estimated,
            partition_peaks=self._peaks.partition,
            physical_peaks=() if self._physical is None else self._physical.partition,
            account_peaks=self._peaks.account,
            hot=tuple(
                HotPart(partition=name, at_least=of.at_least / whole, at_most=of.at_most / whole)
                for name, of in itertools.islice(hottest.items(), _HOTTEST)
            ),
            once=self._simulated(self.once, hottest),
            retried=self._simulated(retried, hottest),
            draws=_apart([draw.throttling for draw in draws]),
            refused=self._rekeying.refused,
            price=dataclasses.replace(
                price,
                billable=retried.throttling.attempts,
                collisions=collisions.count,
                collisions_estimated=collisions.estimated,
            ),
            heat=self._heat.view(),
        )

    def _simulated(
        self, simulation: Simulation, hottest: Mapping[str, EstimatePart]
    ) -> SimulatedPart:
        places = self._rekeying.places
        served = [
            of.at_least - simulation.lost.get(places[name], 0) for name, of in hottest.items()
        ]
        whole = max(1, self._entities - simulation.lost_entities)
        simulation.throttling.hottest_share = max(served, default=0) / whole
        return simulation.throttling

    def _simulations(self) -> list[Simulation]:
        return [self.once, *self._retried]

    def _close(self) -> None:
        """Count and simulate the second that is complete."""
        sums, second = self._sums, self._second
        if not sums:
            return
        number = sum(len(part.names) for part in self._waiting)
        places = self._rekeying.places
        scanned = {places[part.names[at]] for part in self._waiting for at in part.paged_scans}
        demand = Demand(
            {places[name]: count for name, count in sums.items()},
            self._largest,
            scans=self._rekeying.price.queries > 0,
        )
        self._most = max(self._most, demand.total)
        doubtful = self.once.serve(second, demand, number, scanned)
        for simulation in self._retried:
            doubtful = doubtful | simulation.serve(second, demand, number, scanned)
        if doubtful and not self._retried and not self._brief:
            # Until now nothing was refused, so that retries made no difference.
            seeds = range(1, 1 + self._draws)
            self._retried = [self.once.forked(BACKOFF, seed) for seed in seeds]
        if doubtful:
            operations = self._operations(doubtful)

            def passed(table: str) -> list[Request]:
                """Those to the partitions of a table that are not simulated."""
                known = map(places.__getitem__, sums)
                return self._operations({at for at in known if at[0] == table} - doubtful)

            for simulation in self._simulations():
                simulation.simulate(second, operations, passed)
        if not self._brief:
            self._count(second, sums)
            if self._physical is not None:
                self._physical.add(second, self.once.physical(demand))
        self._sums, self._waiting = {}, []

    def _draw(self, part: Loads) -> None:
        """Bring operations into the heat map, whose seconds are not those of the simulation."""
        drawn = self._drawn
        drawable: Iterable[tuple[int, str, int]] = zip(
            part.instants, part.names, part.amounts, strict=True
        )
        if part.paged_scans:
            drawable = heapq.merge(drawable, part.shares(), key=operator.itemgetter(0))
        for at_ms, name, count in drawable:
            if at_ms >= (self._drawn_second + 1) * 1000:
                self._paint(self._started_s + self._drawn_second, drawn)
                drawn = self._drawn = {}
                self._drawn_second = at_ms // 1000
            if count:
                drawn[name] = drawn.get(name, 0) + count

    def _paint(self, moment: int, sums: Mapping[str, int]) -> None:
        """Bring a second into the heat map."""
        if self._scale > 1:
            sums = {name: max(1, count // self._scale) for name, count in sums.items()}
        self._heat.add_second(moment, sums)

    def _count(self, second: int, sums: dict[str, int]) -> None:
        if 0 in sums.values():
            sums = {name: count for name, count in sums.items() if count}
        moment = self._started_s + int((self._first_ms or 0) / 1000 + second * self._rate)
        if self._rate == 1:
            self._paint(moment, sums)
        for place, number in self.once.throttled.items():
            self._heat.add_throttled(name_of(place), moment, number)
        over = [name for name in self._rekeying.cross_partition if name in sums]
        by_partition = sums
        if over:
            by_partition = {name: sums[name] for name in sums if name not in over}
        scanned = sum(sums[name] for name in over)
        self._entities += sum(sums.values())
        self._peaks.add(second, by_partition, scanned)
        known = self._counted
        for name, count in by_partition.items():
            if name in known:
                known[name] += count
            else:
                known[name] = count
        if len(known) > _COUNTED_TOGETHER:
            self._settle()

    def _settle(self) -> None:
        """Bring the counts of the latest seconds to those of the whole trace."""
        self._weights.access_all(self._counted)
        self._partitions.add(self._counted)
        self._counted = {}

    def _operations(self, doubtful: Set[Place]) -> list[Request]:
        """The operations of the second to some partitions."""
        known, scale = self._rekeying.places, 1 / (1000 * self._rate)
        first_ms = self._first_ms or 0
        places = {name: place for name in self._sums if (place := known[name]) in doubtful}
        found: list[Request] = []
        for part in self._waiting:
            effects = part.effects
            shifts = [] if effects is None else effects.shifts
            for at_ms, name, count, at in zip(*part[:4], strict=True):
                if name not in places:
                    continue
                at_s, place = (at_ms - first_ms) * scale, places[name]
                if effects is None or at < 0:
                    found.append((at_s, FIRST, place, 1, count, 0, None))
                else:
                    found.append((at_s, FIRST, place, 1, count, shifts[at], (effects, at)))
        return found
