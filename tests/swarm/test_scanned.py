"""Runs that are throttled by what queries scan, and by how fast the load came."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.measure.record.record import RunRecord
from tests.support.locust_process import Stress

pytestmark = [pytest.mark.azurite, pytest.mark.long, pytest.mark.apart]

LIMITS = """\
[partition]
entities_per_s = 250.0
[servers]
entities_per_s = 1e6
[moving]
hot_after_s = 600.0
"""
ONLY_ROW_RANGES = tuple(
    argument
    for kind in ("point_query", "partition_scan", "partition_range_scan", "full_table_scan")
    for argument in ("--set", f"mix.{kind}=0")
)


def test_a_low_density_is_throttled(stress: Stress, tmp_path: Path) -> None:
    """Queries that return one entity each pass if dense; at 1 % density they are throttled.

    Bounds: 40 queries/s over 5 partitions scan 8 entities/s of each, or 800; the limit is 250.
    """
    file = tmp_path / "mine.toml"
    file.write_text(LIMITS, encoding="utf-8")

    def run(rows: int, returned_share: float) -> RunRecord:
        process = stress(
            *("--headless", "--profile", "query-types", "--throttling", str(file)),
            *ONLY_ROW_RANGES,
            *("--set", f"query.rows={rows}", "--set", f"query.returned_share={returned_share}"),
            *("--set", "fields.key.values=5", "--set", "keys.rows_per_partition=200"),
            *("--set", "load.operations_per_s=40", "--set", "load.run_time_s=12"),
            *("--set", "retry.strategy=none", "--set", "conditions=[]"),
        )
        process.wait()
        assert "all counts are equal" in process.stdout, process.said
        return process.record

    dense, sparse = run(1, 1.0), run(100, 0.01)
    assert dense.throttled_ratio == 0
    assert sparse.throttled_ratio > 0.3
    # Both return about one entity with each query that is answered.
    assert dense.counts.entities_returned > 300
    assert sparse.counts.entities > 20 * sparse.counts.entities_returned


def test_a_ramp_is_served_and_a_burst_is_refused(stress: Stress) -> None:
    """The two shipped profiles reach the same rate; only the jump has refusals to speak of."""

    def run(profile: str) -> RunRecord:
        process = stress(
            *("--headless", "--profile", profile, "--throttling", "ramping"),
            *("--set", "conditions=[]"),
        )
        process.wait(within_s=180.0)
        return process.record

    ramped, jumped = run("ramp-up"), run("burst")
    assert ramped.throttled_ratio < 0.01
    assert jumped.throttled_ratio > 0.05
