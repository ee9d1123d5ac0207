"""What every session does with a real table service."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from azure.data.tables import AccountSasPermissions, ResourceTypes, generate_account_sas

from harness.endpoint.credential import Sas, SharedKey
from harness.endpoint.endpoint import Endpoint
from harness.model.entity import Int64
from harness.model.operation import KeyRange, Kind, Operation, transaction
from harness.model.outcome import Fault, Outcome, Result
from tests.support.sdk import named_key

pytestmark = pytest.mark.azurite

EVERY_TYPE = {
    "Whole": -(2**31),
    "Long": Int64(2**62),
    "Yes": True,
    "Real": 1.5,
    "Nothing": float("nan"),
    "Less": float("-inf"),
    "Raw": b"\x00\xff'",
    "When": dt.datetime(2024, 2, 29, 23, 59, 59, 123456, tzinfo=dt.UTC),
    "Which": uuid.UUID("00112233-4455-6677-8899-aabbccddeeff"),
    "Text": 'it\'s "é漢😀"\n\t100% ',
}

AWKWARD_KEYS = (
    "it's",
    "100%25",
    " leading and trailing ",
    "",
    "a+b&c=d;:@,$!*()~_",
    "Ελληνικά-العربية-漢字",
    "😀👩‍👩‍👧",
    "%2F%5C",
    "x" * 512,
)


def op(kind: Kind, row: str = "r", partition: str = "p", **rest: Any) -> Operation:
    if kind not in (Kind.POINT_QUERY, Kind.QUERY, Kind.DELETE):
        rest.setdefault("properties", {"A": 1})
    return Operation(kind=kind, partition_key=partition, row_key=row, **rest)


def query(partition: str = "p", **rest: Any) -> Operation:
    return Operation(kind=Kind.QUERY, partition_key=partition, **rest)


def rows(result: Result) -> list[str]:
    assert isinstance(result.value, list)
    return [entity["RowKey"] for entity in result.value]


def read(session: Any, row: str = "r") -> dict[str, Any]:
    result = session.execute(op(Kind.POINT_QUERY, row))
    assert result.outcome is Outcome.SUCCESS
    value: dict[str, Any] = result.value
    return value


def load(session: Any, count: int) -> None:
    keys = [f"{number:05}" for number in range(count)]
    for start in range(0, count, 100):
        parts = tuple(op(Kind.INSERT, key) for key in keys[start : start + 100])
        assert session.execute(transaction(parts)).outcome is Outcome.SUCCESS


def test_every_edm_type_comes_back_as_it_went(session: Any) -> None:
    """What is inserted is read back with values and types unchanged."""
    assert session.execute(op(Kind.INSERT, properties=EVERY_TYPE)).entities == 1
    stored = read(session)
    for name, sent in EVERY_TYPE.items():
        if name == "Nothing":
            assert math.isnan(stored[name])
        else:
            assert stored[name] == sent
            assert isinstance(stored[name], type(sent))
    assert (stored["PartitionKey"], stored["RowKey"]) == ("p", "r")
    assert stored["odata.etag"].startswith("W/")
    assert isinstance(stored["Timestamp"], dt.datetime)


def test_a_success_is_one_attempt_with_its_times_and_bytes(session: Any) -> None:
    """A write that succeeds at once has one attempt, its times in order and its bytes counted."""
    result = session.execute(op(Kind.UPSERT_REPLACE), 12.5)
    assert [attempt.status for attempt in result.attempts] == [204]
    assert result.attempts[0].error_code == ""
    assert result.due_s == 12.5
    assert result.sent_s <= result.done_s
    assert result.service_s == pytest.approx(result.attempts[0].latency_s)
    assert result.bytes_sent > 0


def test_a_second_insert_is_a_conflict(session: Any) -> None:
    """Inserting a row that is there is a conflict, named by the service's code, and counts 0."""
    session.execute(op(Kind.INSERT))
    result = session.execute(op(Kind.INSERT))
    assert result.outcome is Outcome.CONFLICT
    assert result.entities == 0
    (attempt,) = result.attempts
    assert (attempt.status, attempt.error_code) == (409, "EntityAlreadyExists")
    assert attempt.message == "The specified entity already exists."
    assert attempt.request_id
    assert attempt.client_request_id == "run-1-1"


