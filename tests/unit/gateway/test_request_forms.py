"""Forms of requests that a table service accepts and that no client library shows."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.gateway.answers import GatewayAnswer
from harness.gateway.reading import read_answer
from harness.gateway.requests import Asked, RowWrite, read_request
from harness.model.operation import Kind

BODY = json.dumps({"PartitionKey": "p", "RowKey": "r"}).encode()


@pytest.mark.parametrize(
    "target",
    [
        "/account/table()",
        "/account/Table()",
        "/account/table",
        "/account/table/",
        "/account/table?x=1",
        "/account/table?comp=acl",
        "/account/table?timeout=5&$format=json",
        "/table",
        "/table()",
    ],
)
def test_an_insert_is_read_in_each_form(target: str) -> None:
    """Brackets, a slash, parameters and the account's place in the host hide no insert."""
    asked = read_request("POST", target, {}, BODY)
    assert (asked.kind, asked.table, asked.partition_key) == (Kind.INSERT, "table", "p")
    assert asked.rows == (RowWrite("p", "r"),)


@pytest.mark.parametrize(
    ("target", "key"),
    [
        ("/account/table()?$filter=Name%20eq%20%27comp%3D%27", None),
        ("/account/table()?$filter=PartitionKey%20eq%20'comp='", "comp="),
        ("/account/table?$filter=PartitionKey+eq+'p'", "p"),
        ("/account/table()/?$filter=PartitionKey%20eq%20'p'", "p"),
        ("/table?$filter=PartitionKey%20eq%20'p'", "p"),
    ],
)
def test_a_query_is_read_in_each_form(target: str, key: str | None) -> None:
    """A filter that looks like another parameter, and a slash at the end, hide no query."""
    asked = read_request("GET", target, {}, b"")
    assert (asked.kind, asked.table, asked.partition_key) == (Kind.QUERY, "table", key)


@pytest.mark.parametrize(
    "segment",
    [
        "table(PartitionKey='p',RowKey='r')",
        "TABLE(PartitionKey='p',RowKey='r')/",
        "table(RowKey='r',PartitionKey='p')",
        "table( PartitionKey = 'p' , RowKey = 'r' )",
        "table%28PartitionKey%3D%27p%27%2CRowKey%3D%27r%27%29",
    ],
)
def test_an_entity_is_read_in_each_form(segment: str) -> None:
    """Keys are found by name, whatever the order, the blanks and the encoding."""
    asked = read_request("PUT", f"/account/{segment}?timeout=5", {}, BODY)
    assert (asked.kind, asked.table, asked.partition_key) == (Kind.UPSERT_REPLACE, "table", "p")


SEGMENT = re.compile(
    r"table\(PartitionKey='((?:[^']|'')*)',RowKey='((?:[^']|'')*)'\)",
    re.DOTALL,
)
TEXTS = st.text(alphabet="'=,)x \n", max_size=12)


@given(TEXTS, TEXTS)
def test_a_text_ends_at_a_quote_that_is_not_doubled(first: str, second: str) -> None:
    """A key is read to the first quote that stands alone, as the definition says."""
    segment = f"table(PartitionKey='{first}',RowKey='{second}')"
    match = SEGMENT.fullmatch(segment)
    asked = read_request("PUT", f"/account/{segment}", {}, BODY)
    if match is None:
        assert asked.rows == ()
    else:
        key, row = (text.replace("''", "'") for text in match.groups())
        assert asked.rows == (RowWrite(key, row),)


def test_a_key_that_looks_like_another_key_misleads_nobody() -> None:
    """The RowKey may contain the text of a PartitionKey."""
    segment = "table(RowKey='PartitionKey=''x''',PartitionKey='p')"
    asked = read_request("GET", f"/account/{segment}", {}, b"")
    assert asked.partition_key == "p"


@pytest.mark.parametrize(
    ("method", "override", "kind"),
    [
        ("POST", "MERGE", Kind.UPSERT_MERGE),
        ("POST", "PUT", Kind.UPSERT_REPLACE),
        ("POST", "delete", Kind.DELETE),
        ("POST", "GET", Kind.POINT_QUERY),
        ("PUT", "DELETE", Kind.DELETE),
        ("POST", "", Kind.UPSERT_MERGE),
    ],
)
def test_a_method_in_a_header_decides(method: str, override: str, kind: Kind) -> None:
    """``X-HTTP-Method`` stands for the method; Azurite merges a bare POST to an entity."""
    headers = {"X-HTTP-Method": override} if override else {}
    target = "/account/table(PartitionKey='p',RowKey='r')"
    assert read_request(method, target, headers, BODY).kind is kind


