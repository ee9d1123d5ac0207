"""Entities on the wire: written and read as the SDK does."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest
from azure.data.tables._deserialize import _convert_to_entity
from hypothesis import given
from hypothesis import strategies as st

from harness.endpoint.protocol.edm import EntityWriter, ReadEntity, edm_json, values_of
from harness.endpoint.sessions.sdk import value_of
from harness.model.entity import EdmValue, Int64
from harness.model.operation import Kind, Operation

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_NAMES = st.sampled_from(["A", "B", "É", "Number", "Text0"])
_VALUES: st.SearchStrategy[EdmValue] = st.one_of(
    _TEXT,
    st.text("x", min_size=5000, max_size=5001),
    st.booleans(),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-(2**63), 2**63 - 1).map(Int64),
    st.floats(),
    st.binary(max_size=40),
    st.datetimes(min_value=dt.datetime(1601, 1, 1), timezones=st.just(dt.UTC)),
    st.uuids(),
)


def json_of(operation: Operation) -> dict[str, Any]:
    """The entity of a write as JSON, put together without a template."""
    entity: dict[str, Any] = {
        "PartitionKey": operation.partition_key,
        "PartitionKey@odata.type": "Edm.String",
        "RowKey": operation.row_key,
        "RowKey@odata.type": "Edm.String",
    }
    for name, value in (operation.properties or {}).items():
        edm_type, entity[name] = edm_json(value)
        if edm_type:
            entity[f"{name}@odata.type"] = edm_type
    return entity


def insert(properties: dict[str, Any], partition: str = "p", row: str = "r") -> Operation:
    return Operation(kind=Kind.INSERT, partition_key=partition, row_key=row, properties=properties)


@given(
    st.lists(st.tuples(_TEXT, _TEXT, st.dictionaries(_NAMES, _VALUES)), min_size=1, max_size=4),
    st.randoms(use_true_random=False),
)
def test_an_entity_is_written_as_the_sdk_writes_it(
    entities: list[tuple[str, str, dict[str, EdmValue]]], rng: Any
) -> None:
    """Whatever one writer wrote before, the text of an entity is that of the SDK's JSON."""
    writer = EntityWriter()
    for partition, row, properties in [*entities, *rng.sample(entities, len(entities))]:
        operation = insert(properties, partition, row)
        assert writer.text(operation) == json.dumps(json_of(operation))


def test_values_that_are_equal_may_be_written_differently() -> None:
    """True, 1, 1.0 and Int64(1) are equal to each other, and are four things."""
    writer = EntityWriter()
    for value in (1, True, 1.0, Int64(1), 0.0, -0.0, 1):
        operation = insert({"A": value})
        assert writer.text(operation) == json.dumps(json_of(operation))


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, None, 1j, [1]])
def test_a_value_without_an_edm_type_is_not_written(value: Any) -> None:
    """What would be stored as something else, or not at all, is a mistake of the client."""
    with pytest.raises(TypeError):
        EntityWriter().text(insert({"A": value}))


def test_a_moment_is_written_as_it_was_read() -> None:
    """A time keeps all the digits that the service has of it."""
    told = "2024-01-02T03:04:05.1234567Z"
    read = values_of({"When@odata.type": "Edm.DateTime", "When": told})["When"]
    assert json.loads(EntityWriter().text(insert({"When": read})))["When"] == told


_DIGITS = st.integers(1, 7).flatmap(
    lambda digits: st.integers(0, 10**digits - 1).map(lambda number: f".{number:0{digits}}")
)
_TIMES = st.builds(
    lambda moment, digits: moment.strftime("%Y-%m-%dT%H:%M:%S") + digits + "Z",
    st.datetimes(min_value=dt.datetime(1601, 1, 1)),
    st.one_of(st.just(""), _DIGITS),
)
_TOLD = st.one_of(
    st.tuples(st.just(""), _TEXT),
    st.tuples(st.just(""), st.booleans()),
    st.tuples(st.just(""), st.integers(-(2**40), 2**40)),
    st.tuples(st.just(""), st.floats(allow_nan=False, allow_infinity=False)),
    st.tuples(st.just("Edm.String"), _TEXT),
    st.tuples(st.just("Edm.Int32"), st.integers(-(2**31), 2**31 - 1)),
    st.tuples(st.just("Edm.Int64"), st.integers(-(2**63), 2**63 - 1).map(str)),
    st.tuples(st.just("Edm.Double"), st.sampled_from(["NaN", "Infinity", "-Infinity", 1.5, 2])),
    st.tuples(st.just("Edm.Binary"), st.sampled_from(["", "AA==", "AP8n"])),
    st.tuples(st.just("Edm.DateTime"), _TIMES),
    st.tuples(st.just("Edm.Guid"), st.uuids().map(str)),
)


def shown(value: Any) -> Any:
    """What can be told of a value, but for the class of a time."""
    if isinstance(value, dt.datetime):
        return value.isoformat(), getattr(value, "tables_service_value", None)
    return type(value).__name__, repr(value)


@given(
    st.dictionaries(_NAMES, _TOLD),
    st.one_of(st.none(), _TIMES),
    st.sampled_from([None, "", "W/\"datetime'2024'\""]),
    st.booleans(),
)
def test_an_entity_is_read_as_the_sdk_reads_it(
    properties: dict[str, tuple[str, Any]], timestamp: str | None, etag: str | None, typed: bool
) -> None:
    """Values, their types, the time stamp and the ETag are those that the SDK finds."""
    document: dict[str, Any] = {"PartitionKey": "p", "RowKey": "r", "odata.metadata": "m"}
    for name, (edm_type, value) in properties.items():
        document[name] = value
        if edm_type:
            document[f"{name}@odata.type"] = edm_type
    if timestamp is not None:
        document["Timestamp"] = timestamp
        if typed:
            document["Timestamp@odata.type"] = "Edm.DateTime"
    if etag is not None:
        document["odata.etag"] = etag
    theirs = value_of(_convert_to_entity(document))
    ours = ReadEntity(document)
    assert {name: shown(value) for name, value in ours.items()} == {
        name: shown(value) for name, value in theirs.items()
    }


def test_a_boolean_may_say_that_it_is_one() -> None:
    """A type that JSON tells too changes nothing; the SDK takes its name for the value."""
    assert values_of({"A@odata.type": "Edm.Boolean", "A": True})["A"] is True


def test_what_was_found_equals_a_dict() -> None:
    """An entity whose values are made late is the mapping that a dict of them is."""
    found = ReadEntity(
        {"PartitionKey": "p", "A@odata.type": "Edm.Int64", "A": "5", "odata.etag": "e"}
    )
    expected = {"PartitionKey": "p", "A": Int64(5), "odata.etag": "e", "Timestamp": None}
    assert found == expected
    assert expected == found
    assert (len(found), "A" in found, "B" in found) == (4, True, False)
    assert repr(found) == repr(dict(found))
