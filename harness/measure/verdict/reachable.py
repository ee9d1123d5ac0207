"""Which values a quantity of a run that goes on can still end with.

Only what is certain counts: sums only grow, a run cannot come to more than its extent, and nothing
is concluded from how fast anything went so far. What is not named here can end anywhere: rates
that are wanted to be high, what is said of one partition (its row may yet give way to a heavier
one), and the share of the wanted rate that is held.
"""

from __future__ import annotations

import dataclasses
from math import inf, nextafter

from harness.measure.counts.latency import BUCKETS_S
from harness.measure.counts.snapshot import Snapshot
from harness.measure.record.record import LatencyPart, RatesPart
from harness.measure.verdict.quantities import (
    PERCENTILES,
    Facts,
    Form,
    ambiguous_operations,
    failed_operations,
)
from harness.model.outcome import Scope, throttled_of


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """The most that a whole run can come to, known before it is sent.

    Attributes:
        window_s: Length of the measured window, in whole seconds; a run may end before.
        operations: The most that can become due; None where nothing bounds them.
        attempts: The most that can be counted, each retry and page one; None where nothing bounds
            them.
    """

    window_s: int
    operations: int | None = None
    attempts: int | None = None


_ANYTHING = (-inf, inf)


def reachable(
    form: Form, name: str, snapshot: Snapshot, facts: Facts, extent: Extent
) -> tuple[float, float]:
    """The least and the greatest value with which a quantity can end, in its unit.

    Args:
        form: The quantity.
        name: The operation it is asked of, where the form names one.
        snapshot: What was counted so far, with the window so far.
        facts: What was found out elsewhere so far.
        extent: The most that the run can come to.
    """
    if form.metric == "lost_writes":
        return (float(facts.lost_writes or 0), inf)
    if form.metric == "dropped_ratio":
        counts = snapshot.counts
        return _share(counts.dropped, counts.sent, extent.operations)
    if form.metric in ("failed_ratio", "ambiguous_ratio"):
        ambiguous = form.metric == "ambiguous_ratio"
        failed = ambiguous_operations(snapshot) if ambiguous else failed_operations(snapshot)
        done = sum(snapshot.outcomes.values())
        return _share(failed, done - failed, extent.operations)
    if form.by == "partition":
        return _ANYTHING
    if form.metric == "throttled_ratio":
        throttled = throttled_of(snapshot.attempts, Scope(form.of) if form.of else None)
        return _share(throttled, snapshot.counts.attempts - throttled, extent.attempts)
    holders = [view for view in snapshot.operations if view.kind == name] if form.by else [snapshot]
    if not holders:
        return _ANYTHING
    [holder] = holders
    if form.metric == "entities_per_s":
        rates = holder.entities_per_s
        return _ANYTHING if form.of == "partition" else _rate(rates, snapshot, extent)
    for percentile in PERCENTILES:
        if form.metric == f"p{percentile}":
            return _percentile(percentile, getattr(holder, f"{form.of}_ms"), snapshot, extent)
    return _ANYTHING


def _share(part: int, never: int, most: int | None) -> tuple[float, float]:
    """The share of a part, of which there are so many already, in a whole that grows.

    Args:
        part: What counts already.
        never: What is in the whole already and will never count.
        most: What the whole can come to.
    """
    if most is None:
        # Infinitely many more of either sort bring it near either end, but not back to it.
        return (nextafter(0.0, 1.0) if part else 0.0, nextafter(1.0, 0.0) if never else 1.0)
    most = max(most, part + never, 1)
    return part / most, (most - never) / most


def _rate(rates: RatesPart, snapshot: Snapshot, extent: Extent) -> tuple[float, float]:
    """Mean entities a second: what was counted in the window remains, and the window ends."""
    so_far_s = max(0, snapshot.end - snapshot.start)
    entities = round(rates.mean * so_far_s)
    return entities / max(extent.window_s, so_far_s, 1), inf


def _percentile(
    percentile: int, view: LatencyPart | None, snapshot: Snapshot, extent: Extent
) -> tuple[float, float]:
    """A percentile in milliseconds: it stays above a bound that too many were above already."""
    if view is None or extent.operations is None:
        return (0.0, inf)
    to_come = max(0, extent.operations - sum(snapshot.outcomes.values()))
    # So many may be above the percentile at the end; see `LatencyHistogram.view`.
    most_above = (view.count + to_come) * (100 - percentile) // 100
    exceeded = (
        bound
        for bound, at_most in zip(BUCKETS_S, view.buckets, strict=True)
        if view.count - at_most > most_above
    )
    return max(exceeded, default=0.0) * 1000.0, inf
