"""A what-if whose schemes are calculated in processes of their own."""

from __future__ import annotations

import multiprocessing
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
    path: Path,
    processes: int,
    progress: Progress = lambda step, operations: None,
    most_factor: float = 0.0,
) -> WhatIfRecord:
    return what_if(
        Trace(path),
        SCHEMES,
        GatewayLimits(),
        name="made",
        limits_name="published",
        rate=20.0,
        most_factor=most_factor,
        processes=processes,
        progress=progress,
    )


def test_two_processes_calculate_what_one_does() -> None:
    """Schemes that are calculated side by side are those that are calculated in turn."""
    steps: list[tuple[str, int]] = []
    beside = calculated(TRACE, 2, lambda step, operations: steps.append((step, operations)))
    assert beside == calculated(TRACE, 1)
    assert "as recorded" in {step for step, _ in steps}


def test_an_ended_process_is_an_error_of_the_what_if() -> None:
    """A process that is killed ends the what-if with its exit code, and the others with it."""

    def kill(step: str, operations: int) -> None:
        for child in multiprocessing.active_children():
            child.kill()

    with pytest.raises(SetupError, match="ended with exit code -9"):
        calculated(TRACE, 2, kill, most_factor=10_000.0)
    assert not multiprocessing.active_children()
