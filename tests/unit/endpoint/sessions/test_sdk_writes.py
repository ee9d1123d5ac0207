"""The lean writes put on the wire what the SDK's own methods would."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from typing import Any

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.pipeline import PipelineRequest
from azure.core.pipeline.policies import SansIOHTTPPolicy
from azure.core.pipeline.transport import HttpResponse, HttpTransport
from azure.core.rest import HttpRequest
from azure.data.tables import TableClient
from hypothesis import given
from hypothesis import strategies as st

from harness.endpoint.lean_writes import LEAN_KINDS, LeanWrites, json_of
from harness.endpoint.translate import send
from harness.model.entity import EdmValue, Int64
from harness.model.operation import Kind, Operation
from harness.workload.entities import EntityFactory, wire_bytes

_WRITES = sorted(LEAN_KINDS)
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_VALUES: st.SearchStrategy[EdmValue] = st.one_of(
    _TEXT,
    st.booleans(),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-(2**63), 2**63 - 1).map(Int64),
    st.floats(),
    st.binary(max_size=40),
    st.datetimes(min_value=dt.datetime(1601, 1, 1), timezones=st.just(dt.UTC)),
    st.datetimes(
        min_value=dt.datetime(1601, 1, 2),
        max_value=dt.datetime(9999, 12, 30),
        timezones=st.just(dt.timezone(dt.timedelta(hours=-9, minutes=-30))),
    ),
    st.uuids(),
)


class Caught(Exception):
    """The request that was about to leave."""


class Catching(HttpTransport[HttpRequest, HttpResponse]):
    """A transport that sends nothing and shows what it was given."""

    def open(self) -> None:
        pass

    def close(self) -> None:
        pass

    def __exit__(self, *details: object) -> None:
        pass

    def send(self, request: HttpRequest, **kwargs: Any) -> HttpResponse:
        raise Caught(request)


class Nothing(SansIOHTTPPolicy[HttpRequest, HttpResponse]):
    """A policy that does nothing; the SDK wants at least one."""

    def on_request(self, request: PipelineRequest[HttpRequest]) -> None:
        pass


def client_of() -> TableClient:
    return TableClient(
        "http://127.0.0.1:1/devstoreaccount1",
        "stress",
        credential=AzureNamedKeyCredential("devstoreaccount1", "a2V5"),
        transport=Catching(),
        policies=[Nothing()],
    )


def leaving(call: Any, *arguments: Any, **options: Any) -> tuple[str, str, dict[str, str], Any]:
    with pytest.raises(Caught) as caught:
        call(*arguments, **options)
    request = caught.value.args[0]
    # Their order means nothing.
    headers = {name.lower(): value for name, value in sorted(request.headers.items())}
    # The SDK asks for an echo of an inserted entity; length follows from the body.
    for name in ("content-length", "prefer"):
        headers.pop(name, None)
    return request.method, request.url, headers, json.loads(request.content)


@given(
    st.sampled_from(_WRITES),
    _TEXT,
    _TEXT,
    st.dictionaries(st.from_regex(r"[A-Za-z_]\w{0,10}", fullmatch=True), _VALUES, max_size=8),
    st.sampled_from([None, "*", "W/\"datetime'2024'\""]),
)
def test_a_lean_write_is_the_request_that_the_sdk_would_send(
    kind: Kind, partition: str, row: str, properties: dict[str, EdmValue], etag: str | None
) -> None:
    """Method, address, headers and entity are those of `TableClient`'s own methods."""
    operation = Operation(
        kind=kind, partition_key=partition, row_key=row, properties=properties, etag=etag
    )
    theirs = leaving(send, client_of(), operation, {}, lean=False)
    ours = leaving(LeanWrites(client_of()).send, operation, {})
    assert repr(ours) == repr(theirs)


def test_an_insert_asks_for_no_echo() -> None:
    """The entity that was sent is not sent back."""
    operation = Operation(kind=Kind.INSERT, partition_key="p", row_key="r", properties={})
    with pytest.raises(Caught) as caught:
        LeanWrites(client_of()).send(operation, {})
    assert caught.value.args[0].headers["Prefer"] == "return-no-content"


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, None, 1j])
def test_a_value_without_an_edm_type_is_a_mistake_of_the_client(value: Any) -> None:
    """What would be stored as something else, or not at all, is not sent."""
    operation = Operation(
        kind=Kind.INSERT, partition_key="p", row_key="r", properties={"Value": value}
    )
    with pytest.raises(TypeError):
        json_of(operation)


def test_a_moment_that_was_read_is_written_as_it_was() -> None:
    """The service keeps ten times the digits that Python's datetime does."""

    class Read(dt.datetime):
        tables_service_value = "2024-01-02T03:04:05.1234567Z"

    operation = Operation(
        kind=Kind.INSERT,
        partition_key="p",
        row_key="r",
        properties={"When": Read(2024, 1, 2), "Id": uuid.UUID(int=1)},
    )
    assert json_of(operation)["When"] == "2024-01-02T03:04:05.1234567Z"


@pytest.mark.parametrize("size", [400, 1024, 5000, 70_000, 500_000])
def test_the_size_on_the_wire_is_told_beforehand(size: int) -> None:
    """What the workload says an entity takes on the wire is what the SDK's JSON takes."""
    properties = EntityFactory(size, "r" * 25).properties("p0", "0-00000001", 7)
    operation = Operation(
        kind=Kind.INSERT, partition_key="p0", row_key="0-00000001", properties=properties
    )
    told = wire_bytes("p0", "0-00000001", properties)
    assert told == pytest.approx(len(json.dumps(json_of(operation))), abs=3)
