"""``harness verify``: a run held against the log that the service wrote of it."""

from __future__ import annotations

import argparse
import datetime as dt
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.commands.common import ONE_OBJECT, Progress, write_page
from harness.commands.records import read_record, record_files
from harness.measure.record.record import RunRecord
from harness.measure.record.service_log import ServiceLogPart
from harness.model.errors import SetupError, cut, printable_lines
from harness.report.export.markdown import markdown
from harness.report.export.output import CommandOutput
from harness.report.service_log import agreement, logged_rows
from harness.report.terminal.page import Page, facts
from harness.report.web.document import document
from harness.trace.logs.agreement import Agreement, agreement_with, failed_by_id
from harness.trace.logs.entries import LogEntry
from harness.trace.sources import log_entries

_ERRORS = "errors.jsonl"
_MOST_WIDTH = 100


class Verify:
    """Compares the record of a run with the account's own log: by status, partition and second.

    RUN is a run or a watch; LOG is a file or a folder as `harness trace` reads them: resource logs
    of Azure Monitor (JSON), StorageTableLogs from Log Analytics (CSV, JSON), Storage Analytics. It
    says what is missing on which side, the server's latency beside the client's, and the difference
    of the clocks. The stand-in writes such a log with `harness gateway --log FILE`.

    The result becomes a part of the record, and the report shows it. Exit codes: 0 if the log
    agrees, 1 if it does not, 2 for bad input. `harness docs verify` tells how to switch logs on.
    """

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("run_path", metavar="RUN", type=Path, help="such as out/RUN_ID")
        parser.add_argument(
            "--log", required=True, type=Path, metavar="PATH", help="a log, or a folder with logs"
        )
        parser.add_argument(
            "--no-write",
            action="store_true",
            help="leave the record and the report of the run as they are",
        )
        parser.add_argument("--json", action="store_true", help=ONE_OBJECT.format("verify"))

    def run(self, args: argparse.Namespace) -> int:
        [file, *others] = record_files(args.run_path)
        if others:
            raise SetupError(f"{cut(str(args.run_path))} holds several runs: name one of them")
        record = read_record(file)
        failed = failed_by_id(_errors(file.with_name(_ERRORS)))
        # A log that is read again says the same again.
        notes: dict[str, None] = {}

        def entries() -> Iterator[LogEntry]:
            for entry in log_entries(args.log, Progress("reading the log"), notes.setdefault):
                if entry is None:
                    notes["Left out: lines that cannot be read."] = None
                else:
                    yield entry

        found = agreement_with(record, failed, entries)
        if not found.logged:
            raise SetupError(_nothing(found, record, args.log))
        part = found.part(args.log.name)
        record = record.model_copy(update={"service_log": part})
        if args.json:
            output = VerifyOutput(agrees=part.agrees, sentence=agreement(part), service_log=part)
            print(output.to_json(), end="")
        else:
            page = Page.of_terminal(sys.stdout, _MOST_WIDTH)
            print(page.render(facts(logged_rows(record), page)))
        for note in notes:
            print(printable_lines(note), file=sys.stderr)
        if not args.no_write:
            write_page(file, record.to_json())
            write_page(file.with_name("report.html"), document(record))
            write_page(file.with_name("summary.md"), markdown(record))
            if not args.json:
                print(printable_lines(f"\nReport: {file.with_name('report.html')}"))
        return 0 if part.agrees else 1


class VerifyOutput(CommandOutput):
    """What ``harness verify --json`` prints."""

    agrees: bool
    sentence: str
    service_log: ServiceLogPart


def _errors(path: Path) -> Iterator[dict[str, Any]]:
    """The failed attempts that the run kept; none without the file."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        try:
            content = json.loads(line)
        except ValueError:
            continue
        if isinstance(content, dict):
            yield content


def _nothing(found: Agreement, record: RunRecord, log: Path) -> str:
    """Why no line of a log is about a run."""
    about = f"{cut(str(log))} has no request of the run {record.run_id}"
    if not found.lines:
        return f"{about}: it has no readable line"
    run = f"from {record.started_at[:19]} to {record.ended_at[:19]} UTC"
    moments = (dt.datetime.fromtimestamp(at_s, dt.UTC) for at_s in (found.first_s, found.last_s))
    lines = "from {:%Y-%m-%dT%H:%M:%S} to {:%Y-%m-%dT%H:%M:%S} UTC".format(*moments)
    if found.covers_the_run:
        return (
            f"{about}: its lines of that time have other request ids. Is it the log of another "
            "account?"
        )
    return (
        f"{about}, {run}: its {found.lines:,} lines are {lines}. Azure writes a log some minutes "
        "later, and an hour a folder"
    )
