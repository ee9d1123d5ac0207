"""Keeps the record of a run: before its tables are deleted, and again with what that cost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from harness.measure.record import RunRecord
from harness.swarm.output import write_outputs, write_run
from harness.swarm.run import Run


def keep(
    run: Run,
    record: RunRecord,
    out: str,
    clean_up: Callable[[], None],
    complain: Callable[[str], None],
) -> tuple[RunRecord, Path]:
    """Write down what the run found, clean up whatever happens, and write down the rest.

    Args:
        run: The run.
        record: What it found.
        out: Folder of all runs.
        clean_up: Deletes what the run made.
        complain: Is told what could not be written, where that makes no run worse.

    Returns:
        The record with its whole cost, and its path.

    Raises:
        OSError: the record cannot be written.
    """
    errors, not_kept = run.ledger.errors()
    if run.aliases is not None:
        errors = [run.aliases.error(error) for error in errors]
    try:
        path = write_run(out, record, errors, not_kept)
    finally:
        clean_up()
    # Cleaning is paid for too.
    counts = record.counts.model_copy(update={"billable_transactions": run.billable_transactions})
    final = record.model_copy(update={"counts": counts})
    write_outputs(path, final, run.ledger.latencies(), complain)
    return final, path
