"""Reads the resource logs of Azure Monitor: JSON, and CSV exported from Log Analytics.

Fields: "Azure Table storage monitoring data reference" (resource logs) for JSON in a storage
account or an event hub, "StorageTableLogs" (Azure Monitor table reference) for the columns in Log
Analytics. Both name the same fields, so that a name is compared without case, and the fields inside
``properties`` are taken as if they were outside.
"""

from __future__ import annotations

import contextlib
import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from harness.model.errors import SetupError, cut
from harness.trace.logs.entries import LogEntry, number, utc_seconds, without_port

TIME, OPERATION = ("time", "timegenerated"), "operationname"
_REQUIRED = (OPERATION, "uri")
_MOST_FIELD_CHARACTERS = 1024 * 1024
_MOST_OBJECT_BYTES = 100 * 1024 * 1024
"""Of an answer of Log Analytics."""
_MOST_TEXT = 16 * 1024
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
"""Also one without an end, so that it is looked at once."""
_LIST_BEGINS = re.compile(rb'\{?\s*"(?:records|value)"\s*:\s*\[')


def json_entries(lines: Iterable[bytes]) -> Iterator[LogEntry | None]:
    """The entries of JSON; None for what is not an entry.

    In a storage account each line is an entry, and from an event hub it has several as ``records``.
    Log Analytics answers with a list of entries (Azure CLI), or with ``tables`` of columns and rows
    ("Azure Monitor Log Analytics API response format"). Each may be laid out over several lines.
    """
    for content in _contents(lines):
        for record in _records(content):
            yield _entry(_flat(record)) if isinstance(record, dict) else None


def _contents(lines: Iterable[bytes]) -> Iterator[Any]:
    """The JSON of a line, or of lines that are one object together; None where there is none."""
    parts: list[bytes] = []
    size = depth = 0
    for line in lines:
        text = line.strip()
        if not parts:
            if (not text.strip(b"[]{},") and text != b"{") or _LIST_BEGINS.fullmatch(text):
                continue
            content = _loaded(text)
            if content is None and text.startswith((b"{", b"[{")):
                parts, size, depth = [text.lstrip(b"[")], 0, _depth(text)
                continue
            yield content
            continue
        if parts == [b"{"] and _LIST_BEGINS.fullmatch(text):
            # Its entries follow: the object itself may be too large to be read as a whole.
            parts = []
            continue
        if text.startswith(b"{") and _has_entries(content := _loaded(text)):
            # The entry before was cut.
            parts = []
            yield None
            yield content
            continue
        parts.append(text)
        size += len(text)
        depth += _depth(text)
        if depth <= 0 or size > _MOST_OBJECT_BYTES:
            yield _loaded(b"\n".join(parts))
            parts = []
    if parts:
        yield None


def _loaded(text: bytes) -> Any:
    """The JSON of a text, without what separates it from others in a list; None if it is not."""
    for inner in (text.rstrip(b","), text.strip(b",[]")):
        with contextlib.suppress(orjson.JSONDecodeError):
            return orjson.loads(inner)
    return None


def _depth(text: bytes) -> int:
    """How many objects begin in a text and do not end in it."""
    outside = _STRING.sub(b"", text)
    return outside.count(b"{") - outside.count(b"}")


def _has_entries(content: Any) -> bool:
    return isinstance(content, dict) and any(
        name.lower() in (OPERATION, "records") for name in content
    )


def _records(content: Any) -> list[Any]:
    if isinstance(content, list):
        return content
    if isinstance(content, dict):
        if isinstance(records := content.get("records"), list):
            return records
        if isinstance(tables := content.get("tables"), list):
            return [record for table in tables for record in _rows(table)]
    return [content]


def _rows(table: Any) -> list[Any]:
    try:
        names = [column["name"] for column in table["columns"]]
        return [dict(zip(names, row, strict=True)) for row in table["rows"]]
    except (KeyError, TypeError, ValueError):
        return [None]


def csv_entries(lines: Iterable[bytes]) -> Iterator[LogEntry | None]:
    """The entries of a CSV file whose first line names the columns; None for any other row.

    A row goes on over line breaks in quotes. Where it was cut, the line that begins the next entry
    ends it.
    """
    csv.field_size_limit(_MOST_FIELD_CHARACTERS)
    names: list[str] = []

    def entry_in(row: str) -> LogEntry | None:
        return _entry(dict(zip(names, _fields(row), strict=False)))

    parts: list[str] = []
    size = quotes = 0
    for line in lines:
        text = line.decode("utf-8", "replace").replace("\0", "")
        if not names:
            columns = _fields(text)
            _require_utc(columns)
            names = [column_name(name) for name in columns]
            continue
        if parts and entry_in(text) is not None:
            yield None
            parts, size, quotes = [], 0, 0
        parts.append(text)
        size, quotes = size + len(text), quotes + text.count('"')
        if quotes % 2 and size <= _MOST_FIELD_CHARACTERS:
            continue
        if row := "".join(parts).strip():
            yield entry_in(row)
        parts, size, quotes = [], 0, 0
    if parts:
        yield None


def _require_utc(columns: Iterable[str]) -> None:
    """Raise a `SetupError` if times are in another zone: its offset is not in the file."""
    for name in columns:
        zone = name.partition("[")[2].strip().removesuffix("]")
        if zone not in ("", "UTC") and column_name(name) in TIME:
            raise SetupError(f"the times of the log are in {cut(zone)}: export it in UTC")


def _fields(row: str) -> list[str]:
    """The fields of a row; empty if they are not those of CSV."""
    with contextlib.suppress(csv.Error):
        return next(csv.reader([row]), [])
    return []


def column_name(name: str) -> str:
    """Name of a column without case, byte order mark and time zone: ``TimeGenerated [UTC]``."""
    return name.lstrip("\ufeff").partition("[")[0].strip().strip('"').lower()


def _flat(record: Mapping[str, Any]) -> dict[str, Any]:
    fields = {name.lower(): value for name, value in record.items()}
    inner = fields.pop("properties", None)
    if isinstance(inner, dict):
        for name, value in inner.items():
            fields.setdefault(name.lower(), value)
    return fields


def _entry(fields: Mapping[str, Any]) -> LogEntry | None:
    """The entry of fields named in lower case; None if they are not those of a request."""
    time = fields.get("time") or fields.get("timegenerated") or ""
    if not all(map(fields.get, _REQUIRED)) or (at_s := utc_seconds(str(time))) is None:
        return None

    def text(name: str) -> str:
        value = fields.get(name)
        return "" if value is None else str(value)[:_MOST_TEXT]

    return LogEntry(
        at_s=at_s,
        operation=text(OPERATION),
        status=int(number(text("statuscode"))),
        text=text("statustext"),
        duration_ms=number(text("durationms")),
        server_ms=number(text("serverlatencyms")),
        url=text("uri"),
        request_id=text("clientrequestid"),
        agent=text("useragentheader").strip('"'),
        address=without_port(text("calleripaddress")),
        account=text("accountname"),
        bytes_sent=int(number(text("requestbodysize"))),
        bytes_received=int(number(text("responsebodysize"))),
        part=int(number(text("operationcount"))),
        service_id=text("correlationid"),
    )
