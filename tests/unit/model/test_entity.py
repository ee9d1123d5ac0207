"""Sizes and limits of entities, keys, transactions; the targets of an endpoint."""

from __future__ import annotations

import datetime as dt
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.entity import (
    EdmValue,
    Int64,
    characters,
    entity_problems,
    key_problem,
    stored_size,
    value_size,
)
from harness.model.operation import (
    WHOLE_TABLE,
    Kind,
    KindTraits,
    Operation,
    transaction,
)
from harness.model.services import SERVICES
from harness.model.services.cosmos import COSMOS, COSMOS_EMULATOR
from harness.model.services.storage import AZURITE, STORAGE


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", 4),
        ("abc", 10),
        ("é", 6),
        ("🦊", 8),
        (b"", 4),
        (b"abc", 7),
        (True, 1),
        (7, 4),
        (Int64(7), 8),
        (1.5, 8),
        (dt.datetime(2024, 1, 1, tzinfo=dt.UTC), 8),
        (uuid.UUID(int=0), 16),
    ],
)
def test_value_sizes(value: EdmValue, expected: int) -> None:
    """Each Edm type has its stored size; strings count UTF-16 code units twice and 4 more."""
    assert value_size(value) == expected


def test_values_without_an_edm_type_are_refused() -> None:
    """What no Edm type holds is an error, not a guess."""
    with pytest.raises(TypeError, match="list"):
        value_size([1])  # type: ignore[arg-type]


def test_size_of_an_entity() -> None:
    """4 + 2 x key characters + for each property 8 + 2 x name characters + value."""
    assert stored_size("pk", "rk1", {}) == 4 + 2 * 5
    properties: dict[str, EdmValue] = {"Name": "abc", "N": Int64(1)}
    assert stored_size("pk", "rk1", properties) == 14 + (8 + 8 + 10) + (8 + 2 + 8)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_characters_are_utf16_code_units(text: str) -> None:
    """The length is what the service counts: UTF-16 code units."""
    assert characters(text) == len(text.encode("utf-16-le")) // 2


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        ("", None),
        ("a key with 'quotes', commas & spaces", None),
        ("k" * 1024, None),
        ("🦊" * 512, None),
        ("k" * 1025, "1,025 characters"),
        ("🦊" * 513, "1,026 characters"),
        ("a/b", "contains /"),
        ("a\\b", "contains \\"),
        ("a#b", "contains #"),
        ("a?b", "contains ?"),
        ("a\x00b", "U+0000"),
        ("a\nb", "U+000A"),
        ("a\x1fb", "U+001F"),
        ("a\x7fb", "U+007F"),
        ("a\x9fb", "U+009F"),
        ("a\xa0b", None),
        ("a\ud83e", "half a surrogate pair"),
        (WHOLE_TABLE, "contains /"),
    ],
)
def test_key_limits(key: str, problem: str | None) -> None:
    """Keys have at most 1,024 UTF-16 units and no forbidden character; the sentence says which."""
    found = key_problem(key)
    if problem is None:
        assert found is None
    else:
        assert found is not None
        assert problem in found


@pytest.mark.parametrize(
    ("properties", "problem"),
    [
        ({}, None),
        ({f"P{n}": 1 for n in range(252)}, None),
        ({f"P{n}": 1 for n in range(253)}, "has 253 properties"),
        ({"Text": "x" * 32 * 1024}, None),
        ({"Text": "x" * (32 * 1024 + 1)}, "property Text is over 64 KiB"),
        ({"Blob": bytes(64 * 1024)}, None),
        ({"Blob": bytes(64 * 1024 + 1)}, "property Blob is over 64 KiB"),
        ({"N": 2**31 - 1}, None),
        ({"N": 2**31}, "does not fit into Edm.Int32; wrap it in Int64"),
        ({"N": -(2**31) - 1}, "does not fit into Edm.Int32"),
        ({"N": Int64(2**63 - 1)}, None),
        ({"N": Int64(2**63)}, "does not fit into Edm.Int64"),
        ({"Yes": True}, None),
        ({f"B{n}": bytes(64 * 1024) for n in range(17)}, "at most 1 MiB"),
    ],
)
def test_entity_limits(properties: dict[str, EdmValue], problem: str | None) -> None:
    """What the service would refuse is a sentence beforehand."""
    found = list(entity_problems("p", "r", properties))
    if problem is None:
        assert found == []
    else:
        assert len(found) == 1
        assert problem in found[0]


