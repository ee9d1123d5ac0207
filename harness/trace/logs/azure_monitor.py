"""Reads the resource logs of Azure Monitor: JSON lines, and CSV exported from Log Analytics.

Fields: "Azure Table storage monitoring data reference" (resource logs) for JSON in a storage
account or an event hub, "StorageTableLogs" (Azure Monitor table reference) for the columns in Log
Analytics. Both name the same fields, so that a name is compared without case, and the fields inside
``properties`` are taken as if they were outside.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from harness.trace.logs.entries import LogEntry, number, utc_seconds, without_port

TIME, OPERATION = ("time", "timegenerated"), "operationname"
_REQUIRED = (OPERATION, "uri")
_MOST_FIELD_CHARACTERS = 1024 * 1024


def json_entries(lines: Iterable[bytes]) -> Iterator[LogEntry | None]:
    """The entries of JSON lines; None for a line that is not an entry.

    A line of an event hub's capture may hold several entries as ``records``.
    """
    for line in lines:
        text = line.strip().strip(b",[]")
        if not text:
            continue
        try:
            content = orjson.loads(text)
        except orjson.JSONDecodeError:
            yield None
            continue
        records = content.get("records", content) if isinstance(content, dict) else content
        for record in records if isinstance(records, list) else [records]:
            yield _entry(_flat(record)) if isinstance(record, dict) else None


def csv_entries(lines: Iterable[bytes]) -> Iterator[LogEntry | None]:
    """The entries of a CSV file whose first line names the columns; None for any other line."""
    csv.field_size_limit(_MOST_FIELD_CHARACTERS)
    text = (line.decode("utf-8", "replace").replace("\0", "") for line in lines)
    rows = csv.reader(text)
    names: list[str] = []
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error:
            yield None
            continue
        if not names:
            names = [column_name(name) for name in row]
        elif row:
            yield _entry(dict(zip(names, row, strict=False)))


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
    time = fields.get("time") or fields.get("timegenerated")
    if not time or not all(fields.get(name) for name in _REQUIRED):
        return None
    try:
        at_s = utc_seconds(str(time))
    except ValueError:
        return None

    def text(name: str) -> str:
        value = fields.get(name)
        return "" if value is None else str(value)

    return LogEntry(
        at_s=at_s,
        operation=text(OPERATION),
        status=int(number(text("statuscode"))),
        text=text("statustext"),
        duration_ms=number(text("durationms")),
        url=text("uri"),
        request_id=text("clientrequestid"),
        agent=text("useragentheader").strip('"'),
        address=without_port(text("calleripaddress")),
        account=text("accountname"),
        bytes_sent=int(number(text("requestbodysize"))),
        bytes_received=int(number(text("responsebodysize"))),
        part=int(number(text("operationcount"))),
    )
