"""What the gateway reads out of requests and answers."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.gateway.answers import GatewayAnswer
from harness.gateway.filters import equal_values
from harness.gateway.reading import Answered, read_answer, with_top
from harness.gateway.requests import Asked, RowWrite, properties_in, read_request
from harness.gateway.rules.counting import count_of
from harness.model.entity import key_problem
from harness.model.operation import Kind

KEYS = st.text(max_size=40).filter(lambda key: key_problem(key) is None)


def doubled(key: str) -> str:
    """A key between the quotes of a URL or a filter."""
    return key.replace("'", "''")


def entity_target(key: str, row: str) -> str:
    """Path of an entity."""
    keys = f"PartitionKey='{doubled(key)}',RowKey='{doubled(row)}'"
    return f"/account/table({quote(keys)})"


@given(KEYS, KEYS)
def test_keys_are_read_from_the_path(key: str, row: str) -> None:
    """Whatever a key holds, quotes and spaces included, the path of its entity tells it."""
    asked = read_request("GET", entity_target(key, row), {}, b"")
    assert (asked.kind, asked.table, asked.partition_key) == (Kind.POINT_QUERY, "table", key)
    assert asked.entities == 1
    assert read_request("PUT", entity_target(key, row), {}, b"").rows == (RowWrite(key, row),)
    deleted = read_request("DELETE", entity_target(key, row), {}, b"").rows
    assert deleted == (RowWrite(key, row, stays=False),)


@given(KEYS)
def test_keys_are_read_from_the_body_of_an_insert(key: str) -> None:
    """An insert has its keys in the body."""
    body = json.dumps({"RowKey": "r", "PartitionKey": key}).encode()
    asked = read_request("POST", "/account/table", {}, body)
    assert (asked.kind, asked.table, asked.partition_key) == (Kind.INSERT, "table", key)


@given(KEYS, KEYS)
def test_keys_are_read_from_a_filter(key: str, other: str) -> None:
    """A filter on one PartitionKey tells it; a value that only looks like one does not mislead."""
    trap = doubled(f"x' and PartitionKey eq '{other}")
    text = f"Name ne '{trap}' and (PartitionKey eq '{doubled(key)}')"
    asked = read_request("GET", f"/account/table()?$filter={quote(text)}&$top=5", {}, b"")
    assert (asked.kind, asked.partition_key) == (Kind.QUERY, key)


def batch(*parts: tuple[str, str, str]) -> bytes:
    """A ``$batch`` with a change set of method, path and body."""
    inner = "".join(
        "--changeset_1\r\nContent-Type: application/http\r\n"
        f"Content-Transfer-Encoding: binary\r\n\r\n{method} http://host{path} HTTP/1.1\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}\r\n"
        for method, path, body in parts
    )
    return (
        "--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n"
        f"{inner}--changeset_1--\r\n\r\n--batch_1--\r\n"
    ).encode()


@given(KEYS, st.integers(1, 100))
def test_a_transaction_counts_every_part(key: str, parts: int) -> None:
    """The parts of a batch, inserts and others, are counted, and name their one partition."""
    body = json.dumps({"PartitionKey": key, "RowKey": "r", "Text": "\r\nPUT /x HTTP/1.1\r\n"})
    of_both = [
        ("POST", "/account/table", body)
        if number % 2
        else ("PATCH", entity_target(key, str(number)), body)
        for number in range(parts)
    ]
    asked = read_request("POST", "/account/$batch", {}, batch(*of_both))
    assert (asked.kind, asked.table, asked.partition_key) == (Kind.TRANSACTION, "table", key)
    assert asked.entities == parts
    rows = [RowWrite(key, "r" if number % 2 else str(number)) for number in range(parts)]
    assert asked.rows == tuple(rows)


@pytest.mark.parametrize(
    ("method", "target", "headers", "kind"),
    [
        ("PUT", entity_target("p", "r"), {}, Kind.UPSERT_REPLACE),
        ("PUT", entity_target("p", "r"), {"If-Match": "*"}, Kind.UPDATE_REPLACE),
        ("PATCH", entity_target("p", "r"), {}, Kind.UPSERT_MERGE),
        ("MERGE", entity_target("p", "r"), {"If-Match": "*"}, Kind.UPDATE_MERGE),
        ("POST", entity_target("p", "r"), {"X-HTTP-Method": "MERGE"}, Kind.UPSERT_MERGE),
        ("DELETE", entity_target("p", "r"), {"If-Match": "*"}, Kind.DELETE),
        ("GET", "/account/table()", {}, Kind.QUERY),
        ("GET", "/account/table", {}, Kind.QUERY),
        ("GET", "/account/Tables", {}, None),
        ("POST", "/account/Tables", {}, None),
        ("DELETE", "/account/Tables('table')", {}, None),
        ("GET", "/account/?restype=service&comp=properties", {}, None),
        ("GET", "/account?restype=service&comp=properties", {}, None),
        ("PUT", "/account/table?comp=acl", {}, None),
        ("POST", "/account/$batch", {}, None),
        ("BREW", entity_target("p", "r"), {}, None),
    ],
)
def test_each_request_is_of_its_kind(
    method: str, target: str, headers: dict[str, str], kind: Kind | None
) -> None:
    """Method, path and headers tell what a request does to entities, if anything."""
    assert read_request(method, target, headers, b"").kind is kind


@given(st.binary(max_size=300))
def test_no_body_is_too_malformed_to_be_passed_on(body: bytes) -> None:
    """Bytes that are no batch and no entity are read without a mistake."""
    assert read_request("POST", "/account/$batch", {}, body).kind in (None, Kind.TRANSACTION)
    assert read_request("POST", "/account/table", {}, body).kind is Kind.INSERT


@pytest.mark.parametrize("form", ["{}", "1!8!{}"])
def test_a_continued_query_goes_on_where_its_token_says(form: str) -> None:
    """The emulator's and the service's form of a token move the beginning of the scan."""
    token = form.format(base64.b64encode(b"key7").decode().replace("=", "-"))
    target = f"/account/table()?NextPartitionKey={quote(token)}&NextRowKey=x"
    asked = read_request("GET", target, {}, b"")
    assert asked.keys is not None
    assert asked.keys.first == ("key7", "")


def test_a_deleted_or_created_table_is_named() -> None:
    """Only the deletion and the creation of a table are about a table as a whole."""
    gone = read_request("DELETE", "/account/Tables(%27Table%27)", {}, b"")
    assert (gone.kind, gone.table, gone.drops_table) == (None, "table", True)
    made = read_request("POST", "/account/Tables", {}, b'{"TableName": "Table"}')
    assert (made.kind, made.table, made.makes_table) == (None, "table", True)
    others = [("GET", "/account/Tables('table')"), ("DELETE", entity_target("p", "r"))]
    for asked in (read_request(method, target, {}, b"") for method, target in others):
        assert (asked.drops_table, asked.makes_table) == (False, False)


def page(*keys: str | None) -> GatewayAnswer:
    """The answer to a query that brought entities with these PartitionKeys."""
    rows = [{} if key is None else {"PartitionKey": key} for key in keys]
    return GatewayAnswer(status=200, headers={}, body=json.dumps({"value": rows}).encode())


def test_a_query_counts_what_its_answer_brought() -> None:
    """Entities are counted by PartitionKey, also those that came without one."""
    query = read_request("GET", "/account/table()", {}, b"")
    answered = read_answer(query, page("a", "a", "b", "", None))
    assert answered.found == {"a": 2, "b": 1, "": 1, None: 1}
    assert answered.returned == 5
    nothing = read_answer(query, GatewayAnswer(status=200, headers={}, body=b"no json"))
    assert nothing.found == {}


def test_a_shorter_page_asks_the_same_otherwise() -> None:
    """Only ``$top`` changes in the target of a query."""
    shorter = with_top("/account/table()?$top=1000&$filter=Name%20eq%20%27a%26b%27", 7)
    assert shorter == "/account/table()?$filter=Name%20eq%20%27a%26b%27&$top=7"
    assert with_top("/account/table()", 7) == "/account/table()?$top=7"


@pytest.mark.parametrize(
    ("kind", "status", "entities"),
    [
        (Kind.POINT_QUERY, 200, 1),
        (Kind.POINT_QUERY, 404, 1),
        (Kind.POINT_QUERY, 500, 0),
        (Kind.INSERT, 201, 1),
        (Kind.INSERT, 409, 0),
        (None, 200, 0),
    ],
)
def test_requests_are_counted_by_the_targets_rule(
    kind: Kind | None, status: int, entities: int
) -> None:
    """A point query counts found or not; a write counts when it succeeded."""
    assert count_of(Asked(kind=kind, entities=1), Answered(status=status)).entities == entities


def test_a_failed_part_fails_the_transaction() -> None:
    """The status of a transaction is that of the part that failed."""
    body = b"--b\r\n\r\nHTTP/1.1 409 Conflict\r\n\r\n{}\r\n--b--"
    asked = Asked(kind=Kind.TRANSACTION, table="table", partition_key="p", entities=3)
    answered = read_answer(asked, GatewayAnswer(status=202, headers={}, body=body))
    assert answered.status == 409
    assert count_of(asked, answered).entities == 0


@pytest.mark.parametrize(
    ("entity", "values"),
    [
        ('{"Customer": "c1", "Other": 1}', {"Customer": "c1"}),
        ('{"Customer": 5}', {"Customer": "5"}),
        ('{"Customer": 5.0}', {"Customer": "5"}),
        ('{"Customer": true}', {"Customer": "true"}),
        ('{"Customer": "5", "Customer@odata.type": "Edm.Int64"}', {"Customer": "5"}),
        ('{"Customer": "AB", "Customer@odata.type": "Edm.Guid"}', {"Customer": "ab"}),
        (
            '{"Customer": "2026-11-20T08:00:00.500000Z", "Customer@odata.type": "Edm.DateTime"}',
            {"Customer": "2026-11-20T08:00:00.5Z"},
        ),
        ('{"Customer": null}', {}),
        ('{"Customer": ["c1"]}', {}),
        ('["Customer"]', {}),
        ("[" * 100_000, {}),
        ('{"Customer": "c1"', {}),
        ("\x00\xff", {}),
        ("", {}),
    ],
)
def test_values_of_named_properties_are_read_from_a_body(
    entity: str, values: dict[str, str]
) -> None:
    """As canonical texts; a body that is no entity has none, of a transaction too."""
    body = entity.encode("latin-1")
    put = read_request("PUT", entity_target("p", "r"), {}, body)
    assert properties_in(put, body, ("Customer",)) == (values,)
    part = b"PUT http://h/a/table(PartitionKey='p',RowKey='r') HTTP/1.1\r\n\r\n"
    batch = b"".join(b"--b\r\n\r\n" + part + one + b"\r\n" for one in (body, b"{}")) + b"--b--"
    sent = read_request("POST", "/account/$batch", {}, batch)
    assert len(sent.rows) == 2
    assert properties_in(sent, batch, ("Customer",)) == (values, {})


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("Customer eq 'c''1'", {"Customer": "c'1"}),
        ("PartitionKey eq 'p' and ('c1' eq Customer) and Age gt 5", {"Customer": "c1"}),
        ("Customer eq 5L", {"Customer": "5"}),
        ("Customer eq 5.0", {"Customer": "5"}),
        ("Customer eq guid'AB'", {"Customer": "ab"}),
        ("Customer eq X'00ff'", {"Customer": "AP8="}),
        ("Customer eq true", {"Customer": "true"}),
        ("Customer eq 'a' or Customer eq 'b'", {}),
        ("not (Customer eq 'a')", {}),
        ("Customer ge 'a'", {}),
        ("Customer eq x", {}),
        ("Other eq 'a'", {}),
        ("Customer eq 'a", {}),
    ],
)
def test_values_that_a_filter_demands(text: str, values: dict[str, str]) -> None:
    """Every row that passes has them: what is in one of several alternatives is none."""
    assert equal_values(text, ("Customer",)) == values
