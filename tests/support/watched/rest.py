"""An application that speaks REST by curl, with signatures made by hand (Shared Key Lite).

Prints one JSON array: each answer with kind, partition, status, ``x-ms-client-request-id`` and
address. Requests are repeated by hand after 503: some with their id, some without one.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import subprocess
import time
from email.utils import formatdate
from typing import Any
from urllib.parse import quote, urlsplit

TABLE = "orders"
STALE = "W/\"datetime'2020-01-01T00%3A00%3A00.0000000Z'\""
FIELDS = dict(
    part.split("=", 1) for part in os.environ["AZURE_STORAGE_CONNECTION_STRING"].split(";") if part
)
URL = FIELDS["TableEndpoint"]
answers: list[dict[str, Any]] = []


def ask(
    kind: str,
    key: str,
    method: str,
    path: str,
    body: bytes = b"",
    *,
    query: str = "",
    id: str = "",
    **headers: str,
) -> int:
    """Send a request by curl, and note its status."""
    account, date = FIELDS["AccountName"], formatdate(usegmt=True)
    resource = f"/{account}{urlsplit(URL).path}{path}"
    secret = base64.b64decode(FIELDS["AccountKey"])
    signature = hmac.new(secret, f"{date}\n{resource}".encode(), hashlib.sha256).digest()
    fields = {
        "x-ms-date": date,
        "x-ms-version": "2019-02-02",
        "Accept": "application/json;odata=nometadata",
        "Authorization": f"SharedKeyLite {account}:{base64.b64encode(signature).decode()}",
        "Content-Type": "application/json",
        **({"x-ms-client-request-id": id} if id else {}),
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    # -g: brackets and braces are no patterns.
    command = ["curl", "-sS", "-g", "--noproxy", "*", "-X", method, "-w", "%{http_code}"]
    command += [part for field in fields.items() for part in ("-H", "{}: {}".format(*field))]
    if body or method not in ("GET", "DELETE"):
        command += ["--data-binary", "@-"]
    address = f"{URL}{path}{query}"
    found = subprocess.run(
        [*command, address], input=body, capture_output=True, check=True, timeout=60.0
    )
    status = int(found.stdout[-3:])
    parts = [int(line.split()[1]) for line in found.stdout.splitlines() if line[:7] == b"HTTP/1."]
    counted = next((part for part in parts if part >= 300), status)
    answers.append(
        {"kind": kind, "partition": key, "status": counted, "id": id, "request": method + address}
    )
    return counted


def again(*said: Any, **more: Any) -> None:
    """Send a request until it is not refused with 503."""
    deadline = time.monotonic() + 30.0
    while ask(*said, **more) == 503 and time.monotonic() < deadline:
        time.sleep(0.5)


def row(key: str, row: str) -> str:
    """The path of an entity."""
    keys = [quote(text.replace("'", "''"), safe="'") for text in (key, row)]
    return "/{}(PartitionKey='{}',RowKey='{}')".format(TABLE, *keys)


def entity(key: str, row: str) -> bytes:
    """The JSON of an entity."""
    return json.dumps({"PartitionKey": key, "RowKey": row}).encode()


def batch(key: str, rows: list[str], method: str = "PUT") -> bytes:
    """A change set of writes."""
    lines = ["--batch_1", "Content-Type: multipart/mixed; boundary=changeset_1", ""]
    for name in rows:
        path = row(key, name) if method == "PUT" else f"/{TABLE}"
        lines += ["--changeset_1", "Content-Type: application/http"]
        lines += ["Content-Transfer-Encoding: binary", ""]
        lines += [f"{method} {URL}{path} HTTP/1.1", "Content-Type: application/json"]
        lines += ["Accept: application/json;odata=nometadata", "", entity(key, name).decode()]
    return "\r\n".join([*lines, "--changeset_1--", "--batch_1--", ""]).encode()


def main() -> None:
    """Send every kind of request."""
    ask("", "", "POST", "/Tables", json.dumps({"TableName": TABLE}).encode())
    for name in ("1", "2", "1"):
        ask("insert", "p", "POST", f"/{TABLE}", entity("p", name))
    ask("insert", "o'clock ü", "POST", f"/{TABLE}", entity("o'clock ü", "r"))
    ask("upsert_replace", "p", "PUT", row("p", "3"), entity("p", "3"))
    ask("upsert_merge", "p", "MERGE", row("p", "4"), entity("p", "4"))
    ask("update_replace", "p", "PUT", row("p", "3"), entity("p", "3"), If_Match="*")
    ask("update_merge", "p", "MERGE", row("p", "absent"), entity("p", "absent"), If_Match="*")
    ask("update_merge", "p", "PATCH", row("p", "4"), entity("p", "4"), If_Match=STALE)
    for name in ("1", "none"):
        ask("point_query", "p", "GET", row("p", name))
    for _ in range(2):
        ask("delete", "p", "DELETE", row("p", "1"), If_Match="*")
    multipart = {"Content_Type": "multipart/mixed; boundary=batch_1"}
    few, many = [f"{n:03d}" for n in range(20)], [f"{n:03d}" for n in range(100)]
    ask("transaction", "t", "POST", "/$batch", batch("t", few), **multipart)
    ask("transaction", "t", "POST", "/$batch", batch("t", few[:2], "POST"), **multipart)
    filter_ = quote("PartitionKey eq 't'")
    ask("partition_scan", "t", "GET", f"/{TABLE}()", query=f"?$filter={filter_}&$top=7")
    filter_ = quote("PartitionKey eq 't' and RowKey ge '005' and RowKey lt '015'")
    ask("row_range_scan", "t", "GET", f"/{TABLE}()", query=f"?$filter={filter_}")
    ask("full_table_scan", "/", "GET", f"/{TABLE}()")
    ask("point_query", "p", "GET", row("p", "3"), Authorization="SharedKeyLite nobody:d3Jvbmc=")
    for id in ("1", "2", ""):
        again("transaction", "hot", "POST", "/$batch", batch("hot", many), id=id, **multipart)


if __name__ == "__main__":
    main()
    print(json.dumps(answers))
