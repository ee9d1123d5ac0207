"""Parts of the report about operations and the attempts they took."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from harness.measure.record import LatencyPart, OperationPart, RunRecord
from harness.report.drawing import bar
from harness.report.page import Cell, Page, grid, room_for_names, table_of
from harness.report.reading import attempts_shares, attempts_words, other_outcomes, scans
from harness.report.words import milliseconds, number, percent, shortened

_BAR_WIDTH = 20
_NAMES = "operation"
_NOTE_WIDTH = 24


def operations(record: RunRecord, page: Page) -> RenderableType:
    """Each kind of operation: how many, how fast, and how they ended otherwise than well."""
    names = [page.show(part.kind) for part in record.operations]
    build = functools.partial(_table, record, page)
    room = room_for_names(page, build, _NAMES, max(map(cell_len, names), default=0))
    notes: list[RenderableType] = []
    if record.response_ms is None:
        notes.append(
            Text(
                "service is from sent to done, retries included; response: n/a (closed loop)", "dim"
            )
        )
    if walked := scans(record):
        lines: list[tuple[Cell, ...]] = [
            (_name(name, _NOTE_WIDTH, page), *counts) for name, *counts in walked
        ]
        headers = ["query", "entities scanned", "returned", "of the scanned", "count"]
        notes += [Text(), table_of(headers, lines)]
    if others := _other_outcomes(record.operations):
        notes.append(
            grid(
                [
                    (Text(page.show(outcome), style="yellow"), f"{count:,}", page.show(kinds))
                    for outcome, count, kinds in others
                ],
                right=(1,),
            )
        )
    return page.section("operations", build(max(room, len(_NAMES))), *notes)


def _table(record: RunRecord, page: Page, name_width: int) -> Table:
    """The table with names of at most ``name_width`` columns."""
    open_model = record.response_ms is not None
    rows: list[list[Cell]] = []
    for part in record.operations:
        rates = part.entities_per_s
        counts = [_name(part.kind, name_width, page), f"{part.count:,}", number(rates.mean)]
        rows += _rows(counts, part.service_ms, part.response_ms if open_model else None)
    if len(record.operations) > 1:
        total = number(record.account.entities_per_s.mean)
        counts = ["all", f"{record.counts.operations:,}", total]
        rows += [
            [Text(str(cell), style="bold") for cell in row]
            for row in _rows(counts, record.service_ms, record.response_ms)
        ]
    headers = [_NAMES, "count", "entities/s", "latency in ms", "p50", "p90", "p99", "max"]
    return table_of(headers, rows)


def _name(name: str, width: int, page: Page) -> str:
    return shortened(page.show(name), width, page.glyphs.ellipsis)


def attempts(record: RunRecord, page: Page) -> RenderableType:
    """HTTP requests against operations, by what answered, and how many were throttled."""
    requests, throttled = attempts_words(record)
    lines = [
        Text(requests),
        Text(throttled, style="red" if sum(record.throttled.values()) else ""),
    ]
    most = max(record.attempts_by_status.values(), default=1)
    rows = [
        (
            page.show(name),
            f"{count:,}",
            percent(share),
            Text(bar(count / most, _BAR_WIDTH, page.glyphs), style=_colour(name)),
        )
        for name, count, share in attempts_shares(record)
    ]
    return page.section("attempts", *lines, grid(rows, right=(1, 2)))


def _rows(
    counts: Sequence[str], service: LatencyPart | None, response: LatencyPart | None
) -> list[list[Cell]]:
    rows: list[list[Cell]] = [[*counts, "service", *_latency(service)]]
    if response is not None:
        rows.append(["", "", "", "response", *_latency(response)])
    return rows


def _latency(part: LatencyPart | None) -> list[str]:
    if part is None:
        return ["n/a"] * 4
    return [milliseconds(value) for value in (part.p50, part.p90, part.p99, part.max)]


def _other_outcomes(parts: Sequence[OperationPart]) -> list[tuple[str, int, str]]:
    """Outcomes but plain success: how often, and of which kinds; the most frequent first."""
    kinds: dict[str, list[tuple[str, int]]] = {}
    for part in parts:
        for outcome, count in other_outcomes(part):
            kinds.setdefault(outcome, []).append((part.kind, count))
    found = [
        (
            outcome,
            sum(count for _, count in of),
            ", ".join(f"{kind} {count:,}" for kind, count in of),
        )
        for outcome, of in kinds.items()
    ]
    return sorted(found, key=lambda row: (-row[1], row[0]))


def _colour(name: str) -> str:
    return {"2": "cyan", "5": "red"}.get(name[:1], "yellow")
