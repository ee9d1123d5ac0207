"""The page of a what-if: the schemes in their order, and each with its figures and a heat map.

One file, offline.
"""

from __future__ import annotations

import math

from harness.measure.record.whatif import SchemePart, WhatIfRecord
from harness.measure.verdict.ranking import marked
from harness.model.figures import percent
from harness.report.web.document import Block, Section, self_contained
from harness.report.web.frame import Chart, together
from harness.report.web.heat_maps import key_heat
from harness.report.web.parts import list_html
from harness.report.web.tables import BARS, Cell, named, render, rows_html, short
from harness.report.whatif import heading, ranking, sentences, would_break
from harness.report.whatif_rows import SchemeRow, rows

_NAME_WIDTH = 40
_READS = (
    "A horizontal line is a hot key, a diagonal is an append-only key, an even area is an even "
    "spread."
)


def whatif_page(found: WhatIfRecord) -> str:
    parts = {
        "head": render(
            "head.html", name=f"What if: {found.trace}", question=heading(found), facts=[]
        ),
        "best": list_html((sentence, "") for sentence in sentences(found)),
        "order": _ranking(found),
        "broken": list_html((sentence, "") for sentence in would_break(found)),
    }
    figures: dict[str, Chart] = {}
    blocks = []
    for place, part in sorted(enumerate(found.schemes), key=lambda one: one[1].rank or math.inf):
        parts[f"figures-{place}"] = _figures(found, part)
        blocks.append(Block(f"figures-{place}", part.name))
        if place and part.sample:
            parts[f"sample-{place}"] = _sample(part)
            blocks.append(Block(f"sample-{place}"))
        if part.heat is not None and part.heat.ranges:
            name = f"chart-heat-{place}"
            figures[name] = key_heat(
                None,
                part.heat,
                "entities",
                f"{part.name}: {found.unit}/s",
                "heat",
                found.rate,
                found.unit,
            )
            blocks.append(Block(name, reads=_READS))
    sections = (
        Section(
            "summary",
            "",
            (
                Block("best", "Which is better"),
                Block("order", "Best first"),
                Block("broken", "Would break the application"),
            ),
        ),
        Section("keys", "Each of the keys", tuple(blocks)),
    )
    return self_contained(
        f"What if: {found.trace}",
        sections,
        parts,
        together(figures),
        footer=f"Calculated from {found.trace}; table stress harness {found.harness_version}.",
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
