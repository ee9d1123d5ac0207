"""The comparison of runs for a terminal."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.measure import Measurement
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from harness.measure.figures import counted, listed
from harness.measure.record.record import RunRecord
from harness.report.compare.comparison import Comparison, Subject
from harness.report.compare.quantities import MEASURES, Measure, Values, change_of, differ
from harness.report.export.markdown import code, table, text
from harness.report.sentences import result_words
from harness.report.terminal.page import Cell, Page, grid, table_of

HOLDS = {True: "REGRESSION", False: "no regression", None: "not known"}
_COLOURS = {True: "bold red", False: "green", None: "yellow"}
_CHANGE_WIDTH = 6


def side_by_side(comparison: Comparison, page: Page) -> str:
    """The comparison as text, as wide as ``page``."""
    subjects = comparison.subjects
    parts = [_legend(subjects, page)]
    if comparison.warnings:
        parts.append(_warnings(comparison.warnings, page))
    for block in _blocks(subjects, page):
        letters = listed([subject.letter for subject in block])
        parts.append(page.section(f"{letters} side by side", _table(block, page)))
    lines = [Text(page.show(sentence)) for sentence in comparison.findings]
    parts.append(page.section("which is better", *lines, Text(comparison.rule, style="dim")))
    if comparison.regressions:
        rows = [
            (
                Text(HOLDS[judged.holds], style=_COLOURS[judged.holds]),
                page.show(judged.text),
                page.show(judged.sentence),
            )
            for judged in comparison.regressions
        ]
        parts.append(page.section(regression_title(comparison), grid(rows)))
    return page.render(Group(*parts))


def described(subject: Subject) -> str:
    """Profile, endpoint, load and run ids of a subject; of repeats, those of the first."""
    first = subject.records[0]
    runs = counted(len(subject.records), "run")
    return (
        f"{first.profile.get('name', 'run')} on {first.endpoint.described}; "
        f"{counted(first.users, 'user')} in {counted(first.workers, 'process', 'processes')}, "
        f"session {first.session}, {first.measured_s:,} s measured; {runs}: "
        + ", ".join(record.run_id for record in subject.records)
    )


def regression_title(comparison: Comparison) -> str:
    """The title of the regressions."""
    return (
        f"regressions of {comparison.subjects[-1].letter} against {comparison.subjects[0].letter}"
    )


def said(subject: Subject, say: Callable[[RunRecord], str]) -> list[str]:
    """The text of all runs, or each text with the number of runs that have it."""
    words = Counter(say(record) for record in subject.records)
    if len(words) == 1:
        return list(words)
    return [f"{word}, {count} of {words.total()}" for word, count in words.most_common()]


SAID: dict[str, Callable[[RunRecord], str]] = {
    "verdict": result_words,
    "limited by": lambda record: record.verdict.limited_by,
}
"""Texts that are compared."""


def changed(value: float, reference: float) -> str:
    """How far a value is from another: ``+4.1%``, ``-40%``, ``same``; empty where that is 0."""
    change = change_of(value, reference)
    if change is None:
        return ""
    if abs(change) < 0.0005:
        return "same"
    return f"{change:+.1%}" if abs(change) < 0.0995 else f"{change:+,.0%}"


def range_of(measure: Measure, values: Values) -> str:
    """From the least to the most of repeats; empty where they are written alike."""
    least, most = measure.show(values.least), measure.show(values.most)
    return "" if least == most else f"{least} to {most}"


def _legend(subjects: Sequence[Subject], page: Page) -> RenderableType:
    rows: list[tuple[Cell, Cell]] = []
    for subject in subjects:
        rows.append((Text(subject.letter, style="bold"), Text(page.show(subject.source))))
        rows.append(("", Text(page.show(described(subject)), style="dim")))
    return Group(grid(rows))


def _warnings(sentences: Sequence[str], page: Page) -> RenderableType:
    return Panel(
        Text("\n".join(page.show(sentence) for sentence in sentences)),
        title=Text("COMPARE WITH CARE", style="bold yellow"),
        title_align="left",
        box=page.glyphs.box,
        border_style="yellow",
    )


def _blocks(subjects: Sequence[Subject], page: Page) -> Iterator[list[Subject]]:
    """As many side by side as fit, at least two; the first is in every block."""
    options = page.console(io.StringIO()).options.update(max_width=10_000)
    block = [subjects[0]]
    for subject in subjects[1:]:
        wide = Measurement.get(
            page.console(io.StringIO()), options, _table([*block, subject], page)
        )
        if len(block) > 1 and wide.maximum > page.width:
            yield block
            block = [subjects[0]]
        block.append(subject)
    yield block


def _table(subjects: Sequence[Subject], page: Page) -> Table:
    rows: list[list[Text]] = []
    for measure in MEASURES:
        values = [subject.values(measure) for subject in subjects]
        if any(value is not None for value in values):
            cells = [_cell(measure, value, values[0], place) for place, value in enumerate(values)]
            rows.append([Text(measure.label), *cells])
    for label, say in SAID.items():
        words = ["\n".join(map(page.show, said(subject, say))) for subject in subjects]
        rows.append([Text(label), *map(Text, words)])
    for row in rows:
        lines = max(cell.plain.count("\n") for cell in row)
        for cell in row:
            # Cells are aligned at the bottom, where a range stands below its mean.
            cell.append("\n" * (lines - cell.plain.count("\n")))
    return table_of(["", *(subject.letter for subject in subjects)], rows)


def _cell(measure: Measure, values: Values | None, first: Values | None, place: int) -> Text:
    """A mean, how far it is from the first's, and below it the range of the repeats."""
    if values is None:
        return Text("n/a", style="dim")
    cell = Text(measure.show(values.mean))
    if place:
        change = ""
        if first is not None and measure.unit != "%":
            change = changed(values.mean, first.mean)
        cell.append(f" {change:>{_CHANGE_WIDTH}}", style=_colour(measure, values, first))
    if span := range_of(measure, values):
        blank = f" {'':{_CHANGE_WIDTH}}" if place else ""
        cell.append(f"\n{span}{blank}", style="dim")
    return cell


