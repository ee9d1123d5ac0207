"""Writes a file whole or not at all: what is there already stays until all of the new is there."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write ``text`` to ``path``, in UTF-8, in a folder that exists.

    Raises:
        OSError: it cannot be written; nothing of it is left, and what was there before still is.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        # A pipe, or a device: nobody puts another file in its place.
        target.write_text(text, encoding="utf-8")
        return
    unfinished = target.with_name(f"{target.name}.tmp")
    try:
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(target)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise
