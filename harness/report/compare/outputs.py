"""The comparison of runs: for a terminal, for the page of a CI job, and for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from harness.measure.record.findings import RecordPart
from harness.measure.record.measured import INVERSE
from harness.measure.record.record import RunRecord
from harness.model.errors import printable
from harness.model.figures import counted, listed, signed
from harness.report.compare import comparison as words
from harness.report.compare.comparison import Comparison
from harness.report.compare.differences import MANY_TIMES, Subject, Values, change_of, judge
from harness.report.compare.measures import MEASURES, Measure, measures_of
from harness.report.compare.regressions import Judged
from harness.report.export.markdown import code, table, text
from harness.report.export.output import CommandOutput
from harness.report.headline import headline, result_words
from harness.report.names import shortened
from harness.report.passing import passing_of
from harness.report.terminal.page import Cell, Page, grid, table_of

JUDGED = {
    True: ("REGRESSION", "❌", "bold red", "bad"),
    False: ("no regression", "✅", "green", "good"),
    None: ("not known", "❔", "yellow", "warn"),
}
"""What is said of a regression: the words, a sign, a style in a terminal, a tone of a page."""
SAID: dict[str, Callable[[RunRecord], str]] = {
    "verdict": result_words,
    "limited by": lambda record: record.verdict.limited_by,
}
"""Texts that are compared."""
_CHANGE_WIDTH = 6
_COLOURS = {True: "green", False: "red", None: "dim"}
_NAME_WIDTH = 24


def side_by_side(comparison: Comparison, page: Page) -> str:
    subjects = comparison.subjects
    legend: list[tuple[Cell, Cell]] = []
    for name, subject in zip(headings(subjects, page.ascii_only), subjects, strict=True):
        legend.append((Text(name, "bold"), page.show(subject.source)))
        legend.append(("", page.show(outcome(subject))))
        legend.append(("", Text(page.show(described(subject)), style="dim")))
    parts: list[RenderableType] = []
    if said_first := words.headline(comparison):
        parts.append(Text(page.show(said_first), "bold"))
    if settings := words.settings_of(comparison):
        lines = [Text(page.show(line)) for line in settings]
        parts.append(page.section("settings that differ", *lines))
        parts.append("")
    parts.append(grid(legend))
    if comparison.warnings:
        warnings = Text("\n".join(map(page.show, comparison.warnings)))
        title = Text("COMPARE WITH CARE", "bold yellow")
        parts.append(page.panel(warnings, title, "yellow", title_align="left"))
    for block in page.blocks(subjects, lambda block: _table(block, page)):
        parts.append(page.section(title_of(block, page.ascii_only), _table(block, page)))
    lines = [Text(page.show(sentence)) for sentence in comparison.findings]
    parts.append(page.section("which is better", *lines, Text(comparison.rule, "dim")))
    rows = []
    for one in comparison.regressions:
        word, _, style, _ = JUDGED[one.holds]
        rows.append((Text(word, style=style), page.show(one.text), page.show(one.sentence)))
    if rows:
        parts.append(page.section(page.show(_regression_title(comparison)), grid(rows)))
    return page.render(*parts)


def comparison_markdown(comparison: Comparison) -> str:
    """The comparison in GitHub flavoured Markdown; ends in a line break."""
    subjects = comparison.subjects
    lines = [f"## {text(title_of(subjects))}", ""]
    if said_first := words.headline(comparison):
        lines += [f"**{text(said_first)}**", ""]
    if settings := words.settings_of(comparison):
        lines += ["Settings that differ:", "", *(f"- {text(line)}" for line in settings), ""]
    for subject in subjects:
        came_to = f"{text(outcome(subject))} {text(described(subject))}"
        lines.append(f"- **{text(subject.name)}** {code(subject.source)}: {came_to}")
    if comparison.warnings:
        lines += ["", "> [!WARNING]"]
        lines += [f"> {text(sentence)}<br>" for sentence in comparison.warnings]
    rows = []
    for measure, values in measured(subjects):
        cells = [_markdown_cell(measure, value, values[0], n) for n, value in enumerate(values)]
        rows.append([measure.label.strip(), *cells])
    for label, say in SAID.items():
        rows.append([label, *("<br>".join(map(text, said(subject, say))) for subject in subjects)])
    lines += ["", *table(["", *map(text, headings(subjects))], rows), ""]
    lines += [f"- {text(sentence)}" for sentence in comparison.findings]
    lines += ["", text(comparison.rule)]
    judged = []
    for one in comparison.regressions:
        word, sign, *_ = JUDGED[one.holds]
        judged.append([f"{sign} {word}", code(one.text), text(one.sentence)])
    if judged:
        title = text(_regression_title(comparison))
        lines += [
            "",
            f"### {title[0].upper()}{title[1:]}",
            "",
            *table(["", "", ""], judged, left=3),
        ]
    return "\n".join(lines) + "\n"


class SubjectPart(RecordPart):
    """One of the compared runs, or several repeats of one.

    Attributes:
        verdicts: Of each run, as ``limited_by``.
        measures: Mean, least and most, the count of repeats, and how far down and up the mean could
            be by the scatter inside of each run. Latencies are milliseconds, shares are of 1.
    """

    name: str
    source: str
    runs: tuple[str, ...]
    verdicts: tuple[str, ...]
    limited_by: tuple[str, ...]
    measures: dict[str, dict[str, int | float | None] | None]


class DifferencePart(RecordPart):
    """The names of the best runs in a measure, and of those that are worse."""

    measure: str
    best: tuple[str, ...]
    behind: tuple[str, ...]


class ComparisonOutput(CommandOutput):
    """The comparison of runs with the first one.

    Attributes:
        settings: In which the runs differ.
        undecided: Why measures decide nothing, and which.
        rule: When a difference counts.
        exit_code: 1 where a regression holds, 3 where one cannot be judged.
    """

    schema_version: int = 2
    headline: str
    settings: tuple[str, ...]
    subjects: tuple[SubjectPart, ...]
    warnings: tuple[str, ...]
    findings: tuple[str, ...]
    differences: tuple[DifferencePart, ...]
    undecided: dict[str, tuple[str, ...]]
    rule: str
    regressions: tuple[Judged, ...]
    exit_code: int


def comparison_json(comparison: Comparison) -> str:
    output = ComparisonOutput(
        headline=words.headline(comparison),
        settings=tuple(words.settings_of(comparison)),
        subjects=tuple(map(_subject, comparison.subjects)),
        warnings=comparison.warnings,
        findings=tuple(comparison.findings),
        differences=tuple(
            DifferencePart(measure=one.measure.name, best=one.best, behind=one.behind)
            for one in comparison.differences
        ),
        undecided={why: tuple(nouns) for why, nouns in comparison.undecided.items()},
        rule=comparison.rule,
        regressions=comparison.regressions,
        exit_code=comparison.exit_code,
    )
    return output.to_json()


def _subject(subject: Subject) -> SubjectPart:
    return SubjectPart(
        name=subject.name,
        source=subject.source,
        runs=tuple(record.run_id for record in subject.records),
        verdicts=tuple(record.verdict.result for record in subject.records),
        limited_by=tuple(record.verdict.limited_by for record in subject.records),
        measures={
            measure.name: _values(values)
            for measure in MEASURES
            for values in (subject.values(measure),)
            if values is not None or not measure.charged
        },
    )


def _values(values: Values | None) -> dict[str, int | float | None] | None:
    if values is None:
        return None
    names = ("mean", "least", "most", "count", "low", "high")
    read = {name: getattr(values, name) for name in names}
    return {name: None if value is None else round(value, 6) for name, value in read.items()}


def outcome(subject: Subject) -> str:
    """What a run came to, as its own report says it first; of repeats, the first of them."""
    first = subject.records[0]
    passing = passing_of(first)
    result = result_words(first)
    word = f"{result[:1].upper()}{result[1:]}" if passing is None else f"{passing.word}, {result}"
    of = "" if len(subject.records) == 1 else " (first run)"
    return f"{word}{of}: {headline(first)}"


def described(subject: Subject) -> str:
    """Profile, endpoint, load and run ids of a subject; of repeats, those of the first."""
    if subject.recording is not None:
        return subject.recording.described
    first = subject.records[0]
    runs = counted(len(subject.records), "run")
    if (watched := first.watched) is not None:
        requests = counted(watched.requests, "request")
        load = f"watched application {watched.command or '(not started here)'}, {requests}"
    else:
        processes = counted(first.workers, "process", "processes")
        load = f"{counted(first.users, 'user')} in {processes}, session {first.session}"
    return (
        f"{first.profile.get('name', 'run')} on {first.endpoint.described}; {load}, "
        f"{first.measured_s:,} s measured; {runs}: "
        + ", ".join(record.run_id for record in subject.records)
    )


def title_of(subjects: Sequence[Subject], ascii_only: bool = False) -> str:
    return f"{listed(headings(subjects, ascii_only))} side by side"


def headings(subjects: Sequence[Subject], ascii_only: bool = False) -> list[str]:
    """The names of the runs, shortened for a column where that tells them apart."""
    names = [printable(subject.name, ascii_only) for subject in subjects]
    short = [shortened(name, _NAME_WIDTH, ascii_only) for name in names]
    return short if len(set(short)) == len(set(names)) else names


def _regression_title(comparison: Comparison) -> str:
    first, last = comparison.subjects[0], comparison.subjects[-1]
    return f"regressions of {last.name} against {first.name}"


def measured(subjects: Sequence[Subject]) -> Iterator[tuple[Measure, list[Values | None]]]:
    for measure in measures_of([one for subject in subjects for one in subject.records]):
        values = [subject.values(measure) for subject in subjects]
        if any(value is not None for value in values):
            yield measure, values


def said(subject: Subject, say: Callable[[RunRecord], str]) -> list[str]:
    """The text of all runs, or each text with the number of runs that have it."""
    found = Counter(say(record) for record in subject.records)
    if len(found) == 1:
        return list(found)
    return [f"{word}, {count} of {found.total()}" for word, count in found.most_common()]


def changed(value: Values, reference: Values) -> str:
    """The relative difference: ``+4.1%``, ``-40%``, ``x 12``, ``same``, with the sign of a bound.

    Empty of 0, and where bounds tell nothing.
    """
    change, alike = change_of(value.mean, reference.mean), value.sign == reference.sign
    if change is None:
        return ""
    if abs(change) < 0.0005:
        return "same" if alike else ""
    if alike and value.sign:
        # Of two bounds either may be the larger one.
        return ""
    sign = value.sign or INVERSE[reference.sign]
    if change + 1 >= MANY_TIMES:
        return f"{sign}x {change + 1:,.0f}"
    return f"{sign}{change:+.1%}" if abs(change) < 0.0995 else f"{sign}{change:+,.0%}"


def span_words(measure: Measure, values: Values) -> str:
    """From the least to the most of repeats; empty where they are written alike."""
    least, most = measure.show(values.least), measure.show(values.most)
    return "" if least == most else f"{least} to {most}"


def with_change(measure: Measure, values: Values, first: Values | None, n: int) -> str:
    """A mean, and behind that of a later run its difference from the first mean."""
    shown = signed(values.sign, measure.show(values.mean))
    # A share of a share would mislead.
    if not n or first is None or measure.unit == "%":
        return shown
    return f"{shown} ({changed(values, first) or 'n/a'})"


def _markdown_cell(measure: Measure, values: Values | None, first: Values | None, n: int) -> str:
    if values is None:
        return "n/a"
    cell = with_change(measure, values, first, n)
    if span := span_words(measure, values):
        cell += f"<br>{span}"
    return cell


def _table(subjects: Sequence[Subject], page: Page) -> Table:
    rows: list[list[Text]] = []
    for measure, values in measured(subjects):
        cells = [_cell(measure, value, values[0], n) for n, value in enumerate(values)]
        rows.append([Text(measure.label), *cells])
    for label, say in SAID.items():
        texts = ["\n".join(map(page.show, said(subject, say))) for subject in subjects]
        rows.append([Text(label), *map(Text, texts)])
    for row in rows:
        lines = max(cell.plain.count("\n") for cell in row)
        for cell in row:
            # Cells are aligned at the bottom, where a range stands below its mean.
            cell.append("\n" * (lines - cell.plain.count("\n")))
    return table_of(["", *headings(subjects, page.ascii_only)], rows)


def _cell(measure: Measure, values: Values | None, first: Values | None, n: int) -> Text:
    """A mean, its difference from the first mean, and below it the range of the repeats."""
    if values is None:
        return Text("n/a", "dim")
    cell = Text(signed(values.sign, measure.show(values.mean)))
    if n:
        change = ""
        if first is not None and measure.unit != "%":
            change = changed(values, first)
        style = _COLOURS[is_better(measure, values, first)]
        cell.append(f" {change:>{_CHANGE_WIDTH}}", style=style)
    if span := span_words(measure, values):
        blank = f" {'':{_CHANGE_WIDTH}}" if n else ""
        cell.append(f"\n{span}{blank}", style="dim")
    return cell


def is_better(measure: Measure, values: Values, first: Values | None) -> bool | None:
    """Whether a value is better than the first; None where neither is, or they do not differ."""
    if first is None or measure.more_is_better is None:
        return None
    if not judge(measure, first, values).differ:
        return None
    return (values.mean > first.mean) == measure.more_is_better
