"""Reads the classic logs of Storage Analytics, versions 1.0 and 2.0.

"Storage Analytics log format": semicolons separate the fields. A field that may contain a quote, a
semicolon or a line break is HTML encoded and quoted. Version 2.0 has further fields at the end.
"""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Iterable, Iterator

from harness.trace.logs.entries import LogEntry, number, utc_seconds, without_port

VERSIONS = ("1.0", "2.0")
_FIELD = re.compile(r'(?:"([^"]*+(?:"(?!;|$)[^"]*+)*+)"|([^;]*+))(?:;|$)')
_FIELDS = 30
"""Those of version 1.0."""
_MOST_FIELDS = 100


def classic_entries(lines: Iterable[bytes]) -> Iterator[LogEntry | None]:
    """The entries of a log; None for a line that is not an entry."""
    for line in lines:
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        if text.strip():
            yield _entry(text)


def fields_of(line: str) -> list[str]:
    """The fields of a line, without quotes and HTML encoding."""
    fields = []
    for match in itertools.islice(_FIELD.finditer(line), _MOST_FIELDS):
        quoted, plain = match.groups()
        fields.append(plain if quoted is None else html.unescape(quoted))
        if match.end() == len(line) and not match[0].endswith(";"):
            break
    return fields


def _entry(line: str) -> LogEntry | None:
    fields = fields_of(line)
    if len(fields) < _FIELDS or fields[0] not in VERSIONS:
        return None
    if (at_s := utc_seconds(fields[1])) is None:
        return None
    return LogEntry(
        at_s=at_s,
        operation=fields[2],
        text=fields[3],
        # An interrupted request may have the status Unknown.
        status=int(number(fields[4])),
        duration_ms=number(fields[5]),
        server_ms=number(fields[6]),
        account=fields[9],
        url=fields[11],
        service_id=fields[13],
        part=int(number(fields[14])),
        address=without_port(fields[15]),
        bytes_sent=int(number(fields[18])),
        bytes_received=int(number(fields[20])),
        agent=fields[27],
        request_id=fields[29],
    )
