"""The pages about several runs: a comparison, and the trend of each profile over time.

Each is one file, and opens offline. A comparison has the courses of runs over each other, a trend
their figures one after the other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from harness import __version__
from harness.measure.record.record import RunRecord
from harness.model.figures import counted, signed
from harness.report.compare.comparison import Comparison, headline, settings_of
from harness.report.compare.differences import Subject, Values
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
from harness.report.limits import counted_unit
from harness.report.passing import passing_of
from harness.report.web.document import Block, Content, page_of
from harness.report.web.frame import Chart, Line, middles, together
from harness.report.web.heat_maps import key_heat, percentiles
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
    shown = [
        measure
        for measure in one.measures
        if any(measure.read(record) is not None for record in one.records)
    ]
    rows = [_row(record, shown) for record in one.records]
    headers = ["run", "conditions", "verdict", *(measure.label.strip() for measure in shown)]
    searched = f"runs of {one.profile}"
    return rows_html(headers, rows, 3, searched=searched, counted=len(rows))


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


_MOST_HEAT_MAPS = 6
_COLOURS = 8
"""Colours of runs."""
_LINES = (("entities", "{unit.rate}", ""), ("throttled", "attempts/s", "throttled "))
"""Figures of each point of the series, their units, and what the titles begin with."""


def courses(subjects: Sequence[Subject]) -> dict[str, Chart]:
    """The courses of runs over each other, by seconds since the load began; of all repeats."""
    made: dict[str, Chart] = {}
    unit = counted_unit(record for _, _, record in _runs(subjects))
    for figure, per_s, whose in _LINES:
        per_s = per_s.format(unit=unit)
        lines = [
            _course(
                label,
                place,
                middles(record),
                [getattr(point, figure) for point in record.series],
                per_s,
            )
            for label, place, record in _runs(subjects)
            if record.series
        ]
        if any(value for line in lines for value in line.ys):
            title = f"{whose}{per_s}"
            title = f"{title[:1].upper()}{title[1:]}, since the load began"
            made[f"chart-{figure}"] = Chart(title=title, lines=lines)
    latencies = []
    for label, place, record in _runs(subjects):
        part = record.service_over_time
        if part is None or not record.series:
            continue
        began = part.start - record.series[0].t
        xs = [began + (column + 0.5) * part.width_s for column in range(part.columns)]
        latencies.append(_course(label, place, xs, percentiles(part, 99), "ms"))
    if latencies:
        title = "p99 of service latency in ms, since the load began"
        made["chart-p99"] = Chart(title=title, lines=latencies, log=True)
    names = headings(subjects)
    for number, subject in enumerate(subjects[:_MOST_HEAT_MAPS]):
        heat = subject.records[0].heat
        if heat is None or not heat.ranges or not subject.records[0].series:
            continue
        title = f"{names[number]}: {unit.rate}"
        shown = key_heat(subject.records[0], heat, title, unit.many)
        # The time of all charts begins with the load of each run.
        made[f"chart-heat-{number}"] = dataclasses.replace(shown, began=None, bands=(), marks=())
    last = max((x for one in made.values() for line in one.lines for x in line.xs), default=1.0)
    return together(
        {name: dataclasses.replace(one, span=(0.0, last)) for name, one in made.items()}
    )


def trend(records: Sequence[RunRecord], measures: Iterable[Measure]) -> list[Chart]:
    """A chart for each measure: a point for each run in order of time, in the colour of its result.

    Runs are at equal distances: some are minutes apart, others weeks.
    """
    # Month, day and time; the run's id beside the pointer has the year.
    names = [record.started_at[5:16].replace("T", " ") for record in records]
    if len(set(names)) < len(names):
        names = [record.started_at[5:19].replace("T", " ") for record in records]
    passing = [*map(passing_of, records)]
    signs = [found.tone if found else "none" for found in passing]
    texts = [
        f"{record.run_id}: {f'{found.word}, ' if found else ''}{result_words(record)}"
        for record, found in zip(records, passing, strict=True)
    ]
    made = []
    for measure in measures:
        values = [measure.read(record) for record in records]
        if not any(values):
            continue
        scale = 100.0 if measure.unit == "%" else 1.0
        line = Line(
            name=measure.noun,
            tone="none",
            unit=measure.unit,
            xs=list(range(len(records))),
            ys=[None if value is None else round(value * scale, 4) for value in values],
            look="thin",
            signs=signs,
            texts=texts,
        )
        title = f"{measure.noun[:1].upper()}{measure.noun[1:]}"
        if measure.unit:
            title += f", {measure.unit}"
        span = (-0.5, len(names) - 0.5)
        made.append(Chart(title=title, span=span, names=names, lines=[line]))
    return made


def _runs(subjects: Sequence[Subject]) -> Iterable[tuple[tuple[str, str], int, RunRecord]]:
    """Every run with the name and the tone of its lines, and its place among the repeats."""
    for number, (name, subject) in enumerate(zip(headings(subjects), subjects, strict=True)):
        label = name, f"run-{number % _COLOURS}"
        for place, record in enumerate(subject.records):
            yield label, place, record


def _course(
    label: tuple[str, str],
    place: int,
    xs: Sequence[float],
    ys: Sequence[float | None],
    unit: str,
) -> Line:
    name, tone = label
    return Line(
        name=name,
        tone=tone,
        unit=unit,
        xs=xs,
        ys=ys,
        look="thin" if place else "",
        legend=place == 0,
    )
