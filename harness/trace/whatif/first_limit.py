"""The multiple of recorded traffic at which a limit is met first.

A burst passes whatever the limits are, so that compressed traffic of a moment would meet none. A
trace that is shorter than the longest window of the peaks is therefore repeated in simulated time.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.gateway.limits import GatewayLimits
from harness.measure.record.whatif import FirstLimitPart, SchemePart, WhatIfRecord
from harness.trace.reader import Trace
from harness.trace.whatif.projection import WINDOWS_S, Progress, Projection
from harness.trace.whatif.rekeying import Rekeying
from harness.trace.whatif.rows_before import RowsBefore
from harness.trace.whatif.scheme import Scheme
from harness.trace.whatif.units import Loads, unit_of

_LEAST_FACTOR = 0.001
_STEP = 1.5
_ACCURACY = 1.05
"""The factor at which a limit is met is found to within 5 %."""
_LEAST_S = WINDOWS_S[-1]
_MOST_REPEATED = 300_000
"""Operations from which on a trace is not repeated: a minute at a high multiple has millions."""
_MOST_KEPT = 200_000
"""Operations whose loads are kept for the next factor."""


def first_limit(
    trace: Trace,
    scheme: Scheme,
    limits: GatewayLimits,
    part: SchemePart,
    record: WhatIfRecord,
    *,
    rows: bool,
    before: RowsBefore | None = None,
    progress: Progress,
) -> FirstLimitPart | None:
    """The least multiple of the traffic that is throttled, by bisection.

    None if there is none up to that of the record.

    Args:
        part: The traffic under this scheme at the rate of the record.
        rows: As of a `Rekeying`, with ``before``.
    """
    shares = [
        part.partition_peaks[0].per_s / record.partition_per_s,
        part.account_peaks[0].per_s / record.account_per_s,
    ]
    if record.physical is not None:
        shares.append(part.physical_peaks[0].per_s / record.physical.per_s)
    if not max(shares):
        return None
    traffic = _Traffic(trace, scheme, limits, rows=rows, before=before, progress=progress)
    most = record.most_factor
    factor = min(most, max(_LEAST_FACTOR, record.rate / max(shares)))
    passing, failing, found = 0.0, 0.0, traffic.throttled_at(factor)
    last = found
    while found is not None and factor > _LEAST_FACTOR:
        failing, last = factor, found
        factor /= _STEP
        found = traffic.throttled_at(factor)
    passing = factor
    while last is None:
        if factor >= most:
            return None
        passing, factor = factor, min(most, factor * _STEP)
        failing, last = factor, traffic.throttled_at(factor)
    while failing / passing > _ACCURACY:
        middle = (passing * failing) ** 0.5
        found = traffic.throttled_at(middle)
        if found is None:
            passing = middle
        else:
            failing, last = middle, found
    throttling = last.throttling
    return FirstLimitPart(
        factor=failing,
        per_s=last.most_per_s,
        rule=throttling.first_rule,
        partition=throttling.first_partition,
    )


class _Traffic:
    """A trace under a scheme, at any rate."""

    def __init__(
        self,
        trace: Trace,
        scheme: Scheme,
        limits: GatewayLimits,
        *,
        rows: bool,
        before: RowsBefore | None,
        progress: Progress,
    ) -> None:
        self._trace, self._scheme, self._limits = trace, scheme, limits
        self._rows, self._before, self._progress = rows, before, progress
        self._rekeying = self._rekeyed()
        self._kept: list[Loads] | None = None
        if trace.operations <= _MOST_KEPT:
            self._kept = [self._rekeying.loads(batch) for batch in trace.batches()]

    def throttled_at(self, factor: float) -> Projection | None:
        """The traffic until its first throttled attempt; None if nothing is throttled."""
        projection = Projection(
            self._scheme,
            self._limits,
            rate=factor,
            started_s=0,
            rekeying=self._rekeying if self._kept is not None else self._rekeyed(),
            until_throttled=True,
        )
        for loads in self._repeated(factor, projection):
            projection.feed(loads)
            self._progress(f"{self._scheme.name}, traffic x {factor:.3g}", len(loads.instants))
            if projection.throttling.throttled:
                break
        return projection if projection.throttled() else None

    def _rekeyed(self) -> Rekeying:
        unit = unit_of(self._limits, self._trace.head)
        return Rekeying(self._scheme, unit, rows=self._rows, before=self._before)

    def _repeated(self, factor: float, projection: Projection) -> Iterator[Loads]:
        """The loads, repeated until they last as long as the longest window."""
        shift = repeated = 0
        while True:
            first = last = count = 0
            for loads in self._kept or map(projection.rekeyed, self._trace.batches()):
                if not loads.instants:
                    continue
                first = first if count else loads.instants[0]
                last, count = loads.instants[-1], count + len(loads.instants)
                yield loads.later(shift)
            # The last operation takes as long as each of the others.
            shift += max(1000, (last - first) * count // max(1, count - 1))
            repeated += count
            if shift / (1000 * factor) >= _LEAST_S or repeated > _MOST_REPEATED or not count:
                return
