"""The multiple of recorded traffic at which a limit is met first.

A burst passes whatever the limits are, so that compressed traffic of a moment would meet none. A
trace that is shorter than the longest window of the peaks is therefore repeated in simulated time.
"""

from __future__ import annotations

import dataclasses
import functools
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
ACCURACY = 1.05
"""The factor at which a limit is met is found to within 5 %."""
_LEAST_S = WINDOWS_S[-1]
_MOST_REPEATED = 300_000
"""Operations from which on a trace is not repeated: a minute at a high multiple has millions."""
_MOST_KEPT = 200_000
"""Operations whose loads are kept for the next factor."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class RekeyedTraffic:
    """A trace under a scheme before limits, at any rate.

    Attributes:
        rows: As of a `Rekeying`, with ``before``.
    """

    trace: Trace
    scheme: Scheme
    limits: GatewayLimits
    rows: bool
    before: RowsBefore | None
    progress: Progress

    def rekeying(self) -> Rekeying:
        unit = unit_of(self.limits, self.trace.head)
        return Rekeying(self.scheme, unit, rows=self.rows, before=self.before)

    def throttled_at(self, factor: float) -> Projection | None:
        """The traffic until its first throttled attempt; None if nothing is throttled."""
        rekeying = self.rekeying() if self._kept is None else self._kept[0]
        projection = Projection(
            rekeying, self.limits, rate=factor, started_s=0, until_throttled=True
        )
        for loads in self._repeated(factor, projection):
            projection.feed(loads)
            self.progress(f"{self.scheme.name}, traffic x {factor:.3g}", len(loads.instants))
            if projection.once.throttling.throttled:
                break
        return projection if projection.throttled() else None

    @functools.cached_property
    def _kept(self) -> tuple[Rekeying, list[Loads]] | None:
        """The loads of a trace that is not too long for it."""
        if self.trace.operations > _MOST_KEPT:
            return None
        rekeying = self.rekeying()
        return rekeying, [rekeying.loads(batch) for batch in self.trace.batches()]

    def _repeated(self, factor: float, projection: Projection) -> Iterator[Loads]:
        """The loads, repeated until they last as long as the longest window."""
        shift = repeated = 0
        while True:
            first = last = count = 0
            kept = map(projection.rekeyed, self.trace.batches())
            for loads in kept if self._kept is None else self._kept[1]:
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


def first_limit(
    traffic: RekeyedTraffic, part: SchemePart, record: WhatIfRecord
) -> FirstLimitPart | None:
    """The least multiple of the traffic that is throttled, by bisection.

    None if there is none up to that of the record.

    Args:
        part: The traffic at the rate of the record.
    """
    shares = [
        part.account_peaks[0].per_s / record.account_per_s,
        *(
            peaks[0].per_s / record.partition_per_s
            for peaks in (part.partition_peaks, part.physical_peaks)
            if peaks
        ),
    ]
    if not max(shares):
        return None
    most = record.most_factor
    factor = min(most, max(_LEAST_FACTOR, record.rate / max(shares)))
    passing = failing = 0.0
    last: Projection | None = None
    while True:
        found = traffic.throttled_at(factor)
        if found is None:
            passing = factor
        else:
            failing, last = factor, found
        if last is None:
            if factor >= most:
                return None
            factor = min(most, factor * _STEP)
        elif not passing and factor > _LEAST_FACTOR:
            factor /= _STEP
        elif not passing or failing / passing <= ACCURACY:
            break
        else:
            factor = (passing * failing) ** 0.5
    return FirstLimitPart(
        # However slow the traffic is: what one query scans, or what comes at one instant, is more.
        factor=failing if passing else 0.0,
        per_s=last.most_per_s,
        rule=last.once.first_rule,
        partition=last.once.throttling.first_partition,
    )
