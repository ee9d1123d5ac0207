"""What a run of queries is said to mean: what they scan counts, not what they return."""

from __future__ import annotations

import pytest

from harness.measure.counts.snapshot import Snapshot
from harness.model.operation import WHOLE_TABLE
from harness.report.headline import result_words
from tests.support.evidence import evidence, recorded, scanned, snapshot_of

DENSITY, SCOPE, FINER, HASH = "query-density", "partition-queries", "hot-partition", "append-only"
ACCOUNTS, BATCH = "account-target", "transactions"


MANY = tuple(f"p{number:02d}" for number in range(11))


@pytest.mark.parametrize(
    ("snapshot", "profile", "practices"),
    [
        # A partition that throttles for its scans: scan less; nothing about writes.
        (scanned(throttled=True), "", [DENSITY, FINER]),
        (scanned(throttled=True, writes_per_s=20), "", [DENSITY, FINER]),
        # What returns all it scans cannot be made denser.
        (scanned(throttled=True, returned=100), "", [SCOPE, FINER]),
        # Half of it is no low density; less is.
        (scanned(entities=150, returned=75), "", [SCOPE, FINER]),
        (scanned(entities=150, returned=74), "", [DENSITY, FINER]),
        # Growing keys send new entities to one end, and queries to where they look.
        (scanned(throttled=True), "compare-append-only", [DENSITY, FINER]),
        # The account alone is over its target.
        (scanned(MANY, queries_per_s=15), "", [DENSITY, ACCOUNTS]),
        # Both are over: what helps both is said once.
        (scanned(MANY, queries_per_s=17), "", [DENSITY, FINER, ACCOUNTS]),
        # Writes are the load where they count for half of it. No partition is near its target.
        (scanned(entities=1, writes_per_s=20, throttled=True), "", [BATCH]),
        (
            scanned(("p0", "p1"), entities=1, writes_per_s=20, throttled=True),
            "compare-append-only",
            [HASH, BATCH],
        ),
        # A quarter of the operations is about the least that is worth a word.
        (scanned(entities=0, queries_per_s=30, writes_per_s=10, throttled=True), "", [BATCH]),
        (scanned(entities=0, queries_per_s=31, writes_per_s=10, throttled=True), "", []),
    ],
)
def test_advice_on_queries_has_a_cause(
    snapshot: Snapshot, profile: str, practices: list[str]
) -> None:
    """Where most of the load is what queries scan, advice is about queries, else it is not."""
    record = recorded(evidence(snapshot), name=profile or "single-partition")
    advised = [part.practice for part in record.verdict.advice]
    assert [name for name in advised if name != "ramp"] == practices


def test_a_lower_bound_is_within_its_target_as_far_as_is_known() -> None:
    """Each share of a limit is a bound too, in the sentence, in the evidence and in the title."""
    record = recorded(evidence(scanned(queries_per_s=10, entities=100, estimated=True)))
    said = [record.verdict.sentence, *record.verdict.evidence]
    assert record.verdict.result == "within_target"
    assert record.verdict.sentence.startswith("Within target as far as is known: ")
    assert result_words(record) == "within target as far as is known"
    assert all("≥50% of" in text for text in said if "50% of" in text)
    assert sum("≥50% of" in text for text in said) == 2
    exact = recorded(evidence(scanned(queries_per_s=10, entities=100)))
    assert "≥" not in "".join([exact.verdict.sentence, *exact.verdict.evidence])
    assert result_words(exact) == "within target"
    # Scans of a table may have taken more of one partition than the busiest one is known to have.
    scans = {f"A/{WHOLE_TABLE}": 5000}
    for besides in ({"B/p0": 100}, {"A/p0": 10, "B/p0": 100}, {}):
        of_table = recorded(evidence(snapshot_of(besides | scans)))
        assert result_words(of_table) == "within target as far as is known"
