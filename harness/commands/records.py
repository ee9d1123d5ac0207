"""``harness compare`` and ``harness report``: comparisons and reports from records of runs."""

from __future__ import annotations

import argparse
import os
import string
import sys
from pathlib import Path

from harness.commands.pages import say_page, write_page
from harness.commands.recorded_traffic import recorded_traffic
from harness.measure.record.record import RecordError, RunRecord
from harness.model.errors import SetupError, cut
from harness.model.figures import counted, listed
from harness.report.compare.comparison import Regression, Subject, compare, parse_regression
from harness.report.compare.outputs import comparison_json, comparison_markdown, side_by_side
from harness.report.compare.repeats import repeats_text
from harness.report.compare.settings import differences_of
from harness.report.compare.trend import trend_text, trends_of
from harness.report.terminal.page import Page
from harness.report.web.compare_page import compare_page
from harness.report.web.document import document
from harness.report.web.trend_page import trend_page
from harness.trace.sources import holds_operations

_RECORD = "run.json"
_REPORT = "report.html"
_MOST_WIDTH = 140
"""Columns; a comparison needs more room than other output."""


class Compare:
    """Compares rates, share of the targets, throttling, latencies, load balance, cost and verdicts.

    A RUN is a run.json, the folder of a run, or a folder of several runs, which count as repeats of
    one run. It can also be a trace or a log of Azure Storage, as `harness trace` reads it:
    `harness compare TRACE out/REPLAY` says whether a replay had the same entities in every
    partition as its trace. The first RUN is the baseline. A difference within the spread of repeats
    does not count. Exit codes: 1 if a regression was found, 2 for bad input, 3 if a regression
    cannot be decided, else 0. With --trend, any number of RUNs is grouped by profile and sorted by
    time.
    """

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "runs",
            nargs="+",
            metavar="RUN",
            help="two or more, of which the first is the baseline; or one folder of repeats, which "
            "are shown side by side",
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

        parser.add_argument(
            "--html",
            type=Path,
            metavar="FILE",
            help="also write a page to FILE, whose charts show the runs over each other",
        )
        parser.add_argument(
            "--trend",
            action="store_true",
            help="show the runs of each profile in order of time, and what changed over them; "
            "any number of RUNs",
        )

    def run(self, args: argparse.Namespace) -> int:
        if args.trend:
            return _show_trends(args)
        regressions = _regressions(args.fail_if)
        if len(args.runs) > len(string.ascii_uppercase):
            raise SetupError(f"2 to 26 runs can be compared, not {len(args.runs)}")
        subjects = [
            _subject(letter, source)
            for letter, source in zip(string.ascii_uppercase, args.runs, strict=False)
        ]
        if len(subjects) == 1:
            [alone] = subjects
            if len(alone.records) == 1:
                raise SetupError("2 to 26 runs can be compared, not 1")
            if regressions:
                raise SetupError("--fail-if compares the last RUN with the first: name a second")
            if args.format == "text":
                page = Page.of_terminal(sys.stdout, _MOST_WIDTH)
                print(repeats_text(alone.records, page).lstrip("\n"))
                if args.html is not None:
                    write_page(args.html, compare_page(compare(subjects, [])))
                    say_page(args.html)
                return 0
        comparison = compare(subjects, regressions)
        if args.html is not None:
            write_page(args.html, compare_page(comparison))
        if args.format == "json":
            print(comparison_json(comparison), end="")
        elif args.format == "markdown":
            print(comparison_markdown(comparison), end="")
        else:
            print(side_by_side(comparison, Page.of_terminal(sys.stdout, _MOST_WIDTH)))
            say_page(args.html)
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
            write_page(path, document(record))
            print(f"Report: {path}")
        return 0


def _show_trends(args: argparse.Namespace) -> int:
    if args.fail_if or args.format != "text":
        raise SetupError("--trend takes neither --fail-if nor --format")
    paths = [Path(run) for run in args.runs]
    # A pattern such as out/* also matches files and folders that are no runs.
    held = [path for path in paths if path.name == _RECORD or _holds_records(path)]
    records = {file.resolve(): file for path in held for file in record_files(path)}
    trends, single = trends_of([read_record(file) for file in records.values()])
    if not trends:
        raise SetupError(
            f"a trend needs two runs of one profile; {counted(len(records), 'run')} found"
            + (f": {listed(sorted(single))}" if single else "")
        )
    if args.html is not None:
        write_page(args.html, trend_page(trends, single))
    print(trend_text(trends, single, Page.of_terminal(sys.stdout, _MOST_WIDTH)))
    say_page(args.html)
    return 0


def _holds_records(path: Path) -> bool:
    return (path / _RECORD).is_file() or any(path.glob(f"*/{_RECORD}"))


def record_files(path: Path) -> list[Path]:
    """The records at ``path``: a record, the folder of a run, or a folder of several runs.

    A `SetupError` says that a folder has none; a file is returned unread.
    """
    if not os.path.isdir(path):
        return [path]
    if os.path.isfile(path / _RECORD):
        return [path / _RECORD]
    files = sorted(path.glob(f"*/{_RECORD}"))
    if not files:
        raise SetupError(f"there is no {_RECORD} in {path} or in a folder in it")
    return files


def read_record(path: Path) -> RunRecord:
    """The record in a file; a `SetupError` if it cannot be read, or is not one."""
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


def _subject(letter: str, source: str) -> Subject:
    path = Path(source)
    is_folder_of_runs = os.path.isdir(path) and _holds_records(path)
    if not is_folder_of_runs and holds_operations(path):
        record, recording = recorded_traffic(path)
        return Subject(letter=letter, source=source, records=(record,), recording=recording)
    return Subject(letter=letter, source=source, records=_repeats(path))


def _repeats(path: Path) -> tuple[RunRecord, ...]:
    """The run at ``path``, or the repeats in it, oldest first."""
    records = sorted(
        map(read_record, record_files(path)),
        key=lambda record: (record.started_at, record.run_id),
    )
    for record in records[1:]:
        if (difference := next(differences_of(records[0], record), None)) is not None:
            raise SetupError(
                f"the runs in {path} are not repeats of one run: {records[0].run_id} and "
                f"{record.run_id} differ in {difference}. Name the runs themselves"
            )
    return tuple(records)
