"""The log profiles on the embedded Azurite: as a table and as blobs, compared."""

from __future__ import annotations

import gevent
import pytest

from harness.measure.record.measured import OperationPart
from harness.measure.record.record import RunRecord
from harness.workload.scenarios.time_series import READ_SHARE
from tests.support.command import Command
from tests.support.locust_process import LocustProcess, Stress

pytestmark = [pytest.mark.azurite, pytest.mark.long]

LINES = 200
SHORT = (
    *("--headless", "-t", "5s", "--set", "load.settle_s=0", "--set", "loading.settle_s=0"),
    *("--set", "load.operations_per_s=8", "--set", f"keys.rows_per_partition={LINES}"),
)


def ended(process: LocustProcess) -> RunRecord:
    assert process.wait() in (0, 3), process.said
    return process.record


def operation(record: RunRecord, name: str) -> OperationPart:
    return next(part for part in record.operations if part.kind == name)


def test_both_ways_are_compared(stress: Stress, command: Command) -> None:
    """Batches and ranges have the same lines in both, and the comparison shows both.

    Bounds: two runs of some ten seconds at once.
    """
    processes = [
        stress(*SHORT, "--summary", "full", "--profile", profile)
        for profile in ("log-in-tables", "log-in-blobs")
    ]
    with gevent.Timeout(120):
        rows, lines = (ended(process) for process in processes)
    for name, each in (("write_lines", 100), ("read_back", LINES // READ_SHARE)):
        for part in (operation(rows, name), operation(lines, name)):
            assert part.entities == each * part.count > 0
            assert part.outcomes.keys() == {"success"}
    assert operation(lines, "read_back").entities_estimated == 0
    assert lines.invariants == ()
    assert lines.loading.entities == rows.loading.entities == LINES
    assert lines.account.target is None
    assert lines.session == "blob"
    # The first append to a blob creates it by a further request.
    assert lines.counts.attempts > lines.counts.operations
    assert "Not cleaned up" not in processes[1].said
    assert f"the container {lines.endpoint.table} at" in processes[1].said
    assert f", container {lines.endpoint.table}" in " ".join(processes[1].said.split())
    assert "table stress" not in processes[1].said
    folders = [str(process.folder / "out" / process.record.run_id) for process in processes]
    said = command.words("compare", *folders)
    assert "p50 write_lines, ms" in said
    assert "p50 read_back, ms" in said
    assert "billable /1,000 lines" in said
    assert "entities/s" not in said
    assert "B ran on Azurite's blobs" not in said
    assert "log-in-blobs on Azurite's blobs (emulator" in said


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("--profile", "log-in-blobs", "-H", "https://name.table.core.windows.net"),
            "session blob sends to the embedded Azurite only",
        ),
        (("--profile", "log-in-blobs", "--throttling", "demo"), "leave --throttling out"),
        (("--profile", "log-in-blobs", "--table", "Mine"), "--table names a table"),
        (
            ("--profile", "log-in-blobs", "--set", "entity.compress=true"),
            "entity.compress makes lines of different lengths",
        ),
        (
            ("--profile", "key-spread", "--session", "blob"),
            "key-spread cannot use session blob: the operation",
        ),
    ],
)
def test_what_blobs_cannot_do_is_refused(
    stress: Stress, arguments: tuple[str, ...], sentence: str
) -> None:
    """Exit code 2, with one sentence that says why; nothing is sent."""
    process = stress("--headless", *arguments)
    with gevent.Timeout(60):
        assert process.wait() == 2, process.said
    assert sentence in " ".join(process.said.split())
