"""The page of a trend: the figures of each profile's runs over time. One file, offline."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from harness import __version__
from harness.measure.record.record import RunRecord
from harness.model.figures import counted
from harness.report.compare.measures import Measure
from harness.report.compare.trend import TREND_MEASURES, Trend, single_words
from harness.report.passing import passing_of
from harness.report.sentences import result_words
from harness.report.web.document import Block, Section, self_contained
from harness.report.web.frame import Figure
from harness.report.web.over_runs import trend
from harness.report.web.parts import list_html
from harness.report.web.rendering import render
from harness.report.web.tables import Cell, rows_html

_TITLE = "Runs over time"
_READS = (
    "The sign of a run: a green disc PASS, a red cross FAIL, an amber diamond not decided, a grey "
    "ring a run without conditions."
)


def trend_page(trends: Sequence[Trend], single: Sequence[str]) -> str:
    """A section for each profile, with a chart for each measure and a table of its runs."""
    figures: dict[str, Figure] = {}
    parts, sections = {}, []
    for place, one in enumerate(trends):
        blocks = [Block(f"changed-{place}")]
        parts[f"changed-{place}"] = list_html((sentence, "") for sentence in one.sentences)
        for number, chart in enumerate(trend(one.records, TREND_MEASURES)):
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
    shown = [measure for measure in TREND_MEASURES if any(map(_is_known(measure), one.records))]
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
