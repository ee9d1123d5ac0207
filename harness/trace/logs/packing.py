"""The lines of a log as UTF-8, however its file is packed: plain, gzip, or UTF-16.

Exports are often kept as ``.gz``, spreadsheets begin a file with a byte order mark, and Windows
PowerShell writes the output of a command as UTF-16.
"""

from __future__ import annotations

import codecs
import contextlib
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

_GZIP = b"\x1f\x8b"
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error)
"""What reading a packed file raises where it is cut or damaged."""


def lines_of(raw: io.BufferedReader) -> Iterator[bytes]:
    """The lines of a file.

    Raises:
        DAMAGED: one of these, where a packed file is cut or damaged.
    """
    yield from _unpacked(raw)


def first_lines(path: Path, most_bytes: int) -> list[bytes]:
    """The lines at the beginning of a file that are not blank; the last one may be cut.

    Raises:
        OSError: it cannot be read.
    """
    start = b""
    with path.open("rb") as raw, contextlib.suppress(*DAMAGED):
        start = _unpacked(raw).read(most_bytes)
    return [line for line in start.splitlines() if line.strip()]


def _unpacked(raw: io.BufferedReader) -> IO[bytes]:
    packed = raw.peek(len(_GZIP)).startswith(_GZIP)
    file = io.BufferedReader(gzip.GzipFile(fileobj=raw)) if packed else raw
    start = file.peek(len(codecs.BOM_UTF8))
    if start.startswith(_UTF16):
        return codecs.EncodedFile(file, "utf-8", "utf-16", "replace")
    if start.startswith(codecs.BOM_UTF8):
        file.read(len(codecs.BOM_UTF8))
    return file
