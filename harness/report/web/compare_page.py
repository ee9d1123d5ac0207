"""The pages about several runs: a comparison, and the trend of each profile over time.

Each is one file, and opens offline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from harness import __version__
from harness.measure.record.record import RunRecord
from harness.model.figures import counted, signed
from harness.report.compare.comparison import Comparison, headline, settings_of
from harness.report.compare.differences import Values
from harness.report.compare.measures import Measure
from harness.report.compare.outputs import (
    JUDGED,
    SAID,
    described,
    headings,
    is_better,
    measured,
    outcome,
    said,
    span_words,
    title_of,
    with_change,
)
from harness.report.compare.repeats import Trend, single_words
from harness.report.headline import result_words
from harness.report.passing import passing_of
from harness.report.web.document import Block, Content, page_of
from harness.report.web.over_runs import courses, trend
from harness.report.web.parts import list_html
from harness.report.web.tables import Cell, render, rows_html

_TONES = {True: "good", False: "bad", None: ""}
_TITLE = "Runs over time"
_READS = (
    "The sign of a run: a green disc PASS, a red cross FAIL, an amber diamond not decided, a grey "
    "ring a run without conditions."
)


def compare_page(comparison: Comparison) -> str:
    """The comparison in one HTML file that loads nothing else."""
    subjects = comparison.subjects
    runs = [
        row
        for one in subjects
        for row in ((one.name, one.source), ("", outcome(one)), ("", described(one)))
    ]
    judged = [
        [Cell(word.lower(), tone), Cell(one.text, "name"), Cell(one.sentence)]
        for one in comparison.regressions
        for word, *_, tone in (JUDGED[one.holds],)
    ]
    summary = [
        (Block("settings", "Settings that differ"), list_html(settings_of(comparison))),
        (
            Block("regressions", "Regressions of the last against the first"),
            rows_html(["result", "condition", "why"], judged, 3),
        ),
        (Block("subjects", "Runs"), render("facts.html", facts=runs)),
        (Block("best", "Which is better"), list_html([*comparison.findings, comparison.rule])),
        (Block("warnings", "Compare with care"), list_html(comparison.warnings)),
    ]
    charts = [(Block(name), chart) for name, chart in courses(subjects).items()]
    title = title_of(subjects)
    return page_of(
        title,
        (headline(comparison) or title, ""),
        [
            ("summary", "", summary),
            ("over-time", "Over each other", charts),
            ("all", "All measures", [(Block("measures"), _measures(comparison))]),
        ],
        title,
        __version__,
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
    return rows_html(["measure", *headings(subjects)], rows, 1)


def _cell(measure: Measure, values: Values | None, first: Values | None, place: int) -> Cell:
    if values is None:
        return Cell("n/a", "faint")
    text = with_change(measure, values, first, place)
    tone = _TONES[is_better(measure, values, first)] if place else ""
    return Cell(text, tone, title=span_words(measure, values))


def trend_page(trends: Sequence[Trend], single: Sequence[str]) -> str:
    """A section for each profile, with a chart for each measure and a table of its runs."""
    sections = []
    for place, one in enumerate(trends):
        contents: list[Content] = [(Block(f"changed-{place}"), list_html(one.sentences))]
        for number, chart in enumerate(trend(one.records, one.measures)):
            reads = "" if number else _READS
            contents.append((Block(f"chart-{place}-{number}", reads=reads), chart))
        contents.append((Block(f"runs-{place}", "Runs"), _table(one)))
        title = f"{one.profile}: {counted(len(one.records), 'run')}"
        sections.append((f"profile-{place}", title, contents))
    question = single_words(single) if single else ""
    return page_of(_TITLE, (_TITLE, question), sections, _TITLE, __version__)


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
            else Cell(signed(measure.sign(record), measure.show(value)), sort=value)
            for measure, value in values
        ),
    ]
