"""What a request to a table service asks for, read from its bytes.

Nothing of the harness is used, so that what is counted by it is a count of its own.
"""

from __future__ import annotations

import dataclasses
import json
import re
from urllib.parse import parse_qs, unquote, urlsplit

from tests.support.proxy import Seen

WRITES = ("insert", "update", "upsert", "delete", "transaction")

_KEYS = re.compile(r"\(PartitionKey='((?:[^']|'')*)',RowKey='((?:[^']|'')*)'\)$")
_OF_PARTITION = re.compile(r"PartitionKey eq '((?:[^']|'')*)'")
_TABLE_NAMED = re.compile(r"Tables\('([^']*)'\)$")
_PART = re.compile(
    rb"\r\n\r\n(?P<method>[A-Z]+) (?P<target>\S+) HTTP/1\.1\r\n"
    rb"(?P<head>.*?)\r\n\r\n(?P<body>.*?)\r\n--changeset",
    re.DOTALL,
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request.

    Attributes:
        kind: One of `WRITES`, ``point``, ``query``, or, of a table and not of entities,
            ``tables``, ``create table``, ``delete table``.
        partition: Empty where it is about several.
        request_id: The client's own; a client may use one for several requests.
        parts: Of a transaction.
    """

    kind: str
    table: str
    partition: str = ""
    row: str = ""
    request_id: str = ""
    parts: tuple[Asked, ...] = ()

    @property
    def writes(self) -> bool:
        return self.kind in WRITES

    @property
    def of_entities(self) -> bool:
        return self.writes or self.kind in ("point", "query")

    @property
    def entities(self) -> int:
        """Entities that it writes if it is done."""
        return max(1, len(self.parts)) if self.writes else 0


def asked_by(seen: Seen) -> Asked:
    """What ``seen`` asks for.

    Raises:
        ValueError: it is no request that the table service knows.
    """
    request_id = seen.headers.get("x-ms-client-request-id", "")
    if seen.path.endswith("/$batch"):
        parts = tuple(
            _single(
                part["method"].decode(),
                part["target"].decode(),
                _headers(part["head"]),
                part["body"],
            )
            for part in _PART.finditer(seen.body)
        )
        if not parts:
            raise ValueError("a transaction without parts")
        return Asked(
            kind="transaction",
            table=parts[0].table,
            partition=parts[0].partition,
            request_id=request_id,
            parts=parts,
        )
    asked = _single(seen.method, seen.path, seen.headers, seen.body)
    return dataclasses.replace(asked, request_id=request_id)


def _headers(head: bytes) -> dict[str, str]:
    lines = (line.partition(":") for line in head.decode("latin-1").split("\r\n"))
    return {name.lower(): value.strip() for name, _, value in lines}


def _single(method: str, target: str, headers: dict[str, str], body: bytes) -> Asked:
    address = urlsplit(target)
    resource = unquote(address.path.rpartition("/")[2] if "(" not in address.path else "")
    if not resource:
        # A key may hold a quoted slash, which is quoted still, and nothing before it a bracket.
        resource = unquote(address.path[address.path.rindex("/", 0, address.path.index("(")) + 1 :])
    if resource == "Tables" or _TABLE_NAMED.match(resource):
        named = _TABLE_NAMED.match(resource)
        if method == "DELETE" and named is not None:
            return Asked(kind="delete table", table=named[1])
        if method == "POST":
            return Asked(kind="create table", table=json.loads(body)["TableName"])
        return Asked(kind="tables", table="")
    keys = _KEYS.search(resource)
    if keys is None:
        table = resource.removesuffix("()")
        if method == "POST":
            entity = json.loads(body)
            return Asked(
                kind="insert",
                table=table,
                partition=entity["PartitionKey"],
                row=entity["RowKey"],
            )
        if method != "GET":
            raise ValueError(f"{method} of a whole table")
        found = _OF_PARTITION.search(parse_qs(address.query).get("$filter", [""])[0])
        return Asked(
            kind="query",
            table=table,
            partition="" if found is None else found[1].replace("''", "'"),
        )
    method = headers.get("x-http-method", method)
    kinds = {"GET": "point", "DELETE": "delete"}
    return Asked(
        kind=kinds.get(method, "update" if "if-match" in headers else "upsert"),
        table=resource[: keys.start()],
        partition=keys[1].replace("''", "'"),
        row=keys[2].replace("''", "'"),
    )
