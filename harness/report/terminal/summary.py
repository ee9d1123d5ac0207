"""The report of a run for a terminal.

The verdict and its reasons come last, where the eye rests when a run is over. Whether the run
passed its conditions, and a warning about wrong figures, stand at the top and again above the
verdict.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from harness.measure.record.findings import AuditPart
from harness.measure.record.measured import OperationPart, PartitionPart
from harness.measure.record.record import RunRecord
from harness.model.figures import agreed, counted, milliseconds, percent
from harness.report import answers, columns, events, load_columns, sentences
from harness.report.columns import Column, Output
from harness.report.headline import result_words, verdict_lines
from harness.report.names import partition_name, shortened
from harness.report.passing import measured, passing_of
from harness.report.predicted import predicted_shares
from harness.report.service_log import LOG_TITLE, logged_rows
from harness.report.terminal.page import (
    Cell,
    Page,
    bar,
    facts,
    grid,
    left_out,
    room_for_names,
    said_left_out,
    section_of,
    table_of,
)
from harness.report.terminal.rate_chart import rate_chart

MOST_PARTITIONS = 10
_FIRST_PARTITIONS = 5
"""Partitions on the first screen."""
_BAR_WIDTH = 10
_STEP_BAR_WIDTH = 8
_ATTEMPTS_BAR_WIDTH = 20
_GAP = 2
"""Blanks between the columns of a grid."""
_NAME_WIDTH = 20
_QUERY_WIDTH = 24
_SHARE_WIDTH = 40
_RESULT_WIDTH = 9
_VALUE_WIDTH = 36
_TABLE_NAME_WIDTH = 24
_LAYOUTS = ((_BAR_WIDTH, 2), (_BAR_WIDTH // 2, 2), (_BAR_WIDTH // 2, 1), (0, 1))
"""Columns of a bar and blanks between columns: from roomy to narrow."""
_SPARE = ("best 10 s", "attempts per operation", "best 1 s", "p50")
"""Columns that a table leaves out, one after the other, where a page is too narrow for them."""
_TONE_COLOURS = {"good": "green", "bad": "red", "warn": "yellow"}
_VERDICT_COLOURS = {
    "within_target": "green",
    "throttled": "red",
    "failing": "red",
    "no_target": "cyan",
}


def summary(record: RunRecord, page: Page) -> str:
    """The report of ``record``, made for a terminal of 80 columns or more."""
    alarm, passing = _alarm(record, page), _passing(record, page)
    return page.render(
        *passing,
        _head(record, page),
        *alarm,
        *_steps(record, page),
        *(_counted(record, page) if record.counts.attempts else []),
        *_index_tables(record, page),
        *_audit(record.audit, page),
        *section_of(LOG_TITLE.lower(), logged_rows(record), page),
        *section_of("generator and cost", sentences.cost(record), page),
        *_conditions(record, page),
        Text(),
        *alarm,
        *passing,
        _verdict(record, page),
        *_reasons(record, page),
    )


def _counted(record: RunRecord, page: Page) -> list[RenderableType]:
    """The tables of what was counted."""
    return [
        _partitions(record, page),
        *_predicted(record, page),
        _account(record, page),
        *_accounts(record, page),
        _operations(record, page),
        _attempts(record, page),
        *rate_chart(record, page),
        *section_of("throttling", events.throttling(record), page),
    ]


def compact(record: RunRecord, page: Page) -> str:
    """What a run found, on one screen: partitions, sums, conditions, verdict and the next step."""
    step = sentences.next_step(record)
    return page.render(
        *_steps(record, page),
        *([_partitions(record, page, _FIRST_PARTITIONS)] if record.counts.attempts else []),
        *section_of("all accounts" if record.accounts else "account", _sums(record), page),
        *_accounts(record, page),
        *_index_tables(record, page),
        *_audit(record.audit, page),
        *_conditions(record, page),
        Text(),
        *_alarm(record, page),
        *_passing(record, page),
        _verdict(record, page),
        *([] if step is None else [Text.assemble(("Next: ", "bold"), page.show(step))]),
    )


def _sums(record: RunRecord) -> list[tuple[str, str]]:
    """The rate, the latency and the attempts of all partitions, a line each."""
    if not record.counts.attempts:
        return []
    latencies = [
        f"{name} p50 {milliseconds(found.p50)} ms, p99 {milliseconds(found.p99)} ms"
        for name, found in (("service", record.service_ms), ("response", record.response_ms))
        if found is not None
    ]
    rates = [row for row in sentences.account_rows(record) if row.share is not None or row.target]
    return [
        *((row.name, f"{row.rate}, {row.beside}") for row in rates[:1]),
        *([("latency", "; ".join(latencies))] if latencies else []),
        ("attempts", "; ".join(answers.attempts_words(record))),
    ]


def brief(record: RunRecord, page: Page) -> str:
    """The result alone: wrong figures, whether the run passed, and the verdict, a line each."""
    passing = passing_of(record)
    lines = [
        *sentences.alarms(record),
        *([] if passing is None else [str(passing)]),
        record.verdict.whole,
    ]
    return "\n".join(map(page.show, lines))


def _section(title: str, rows: Sequence[Sequence[Cell]], page: Page) -> list[RenderableType]:
    return [page.section(title, grid(rows))] if rows else []


def _head(record: RunRecord, page: Page) -> RenderableType:
    profile = record.profile
    content: list[RenderableType] = []
    if question := profile.get("question"):
        content += [Text(page.show(str(question)), style="italic"), Text()]
    content.append(facts(sentences.setup(record), page))
    name = Text(page.show(str(profile.get("name", "run"))), "bold")
    return page.panel(Group(*content), name, "cyan", title_align="left")


def _passing(record: RunRecord, page: Page) -> list[RenderableType]:
    found = passing_of(record)
    if found is None:
        return []
    word = Text(found.word, f"bold {_TONE_COLOURS[found.tone]}")
    return [word.append(f": {page.show(found.sentence)}", style="not bold default")]


def _alarm(record: RunRecord, page: Page) -> list[RenderableType]:
    lines = [page.show(sentence) for sentence in sentences.alarms(record)]
    title = Text(sentences.RELY_NOT.upper(), "bold")
    return [page.panel(Text("\n".join(lines), "bold"), title, "bold red")] if lines else []


def _steps(record: RunRecord, page: Page) -> list[RenderableType]:
    if (part := record.search) is None:
        return []
    shown = columns.columns_of(record, columns.STEP_COLUMNS, Output.TERMINAL)
    highest = max((step.rate_per_s for step in part.steps), default=0.0) or 1.0
    rows: list[list[Cell]] = []
    for place, step in enumerate(part.steps, 1):
        result, passed = sentences.step_result(step)
        sign, colour = (page.glyphs.yes, "green") if passed else (page.glyphs.no, "red")
        said = f"{sign} {page.short(result, _RESULT_WIDTH)}"
        name = Text(f"{place:>2} ").append(said, style=colour)
        share = step.achieved_per_s / highest
        drawn = Text(bar(share, _STEP_BAR_WIDTH, page.glyphs), style="cyan" if passed else "red")
        wanted, achieved, *others = (column.text(step) for column in shown)
        rows.append([name, wanted, achieved, drawn, *others])
    wanted, achieved, *headings = map(_heading, shown)
    return [
        page.section(
            f"search, {record.endpoint.service.unit.rate}",
            table_of(["step", wanted, achieved, "", *headings], rows),
            Text(sentences.search_cost(part)),
            Text(sentences.WHOLE_SEARCH, "dim"),
        )
    ]


def _partitions(record: RunRecord, page: Page, most: int = MOST_PARTITIONS) -> RenderableType:
    """The hottest partitions with the target of one partition, and the sum of the others."""
    shown = columns.columns_of(record, load_columns.PARTITION_COLUMNS, Output.TERMINAL)
    parts, more = record.partitions[:most], record.partitions[most:]
    rows: list[tuple[Text, Callable[[Column[PartitionPart], int], Cell]]] = [
        (
            Text(partition_name(part.key, page.ascii_only) + ("" if part.exact else " ~"), "bold"),
            functools.partial(_cell, page, part),
        )
        for part in parts
    ]
    if more:
        name = Text(f"and {len(more):,} more", "dim")
        rows.append((name, lambda column, _: _coloured(column, page.show(column.total(more)))))
    if (folded := record.partitions_folded) is not None:
        rows.append((Text(sentences.OTHERS, "dim"), functools.partial(_cell, page, folded)))

    notes = [Text(line, "dim") for line in sentences.partition_notes(record, page.ascii_only)]
    title = "partitions" if len(record.partitions) == 1 else "partitions, hottest first"
    return page.section(title, _fitted("partition", shown, rows, page), *notes)


def _fitted(
    of: str,
    shown: Sequence[Column[Any]],
    rows: Sequence[tuple[Text, Callable[[Column[Any], int], Cell]]],
    page: Page,
) -> RenderableType:
    """A table with bars that are as wide as the names leave room for.

    A row is its name and what makes the cell of a column, with a bar of a width if it has one.
    """

    def table(left: Sequence[str], bar_width: int, gap: int, name_width: int) -> Table:
        those = [column for column in shown if column.name not in left]
        cells = [
            [
                Text(shortened(name.plain, name_width, page.ascii_only), name.style),
                *(cell(column, bar_width) for column in those),
            ]
            for name, cell in rows
        ]
        return table_of([of, *map(_heading, those)], cells, gap)

    longest, least = max((cell_len(name.plain) for name, _ in rows), default=0), len(of)
    for left in left_out(_SPARE, [column.name for column in shown]):
        for bar_width, gap in _LAYOUTS:
            build = functools.partial(table, left, bar_width, gap)
            room = room_for_names(page, build, of, longest)
            if room >= max(least, min(_NAME_WIDTH, longest)):
                return Group(build(room), *said_left_out(left))
        if room >= least:
            break
    return Group(build(max(room, least)), *said_left_out(left))


def _heading(column: Column[Any]) -> str:
    return column.narrow or column.name.replace(" ", "\n", column.name.startswith("best"))


def _cell(page: Page, row: Any, column: Column[Any], bar_width: int) -> Cell:
    value = column.get(row)
    if column.share and value is not None and bar_width:
        return page.ratio(value, bar_width, column.sign(row))
    return _coloured(column, page.show(column.text(row)), absent=value is None)


def _coloured(column: Column[Any], text: str, *, absent: bool = False) -> Cell:
    if absent or (column.bad and text == "0"):
        return Text(text, "dim")
    return Text(text, "red") if column.bad else text


def _predicted(record: RunRecord, page: Page) -> list[RenderableType]:
    rows: list[tuple[Cell, ...]] = [
        (
            page.short(share.what, _SHARE_WIDTH),
            f"{percent(share.predicted)} predicted",
            share.found,
        )
        for share in predicted_shares(record)
    ]
    title = "predicted and measured share of the load"
    return [page.section(title, grid(rows, right=(1, 2)))] if rows else []


def _account(record: RunRecord, page: Page) -> RenderableType:
    rows: list[tuple[Cell, ...]] = []
    for row in sentences.account_rows(record):
        target = Text()
        if row.share is not None:
            target = page.ratio(row.share, _BAR_WIDTH, row.sign).append(" ")
        rows.append((row.name, page.show(row.rate), target.append(row.target)))
    title = "all accounts" if record.accounts else "account"
    return page.section(title, grid(rows, right=(1,)))


def _accounts(record: RunRecord, page: Page) -> list[RenderableType]:
    """Each of several accounts with the target of one account."""
    shown = columns.columns_of(record, load_columns.ACCOUNT_COLUMNS, Output.TERMINAL)
    rows = [
        (Text(page.show(part.name), "bold"), functools.partial(_cell, page, part))
        for part in record.accounts
    ]
    note = Text("A hash of the PartitionKey chooses the account of a partition.", "dim")
    table = _fitted("account", shown, rows, page)
    return [page.section("accounts", table, note)] if rows else []


def _operations(record: RunRecord, page: Page) -> RenderableType:
    longest = max((cell_len(page.show(part.kind)) for part in record.operations), default=0)
    shown = columns.columns_of(record, load_columns.OPERATION_COLUMNS, Output.TERMINAL)
    least = len("operation")
    spare = ("p90", "max", record.endpoint.service.unit.rate)
    for left in left_out(spare, [column.name for column in shown]):
        those = [column for column in shown if column.name not in left]
        build = functools.partial(_operations_table, record, page, those)
        if (room := room_for_names(page, build, "operation", longest)) >= least:
            break
    notes: list[RenderableType] = [
        *said_left_out(left),
        Text(sentences.latency_note(record), "dim"),
    ]
    if queries := load_columns.scanning(record):
        scans = columns.columns_of(record, load_columns.SCAN_COLUMNS, Output.TERMINAL)
        lines = [
            [page.short(part.kind, _QUERY_WIDTH), *(page.show(one.text(part)) for one in scans)]
            for part in queries
        ]
        notes += [
            Text(),
            table_of(["query", *map(_heading, scans)], lines),
        ]
    if others := _other_outcomes(record.operations, page):
        notes += [Text(), grid(others, right=(1,))]
    return page.section("operations", build(max(room, least)), *notes)


def _operations_table(
    record: RunRecord, page: Page, shown: Sequence[Column[OperationPart]], name_width: int
) -> Table:
    """The table, with a line for each latency of an operation."""
    single = [column for column in shown if not column.group]
    groups: dict[str, list[Column[OperationPart]]] = {}
    for column in shown:
        if column.group:
            groups.setdefault(column.group, []).append(column)
    rows: list[list[Cell]] = []
    parts = [(part, "") for part in record.operations]
    if len(parts) > 1:
        parts.append((load_columns.all_operations(record), "bold"))
    for part, style in parts:
        first = [page.short(part.kind, name_width), *(page.show(one.text(part)) for one in single)]
        for group, latencies in groups.items():
            line = [*first, group.removesuffix(" ms"), *(one.text(part) for one in latencies)]
            rows.append([Text(text, style=style) for text in line])
            first = [""] * len(first)
    figures = [column.name for column in next(iter(groups.values()))]
    headings = ["operation", *map(_heading, single), "latency\nin ms", *figures]
    return table_of(headings, rows)


def _other_outcomes(parts: Sequence[OperationPart], page: Page) -> list[tuple[Cell, ...]]:
    """Outcomes other than success: name, count, and the operations; the most frequent first."""
    kinds: dict[str, list[tuple[str, int]]] = {}
    for part in parts:
        for outcome, count in load_columns.other_outcomes(part):
            kinds.setdefault(outcome, []).append((part.kind, count))
    sums = sorted((-sum(count for _, count in of), outcome) for outcome, of in kinds.items())
    return [
        (
            Text(page.show(outcome), "yellow"),
            f"{-total:,}",
            page.show(", ".join(f"{kind} {count:,}" for kind, count in kinds[outcome])),
        )
        for total, outcome in sums
    ]


def _attempts(record: RunRecord, page: Page) -> RenderableType:
    requests, throttled = answers.attempts_words(record)
    lines = [Text(requests), Text(throttled, style="red" if sum(record.throttled.values()) else "")]
    colours = {"2": "cyan", "5": "red"}
    counts = answers.response_counts(record)
    figures = [(page.show(row.name), f"{row.count:,}", percent(row.share)) for row in counts]
    room = page.width - page.natural_width(grid(figures)) - _GAP
    width = max(0, min(_ATTEMPTS_BAR_WIDTH, room))
    rows = [
        (
            *texts,
            Text(bar(row.share, width, page.glyphs), style=colours.get(row.name[:1], "yellow")),
        )
        for texts, row in zip(figures, counts, strict=True)
    ]
    return page.section("attempts", *lines, grid(rows, right=(1, 2)))


def _index_tables(record: RunRecord, page: Page) -> list[RenderableType]:
    rows = []
    for part in record.pointers:
        to = page.show(columns.referred(part))
        dangling = (
            f"{part.dangling:,} {agreed(part.dangling, 'refers', 'refer')} to a missing row of {to}"
        )
        line = Text(f"{counted(part.rows, 'row')}, of which ")
        line.append(dangling, style="yellow" if part.dangling else "")
        line.append(
            f"; {counted(part.unnamed, 'row')} of {to} {agreed(part.unnamed, 'has', 'have')} no "
            "reference"
        )
        rows.append((page.short(part.table, _TABLE_NAME_WIDTH), line))
    return _section("index tables", rows, page)


def _audit(part: AuditPart | None, page: Page) -> list[RenderableType]:
    if part is None:
        return []
    rows = [
        (
            Text(name, "dim"),
            Text(page.show(text), style="bold red" if name == "lost" and part.lost else ""),
        )
        for name, text in sentences.audited(part)
    ]
    return _section("audit", rows, page)


def _conditions(record: RunRecord, page: Page) -> list[RenderableType]:
    rows = []
    for part in record.conditions:
        sign, word, colour = {
            True: (page.glyphs.yes, "holds", "green"),
            False: (page.glyphs.no, "FAILS", "bold red"),
            None: ("?", "not known", "yellow"),
        }[part.passed]
        # The value takes what is left of the line, and wraps.
        text = page.short(part.text, page.width - _VALUE_WIDTH)
        rows.append((Text(f"{sign} {word}", style=colour), text, page.show(measured(part))))
    return _section("conditions", rows, page)


def _verdict(record: RunRecord, page: Page) -> RenderableType:
    colour = _VERDICT_COLOURS.get(record.verdict.result, "yellow")
    found = passing_of(record)
    if found is not None and found.tone != "good" and colour == "green":
        # A green box would say that all is well.
        colour = _TONE_COLOURS[found.tone]
    limit = sentences.limited_by(record)
    result = page.show(result_words(record).upper())
    first, *others = map(page.show, verdict_lines(record))
    content = [Text(first, "bold"), *map(Text, others)]
    if others:
        content.insert(-1, Text())
    return page.panel(
        Group(*content),
        Text(f"VERDICT: {result}", f"bold {colour}"),
        colour,
        title_align="left",
        subtitle=None if limit is None else Text(f"limited by {limit}", "dim"),
        subtitle_align="left",
    )


def _reasons(record: RunRecord, page: Page) -> list[RenderableType]:
    dash = Text("-", "dim")
    evidence = [(dash, page.show(sentence)) for sentence in record.verdict.evidence]
    advice = [
        (dash, Text(page.show(sentence)).append(f"\n{page.show(source)}", style="dim"))
        for sentence, source in map(sentences.advised, record.verdict.advice)
    ]
    return [*_section("why", evidence, page), *_section("what the documents advise", advice, page)]
