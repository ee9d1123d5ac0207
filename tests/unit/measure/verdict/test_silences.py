"""Silences of an endpoint: no answer comes for a part of a second, although requests wait."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.measure.counts.ledger import Ledger
from harness.measure.counts.snapshot import Snapshot
from harness.measure.record.findings import SilencesPart
from harness.measure.verdict.throttling import silences_of
from harness.measure.verdict.verdict import judge
from harness.model.operation import Kind, Operation
from harness.model.outcome import Attempt, Fault, Result
from tests.support.evidence import evidence, generator
from tests.support.results import done

START = 1_700_000_000
SECONDS = 10
READ = Operation(kind=Kind.POINT_QUERY, partition_key="p", row_key="r")
Times = tuple[float, float]
"""When a request was sent, from the start of the window, and when its answer came."""


def answered(times: Iterable[Times]) -> list[Result]:
    return [done(READ, START + sent, until - sent) for sent, until in times]


def stopping(
    for_s: float, *, every_s: float = 1.0, per_s: int = 100, phase_s: float = 0.0
) -> list[Times]:
    """A schedule against an endpoint that answers nothing for a part of every period."""
    times = []
    for number in range(SECONDS * per_s):
        sent = number / per_s
        into = (sent + phase_s) % every_s
        times.append((sent, sent + 0.004 + max(0.0, for_s - into)))
    return times


def steady(latency_s: float, users: int, apart_s: float = 0.0) -> list[Times]:
    """Users that send one request after another."""
    return [
        (user * apart_s + number * latency_s, user * apart_s + (number + 1) * latency_s - 1e-4)
        for user in range(users)
        for number in range(int(SECONDS / latency_s))
    ]


def snapshot_of(*workers: Sequence[Result]) -> Snapshot:
    whole = Ledger("master")
    for number, results in enumerate(workers):
        worker = Ledger(f"worker {number}")
        worker.open_window(START, START + SECONDS)
        for result in sorted(results, key=lambda one: one.done_s):
            worker.add(result)
        whole.merge(worker.drain())
    return whole.snapshot(start=START, end=START + SECONDS)


def found(*workers: Sequence[Times]) -> SilencesPart | None:
    return silences_of(snapshot_of(*map(answered, workers)))


@pytest.mark.parametrize(
    ("workers", "count", "longest_s"),
    [
        # It stops for 0.8 s of every second, whatever the number of workers.
        ([stopping(0.8)], SECONDS, 0.8),
        ([stopping(0.8), stopping(0.8, per_s=70)], SECONDS, 0.8),
        ([stopping(0.4, every_s=2.0)], SECONDS // 2, 0.4),
        ([stopping(3.0, every_s=20.0, phase_s=15.0)], 1, 3.0),
        # A worker that sends nothing proves nothing.
        ([stopping(0.8), []], SECONDS, 0.8),
        # One process of it stops, another one answers meanwhile.
        ([stopping(0.8), stopping(0.0)], 0, 0.0),
        ([stopping(0.5), stopping(0.5, phase_s=0.5)], 0, 0.0),
        # It is quick, or slow for everybody, in step or not.
        ([stopping(0.0)], 0, 0.0),
        ([stopping(0.25)], 0, 0.0),
        ([steady(0.4, users=1)], 0, 0.0),
        ([steady(0.4, users=20)], 0, 0.0),
        ([steady(0.9, users=20, apart_s=0.01)], 0, 0.0),
        # Nobody asked for anything meanwhile.
        ([[(float(second), second + 0.004) for second in range(SECONDS)] * 20], 0, 0.0),
        # One slow query of a single user, among quick ones, is no silence.
        ([[(n * 0.5, n * 0.5 + (0.45 if n % 2 else 0.004)) for n in range(19)]], 0, 0.0),
        ([[]], 0, 0.0),
    ],
)
def test_a_silence_is_a_time_without_answers_in_which_requests_wait(
    workers: list[list[Times]], count: int, longest_s: float
) -> None:
    """An answer to any worker ends it; what is missing of its length is less than two slots."""
    silences = found(*workers)
    assert (0 if silences is None else silences.count) == count
    if silences is not None:
        assert longest_s - 0.04 <= silences.longest_s <= longest_s + 0.005
        assert silences.total_s == pytest.approx(count * longest_s, abs=count * 0.04)


def test_refusals_are_answers_and_time_outs_are_none() -> None:
    """An endpoint that refuses answers; one that lets the client's time run out does not."""
    refused = Attempt(status=503, error_code="ServerBusy", sent_s=START + 4.4, latency_s=0.004)
    unanswered = Attempt(
        status=0,
        error_code="read_timeout",
        fault=Fault.READ_TIMEOUT,
        sent_s=START + 4.02,
        latency_s=0.5,
    )
    quick = [time for time in stopping(0.0) if not 4.0 < time[1] < 5.0]
    late = [*answered(quick), done(READ, START + 4.02, 0.97)]
    for attempt, longest_s in ((refused, 0.54), (unanswered, 0.94)):
        ledger = Ledger()
        ledger.open_window(START, START + SECONDS)
        ledger.add_attempt(READ, attempt)
        for result in late:
            ledger.add(result)
        silences = silences_of(ledger.snapshot(start=START, end=START + SECONDS))
        assert silences is not None
        assert silences.longest_s == pytest.approx(longest_s, abs=0.021)


