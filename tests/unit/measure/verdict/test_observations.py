"""What stands beside a verdict: what was seen, a sentence with figures each."""

from __future__ import annotations

import dataclasses

import pytest

from harness.measure.counts.snapshot import Snapshot
from harness.measure.record.findings import GapPart
from harness.measure.verdict.evidence import Evidence
from harness.measure.verdict.observations import gap_words
from harness.measure.verdict.verdict import judge
from harness.model.outcome import Fault, Outcome, Scope
from harness.model.services.storage import GATEWAY
from tests.support.evidence import (
    START,
    answered_after,
    evidence,
    generator,
    late,
    snapshot_of,
    torn,
)

THROTTLED = snapshot_of({"p0": 1000}, throttled_per_s=1)
HOT = snapshot_of({"p0": 2500}, throttled_per_s=1)
BY_ACCOUNT = snapshot_of({"p0": 1000}, throttled_per_s=1, scope=Scope.ACCOUNT)
SLOW = snapshot_of({"p0": 1000})
BUSY = generator(cpu_percents=(99.0,), cpu_percent_mean=99.0)


def slow_answers(seconds: float) -> Snapshot:
    """20 users wait for all the time and miss the rate."""
    service = answered_after(seconds)
    return dataclasses.replace(
        SLOW, service_ms=service.model_copy(update={"mean": 200_000 / service.count})
    )


LATE = snapshot_of({"p0": 2500}, throttled_per_s=1, answer=(504, "OperationTimedOut"))
"""A partition whose server does not answer in time, as while it is moved."""
UNNAMED = snapshot_of({"p0": 2500}, throttled_per_s=1, answer=(504, ""))
UNANSWERED = snapshot_of({"p0": 1000}, throttled_per_s=1, answer=(0, Fault.READ_TIMEOUT))


ACCOUNTED = dataclasses.replace(
    SLOW, counts=dataclasses.replace(SLOW.counts, due=60_000, dropped=120)
)
TWO = generator(
    cpu_percent_max=99.0,
    cpu_percent_mean=80.0,
    cpu_percents=(80.0, 40.0),
    busy_share=0.1,
    machine_percent_max=97.0,
    machine_busy_share=0.05,
    lag_s_max=0.012,
)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            evidence(SLOW),
            "The mean rate was 1,000 entities/s, limited only by how fast answers came.",
        ),
        (
            evidence(SLOW, wanted_per_s=2000.0),
            "The mean rate was 1,000 entities/s, 50% of the wanted 2,000.",
        ),
        (evidence(SLOW), "Partition 'p0' was the busiest: 1,000 entities/s, 50% of its target."),
        (
            evidence(SLOW, kind=GATEWAY),
            "Partition 'p0' was the busiest: 1,000 entities/s, 50% of the published target.",
        ),
        (evidence(SLOW), "None of 200 attempts was throttled."),
        (
            evidence(THROTTLED),
            "10 of 210 attempts were throttled (4.8%): 0 of them by the account's limit.",
        ),
        (
            evidence(BY_ACCOUNT),
            "10 of 210 attempts were throttled (4.8%): 10 of them by the account's limit.",
        ),
        (
            evidence(LATE),
            "10 of 210 attempts were throttled (4.8%): 0 of them by the account's limit.",
        ),
        (
            evidence(UNNAMED),
            "10 answers 504 had no error code of the service: a proxy on the way may have answered "
            "them.",
        ),
        (
            evidence(UNANSWERED),
            "10 attempts had no answer within the client's time-out, which counts as a failure and "
            "not as throttling: the cause is unknown.",
        ),
        (
            evidence(THROTTLED),
            "Partition 'p0': 4.8% of the attempts were throttled, with 1.050 attempts per "
            "operation.",
        ),
        (
            evidence(late(THROTTLED, 3)),
            "Requests were throttled for 10 s, from second 3 of the load.",
        ),
        (
            evidence(torn(THROTTLED, 3)),
            "No operation succeeded for 3 s, from second 5 of the load, and 90% of the earlier "
            "rate was back after 3 s.",
        ),
        (
            evidence(torn(THROTTLED, 5)),
            "No operation succeeded for 5 s, from second 5 of the load, and the earlier rate was "
            "not reached again.",
        ),
        (
            evidence(
                dataclasses.replace(
                    SLOW,
                    outcomes={
                        Outcome.SUCCESS: 900,
                        Outcome.TIMEOUT: 10,
                        Outcome.CONNECTION: 40,
                        Outcome.NOT_FOUND: 50,
                    },
                )
            ),
            "50 of 1,000 operations failed for good (5.0%): connection, timeout.",
        ),
        (evidence(SLOW), "Service latency was 4.00 ms at the median, 4.00 ms at p99."),
        (
            evidence(dataclasses.replace(SLOW, response_ms=answered_after(0.8))),
            "Service latency was 4.00 ms at the median, 4.00 ms at p99; response latency 800 ms "
            "at p99.",
        ),
        (
            evidence(SLOW, light_latency_s=0.001),
            "Its mean was 4.0 times the 1.00 ms under light load.",
        ),
        (
            evidence(snapshot_of({"p0": 1000}, operations_per_s=1000)),
            "On average 4.0 of 20 users waited for an answer: 1,000 operations/s x 4.00 ms "
            "(Little's law).",
        ),
        (
            evidence(ACCOUNTED, scheduled=True, waiting=40),
            "120 of 60,000 due operations were dropped; 40 were still waiting at the end.",
        ),
        (
            evidence(SLOW, connections=500, connections_in_use=20),
            "At most 20 of 500 connections were in use.",
        ),
        (
            evidence(SLOW, generator=TWO),
            "CPU of the workers, each on one core: 80%, 40% on average, 99% at most, 90% or more "
            "in 10% of the seconds.",
        ),
        (
            evidence(
                SLOW,
                generator=TWO.model_copy(update={"cpu_percents": (80.0, 40.0, 30.0, 20.0, 10.0)}),
            ),
            "CPU of the workers, each on one core: 80%, 40%, 30%, others up to 20% on average, 99% "
            "at most, 90% or more in 10% of the seconds.",
        ),
        (
            evidence(SLOW, generator=TWO),
            "The machine's CPU was 97% busy at most, and saturated in 5.0% of the seconds.",
        ),
        (evidence(SLOW, generator=TWO), "Operations were sent at most 12.0 ms late."),
        (evidence(SLOW, generator=generator()), "The CPU use of the generator is unknown."),
    ],
)
def test_what_was_seen_is_said_with_figures(given: Evidence, says: str) -> None:
    """Each figure that a verdict can rest on has its sentence."""
    assert says in judge(given).evidence


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
    partitions = (calm.partitions[0].model_copy(update={"attempts": attempts}),)
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
    assert "1 of 2,001 attempts was throttled (0.05%): 0 of them" in " ".join(judge(lone).evidence)
    slow = dataclasses.replace(refused_once(), service_ms=slow_answers(0.2).service_ms)
    missed = evidence(slow, wanted_per_s=2000.0, users=1)
    assert "1 attempt was throttled (0.05%) and the generator was not" in judge(missed).sentence
    waits = evidence(slow_answers(0.2), wanted_per_s=2000.0, users=1)
    assert "the only user was waiting for answers" in judge(waits).sentence
    few = evidence(snapshot_of({"p0": 1}, operations_per_s=1, seconds=5))
    assert "5 measured operations are fewer" in judge(few).sentence
