"""``harness compare`` and ``harness report``: comparisons and reports from records of runs.

A trace or a log is made a record, to be compared with runs.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import string
import sys
from pathlib import Path

from harness import __version__
from harness.commands.common import ONE_OBJECT, Progress, parsed_all, say_page, write_page
from harness.measure.counts.generator import GeneratorLog
from harness.measure.record.origin import WatchedPart
from harness.measure.record.record import EndpointPart, RecordError, RunRecord
from harness.measure.record.record_builder import assembled
from harness.measure.verdict.evidence import Evidence
from harness.measure.verdict.verdict import judge
from harness.model.errors import SetupError, cut, printable_lines
from harness.model.figures import counted, duration, listed
from harness.model.services import service_described
from harness.report.compare.comparison import compare, differences_of
from harness.report.compare.differences import Recording, Subject
from harness.report.compare.outputs import comparison_json, comparison_markdown, side_by_side
from harness.report.compare.regressions import parse_regression
from harness.report.compare.repeats import repeats_text, trend_text, trends_json, trends_of
from harness.report.terminal.page import Page
from harness.report.terminal.summary import summary
from harness.report.web.compare_page import compare_page, trend_page
from harness.report.web.document import document
from harness.trace.counting import PASSES, TraceCounts
from harness.trace.head import TraceHead
from harness.trace.operations import UNKNOWN
from harness.trace.replay.preparation import fingerprint
from harness.trace.sources import SourceFormat, holds_operations, opened

_RECORD = "run.json"
_REPORT = "report.html"
_SESSION = "recorded"
_MOST_PARTITIONS = 1_000_000
_UNNAMED = "an endpoint that the trace does not name"
_LOGS = frozenset(form.value for form in SourceFormat if form is not SourceFormat.TRACE)


class Compare:
    """Compares rates, share of the targets, throttling, latencies, load balance, cost and verdicts.

    A RUN is a run.json, the folder of a run, or a folder of several runs, which count as repeats of
    one run. It can also be a trace or a log of Azure Storage, as `harness trace` reads it:
    `harness compare TRACE out/REPLAY` says whether a replay had the same entities in every
    partition as its trace. The first RUN is the baseline. A difference that the scatter of the runs
    explains does not count, and latencies of a busy machine are not judged. Exit codes: 1 if a
    regression was found, 2 for bad input, 3 if a regression cannot be decided, else 0. With
    --trend, any number of RUNs is grouped by profile and sorted by time.
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
            "--name",
            action="append",
            default=[],
            metavar="NAME",
            help="what to call a run; once for each RUN, in their order (default: the profiles or "
            "the PartitionKeys if they differ, or else A, B, ...)",
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
            choices=("text", "markdown"),
            default="text",
            help="output format (default: %(default)s)",
        )
        parser.add_argument("--json", action="store_true", help=ONE_OBJECT.format("compare"))
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
        regressions = parsed_all("--fail-if", args.fail_if, parse_regression)
        if args.name and len(args.name) != len(args.runs):
            runs = counted(len(args.runs), "run")
            given = counted(len(args.name), "name")
            raise SetupError(f"--name names one run each: {runs}, but {given}")
        if not all(args.name) or len(set(args.name)) < len(args.name):
            raise SetupError("--name: no name may be empty, or that of another run")
        if len(args.runs) > len(string.ascii_uppercase):
            raise SetupError(f"2 to 26 runs can be compared, not {len(args.runs)}")
        names = args.name or [""] * len(args.runs)
        subjects = list(map(_subject, args.runs, names))
        if len(subjects) == 1:
            [alone] = subjects
            if len(alone.records) == 1:
                raise SetupError("2 to 26 runs can be compared, not 1")
            if regressions:
                raise SetupError("--fail-if compares the last RUN with the first: name a second")
            if args.format == "text" and not args.json:
                page = Page.of_terminal(sys.stdout)
                print(repeats_text(alone.records, page).lstrip("\n"))
                if args.html is not None:
                    write_page(args.html, compare_page(compare(subjects, [])))
                    say_page(args.html)
                return 0
        comparison = compare(subjects, regressions)
        if args.html is not None:
            write_page(args.html, compare_page(comparison))
        if args.json:
            print(comparison_json(comparison), end="")
        elif args.format == "markdown":
            print(comparison_markdown(comparison), end="")
        else:
            print(side_by_side(comparison, Page.of_terminal(sys.stdout)))
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
        parser.add_argument(
            "--text", action="store_true", help="print every figure, and write no page"
        )

    def run(self, args: argparse.Namespace) -> int:
        if args.text and args.out is not None:
            raise SetupError("--text writes no file: leave --out out")
        files = record_files(args.run_path)
        if args.out is not None and len(files) > 1:
            raise SetupError(
                f"{args.run_path} holds {len(files)} runs, and --out names one file: name one of "
                "the runs, or leave --out out"
            )
        # Nothing is written unless all records can be read.
        records = [(file, read_record(file)) for file in files]
        for file, record in records:
            if args.text:
                print(summary(record, Page.of_terminal(sys.stdout)))
                continue
            path = args.out or file.with_name(_REPORT)
            write_page(path, document(record))
            print(printable_lines(f"Report: {path}"))
        return 0


