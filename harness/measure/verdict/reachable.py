"""The range of values with which a quantity can end, while its run goes on.

Only certain facts count: sums never shrink, and a run cannot exceed its extent. The rate so far
proves nothing. All other quantities can end with any value, such as an upper bound of a rate, a
quantity of one partition (a heavier partition may replace it in the counts), and the held share of
the wanted rate.
"""

from __future__ import annotations

import dataclasses
from math import inf, nextafter

from harness.measure.counts.latency import BUCKETS_S, CountedLatency
from harness.measure.counts.snapshot import CountedOperation, Snapshot
from harness.measure.record.measured import RatesPart
from harness.measure.verdict.quantities import PERCENTILES, Facts, Form, share_of


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """Upper bounds of a whole run, known before it starts. None is no bound.

    Attributes:
        window_s: Length of the measured window in whole seconds; a run may end before.
        operations: Operations that can become due.
        attempts: Attempts, including retries and pages.
    """

    window_s: int
    operations: int | None = None
    attempts: int | None = None


_ANYTHING = (-inf, inf)


def reachable(
    form: Form, name: str, snapshot: Snapshot, facts: Facts, extent: Extent
) -> tuple[float, float]:
    """The lowest and the highest value with which a quantity can end, in its unit.

    ``snapshot`` and ``facts`` are those so far; ``name`` is the operation, if the form has one.
    """
    if form.metric == "lost_writes":
        return (float(facts.lost_writes or 0), inf)
    if (share := share_of(form, name, snapshot)) is not None:
        most = extent.attempts if share.of == "attempts" else extent.operations
        return _share(share.part, share.rest, most)
    if form.by == "partition":
        return _ANYTHING
    holder: Snapshot | CountedOperation | None = snapshot
    if form.by:
        holder = next((part for part in snapshot.operations if part.kind == name), None)
    if holder is None or form.of == "partition":
        return _ANYTHING
    if form.metric == "entities_per_s":
        rates = holder.entities_per_s if form.by else snapshot.account_rates
        return _rate(rates, snapshot, extent)
    if form.metric == "ru_per_s":
        units = holder.request_units
        if units is None:
            return _ANYTHING
        rates = snapshot.account_request_units if form.of == "account" else units.per_s
        return _rate(rates, snapshot, extent, digits=2)
    for percentile in PERCENTILES:
        if form.metric == f"p{percentile}":
            return _percentile(percentile, getattr(holder, f"{form.of}_ms"), snapshot, extent)
    return _ANYTHING


def _share(part: int, never: int, most: int | None) -> tuple[float, float]:
    """The share of ``part`` in a growing whole of at most ``most``, whose rest is ``never``."""
    if most is None:
        # Without a bound the share can come close to 0 or 1, but not back to it.
        return (nextafter(0.0, 1.0) if part else 0.0, nextafter(1.0, 0.0) if never else 1.0)
    most = max(most, part + never, 1)
    return part / most, (most - never) / most


def _rate(
    rates: RatesPart, snapshot: Snapshot, extent: Extent, digits: int = 0
) -> tuple[float, float]:
    """Mean rate: what was counted in the window remains, and the window ends.

    Entities are whole; request units have two ``digits``.
    """
    so_far_s = max(0, snapshot.length_s)
    counted = round(rates.mean * so_far_s, digits)
    return counted / max(extent.window_s, so_far_s, 1), inf


def _percentile(
    percentile: int, view: CountedLatency | None, snapshot: Snapshot, extent: Extent
) -> tuple[float, float]:
    """A percentile in ms: it stays above a bound that too many latencies exceeded already."""
    if view is None or extent.operations is None:
        return (0.0, inf)
    to_come = max(0, extent.operations - sum(snapshot.outcomes.values()))
    # At most this many latencies are above the percentile at the end; see `LatencyHistogram.view`.
    most_above = (view.count + to_come) * (100 - percentile) // 100
    exceeded = (
        bound
        for bound, at_most in zip(BUCKETS_S, view.buckets, strict=True)
        if view.count - at_most > most_above
    )
    return max(exceeded, default=0.0) * 1000.0, inf
