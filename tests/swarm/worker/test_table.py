"""What the client of a user class refuses before anything is sent or counted."""

from __future__ import annotations

from typing import Any, cast

import pytest

from harness.model.operation import Kind, Operation
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