def test_a_point_query_for_nothing_counts_one(session: Any) -> None:
    """A point query that finds nothing is answered 404 and counts one entity."""
    result = session.execute(op(Kind.POINT_QUERY))
    assert result.outcome is Outcome.NOT_FOUND
    assert (result.entities, result.value) == (1, None)
    assert result.attempts[0].error_code == "ResourceNotFound"


def test_a_point_query_selects_properties(session: Any) -> None:
    """A point query brings only the properties that were asked for."""
    session.execute(op(Kind.INSERT, properties={"A": 1, "B": 2}))
    value = session.execute(op(Kind.POINT_QUERY, select=("B",))).value
    assert value["B"] == 2
    assert "A" not in value


@pytest.mark.parametrize("write", ["UPSERT", "UPDATE"])
def test_merge_keeps_and_replace_drops(session: Any, write: str) -> None:
    """A merge keeps the properties it does not name, a replace drops them."""
    session.execute(op(Kind.INSERT, properties={"A": 1, "B": 2}))
    session.execute(op(Kind[f"{write}_MERGE"], properties={"B": 3}))
    assert (read(session)["A"], read(session)["B"]) == (1, 3)
    session.execute(op(Kind[f"{write}_REPLACE"], properties={"B": 4}))
    assert "A" not in read(session)


def test_an_update_needs_the_row(session: Any) -> None:
    """Updating a row that is not there finds nothing; an upsert makes it."""
    assert session.execute(op(Kind.UPDATE_MERGE)).outcome is Outcome.NOT_FOUND
    assert session.execute(op(Kind.UPSERT_MERGE)).outcome is Outcome.SUCCESS


@pytest.mark.parametrize("write", [Kind.UPDATE_MERGE, Kind.UPDATE_REPLACE, Kind.DELETE])
def test_an_etag_is_honoured(session: Any, write: Kind) -> None:
    """With an old ETag a write fails on its condition, with the current one it succeeds."""
    session.execute(op(Kind.INSERT))
    old = read(session)["odata.etag"]
    session.execute(op(Kind.UPSERT_REPLACE))
    result = session.execute(op(write, etag=old))
    assert (result.outcome, result.attempts[0].status) == (Outcome.PRECONDITION, 412)
    current = read(session)["odata.etag"]
    assert session.execute(op(write, etag=current)).outcome is Outcome.SUCCESS


def test_a_delete_of_nothing_is_seen(session: Any) -> None:
    """Deleting a row that is gone is not found, although the SDK does not say so."""
    session.execute(op(Kind.INSERT))
    assert session.execute(op(Kind.DELETE)).outcome is Outcome.SUCCESS
    result = session.execute(op(Kind.DELETE))
    assert (result.outcome, result.attempts[0].status) == (Outcome.NOT_FOUND, 404)
    assert result.entities == 0


def test_a_transaction_counts_all_its_entities(session: Any) -> None:
    """A transaction of 100 is one attempt and counts 100."""
    result = session.execute(transaction(tuple(op(Kind.INSERT, str(n)) for n in range(100))))
    assert (result.outcome, result.entities, len(result.attempts)) == (Outcome.SUCCESS, 100, 1)
    assert result.attempts[0].status == 202


def test_a_transaction_of_every_write(session: Any) -> None:
    """Inserts, upserts, updates and deletes stand side by side in one transaction."""
    load(session, 3)
    etag = read(session, "00002")["odata.etag"]
    parts = (
        op(Kind.INSERT, "new"),
        op(Kind.UPSERT_MERGE, "up1"),
        op(Kind.UPSERT_REPLACE, "up2"),
        op(Kind.UPDATE_MERGE, "00000", properties={"B": 2}),
        op(Kind.DELETE, "00001"),
        op(Kind.UPDATE_REPLACE, "00002", etag=etag, properties={"B": 2}),
    )
    assert session.execute(transaction(parts)).outcome is Outcome.SUCCESS
    assert rows(session.execute(query())) == ["00000", "00002", "new", "up1", "up2"]
    assert (read(session, "00000")["A"], "A" in read(session, "00002")) == (1, False)


