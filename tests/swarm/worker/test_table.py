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
