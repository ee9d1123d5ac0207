"""The folder of a run: its record, and every file that is made from the record."""

from __future__ import annotations

import datetime as dt
import functools
import importlib.metadata
import json
import logging
import os
import platform
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.measure.counts.ledger import Ledger
from harness.measure.counts.redaction import Aliases
from harness.measure.record.findings import MachinePart
from harness.measure.record.record import RunRecord
from harness.model.errors import SetupError
from harness.report.export.data_files import hlog, partitions_csv, write_whole
from harness.report.export.junit import junit
from harness.report.export.markdown import markdown
from harness.report.web.document import document

STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
"""Environment variable with the file whose content GitHub shows on the page of a job."""
_RECORD = "run.json"
_EXIT_NO_RECORD = 3


@functools.cache
def this_machine(packages: tuple[str, ...]) -> MachinePart:
    """This machine, and the versions of ``packages``."""
    return MachinePart(
        cpus=os.cpu_count() or 1,
        platform=f"{platform.system()} {platform.release()} {platform.machine()}",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        packages={name: importlib.metadata.version(name) for name in packages},
    )


def iso_instant(utc_s: float) -> str:
    """An instant as records have it: ISO 8601 with milliseconds, in UTC."""
    moment = dt.datetime.fromtimestamp(utc_s, tz=dt.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def check_folder(out: str) -> None:
    """Raise a `SetupError` if no record can be written to the folder ``out``."""
    try:
        Path(out).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise SetupError(
            f"the folder {out} of --out cannot be written to ({_reason(error)})"
        ) from error


def write_run(
    record: RunRecord,
    out: str,
    *,
    ledger: Ledger,
    aliases: Aliases | None,
    clean_up: Callable[[], Sequence[int]],
    complain: Callable[[str], None],
) -> tuple[RunRecord, Path]:
    """Write the record and the failed attempts, clean up in any case, write everything else.

    The record is written again after cleaning up, since cleaning up costs transactions too.
    Without any record the exit code 0 becomes 3, because nothing shows what passed. A file that
    cannot be made or written is complained of: it keeps no other from being written, and changes
    nothing in the record.

    Args:
        out: Folder of all runs.
        ledger: The counts of the run.
        aliases: Replace the PartitionKeys; None shows the keys.
        clean_up: Deletes what the run created, and returns its billable transactions by account.
        complain: Takes a sentence about each file that cannot be written.

    Returns:
        The record with its whole cost, and its path.
    """
    folder = Path(out) / record.run_id

    def write(name: str, make: Callable[[], str]) -> str:
        """Write what ``make`` returns, unless it is empty, and return it."""
        try:
            text = make()
        except Exception as error:
            # A defect in one output. The verdict and the other outputs do not depend on it.
            logging.getLogger(__name__).error("%s cannot be made", name, exc_info=error)
            complain(f"{folder / name} cannot be made ({error!r})")
            return ""
        if text and (problem := _problem_of_writing(folder / name, text)) is not None:
            complain(problem)
        return text

    try:
        missing = _problem_of_writing(folder / _RECORD, record.to_json()) is not None
        write("errors.jsonl", lambda: _error_lines(ledger, aliases))
    finally:
        billable = clean_up()
    record = record.billed(billable)
    if (problem := _problem_of_writing(folder / _RECORD, record.to_json())) is not None:
        if missing:
            record = record.model_copy(update={"exit_code": record.exit_code or _EXIT_NO_RECORD})
            complain(f"{problem}: the run has no record")
        else:
            complain(f"{problem}: the existing record lacks the cost of cleaning up")
    start = record.window_start
    summary = write("summary.md", lambda: markdown(record))
    write("junit.xml", lambda: junit(record))
    write(
        "latencies.hlog",
        lambda: hlog(start, start + record.measured_s, ledger.latencies()),
    )
    write("partitions.csv", lambda: partitions_csv(record))
    write("report.html", lambda: document(record))
    if summary and (page := os.environ.get(STEP_SUMMARY)):
        try:
            with open(page, "a", encoding="utf-8") as file:
                file.write(f"{summary}\n")
        except OSError as error:
            complain(f"{STEP_SUMMARY} cannot be written to ({_reason(error)})")
    return record, folder / _RECORD


def _error_lines(ledger: Ledger, aliases: Aliases | None) -> str:
    """The failed attempts as JSON lines; the last line is the number of those that are left out."""
    errors, not_kept = ledger.errors()
    if aliases is not None:
        errors = [aliases.error(error) for error in errors]
    lines = [*errors, {"not_kept": not_kept}] if not_kept else errors
    return "".join(f"{json.dumps(line)}\n" for line in lines)


def _problem_of_writing(path: Path, text: str) -> str | None:
    """Write a file, or return why not. An earlier file stays until the new one is whole."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
    except OSError as error:
        return f"{path} cannot be written ({_reason(error)})"
    return None


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