@given(st.lists(st.integers(0, 3), min_size=SECONDS * 20, max_size=SECONDS * 20), st.randoms())
def test_who_got_an_answer_and_when_it_was_reported_changes_nothing(
    owners: list[int], rng: random.Random
) -> None:
    """Silences are the same for any division over workers, in any order of their reports."""
    results = answered(stopping(0.8, per_s=20))
    whole = Ledger("master")
    deltas = []
    for owner in range(4):
        worker = Ledger(str(owner))
        worker.open_window(START, START + SECONDS)
        for number, (result, of) in enumerate(zip(results, owners, strict=True)):
            if of == owner:
                worker.add(result)
            if number % 37 == 0:
                deltas.append(worker.drain())
        deltas.append(worker.drain())
    rng.shuffle(deltas)
    for delta in deltas:
        whole.merge(delta)
    snapshot = whole.snapshot(start=START, end=START + SECONDS)
    assert silences_of(snapshot) == silences_of(snapshot_of(results))


def test_silences_are_evidence_but_not_those_of_a_busy_machine() -> None:
    """A generator without CPU time reads answers late, so that its silences prove nothing."""
    stalled = snapshot_of(answered(stopping(0.8)))
    said = "The endpoint did not answer 10 times, for up to 0.8 s, although requests were waiting"
    assert said in " ".join(judge(evidence(stalled)).evidence)
    full = dict.fromkeys(range(START, START + SECONDS), 99.0)
    for late in ({"machine_by_second": full}, {"cpu_by_second": full}, {"lag_s_max": 2.5}):
        held_up = judge(evidence(stalled, generator=generator(**late)))
        assert said not in " ".join(held_up.evidence)


@pytest.mark.parametrize(
    ("busy", "shown"),
    [
        # However many seconds were full: those of the silence, from 5.0 to 5.6 s, were not.
        ({0, 1, 2, 3, 7, 8, 9}, True),
        ({5}, False),
        # The machine was full until shortly before it, and its last second is not all of one.
        ({4}, False),
        ({6}, True),
    ],
)
def test_a_silence_is_said_if_no_machine_was_full_meanwhile(busy: set[int], shown: bool) -> None:
    """What counts is when a machine was full, and not for which share of the run."""
    once = snapshot_of(answered(stopping(0.6, every_s=20.0, phase_s=15.0)))
    sampled = generator(
        machine_by_second={START + second: 98.0 for second in busy},
        machine_busy_share=len(busy) / SECONDS,
    )
    judged = judge(evidence(once, generator=sampled))
    assert ("did not answer" in " ".join(judged.evidence)) == shown
