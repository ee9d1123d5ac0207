"""Pages that a command writes where ``--html`` or ``--out`` says."""

from __future__ import annotations

from pathlib import Path

from harness.model.errors import SetupError, cut
from harness.report.export.data_files import write_whole


def write_page(path: Path, page: str) -> None:
    """Write ``page`` whole or not at all; a `SetupError` says why it cannot be written."""
    try:
        write_whole(path, page)
    except OSError as error:
        raise SetupError(
            f"{cut(str(path))} cannot be written ({error.strerror or error})"
        ) from error


def say_page(path: Path | None) -> None:
    """Print where the page is, if one was written."""
    if path is not None:
        print(f"\nPage: {path}")
