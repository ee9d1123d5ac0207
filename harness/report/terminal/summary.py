"""The report of a run for a terminal.

The verdict and its reasons come last, where the eye rests when a run is over. A warning about wrong
figures stands at the top and again above the verdict.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from harness.measure.figures import agreed, counted, duration, number, percent
from harness.measure.record.findings import AuditPart, SearchPart
from harness.measure.record.over_time import SeriesPart
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
    referred,
    response_counts,
    scanning,
)
from harness.report.names import partition_name, shortened
from harness.report.predicted_shares import predicted_shares
from harness.report.sentences import (
    OTHERS,
    RELY_NOT,
    WHOLE_SEARCH,
    account_rows,
    advised,
    alarms,
    attempts_words,
    audit_examples,
    audited,
    cost,
    found,
    latency_note,
    limited_by,
    measured,
    partition_notes,
    result_words,
    setup,
    shown_gaps,
    step_result,
    throttling,
)
from harness.report.terminal.page import (
    Cell,
    Page,
    bar,
    chart,
    columns,
    grid,
    room_for_names,
    table_of,
)

_VALUE_WIDTH = 36
_TABLE_NAME_WIDTH = 24
_VERDICT_COLOURS = {"within_target": "green", "throttled": "red"}


def summary(record: RunRecord, *, width: int, colour: bool, ascii_only: bool = False) -> str:
    """The report of ``record``.

    Args:
        record: The run.
        width: Columns of the terminal; made for 80 and more.
        colour: Whether colours and bold are shown.
        ascii_only: Whether only ASCII can be shown.
    """
    page = Page(width=width, colour=colour, ascii_only=ascii_only)
    alarm = _alarm(record, page)
    parts = [_head(record, page), *alarm]
    if record.search is not None:
        parts.append(steps(record.search, page))
    parts += [
        partitions(record, page),
        *predicted(record, page),
        account(record, page),
        operations(record, page),
        attempts(record, page),
    ]
    if record.series:
        parts.append(rate_chart(record, page))
    if rows := throttling(record):
        parts.append(_facts("throttling", rows, page))
    if record.pointers:
        parts.append(_index_tables(record, page))
    if record.audit is not None:
        parts.append(_audit(record.audit, page))
    parts.append(_facts("generator and cost", cost(record), page))
    if record.conditions:
        parts.append(_conditions(record, page))
    parts += [Text(), *alarm, _verdict(record, page), *_reasons(record, page)]
    return page.render(Group(*parts))


def _facts(title: str, rows: Sequence[tuple[str, str]], page: Page) -> RenderableType:
    return page.section(title, grid([(Text(name, "dim"), page.show(fact)) for name, fact in rows]))


def _head(record: RunRecord, page: Page) -> RenderableType:
    profile = record.profile
    content: list[RenderableType] = []
    if question := profile.get("question"):
        content += [Text(page.show(str(question)), style="italic"), Text()]
    content.append(grid([(Text(name, "dim"), page.show(text)) for name, text in setup(record)]))
    return Panel(
        Group(*content),
        title=Text(page.show(str(profile.get("name", "run"))), style="bold"),
        title_align="left",
        box=page.glyphs.box,
        border_style="cyan",
    )


def _alarm(record: RunRecord, page: Page) -> list[RenderableType]:
    """Why the figures are wrong; empty where they are right."""
    lines = [page.show(sentence) for sentence in alarms(record)]
    if not lines:
        return []
    return [
        Panel(
            Text("\n".join(lines), style="bold"),
            title=Text(RELY_NOT.upper(), style="bold"),
            box=page.glyphs.box,
            border_style="bold red",
        )
    ]


def _index_tables(record: RunRecord, page: Page) -> RenderableType:
    """References between an index table and its main table that are broken."""
    rows = []
    for part in record.pointers:
        to = page.show(referred(part))
        dangling = (
            f"{part.dangling:,} {agreed(part.dangling, 'refers', 'refer')} to a missing row of {to}"
        )
        line = Text(f"{counted(part.rows, 'row')}, of which ")
        line.append(dangling, style="yellow" if part.dangling else "")
        line.append(
            f"; {counted(part.unnamed, 'row')} of {to} {agreed(part.unnamed, 'has', 'have')} no "
            "reference"
        )
        name = shortened(page.show(part.table), _TABLE_NAME_WIDTH, page.glyphs.ellipsis)
        rows.append((Text(name), line))
    return page.section("index tables", grid(rows))


def _audit(part: AuditPart, page: Page) -> RenderableType:
    rows = [
        (
            Text(name, style="dim"),
            Text(page.show(text), style="bold red" if name == "lost" and part.lost else ""),
        )
        for name, text in [*audited(part), *audit_examples(part)]
    ]
    return page.section("audit", grid(rows))


def _conditions(record: RunRecord, page: Page) -> RenderableType:
    rows = []
    for part in record.conditions:
        sign, word, colour = {
            True: (page.glyphs.yes, "holds", "green"),
            False: (page.glyphs.no, "FAILS", "bold red"),
            None: ("?", "not known", "yellow"),
        }[part.passed]
        # The value takes what is left of the line, and wraps.
        text = shortened(page.show(part.text), page.width - _VALUE_WIDTH, page.glyphs.ellipsis)
        rows.append((Text(f"{sign} {word}", style=colour), text, page.show(measured(part))))
    return page.section("conditions", grid(rows))


def _verdict(record: RunRecord, page: Page) -> RenderableType:
    colour = _VERDICT_COLOURS.get(record.verdict.result, "yellow")
    limit = limited_by(record)
    return Panel(
        Text(page.show(record.verdict.sentence), style="bold"),
        title=Text(f"VERDICT: {page.show(result_words(record).upper())}", style=f"bold {colour}"),
        title_align="left",
        subtitle=None if limit is None else Text(f"limited by {limit}", style="dim"),
        subtitle_align="left",
        box=page.glyphs.box,
        border_style=colour,
        padding=(1, 1),
    )


def _reasons(record: RunRecord, page: Page) -> list[RenderableType]:
    """The evidence of the verdict, and advice from the documents; empty sections are left out."""
    parts: list[RenderableType] = []
    if evidence := record.verdict.evidence:
        rows = [(Text("-", style="dim"), Text(page.show(sentence))) for sentence in evidence]
        parts.append(page.section("why", grid(rows)))
    if record.verdict.advice:
        lines = [
            (
                Text("-", style="dim"),
                Text(page.show(sentence)).append(f"\n{page.show(source)}", style="dim"),
            )
            for sentence, source in map(advised, record.verdict.advice)
        ]
        parts.append(page.section("what the documents advise", grid(lines)))
    return parts


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


_HEIGHT = 3
_THROTTLED = "throttled"
_OUTAGE = "outage"


def rate_chart(record: RunRecord, page: Page) -> RenderableType:
    """Entities/s over the time under load; a heavy axis marks the measured window."""
    series = record.series
    top = number(max(point.entities for point in series))
    margin = max(len(top), len(_THROTTLED)) + 1
    groups = columns(len(series), page.width - margin - 1)
    values = [sum(series[place].entities for place in group) / len(group) for group in groups]
    lines: list[RenderableType] = []
    for place, line in enumerate(chart(values, _HEIGHT, page.glyphs)):
        label = top if place == 0 else ("0" if place == _HEIGHT - 1 else "")
        lines.append(_line(label, margin, Text(line, style="cyan")))
    start, end = record.window_start, record.window_start + record.measured_s
    axis = "".join(
        page.glyphs.inside
        if any(start <= series[place].t < end for place in group)
        else page.glyphs.outside
        for group in groups
    )
    lines.append(_line("", margin, Text(axis, style="dim")))
    if any(point.throttled for point in series):
        refused = [sum(series[place].throttled for place in group) for group in groups]
        [marks] = chart(refused, 1, page.glyphs)
        lines.append(_line(_THROTTLED, margin, Text(marks, style="red")))
    if gaps := shown_gaps(record):
        began = series[0].t
        spans = [range(began + gap.start_s, began + gap.start_s + gap.length_s) for gap in gaps]
        inside = [any(_meets(series[place], spans) for place in group) for group in groups]
        drawn = "".join(page.glyphs.levels[-1] if gone else " " for gone in inside)
        lines.append(_line(_OUTAGE, margin, Text(drawn, style="yellow")))
    length = sum(point.width_s for point in series)
    ends = duration(length)
    middle = f"{page.glyphs.inside * 2} measured {counted(record.measured_s, 'second')}"
    room = len(groups) - len("0:00") - len(ends)
    if room > len(middle):
        lines.append(_line("", margin, Text(f"0:00{middle:^{room}}{ends}", style="dim")))
    return page.section("entities/s over time", *lines)


def _meets(point: SeriesPart, spans: Sequence[range]) -> bool:
    """True where the seconds of a point overlap one of ``spans``, UTC."""
    return any(point.t < span.stop and span.start < point.t + point.width_s for span in spans)


def _line(label: str, margin: int, content: Text) -> Text:
    return Text.assemble((f"{label:>{margin - 1}} ", "dim"), content, no_wrap=True)
