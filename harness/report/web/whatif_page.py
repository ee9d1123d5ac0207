"""The page of a what-if: the schemes in their order, and each with its figures and a heat map.

One file, offline.
"""

from __future__ import annotations

import math

from harness.measure.record.whatif import SchemePart, WhatIfRecord
from harness.measure.verdict.ranking import marked
from harness.model.figures import percent
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