def test_every_problem_of_an_entity_is_named() -> None:
    """Both keys and every property are looked at, not only the first mistake."""
    found = list(entity_problems("a/b", "c#d", {"N": 2**40, "M": 2**40}))
    assert [sentence.split()[0] for sentence in found][:2] == ["PartitionKey", "RowKey"]
    assert len(found) == 4


def part(row: str, key: str = "p", kind: Kind = Kind.INSERT) -> Operation:
    return Operation(kind=kind, partition_key=key, row_key=row)


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ((), "1 to 100 operations, not 0"),
        (tuple(part(str(n)) for n in range(101)), "1 to 100 operations, not 101"),
        ((part("1"), part("2", key="q")), "stays in one partition"),
        ((part("1"), part("1", kind=Kind.DELETE)), "names each RowKey once"),
        ((part("1", kind=Kind.POINT_QUERY),), "holds only single writes"),
        ((part("1", kind=Kind.TRANSACTION),), "holds only single writes"),
    ],
)
def test_what_cannot_be_a_transaction(parts: tuple[Operation, ...], problem: str) -> None:
    """Azure's rules are kept before anything is sent; the emulator does not keep them all."""
    with pytest.raises(ValueError, match=problem):
        transaction(parts)


def test_every_kind_has_every_trait() -> None:
    """Each trait is held by the kinds listed here, and by no others; all have a method and name."""
    having = {
        trait: {kind for kind in Kind if getattr(kind, trait)}
        for trait in (*KindTraits._fields, "logged_as", "method")
    }
    receiving = {Kind.GET_MESSAGES, Kind.PEEK_MESSAGES}
    held = {Kind.UPDATE_MESSAGE, Kind.DELETE_MESSAGE}
    upserts = {Kind.UPSERT_MERGE, Kind.UPSERT_REPLACE}
    updates = {Kind.UPDATE_MERGE, Kind.UPDATE_REPLACE}
    stores = {Kind.INSERT} | upserts | updates
    blob_reads = {Kind.GET_BLOB, Kind.GET_BLOB_PROPERTIES, Kind.LIST_BLOBS}
    blobs = {kind for kind in Kind if "blob" in kind or "block" in kind} | {Kind.PUT_PAGE}
    assert having == {
        "reads": {Kind.POINT_QUERY, Kind.QUERY} | receiving | blob_reads,
        "on_rows": set(Kind) - {Kind.PUT_MESSAGE} - receiving - held - blobs,
        "on_messages": {Kind.PUT_MESSAGE} | receiving | held,
        "untargeted": blobs,
        "receives": receiving,
        "part": stores | {Kind.DELETE},
        "stores": stores,
        "upserts": upserts,
        "updates": updates,
        "needs_row": updates | {Kind.DELETE},
        "merges": {Kind.UPSERT_MERGE, Kind.UPDATE_MERGE},
        "moves_rows": {Kind.INSERT, Kind.DELETE},
        "doubles": {Kind.PUT_MESSAGE, Kind.APPEND_BLOCK},
        "tallied_as": {Kind.PUT_MESSAGE, Kind.GET_MESSAGES, Kind.DELETE_MESSAGE},
        "disputed": {Kind.INSERT, Kind.DELETE, Kind.TRANSACTION}
        | updates
        | held
        | (blobs - blob_reads),
        "logged_as": set(Kind),
        "method": set(Kind),
    }


def test_the_kind_decides_the_target() -> None:
    """Storage and emulator are held against 2,000 and 20,000; Cosmos DB is not."""
    for kind in (STORAGE, AZURITE):
        targets = kind.targets
        assert targets is not None
        assert (targets.partition, targets.account) == (2000, 20000)
    for kind in (COSMOS, COSMOS_EMULATOR):
        assert kind.charges
        assert kind.targets is None
    assert [kind for kind in SERVICES if kind.emulated] == [
        kind for kind in SERVICES if "Azurite" in kind.described or not kind.keeps_writes
    ]