def test_a_transaction_is_all_or_nothing(session: Any) -> None:
    """One part that fails takes the others with it, and its status is the attempt's."""
    session.execute(op(Kind.INSERT, "b"))
    result = session.execute(transaction(tuple(op(Kind.INSERT, row) for row in "abc")))
    assert (result.outcome, result.entities) == (Outcome.CONFLICT, 0)
    (attempt,) = result.attempts
    assert (attempt.status, attempt.error_code) == (409, "EntityAlreadyExists")
    assert rows(session.execute(query())) == ["b"]


@pytest.mark.parametrize("key", AWKWARD_KEYS)
def test_awkward_keys_work(session: Any, key: str) -> None:
    """Quotes, percent signs, blanks, other scripts and emoji are keys like others."""
    where = {"partition": key, "row": key}
    assert session.execute(op(Kind.INSERT, **where)).outcome is Outcome.SUCCESS
    assert session.execute(op(Kind.UPDATE_MERGE, **where)).outcome is Outcome.SUCCESS
    value = session.execute(op(Kind.POINT_QUERY, **where)).value
    assert (value["PartitionKey"], value["RowKey"]) == (key, key)
    assert rows(session.execute(query(key, key_range=KeyRange(row_from=key)))) == [key]
    upsert = op(Kind.UPSERT_REPLACE, **where)
    assert session.execute(transaction((upsert,))).outcome is Outcome.SUCCESS
    assert session.execute(op(Kind.DELETE, **where)).outcome is Outcome.SUCCESS


def test_what_cannot_be_encoded_is_a_defect(session: Any) -> None:
    """A value without an Edm type is a defect with the error's text, and nothing is sent."""
    result = session.execute(op(Kind.INSERT, properties={"A": [1]}))
    assert result.outcome is Outcome.DEFECT
    (attempt,) = result.attempts
    assert (attempt.status, attempt.fault) == (0, Fault.CLIENT)
    assert "TypeError" in attempt.message
    assert result.bytes_sent == 0


def test_a_wrong_key_is_forbidden(
    kind: str, endpoint: Endpoint, table: str, open_to: Callable[..., Any]
) -> None:
    """A signature that does not fit is forbidden, and not retried."""
    other = Endpoint(
        kind=endpoint.kind,
        url=endpoint.url,
        account=endpoint.account,
        credential=SharedKey(endpoint.account, "AAAA"),
    )
    result = open_to(kind, other, table).execute(op(Kind.INSERT))
    assert (result.outcome, result.attempts[0].status) == (Outcome.FORBIDDEN, 403)
    assert len(result.attempts) == 1


def test_a_shared_access_signature_lets_in(
    kind: str, endpoint: Endpoint, table: str, open_to: Callable[..., Any]
) -> None:
    """Reads, writes, transactions and queries work with a SAS instead of the key."""
    assert isinstance(endpoint.credential, SharedKey)
    token = generate_account_sas(
        named_key(endpoint),
        ResourceTypes(object=True, service=True, container=True),
        AccountSasPermissions(read=True, write=True, add=True, update=True, list=True, delete=True),
        dt.datetime.now(dt.UTC) + dt.timedelta(hours=1),
    )
    signed = Endpoint(
        kind=endpoint.kind, url=endpoint.url, account=endpoint.account, credential=Sas(token)
    )
    session = open_to(kind, signed, table)
    load(session, 2)
    assert rows(session.execute(query())) == ["00000", "00001"]
    assert session.execute(op(Kind.UPSERT_MERGE)).outcome is Outcome.SUCCESS
    assert session.execute(op(Kind.POINT_QUERY)).outcome is Outcome.SUCCESS
