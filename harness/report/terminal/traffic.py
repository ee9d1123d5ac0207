"""What is in a trace, for programs and on a page for a terminal."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import set_cell_size
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from harness.measure.counts.snapshot import CountedPartition, Snapshot
from harness.measure.record.findings import RecordPart
from harness.measure.record.measured import AT_LEAST, OperationPart, PartitionPart, is_lower_bound
from harness.measure.record.over_time import HeatPart, KeyRangePart
from harness.model.figures import counted, number, percent
from harness.model.outcome import Outcome
from harness.model.services.service import PUBLISHED
from harness.report.export.output import CommandOutput
from harness.report.names import partition_name
from harness.report.terminal.page import (
    Cell,
    Page,
    bar,
    chart_columns,
    facts,
    room_for_names,
    section_of,
    table_of,
)

MOST_LISTED = 10
_BAR_WIDTH = 10
_MOST_HEAT_ROWS = 16
_HEAT_NAME_WIDTH = 24
_SHADES, _PLAIN_SHADES = " ░▒▓█", " .:*#"


class BusiestPart(RecordPart):
    """The busiest ``seconds`` in a row: when they begin, and their mean rate."""

    seconds: int
    at: str
    entities_per_s: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HotRow:
    """One of the hottest entities, and how often it was accessed."""

    partition: str
    row_key: str
    accesses: int


class TraceOutput(CommandOutput):
    """What a trace holds; operations, partitions and heat map as in a ``run.json``.

    Attributes:
        head: What it says of itself.
        throttled: Attempts by status.
        seconds: From the first operation to the last.
        hottest_partitions: Of ``partitions``; their number is an estimate unless ``exact``.
        unknown: What the source did not say, and of how many operations.
        clients: Operations by client.
    """

    name: str
    head: dict[str, str]
    attempts: int
    throttled: dict[str, int]
    entities: int
    entities_estimated: int
    bytes_sent: int
    bytes_received: int
    seconds: float
    operations: tuple[OperationPart, ...]
    peaks: tuple[BusiestPart, ...]
    partitions: int
    exact: bool
    hottest_partitions: tuple[PartitionPart, ...]
    hottest_entities: tuple[HotRow, ...]
    unknown: dict[str, int]
    clients: dict[str, int]
    heat: HeatPart | None
    notes: tuple[str, ...]


class Traffic(NamedTuple):
    """What a trace holds, its counts, and its hottest partitions with their best minute's rate."""

    output: TraceOutput
    snapshot: Snapshot
    hottest: tuple[tuple[CountedPartition, float], ...]


def traffic_text(traffic: Traffic, page: Page) -> str:
    """The page for a terminal of 80 columns or more."""
    output = traffic.output
    return page.render(
        page.panel(
            facts([*output.head.items()], page),
            Text(page.show(output.name), "bold"),
            "cyan",
            title_align="left",
        ),
        page.section("operations", _operations(traffic, page)),
        page.section("peaks", *_peaks(traffic, page)),
        page.section("hottest partitions, entities/s", *_partitions(traffic, page)),
        *_rows(traffic, page),
        *_heat(traffic.snapshot, page),
        *_clients(traffic, page),
        *_unknown(traffic, page),
        *(
            [page.section("notes", *map(Text, map(page.show, output.notes)))]
            if output.notes
            else []
        ),
    )


