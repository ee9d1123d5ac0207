"""``harness compare`` and ``harness report``: what can be made from the records of runs."""

from __future__ import annotations

import argparse
import os
import string
import sys
from pathlib import Path
from typing import Any

from harness.measure.record.record import RecordError, RunRecord
from harness.model.errors import SetupError, cut
from harness.report.compare.comparison import Regression, Subject, compare, parse_regression
from harness.report.compare.outputs import comparison_json, comparison_markdown, side_by_side
from harness.report.export.data_files import write_whole
from harness.report.terminal.page import Page
from harness.report.web.document import document

_RECORD = "run.json"
_REPORT = "report.html"
_MOST_WIDTH = 140
"""Columns; a comparison needs more room than other output."""
_MAY_DIFFER = frozenset(("seed",))
"""Settings in which repeats may differ."""


class Compare:
    """Compares rates, share of the targets, throttling, latencies, load balance, cost and verdicts.

    A RUN is a run.json, the folder of a run, or a folder of several runs, which count as repeats of
    one run. The first RUN is the baseline. A difference within the spread of repeats does not
    count. Exit codes: 1 if a regression was found, 2 for bad input, 3 if a regression cannot be
    decided, else 0.
    """

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
            Subject(letter=letter, source=source, records=_repeats(Path(source)))
            for letter, source in zip(string.ascii_uppercase, args.runs, strict=False)
        ]
        comparison = compare(subjects, regressions)
        if args.format == "json":
            print(comparison_json(comparison), end="")
        elif args.format == "markdown":
            print(comparison_markdown(comparison), end="")
        else:
            print(side_by_side(comparison, Page.of_terminal(sys.stdout, _MOST_WIDTH)))
        return comparison.exit_code


class Report:
    """Renders the report of a run again, in the layout of this version of the harness.

    Every run writes report.html beside its run.json. The report is one file that opens offline. A
    RUN is a run.json, the folder of a run, or a folder of several runs, each of which gets its own
    report.
    """

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("run_path", metavar="RUN", type=Path, help="such as out/RUN_ID")
        parser.add_argument(
            "--out",
            metavar="FILE",
            type=Path,
            help=f"write to FILE instead of {_REPORT} beside {_RECORD}",
        )

    def run(self, args: argparse.Namespace) -> int:
        files = record_files(args.run_path)
        if args.out is not None and len(files) > 1:
            raise SetupError(
                f"{args.run_path} holds {len(files)} runs, and --out names one file: name one of "
                "the runs, or leave --out out"
            )
        # Nothing is written unless all records can be read.
        records = [(file, read_record(file)) for file in files]
        for file, record in records:
            path = args.out or file.with_name(_REPORT)
            try:
                write_whole(path, document(record))
            except OSError as error:
                raise SetupError(f"{path} cannot be written ({error.strerror or error})") from error
            print(f"Report: {path}")
        return 0


def record_files(path: Path) -> list[Path]:
    """The records at ``path``: a record, the folder of a run, or a folder of several runs."""
    if not os.path.isdir(path):
        return [path]
    if os.path.isfile(path / _RECORD):
        return [path / _RECORD]
    files = sorted(path.glob(f"*/{_RECORD}"))
    if not files:
        raise SetupError(f"there is no {_RECORD} in {path} or in a folder in it")
    return files


def read_record(path: Path) -> RunRecord:
    try:
        return RunRecord.from_json(path.read_bytes())
    except OSError as error:
        raise SetupError(f"{cut(str(path))} cannot be read ({error.strerror or error})") from error
    except RecordError as error:
        raise SetupError(f"{cut(str(path))}: {error}") from error


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


def _repeats(path: Path) -> tuple[RunRecord, ...]:
    """The run at ``path``, or the repeats in it, oldest first."""
    records = sorted(
        map(read_record, record_files(path)),
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
    """The first setting in which two runs differ; None if they are repeats."""
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
