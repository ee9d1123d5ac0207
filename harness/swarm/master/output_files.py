"""The files that a run writes, in a folder of its own."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from harness.measure.counts.latency import LatencyHistogram
from harness.measure.record.record import RunRecord
from harness.model.errors import SetupError
from harness.report.export.hlog import hlog
from harness.report.export.junit import junit
from harness.report.export.markdown import markdown
from harness.report.export.partitions_csv import partitions_csv
from harness.report.export.whole_file import write_whole
from harness.report.web.document import document
from harness.swarm.master.master_run import MasterRun

STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
"""Environment variable with the file whose content GitHub shows on the page of a job."""
_RECORD = "run.json"
_EXIT_NO_RECORD = 3


def check_folder(out: str) -> None:
    """Check before a run that its record can be written.

    Raises:
        SetupError: the folder cannot be written to.
    """
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise SetupError(
            f"the folder {out} of --out cannot be written to ({error.strerror or error})"
        ) from error


def write_run(
    run: MasterRun,
    record: RunRecord,
    out: str,
    clean_up: Callable[[], None],
    complain: Callable[[str], None],
) -> tuple[RunRecord, Path]:
    """Write the record and the failed attempts, clean up in any case, write everything else.

    The record is written again after cleaning up, since cleaning up costs transactions too.
    Without any record the exit code 0 becomes 3, because nothing shows what passed.

    Args:
        run: The run.
        record: Its record.
        out: Folder of all runs.
        clean_up: Deletes what the run created.
        complain: Takes a sentence about each file that cannot be written.

    Returns:
        The record with its whole cost, and its path.
    """
    errors, not_kept = run.ledger.errors()
    if run.aliases is not None:
        errors = [run.aliases.error(error) for error in errors]
    folder = RunFolder(out, record.run_id, complain)
    try:
        missing = folder.write_record(record) is not None
        folder.write_errors(errors, not_kept)
    finally:
        clean_up()
    counts = record.counts.model_copy(update={"billable_transactions": run.billable_transactions})
    final = record.model_copy(update={"counts": counts})
    if (problem := folder.write_record(final)) is not None:
        if missing:
            final = final.model_copy(update={"exit_code": final.exit_code or _EXIT_NO_RECORD})
            problem += ": the run has no record"
        else:
            problem += ": the existing record lacks the cost of cleaning up"
        complain(problem)
    folder.write_outputs(final, run.ledger.latencies())
    return final, folder.path


class RunFolder:
    """The folder of one run. A file that cannot be written does not keep others from being written.

    Args:
        out: Folder of all runs.
        run_id: Id of the run.
        complain: Takes a sentence about each file that cannot be written.
    """

    def __init__(self, out: str, run_id: str, complain: Callable[[str], None]) -> None:
        self._folder = Path(out) / run_id
        self._complain = complain

    @property
    def path(self) -> Path:
        """Path of the record."""
        return self._folder / _RECORD

    def write_record(self, record: RunRecord) -> str | None:
        """Write ``run.json``; an earlier file stays until the new one is complete.

        Returns:
            Why the file cannot be written, or None.
        """
        return self._write(_RECORD, record.to_json())

    def write_errors(self, errors: Iterable[dict[str, Any]], not_kept: int) -> None:
        """Write ``errors.jsonl`` if attempts failed.

        Args:
            errors: Failed attempts.
            not_kept: Number of failed attempts that are not among them.
        """
        lines = [json.dumps(error) for error in errors]
        if not_kept:
            lines.append(json.dumps({"not_kept": not_kept}))
        if lines:
            self._write_or_complain("errors.jsonl", "\n".join(lines) + "\n")

    def write_outputs(
        self, record: RunRecord, latencies: Iterable[tuple[str, LatencyHistogram]]
    ) -> None:
        """Write the files for CI jobs, spreadsheets and scripts, and the report.

        The summary is also appended to the page of the GitHub job, if there is one.

        Args:
            record: The record.
            latencies: Latencies of the measured window, each with its name.
        """
        summary = markdown(record)
        start = record.window_start
        for name, text in {
            "summary.md": summary,
            "junit.xml": junit(record),
            "latencies.hlog": hlog(start, start + record.measured_s, latencies),
            "partitions.csv": partitions_csv(record),
            "report.html": document(record),
        }.items():
            self._write_or_complain(name, text)
        if page := os.environ.get(STEP_SUMMARY):
            try:
                with open(page, "a", encoding="utf-8") as file:
                    file.write(f"{summary}\n")
            except OSError as error:
                self._complain(f"{STEP_SUMMARY} cannot be written to ({_reason(error)})")

    def _write_or_complain(self, name: str, text: str) -> None:
        if (problem := self._write(name, text)) is not None:
            self._complain(problem)

    def _write(self, name: str, text: str) -> str | None:
        path = self._folder / name
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_whole(path, text)
        except OSError as error:
            return f"{path} cannot be written ({_reason(error)})"
        return None


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
