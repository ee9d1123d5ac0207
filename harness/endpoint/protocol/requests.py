"""Requests of the Table protocol: OData, the same for all sessions, and the requests as bytes.

The bytes are the same as those of azure-data-tables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote, urlsplit

from harness.endpoint.credential import ServiceDate
from harness.endpoint.endpoint import Endpoint
from harness.endpoint.http.channel import USER_AGENT
from harness.endpoint.protocol.edm import EntityWriter
from harness.endpoint.protocol.multipart import message_of
from harness.model.entity import MAX_PAGE_ENTITIES
from harness.model.operation import WHOLE_TABLE, Kind, Operation

JSON = "application/json"
JSON_MINIMAL = "application/json;odata=minimalmetadata"
JSON_PLAIN = "application/json;odata=nometadata"

VERSION = "2019-02-02"
VERSION_HEADERS = {"x-ms-version": VERSION, "DataServiceVersion": "3.0"}

Token = Mapping[str, str]
"""Where the next page of a query begins: the continuation token of a response."""

_needs_no_encoding = re.compile(r"[A-Za-z0-9_.~-]*").fullmatch
_POINT_QUERY, _INSERT, _DELETE = Kind.POINT_QUERY, Kind.INSERT, Kind.DELETE


def row_address(table: str, partition_key: str, row_key: str) -> str:
    """The address of one entity: ``table`` (a path or URL) with the key behind it."""
    # Most keys are plain, and one match over both keys costs half of two.
    if not _needs_no_encoding(partition_key + row_key):
        partition_key, row_key = _in_address(partition_key), _in_address(row_key)
    return f"{table}(PartitionKey='{partition_key}',RowKey='{row_key}')"


def write_request(
    kind: Kind, etag: str | None, *, merges_by_post: bool
) -> tuple[str, dict[str, str]]:
    """Verb and headers of a single write, without the headers that describe its body.

    Without an ETag, or with ``*``, it matches any stored version. ``merges_by_post`` is the
    service's: see `Service`.
    """
    if kind is _INSERT:
        return kind.method, {"Prefer": "return-no-content", "Accept": JSON_MINIMAL}
    condition = {"If-Match": _if_match(etag)} if kind.needs_row else {}
    headers = {"Accept": JSON if kind.stores else JSON_MINIMAL, **condition}
    if kind.merges and merges_by_post:
        return "POST", {**headers, "X-HTTP-Method": "MERGE"}
    return kind.method, headers


def filter_of(query: Operation) -> str:
    """The OData filter of a query; empty for the whole table."""
    terms = []
    if query.partition_key != WHOLE_TABLE:
        terms.append(f"PartitionKey eq {_literal(query.partition_key)}")
    keys = query.key_range
    for name, comparison, key in (
        ("PartitionKey", "ge", keys.partition_from),
        ("PartitionKey", "lt", keys.partition_before),
        ("RowKey", "ge", keys.row_from),
        ("RowKey", "lt", keys.row_before),
    ):
        if key is not None:
            terms.append(f"{name} {comparison} {_literal(key)}")
    if query.filter:
        terms.append(f"({query.filter})" if terms else query.filter)
    return " and ".join(terms)


def page_size(query: Operation, found: int) -> int | None:
    """Entities to ask for after ``found`` ones; None asks for as many as the service gives."""
    return None if query.top is None else min(query.top - found, MAX_PAGE_ENTITIES)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _in_address(key: str) -> str:
    return quote(key.replace("'", "''"), safe="")


def _if_match(etag: str | None) -> str:
    """An ETag for the header: in quotation marks, unless it has some or stands for any."""
    if etag in (None, "", "*"):
        return "*"
    quoted = any(etag.startswith(mark) and etag.endswith(mark) for mark in ('"', "'"))
    return etag if quoted or etag.startswith("W/") else f'"{etag}"'


def _lines(headers: dict[str, str]) -> str:
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items())


_VERSION = _lines(VERSION_HEADERS)
_MINIMAL = _lines({"Accept": JSON_MINIMAL})


class RequestWriter:
    """Writes and signs the requests to one account.

    What is the same in every request of a kind is put together once. ``table`` is the first table;
    an operation on another one appends its ending. A request id identifies the request in the logs
    of the service. A value that has no EDM type, or does not fit into Edm.Int32, raises TypeError.
    """

    def __init__(self, endpoint: Endpoint, table: str) -> None:
        parts = urlsplit(endpoint.url)
        self._origin = f"{parts.scheme}://{parts.netloc}"
        self._account_path = parts.path
        self._table = f"{parts.path}/{table}"
        self._end = f" HTTP/1.1\r\nHost: {parts.netloc}\r\nUser-Agent: {USER_AGENT}\r\n{_VERSION}"
        self._signer = endpoint.credential
        self._query = self._signer.query
        self._date = ServiceDate()
        self._entities = EntityWriter()
        self._merges_by_post = endpoint.kind.merges_by_post
        self._writes = {kind: self._head_of(kind, None) for kind in Kind if kind.part}

    def single(self, operation: Operation, request_id: str) -> bytes:
        """The request of a point query or of a single write."""
        kind = operation.kind
        if kind is _POINT_QUERY:
            asked = f"$select={_selected(operation)}" if operation.select else ""
            return self._message("GET", self._row(operation), asked, "", _MINIMAL, request_id)
        method, headers = self._write(operation)
        if kind is _DELETE:
            return self._message(method, self._row(operation), "", "", headers, request_id)
        body = self._entities.text(operation)
        if kind is _INSERT:
            path = self._table + operation.table
            return self._message(method, path, "", JSON_PLAIN, headers, request_id, body)
        return self._message(method, self._row(operation), "", JSON, headers, request_id, body)

    def page(self, query: Operation, token: Token | None, found: int, request_id: str) -> bytes:
        """The request of the page of a query that begins at ``token``, after ``found`` entities."""
        terms = []
        size = page_size(query, found)
        if size is not None:
            terms.append(f"$top={size}")
        if query.select:
            terms.append(f"$select={_selected(query)}")
        wanted = filter_of(query)
        if wanted:
            terms.append(f"$filter={quote(wanted, safe='')}")
        for name, key in (token or {}).items():
            terms.append(f"Next{name}={quote(key, safe='')}")
        path = f"{self._table}{query.table}()"
        return self._message("GET", path, "&".join(terms), "", _MINIMAL, request_id)

    def transaction(self, operation: Operation, request_id: str) -> bytes:
        """The request of a transaction; ``request_id`` is part of its boundaries."""
        date = self._date.now()
        dates = f"x-ms-date: {date}\r\nDate: {date}\r\n\r\n"
        body = message_of(request_id, [self._part(part, dates) for part in operation.parts])
        headers = f"MaxDataServiceVersion: 3.0;NetFx\r\nAccept: {JSON}\r\n"
        content_type = f"multipart/mixed; boundary=batch_{request_id}"
        path = f"{self._account_path}/$batch"
        head = self._message("POST", path, "", content_type, headers, request_id, "", len(body))
        return head + body

    def _part(self, part: Operation, dates: str) -> str:
        method, headers = self._write(part)
        if part.kind is _DELETE:
            return (
                f"{method} {self._origin}{self._row(part)} HTTP/1.1\r\n{_VERSION}{headers}{dates}"
            )
        inserts = part.kind is _INSERT
        path = self._table + part.table if inserts else self._row(part)
        body = self._entities.text(part)
        return (
            f"{method} {self._origin}{path} HTTP/1.1\r\nContent-Type: {JSON}\r\n"
            f"Content-Length: {len(body)}\r\n{_VERSION}{headers}{dates}{body}"
        )

    def _write(self, operation: Operation) -> tuple[str, str]:
        if operation.etag is None:
            return self._writes[operation.kind]
        return self._head_of(operation.kind, operation.etag)

    def _head_of(self, kind: Kind, etag: str | None) -> tuple[str, str]:
        method, headers = write_request(kind, etag, merges_by_post=self._merges_by_post)
        return method, _lines(headers)

    def _row(self, operation: Operation) -> str:
        return row_address(
            self._table + operation.table, operation.partition_key, operation.row_key
        )

    def _message(
        self,
        method: str,
        path: str,
        asked: str,
        content_type: str,
        headers: str,
        request_id: str,
        body: str = "",
        body_bytes: int = 0,
    ) -> bytes:
        date = self._date.now()
        signature = self._signer.authorization(method, content_type, date, path)
        if self._query:
            asked = f"{asked}&{self._query}" if asked else self._query
        if asked:
            path = f"{path}?{asked}"
        about = f"Authorization: {signature}\r\n" if signature else ""
        if content_type:
            length = body_bytes or len(body)
            about += f"Content-Type: {content_type}\r\nContent-Length: {length}\r\n"
        return (
            f"{method} {path}{self._end}{headers}"
            f"x-ms-date: {date}\r\nx-ms-client-request-id: {request_id}\r\n"
            f"{about}\r\n{body}"
        ).encode("ascii")


def _selected(operation: Operation) -> str:
    return quote(",".join(operation.select), safe="")
