"""What a row that is read back says about a write whose answer was lost."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.endpoint.retrying import applied, in_order_of_evidence
from harness.model.entity import ETAG, Int64
from harness.model.operation import Kind, Operation

NOW = dt.datetime(2024, 5, 6, 7, 8, 9)


def part(kind: Kind, **properties: Any) -> Operation:
    conditional = kind in (Kind.UPDATE_MERGE, Kind.UPDATE_REPLACE)
    return Operation(
        kind=kind,
        partition_key="p",
        row_key="r",
        properties=properties,
        etag="old" if conditional else None,
    )


@pytest.mark.parametrize(
    ("kind", "stored", "expected"),
    [
        (Kind.INSERT, None, False),
        (Kind.INSERT, {"A": 1, "RowKey": "r"}, True),
        (Kind.INSERT, {"A": 2}, False),
        (Kind.INSERT, {}, False),
        (Kind.DELETE, None, None),
        (Kind.DELETE, {"A": 1}, False),
        (Kind.UPDATE_MERGE, {"A": 1, "B": 2}, True),
        (Kind.UPDATE_REPLACE, {"A": 2}, None),
        (Kind.UPDATE_REPLACE, {"A": 2, ETAG: "old"}, False),
        (Kind.UPSERT_MERGE, {"A": 1}, True),
        (Kind.UPSERT_MERGE, {"A": 2}, None),
        (Kind.UPSERT_REPLACE, {}, None),
        (Kind.UPSERT_REPLACE, None, False),
    ],
)
def test_a_row_decides_for_its_transaction(
    kind: Kind, stored: dict[str, Any] | None, expected: bool | None
) -> None:
    """What was written is there, or the row is as it was; what may have been changed since is not
    decided.
    """
    assert applied(part(kind, A=1), stored, alone=False) is expected


@pytest.mark.parametrize(
    ("kind", "stored", "expected"),
    [
        (Kind.INSERT, None, None),
        (Kind.INSERT, {"A": 1}, True),
        (Kind.INSERT, {"A": 2}, False),
        (Kind.DELETE, None, None),
        (Kind.DELETE, {"A": 1}, None),
        (Kind.UPDATE_MERGE, None, None),
        (Kind.UPDATE_MERGE, {"A": 1, "B": 2}, True),
        (Kind.UPDATE_MERGE, {"A": 2}, None),
        (Kind.UPDATE_MERGE, {"A": 2, ETAG: "old"}, False),
    ],
)
def test_a_row_decides_for_its_single_write(
    kind: Kind, stored: dict[str, Any] | None, expected: bool | None
) -> None:
    """Only what was written proves a write; another writer explains a row that is gone."""
    assert applied(part(kind, A=1), stored, alone=True) is expected


def test_a_write_without_properties_is_not_decided() -> None:
    """Where nothing was written, nothing that is stored proves it."""
    assert applied(part(Kind.INSERT), {"A": 1}, alone=True) is None


@pytest.mark.parametrize(
    ("sent", "read", "same"),
    [
        (float("nan"), float("nan"), True),
        (float("nan"), 1.0, False),
        (NOW, NOW.replace(tzinfo=dt.UTC), True),
        (True, 1, False),
        (Int64(1), 1, False),
        (Int64(1), Int64(1), True),
        (b"1", "1", False),
    ],
)
def test_values_are_compared_with_their_types(sent: Any, read: Any, same: bool) -> None:
    """NaN is NaN, a time without zone is UTC, and equal numbers of other types are not the same."""
    assert applied(part(Kind.INSERT, A=sent), {"A": read}, alone=True) is same


@given(st.lists(st.sampled_from([kind for kind in Kind if kind.part]), max_size=20))
def test_the_best_evidence_comes_first(kinds: list[Kind]) -> None:
    """Every part is asked once, inserts first and deletes last."""
    ordered = in_order_of_evidence([part(kind) for kind in kinds])
    assert sorted(each.kind for each in ordered) == sorted(kinds)
    found = [each.kind for each in ordered]
    if Kind.INSERT in found:
        assert found[0] is Kind.INSERT
    if Kind.DELETE in found:
        assert found[-1] is Kind.DELETE
