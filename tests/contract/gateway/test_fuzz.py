"""Requests in any form, through a gateway to Azurite: what is acknowledged is counted, once."""

from __future__ import annotations

import dataclasses
import datetime as dt
import http.client
import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from azure.data.tables import (
    AccountSasPermissions,
    ResourceTypes,
    TableClient,
    generate_account_sas,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.endpoint.endpoint import Endpoint
from harness.gateway.key_ranges import index_range
from tests.contract.gateway.conftest import WIDE
from tests.support.gateways import StartGateway, Told
from tests.support.sdk import named_key

pytestmark = [pytest.mark.azurite, pytest.mark.long]

# Azurite finds the wrong keys in a batch where a key contains "RowKey=".
KEYS = [
    "",
    "p",
    "P",
    "o'clock",
    "a key",
    "comp=",
    "$batch",
    "Tables",
    "(x)",
    "ü=,",
    "PartitionKey=",
]
ROWS = ["r", "a row", "PartitionKey=", "7%"]
FILTERS = [
    "",
    "Number ge 0",
    "Text eq 'comp='",
    "PartitionKey eq 'p'",
    "'o''clock' eq PartitionKey",
    "PartitionKey eq 'p' and (Number lt 5 or RowKey ge 'b')",
    "not (PartitionKey ne 'a key')",
    "PartitionKey ge 'P' and PartitionKey lt 'p0'",
    "PartitionKey eq 'p' or PartitionKey eq 'P' and RowKey eq 'r'",
    "(PartitionKey eq 'comp=')",
]


@dataclasses.dataclass(frozen=True)
class Form:
    """One request in one of its forms. Choices are numbers, so that examples shrink."""

    what: str
    key: str
    rows: tuple[str, ...]
    filter: str
    case: int
    ending: int
    encoded: int
    line_end: str


FORMS = st.builds(
    Form,
    what=st.sampled_from(
        ["insert", "put", "patch", "merge", "tunnel", "delete", "get", "query", "batch", "batch"]
    ),
    key=st.sampled_from(KEYS),
    rows=st.lists(st.sampled_from(ROWS), min_size=1, max_size=3, unique=True).map(tuple),
    filter=st.sampled_from(FILTERS),
    case=st.integers(0, 2),
    ending=st.integers(0, 3),
    encoded=st.integers(0, 2),
    line_end=st.sampled_from(["\r\n", "\n"]),
)


def literal(key: str) -> str:
    """A key between quotes."""
    return "'" + key.replace("'", "''") + "'"


def encoded(segment: str, how: int) -> str:
    """A segment with few, most or all characters percent-encoded."""
    if how == 2:
        return "".join(f"%{byte:02X}" for byte in segment.encode())
    return quote(segment, safe=["()=,'$", ""][how])


class Sender:
    """Sends forms, and keeps what was acknowledged."""

    def __init__(self, url: str, account: str, table: str, sas: str) -> None:
        self._url, self._account, self._table, self._sas = url, account, table, sas
        self._connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=20)
        self.entities: Counter[str | None] = Counter()
        self.requests: Counter[str | None] = Counter()
        self.missing: Counter[str | None] = Counter()
        self.returned: Counter[str | None] = Counter()
        self.stored: set[tuple[str, str]] = set()

    def counts(self) -> dict[str, Counter[str | None]]:
        """What the gateway should have counted."""
        return {
            "entities": self.entities.copy(),
            "requests": self.requests - self.missing,
            "returned": self.returned.copy(),
            "estimated": Counter(),
        }

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def send(self, form: Form) -> None:
        """Send one form, and note its answer."""
        name = [self._table, self._table.upper(), self._table.capitalize()][form.case]
        entity = f"{name}(PartitionKey={literal(form.key)},RowKey={literal(form.rows[0])})"
        body = json.dumps({"PartitionKey": form.key, "RowKey": form.rows[0], "Number": 1})
        if form.what == "batch":
            self._batch(form, name)
        elif form.what == "query":
            self._query(form, name)
        elif form.what == "insert":
            segment = name + ["", "()", "", "()"][form.ending]
            status = self._ask("POST", segment, form, body)[0]
            self._count(status, form.key, {(form.key, form.rows[0])}, 1)
        else:
            headers = {"If-Match": "*"} if form.what == "delete" else {}
            method = {"merge": "MERGE", "tunnel": "POST", "put": "PUT", "patch": "PATCH"}.get(
                form.what, {"delete": "DELETE", "get": "GET"}.get(form.what, "")
            )
            if form.what == "tunnel":
                headers["X-HTTP-Method"] = "MERGE"
            reads = form.what in ("get", "delete")
            status, _, code = self._ask(method, entity, form, "" if reads else body, **headers)
            rows = {(form.key, form.rows[0])}
            if form.what == "get":
                missing = status == 404 and code != "TableNotFound"
                self._count(200 if missing else status, form.key, set(), 1)
                self.missing[form.key] += missing
                self.returned[form.key] += status == 200
            else:
                self._count(status, form.key, rows, 1, stays=form.what != "delete")

    def _count(
        self,
        status: int,
        key: str | None,
        rows: set[tuple[str, str]],
        entities: int,
        *,
        stays: bool = True,
    ) -> None:
        if 200 <= status < 300:
            self.entities[key] += entities
            self.requests[key] += 1
            self.stored = self.stored | rows if stays else self.stored - rows

    def _query(self, form: Form, name: str) -> None:
        segment = name + ["", "()", "()", ""][form.ending]
        more = f"&$filter={quote(form.filter)}" if form.filter else ""
        status, content, _ = self._ask("GET", segment, form, "", more)
        if status == 200:
            ranges = index_range(form.filter)
            self.returned[ranges.only] += len(json.loads(content)["value"])
            scanned = sum(key in ranges for key in self.stored)
            self._count(status, ranges.only, set(), scanned)

    def _batch(self, form: Form, name: str) -> None:
        parts, rows, inserts = "", set(), form.ending == 1
        # Azurite does not undo the inserts of a transaction that fails.
        written = form.rows[:1] if inserts else form.rows
        for number, row in enumerate(written):
            body = json.dumps({"PartitionKey": form.key, "RowKey": row, "Number": number})
            segment = f"{name}()" if inserts else self._part_segment(form, name, row)
            url = f"{self._url}/{self._account}/{segment}"
            parts += (
                "--changeset_1\nContent-Type: application/http\n"
                "Content-Transfer-Encoding: binary\n\n"
                f"{'POST' if inserts else 'PUT'} {url} HTTP/1.1\n"
                f"Content-Type: application/json\nAccept: application/json;odata=nometadata\n"
                f"DataServiceVersion: 3.0\n\n{body}\n"
            )
            rows.add((form.key, row))
        whole = (
            f"--batch_1\nContent-Type: multipart/mixed; boundary=changeset_1\n\n{parts}"
            "--changeset_1--\n--batch_1--\n"
        )
        kind = {"Content-Type": "multipart/mixed; boundary=batch_1"}
        text = whole.replace("\n", form.line_end)
        status, content, _ = self._ask("POST", "$batch", form, text, **kind)
        if status == 202:
            statuses = [int(found) for found in re.findall(rb"HTTP/1\.1 (\d{3})", content)]
            done = bool(statuses) and all(part < 300 for part in statuses)
            self._count(202 if done else 400, form.key, rows, len(written))

    @staticmethod
    def _part_segment(form: Form, name: str, row: str) -> str:
        segment = f"{name}(PartitionKey={literal(form.key)},RowKey={literal(row)})"
        return quote(segment, safe="()=,'")

    def _ask(
        self, method: str, segment: str, form: Form, body: str, more: str = "", **headers: str
    ) -> tuple[int, bytes, str]:
        slash = "/" if form.ending in (2, 3) else ""
        extra = "&x=1" if form.ending == 3 else ""
        path = f"/{self._account}/{encoded(segment, form.encoded)}{slash}"
        target = f"{path}?{self._sas}{more}{extra}"
        said = {
            "Accept": "application/json;odata=nometadata",
            "Content-Type": "application/json",
            "x-ms-version": "2019-02-02",
            "DataServiceVersion": "3.0",
            **headers,
        }
        self._connection.request(method, target, body.encode() or None, said)
        answer = self._connection.getresponse()
        return answer.status, answer.read(), answer.headers.get("x-ms-error-code", "")


