"""``harness report``: renders the HTML report of a run from its record."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.commands.command import read_record, record_files
from harness.model.errors import SetupError
from harness.report.export.data_files import write_whole
from harness.report.web.document import document

REPORT = "report.html"


class Report:
    name = "report"
    help = "render the HTML report of a run from its record"
    description = (
        "Every run writes report.html beside its run.json. This command renders it again from "
        "the record, in the layout of this version of the harness. The report is one file that "
        "opens offline. A RUN is a run.json, the folder of a run, or a folder of several runs, "
        "each of which gets its own report."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("run_path", metavar="RUN", type=Path, help="such as out/RUN_ID")
        parser.add_argument(
            "--out",
            metavar="FILE",
            type=Path,
            help=f"write to FILE instead of {REPORT} beside run.json",
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
            path = args.out or file.with_name(REPORT)
            try:
                write_whole(path, document(record))
            except OSError as error:
                raise SetupError(f"{path} cannot be written ({error.strerror or error})") from error
            print(f"Report: {path}")
        return 0
