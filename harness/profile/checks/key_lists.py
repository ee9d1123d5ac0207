"""Reads lists of keys: CSV files, lists of one PartitionKey a line, recorded operations."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from harness.model.errors import SetupError, cut
from harness.model.operation import WHOLE_TABLE, Kind
from harness.profile.checks.listed_keys import ListedKeys
from harness.trace.engine import Tell
from harness.trace.logs.entries import DAMAGED
from harness.trace.operations import UNKNOWN, Batch, TracedParts
from harness.trace.sources import opened

_MOST_LINE = 4 * 1024 * 1024
"""Characters; an entity has 1 MiB at most."""
_MOST_FIELD = 1024 * 1024
_LOOKED_AT = 64 * 1024
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_GZIP = b"\x1f\x8b"
_PACKED = (b"PK\x03\x04", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf")


def read_keys(path: Path | None, standard_input: IO[bytes], tell: Tell) -> ListedKeys:
    """The keys of a list, a trace, a log or a folder of logs; None is standard input."""
    if path is None:
        return _list_of(standard_input, ListedKeys(source="standard input"))
    listed = ListedKeys(source=cut(path.name))
    try:
        start = b""
        if not path.is_dir():
            with path.open("rb") as raw:
                start = _start(_unpacked(raw), listed)
            if _heads(start):
                with path.open("rb") as raw:
                    return _list_of(raw, listed)
        return _traced(path, listed, tell)
    except OSError as error:
        raise SetupError(f"{cut(str(path))} cannot be read ({error.strerror or error})") from error
    except SetupError:
        if not start or b"\0" in start or start.startswith((*_PACKED, b"PAR1", b"{", b"[")):
            raise
        with path.open("rb") as raw:
            return _list_of(raw, listed)


def _unpacked(raw: IO[bytes]) -> io.BufferedReader:
    buffered = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(raw)  # type: ignore[type-var]
    packed = buffered.peek(len(_GZIP)).startswith(_GZIP)
    return io.BufferedReader(gzip.GzipFile(fileobj=buffered)) if packed else buffered  # type: ignore[return-value]


def _start(file: io.BufferedReader, listed: ListedKeys) -> bytes:
    """The first bytes of a list; a `SetupError` where it is packed otherwise than by gzip."""
    try:
        start = file.peek(_LOOKED_AT)[:_LOOKED_AT]
    except DAMAGED as error:
        raise SetupError(f"{listed.source} is damaged: {cut(str(error))}") from error
    if start.startswith(_PACKED):
        raise SetupError(f"{listed.source} is packed; unpack it, or pack it with gzip")
    return start


def _list_of(raw: IO[bytes], listed: ListedKeys) -> ListedKeys:
    """Read a CSV file with a header, or a list of PartitionKeys, one a line."""
    buffered = _unpacked(raw)
    start = _start(buffered, listed)
    wide = start.startswith(_UTF16)
    if not wide and b"\0" in start:
        raise SetupError(f"{listed.source} is not a text file")
    # Bytes that are not UTF-8 become halves of surrogate pairs, so that their line can be named.
    encoding = "utf-16" if wide else "utf-8-sig"
    text = io.TextIOWrapper(buffered, encoding, errors="surrogateescape", newline="")
    heads = _heads(start)
    try:
        if heads:
            _read_csv(text, heads, listed)
        else:
            _read_lines(text, listed)
    except (UnicodeError, *DAMAGED) as error:
        raise SetupError(f"{listed.source} is damaged: {cut(str(error))}") from error
    finally:
        text.detach()
    listed.ended()
    return listed


def _heads(start: bytes) -> str:
    """The delimiter of a CSV file whose first line names a column PartitionKey; else empty."""
    encoding = "utf-16" if start.startswith(_UTF16) else "utf-8-sig"
    first = start.decode(encoding, "replace").partition("\n")[0]
    return next((one for one in ",;\t" if "partitionkey" in _names(first.split(one))), "")


def _names(cells: Iterable[str]) -> list[str]:
    return [cell.strip(' "\r').replace("_", "").lower() for cell in cells]


def _lines(text: io.TextIOWrapper, source: str) -> Iterator[str]:
    number = 0
    while line := text.readline(_MOST_LINE):
        number += 1
        if len(line) == _MOST_LINE:
            raise SetupError(f"{source}: line {number:,} has more than {_MOST_LINE:,} characters")
        yield line


def _read_csv(text: io.TextIOWrapper, delimiter: str, listed: ListedKeys) -> None:
    csv.field_size_limit(_MOST_FIELD)
    rows = csv.reader(_lines(text, listed.source), delimiter=delimiter)
    names = _names(next(rows))
    place = names.index("partitionkey")
    row_place = names.index("rowkey") if "rowkey" in names else None
    needed = max(place, -1 if row_place is None else row_place) + 1
    while True:
        line = rows.line_num + 1
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            listed.reject(line, f"cannot be read ({error})")
            continue
        if not row:
            continue
        if len(row) < needed:
            listed.reject(line, f"has {len(row)} of {needed} columns")
            continue
        _add(listed, line, row[place], () if row_place is None else (row[row_place],))


def _read_lines(text: io.TextIOWrapper, listed: ListedKeys) -> None:
    for number, line in enumerate(_lines(text, listed.source), 1):
        key = line.rstrip("\r\n")
        if number == 1 and any(mark in key for mark in ",;\t"):
            raise SetupError(
                f"{listed.source}: line 1 has several columns, and none is named PartitionKey. "
                "Name the columns PartitionKey and RowKey in the first line"
            )
        if key:
            _add(listed, number, key, ())


def _add(listed: ListedKeys, line: int, key: str, row_keys: tuple[str, ...]) -> None:
    if not key.isascii() and any("\udc80" <= one <= "\udcff" for one in "".join((key, *row_keys))):
        listed.reject(line, "is not UTF-8")
    elif (table := listed.table("")) is not None:
        table.add(key, row_keys, f" (line {line:,})")


def _traced(path: Path, listed: ListedKeys, tell: Tell) -> ListedKeys:
    """Read the keys of recorded operations."""
    listed.unit = "operation"
    with opened(path, tell) as trace:
        if trace.head.keys:
            raise SetupError(
                f"{listed.source} has aliases in place of keys: what keys look like is unknown"
            )
        for batch in trace.batches():
            _add_batch(batch, listed)
    listed.ended()
    return listed


def _add_batch(batch: Batch, listed: ListedKeys) -> None:
    columns = (batch.partition_keys, batch.row_keys, batch.shapes, batch.details)
    for key, row_key, shape, detail in zip(*columns, strict=True):
        if key is None or key in (WHOLE_TABLE, UNKNOWN):
            continue
        row_keys: tuple[str | None, ...] = (row_key,)
        if isinstance(detail, TracedParts):
            row_keys = detail.row_keys
        elif shape.kind in (Kind.QUERY, Kind.TRANSACTION):
            row_keys = ()
        if (table := listed.table(shape.table)) is not None:
            table.add(key, [one for one in row_keys if one is not None and one != UNKNOWN])
