"""The schemes side by side in a terminal, and for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from harness.measure.record.whatif import SchemePart, WhatIfRecord
from harness.model.figures import percent
from harness.report.terminal.page import Cell, Page, bar, grid, table_of
from harness.report.whatif.rows import SchemeRow, best_of, heading, rows, sentences

_BAR_WIDTH = 6
_NAME_WIDTH = 28


def whatif_text(found: WhatIfRecord, page: Page) -> str:
    parts: list[RenderableType] = [Text(page.show(heading(found)))]
    for part in found.schemes[1:]:
        parts.append(page.section(page.show(_titled(part)), _sample(part, page)))
    for block in _blocks(found, page):
        parts.append(page.section("side by side", _table(found, block, page)))
    lines = [Text(page.show(sentence)) for sentence in sentences(found)]
    parts.append(page.section("which is better", *lines))
    return page.render(*parts)


def whatif_json(found: WhatIfRecord) -> str:
    """The calculation for programs. Rates are in `unit`/s, shares are of 1."""
    return found.model_dump_json(indent=1) + "\n"


def _titled(part: SchemePart) -> str:
    return f"{part.name}: {part.question}" if part.question else part.name


def _sample(part: SchemePart, page: Page) -> Table:
    arrow = "->" if page.ascii_only else "→"
    lines: list[tuple[Cell, Cell, Cell]] = []
    for recorded, new in part.sample:
        half = max(10, page.width // 2 - 4)
        lines.append((page.short(recorded, half), Text(arrow, "dim"), page.short(new, half)))
    return grid(lines)


def _blocks(found: WhatIfRecord, page: Page) -> Iterator[list[SchemePart]]:
    """As many schemes side by side as fit; the recorded one is in every block."""
    recorded, *others = found.schemes
    block = [recorded]
    for part in others:
        wider = [*block, part]
        if len(block) > 1 and page.natural_width(_table(found, wider, page)) > page.width:
            yield block
            wider = [recorded, part]
        block = wider
    yield block


def _table(found: WhatIfRecord, parts: Sequence[SchemePart], page: Page) -> Table:
    best = best_of(found) if len(found.schemes) > 1 else None
    names = [
        page.short(part.name, _NAME_WIDTH) + (" (best)" if part is best else "") for part in parts
    ]
    return table_of(
        ["", *names],
        [
            [Text(row.label), *(_cell(row, found, part, page) for part in parts)]
            for row in rows(found)
        ],
    )


def _cell(row: SchemeRow, found: WhatIfRecord, part: SchemePart, page: Page) -> Text:
    bad = row.bad(found, part)
    cell = Text(page.short(row.say(found, part), _NAME_WIDTH), style="yellow" if bad else "")
    if row.share is not None:
        share = row.share(found, part)
        cell.append(f" {bar(share, _BAR_WIDTH, page.glyphs)} {percent(share):>5}")
    return cell
