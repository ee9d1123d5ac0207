"""The same trace and schemes give the same bytes, in each process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from harness.trace.blocks import MOST_OPERATIONS, BlockColumns
from harness.trace.head import TraceHead
from harness.trace.writer import TraceWriter

PARTITIONS = 52_000
"""More than are counted one by one."""


def test_the_output_does_not_depend_on_the_order_of_sets(tmp_path: Path) -> None:
    """With more partitions than are counted exactly, and hot ones that are retried."""
    path = tmp_path / "made.parquet"
    shape = ("app", "upsert_merge", "t", "upsert_merge", "success", False, ((204, "", ""),))
    with TraceWriter(path, TraceHead(started_ms=0, source="made", name="made")) as writer:
        for first in range(0, PARTITIONS, MOST_OPERATIONS):
            numbers = range(first, min(PARTITIONS, first + MOST_OPERATIONS))
            block = BlockColumns()
            block.at = [number // 30 for number in numbers]
            block.took = [0] * len(numbers)
            block.shapes, block.shape = [shape], [0] * len(numbers)
            block.key = [f"hot{number % 7}" if number % 3 else f"p{number}" for number in numbers]
            block.row = [f"r{number}" for number in numbers]
            block.entities = [1] * len(numbers)
            block.returned = [0] * len(numbers)
            block.sent = block.received = [900] * len(numbers)
            writer.append([block.encode()])
    scheme = tmp_path / "scheme.toml"
    scheme.write_text('[keys]\npartition_key = "{row_key}-{partition_key}"\n', encoding="utf-8")
    outputs = [
        subprocess.check_output(
            [sys.executable, "-m", "harness", "whatif", path, "--keys", scheme, "--json"],
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        for seed in ("1", "2")
    ]
    assert b'"partitions_estimated":true' in outputs[0].replace(b" ", b"")
    assert outputs[0] == outputs[1]
