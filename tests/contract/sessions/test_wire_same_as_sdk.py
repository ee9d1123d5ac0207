"""The session on the wire sends what the SDK sends, and makes of answers what the SDK makes."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import re
from collections.abc import Callable, Mapping
from email import message_from_bytes
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.endpoint.credential import Sas
from harness.endpoint.endpoint import Endpoint, as_kind
from harness.model.entity import ETAG, Int64
from harness.model.operation import WHOLE_TABLE, KeyRange, Kind, Operation, transaction
from harness.model.outcome import Result
from harness.model.services.cosmos import COSMOS, COSMOS_EMULATOR
from harness.model.services.service import Service
from harness.model.services.storage import STORAGE
from harness.workload.retry import ScheduledBackoff
from tests.support.examples import examples, tried

BOTH = ("sdk", "wire")
OWN_HEADERS = ("authorization", "x-ms-date", "date", "x-ms-client-request-id")
MANY = examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
FEW = settings(MANY, max_examples=tried(12))

KEYS = st.one_of(
    st.sampled_from(["it's", "100%25", " a b ", "", "a+b&c=d;:@,$!*()~_", "Ελληνικά-漢字", "😀"]),
    st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/\\#?"), max_size=9),
)
VALUES = st.one_of(
    KEYS,
    st.booleans(),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-(2**63), 2**63 - 1).map(Int64),
    st.floats(),
    st.binary(max_size=40),
    st.datetimes(min_value=dt.datetime(1601, 1, 2), timezones=st.just(dt.UTC)),
    st.uuids(),
)
PROPERTIES = st.dictionaries(st.from_regex(r"[A-Z][a-z]{1,5}", fullmatch=True), VALUES, max_size=5)
ETAGS = st.sampled_from([None, "*", "1", '"1"', "'1'", "W/\"datetime'2024-01-01T00%3A00%3A00Z'\""])
WRITES = [kind for kind in Kind if kind.part]


@st.composite
def writes(draw: Any, partition: str | None = None) -> Operation:
    kind = draw(st.sampled_from(WRITES))
    return Operation(
        kind=kind,
        partition_key=draw(KEYS) if partition is None else partition,
        row_key=draw(KEYS),
        table=draw(st.sampled_from(["", "Index"])) if partition is None else "",
        properties=None if kind is Kind.DELETE else draw(PROPERTIES),
        etag=draw(ETAGS) if kind.startswith(("update", "delete")) else None,
    )


@st.composite
def transactions(draw: Any) -> Operation:
    parts = draw(
        st.lists(writes(draw(KEYS)), min_size=1, max_size=5, unique_by=lambda o: o.row_key)
    )
    return transaction(tuple(parts))


SELECTED = st.sampled_from([(), ("A",), ("A", "Ü b")])
POINT_QUERIES = st.builds(
    Operation, kind=st.just(Kind.POINT_QUERY), partition_key=KEYS, row_key=KEYS, select=SELECTED
)
EDGES = st.one_of(st.none(), KEYS)
QUERIES = st.builds(
    Operation,
    kind=st.just(Kind.QUERY),
    partition_key=st.one_of(st.just(WHOLE_TABLE), KEYS),
    key_range=st.builds(
        KeyRange,
        partition_from=EDGES,
        partition_before=EDGES,
        row_from=EDGES,
        row_before=EDGES,
    ),
    filter=st.sampled_from([None, "A eq 'it''s' or B lt 5"]),
    select=SELECTED,
    top=st.sampled_from([None, 1, 1500]),
)


@pytest.fixture(params=[STORAGE, COSMOS_EMULATOR])
def dialect(request: pytest.FixtureRequest) -> Any:
    """The services whose requests differ."""
    return request.param


@pytest.fixture
def ask(service: Any, open_to: Callable[..., Any], dialect: Service) -> Callable[..., Any]:
    """Has both sessions do one operation, the service answering by a script: what each gave."""
    service_endpoint = as_kind(service.endpoint, dialect)
    sessions: dict[str, dict[str, Any]] = {}

    def ask_both(operation: Operation, *script: Any, retries: int = 0, **said: Any) -> Any:
        kept = sessions.setdefault(repr((retries, sorted(said))), {})
        seen = []
        for kind in BOTH:
            if kind not in kept:
                policy = ScheduledBackoff(delays_s=(0.0,) * retries)
                asked = {"endpoint": service_endpoint, "retry": policy, **said}
                kept[kind] = open_to(kind, **asked)
            service.requests.clear()
            service.script = list(script)
            result = kept[kind].execute(operation)
            seen.append((told(result), [parsed(request) for request in service.requests]))
        return seen

    return ask_both


def told(result: Result) -> tuple[Any, ...]:
    """All of a result but its times."""
    attempts = [
        (a.status, a.error_code, a.scope, a.fault, a.message, a.request_id, a.retry_after_s)
        for a in result.attempts
    ]
    names = [a.client_request_id for a in result.attempts]
    counted = (result.entities, result.entities_returned, result.estimated, result.bytes_received)
    return result.outcome, attempts, names, counted, shown(result.value)


def shown(value: Any) -> Any:
    """What can be told of a value, but for the classes of entities and times."""
    if isinstance(value, Mapping):
        return {name: shown(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [shown(inner) for inner in value]
    if isinstance(value, dt.datetime):
        return value.isoformat(), getattr(value, "tables_service_value", None)
    return type(value).__name__, repr(value)


def parsed(request: bytes) -> tuple[Any, ...]:
    """A request: method, target, headers but its own, and what its body says."""
    head, _, body = request.partition(b"\r\n\r\n")
    line, *lines = head.decode("ascii").split("\r\n")
    headers = {}
    for text in lines:
        name, _, value = text.partition(": ")
        if name.lower() not in OWN_HEADERS:
            headers[name.lower()] = value
    content_type = headers.get("content-type", "")
    if not content_type.startswith("multipart/"):
        return line, headers, json.loads(body) if body else None
    assert int(headers.pop("content-length")) == len(body)
    headers["content-type"] = re.sub("_.*", "", content_type)
    return line, headers, parsed_parts(content_type, body)


def parsed_parts(content_type: str, body: bytes) -> list[Any]:
    """The requests of a transaction, each with the header of its part."""
    message: Any = message_from_bytes(f"Content-Type: {content_type}\r\n\r\n".encode() + body)
    (changes,) = message.get_payload()
    return [
        (sorted(part.items()), parsed(part.get_payload(decode=True)))
        for part in changes.get_payload()
    ]


def page(*entities: Mapping[str, Any], to: tuple[str, str] | None = None) -> bytes:
    body = json.dumps({"value": list(entities)}).encode()
    names = "x-ms-continuation-NextPartitionKey", "x-ms-continuation-NextRowKey"
    next_page = "" if to is None else f"{names[0]}: {to[0]}\r\n{names[1]}: {to[1]}\r\n"
    head = f"HTTP/1.1 200 OK\r\n{next_page}Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


TOKENS = [
    ("1!4!cA--", "1!4!cg--"),
    # As Cosmos DB was recorded to send them.
    ('{"token":"+iBeAJJv6IgCAAAAAAAAAA==","range":{"min":"","max":"FF"}}', "NA"),
]


STORED = {
    "odata.etag": "W/\"datetime'2024-01-01T00%3A00%3A00.1234567Z'\"",
    "PartitionKey": "p",
    "RowKey": "r",
    "Timestamp": "2024-01-01T00:00:00.1234567Z",
    "Long@odata.type": "Edm.Int64",
    "Long": "9007199254740993",
    "Raw@odata.type": "Edm.Binary",
    "Raw": "AP8n",
    "Which@odata.type": "Edm.Guid",
    "Which": "00112233-4455-6677-8899-aabbccddeeff",
    "When@odata.type": "Edm.DateTime",
    "When": "2024-02-29T23:59:59.1234567Z",
    "Less@odata.type": "Edm.Double",
    "Less": "-Infinity",
    "Real": 1.5,
    "Whole": -5,
    "Yes": True,
    "Text": "é漢😀",
}


@MANY
@given(writes())
def test_a_write_is_the_same_request(service: Any, ask: Any, operation: Operation) -> None:
    """Method, address, headers and entity of a single write are those of the SDK."""
    theirs, ours = ask(operation, service.no_content)
    assert ours == theirs


@MANY
@given(POINT_QUERIES)
def test_a_point_query_is_the_same(service: Any, ask: Any, operation: Operation) -> None:
    """So is a point query, and what it reads."""
    theirs, ours = ask(operation, service.entity_answer(**STORED))
    assert ours == theirs


@MANY
@given(QUERIES)
def test_a_query_is_the_same_page_by_page(ask: Any, operation: Operation) -> None:
    """So is each page of a query, and the entities it brings, whatever leads to the next."""
    one, other = TOKENS
    pages = page(STORED, to=one), page(STORED, {"RowKey": "s"}, to=other), page(STORED)
    theirs, ours = ask(operation, *pages)
    assert ours == theirs


@MANY
@given(transactions())
def test_a_transaction_is_the_same(service: Any, ask: Any, operation: Operation) -> None:
    """So is a transaction: the header, the address and the entity of each part."""
    done = service.transaction_answer(
        *[b"HTTP/1.1 204 No Content\r\nETag: x\r\n\r\n"] * len(operation.parts)
    )
    theirs, ours = ask(operation, done)
    assert ours == theirs


@pytest.mark.parametrize("kind", [Kind.UPSERT_MERGE, Kind.UPDATE_MERGE])
def test_a_merge_is_a_patch_but_for_cosmos_db(
    service: Any, ask: Any, dialect: Service, kind: Kind
) -> None:
    """Cosmos DB takes no PATCH: each session sends a POST that says what it is, in parts too."""
    merge = Operation(kind=kind, partition_key="p", row_key="r", properties={"A": 1})
    done = service.transaction_answer(b"HTTP/1.1 204 No Content\r\nETag: x\r\n\r\n")
    for operation, answer in ((merge, service.no_content), (transaction((merge,)), done)):
        theirs, ours = ask(operation, answer)
        assert ours == theirs
        _, (request,) = ours
        line, headers, body = request
        if operation.parts:
            ((_, (line, headers, _)),) = body
        assert line.split()[0] == ("POST" if dialect.charges else "PATCH")
        assert headers.get("x-http-method") == ("MERGE" if dialect.charges else None)


@pytest.mark.parametrize("dialect", [STORAGE])
@pytest.mark.parametrize("operation", ["single", "together"])
def test_a_host_that_the_sdk_does_not_know_for_cosmos_db_is_one(
    service: Any, ask: Any, operation: str
) -> None:
    """For one such as documents.azure.com, each session speaks the dialect all the same."""
    cosmos = dataclasses.replace(service.endpoint, kind=COSMOS)
    merge = Operation(kind=Kind.UPSERT_MERGE, partition_key="p", row_key="r", properties={"A": 1})
    done = service.transaction_answer(b"HTTP/1.1 204 No Content\r\nETag: x\r\n\r\n")
    asked = (
        (transaction((merge,)), done) if operation == "together" else (merge, service.no_content)
    )
    theirs, ours = ask(*asked, endpoint=cosmos)
    assert ours == theirs
    assert "'x-http-method': 'MERGE'" in repr(ours)


def test_a_signature_in_the_address_is_the_same(service: Any, ask: Any) -> None:
    """With a SAS the address ends with it, and there is no other signature."""
    endpoint = Endpoint(
        kind=service.endpoint.kind,
        url=service.endpoint.url,
        account=service.endpoint.account,
        credential=Sas("sv=1&sig=a%2Bb"),
    )
    point = Operation(kind=Kind.POINT_QUERY, partition_key="p", row_key="r")
    query = Operation(kind=Kind.QUERY, partition_key="p")
    for operation, answer in ((point, service.entity_answer(RowKey="r")), (query, page())):
        theirs, ours = ask(operation, answer, endpoint=endpoint)
        assert ours == theirs
        assert ours[1][0][0].endswith("sv=1&sig=a%2Bb HTTP/1.1")


THROTTLED_BY_COSMOS = (
    'Message: {"Errors":["Request rate is large. More Request Units may be needed, so no changes '
    'were made. Please retry this request later."]}\r\nActivityId: b2efae7b-2cc4-4b86-874b-'
    "efa1d55284ff, Request URI: /apps/78ba6cb7/services/486905fb/partitions/cf89308c/replicas/1p/"
)
REFUSALS = [
    (400, "InvalidDuplicateRow", "The batch request contains multiple changes."),
    (400, "PropertyLimitExceeded", "The entity contains more properties than allowed."),
    (403, "AuthorizationFailure", "Not authorized.\nRequestId:1\nTime:2"),
    (404, "ResourceNotFound", "The specified resource does not exist."),
    (404, "TableNotFound", "The table specified does not exist."),
    (409, "EntityAlreadyExists", "0:The specified entity already exists."),
    (412, "UpdateConditionNotSatisfied", "The update condition was not satisfied."),
    (413, "RequestBodyTooLarge", "The request body is too large."),
    (429, "TooManyRequests", THROTTLED_BY_COSMOS),
    (449, "RetryWith", "Conflicting request to resource has been attempted. Retry."),
    (500, "OperationTimedOut", "Operation could not be completed in time."),
    (500, "InternalError", "Server encountered an internal error."),
    (503, "ServerBusy", "The server is busy.\nRequestId:1"),
    (503, "ServerBusy", "Operations per second is over the account limit."),
]
EXAMPLES = [
    Operation(kind=Kind.POINT_QUERY, partition_key="p", row_key="r"),
    Operation(kind=Kind.QUERY, partition_key="p"),
    Operation(kind=Kind.INSERT, partition_key="p", row_key="r", properties={"A": 1}),
    Operation(kind=Kind.UPDATE_MERGE, partition_key="p", row_key="r", properties={}, etag="e"),
    Operation(kind=Kind.DELETE, partition_key="p", row_key="r"),
]
TOGETHER = transaction(
    tuple(
        Operation(kind=Kind.INSERT, partition_key="p", row_key=row, properties={"A": 1})
        for row in "ab"
    )
)


@pytest.mark.parametrize(("status", "code", "message"), REFUSALS)
@pytest.mark.parametrize("operation", [*EXAMPLES, TOGETHER], ids=lambda found: found.kind)
def test_a_refusal_is_the_same_result(
    service: Any, ask: Any, operation: Operation, status: int, code: str, message: str
) -> None:
    """Whatever the service refuses, the result is the SDK's, with a retry and without."""
    refusal = service.answer(status, code, message)
    for retries in (0, 1):
        theirs, ours = ask(operation, refusal, refusal, retries=retries)
        assert ours == theirs


