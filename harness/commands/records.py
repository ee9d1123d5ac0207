"""How subcommands find the records of runs, and read them."""

from __future__ import annotations

from pathlib import Path

from harness.measure.record import RecordError, RunRecord
from harness.model.errors import SetupError

RECORD = "run.json"


def record_files(path: Path) -> list[Path]:
    """The record at ``path``: itself, that of a run's folder, or those of the folders in it.

    Raises:
        SetupError: it is a folder without any.
    """
    if not path.is_dir():
        return [path]
    if (path / RECORD).is_file():
        return [path / RECORD]
    files = sorted(path.glob(f"*/{RECORD}"))
    if not files:
        raise SetupError(f"{path} holds no {RECORD}, and no folder in it does")
    return files


def read_record(path: Path) -> RunRecord:
    """The record that ``path`` holds.

    Raises:
        SetupError: it cannot be read, or is none.
    """
    try:
        return RunRecord.from_json(path.read_bytes())
    except OSError as error:
        raise SetupError(f"{path} cannot be read ({error.strerror or error})") from error
    except RecordError as error:
        raise SetupError(f"{path}: {error}") from error
