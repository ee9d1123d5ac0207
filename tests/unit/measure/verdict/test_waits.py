"""What users wait for: an answer, the next attempt, or a connection."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from harness.measure.counts.ledger import Ledger
from harness.measure.counts.snapshot import Snapshot
from harness.measure.verdict.verdict import judge
from harness.model.operation import Kind, Operation
from harness.model.outcome import Attempt
from harness.report.headline import headline
from harness.report.sentences import next_step
from tests.support.evidence import (
    CALM,
    evidence,
    generator,
    recorded,
    snapshot_of,
    watched_evidence,
)
from tests.support.results import done

START = 1_700_000_000
SECONDS = 10
WRITE = Operation(kind=Kind.UPSERT_MERGE, partition_key="p", row_key="r")
QUERY = Operation(kind=Kind.QUERY, partition_key="p", row_key="")


def attempt(sent_s: float, took_s: float, status: int = 204) -> Attempt:
    return Attempt(status=status, sent_s=START + sent_s, latency_s=took_s)


def retried(
    backing_off_s: float = 0.0, queued_s: float = 0.0, outside_s: float = 0.0, *, code: int = 502
) -> Snapshot:
    """Twenty operations a second of 50 ms in two attempts, the first one answered ``code``."""
    ledger = Ledger()
    ledger.open_window(START, START + SECONDS)
    for number in range(SECONDS * 20):
        second = float(number // 20)
        again = second + 0.02 + backing_off_s + outside_s
        attempts = (attempt(second, 0.02, code), attempt(again, 0.03))
        took = again + 0.03 - second
        waits: dict[str, Any] = {"queued_s": queued_s, "outside_s": outside_s}
        ledger.add(done(WRITE, START + second, took, attempts=attempts, **waits))
    return ledger.snapshot(start=START, end=START + SECONDS)


@pytest.mark.parametrize(
    ("snapshot", "answering", "backing_off", "queued"),
    [
        (retried(), 1.0, 0.0, 0.0),
        (retried(backing_off_s=0.5), 1.0, 10.0, 0.0),
        (retried(queued_s=0.2), 1.0, 0.0, 4.0),
        # A wait for a connection between two attempts is no back-off.
        (retried(backing_off_s=0.5, queued_s=0.2, outside_s=0.2), 1.0, 10.0, 4.0),
    ],
)
def test_what_users_wait_for_is_told_apart(
    snapshot: Snapshot, answering: float, backing_off: float, queued: float
) -> None:
    """By Little's law for each of the three."""
    found = evidence(snapshot, users=20)
    assert found.answering == pytest.approx(answering, rel=0.01)
    assert found.backing_off == pytest.approx(backing_off, rel=0.01, abs=1e-9)
    assert found.queued == pytest.approx(queued, rel=0.01)


def test_further_pages_of_a_query_are_no_retries() -> None:
    """The time until the next page leaves follows no failure."""
    pages = (attempt(1.0, 0.1, 200), attempt(2.0, 0.1, 200))
    assert done(QUERY, START + 1.0, 1.1, attempts=pages).backing_off_s == 0.0


def test_the_sentence_says_what_they_wait_for() -> None:
    """Users in back-off do not wait for an answer."""
    found = evidence(retried(backing_off_s=0.5, queued_s=0.2, outside_s=0.2), users=20)
    assert (
        "On average 1.0 of 20 users waited for an answer, 10.0 in back-off before a retry and 4.0 "
        "for a connection; 11.0 operations were in progress: 20.0 operations/s x 550 ms (Little's "
        "law)."
    ) in judge(found).evidence


@pytest.mark.parametrize(
    ("snapshot", "result", "limited_by", "says"),
    [
        # All wait for answers: the endpoint is slow.
        (
            retried(code=409),
            "endpoint_limited",
            "endpoint",
            "the only user was waiting for answers",
        ),
        # They wait for their next attempt: a faster endpoint would change nothing.
        (
            retried(backing_off_s=0.5, code=409),
            "client_limited",
            "users",
            "on average 1.0 of 11 users waited for an answer and 10.0 in back-off before a retry",
        ),
    ],
)
def test_users_in_back_off_make_no_endpoint_slow(
    snapshot: Snapshot, result: str, limited_by: str, says: str
) -> None:
    """A missed rate is the endpoint's where users wait for its answers, and only there."""
    users, light_s = (1, 0.0001) if limited_by == "endpoint" else (11, None)
    # Many failures would be the verdict themselves.
    found = evidence(snapshot, users=users, wanted_per_s=1000.0, light_latency_s=light_s)
    verdict = judge(found)
    assert (verdict.result, verdict.limited_by) == (result, limited_by)
    assert says in verdict.sentence


