"""One key scheme: the trace under its keys, before the limits, summed up second by second."""

from __future__ import annotations

import bisect
import dataclasses

from datasketches import hll_sketch

from harness.gateway.limits import GatewayLimits
from harness.measure.counts.heatmap import HeatMap
from harness.measure.counts.heavy_hitters import Weights
from harness.measure.record.whatif import (
    HotPart,
    PeakPart,
    PricePart,
    SchemePart,
    SimulatedPart,
)
from harness.model.operation import over_partitions
from harness.trace.operations import Batch
from harness.trace.whatif.peaks import PeakRate, Peaks
from harness.trace.whatif.rekeying import Rekeying
from harness.trace.whatif.scheme import Scheme, sample_lines
from harness.trace.whatif.simulation import STEPS_A_SECOND, Simulation, Throttling
from harness.workload.retry import ExponentialBackoff

BACKOFF = ExponentialBackoff(retries=3, backoff_s=0.5, minimum_s=0.1, maximum_s=8.0)
"""The back-off of the shipped profiles."""
_SEED = 1
_EXACT_PARTITIONS = 50_000
_SKETCH_LOG2 = 14
_HOTTEST = 5


class _Partitions:
    """The number of partitions: exact up to 50,000, above that an estimate in fixed memory."""

    def __init__(self) -> None:
        self._exact: set[str] = set()
        self._sketch: hll_sketch | None = None

    @property
    def estimated(self) -> bool:
        return self._sketch is not None

    @property
    def count(self) -> int:
        if self._sketch is not None:
            return int(self._sketch.get_estimate() + 0.5)
        return len(self._exact)

    def add(self, name: str) -> None:
        if self._sketch is not None:
            self._sketch.update(name)
            return
        self._exact.add(name)
        if len(self._exact) > _EXACT_PARTITIONS:
            self._sketch = hll_sketch(_SKETCH_LOG2)
            for known in self._exact:
                self._sketch.update(known)
            self._exact.clear()


class Projection:
    """Takes the batches of a trace in order; `finish` ends it.

    Args:
        rate: Multiple of the recorded traffic: the instants are divided by it.
        started_s: UTC second at which the trace starts.
        until_throttled: Stop at the first throttled attempt, and keep nothing else.
    """

    def __init__(
        self,
        scheme: Scheme,
        limits: GatewayLimits,
        *,
        rate: float,
        started_s: int,
        until_throttled: bool = False,
    ) -> None:
        self._rekeying = Rekeying(scheme)
        self._rate = rate
        self._started_s = started_s
        self._brief = until_throttled
        self._peaks = Peaks()
        self._heat = HeatMap()
        self._weights = Weights()
        self._partitions = _Partitions()
        self._entities = 0
        self._once = Simulation(limits, None, _SEED)
        self._retried: Simulation | None = None
        self._second = 0
        self._sums: dict[str, int] = {}
        self._waiting: list[tuple[list[int], list[str], list[int]]] = []

    @property
    def throttling(self) -> Throttling:
        """What the limits did so far if no operation is retried."""
        return self._once.throttling

    def throttled(self) -> bool:
        """Whether an attempt was throttled; ends the current second."""
        self._close()
        return self._once.throttling.throttled > 0

    def add(self, batch: Batch) -> None:
        instants, names, counts = self._rekeying.loads(batch)
        start, length = 0, len(instants)
        while start < length:
            end_ms = (self._second + 1) * 1000 * self._rate
            end = bisect.bisect_left(instants, end_ms, lo=start)
            if end > start:
                part = instants[start:end], names[start:end], counts[start:end]
                self._waiting.append(part)
                sums = self._sums
                get = sums.get
                for name, count in zip(part[1], part[2], strict=True):
                    sums[name] = get(name, 0) + count
            if end < length:
                self._close()
                self._second = max(self._second + 1, int(instants[end] / (1000 * self._rate)))
                if self._brief and self.throttling.throttled:
                    return
            start = end

    def finish(self) -> SchemePart:
        """The last second and all retries; everything summed up."""
        self._close()
        self._second += 1
        for simulation in self._simulations():
            simulation.finish(self._second)
        scheme, price = self._rekeying.scheme, self._rekeying.price
        collisions = self._rekeying.collisions
        hottest = self._weights.heaviest(_HOTTEST)
        whole = max(1, self._entities)
        return SchemePart(
            name=scheme.name,
            question=scheme.question,
            sample=tuple(sample_lines(scheme, self._rekeying.samples)),
            entities=self._entities,
            partitions=self._partitions.count,
            partitions_estimated=self._partitions.estimated,
            partition_peaks=_peaks(self._peaks.partition),
            account_peaks=_peaks(self._peaks.account),
            hot=tuple(
                HotPart(partition=name, at_least=least / whole, at_most=most / whole)
                for name, (least, most) in hottest.items()
            ),
            once=_throttling(self._once),
            retried=_throttling(self._retried or self._once),
            price=PricePart(
                **dataclasses.asdict(price),
                collisions=collisions.count,
                collisions_estimated=collisions.estimated,
            ),
            heat=self._heat.view(),
        )

    def _simulations(self) -> list[Simulation]:
        return [self._once] if self._retried is None else [self._once, self._retried]

    def _close(self) -> None:
        """Count and simulate the second that is complete."""
        sums, second = self._sums, self._second
        if not sums:
            return
        operations = sum(len(names) for _, names, _ in self._waiting)
        steps: dict[int, dict[str, list[int]]] | None = None
        if self._retried is None and not self._once.passes(second, sums, operations):
            # Until now nothing was refused, so that retries made no difference.
            if not self._brief:
                self._retried = self._once.forked(BACKOFF)
            steps = self._steps()
            for simulation in self._simulations():
                simulation.step_through(second, steps)
        elif self._retried is not None:
            for simulation in (self._once, self._retried):
                if not simulation.passes(second, sums, operations):
                    steps = self._steps() if steps is None else steps
                    simulation.step_through(second, steps)
        if not self._brief:
            self._count(second, sums)
        self._sums, self._waiting = {}, []

    def _count(self, second: int, sums: dict[str, int]) -> None:
        self._peaks.add(second, sums)
        moment = self._started_s + second
        for name, count in sums.items():
            self._entities += count
            if count:
                self._heat.add(name, moment, count)
            if not over_partitions(name):
                self._weights.access(name, count)
                self._partitions.add(name)
        for name, number in self._once.throttled.items():
            self._heat.add_throttled(name, moment, number)

    def _steps(self) -> dict[int, dict[str, list[int]]]:
        """The operations of the second by step and partition."""
        steps: dict[int, dict[str, list[int]]] = {}
        width_ms = 1000 / STEPS_A_SECOND * self._rate
        for instants, names, counts in self._waiting:
            for at_ms, name, count in zip(instants, names, counts, strict=True):
                step = steps.setdefault(int(at_ms / width_ms), {})
                known = step.get(name)
                if known is None:
                    step[name] = [count]
                else:
                    known.append(count)
        return steps


def _peaks(peaks: dict[int, PeakRate]) -> tuple[PeakPart, ...]:
    return tuple(
        PeakPart(
            width_s=width_s,
            entities_per_s=peak.entities_per_s,
            at_s=peak.at_s,
            partition=peak.partition,
        )
        for width_s, peak in peaks.items()
    )


def _throttling(simulation: Simulation) -> SimulatedPart:
    found = simulation.throttling
    return SimulatedPart(
        attempts=found.attempts,
        by_rule=found.by_rule,
        failed=found.failed,
        moves=simulation.moves,
        first_s=found.first_s,
        first_partition=found.first_partition,
    )
