"""The pages about keys, each one file, offline.

That of a what-if has the schemes in their order, and each with its figures and a heat map. That of
an advice has today's keys and the recommended ones side by side.
"""

from __future__ import annotations

import math

from harness.measure.record.advice import AdviceRecord, TableAdvicePart
from harness.measure.record.whatif import SchemePart, WhatIfRecord
from harness.measure.verdict.ranking import marked
from harness.model.figures import percent
from harness.report.advise import (
    Given,
    advice_heading,
    commands,
    compared_rows,
    field_rows,
    proposed_keys,
    titled,
)
from harness.report.web.document import HEAT_READS, Block, Content, page_of
from harness.report.web.heat_maps import scheme_heats
from harness.report.web.parts import list_html
from harness.report.web.tables import BARS, Cell, named, rows_html, short
from harness.report.whatif import heading, ranking, sentences, would_break
from harness.report.whatif_rows import SchemeRow, rows

_NAME_WIDTH = 40


def whatif_page(found: WhatIfRecord) -> str:
    title = f"What if: {found.trace}"
    summary = [
        (Block("best", "Which is better"), list_html(sentences(found))),
        (Block("order", "Best first"), _ranking(found)),
        (Block("broken", "Would break the application"), list_html(would_break(found))),
    ]
    ranked = sorted(enumerate(found.schemes), key=lambda one: one[1].rank or math.inf)
    maps = scheme_heats(found, [(str(place), part.name, part) for place, part in ranked])
    each: list[Content] = []
    for place, part in ranked:
        each.append((Block(f"figures-{place}", part.name), _figures(found, part)))
        if place and part.sample:
            each.append((Block(f"sample-{place}"), _sample(part)))
        if (name := f"chart-heat-{place}") in maps:
            each.append((Block(name, reads=HEAT_READS), maps[name]))
    return page_of(
        title,
        (title, heading(found)),
        [("summary", "", summary), ("keys", "Each of the keys", each)],
        f"Calculated from {found.trace}",
        found.harness_version,
    )


def _ranking(found: WhatIfRecord) -> str:
    headings, rows = ranking(found)
    lines = []
    for part, texts, share in rows:
        cells = [Cell(text) for text in texts]
        cells[1] = named(part.name, _NAME_WIDTH)
        cells[2] = Cell(texts[2], "warn" if part.once.throttled else "")
        cells[5] = Cell(marked(part, percent(share)), "warn" if share > 1 else "", title=texts[5])
        lines.append(cells)
    return rows_html(headings, lines, 2)


def _figures(found: WhatIfRecord, part: SchemePart) -> str:
    """Each figure of a scheme, beside that of the recorded keys."""
    shown = [found.schemes[0], *([part] if part is not found.schemes[0] else [])]
    return rows_html(
        ["figure", *(short(one.name, _NAME_WIDTH) for one in shown)],
        [[Cell(row.label), *(_cell(row, found, one) for one in shown)] for row in rows(found)],
        1,
        notes=[BARS],
    )


def _cell(row: SchemeRow, found: WhatIfRecord, part: SchemePart) -> Cell:
    text = row.text(found, part)
    share = None if row.share is None else row.share(found, part)
    if share is not None:
        text += f" ({percent(share)})"
    return Cell(
        short(text, _NAME_WIDTH),
        "warn" if row.bad(found, part) else "",
        title=text if len(text) > _NAME_WIDTH else "",
        share=share,
    )


def _sample(part: SchemePart) -> str:
    return rows_html(
        ["recorded", "under this scheme"],
        [[Cell(recorded, "name"), Cell(new, "name")] for recorded, new in part.sample],
        2,
        notes=[part.question] if part.question else [],
    )


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
