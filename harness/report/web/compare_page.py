"""The pages about several runs: a comparison, and the trend of each profile over time.

Each is one file, and opens offline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from harness import __version__
from harness.measure.record.record import RunRecord
from harness.model.figures import counted
from harness.report.compare.comparison import Comparison, headline, settings_of
from harness.report.compare.differences import Values
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
from harness.report.compare.repeats import Trend, single_words
from harness.report.passing import passing_of
from harness.report.sentences import result_words
from harness.report.web.document import Block, Section, self_contained
from harness.report.web.frame import Chart
from harness.report.web.over_runs import courses, trend
from harness.report.web.parts import list_html
from harness.report.web.tables import Cell, render, rows_html

_JUDGED = {
    True: ("regression", "bad"),
    False: ("no regression", "good"),
    None: ("not known", "warn"),
}
_TONES = {True: "good", False: "bad", None: ""}
_TITLE = "Runs over time"
_READS = (
    "The sign of a run: a green disc PASS, a red cross FAIL, an amber diamond not decided, a grey "
    "ring a run without conditions."
)


def compare_page(comparison: Comparison) -> str:
    """The comparison in one HTML file that loads nothing else."""
    subjects = comparison.subjects
    figures = courses(subjects)
    runs = [
        row
        for one in subjects
        for row in ((f"{one.letter} {one.titled}", outcome(one)), ("", described(one)))
    ]
    judged = [
        [Cell(*_JUDGED[one.holds]), Cell(one.text, "name"), Cell(one.sentence)]
        for one in comparison.regressions
    ]
    parts = {
        "head": render(
            "head.html",
            name=headline(comparison) or title_of(subjects),
            question="",
            facts=[],
        ),
        "settings": list_html((line, "") for line in settings_of(comparison)),
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
                Block("settings", "Settings that differ"),
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


def trend_page(trends: Sequence[Trend], single: Sequence[str]) -> str:
    """A section for each profile, with a chart for each measure and a table of its runs."""
    figures: dict[str, Chart] = {}
    parts, sections = {}, []
    for place, one in enumerate(trends):
        blocks = [Block(f"changed-{place}")]
        parts[f"changed-{place}"] = list_html((sentence, "") for sentence in one.sentences)
        for number, chart in enumerate(trend(one.records, one.measures)):
            name = f"chart-{place}-{number}"
            figures[name] = chart
            blocks.append(Block(name, reads="" if number else _READS))
        parts[f"runs-{place}"] = _table(one)
        blocks.append(Block(f"runs-{place}", "Runs"))
        title = f"{one.profile}: {counted(len(one.records), 'run')}"
        sections.append(Section(f"profile-{place}", title, tuple(blocks)))
    question = single_words(single) if single else ""
    parts["head"] = render("head.html", name=_TITLE, question=question, facts=[])
    return self_contained(
        _TITLE,
        sections,
        {name: text for name, text in parts.items() if text},
        figures,
        footer=f"{_TITLE}; table stress harness {__version__}.",
    )


def _table(one: Trend) -> str:
    shown = [measure for measure in one.measures if any(map(_is_known(measure), one.records))]
    rows = [_row(record, shown) for record in one.records]
    headers = ["run", "conditions", "verdict", *(measure.label.strip() for measure in shown)]
    searched = f"runs of {one.profile}"
    return rows_html(headers, rows, 3, searched=searched, counted=len(rows))


def _is_known(measure: Measure) -> Callable[[RunRecord], bool]:
    return lambda record: measure.read(record) is not None


def _row(record: RunRecord, measures: Iterable[Measure]) -> list[Cell]:
    found = passing_of(record)
    passing = Cell("", "faint") if found is None else Cell(found.word, found.tone)
    values = [(measure, measure.read(record)) for measure in measures]
    return [
        Cell(record.run_id, "name"),
        passing,
        Cell(result_words(record)),
        *(
            Cell("n/a", "faint", sort=-1.0)
            if value is None
            else Cell(measure.show(value), sort=value)
            for measure, value in values
        ),
    ]
