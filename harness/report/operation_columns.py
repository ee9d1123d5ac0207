"""The columns of the tables of operations, and of queries among them."""

from __future__ import annotations

import dataclasses

from harness.measure.record.measured import OperationPart
from harness.measure.record.record import RunRecord
from harness.model.figures import milliseconds, number, percent, request_units
from harness.model.operation import Kind
from harness.model.outcome import Outcome
from harness.report.columns import (
    LATENCY_FIGURES,
    Column,
    Output,
    charges_units,
    counts_entities,
    latency_figure,
    measures,
)
from harness.report.partition_columns import UNITS

_count = "{:,}".format


def other_outcomes(part: OperationPart) -> list[tuple[str, int]]:
    """Outcomes other than plain success: names and counts, the most frequent first."""
    others = [item for item in part.outcomes.items() if item[0] != Outcome.SUCCESS and item[1]]
    return sorted(others, key=lambda item: (-item[1], item[0]))


OPERATION_COLUMNS: tuple[Column[OperationPart], ...] = (
    Column("count", lambda part: part.count, _count),
    Column(
        "{unit.rate}",
        lambda part: part.entities_per_s.mean,
        number,
        when=counts_entities,
        least=True,
    ),
    dataclasses.replace(UNITS[0], name="RU/s", group=""),
    Column("RU each", lambda part: part.request_units_each, request_units, when=charges_units),
    *(
        Column(
            figure,
            latency_figure(latency, figure),
            milliseconds,
            group=f"{latency} ms",
            when=measures(latency),
        )
        for latency in ("service", "response")
        for figure in LATENCY_FIGURES
    ),
    Column(
        "other outcomes",
        lambda part: ", ".join(f"{name} {count:,}" for name, count in other_outcomes(part)),
        # A terminal has no room for texts beside the figures: they stand below the table.
        outputs=Output.MARKDOWN | Output.HTML,
    ),
)
"""The columns behind the name of an operation."""


def all_operations(record: RunRecord) -> OperationPart:
    return OperationPart(
        kind="all",
        count=record.counts.operations,
        entities=record.counts.entities,
        uncertain=sum(part.uncertain for part in record.operations),
        entities_per_s=record.account.entities_per_s,
        outcomes={},
        service_ms=record.service_ms,
        response_ms=record.response_ms,
        request_units=record.request_units,
    )


def scanning(record: RunRecord) -> list[OperationPart]:
    """The operations that are queries: the rows of the table of scans."""
    return [part for part in record.operations if part.type == Kind.QUERY]


def _certainty(part: OperationPart) -> str:
    if not part.uncertain:
        return "exact"
    if part.uncertain == part.count:
        return "estimated"
    return f"{part.uncertain:,} of {part.count:,} estimated"


def _asks_by_bounds(record: RunRecord) -> bool:
    return any(part.entities_wanted for part in record.operations)


def _missed(part: OperationPart) -> str | None:
    if not part.entities_wanted:
        return None
    share = percent(part.entities_missed / part.entities_wanted)
    return f"{part.entities_missed:,} of {part.entities_wanted:,} ({share})"


SCAN_COLUMNS: tuple[Column[OperationPart], ...] = (
    Column(
        "{unit.many} scanned",
        lambda part: part.entities,
        _count,
        least=True,
    ),
    Column("returned", lambda part: part.entities_returned, _count),
    Column(
        "returned / scanned",
        lambda part: part.entities_returned / part.entities if part.entities else 1.0,
        percent,
        narrow="returned /\nscanned",
        sign=lambda part: "≤" if part.uncertain else "",
    ),
    Column("scan count", _certainty, narrow="scan\ncount"),
    Column("missed", _missed, absent="", when=_asks_by_bounds),
)
"""The columns behind the name of a query."""