def _operations(traffic: Traffic, page: Page) -> Table:
    snapshot = traffic.snapshot
    rows: list[list[Cell]] = []
    whole = snapshot.counts.operations
    for part in sorted(snapshot.operations, key=lambda part: -part.count):
        succeeded = sum(count for name, count in part.outcomes.items() if Outcome(name).succeeded)
        rows.append(
            [
                Text(page.show(part.kind), "bold"),
                f"{part.count:,}",
                percent(part.count / whole),
                f"{'at least ' if part.uncertain else ''}{part.entities:,}",
                f"{part.entities_returned:,}",
                percent(succeeded / part.count),
            ]
        )
    attempts = snapshot.counts.attempts
    least = "at least " * _is_bound(traffic)
    rows.append(["all", f"{whole:,}", "", f"{least}{snapshot.counts.entities:,}", "", ""])
    table = table_of(["kind", "count", "share", "entities", "returned", "succeeded"], rows)
    by_status = " ".join(
        f"{status}: {count:,}" for status, count in traffic.output.throttled.items() if count
    )
    table.caption = (
        f"{counted(attempts, 'attempt')}, throttled {percent(snapshot.throttled_ratio)}"
        + (f" ({by_status})" if by_status else "")
    )
    table.caption_justify = "left"
    return table


def _is_bound(traffic: Traffic, part: PartitionPart | None = None) -> bool:
    """Whether the entities of a partition, or of all, are a lower bound."""
    return is_lower_bound(traffic.snapshot.operations, traffic.snapshot.partitions, part)


def _peaks(traffic: Traffic, page: Page) -> list[RenderableType]:
    least = AT_LEAST * _is_bound(traffic)
    rows: list[list[Cell]] = [
        [
            f"{_span(peak.seconds)} at {_clock(_second(peak), traffic.snapshot)}",
            f"{least}{number(peak.entities_per_s)} entities/s",
            Text(bar(peak.entities_per_s / PUBLISHED.account, _BAR_WIDTH, page.glyphs), "cyan"),
            percent(peak.entities_per_s / PUBLISHED.account, least),
        ]
        for peak in traffic.output.peaks
    ]
    return [table_of(["busiest", "", "", f"of {number(PUBLISHED.account)}"], rows)]


def _span(width_s: int) -> str:
    return {1: "second", 60: "minute"}.get(width_s, f"{width_s} s")


def _second(peak: BusiestPart) -> int:
    return int(dt.datetime.fromisoformat(peak.at).timestamp())


def _clock(second: int, snapshot: Snapshot) -> str:
    """The time of a second, with its day where the trace has several."""
    at, first, last = (
        dt.datetime.fromtimestamp(one, dt.UTC) for one in (second, snapshot.start, snapshot.end - 1)
    )
    return f"{at:%H:%M:%S}" if first.date() == last.date() else f"{at:%m-%d %H:%M:%S}"


def _partitions(traffic: Traffic, page: Page) -> list[RenderableType]:
    whole = traffic.snapshot.counts.entities or 1
    names = [
        partition_name(part.key, page.ascii_only) + ("" if part.exact else " ~")
        for part, _ in traffic.hottest
    ]

    def build(width: int) -> Table:
        rows: list[list[Cell]] = []
        for name, (part, best_minute) in zip(names, traffic.hottest, strict=True):
            best, least = part.entities_per_s, AT_LEAST * _is_bound(traffic, part)
            rates = (best.best_1s, best.best_10s, best_minute)
            rows.append(
                [
                    Text(page.short(name, width), "bold"),
                    f"{least}{part.entities:,}",
                    percent(part.entities / whole),
                    *(least + number(rate) for rate in rates),
                    # The share of each partition of a table is unknown.
                    Text("")
                    if part.partition.whole_table
                    else Text(
                        percent(best.best_1s / PUBLISHED.partition, least),
                        "yellow" if best.best_1s > PUBLISHED.partition else "",
                    ),
                    f"{part.throttled:,}",
                ]
            )
        headers = ["partition", "entities", "share", "best\n1 s", "best\n10 s", "best\nminute"]
        target = f"best of\n{number(PUBLISHED.partition)}"
        return table_of([*headers, target, "throttled\nattempts"], rows)

    width = room_for_names(page, build, "partition", max(map(len, names), default=0))
    output = traffic.output
    count = f"{'' if output.exact else 'about '}{counted(output.partitions, 'partition')}"
    more = max(0, output.partitions - len(traffic.hottest))
    note = f"{count}" + (f"; the {len(traffic.hottest)} hottest are listed" if more else "")
    if not all(part.exact for part, _ in traffic.hottest):
        note += "; ~ counted from the moment when it became one of the hottest"
    return [build(width), Text(note, "dim")]


