"""The traffic of a trace under several key schemes, held against limits in simulated time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from harness.gateway.limits import GatewayLimits
from harness.measure.record.whatif import FirstLimitPart, PhysicalPart, SchemePart, WhatIfRecord
from harness.measure.verdict.ranking import ranked
from harness.model.errors import SetupError, cut
from harness.model.operation import Kind
from harness.trace.operations import ASSUMED_PROPERTIES
from harness.trace.reader import Trace
from harness.trace.whatif.projection import BACKOFF, Projection
from harness.trace.whatif.scheme import Scheme, as_recorded, require_table
from harness.trace.whatif.simulation import Throttling
from harness.trace.whatif.units import unit_of

_MOST_FACTOR = 10_000.0
_LEAST_FACTOR = 0.001
_ACCURACY = 1.05
"""The factor at which a limit is met is found to within 5 %."""

Progress = Callable[[str, int], None]
"""Is told the name of a step, and how many operations were read since it was told last."""


def _capacity(limits: GatewayLimits) -> dict[str, Any]:
    """The fields of a `WhatIfRecord` about what the limits allow in a second."""
    if (units := limits.units) is None:
        return {
            "partition_per_s": limits.partition.entities_per_s,
            "account_per_s": limits.account.entities_per_s,
        }
    return {
        "unit": "RU",
        "partition_per_s": units.partition_ru_per_s,
        "account_per_s": units.provisioned_ru_per_s,
        "physical": PhysicalPart(
            count=units.physical_partitions,
            per_s=min(units.throughput.partition_ru_per_s, units.partition_ru_per_s),
            properties=ASSUMED_PROPERTIES,
        ),
    }


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
        factors: Also find the multiple at which each scheme meets its first limit.

    Raises:
        SetupError: the trace has no operation, or none on the table of a scheme.
    """
    started_s = trace.head.started_ms // 1000
    record = WhatIfRecord(
        harness_version=version,
        trace=name,
        started_at=started_s,
        seconds=0.0,
        rate=rate,
        limits=limits_name,
        retry=f"{BACKOFF.retries} retries, {BACKOFF.backoff_s:g} s doubling, "
        f"at most {BACKOFF.maximum_s:g} s",
        factors=factors,
        schemes=(),
        **_capacity(limits),
    )
    # An upsert of a row that is there costs more request units; entities count in queries alone.
    rows = limits.units is not None or _has_queries(trace)
    parts: list[SchemePart] = []
    first_ms = last_ms = 0
    tables: set[str] = set()
    for scheme in (as_recorded(), *schemes):
        unit = unit_of(limits, trace.head)
        projection = Projection(
            scheme, limits, rate=rate, started_s=started_s, unit=unit, rows=rows
        )
        for batch in trace.batches():
            projection.add(batch)
            progress(scheme.name, len(batch))
            if not parts:
                if not tables:
                    first_ms = batch.at_ms[0]
                tables.update(shape.table for shape in batch.shapes)
            last_ms = batch.at_ms[-1]
        if not parts:
            if not tables:
                raise SetupError(f"{cut(trace.path.name)} has no readable operation")
            for tried in schemes:
                require_table(tried, tables)
        part = projection.finish()
        if factors:
            first = _first_limit(trace, scheme, limits, part, record, rows, progress)
            part = part.model_copy(update={"first_limit": first})
        parts.append(part)
    found = {
        "seconds": (last_ms - first_ms) / 1000,
        "damage": tuple(trace.damage.sentences()),
        "schemes": ranked(parts),
    }
    return record.model_copy(update=found)


def _has_queries(trace: Trace) -> bool:
    """Whether a trace has a query; it is read until the first one."""
    return any(shape.kind is Kind.QUERY for batch in trace.batches() for shape in set(batch.shapes))


def _first_limit(
    trace: Trace,
    scheme: Scheme,
    limits: GatewayLimits,
    part: SchemePart,
    record: WhatIfRecord,
    rows: bool,
    progress: Progress,
) -> FirstLimitPart | None:
    """The least multiple of the traffic that is throttled, by bisection; None if there is none."""
    # A limit that the best second meets is met sooner or later; a burst may still pass.
    rate = record.rate
    shares = [
        part.partition_peaks[0].per_s / record.partition_per_s,
        part.account_peaks[0].per_s / record.account_per_s,
    ]
    if record.physical is not None:
        shares.append(part.physical_peaks[0].per_s / record.physical.per_s)
    if not max(shares):
        return None

    def throttled_at(factor: float) -> Throttling | None:
        unit = unit_of(limits, trace.head)
        projection = Projection(
            scheme, limits, rate=factor, started_s=0, unit=unit, rows=rows, until_throttled=True
        )
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
        per_s=part.account_peaks[0].per_s * failing / rate,
        rule=last.first_rule,
        partition=last.first_partition,
    )
