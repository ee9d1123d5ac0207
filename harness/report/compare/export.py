"""Runs side by side for the page of a CI job, and for programs.

The JSON keeps its shape: fields may be added, none is renamed without another ``schema_version``.
"""

from __future__ import annotations

import json
from typing import Any

from harness.measure.figures import listed
from harness.report.compare.comparison import Comparison, Subject
from harness.report.compare.page import (
    HOLDS,
    SAID,
    changed,
    described,
    range_of,
    regression_title,
    said,
)
from harness.report.compare.quantities import MEASURES, Measure, Values
from harness.report.export.gfm import code, table, text

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
            cells = [_cell(measure, value, values[0], place) for place, value in enumerate(values)]
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


def _cell(measure: Measure, values: Values | None, first: Values | None, place: int) -> str:
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
