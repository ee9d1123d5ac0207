"""The trace of a watch holds what its record counted, exactly."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.model.operation import WHOLE_TABLE
from harness.trace.operations import TracedParts, TracedQuery
from harness.trace.reader import Trace
from tests.contract.watch.test_counts import LIMITS, PROGRAMS
from tests.support.traced import require_same

pytestmark = [pytest.mark.azurite, pytest.mark.long]

ENDINGS = str(PROGRAMS / "endings.py")
COMMAND = (sys.executable, str(PROGRAMS / "python_sdk.py"), "sync")


@pytest.mark.parametrize(
    "options", [("--limits", "LIMITS"), ("--processes", "3", "--redact-keys")], ids=["one", "three"]
)
def test_the_trace_has_the_counts_of_the_record(
    watch: Callable[..., Any], tmp_path: Path, options: tuple[str, ...]
) -> None:
    """Partitions, entities, attempts, outcomes and bytes are equal: with retries, with several
    processes, and with aliases.

    Bounds: some fifty requests and a few retries, about fifteen seconds.
    """
    limits = tmp_path / "limits.toml"
    limits.write_text(LIMITS, encoding="utf-8")
    path = tmp_path / "app.parquet"
    given = [str(limits) if option == "LIMITS" else option for option in options]
    watching = watch("--trace", str(path), *given, "--", *COMMAND)
    assert watching.end() == 0, watching.stderr
    require_same(path, watching.record)
    assert f"Trace: {path}" in watching.stderr
    trace = Trace(path)
    assert (trace.head.source, trace.head.run_id) == ("watch", watching.record["run_id"])
    assert trace.head.name == watching.record["watched"]["command"]
    keys = {answer["partition"] for answer in json.loads(watching.stdout)}
    redacted = "--redact-keys" in options
    assert trace.head.keys == ("nothing" if redacted else "")
    rows = list(trace.rows())
    seen = {row.partition_key for row in rows} - {"", WHOLE_TABLE}
    assert (seen <= keys) is not redacted
    assert all(str(key).startswith("key-") for key in seen) is redacted
    details = [row.detail for row in rows if row.detail is not None]
    batches = [detail for detail in details if isinstance(detail, TracedParts)]
    assert max(len(batch.row_keys) for batch in batches) == 100
    assert all(min(batch.sizes) >= 0 and max(batch.sizes) > 50 for batch in batches)
    assert any(isinstance(detail, TracedQuery) for detail in details)


def test_a_killed_watch_leaves_a_trace_that_can_be_read(
    watch_process: Callable[..., Any], upstream: tuple[str, str], tmp_path: Path
) -> None:
    """After kill -9 of the watch its blocks are there, and what is missing is said.

    Bounds: some hundred requests, about fifteen seconds.
    """
    path = tmp_path / "app.parquet"
    watching = watch_process(
        *upstream, "--trace", str(path), "--", sys.executable, ENDINGS, "write"
    )
    watching.said("ready")
    watching.wait_for(lambda: path.is_dir() and Trace(path).operations > 100)
    watching.process.kill()
    watching.process.wait()
    trace = Trace(path)
    assert sum(len(batch) for batch in trace.batches()) == trace.operations > 100
    [said] = trace.damage.sentences()
    assert said == "The recording broke off: what followed is missing."
