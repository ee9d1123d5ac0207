"""Parts of a record that few runs have, for the tests of summaries."""

from __future__ import annotations

from typing import Any

from harness.measure.counts.snapshot import Held
from harness.measure.record.findings import (
    AdvicePart,
    AuditPart,
    GapPart,
    PredictionPart,
    SearchPart,
    StepPart,
    ThrottlingPart,
)
from harness.report.terminal.live import Live

EXPECTED = PredictionPart(
    hottest="p0",
    hottest_share=0.6,
    ranges=(("p0", "p4"), ("p5", "p9")),
    hottest_range=1,
    hottest_range_share=0.4,
    over_partitions_share=0.0,
)
REASONS: dict[str, Any] = {
    "evidence": ("3,840 attempts were throttled.", "CPU was 43%."),
    "advice": (
        AdvicePart(text="use a finer PartitionKey", document="The checklist", section="Keys"),
    ),
}
GAPS = (
    GapPart(start_s=21, length_s=3, recovered_s=5),
    GapPart(start_s=30, length_s=1, recovered_s=2),
    GapPart(start_s=40, length_s=4, recovered_s=None),
)
MOVED = ThrottlingPart(
    first_s=12, seconds=19, stretches=4, longest_s=5, gap_count=len(GAPS), gaps=GAPS
)
STEP = StepPart(
    rate_per_s=200.0,
    achieved_per_s=199.8,
    throttled_ratio=0.0,
    p99_ms=12.34,
    hold_s=10.0,
    confirming=False,
    billable_transactions=1000,
    failed=None,
)
STEPS = (
    STEP,
    STEP.model_copy(
        update={
            "rate_per_s": 400.0,
            "achieved_per_s": 300.0,
            "throttled_ratio": 0.3,
            "p99_ms": None,
            "failed": "throttled",
        }
    ),
    STEP.model_copy(update={"failed": "not-held"}),
    STEP.model_copy(update={"failed": "latency"}),
    STEP.model_copy(update={"failed": "client-limited"}),
    STEP.model_copy(update={"failed": "of a later version"}),
    STEP.model_copy(update={"confirming": True, "hold_s": 30.0}),
)
SEARCH = SearchPart(
    rate_per_s=199.8,
    at_least=False,
    confirmed=True,
    limited_by="throttled",
    sentence="Highest sustainable rate: 200.",
    steps=STEPS,
)
AUDIT = AuditPart(
    written=2000,
    rows=2000,
    acknowledged=2100,
    kept=2098,
    lost=2,
    covered=0,
    unacknowledged=7,
    applied=4,
    not_applied=3,
    undecided=0,
    examples=("p0 r1", "p0\nr2"),
)
HOTTEST = Held("p0", 1000.0, 2000.0)
OPEN = Live(
    elapsed_s=75.4,
    step=None,
    achieved_per_s=1000.0,
    wanted_per_s=1500.0,
    hottest=HOTTEST,
    throttled_ratio=0.0125,
    service_p99_s=0.00404,
    response_p99_s=0.8,
    waiting=120,
    dropped=3,
    in_flight=18,
    users=20,
    workers=2,
    cpu_percent=45.2,
)
