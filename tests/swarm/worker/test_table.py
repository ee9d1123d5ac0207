"""What the client of a user class refuses before anything is sent or counted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.model.operation import WHOLE_TABLE, Kind, Operation
from harness.swarm.worker.users import Table
from harness.swarm.worker.worker_run import WorkerRun


@pytest.mark.parametrize(
    "wrong",
    [
        {"partition_key": "\ud800x"},
        {"partition_key": 7},
        {"row_key": b"r"},
        {"name": ["n"]},
        {"name": "\udfff"},
        {"table": None},
    ],
    ids=str,
)
def test_what_cannot_be_counted_is_no_operation(wrong: dict[str, Any]) -> None:
    """A key or name that is no text is the caller's error, with the value in its sentence."""
    fields = {"kind": Kind.INSERT, "partition_key": "p", "row_key": "r", **wrong}
    # Nothing of a run is needed to refuse.
    table = Table(cast(WorkerRun, None))
    with pytest.raises(ValueError, match="is not text"):
        table.execute(Operation(**fields))


def test_a_transaction_over_4_mib_is_refused() -> None:
    """Ten entities of 900 KB are 9 MB; the sentence names the bytes and the limit."""
    table = Table(cast(WorkerRun, None))
    large = {f"Text{number}": "x" * 30_000 for number in range(30)}
    parts = [
        Operation(kind=Kind.INSERT, partition_key="p", row_key=str(row), properties=large)
        for row in range(10)
    ]
    with pytest.raises(ValueError, match=r"has about 9,\d{3},\d{3} bytes .* over the 4 MiB"):
        table.transaction(parts)


class Recording:
    """A run with two tables that keeps what it is given."""

    plan = SimpleNamespace(tables=("", "Index"))

    def __init__(self) -> None:
        self.sent: list[Operation] = []

    def require_sendable(self, operation: Operation) -> None:
        pass

    def perform(self, operation: Operation) -> None:
        self.sent.append(operation)


def test_a_query_may_go_over_a_range_of_partitions_of_a_named_table() -> None:
    """Both ends of the range and the table are in the operation, and its label says what it is."""
    run = Recording()
    Table(cast(WorkerRun, run)).query(
        None, partition_from="2024-01", partition_before="2024-02", table="Index"
    )
    (sent,) = run.sent
    keys = sent.key_range
    assert (sent.partition, sent.label) == (f"Index/{WHOLE_TABLE}", "partition_range_scan")
    assert (keys.partition_from, keys.partition_before) == ("2024-01", "2024-02")


@pytest.mark.parametrize(
    ("key", "asked", "said"),
    [
        ("p", {"partition_before": "q"}, "one PartitionKey or a range"),
        ("p", {"table": "Other"}, "there is no table 'Other'; the tables of this run are '', 'In"),
    ],
)
def test_a_query_that_cannot_be_meant_is_refused(
    key: str, asked: dict[str, str], said: str
) -> None:
    """The sentence says what to give instead."""
    run = Recording()
    with pytest.raises(ValueError, match=said):
        Table(cast(WorkerRun, run)).query(key, **cast(Any, asked))
    assert not run.sent