@pytest.mark.parametrize(("status", "code", "message"), REFUSALS)
def test_a_refused_part_is_the_same_result(
    service: Any, ask: Any, status: int, code: str, message: str
) -> None:
    """So it is where the refusal is inside the answer to a transaction."""
    refusal = service.transaction_answer(service.answer(status, code, message))
    theirs, ours = ask(TOGETHER, refusal)
    assert ours == theirs
    assert ours[0][1][0][:2] == (status, code)


@pytest.mark.azurite
@FEW
@given(st.lists(writes("p"), min_size=1, max_size=6), transactions())
def test_a_real_service_is_left_in_the_same_state(
    endpoint: Endpoint,
    table: str,
    open_to: Callable[..., Any],
    single: list[Operation],
    together: Operation,
) -> None:
    """A real Azurite has the same entities after either, and both tell the same of it."""
    left = []
    for kind in BOTH:
        session = open_to(kind, endpoint, table)
        every = Operation(kind=Kind.QUERY, partition_key=WHOLE_TABLE)
        outcomes = []
        for operation in (*single, together):
            result = session.execute(operation)
            last = result.attempts[-1]
            outcomes.append((result.outcome, result.entities, last.status, last.error_code))
        found = session.execute(every).value
        entities = [
            {
                name: shown(value)
                for name, value in entity.items()
                if name not in (ETAG, "Timestamp")
            }
            for entity in found
        ]
        for entity in found:
            keys = {"partition_key": entity["PartitionKey"], "row_key": entity["RowKey"]}
            session.execute(Operation(kind=Kind.DELETE, **keys))
        left.append((outcomes, entities))
    assert left[0] == left[1]
