"""Which operations session ``blob`` can make."""

from __future__ import annotations

import pytest

from harness.endpoint.sessions.blob import blob_problem
from harness.model.operation import WHOLE_TABLE, KeyRange, Kind, Operation, transaction

INSERT = Operation(kind=Kind.INSERT, partition_key="p", row_key="r", properties={})
DELETE = Operation(kind=Kind.DELETE, partition_key="p", row_key="s")


@pytest.mark.parametrize(
    "operation",
    [
        INSERT,
        transaction((INSERT,)),
        Operation(kind=Kind.QUERY, partition_key="p", key_range=KeyRange(entities=5)),
        Operation(
            kind=Kind.QUERY,
            partition_key="p",
            key_range=KeyRange(row_from="r", row_before="s", entities=5, preceding=7),
        ),
    ],
)
def test_lines_are_appended_and_blobs_read_whole_or_by_range(operation: Operation) -> None:
    """Inserts, transactions of inserts, whole partitions, and ranges whose place is known."""
    assert blob_problem(operation) is None


@pytest.mark.parametrize(
    "operation",
    [
        DELETE,
        transaction((INSERT, DELETE)),
        Operation(kind=Kind.POINT_QUERY, partition_key="p", row_key="r"),
        Operation(kind=Kind.UPSERT_MERGE, partition_key="p", row_key="r", properties={}),
        Operation(kind=Kind.QUERY, partition_key=WHOLE_TABLE),
        Operation(kind=Kind.QUERY, partition_key="p", key_range=KeyRange(row_from="r")),
        Operation(kind=Kind.QUERY, partition_key="p", key_range=KeyRange(row_from="r", entities=5)),
        Operation(kind=Kind.QUERY, partition_key="p", top=10),
        Operation(kind=Kind.QUERY, partition_key="p", filter="A eq 1"),
        Operation(kind=Kind.QUERY, partition_key="p", select=("A",)),
    ],
)
def test_others_are_refused(operation: Operation) -> None:
    """The sentence names the operation."""
    assert repr(operation.label) in str(blob_problem(operation))
