"""The tuned session's own writes are the requests that `TableClient` sends; its seam to the SDK."""

from __future__ import annotations

import datetime as dt
import json
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

from harness.endpoint.protocol.edm import EntityWriter
from harness.endpoint.sessions.sdk import call, write_request_of
from harness.model.entity import EdmValue, Int64
from harness.model.operation import Kind, Operation
from harness.workload.entity_factory import EntityFactory, wire_bytes

_WRITES = [kind for kind in Kind if kind.stores]
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


URL = "http://127.0.0.1:1/devstoreaccount1"


def client_of() -> TableClient:
    return TableClient(
        URL,
        "stress",
        credential=AzureNamedKeyCredential("devstoreaccount1", "a2V5"),
        transport=Catching(),
        policies=[Nothing()],
    )


def theirs(operation: Operation) -> HttpRequest:
    with pytest.raises(Caught) as caught:
        call(client_of(), operation, {}, lean=False)
    request: HttpRequest = caught.value.args[0]
    return request


def ours(operation: Operation) -> HttpRequest:
    return write_request_of(URL, "stress", operation, EntityWriter(), merges_by_post=False)


def shown(request: Any) -> tuple[str, str, dict[str, str], Any]:
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
def test_a_write_is_the_request_that_the_sdk_would_send(
    kind: Kind, partition: str, row: str, properties: dict[str, EdmValue], etag: str | None
) -> None:
    """Method, address, headers and entity are those of `TableClient`'s own methods."""
    operation = Operation(
        kind=kind, partition_key=partition, row_key=row, properties=properties, etag=etag
    )
    assert repr(shown(ours(operation))) == repr(shown(theirs(operation)))


def test_an_insert_asks_for_no_echo() -> None:
    """The entity that was sent is not sent back."""
    operation = Operation(kind=Kind.INSERT, partition_key="p", row_key="r", properties={})
    assert ours(operation).headers["Prefer"] == "return-no-content"


@pytest.mark.parametrize("size", [400, 1024, 5000, 70_000, 500_000])
def test_the_size_on_the_wire_is_told_beforehand(size: int) -> None:
    """What the workload says an entity takes on the wire is what the SDK's JSON takes."""
    properties = EntityFactory(size, "r" * 25).properties("p0", "0-00000001", 7)
    operation = Operation(
        kind=Kind.INSERT, partition_key="p0", row_key="0-00000001", properties=properties
    )
    told = wire_bytes("p0", "0-00000001", properties)
    assert told == pytest.approx(len(EntityWriter().text(operation)), abs=3)
