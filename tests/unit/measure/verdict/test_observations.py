"""What stands beside a verdict: what was seen, a sentence with figures each."""

from __future__ import annotations

import dataclasses

from harness.measure.counts.snapshot import Snapshot
from harness.measure.record.findings import GapPart
from harness.measure.verdict.observations import gap_words
from harness.measure.verdict.verdict import judge
from harness.model.outcome import Scope
from tests.support.evidence import (
    START,
    answered_after,
    evidence,
    late,
    snapshot_of,
    torn,
)
from tests.support.records import altered

THROTTLED = snapshot_of({"p0": 1000}, throttled_per_s=1)
SLOW = snapshot_of({"p0": 1000})


def slow_answers(seconds: float) -> Snapshot:
    """20 users wait for all the time and miss the rate."""
    service = answered_after(seconds)
    return dataclasses.replace(SLOW, service_ms=altered(service, mean=200_000 / service.count))


def test_what_is_not_known_is_not_said() -> None:
    """Without a schedule, connections or an idle latency there is no sentence about them."""
    said = " ".join(judge(evidence(SLOW)).evidence)
    assert not any(word in said for word in ("due", "connections", "light load", "response"))


def test_a_torn_run_says_so_in_its_verdict() -> None:
    """A partition that was away shows in the sentence: from when on, for how long, and after."""
    given = evidence(torn(late(THROTTLED, 4), 3))
    verdict = judge(given)
    assert (
        "all of them for partition 'p0' (1,000 entities/s); requests were throttled for 10 s, "
        "from second 4 of the load; no operation succeeded for 3 s, from second 9 of the load, and "
        "90% of the earlier rate was back after 3 s." in verdict.sentence
    )
    assert given.throttling.first_s == 4
    assert given.throttling.gap_count == 1


def test_what_never_began_is_not_said_to_be_lost() -> None:
    """A rate that was not there before an outage cannot be reached again."""
    assert gap_words(GapPart(start_s=0, length_s=8, recovered_s=None)).endswith(" of the load")
    assert gap_words(GapPart(start_s=1, length_s=7, recovered_s=None)).endswith("reached again")


def test_many_gaps_are_counted() -> None:
    """Three gaps are told in full, of more there is the count."""
    points = [
        dataclasses.replace(point, entities=0, unsuccessful=point.operations)
        if point.second % 4 < 2
        else point
        for point in snapshot_of({"p0": 1000}, seconds=20, throttled_per_s=1).series
    ]
    given = evidence(dataclasses.replace(THROTTLED, end=START + 20, series=tuple(points)))
    said = judge(given).evidence
    assert sum("No operation succeeded for 2 s" in line for line in said) == 3
    assert "There were 5 such interruptions." in said


def test_a_run_without_a_window_is_described_too() -> None:
    """Nothing is divided by a window that never opened."""
    nothing = dataclasses.replace(SLOW, start=0, end=0, service_ms=None)
    verdict = judge(evidence(nothing, wanted_per_s=1000.0, light_latency_s=0.1))
    assert verdict.result == "inconclusive"
    assert verdict.evidence[0] == "No rate was measured because the measured window did not open."
    unsent = dataclasses.replace(nothing, attempts={})
    assert "Nothing was sent." in judge(evidence(unsent)).evidence


def refused_once() -> Snapshot:
    """One throttled attempt among 2,001."""
    calm = snapshot_of({"p0": 1000}, operations_per_s=200)
    attempts = {**calm.attempts, (503, "ServerBusy", Scope.PARTITION): 1}
    counts = dataclasses.replace(calm.counts, attempts=2001)
    partitions = (altered(calm.partitions[0], attempts=attempts),)
    return dataclasses.replace(calm, attempts=attempts, counts=counts, partitions=partitions)


def test_one_is_said_in_the_singular() -> None:
    """A count of one has a word of one."""
    given = evidence(
        snapshot_of({"p0": 1000}, operations_per_s=10),
        users=1,
        connections=1,
        connections_in_use=1,
        scheduled=True,
        waiting=1,
    )
    said = " ".join(judge(given).evidence)
    assert "of 1 user waited" in said
    assert "At most 1 of 1 connection was in use." in said
    lone = evidence(refused_once(), users=1)
    assert "1 attempt was throttled (0.05%)" in judge(lone).sentence
    assert "1 of 2,001 attempts was throttled (0.05%): none" in " ".join(judge(lone).evidence)
    slow = dataclasses.replace(refused_once(), service_ms=slow_answers(0.2).service_ms)
    missed = evidence(slow, wanted_per_s=2000.0, users=1)
    assert "1 attempt was throttled (0.05%) and the generator was not" in judge(missed).sentence
    waits = evidence(slow_answers(0.2), wanted_per_s=2000.0, users=1)
    assert "the only user was waiting for answers" in judge(waits).sentence
    few = evidence(snapshot_of({"p0": 1}, operations_per_s=1, seconds=5))
    assert "5 measured operations are fewer" in judge(few).sentence
