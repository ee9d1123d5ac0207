"""The folder of a run: its record, and every file that is made from the record.

Among them are files for other programs: ``partitions.csv`` and ``latencies.hlog``.
"""

from __future__ import annotations

import csv
import datetime as dt
import functools
import importlib.metadata
import io
import json
import logging
import os
import platform
import re
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from harness.measure.counts.latency import LatencyHistogram
from harness.measure.counts.ledger import Ledger
from harness.measure.counts.redaction import Aliases
from harness.measure.record.findings import MachinePart
from harness.measure.record.measured import PartitionPart
from harness.measure.record.record import RunRecord
from harness.model.errors import SetupError, printable
from harness.report.columns import has_rates
from harness.report.export.junit import junit
from harness.report.export.markdown import markdown
from harness.report.load_columns import csv_columns
from harness.report.names import partition_name
from harness.report.web.document import document

_FORMULA = ("=", "+", "-", "@")
STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
"""Environment variable with the file whose content GitHub shows on the page of a job."""
_RECORD = "run.json"
_OF_WINDOW = ("entities_per_s", "request_units_per_s", "ratio_")
"""What the columns begin with that are missing where the measured window did not open."""
_EXIT_NOT_WRITTEN = 3


def partitions_csv(record: RunRecord) -> str:
    """One row per partition, hottest first.

    Column names carry their unit and never change; a later version may add columns on the right.
    The column ``row`` is ``partition``, ``queries`` (over several partitions) or ``other`` (the sum
    of all partitions that are not counted separately). A missing value is empty. A run against
    several accounts has a column ``account``, the last one.

    A key that begins with ``=``, ``+``, ``-`` or ``@`` gets an apostrophe: a spreadsheet would run
    the key as a formula, and keys may come from strangers. Characters that cannot be printed are
    written as ``\\u`` escapes.
    """
    columns, measured = csv_columns(record), has_rates(record)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["row", "partition", *(column.csv for column in columns)])
    rows = [(*_named(part), part) for part in record.partitions]
    if (folded := record.partitions_folded) is not None:
        rows.append(("other", folded.key, folded))
    for kind, key, part in rows:
        cells = (
            column.get(part) if measured or not column.csv.startswith(_OF_WINDOW) else None
            for column in columns
        )
        writer.writerow([kind, key, *("" if cell is None else cell for cell in cells)])
    return out.getvalue()


def _named(part: PartitionPart) -> tuple[str, str]:
    several = part.partition.whole_table
    key = partition_name(part.key) if several else printable(part.key)
    return "queries" if several else "partition", f"'{key}" if key.startswith(_FORMULA) else key


def hlog(start_s: float, end_s: float, histograms: Iterable[tuple[str, LatencyHistogram]]) -> str:
    """The latencies of a run as a log of HdrHistograms, from which any percentile can be read.

    Each tag, such as ``point_query.service``, has one interval, the measured window in UTC seconds,
    unless its histogram is empty. Values are microseconds. Blanks and commas of a tag become ``_``.

    Source: the log format 1.3 that HdrHistogram's HistogramLogReader documents, with V2 histograms.
    """
    started = dt.datetime.fromtimestamp(start_s, dt.UTC).isoformat(timespec="milliseconds")
    lines = [
        "#[Histogram log format version 1.3]",
        "#[Values are microseconds; Interval_Max is milliseconds]",
        f"#[StartTime: {start_s:.3f} (seconds since epoch), {started}]",
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"',
    ]
    for name, histogram in histograms:
        if (view := histogram.view()) is not None:
            tag = re.sub(r"[\s,]", "_", printable(name))
            encoded = histogram.encode()[-1].decode("ascii")
            interval = f"{start_s:.3f},{end_s - start_s:.3f},{view.max:.3f}"
            lines.append(f"Tag={tag},{interval},{encoded}")
    return "\n".join(lines) + "\n"


def write_whole(path: Path, text: str) -> None:
    """Write ``text`` to ``path`` in UTF-8, whole or not at all. The folder must exist.

    After an `OSError` a file that was there before is unchanged.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        # A pipe or a device cannot be replaced by a file.
        target.write_text(text, encoding="utf-8")
        return
    unfinished = target.with_name(f"{target.name}.tmp")
    try:
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(target)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise


@functools.cache
def this_machine(packages: tuple[str, ...]) -> MachinePart:
    """This machine, and the versions of ``packages``."""
    return MachinePart(
        cpus=os.cpu_count() or 1,
        platform=f"{platform.system()} {platform.release()} {platform.machine()}",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        packages={name: importlib.metadata.version(name) for name in packages},
    )


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

    The record is written again after cleaning up, since cleaning up costs transactions too. A file
    that cannot be made or written is complained of, and keeps no other from being written. One that
    cannot be written, because the disk is full, makes 3 of the exit code 0: a pipeline would go on
    without it.

    Args:
        out: Folder of all runs.
        clean_up: Deletes what the run created, and returns its billable transactions by account.

    Returns:
        The record with its whole cost, and its path.
    """
    folder = Path(out) / record.run_id

    def lack(problem: str) -> None:
        nonlocal record
        complain(problem)
        if not record.exit_code:
            complain(f"the exit code is {_EXIT_NOT_WRITTEN}, because outputs are missing")
            record = record.model_copy(update={"exit_code": _EXIT_NOT_WRITTEN})

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
            lack(problem)
        return text

    try:
        missing = _problem_of_writing(folder / _RECORD, record.to_json()) is not None
        write("errors.jsonl", lambda: _error_lines(ledger, aliases))
    finally:
        billable = clean_up()
    record = record.billed(billable)
    start = record.window_start
    write("latencies.hlog", lambda: hlog(start, start + record.measured_s, ledger.latencies()))
    write("partitions.csv", lambda: partitions_csv(record))
    write("report.html", lambda: document(record))
    written = record
    if (problem := _problem_of_writing(folder / _RECORD, record.to_json())) is not None:
        if missing:
            lack(f"{problem}: the run has no record")
        else:
            complain(f"{problem}: the existing record lacks the cost of cleaning up")
    summary = write("summary.md", lambda: markdown(record))
    write("junit.xml", lambda: junit(record))
    if record is not written:
        _problem_of_writing(folder / _RECORD, record.to_json())
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