def _show_trends(args: argparse.Namespace) -> int:
    if args.fail_if or args.name or args.format != "text":
        raise SetupError("--trend takes neither --fail-if nor --name nor --format")
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
    if args.json:
        print(trends_json(trends, single), end="")
        return 0
    print(trend_text(trends, single, Page.of_terminal(sys.stdout)))
    say_page(args.html)
    return 0


def _holds_records(path: Path) -> bool:
    return (path / _RECORD).is_file() or any(path.glob(f"*/{_RECORD}"))


def record_files(path: Path) -> list[Path]:
    """The records at ``path``, a file, or in a folder; a `SetupError` where a folder has none."""
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


def _subject(source: str, name: str) -> Subject:
    path = Path(source)
    is_folder_of_runs = os.path.isdir(path) and _holds_records(path)
    if not is_folder_of_runs and holds_operations(path):
        record, recording = recorded_traffic(path)
        return Subject(source=source, records=(record,), recording=recording, name=name)
    return Subject(source=source, records=_repeats(path), name=name)


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


def recorded_traffic(path: Path) -> tuple[RunRecord, Recording]:
    """What is in a trace or a log, judged like an application under `harness watch`.

    A `SetupError` says that it cannot be read, or is longer than two weeks.
    """
    tell = Progress("counting")
    with (
        opened(path, Progress("reading the log")) as trace,
        contextlib.closing(TraceCounts(trace, path.name, tell, PASSES + 1)) as counts,
    ):
        counts.count()
        entities = counts.entities(_MOST_PARTITIONS)
        tell(1, 1)
        record = _record(trace.head, counts, path.name)
        head = trace.head
    operations = counted(record.counts.operations, "operation")
    return record, Recording(
        fingerprint=fingerprint(path),
        described=f"trace: {head.recorded} on {record.endpoint.described}; {operations}, "
        f"{duration(counts.seconds)}" + (f"; record {head.run_id}" if head.run_id else ""),
        counts_whole=head.counts_whole,
        entities=entities,
    )


def _record(head: TraceHead, counts: TraceCounts, name: str) -> RunRecord:
    snapshot = counts.snapshot()
    # Operations without a known PartitionKey have a row; a replay leaves them out, so drop it.
    named = [part for part in snapshot.partitions if part.partition.key != UNKNOWN]
    snapshot = dataclasses.replace(snapshot, partitions=tuple(named))
    # A log names no endpoint.
    kind = service_described(head.endpoint)
    attempts = snapshot.counts.attempts
    evidence = Evidence(
        snapshot=snapshot,
        generator=GeneratorLog().view(snapshot.start, snapshot.end),
        kind=kind,
        targets=kind.targets,
        wanted_per_s=None,
        users=0,
        entity_bytes=0,
        all_reported=True,
        watched=WatchedPart(command=head.name, requests=attempts, passed=attempts),
    )
    return assembled(
        evidence,
        judge(evidence),
        span_s=(counts.started_s, counts.ended_s),
        billable_transactions=attempts,
        harness_version=head.harness or __version__,
        run_id=head.run_id,
        profile={"name": head.name or name},
        endpoint=EndpointPart(
            kind=str(kind),
            described=head.endpoint or (kind.described if head.source in _LOGS else _UNNAMED),
            host=head.account,
            table="",
        ),
        session=_SESSION,
        ended_by="",
        workers=1,
    )
