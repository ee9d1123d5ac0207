"""A what-if whose schemes are calculated in processes of their own."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import signal
import threading
import time
from pathlib import Path

import pytest

from harness.gateway.limits import GatewayLimits
from harness.measure.record.whatif import WhatIfRecord
from harness.model.errors import SetupError
from harness.trace.reader import Trace
from harness.trace.whatif.projection import Progress
from harness.trace.whatif.scheme import parse_scheme
from harness.trace.whatif.whatif import what_if
from tests.support.source_tree import ROOT

TRACE = ROOT / "examples" / "hot-tenant" / "hot-tenant.parquet"
SCHEMES = [
    parse_scheme(name, {"keys": {"partition_key": template}}, name)
    for name, template in (("day", "{partition_key:first4}"), ("rows", "{row_key:bucket16}"))
]


def calculated(
    trace: Trace | Path,
    processes: int,
    progress: Progress = lambda step, operations: None,
    most_factor: float = 0.0,
    limits: GatewayLimits | None = None,
) -> WhatIfRecord:
    return what_if(
        trace if isinstance(trace, Trace) else Trace(trace),
        SCHEMES,
        limits or GatewayLimits(),
        name="made",
        limits_name="published",
        rate=20.0,
        most_factor=most_factor,
        processes=processes,
        progress=progress,
    )


@pytest.fixture(scope="module")
def alone() -> WhatIfRecord:
    """What this process calculates."""
    return calculated(TRACE, 1)


def test_two_processes_calculate_what_one_does(alone: WhatIfRecord) -> None:
    """Schemes that are calculated side by side are those that are calculated in turn."""
    steps: list[tuple[str, int]] = []
    beside = calculated(TRACE, 2, lambda step, operations: steps.append((step, operations)))
    assert beside == alone
    assert "as recorded" in {step for step, _ in steps}


def test_an_ended_process_is_an_error_of_the_what_if() -> None:
    """A process that is killed ends the what-if with its exit code, and the others with it."""

    def kill(step: str, operations: int) -> None:
        for child in multiprocessing.active_children():
            child.kill()

    with pytest.raises(SetupError, match="ended with exit code -9"):
        calculated(TRACE, 2, kill, most_factor=10_000.0)
    assert not multiprocessing.active_children()


def test_a_defect_in_a_process_is_no_bad_input() -> None:
    """It ends as one in the process of the command does: not with the exit code of a mistake."""
    broken = GatewayLimits().model_copy(update={"servers": None})
    with pytest.raises(RuntimeError, match="ended with exit code 1; its error is above"):
        calculated(TRACE, 2, limits=broken)
    assert not multiprocessing.active_children()


def test_a_ctrl_c_leaves_a_process_that_starts_alone(alone: WhatIfRecord) -> None:
    """It reaches all processes of a terminal: the parent alone ends the others."""

    def interrupt() -> None:
        while not (children := multiprocessing.active_children()):
            time.sleep(0.001)
        for child in children:
            assert child.pid is not None
            os.kill(child.pid, signal.SIGINT)

    thread = threading.Thread(target=interrupt, daemon=True)
    thread.start()
    assert calculated(TRACE, 2) == alone
    thread.join(10)
    assert not thread.is_alive()


def test_a_trace_that_vanished_is_named(tmp_path: Path) -> None:
    """The processes open it again, and say why they cannot."""
    copy = tmp_path / "copy.parquet"
    shutil.copy(TRACE, copy)
    with contextlib.closing(Trace(copy)) as trace:
        copy.unlink()
        with pytest.raises(SetupError, match=r"^copy\.parquet cannot be read any more \("):
            calculated(trace, 2)