def test_a_busy_machine_keeps_nobody_in_back_off() -> None:
    """Most users wait for their next attempt, however busy the machine is."""
    full = generator(machine_busy_share=0.9)
    given = evidence(
        retried(backing_off_s=0.5, code=409), users=11, wanted_per_s=1000.0, generator=full
    )
    verdict = judge(given)
    assert (verdict.result, verdict.limited_by) == ("client_limited", "users")
    assert (
        "entities/s is the limit of so many users, whatever the endpoint would serve."
        in verdict.sentence
    )


def test_a_busy_machine_does_not_hide_that_operations_left_late() -> None:
    """A worker that was stopped for 3 s may be what the rate lacks, and not the machine."""
    late = generator(machine_busy_share=0.9, lag_s_max=3.0)
    verdict = judge(evidence(CALM, wanted_per_s=5000.0, generator=late))
    assert "in 90% of the seconds, and operations were sent up to 3,000 ms late" in verdict.sentence


def test_no_more_users_wait_than_there_are() -> None:
    """An operation that began before the window counts with all its latency."""
    said = judge(evidence(retried(backing_off_s=0.5), users=5)).evidence
    assert any("1.0 of 5 users waited for an answer and 5.0 in back-off" in line for line in said)


def test_latency_that_grew_by_back_off_is_no_sign_of_a_full_endpoint() -> None:
    """Only the time of the attempts is held against the latency under light load."""
    found = evidence(retried(backing_off_s=0.5), users=11, light_latency_s=0.05)
    assert found.growth == pytest.approx(1.0, rel=0.01)


@pytest.mark.parametrize(("took_s", "limited_by"), [(0.005, "load"), (0.2, "unknown")])
def test_an_application_that_waits_for_answers_may_not_be_the_limit(
    took_s: float, limited_by: str
) -> None:
    """Four requests in progress on average may be all that it can have."""
    ledger = Ledger()
    ledger.open_window(START, START + SECONDS)
    for number in range(SECONDS * 20):
        sent_s = float(number // 20)
        ledger.add(done(WRITE, START + sent_s, took_s, attempts=(attempt(sent_s, took_s),)))
    snapshot = ledger.snapshot(start=START, end=START + SECONDS)
    verdict = judge(watched_evidence(snapshot))
    assert (verdict.result, verdict.limited_by) == ("within_target", limited_by)
    says = any("asked for no more" in one for one in verdict.evidence)
    assert says is (limited_by == "load")


def test_a_stage_beyond_the_endpoint_is_no_limit_of_the_generator() -> None:
    """On average users were free; operations waited in the seconds in which they were not."""
    calm = snapshot_of({"p0": 100}, seconds=20)
    points = tuple(
        dataclasses.replace(point, waiting=40, dropped=30) if place < 6 else point
        for place, point in enumerate(calm.series)
    )
    counts = dataclasses.replace(calm.counts, due=calm.counts.due + 180, dropped=180)
    snapshot = dataclasses.replace(calm, series=points, counts=counts)
    given = evidence(snapshot, wanted_per_s=190.0, scheduled=True, steady=False)
    verdict = judge(given)
    assert (verdict.result, verdict.limited_by) == ("endpoint_limited", "unknown")
    assert "in 6 of 20 s operations were due that waited for answers" in verdict.sentence
    record = recorded(given)
    assert "all users waited" not in headline(record)
    assert next_step(record) == "Raise load.users from 20 to more than 20."


def test_operations_that_all_leave_late_are_beyond_the_endpoint_too() -> None:
    """The mean is that of the load; in a stage more was asked for than was served in time."""
    calm = snapshot_of({"p0": 100}, seconds=20)
    points = tuple(
        dataclasses.replace(point, waiting=40 if place < 6 else 0)
        for place, point in enumerate(calm.series)
    )
    snapshot = dataclasses.replace(calm, series=points)
    for busy, result in ((0.0, "endpoint_limited"), (100.0, "within_target")):
        cpu = {point.second: busy for point in points}
        given = evidence(
            snapshot,
            generator=generator(cpu_by_second=cpu),
            wanted_per_s=100.0,
            scheduled=True,
            steady=False,
        )
        assert judge(given).result == result
    steady = evidence(snapshot, wanted_per_s=100.0, scheduled=True)
    assert judge(steady).result == "within_target"
    assert "later than was asked" in headline(
        recorded(evidence(snapshot, wanted_per_s=100.0, steady=False, light_latency_s=0.001))
    )


def test_only_free_users_send_on_time() -> None:
    """Operations that wait for a user are late, however quick the generator is."""
    given = evidence(snapshot_of({"p0": 100}), generator=generator(cpu_percents=(40.0,)))
    assert judge(given).evidence[-1] == "Free users sent operations at most 0 ms late."
