"""The traffic of a trace under several key schemes, held against limits in simulated time."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from harness.gateway.limits import GatewayLimits
from harness.measure.record.whatif import PhysicalPart, SchemePart, WhatIfRecord
from harness.measure.verdict.ranking import ranked
from harness.model.errors import SetupError, cut
from harness.trace.operations import ASSUMED_PROPERTIES
from harness.trace.reader import Trace
from harness.trace.row_properties import moves
from harness.trace.whatif.first_limit import RekeyedTraffic, first_limit
from harness.trace.whatif.projection import BACKOFF, DRAWS, Progress, Projection
from harness.trace.whatif.rows_before import need_counts, require_rows_of, rows_before
from harness.trace.whatif.scheme import Scheme, as_recorded, require_properties, require_table

_NO_ORDER = (
    "Keys are aliases without the order of the keys: a query over a range of them counts what it "
    "scanned."
)
_MOST_DRAWN = 20_000
"""Of a longer trace, one draw of the waits says enough: chance averages out."""


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
    most_factor: float = 0.0,
    version: str = "",
    rows_said: Mapping[str, int] = MappingProxyType({}),
    recorded: bool = True,
    backoff: bool = True,
    progress: Progress = lambda step, operations: None,
) -> WhatIfRecord:
    """The recorded keys and ``schemes`` side by side.

    Args:
        trace: It shows rows (`harness.trace.row_properties`) if keys are made of properties.
        most_factor: Also find the multiple, up to this one, at which each scheme meets its first
            limit.
        rows_said: How many rows tables had before the trace; see `rows_before`.
        recorded: Whether the recorded keys come first; who joins schemes without them ranks them.
        backoff: Also calculate with retries.

    Raises:
        SetupError: the trace has no operation, none on the table of a scheme, or no values of its
            properties.
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
        most_factor=most_factor,
        schemes=(),
        **_capacity(limits),
    )
    for scheme in schemes:
        require_properties(scheme, trace.properties)
    # An upsert of a row that is there costs more request units; entities count in queries alone.
    rows = limits.units is not None or next(trace.queries(), None) is not None
    parts: list[SchemePart] = []
    first_ms = last_ms = 0
    tables: set[str] = set()
    every = ([as_recorded()] if recorded else []) + [*schemes]
    draws = (DRAWS if trace.operations <= _MOST_DRAWN else 1) if backoff else 0
    # Ranges of aliases without order have no rows.
    ordered = trace.head.keeps_order
    needed = need_counts(trace, every) if ordered else [False] * len(every)
    counted = rows_before(trace, rows_said, progress) if any(needed) else None
    for scheme, needs in zip(every, needed, strict=True):
        traffic = RekeyedTraffic(
            trace=trace,
            scheme=scheme,
            limits=limits,
            rows=rows,
            before=counted if needs else None,
            progress=progress,
        )
        projection = Projection(
            traffic.rekeying(), limits, rate=rate, started_s=started_s, draws=draws
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
            require_rows_of(rows_said, tables)
        part = projection.finish()
        if moved := moves(trace, scheme):
            price = dataclasses.replace(part.price, moved=moved)
            part = part.model_copy(update={"price": price})
        if most_factor:
            first = first_limit(traffic, part, record)
            part = part.model_copy(update={"first_limit": first})
        parts.append(part)
    found = {
        "seconds": (last_ms - first_ms) / 1000,
        "damage": (*trace.damage.sentences(), *(() if ordered else (_NO_ORDER,))),
        "schemes": ranked(parts),
    }
    return record.model_copy(update=found)
