"""What a table service without another one behind it stores, and answers.

Requests are those of `asked_by`. A query gives all entities of its partition or table on one page.
"""

from __future__ import annotations

import json
from typing import Any

from tests.support.faulty_service.asked import Asked, asked_by
from tests.support.proxy import Seen, Upstream

_JSON = "Content-Type: application/json;odata=minimalmetadata\r\n"
_WRITTEN = 'HTTP/1.1 204 No Content\r\nETag: W/"1"\r\n'
_PART = (
    "--changesetresponse_1\r\nContent-Type: application/http\r\n"
    f"Content-Transfer-Encoding: binary\r\n\r\n{_WRITTEN}\r\n\r\n"
)


class Stored(Upstream):
    """Tables and entities in memory. Every request succeeds but those about what is not there."""

    def __init__(self) -> None:
        super().__init__(None)
        self._tables: set[str] = set()
        self._entities: dict[tuple[str, str, str], dict[str, Any]] = {}

    def ask(self, seen: Seen) -> bytes | None:
        asked = asked_by(seen)
        if asked.kind == "tables":
            return _page([{"TableName": name} for name in sorted(self._tables)])
        if asked.kind == "create table":
            self._tables.add(asked.table)
            return f"{_WRITTEN}Content-Length: 0\r\n\r\n".encode()
        if asked.kind == "delete table":
            self._tables.discard(asked.table)
            self._entities = {
                key: entity for key, entity in self._entities.items() if key[0] != asked.table
            }
            return f"{_WRITTEN}Content-Length: 0\r\n\r\n".encode()
        if asked.kind == "query":
            return _page(
                [
                    entity
                    for (table, partition, _), entity in sorted(self._entities.items())
                    if table == asked.table and asked.partition in ("", partition)
                ]
            )
        key = (asked.table, asked.partition, asked.row)
        if asked.kind in ("point", "delete") and key not in self._entities:
            error = {"code": "ResourceNotFound", "message": {"value": "It is not there."}}
            return _whole("404 Not Found", _JSON, json.dumps({"odata.error": error}))
        if asked.kind == "point":
            return _whole("200 OK", f'{_JSON}ETag: W/"1"\r\n', json.dumps(self._entities[key]))
        for part in asked.parts or (asked,):
            self._write(part)
        if asked.kind != "transaction":
            return f"{_WRITTEN}Content-Length: 0\r\n\r\n".encode()
        inner = (
            "--batchresponse_1\r\nContent-Type: multipart/mixed; boundary=changesetresponse_1\r\n"
            f"\r\n{_PART * len(asked.parts)}--changesetresponse_1--\r\n--batchresponse_1--\r\n"
        )
        kind = "Content-Type: multipart/mixed; boundary=batchresponse_1\r\n"
        return _whole("202 Accepted", kind, inner)

    def _write(self, asked: Asked) -> None:
        key = (asked.table, asked.partition, asked.row)
        if asked.kind == "delete":
            self._entities.pop(key, None)
            return
        keys = {"PartitionKey": asked.partition, "RowKey": asked.row}
        self._entities[key] = {"odata.etag": 'W/"1"', **keys, "Value": 1}


def _page(rows: list[dict[str, Any]]) -> bytes:
    return _whole("200 OK", _JSON, json.dumps({"value": rows}))


def _whole(status: str, headers: str, body: str) -> bytes:
    head = f"HTTP/1.1 {status}\r\n{headers}Content-Length: {len(body.encode())}\r\n\r\n"
    return (head + body).encode()
