"""What a run of queries is said to mean: what they scan counts, not what they return."""

from __future__ import annotations

import pytest

from harness.measure.counts.ledger import Ledger
from harness.measure.counts.snapshot import Snapshot
from harness.measure.verdict.verdict import judge
from harness.model.operation import WHOLE_TABLE, Kind, Operation
from harness.model.outcome import Attempt, Scope
from tests.support.evidence import START, evidence, recorded, snapshot_of
from tests.support.results import done

DENSITY, SCOPE, FINER, HASH = "query-density", "partition-queries", "hot-partition", "append-only"
ACCOUNTS, BATCH = "account-target", "transactions"


def scanned(
    keys: tuple[str, ...] = ("p0",),
    *,
    queries_per_s: int = 20,
    entities: int = 125,
    returned: int = 2,
    writes_per_s: int = 0,
    throttled: bool = False,
    estimated: bool = False,
) -> Snapshot:
    """Each key is queried and written so often for ten seconds; a write counts 1."""
    ledger = Ledger()
    ledger.open_window(START, START + 10)
    query = {"entities": entities, "entities_returned": returned, "estimated": estimated}
    for second in range(START, START + 10):
        at_s = float(second)
        attempts: tuple[Attempt, ...] = (Attempt(status=200, sent_s=at_s, latency_s=0.004),)
        if throttled:
            busy = Attempt(status=503, sent_s=at_s, latency_s=0.1, scope=Scope.PARTITION)
            attempts = (busy, *attempts)
        for key in keys:
            for kind, count, counts in (
                (Kind.QUERY, queries_per_s, query),
                (Kind.INSERT, writes_per_s, {"entities": 1}),
            ):
                for _ in range(count):
                    asked = Operation(kind=kind, partition_key=key)
                    ledger.add(done(asked, at_s, 0.004, attempts=attempts, **counts))
    return ledger.snapshot(start=START, end=START + 10)


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


@pytest.mark.parametrize(
    ("snapshot", "says"),
    [
        # A partition that queries make hot.
        (
            scanned(),
            "nothing was throttled, but the server might run too hot in production; queries may "
            "scan too many entities",
        ),
        # One that writes make hot.
        (snapshot_of({"p0": 2500}), "run too hot in production; the partition keys may be too"),
        # The account alone: keys are no cause, and no server is known to be hot.
        (
            scanned(MANY, queries_per_s=15),
            "but the account might throttle in production; queries may scan too many entities.",
        ),
        (
            snapshot_of({f"p{number:02d}": 1900 for number in range(11)}),
            "but the account might throttle in production.",
        ),
    ],
)
def test_the_sentence_names_what_made_the_rate(snapshot: Snapshot, says: str) -> None:
    """Coarse keys are no cause where queries scan too much, or where the account is the limit."""
    assert says in judge(evidence(snapshot)).sentence


def test_estimated_counts_are_in_the_footnote() -> None:
    """What is counted may be too little."""
    verdict = judge(evidence(scanned(entities=50, estimated=True)))
    assert verdict.footnote == "100% of the entities are estimated (minimum)."


def test_a_lower_bound_is_said_wherever_it_stands() -> None:
    """A rate with estimated entities is called so, and no other."""
    given = evidence(scanned((WHOLE_TABLE,), entities=50, writes_per_s=300, estimated=True))
    verdict = judge(given)
    assert "the account at least 1," in verdict.sentence
    assert "no partition served 0 entities/s" in verdict.sentence
    said = " ".join(verdict.evidence)
    assert "The mean rate was at least 1," in said
    assert "over several partitions scanned at least 1,300 entities/s" in said
    alone = judge(evidence(scanned(entities=50, estimated=True))).sentence
    assert "served at least 1,000 entities/s" in alone


def test_exact_counts_are_no_least() -> None:
    """Only what a client cannot know is marked."""
    assert "at least" not in judge(evidence(scanned())).sentence


@pytest.mark.parametrize(
    ("snapshot", "says"),
    [
        (
            scanned(),
            "Queries scanned 25,000 entities, 100% of all counted entities, and returned 400.",
        ),
        (
            scanned(entities=125, writes_per_s=2500, estimated=True),
            "Queries scanned 25,000 entities, 50% of all counted entities, and returned 400; for "
            "200 of 200 queries this is a lower bound.",
        ),
        (
            scanned((WHOLE_TABLE,)),
            "Queries over several partitions scanned 2,500 entities/s, which count for the "
            "account; the share of each partition is unknown.",
        ),
    ],
)
def test_evidence_says_what_queries_scanned(snapshot: Snapshot, says: str) -> None:
    """Beside what they returned, of what share of the load, and how sure it is."""
    assert says in judge(evidence(snapshot)).evidence


def test_without_queries_nothing_is_said_of_them() -> None:
    """Writes scan nothing."""
    assert not any("ueries" in line for line in judge(evidence(snapshot_of({"p0": 9}))).evidence)
