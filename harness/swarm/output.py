"""What a run leaves on disk, in a folder of its own."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from harness.measure.latency import LatencyHistogram
from harness.measure.record import RunRecord
from harness.model.errors import SetupError
from harness.report.hlog import hlog
from harness.report.junit import junit
from harness.report.markdown import markdown
from harness.report.table_csv import partitions_csv
from harness.report.web.document import document

STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
"""Names the file whose content GitHub shows on the page of a job."""


def check_folder(out: str) -> None:
    """See before a run that its record can be kept.

    Raises:
        SetupError: it cannot; the sentence says why.
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


def write_run(out: str, record: RunRecord, errors: Iterable[dict[str, Any]], not_kept: int) -> Path:
    """Write ``run.json`` and, where attempts failed, ``errors.jsonl``.

    Args:
        out: Folder of all runs.
        record: The run.
        errors: Failed attempts.
        not_kept: How many more failed attempts there were.

    Returns:
        Path of the record, in a folder named after the run.
    """
    folder = Path(out) / record.run_id
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(error) for error in errors]
    if not_kept:
        lines.append(json.dumps({"not_kept": not_kept}))
    if lines:
        (folder / "errors.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    path = folder / "run.json"
    _write(path, record.to_json())
    return path


def write_outputs(
    path: Path,
    record: RunRecord,
    latencies: Iterable[tuple[str, LatencyHistogram]],
    complain: Callable[[str], None],
) -> None:
    """Write the final record, and beside it what CI jobs, spreadsheets and scripts read.

    The summary is appended to the page of a GitHub job too, where there is one.

    Args:
        path: Of the record, as `write_run` gave it.
        record: The run.
        latencies: Of the measured window, each with its name.
        complain: Is told where that page cannot be written to, which makes no run worse.
    """
    summary = markdown(record)
    start = record.window_start
    _write(path, record.to_json())
    for name, text in {
        "summary.md": summary,
        "junit.xml": junit(record),
        "latencies.hlog": hlog(start, start + record.measured_s, latencies),
        "partitions.csv": partitions_csv(record),
        "report.html": document(record),
    }.items():
        _write(path.with_name(name), text)
    if page := os.environ.get(STEP_SUMMARY):
        try:
            with open(page, "a", encoding="utf-8") as file:
                file.write(f"{summary}\n")
        except OSError as error:
            complain(f"{STEP_SUMMARY} cannot be written to ({error.strerror or error})")


def beside(path: Path) -> list[str]:
    """Names of the files beside the record."""
    return sorted(file.name for file in path.parent.iterdir() if file != path)


def _write(path: Path, text: str) -> None:
    """Write a file, whole or not at all."""
    unfinished = path.with_suffix(".tmp")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)
