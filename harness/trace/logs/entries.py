"""The entries of a log of Azure Storage, in whatever format and however its file is packed.

Exports are often kept as ``.gz``, spreadsheets begin a file with a byte order mark, and Windows
PowerShell writes the output of a command as UTF-16.
"""

from __future__ import annotations

import codecs
import contextlib
import datetime as dt
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

_ISO = re.compile(
    r"(\d{4})[-/](\d\d?)[-/](\d\d?)[T ](\d\d?):(\d\d):(\d\d)(\.\d+)?"
    r"\s*(?:Z|([+-]\d\d):?([0-5]\d))?"
)
_MERIDIEM = re.compile(
    r"(\d\d?)/(\d\d?)/(\d{4}),? (\d\d?):(\d\d):(\d\d)(\.\d+)?(?:\s*([AP])\.?M\.?)?", re.IGNORECASE
)
_GZIP = b"\x1f\x8b"
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_YEARS = (1970, 2099)
_MOST_NUMBER = 2**40
_MOST_LINE_BYTES = 100 * 1024 * 1024
"""Of an answer of Log Analytics."""
SKIPPED_BYTES = 1024 * 1024
_SEPARATORS = (b",", b";", b"[", b"{")
_VALUE_BYTES = 60
"""About what a value takes in memory, besides its text."""
_MOST_VALUES_BYTES = 250 * 1024 * 1024
TOO_LONG = b"?"
_MOST_PADDING = 64 * 1024
_MOST_IDS = 500_000
DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error)
"""What reading a packed file raises where it is cut or damaged."""


class LogEntry(NamedTuple):
    """One request.

    Attributes:
        at_s: When the service received it, UTC seconds.
        operation: Name of the operation, as "Storage Analytics logged operations" lists them.
        status: HTTP status; 0 if the request was interrupted.
        text: Status message or error code.
        duration_ms: From the request's arrival to the end of the answer.
        server_ms: The part of it without reading the request and sending the answer.
        request_id: What the client calls the request: an SDK repeats it in each attempt.
        part: The number of this entry among those of one request, from 0.
        service_id: What the service calls the request: each has its own; empty if not told.
    """

    at_s: float
    operation: str
    status: int
    text: str
    duration_ms: float
    server_ms: float
    url: str
    request_id: str
    agent: str
    address: str
    account: str
    bytes_sent: int
    bytes_received: int
    part: int
    service_id: str = ""


class RepeatedEntries:
    """Finds entries that a log has again.

    "Storage Analytics logging": a log may have duplicates, which have the request id of the service
    and the number of the operation in common. Of the entries long before, the ids are forgotten.
    """

    def __init__(self) -> None:
        self.count = 0
        self._latest: set[int] = set()
        self._before: set[int] = set()

    def has(self, entry: LogEntry) -> bool:
        """Whether an entry was there before; counts it if so, and keeps it otherwise."""
        if not entry.service_id:
            return False
        known = hash(entry)
        if known in self._latest or known in self._before:
            self.count += 1
            return True
        self._latest.add(known)
        if len(self._latest) >= _MOST_IDS:
            self._latest, self._before = set(), self._latest
        return False


def utc_seconds(text: str) -> float | None:
    """UTC seconds of a time in a log, with up to seven decimals; None if it is not one.

    Besides ISO 8601 it takes the form of the Azure portal: ``11/22/2026, 9:04:05.123 PM``.
    """
    ahead_s = 0
    if (match := _ISO.fullmatch(text.strip())) is not None:
        year, month, day, hour, minute, second = map(int, match.groups()[:6])
        if match[8]:
            ahead_s = 3600 * int(match[8]) + 60 * int(match[8][0] + match[9])
    elif (match := _MERIDIEM.fullmatch(text.strip())) is not None:
        month, day, year, hour, minute, second = map(int, match.groups()[:6])
        if match[8]:
            hour = hour % 12 + (12 if match[8].upper() == "P" else 0)
    if match is None or not _YEARS[0] <= year <= _YEARS[1]:
        return None
    try:
        whole = dt.datetime(year, month, day, hour, minute, second, tzinfo=dt.UTC)
    except ValueError:
        return None
    return whole.timestamp() - ahead_s + float(match[7] or 0)


def number(text: object) -> float:
    """A number in a log; 0 if there is none that can be one."""
    try:
        value = float(str(text))
    except ValueError:
        return 0.0
    return value if 0 <= value < _MOST_NUMBER else 0.0


def lines_of(file: IO[bytes]) -> Iterator[bytes]:
    """The lines of a log; `TOO_LONG` in place of one that would take too much memory.

    Before it comes an empty one for each `SKIPPED_BYTES`, so that progress can be told.
    """
    while line := file.readline(_MOST_LINE_BYTES):
        if (
            len(line) == _MOST_LINE_BYTES
            or len(line) + _VALUE_BYTES * sum(map(line.count, _SEPARATORS)) > _MOST_VALUES_BYTES
        ):
            while line and not line.endswith(b"\n"):
                yield b""
                line = file.readline(SKIPPED_BYTES)
            line = TOO_LONG
        yield line


def without_port(address: str) -> str:
    """An address without the port of the connection, which differs from request to request."""
    host, colon, port = address.rpartition(":")
    return host if colon and port.isdecimal() and (":" not in host or "]" in host) else address


def first_lines(path: Path, most_bytes: int) -> list[bytes]:
    """The lines at the beginning of a file that are not blank; the last one may be cut."""
    start = b""
    with path.open("rb") as raw, contextlib.suppress(*DAMAGED):
        start = unpacked(raw).read(most_bytes)
    return [line for line in start.splitlines() if line.strip()]


def unpacked(raw: io.BufferedReader) -> IO[bytes]:
    """The content of a file in UTF-8. To read it raises one of `DAMAGED` if it is cut."""
    packed = raw.peek(len(_GZIP)).startswith(_GZIP)
    file = io.BufferedReader(gzip.GzipFile(fileobj=_Unpadded(raw), mode="rb")) if packed else raw
    start = file.peek(len(codecs.BOM_UTF8))
    if start.startswith(_UTF16):
        return codecs.EncodedFile(file, "utf-8", "utf-16", "replace")
    if start.startswith(codecs.BOM_UTF8):
        file.read(len(codecs.BOM_UTF8))
    return file


class _Unpadded:
    """A packed file, up to a long row of zeros, which gzip would read one by one."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._zeros = file, 0

    def read(self, size: int = -1, /) -> bytes:
        if self._zeros == _MOST_PADDING:
            return b""
        data = self._file.read(size)
        self._zeros = self._zeros + 1 if data == b"\0" else 0
        return data

    def seek(self, place: int, /) -> int:
        return self._file.seek(place)
