"""What a run leaves on disk, in a folder of its own."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harness.measure.record import RunRecord
from harness.model.errors import SetupError


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
    write_record(path, record)
    return path


def write_record(path: Path, record: RunRecord) -> None:
    """Write the record, whole or not at all."""
    unfinished = path.with_suffix(".tmp")
    unfinished.write_text(record.to_json(), encoding="utf-8")
    unfinished.replace(path)
