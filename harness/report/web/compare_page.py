"""The page of a comparison: what is better, the courses over each other, and all measures."""

from __future__ import annotations

from harness import __version__
from harness.report.compare.comparison import Comparison, Values
from harness.report.compare.measures import Measure
from harness.report.compare.outputs import (
    SAID,
    changed,
    described,
    is_better,
    measured,
    outcome,
    said,
    span_words,
    title_of,
)
from harness.report.web.document import Block, Section, self_contained
from harness.report.web.over_runs import courses
from harness.report.web.parts import list_html
from harness.report.web.rendering import render
from harness.report.web.tables import Cell, rows_html

_JUDGED = {
    True: ("regression", "bad"),
    False: ("no regression", "good"),
    None: ("not known", "warn"),
}
_TONES = {True: "good", False: "bad", None: ""}


def compare_page(comparison: Comparison) -> str:
    """The comparison in one HTML file that loads nothing else."""
    subjects = comparison.subjects
    figures = courses(subjects)
    runs = [
        row
        for one in subjects
        for row in ((f"{one.letter} {one.source}", outcome(one)), ("", described(one)))
    ]
    judged = [
        [Cell(*_JUDGED[one.holds]), Cell(one.text, "name"), Cell(one.sentence)]
        for one in comparison.regressions
    ]
    parts = {
        "head": render("head.html", name=title_of(subjects), question="", facts=[]),
        "warnings": list_html((sentence, "") for sentence in comparison.warnings),
        "regressions": rows_html(["result", "condition", "why"], judged, 3),
        "best": list_html((sentence, "") for sentence in (*comparison.findings, comparison.rule)),
        "subjects": render("facts.html", facts=runs),
        "measures": _measures(comparison),
    }
    charts = tuple(Block(name) for name in figures)
    sections = (
        Section(
            "summary",
            "",
            (
                Block("regressions", "Regressions of the last against the first"),
                Block("subjects", "Runs"),
                Block("best", "Which is better"),
                Block("warnings", "Compare with care"),
            ),
        ),
        Section("over-time", "Over each other", charts),
        Section("all", "All measures", (Block("measures"),)),
    )
    return self_contained(
        title_of(subjects),
        sections,
        {name: text for name, text in parts.items() if text},
        figures,
        footer=f"{title_of(subjects)}; table stress harness {__version__}.",
    )


def _measures(comparison: Comparison) -> str:
    subjects = comparison.subjects
    rows = []
    for measure, values in measured(subjects):
        cells = [_cell(measure, value, values[0], place) for place, value in enumerate(values)]
        rows.append([Cell(measure.label.strip(), "faint"), *cells])
    for label, say in SAID.items():
        cells = [Cell(", ".join(said(subject, say))) for subject in subjects]
        rows.append([Cell(label, "faint"), *cells])
    return rows_html(["measure", *(subject.letter for subject in subjects)], rows, 1)


def _cell(measure: Measure, values: Values | None, first: Values | None, place: int) -> Cell:
    if values is None:
        return Cell("n/a", "faint")
    text, tone = measure.show(values.mean), ""
    if place and first is not None:
        tone = _TONES[is_better(measure, values, first)]
        if measure.unit != "%":
            text += f" ({changed(values.mean, first.mean) or 'n/a'})"
    return Cell(text, tone, title=span_words(measure, values))