def _colour(measure: Measure, values: Values, first: Values | None) -> str:
    if first is None or measure.more_is_better is None or not differ(measure, first, values):
        return "dim"
    return "green" if (values.mean > first.mean) == measure.more_is_better else "red"


SCHEMA_VERSION = 1
_SIGNS = {True: "❌", False: "✅", None: "❔"}


def comparison_markdown(comparison: Comparison) -> str:
    """The comparison in GitHub flavoured Markdown; ends in a line break."""
    subjects = comparison.subjects
    letters = listed([subject.letter for subject in subjects])
    lines = [f"## {letters} side by side", ""]
    for subject in subjects:
        lines.append(f"- **{subject.letter}** {code(subject.source)}: {text(described(subject))}")
    if comparison.warnings:
        lines += ["", "> [!WARNING]"]
        lines += [f"> {text(sentence)}<br>" for sentence in comparison.warnings]
    rows = []
    for measure in MEASURES:
        values = [subject.values(measure) for subject in subjects]
        if any(value is not None for value in values):
            cells = [
                _markdown_cell(measure, value, values[0], place)
                for place, value in enumerate(values)
            ]
            rows.append([measure.label.strip(), *cells])
    for label, say in SAID.items():
        rows.append([label, *("<br>".join(map(text, said(subject, say))) for subject in subjects)])
    lines += ["", *table(["", *(subject.letter for subject in subjects)], rows), ""]
    lines += [f"- {text(sentence)}" for sentence in comparison.findings]
    lines += ["", text(comparison.rule)]
    if comparison.regressions:
        judged = [
            [f"{_SIGNS[one.holds]} {HOLDS[one.holds]}", code(one.text), text(one.sentence)]
            for one in comparison.regressions
        ]
        title = regression_title(comparison)
        lines += [
            "",
            f"### {title[0].upper()}{title[1:]}",
            "",
            *table(["", "", ""], judged, left=3),
        ]
    return "\n".join(lines) + "\n"


def comparison_json(comparison: Comparison) -> str:
    """The comparison for programs. Latencies are milliseconds, shares are of 1."""
    content = {
        "schema_version": SCHEMA_VERSION,
        "subjects": [_subject(subject) for subject in comparison.subjects],
        "warnings": comparison.warnings,
        "findings": comparison.findings,
        "rule": comparison.rule,
        "regressions": [
            {"text": one.text, "holds": one.holds, "sentence": one.sentence}
            for one in comparison.regressions
        ],
        "exit_code": comparison.exit_code,
    }
    return json.dumps(content, indent=1) + "\n"


def _markdown_cell(
    measure: Measure, values: Values | None, first: Values | None, place: int
) -> str:
    if values is None:
        return "n/a"
    cell = measure.show(values.mean)
    if place and first is not None and measure.unit != "%":
        cell += f" ({changed(values.mean, first.mean) or 'n/a'})"
    if span := range_of(measure, values):
        cell += f"<br>{span}"
    return cell


def _subject(subject: Subject) -> dict[str, Any]:
    return {
        "letter": subject.letter,
        "source": subject.source,
        "runs": [record.run_id for record in subject.records],
        "verdicts": [record.verdict.result for record in subject.records],
        "limited_by": [record.verdict.limited_by for record in subject.records],
        "measures": {measure.name: _values(subject.values(measure)) for measure in MEASURES},
    }


def _values(values: Values | None) -> dict[str, float] | None:
    if values is None:
        return None
    return {
        "mean": round(values.mean, 6),
        "least": round(values.least, 6),
        "most": round(values.most, 6),
        "count": values.count,
    }
