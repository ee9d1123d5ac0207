"""Requests of the Table protocol as bytes: those that the SDK would send.

What is the same in every request of a kind is put together once. Keys are quoted as parts of an
address, and the quotation marks in them are doubled.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote, urlsplit

from harness.endpoint.channel import USER_AGENT
from harness.endpoint.connection import Endpoint
from harness.endpoint.translate import filter_of, page_size
from harness.endpoint.wire.entities import EntityWriter
from harness.endpoint.wire.multipart import message_of
from harness.endpoint.wire.signing import ServiceDate, signer_of
from harness.model.operation import PART_KINDS, Kind, Operation
from harness.model.target import EndpointKind

_VERSION = "x-ms-version: 2019-02-02\r\nDataServiceVersion: 3.0\r\n"
_JSON = "application/json"
_MINIMAL = "Accept: application/json;odata=minimalmetadata\r\n"
_NO_ECHO = "Prefer: return-no-content\r\n"
_INSERTS = "application/json;odata=nometadata"
_MERGES = frozenset((Kind.UPSERT_MERGE, Kind.UPDATE_MERGE))
_CONDITIONAL = frozenset((Kind.UPDATE_MERGE, Kind.UPDATE_REPLACE, Kind.DELETE))
_needs_no_quotes = re.compile(r"[A-Za-z0-9_.~-]*").fullmatch
_POINT_QUERY, _INSERT, _DELETE = Kind.POINT_QUERY, Kind.INSERT, Kind.DELETE


class RequestWriter:
    """Writes requests to one account.

    Args:
        endpoint: Where to, and signed with what.
        table: Name of the first table.

    Raises:
        ValueError: an account key that is no base64.
    """

    def __init__(self, endpoint: Endpoint, table: str) -> None:
        parts = urlsplit(endpoint.url)
        self._origin = f"{parts.scheme}://{parts.netloc}"
        self._account_path = parts.path
        self._table = f"{parts.path}/{table}"
        self._end = f" HTTP/1.1\r\nHost: {parts.netloc}\r\nUser-Agent: {USER_AGENT}\r\n{_VERSION}"
        self._signer = signer_of(endpoint.credential)
        self._query = self._signer.query
        self._date = ServiceDate()
        self._entities = EntityWriter()
        # Cosmos DB takes no PATCH.
        cosmos = endpoint.kind is EndpointKind.COSMOS
        self._merge = "POST" if cosmos else "PATCH"
        self._merging = "X-HTTP-Method: MERGE\r\n" if cosmos else ""
        self._writes = {kind: self._written(kind, None) for kind in PART_KINDS}

    def single(self, operation: Operation, request_id: str) -> bytes:
        """The request of a point query or of a single write.

        Args:
            operation: What is wanted.
            request_id: What the request is called in the service's logs.

        Raises:
            TypeError: a value has no Edm type, or does not fit into Edm.Int32.
        """
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
            return self._message(method, path, "", _INSERTS, headers, request_id, body)
        return self._message(method, self._row(operation), "", _JSON, headers, request_id, body)

    def page(
        self, query: Operation, token: Mapping[str, str] | None, found: int, request_id: str
    ) -> bytes:
        """The request of one page of a query.

        Args:
            query: What is wanted.
            token: Where the page begins; None is the first page.
            found: Entities that earlier pages brought.
            request_id: What the request is called in the service's logs.
        """
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
        """The request of a transaction.

        Args:
            operation: What is wanted.
            request_id: What the request is called in the service's logs; ends its boundaries.

        Raises:
            TypeError: a value has no Edm type, or does not fit into Edm.Int32.
        """
        date = self._date.now()
        dates = f"x-ms-date: {date}\r\nDate: {date}\r\n\r\n"
        body = message_of(request_id, [self._part(part, dates) for part in operation.parts])
        headers = f"MaxDataServiceVersion: 3.0;NetFx\r\nAccept: {_JSON}\r\n"
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
            f"{method} {self._origin}{path} HTTP/1.1\r\nContent-Type: {_JSON}\r\n"
            f"Content-Length: {len(body)}\r\n{_VERSION}{headers}{dates}{body}"
        )

    def _write(self, operation: Operation) -> tuple[str, str]:
        """Verb and headers of a write of its own."""
        if operation.etag is None:
            return self._writes[operation.kind]
        return self._written(operation.kind, operation.etag)

    def _written(self, kind: Kind, etag: str | None) -> tuple[str, str]:
        if kind is _INSERT:
            return "POST", _NO_ECHO + _MINIMAL
        condition = f"If-Match: {_quoted(etag)}\r\n" if kind in _CONDITIONAL else ""
        if kind is _DELETE:
            return "DELETE", _MINIMAL + condition
        if kind in _MERGES:
            return self._merge, f"Accept: {_JSON}\r\n{condition}{self._merging}"
        return "PUT", f"Accept: {_JSON}\r\n{condition}"

    def _row(self, operation: Operation) -> str:
        partition, row = operation.partition_key, operation.row_key
        # Most keys are plain, and one look at both is half of two.
        if not _needs_no_quotes(partition + row):
            partition, row = _in_address(partition), _in_address(row)
        return f"{self._table}{operation.table}(PartitionKey='{partition}',RowKey='{row}')"

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


def _in_address(key: str) -> str:
    """A key as it stands between quotation marks in an address."""
    return quote(key.replace("'", "''"), safe="")


def _quoted(etag: str | None) -> str:
    """An ETag as a header has it: quoted, unless it is already, or stands for any."""
    if etag in (None, "", "*"):
        return "*"
    quoted = any(etag.startswith(mark) and etag.endswith(mark) for mark in ('"', "'"))
    return etag if quoted or etag.startswith("W/") else f'"{etag}"'


def _selected(operation: Operation) -> str:
    return quote(",".join(operation.select), safe="")
