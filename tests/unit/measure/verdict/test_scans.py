"""What a run of queries is said to mean: what they scan counts, not what they return."""

from __future__ import annotations

import pytest

from harness.measure.counts.ledger import Ledger
from harness.measure.counts.snapshot import Snapshot
from harness.model.operation import WHOLE_TABLE, Kind, Operation
from harness.model.outcome import Attempt, Outcome, Scope
from harness.report.headline import result_words
from tests.support.evidence import START, evidence, recorded, scanned, snapshot_of
from tests.support.results import done

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


@pytest.mark.parametrize(
    ("lost", "only"),
    [
        ({Kind.QUERY: 5}, True),
        ({Kind.QUERY: 5, Kind.INSERT: 1}, False),
    ],
)
def test_that_queries_alone_were_throttled_is_said(lost: dict[Kind, int], *, only: bool) -> None:
    """Writes to the same partitions were served: it is no limit of what the partitions take."""
    ledger = Ledger()
    ledger.open_window(START, START + 10)
    for second in range(START, START + 10):
        ok = Attempt(status=204, sent_s=second, latency_s=0.004)
        busy = Attempt(status=503, sent_s=second, latency_s=0.1, scope=Scope.PARTITION)
        for kind in (Kind.QUERY, Kind.INSERT):
            asked = Operation(kind=kind, partition_key="p0")
            for number in range(20):
                refused = number < lost.get(kind, 0)
                outcome = Outcome.THROTTLED if refused else Outcome.SUCCESS
                attempts = (busy if refused else ok,)
                ledger.add(done(asked, second, 0.004, outcome=outcome, attempts=attempts))
    found = recorded(evidence(ledger.snapshot(start=START, end=START + 10))).verdict
    assert (". Only partition_scan failed for good" in found.sentence) == only


def test_a_mean_of_scanned_entities_that_is_a_lower_bound_says_so() -> None:
    """A query that was refused may have scanned some."""
    for estimated, words in ((False, ": 150.0 a query"), (True, ": at least 150.0 a query")):
        snapshot = scanned(entities=150, returned=75, estimated=estimated)
        advice = recorded(evidence(snapshot)).verdict.advice
        assert any(words in part.why for part in advice)
