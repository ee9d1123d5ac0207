"""The tables of a terminal report: partitions, account, operations, attempts, search steps."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from harness.measure.figures import percent
from harness.measure.record.findings import SearchPart
from harness.measure.record.record import OperationPart, PartitionPart, RunRecord
from harness.report.columns import (
    OPERATION_COLUMNS,
    PARTITION_COLUMNS,
    SCAN_COLUMNS,
    STEP_COLUMNS,
    Column,
    Output,
    all_operations,
    columns_of,
    other_outcomes,
    response_counts,
    scanning,
)
from harness.report.names import partition_name, shortened
from harness.report.predicted_shares import predicted_shares
from harness.report.sentences import (
    OTHERS,
    WHOLE_SEARCH,
    account_rows,
    attempts_words,
    found,
    latency_note,
    partition_notes,
    step_result,
)
from harness.report.terminal.drawing import bar
from harness.report.terminal.page import Cell, Page, grid, room_for_names, table_of

MOST_PARTITIONS = 10
_BAR_WIDTH = 10
_STEP_BAR_WIDTH = 8
_ATTEMPTS_BAR_WIDTH = 20
_NAME_WIDTH = 20
_QUERY_WIDTH = 24
_SHARE_WIDTH = 40
_RESULT_WIDTH = 9
_LAYOUTS = ((_BAR_WIDTH, 2), (_BAR_WIDTH // 2, 2), (_BAR_WIDTH // 2, 1), (0, 1))
"""Columns of a bar and blanks between columns: from roomy to narrow."""


def partitions(record: RunRecord, page: Page) -> RenderableType:
    """The hottest partitions beside the target of one partition, and the sum of the others."""
    columns = columns_of(record, PARTITION_COLUMNS, Output.TERMINAL)
    parts, more = record.partitions[:MOST_PARTITIONS], record.partitions[MOST_PARTITIONS:]
    rows: list[tuple[Text, Callable[[Column[PartitionPart], int], Cell]]] = [
        (
            Text(partition_name(part.key, page.ascii_only) + ("" if part.exact else " ~"), "bold"),
            functools.partial(_cell, page, part),
        )
        for part in parts
    ]
    if more:
        name = Text(f"and {len(more):,} more", "dim")
        rows.append((name, lambda column, _: _coloured(column, column.total(more))))
    if (folded := record.partitions_folded) is not None:
        rows.append((Text(OTHERS, "dim"), functools.partial(_cell, page, folded)))

    def table(bar_width: int, gap: int, name_width: int) -> Table:
        cells = [
            [
                Text(shortened(name.plain, name_width, page.glyphs.ellipsis), name.style),
                *(cell(column, bar_width) for column in columns),
            ]
            for name, cell in rows
        ]
        return table_of(["partition", *map(_heading, columns)], cells, gap)

    longest = max((cell_len(name.plain) for name, _ in rows), default=0)
    least = len("partition")
    for bar_width, gap in _LAYOUTS:
        build = functools.partial(table, bar_width, gap)
        room = room_for_names(page, build, "partition", longest)
        if room >= max(least, min(_NAME_WIDTH, longest)):
            break
    notes = [
        Text(line, style="dim")
        for line in partition_notes(record, page.glyphs.ellipsis, page.ascii_only)
    ]
    title = "partitions" if len(record.partitions) == 1 else "partitions, hottest first"
    return page.section(title, build(max(room, least)), *notes)


def _heading(column: Column[Any]) -> str:
    return column.narrow or column.name.replace(" ", "\n", column.name.startswith("best"))


def _cell(page: Page, row: Any, column: Column[Any], bar_width: int) -> Cell:
    value = column.get(row)
    if column.share and value is not None and bar_width:
        return page.ratio(value, bar_width)
    return _coloured(column, column.text(row), absent=value is None)


def _coloured(column: Column[Any], text: str, *, absent: bool = False) -> Cell:
    if absent or (column.bad and text == "0"):
        return Text(text, style="dim")
    return Text(text, style="red") if column.bad else text


def predicted(record: RunRecord, page: Page) -> list[RenderableType]:
    """Predicted and measured shares of the load; empty where nothing was predicted."""
    rows: list[tuple[Cell, ...]] = [
        (
            shortened(page.show(share.what), _SHARE_WIDTH, page.glyphs.ellipsis),
            f"{percent(share.predicted)} predicted",
            "not known" if share.measured is None else f"{percent(share.measured)} measured",
        )
        for share in predicted_shares(record)
    ]
    if not rows:
        return []
    return [page.section("predicted and measured share of the load", grid(rows, right=(1, 2)))]


def account(record: RunRecord, page: Page) -> RenderableType:
    """The account beside its targets."""
    rows: list[tuple[Cell, ...]] = []
    for row in account_rows(record):
        target = Text() if row.share is None else page.ratio(row.share, _BAR_WIDTH).append(" ")
        rows.append((row.name, row.rate, target.append(row.target)))
    return page.section("account", grid(rows, right=(1,)))


def operations(record: RunRecord, page: Page) -> RenderableType:
    """Each kind of operation: count, rate, latencies, and outcomes other than success."""
    longest = max((cell_len(page.show(part.kind)) for part in record.operations), default=0)
    build = functools.partial(_operations_table, record, page)
    room = room_for_names(page, build, "operation", longest)
    notes: list[RenderableType] = [Text(latency_note(record), "dim")]
    if queries := scanning(record):
        scans = columns_of(record, SCAN_COLUMNS, Output.TERMINAL)
        lines = [
            [
                shortened(page.show(part.kind), _QUERY_WIDTH, page.glyphs.ellipsis),
                *(column.text(part) for column in scans),
            ]
            for part in queries
        ]
        notes += [Text(), table_of(["query", *map(_heading, scans)], lines)]
    if others := _other_outcomes(record.operations):
        notes += [
            Text(),
            grid(
                [
                    (Text(page.show(outcome), style="yellow"), f"{count:,}", page.show(kinds))
                    for outcome, count, kinds in others
                ],
                right=(1,),
            ),
        ]
    return page.section("operations", build(max(room, len("operation"))), *notes)


def _operations_table(record: RunRecord, page: Page, name_width: int) -> Table:
    """The table, with a line for each latency of an operation."""
    columns = columns_of(record, OPERATION_COLUMNS, Output.TERMINAL)
    single = [column for column in columns if not column.group]
    groups: dict[str, list[Column[OperationPart]]] = {}
    for column in columns:
        if column.group:
            groups.setdefault(column.group, []).append(column)
    rows: list[list[Cell]] = []
    parts = [(part, "") for part in record.operations]
    if len(parts) > 1:
        parts.append((all_operations(record), "bold"))
    for part, style in parts:
        name = shortened(page.show(part.kind), name_width, page.glyphs.ellipsis)
        first = [name, *(column.text(part) for column in single)]
        for group, latencies in groups.items():
            line = [*first, group.removesuffix(" ms"), *(one.text(part) for one in latencies)]
            rows.append([Text(text, style=style) for text in line])
            first = [""] * len(first)
    figures = [column.name for column in next(iter(groups.values()))]
    headings = ["operation", *(column.name for column in single), "latency in ms", *figures]
    return table_of(headings, rows)


def _other_outcomes(parts: Sequence[OperationPart]) -> list[tuple[str, int, str]]:
    """Outcomes other than success: name, count, and the operations; the most frequent first."""
    kinds: dict[str, list[tuple[str, int]]] = {}
    for part in parts:
        for outcome, count in other_outcomes(part):
            kinds.setdefault(outcome, []).append((part.kind, count))
    rows = [
        (
            outcome,
            sum(count for _, count in of),
            ", ".join(f"{kind} {count:,}" for kind, count in of),
        )
        for outcome, of in kinds.items()
    ]
    return sorted(rows, key=lambda row: (-row[1], row[0]))


def attempts(record: RunRecord, page: Page) -> RenderableType:
    """Attempts per operation, by response, and how many were throttled."""
    requests, throttled = attempts_words(record)
    lines = [
        Text(requests),
        Text(throttled, style="red" if sum(record.throttled.values()) else ""),
    ]
    most = max(record.attempts_by_status.values(), default=1)
    colours = {"2": "cyan", "5": "red"}
    rows = [
        (
            page.show(row.name),
            f"{row.count:,}",
            percent(row.share),
            Text(
                bar(row.count / most, _ATTEMPTS_BAR_WIDTH, page.glyphs),
                style=colours.get(row.name[:1], "yellow"),
            ),
        )
        for row in response_counts(record)
    ]
    return page.section("attempts", *lines, grid(rows, right=(1, 2)))


def steps(part: SearchPart, page: Page) -> RenderableType:
    """Every step of a search, in order."""
    highest = max((step.rate_per_s for step in part.steps), default=0.0) or 1.0
    rows: list[list[Cell]] = []
    for place, step in enumerate(part.steps, 1):
        passed = step.failed is None
        sign, colour = (page.glyphs.yes, "green") if passed else (page.glyphs.no, "red")
        result = page.show(step_result(step.failed, confirming=step.confirming))
        result = shortened(result, _RESULT_WIDTH, page.glyphs.ellipsis)
        name = Text(f"{place:>2} ").append(f"{sign} {result}", style=colour)
        share = step.achieved_per_s / highest
        drawn = Text(bar(share, _STEP_BAR_WIDTH, page.glyphs), style="cyan" if passed else "red")
        wanted, achieved, *others = (column.text(step) for column in STEP_COLUMNS)
        rows.append([name, wanted, achieved, drawn, *others])
    wanted, achieved, *headings = map(_heading, STEP_COLUMNS)
    return page.section(
        "search, entities/s",
        table_of(["step", wanted, achieved, "", *headings], rows),
        Text(found(part)),
        Text(WHOLE_SEARCH, "dim"),
    )
