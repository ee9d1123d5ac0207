"""The tables of partitions: the most accessed, and the most throttled."""

from __future__ import annotations

import datetime as dt

from harness.measure.record import PartitionPart, RunRecord
from harness.report.cells import latency_cells, rates_cells
from harness.report.drawing import FULL
from harness.report.reading import OTHERS, best_over, partition_notes, throttled_by_status
from harness.report.web.cell import Cell, cells, partition_cell, refused_cells, share_cell
from harness.report.web.rendering import render
from harness.report.words import counted, number, percent

MOST_LIVE = 50
"""Rows of a table that is sent every other second. Keys may be long; a report has all of them."""
_MOST_THROTTLED = 10


def partitions(record: RunRecord, *, live: bool) -> str:
    """Every partition that is told apart, the most accessed first, the folded rest last."""
    parts = record.partitions[:MOST_LIVE] if live else record.partitions
    more = record.partitions[len(parts) :]
    opened = record.response_ms is not None
    rows = [[partition_cell(part, _since(part)), *_figures(part, opened)] for part in parts]
    empty = [Cell(text="")]
    if more:
        name = Cell(text=f"and {len(more):,} more", tone="faint")
        together = number(sum(part.entities_per_s.mean for part in more))
        latencies = empty * (4 if opened else 2)
        rows.append(
            [name, Cell(text=together), *empty * 3, *refused_cells(*more), *latencies],
        )
    if (folded := record.partitions_folded) is not None:
        name = Cell(text=OTHERS, tone="faint", title="partitions that are not told apart")
        rows.append([name, *_figures(folded, opened)])
    target = next((part.target for part in record.partitions if part.target is not None), None)
    groups = [("", 1), ("entities/s", 3), ("", 1), ("throttled attempts", 3), ("service ms", 2)]
    if opened:
        groups.append(("response ms", 2))
    return render(
        "table.html",
        groups=groups,
        headers=[
            "partition", "mean", "best 1 s", best_over(record),
            "target" if target is None else f"of {number(target)}",
            "503", "500", "429", *["p50", "p99"] * (2 if opened else 1),
        ],
        rows=rows,
        left=1,
        notes=partition_notes(record, FULL.ellipsis),
    )  # fmt: skip


def most_throttled(record: RunRecord) -> str:
    """The partitions with the most throttled attempts; empty where one table tells it all."""
    if len(record.partitions) < 2:
        return ""
    refused = [
        (sum(throttled_by_status((part.attempts_by_status,)).values()), part)
        for part in record.partitions
    ]
    worst = sorted((one for one in refused if one[0]), key=lambda one: -one[0])[:_MOST_THROTTLED]
    rows = [
        [
            partition_cell(part, _since(part)),
            *refused_cells(part),
            *cells([percent(part.throttled_ratio), number(part.entities_per_s.mean)]),
        ]
        for _, part in worst
    ]
    headers = ["partition", "503", "500", "429", "of its attempts", "entities/s"]
    return render("table.html", headers=headers, rows=rows, left=1) if rows else ""


def _figures(part: PartitionPart, opened: bool) -> list[Cell]:
    latencies = latency_cells(part.service_ms, "p50", "p99")
    if opened:
        latencies += latency_cells(part.response_ms, "p50", "p99")
    return [
        *cells(rates_cells(part.entities_per_s)),
        share_cell(part.ratio) if part.target is not None else Cell(text=""),
        *refused_cells(part),
        *cells(latencies),
    ]


def _since(part: PartitionPart) -> str:
    """Since when a partition has been told apart, and between what bounds its entities are."""
    said = []
    if part.since is not None:
        moment = dt.datetime.fromtimestamp(part.since, tz=dt.UTC)
        said.append(f"told apart since {moment:%H:%M:%S} UTC")
    if (bounds := part.estimate) is not None:
        most = counted(bounds.at_most, "entity", "entities")
        said.append(f"{bounds.at_least:,} to {most} in the whole run")
    return ", ".join(said)
