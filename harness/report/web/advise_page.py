"""The page of an advice: today's keys and the recommended ones side by side. One file, offline."""

from __future__ import annotations

from harness.measure.record.advice import AdviceRecord, TableAdvicePart
from harness.report.advise import (
    Given,
    advice_heading,
    commands,
    compared_rows,
    field_rows,
    proposed_keys,
    titled,
)
from harness.report.web.document import Block, Content, page_of
from harness.report.web.heat_maps import scheme_heats
from harness.report.web.parts import list_html
from harness.report.web.tables import Cell, rows_html, short

_NAME_WIDTH = 40
_SHOWN = ("Today", "Recommended")


def advise_page(found: AdviceRecord, given: Given) -> str:
    first = found.tables[0]
    sections: list[tuple[str, str, list[Content]]] = []
    for number, table in enumerate(found.tables):
        contents = _contents(number, table)
        if table.found is not None:
            shown = zip(_SHOWN, table.found.schemes, strict=False)
            named = [(f"{number}-{place}", *one) for place, one in enumerate(shown)]
            maps = scheme_heats(table.found, named)
            half = len(maps) > 1
            contents[1:1] = [(Block(name, half=half), chart) for name, chart in maps.items()]
        sections.append((f"table-{number}", titled(table).capitalize(), contents))
    further: list[Content] = [
        (Block("verify", "Verify it"), list_html(commands(found, given))),
        (Block("notes", "What has to be known of the trace"), list_html(found.notes)),
    ]
    return page_of(
        f"Which keys: {found.trace}",
        (first.headline, f"{titled(first)} of {found.trace}: {advice_heading(found)}"),
        [*sections, ("further", "How sure it is", further)],
        f"Calculated from {found.trace}",
        found.harness_version,
    )


def _contents(number: int, table: TableAdvicePart) -> list[Content]:
    """The blocks of a table, with what is in them."""
    # The heading of the page has the headline of the first one.
    title = table.headline if number else "Why"
    said: list[Content] = [(Block(f"answer-{number}", title), list_html(table.reason) or "<p></p>")]
    if table.proposals and table.found is not None:
        names = [short(part.name, _NAME_WIDTH) for part in table.found.schemes]
        compared = [
            [Cell(label), *(Cell(text, "warn" if bad else "") for text, bad in cells)]
            for label, cells in compared_rows(table)
        ]
        said.append(
            (Block(f"compared-{number}", "Side by side"), rows_html(["", *names], compared, 1))
        )
        for place, proposal in enumerate(table.proposals):
            title, texts = proposed_keys(table, place)
            rows = [
                [Cell(label), Cell(text, "" if label == "trade" else "name")]
                for label, text in texts
            ]
            block = Block(f"keys-{number}-{place}", f"{title[0].upper()}{title[1:]}")
            said.append((block, rows_html(["", proposal.name], rows, 2)))
    said.append((Block(f"bad-{number}", "What stays bad"), list_html(table.stays_bad)))
    if table.fields:
        heads = ["key", "field", "is", "different", "examples"]
        fields = [list(map(Cell, row)) for row in field_rows(table)]
        block = Block(f"fields-{number}", "The keys, as they were understood", folded=True)
        said.append((block, rows_html(heads, fields, 3)))
    return said