def told_by(rows: list[dict[str, Any]], field: str) -> Counter[str | None]:
    """A column of what passed, by partition."""
    found: Counter[str | None] = Counter()
    for row in rows:
        if row["result"] == "passed":
            found[row["partition"]] += row[field]
    return +found


ONE_SERVER = f"{WIDE}count = 1\n"
"""No limit is met, and no page is cut."""


def test_what_azurite_acknowledges_is_counted_once_for_its_partition(
    gateway_to: StartGateway, client_of: Callable[..., TableClient], endpoint: Endpoint
) -> None:
    """Requests and entities by partition are those of the acknowledged requests in any form.

    Bounds: 80 lists of up to 12 requests, about half a minute.
    """
    gateway = gateway_to(ONE_SERVER)
    table = client_of(None).table_name
    sas = generate_account_sas(
        named_key(endpoint),
        ResourceTypes(service=True, container=True, object=True),
        AccountSasPermissions(read=True, write=True, delete=True, list=True, add=True, update=True),
        dt.datetime.now(dt.UTC) + dt.timedelta(hours=1),
    )
    sender = Sender(gateway.url, endpoint.account, table, sas)

    def counts() -> dict[str, Counter[str | None]]:
        rows = [row for row in Told(gateway).rows() if row["table"].lower() == table.lower()]
        done = [row for row in rows if row["sent"] in ("200", "201", "202", "204", "404")]
        return {
            "entities": told_by(done, "entities"),
            "requests": told_by([row for row in done if row["sent"] != "404"], "requests"),
            "returned": told_by(rows, "returned"),
            "estimated": told_by(rows, "estimated"),
        }

    @settings(
        max_examples=80,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        database=None,
    )
    @given(st.lists(FORMS, min_size=1, max_size=12))
    def hold(forms: list[Form]) -> None:
        before, sent = counts(), sender.counts()
        for form in forms:
            sender.send(form)
        after, sent_after = counts(), sender.counts()
        # Differences, so that a failed example can be made smaller.
        for name, count in after.items():
            assert count - before[name] == sent_after[name] - sent[name], name

    try:
        hold()
    finally:
        sender.close()
    assert sum(sender.requests.values()) > 100