def batch(line_end: str, url: str, method: str = "POST") -> bytes:
    """A batch of three of one request."""
    part = (
        f"--changeset_1\nContent-Type: application/http\nContent-Transfer-Encoding: binary\n\n"
        f"{method} {url} HTTP/1.1\nContent-Type: application/json\n\n{BODY.decode()}\n"
    )
    whole = f"--batch_1\nContent-Type: multipart/mixed; boundary=changeset_1\n\n{part * 3}"
    return f"{whole}--changeset_1--\n--batch_1--\n".replace("\n", line_end).encode()


@pytest.mark.parametrize("line_end", ["\r\n", "\n"])
@pytest.mark.parametrize(
    ("url", "method"),
    [
        ("http://host/account/table", "POST"),
        ("http://host/account/table()", "POST"),
        ("http://host/account/Table/", "POST"),
        ("https://account.table.host/table()", "POST"),
        ("http://host/account/table(PartitionKey='p',RowKey='r')", "PUT"),
        ("http://host/account/table(PartitionKey='p', RowKey='r')", "MERGE"),
        ("http://host/account/table(PartitionKey='p',RowKey='r')?x=1", "DELETE"),
    ],
)
@pytest.mark.parametrize("target", ["/account/$batch", "/account/$batch/", "/%24batch?timeout=5"])
def test_a_transaction_is_read_in_each_form(
    line_end: str, url: str, method: str, target: str
) -> None:
    """Line ends, brackets, blanks in a URL and a slash hide no part of a transaction."""
    asked = read_request("POST", target, {}, batch(line_end, url, method))
    assert (asked.kind, asked.table, asked.partition_key) == (Kind.TRANSACTION, "table", "p")
    assert asked.entities == 3
    assert asked.rows == (RowWrite("p", "r", method != "DELETE"),) * 3


def test_a_blank_within_a_key_stays_in_the_key() -> None:
    """A raw blank in the URL of a part belongs to the URL."""
    url = "http://host/account/table(PartitionKey='a key',RowKey='a row')"
    asked = read_request("POST", "/account/$batch", {}, batch("\r\n", url, "PUT"))
    assert asked.rows == (RowWrite("a key", "a row"),) * 3


def test_a_query_in_a_batch_is_a_query() -> None:
    """A batch of one GET reads; its answer is in the only part."""
    body = (
        b"--batch_1\r\nContent-Type: application/http\r\n\r\n"
        b"GET http://host/account/table()?$filter=PartitionKey%20eq%20'p' HTTP/1.1\r\n\r\n"
        b"--batch_1--\r\n"
    )
    asked = read_request("POST", "/account/$batch", {}, body)
    assert (asked.kind, asked.partition_key, asked.in_batch) == (Kind.QUERY, "p", True)
    rows = b'{"value":[{"PartitionKey":"p","RowKey":"r"},{"PartitionKey":"p","RowKey":"s"}]}'
    part = b"--b\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + rows
    answered = read_answer(
        asked, GatewayAnswer(status=202, headers={}, body=part + b"\r\n--b--\r\n")
    )
    assert (answered.status, answered.found, answered.last) == (200, {"p": 2}, ("p", "s"))


def test_queries_beside_others_in_a_batch_write_nothing() -> None:
    """Of several queries the first is executed, and beside writes none is: Azurite does so."""

    def part(method: str, row: str) -> bytes:
        keys = f"(PartitionKey='p',RowKey='{row}')"
        head = "Content-Type: application/http\r\n\r\n"
        return f"--b\r\n{head}{method} http://h/account/table{keys} HTTP/1.1\r\n\r\n".encode()

    def read(*parts: bytes) -> Asked:
        return read_request("POST", "/account/$batch", {}, b"".join(parts) + b"--b--\r\n")

    queries = read(part("GET", "1"), part("GET", "2"))
    assert (queries.kind, queries.entities, queries.rows) == (Kind.POINT_QUERY, 1, ())
    mixed = read(part("PUT", "1"), part("GET", "2"))
    assert (mixed.kind, mixed.entities) == (Kind.TRANSACTION, 1)
    assert mixed.rows == (RowWrite("p", "1"),)