def _rows(traffic: Traffic, page: Page) -> list[RenderableType]:
    hottest = traffic.output.hottest_entities
    if not hottest:
        return []

    def build(width: int) -> Table:
        rows: list[list[Cell]] = [
            [
                Text(page.short(f"{partition_name(row.partition)} | {row.row_key}", width), "bold"),
                f"{row.accesses:,}",
            ]
            for row in hottest
        ]
        return table_of(["PartitionKey | RowKey", "accesses"], rows)

    longest = max(len(row.partition) + len(row.row_key) + 3 for row in hottest)
    width = room_for_names(page, build, "PartitionKey | RowKey", longest)
    return [page.section("hottest entities", build(width))]


def _heat(snapshot: Snapshot, page: Page) -> list[RenderableType]:
    """Key ranges from top to bottom, time from left to right, entities as shades."""
    heat = snapshot.heat
    if heat is None or not heat.ranges:
        return []
    shades = _PLAIN_SHADES if page.ascii_only else _SHADES
    columns = chart_columns(heat.columns, page.width - _HEAT_NAME_WIDTH - 2)
    rows = [
        (name, [sum(cells[place] for place in column) / len(column) for column in columns])
        for name, cells in _ranges(heat.ranges, page)
    ]
    highest = max(max(cells) for _, cells in rows) or 1.0
    lines = []
    for name, cells in rows:
        drawn = "".join(_shade(value / highest, shades) for value in cells)
        lines.append(Text(set_cell_size(name, _HEAT_NAME_WIDTH + 2)).append(drawn, "cyan"))
    length_s = heat.columns * heat.width_s
    note = (
        f"{_clock(heat.start, snapshot)} to {_clock(heat.start + length_s, snapshot)}; "
        f"{shades[-1]} is {number(highest / heat.width_s)} entities/s"
    )
    return [page.section("heat map: keys in order, time to the right", *lines, Text(note, "dim"))]


def _shade(share: float, shades: str) -> str:
    if share <= 0:
        return shades[0]
    return shades[max(1, min(len(shades) - 1, round(share * (len(shades) - 1))))]


def _ranges(ranges: Sequence[KeyRangePart], page: Page) -> list[tuple[str, list[int]]]:
    """At most `_MOST_HEAT_ROWS` rows: neighbouring ranges are joined."""
    together = -(-len(ranges) // _MOST_HEAT_ROWS)
    rows = []
    for place in range(0, len(ranges), together):
        group = ranges[place : place + together]
        first, last = group[0].first, group[-1].last
        name = partition_name(first, page.ascii_only)
        if last != first:
            half = (_HEAT_NAME_WIDTH - 2) // 2
            name = f"{page.short(name, half)}..{page.short(partition_name(last), half)}"
        cells = [sum(column) for column in zip(*(one.entities for one in group), strict=True)]
        rows.append((page.short(name, _HEAT_NAME_WIDTH), cells))
    return rows


def _clients(traffic: Traffic, page: Page) -> list[RenderableType]:
    whole = traffic.snapshot.counts.operations or 1
    rows = [
        (percent(count / whole), page.show(client or "(no name)"))
        for client, count in list(traffic.output.clients.items())[:MOST_LISTED]
    ]
    return section_of("clients", rows, page)


def _unknown(traffic: Traffic, page: Page) -> list[RenderableType]:
    whole = traffic.snapshot.counts.operations or 1
    rows = [
        (what, f"{counted(count, 'operation')}, {percent(count / whole)}")
        for what, count in traffic.output.unknown.items()
        if count
    ]
    return section_of("unknown", rows, page)
