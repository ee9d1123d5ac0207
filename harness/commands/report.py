"""``harness report``: the HTML report of a run, made again from its record."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.commands.records import read_record, record_files
from harness.model.errors import SetupError
from harness.report.web.document import document

REPORT = "report.html"


class Report:
    """Write the HTML report of a run."""

    name = "report"
    help = "report.html of a run, made again from its record"
    description = (
        "Every run writes report.html beside its run.json. This makes it again from the record "
        "alone, with what this version of the harness shows: verdict, key figures, charts over "
        "time, heat map of the keys, partitions, operations, profile. The file holds everything "
        "it needs and opens offline. A RUN is a run.json, the folder of a run, or a folder with "
        "the folders of several runs, each of which gets its own."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        """Which run, and where the report goes."""
        parser.add_argument("run_path", metavar="RUN", type=Path, help="such as out/RUN_ID")
        parser.add_argument(
            "--out", metavar="FILE", type=Path, help=f"instead of {REPORT} beside the record"
        )

    def run(self, args: argparse.Namespace) -> int:
        """Read the records, write the reports, say where."""
        files = record_files(args.run_path)
        if args.out is not None and len(files) > 1:
            raise SetupError(
                f"{args.run_path} holds {len(files)} runs, which do not go into one file: name one "
                "of them, or leave --out away"
            )
        # Nothing is written unless all can be read.
        records = [(file, read_record(file)) for file in files]
        for file, record in records:
            path = args.out or file.with_name(REPORT)
            try:
                path.write_text(document(record), encoding="utf-8")
            except OSError as error:
                raise SetupError(f"{path} cannot be written ({error.strerror or error})") from error
            print(f"Report: {path}")
        return 0
