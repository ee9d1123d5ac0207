"""``harness compare``: compares runs, and fails a CI job on a regression."""

from __future__ import annotations

import argparse
import string
from pathlib import Path
from typing import Any

from harness.commands.command import read_record, record_files, terminal_page
from harness.measure.record.record import RunRecord
from harness.model.errors import SetupError
from harness.report.compare.comparison import (
    Comparison,
    Regression,
    Subject,
    compare,
    parse_regression,
)
from harness.report.compare.outputs import comparison_json, comparison_markdown, side_by_side

_MOST_WIDTH = 140
"""Columns; a comparison needs more room than other output."""
_MAY_DIFFER = frozenset(("seed",))
"""Settings in which repeats may differ."""


class Compare:
    name = "compare"
    help = "compare runs; with --fail-if, exit with 1 on a regression"
    description = (
        "Compares rates, share of the targets, throttling, latencies, load balance, cost and "
        "verdicts. A RUN is a run.json, the folder of a run, or a folder of several runs, which "
        "count as repeats of one. The first RUN is the baseline. A difference within the spread "
        "of repeats is not reported as one. Exit codes: 0; 1 if a regression was found; 2 for bad "
        "input; 3 if a regression cannot be decided."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "runs", nargs="+", metavar="RUN", help="two or more; the first is the baseline"
        )
        parser.add_argument(
            "--fail-if",
            action="append",
            default=[],
            metavar="TEXT",
            help="what counts as a regression of the last run against the first, such as "
            "'entities_per_s < 95%%', 'p99(service) > first + 20ms' or "
            "'throttled_ratio > first + 1%%'; can be repeated",
        )
        parser.add_argument(
            "--format",
            choices=("text", "markdown", "json"),
            default="text",
            help="output format (default: %(default)s)",
        )

    def run(self, args: argparse.Namespace) -> int:
        regressions = _regressions(args.fail_if)
        if not 2 <= len(args.runs) <= len(string.ascii_uppercase):
            raise SetupError(f"2 to 26 runs can be compared, not {len(args.runs)}")
        subjects = [
            Subject(letter=letter, source=source, records=_records(Path(source)))
            for letter, source in zip(string.ascii_uppercase, args.runs, strict=False)
        ]
        comparison = compare(subjects, regressions)
        print(_written(comparison, args.format), end="")
        return comparison.exit_code


def _regressions(texts: list[str]) -> list[Regression]:
    """The parsed regressions; a SetupError lists every mistake."""
    parsed, mistakes = [], []
    for text in texts:
        try:
            parsed.append(parse_regression(text))
        except ValueError as error:
            mistakes.append(str(error))
    if mistakes:
        raise SetupError("\n  ".join(["--fail-if:", *mistakes]))
    return parsed


def _records(path: Path) -> tuple[RunRecord, ...]:
    """The run at ``path``, or the repeats in it, oldest first."""
    records = sorted(
        (read_record(file) for file in record_files(path)),
        key=lambda record: (record.started_at, record.run_id),
    )
    for record in records[1:]:
        if (difference := _difference(records[0], record)) is not None:
            raise SetupError(
                f"the runs in {path} are not repeats of one run: {records[0].run_id} and "
                f"{record.run_id} differ in {difference}. Name the runs themselves"
            )
    return tuple(records)


def _difference(one: RunRecord, other: RunRecord) -> str | None:
    """The first setting in which two runs differ, or None if they are repeats."""
    if one.endpoint.kind != other.endpoint.kind:
        return f"the endpoint: {one.endpoint.kind} and {other.endpoint.kind}"
    mine, theirs = _settings(one.profile), _settings(other.profile)
    for name in sorted({*mine, *theirs} - _MAY_DIFFER):
        if mine.get(name) != theirs.get(name):
            return f"{name}: {mine.get(name)} and {theirs.get(name)}"
    return None


def _settings(content: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Every setting of a profile by its full name."""
    flat: dict[str, Any] = {}
    for name, value in content.items():
        if isinstance(value, dict):
            flat |= _settings(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat


def _written(comparison: Comparison, form: str) -> str:
    if form == "json":
        return comparison_json(comparison)
    if form == "markdown":
        return comparison_markdown(comparison)
    return side_by_side(comparison, terminal_page(_MOST_WIDTH)) + "\n"
