"""The traffic of a trace under several key schemes, held against limits in simulated time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.gateway.limits import GatewayLimits
from harness.measure.record.whatif import FirstLimitPart, SchemePart, WhatIfRecord
from harness.model.errors import SetupError, cut
from harness.trace.reader import Trace
from harness.trace.whatif.projection import BACKOFF, Projection
from harness.trace.whatif.scheme import Scheme, as_recorded
from harness.trace.whatif.simulation import Throttling

_MOST_FACTOR = 10_000.0
_LEAST_FACTOR = 0.001
_MOST_LISTED = 10
_ACCURACY = 1.05
"""The factor at which a limit is met is found to within 5 %."""

Progress = Callable[[str, int], None]
"""Is told the name of a step, and how many operations were read since it was told last."""


def what_if(
    trace: Trace,
    schemes: Sequence[Scheme],
    limits: GatewayLimits,
    *,
    name: str,
    limits_name: str,
    rate: float = 1.0,
    factors: bool = False,
    version: str = "",
    progress: Progress = lambda step, operations: None,
) -> WhatIfRecord:
    """The recorded keys and ``schemes`` side by side.

    Args:
        name: Name of the trace in outputs.
        rate: Multiple of the recorded traffic.
        factors: Also find the multiple at which each scheme meets its first limit.
        version: Version of the harness.

    Raises:
        SetupError: the trace has no operation, or none on the table of a scheme.
    """
    started_s = trace.head.started_ms // 1000
    parts: list[SchemePart] = []
    seconds = 0
    tables: set[str] = set()
    for scheme in (as_recorded(), *schemes):
        projection = Projection(scheme, limits, rate=rate, started_s=started_s)
        for batch in trace.batches():
            projection.add(batch)
            progress(scheme.name, len(batch))
            if not parts:
                tables.update(shape.table for shape in batch.shapes)
            seconds = max(seconds, batch.at_ms[-1] // 1000 + 1)
        if not parts:
            _require_tables(trace, schemes, tables)
        part = projection.finish()
        if factors:
            first = _first_limit(trace, scheme, limits, part, rate, progress)
            part = part.model_copy(update={"first_limit": first})
        parts.append(part)
    return WhatIfRecord(
        harness_version=version,
        trace=name,
        started_at=started_s,
        seconds=seconds,
        rate=rate,
        limits=limits_name,
        partition_per_s=limits.partition.entities_per_s,
        account_per_s=limits.account.entities_per_s,
        retry=f"{BACKOFF.retries} retries, {BACKOFF.backoff_s:g} s doubling, "
        f"at most {BACKOFF.maximum_s:g} s",
        factors=factors,
        damage=tuple(trace.damage.sentences()),
        schemes=tuple(parts),
    )


def _require_tables(trace: Trace, schemes: Sequence[Scheme], tables: set[str]) -> None:
    if not tables:
        raise SetupError(f"{cut(trace.path.name)} has no readable operation")
    for scheme in schemes:
        if not any(scheme.applies_to(table) for table in tables):
            if tables == {""}:
                raise SetupError(
                    f"key scheme {scheme.name}: the trace has one table and does not name it: "
                    "leave out `table`"
                )
            listed = ", ".join(repr(table) for table in sorted(tables)[:_MOST_LISTED])
            raise SetupError(
                f"key scheme {scheme.name}: the trace has no table {scheme.table!r}; it has "
                f"{cut(listed)}"
            )


def _first_limit(
    trace: Trace,
    scheme: Scheme,
    limits: GatewayLimits,
    part: SchemePart,
    rate: float,
    progress: Progress,
) -> FirstLimitPart | None:
    """The least multiple of the traffic that is throttled, by bisection; None if there is none."""
    # A limit that the best second meets is met sooner or later; a burst may still pass.
    shares = [
        part.partition_peaks[0].entities_per_s / limits.partition.entities_per_s,
        part.account_peaks[0].entities_per_s / limits.account.entities_per_s,
    ]
    if not max(shares):
        return None

    def throttled_at(factor: float) -> Throttling | None:
        projection = Projection(scheme, limits, rate=factor, started_s=0, until_throttled=True)
        for batch in trace.batches():
            projection.add(batch)
            progress(f"{scheme.name}, traffic x {factor:.3g}", len(batch))
            if projection.throttling.throttled:
                break
        return projection.throttling if projection.throttled() else None

    passing = failing = rate
    if part.once.throttled:
        while (found := throttled_at(passing)) is not None and passing > _LEAST_FACTOR:
            failing, last = passing, found
            passing /= 2
    else:
        guess = rate / max(shares)
        failing = max(guess, rate * _ACCURACY)
        while (found := throttled_at(failing)) is None:
            if failing > _MOST_FACTOR:
                return None
            passing, failing = failing, failing * 1.5
        last = found
    while failing / passing > _ACCURACY:
        middle = (passing * failing) ** 0.5
        if (found := throttled_at(middle)) is None:
            passing = middle
        else:
            failing, last = middle, found
    return FirstLimitPart(
        factor=failing,
        entities_per_s=part.account_peaks[0].entities_per_s * failing / rate,
        rule=last.first_rule,
        partition=last.first_partition,
    )
