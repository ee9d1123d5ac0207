"""The page of an advice: today's keys and the recommended ones side by side. One file, offline."""

from __future__ import annotations

from harness.measure.record.advice import AdviceRecord, TableAdvicePart
from harness.measure.record.whatif import WhatIfRecord
from harness.report.advise import (
    Given,
    advice_heading,
    commands,
    compared_rows,
    example,
    field_rows,
    titled,
)
from harness.report.web.document import Block, Section, self_contained
from harness.report.web.frame import Chart, together
from harness.report.web.heat_maps import key_heat
from harness.report.web.parts import list_html
from harness.report.web.tables import Cell, render, rows_html, short

_NAME_WIDTH = 40
_SHOWN = ("Today", "Recommended")


def advise_page(found: AdviceRecord, given: Given) -> str:
    parts = {
        "head": render(
            "head.html",
            name=found.tables[0].headline,
            question=f"{titled(found.tables[0])} of {found.trace}: {advice_heading(found)}",
            facts=[],
        )
    }
    figures: dict[str, Chart] = {}
    sections = []
    for number, table in enumerate(found.tables):
        blocks = []
        for block, content in _parts(number, table):
            parts[block.id] = content
            blocks.append(block)
        if table.found is not None:
            maps = _maps(number, table.found)
            figures |= maps
            blocks[1:1] = [Block(name, half=len(maps) > 1) for name in maps]
        sections.append(Section(f"table-{number}", titled(table).capitalize(), tuple(blocks)))
    parts["notes"] = list_html((note, "") for note in found.notes)
    parts["verify"] = list_html((command, "") for command in commands(found, given))
    ends = (Block("verify", "Verify it"), Block("notes", "What has to be known of the trace"))
    return self_contained(
        f"Which keys: {found.trace}",
        (*sections, Section("further", "How sure it is", ends)),
        parts,
        figures,
        footer=f"Calculated from {found.trace}; table stress harness {found.harness_version}.",
    )


def _parts(number: int, table: TableAdvicePart) -> list[tuple[Block, str]]:
    """The blocks of a table, with their content."""
    # The heading of the page has the headline of the first one.
    title = table.headline if number else "Why"
    said = [(Block(f"answer-{number}", title), _sentences(table.reason))]
    if table.proposals and table.found is not None:
        names = [short(part.name, _NAME_WIDTH) for part in table.found.schemes]
        compared = [
            [Cell(label), *(Cell(text, "warn" if bad else "") for text, bad in cells)]
            for label, cells in compared_rows(table)
        ]
        said.append(
            (Block(f"compared-{number}", "Side by side"), rows_html(["", *names], compared, 1))
        )
        heads = ["keys", "PartitionKey", "RowKey", "for example", "trade"]
        proposed = [
            [
                Cell(one.name),
                Cell(one.partition_key, "name"),
                Cell(one.row_key, "name"),
                Cell("; ".join(f"{old} → {new}" for old, new in example(table, place)), "name"),
                Cell(one.trade),
            ][: 5 if len(table.proposals) > 1 else 4]
            for place, one in enumerate(table.proposals)
        ]
        heads = heads[: len(proposed[0])]
        said.append((Block(f"keys-{number}", "Keys"), rows_html(heads, proposed, len(heads))))
    said.append((Block(f"bad-{number}", "What stays bad"), _sentences(table.stays_bad)))
    if table.fields:
        heads = ["key", "field", "is", "different", "examples"]
        fields = [list(map(Cell, row)) for row in field_rows(table)]
        block = Block(f"fields-{number}", "The keys, as they were understood", folded=True)
        said.append((block, rows_html(heads, fields, 3)))
    return [(block, content) for block, content in said if content or block.id[:3] == "ans"]


def _sentences(said: tuple[str, ...]) -> str:
    return list_html((sentence, "") for sentence in said)


def _maps(number: int, found: WhatIfRecord) -> dict[str, Chart]:
    """The heat maps of today's keys and the recommended ones, over the same time."""
    figures = {
        f"chart-heat-{number}-{place}": key_heat(
            None,
            part.heat,
            "entities",
            f"{name}: {found.unit}/s",
            "heat",
            found.rate,
            found.unit,
        )
        for place, (name, part) in enumerate(zip(_SHOWN, found.schemes, strict=False))
        if part.heat is not None and part.heat.ranges
    }
    return together(figures)
