"""Operations and entities in the SDK's shapes; errors out of answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from azure.data.tables import EdmType, EntityProperty, TableEntity
from hypothesis import given
from hypothesis import strategies as st

from harness.endpoint.http.exchange import ResponseHeaders
from harness.endpoint.protocol.requests import filter_of
from harness.endpoint.protocol.responses import read_error, retry_after_s, shorten
from harness.endpoint.sessions.sdk import entity_of, value_of
from harness.model.entity import Int64
from harness.model.operation import WHOLE_TABLE, KeyRange, Kind, Operation


def query(partition: str = "p", **rest: Any) -> Operation:
    return Operation(kind=Kind.QUERY, partition_key=partition, **rest)


def test_int64_is_sent_as_int64() -> None:
    """Only an Int64 is wrapped; a plain int stays Edm.Int32."""
    entity = entity_of(
        Operation(
            kind=Kind.INSERT,
            partition_key="p",
            row_key="r",
            properties={"Long": Int64(5), "Short": 5, "Yes": True},
        )
    )
    assert entity["Long"] == EntityProperty(5, EdmType.INT64)
    assert type(entity["Short"]) is int
    assert entity["Yes"] is True
    assert (entity["PartitionKey"], entity["RowKey"]) == ("p", "r")


def test_int64_comes_back_as_int64() -> None:
    """An Edm.Int64 is read as the model's Int64; metadata has keys no property can have."""
    value = value_of(TableEntity({"Long": EntityProperty(5, EdmType.INT64), "Text": "t"}))
    assert type(value["Long"]) is Int64
    assert value == {"Long": 5, "Text": "t", "odata.etag": None, "Timestamp": None}


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (query(WHOLE_TABLE), ""),
        (query(), "PartitionKey eq 'p'"),
        (query("it's"), "PartitionKey eq 'it''s'"),
        (
            query(key_range=KeyRange(row_from="a'", row_before="b")),
            "PartitionKey eq 'p' and RowKey ge 'a''' and RowKey lt 'b'",
        ),
        (query(WHOLE_TABLE, filter="A eq 1 or B eq 2"), "A eq 1 or B eq 2"),
        (query(""), "PartitionKey eq ''"),
        (query(filter="A eq 1 or B eq 2"), "PartitionKey eq 'p' and (A eq 1 or B eq 2)"),
        (query(key_range=KeyRange(row_from="")), "PartitionKey eq 'p' and RowKey ge ''"),
        (query(WHOLE_TABLE, key_range=KeyRange(partition_from="a'")), "PartitionKey ge 'a'''"),
        (query(WHOLE_TABLE, key_range=KeyRange(partition_before="")), "PartitionKey lt ''"),
        (
            query(
                WHOLE_TABLE,
                key_range=KeyRange(partition_from="a", partition_before="b'c"),
                filter="A or B",
            ),
            "PartitionKey ge 'a' and PartitionKey lt 'b''c' and (A or B)",
        ),
        (
            query(
                WHOLE_TABLE, key_range=KeyRange(partition_from="a", row_from="r", row_before="s")
            ),
            "PartitionKey ge 'a' and RowKey ge 'r' and RowKey lt 's'",
        ),
        (query(WHOLE_TABLE, filter=""), ""),
    ],
)
def test_a_query_becomes_a_filter(operation: Operation, expected: str) -> None:
    """The key range and the filter on properties are joined so that neither changes the other."""
    assert filter_of(operation) == expected


def test_the_header_names_the_error_first() -> None:
    """The code of the header wins over the body's; the message is the body's first line."""
    body = {"odata.error": {"code": "InBody", "message": {"value": "It failed.\nRequestId:1"}}}
    headers = ResponseHeaders({"x-ms-error-code": "InHeader"})
    assert read_error(headers, json.dumps(body).encode()) == ("InHeader", "It failed.")
    assert read_error({}, json.dumps(body).encode()) == ("InBody", "It failed.")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", ("", "")),
        (b"Bad Gateway", ("", "Bad Gateway")),
        (b"\xff\xfe", ("", "\N{REPLACEMENT CHARACTER}" * 2)),
        (b'{"other": 1}', ("", '{"other": 1}')),
        (b'{"odata.error": 1}', ("", '{"odata.error": 1}')),
        (b"[1]", ("", "[1]")),
        (
            b"<m:error><m:code>C</m:code><m:message xml:lang='en'>M</m:message></m:error>",
            ("C", "M"),
        ),
        (b"<m:error><m:code/><code>\n C\n</code></m:error>", ("C", "<m:error><m:code/><code>")),
    ],
)
def test_any_body_can_be_read(body: bytes, expected: tuple[str, str]) -> None:
    """What is neither the service's JSON nor XML is shown as it is."""
    assert read_error({}, body) == expected


@given(st.binary(max_size=300))
def test_no_body_breaks_the_reading(body: bytes) -> None:
    """Whatever a body holds, the message is one line of at most 200 characters."""
    _, message = read_error({}, body)
    assert len(message) <= 200
    assert "\n" not in message


def test_messages_are_shortened() -> None:
    """A long message keeps its first 200 characters."""
    assert shorten("x" * 500) == "x" * 200


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 0.0),
        ({"x-ms-retry-after-ms": "250"}, 0.25),
        ({"retry-after": "3"}, 3.0),
        ({"x-ms-retry-after-ms": "250", "retry-after": "3"}, 0.25),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "-1"}, 0.0),
    ],
)
def test_the_wait_that_is_asked_for(headers: dict[str, str], seconds: float) -> None:
    """Milliseconds win over seconds; what is no number asks for nothing."""
    assert retry_after_s(headers) == seconds


def test_headers_are_found_in_any_case() -> None:
    """The names of headers have no case."""
    headers = ResponseHeaders()
    headers.add("ETag", "1")
    assert (headers["etag"], headers.get("ETAG"), "eTag" in headers) == ("1", "1", True)
    assert headers.get("other") is None
