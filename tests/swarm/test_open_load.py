"""Scheduled load in real runs: a rate is held, whatever the answers; what cannot be is told.

Rates are low, and what is compared is cumulated: what was served by an instant is never more than
was due by then, and never less than was due a moment before. So a machine that is three times as
slow shows the same. What needs a machine that has time is among the long tests.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable
from typing import Any

import gevent
import gevent.pool
import pytest

from harness.measure.record.record import RunRecord
from harness.workload.pacing import RateStage, Schedule
from tests.support.locust_process import LocustProcess, Stress, forked, wait_until
from tests.support.proxy import Proxy, Seen, refusal

# Rates of a window are exact only where no stall is caught up in it.
pytestmark = [pytest.mark.azurite, pytest.mark.serial]

OPEN = (
    "--headless",
    *("-u", "8", "-r", "100", "--set", "load.run_time_s=6"),
    *("--set", "load.settle_s=0", "--set", "loading.settle_s=0"),
    *("--set", "keys.rows_per_partition=100", "--set", "conditions=[]"),
)
"""A small table and a short window. The rate comes with each run."""
SINGLES = ("--set", "mix.transaction=0")
"""One operation is one entity is one request."""
RATE = 60
LATE_S = 2.0
"""So far behind its schedule may a run be that has time; it catches up."""
PATIENCE_S = 120.0
LONGEST = (
    *("gone", "users", "stages", "poisson"),
    *("fail fast", "two workers", "alone", "too slow"),
)

STAIRS = (
    RateStage(for_s=4, to_per_s=120),
    RateStage(for_s=2, to_per_s=200, from_per_s=200),
    RateStage(for_s=4, to_per_s=60, from_per_s=60),
)
"""A ramp, a burst, and less again."""


def rate(per_s: float) -> tuple[str, ...]:
    return ("--set", f"load.entities_per_s={per_s}")


def stages(*parts: str) -> tuple[str, ...]:
    return ("--set", f"stage=[{', '.join('{' + part + '}' for part in parts)}]")


@pytest.fixture(scope="module")
def slow(proxy_to: Callable[..., Proxy]) -> Proxy:
    """An endpoint that takes 200 ms for every answer."""
    return proxy_to(delay_s=0.2)


@pytest.fixture(scope="module")
def seen_by_itself(proxy_to: Callable[..., Proxy]) -> Proxy:
    """An independent witness of a run with random arrivals."""
    return proxy_to()


@pytest.fixture(scope="module")
def failing(proxy_to: Callable[..., Proxy]) -> Proxy:
    """An endpoint that refuses every read."""

    def refuse(seen: Seen) -> bytes | None:
        if seen.of_table or seen.method != "GET":
            return None
        return refusal(403, "AuthorizationFailure", "No.")

    return proxy_to(answer=refuse)


@pytest.fixture(scope="module")
def going(proxy_to: Callable[..., Proxy]) -> Proxy:
    """An endpoint that is gone for some time."""
    return proxy_to()


@pytest.fixture(scope="module")
def runs(
    stress: Stress,
    host: str,
    slow: Proxy,
    seen_by_itself: Proxy,
    failing: Proxy,
    going: Proxy,
) -> dict[str, LocustProcess]:
    """All runs of one process or of forked workers, a few at once, ended."""
    options: dict[str, tuple[str, ...]] = {
        "alone": ("-H", host, *rate(RATE)),
        "two workers": ("-H", host, *rate(RATE), *forked(2)),
        "stages": (
            *("-H", host, *SINGLES),
            *stages(
                "for_s = 4, to_entities_per_s = 120",
                "for_s = 2, to_entities_per_s = 200, jump = true",
                "for_s = 4, to_entities_per_s = 60, jump = true",
            ),
        ),
        "users": (
            *("-H", slow.url, *SINGLES, "-u", "2", "--summary", "full"),
            *stages(
                "for_s = 2, to_users = 2",
                "for_s = 3, to_users = 10",
                "for_s = 3, to_users = 10",
                "for_s = 4, to_users = 2, jump = true",
            ),
        ),
        "too slow": (
            *("-H", slow.url, *SINGLES, *rate(120)),
            *("--set", "load.give_up_after_s=1.5"),
        ),
        "poisson": (
            *("-H", seen_by_itself.url, "--set", "load.operations_per_s=60"),
            *("--set", "load.arrivals=poisson", "-t", "8s"),
        ),
        "fail fast": (
            *("-H", failing.url, *SINGLES, *rate(RATE), "-t", "40s"),
            *("--set", "fail_fast=true"),
            *("--set", "conditions=['failed_ratio < 5%', 'throttled_ratio < 1%']"),
        ),
        "gone": ("-H", going.url, *SINGLES, *rate(RATE), "-t", "14s"),
    }

    def run(name: str) -> tuple[str, LocustProcess]:
        process = stress(*OPEN, *options[name])
        if name == "gone":
            wait_until(lambda: len(going.of_entities) > 3 * RATE, "the load goes on")
            with going.gone():
                gevent.sleep(3.0)
        process.wait(PATIENCE_S)
        return name, process

    # The longest first; with their low rates five leave two cores half idle.
    names = sorted(options, key=LONGEST.index)
    return dict(gevent.pool.Pool(5).imap_unordered(run, names))


def test_every_run_is_conserved(runs: dict[str, LocustProcess]) -> None:
    """Whatever happened: due = sent + waiting + dropped, sent = answered + in flight."""
    for name, process in runs.items():
        counts = process.record.counts
        assert process.record.invariants == (), name
        assert counts.due == counts.sent + counts.waiting + counts.dropped, name
        assert counts.sent == counts.operations + counts.in_flight, name
        assert "Traceback" not in process.said, name


@pytest.mark.parametrize("name", ["alone", "two workers"])
def test_a_rate_is_held(name: str, runs: dict[str, LocustProcess]) -> None:
    """What is asked for is served, by one process or two, and nothing is dropped."""
    record = runs[name].record
    assert runs[name].process.returncode == 0, runs[name].said
    assert record.workers == (1 if name == "alone" else 2)
    # Half of it, or twice, would be a worker's share gone wrong.
    assert RATE * 0.7 < record.account.entities_per_s.mean < RATE * 1.2
    assert record.counts.dropped == 0
    assert record.counts.in_flight == 0
    assert record.complete


@pytest.mark.parametrize("name", ["alone", "two workers", "poisson"])
def test_response_latency_is_measured(name: str, runs: dict[str, LocustProcess]) -> None:
    """Whatever is due has both latencies, and the one from due on is never the shorter."""
    record = runs[name].record
    parts: list[Any] = [record, *record.operations, *record.partitions]
    for part in parts:
        assert part.service_ms is not None
        assert part.response_ms is not None
        assert part.response_ms.count == part.service_ms.count
        assert part.response_ms.mean >= part.service_ms.mean


def test_a_closed_load_has_no_response_latency(runs: dict[str, LocustProcess]) -> None:
    """Where users wait for answers nothing is due, and nothing is said."""
    record = runs["users"].record
    assert record.service_ms is not None
    assert record.response_ms is None
    assert all(part.response_ms is None for part in record.operations)


def test_arrivals_are_random_where_they_shall_be(
    runs: dict[str, LocustProcess], seen_by_itself: Proxy
) -> None:
    """Gaps between random arrivals scatter as much as they last; their mean rate is the wanted."""
    record = runs["poisson"].record
    operations = sum(part.operations for part in record.series[:-1]) / len(record.series[:-1])
    assert 60 * 0.6 < operations < 60 * 1.4
    sent = [seen.at_s for seen in seen_by_itself.of_entities][record.loading.attempts :]
    gaps = [later - earlier for earlier, later in itertools.pairwise(sent)]
    assert statistics.stdev(gaps) / statistics.mean(gaps) > 0.6


def test_a_rate_can_count_operations(runs: dict[str, LocustProcess]) -> None:
    """60 operations a second with transactions of ten among them are more entities than that."""
    record = runs["poisson"].record
    assert record.account.entities_per_s.mean > 60 * 1.2


def test_stages_are_followed(runs: dict[str, LocustProcess]) -> None:
    """Second by second: a ramp, a burst, and less again; the window is as long as they are."""
    record = runs["stages"].record
    assert record.measured_s == 10
    schedule = Schedule.of(STAIRS)
    series = {part.t - record.window_start: part.entities for part in record.series}
    served = 0.0
    for second in range(10):
        served += series.get(second, 0.0)
        # What is due at the last instant of a second may be counted in the next one.
        assert schedule.due_by(second + 1 - LATE_S) - 2 <= served <= schedule.due_by(second + 1) + 2
    assert record.counts.due == pytest.approx(schedule.due_by(10), abs=2)


def test_stages_of_users_are_followed(runs: dict[str, LocustProcess]) -> None:
    """Each user of a slow endpoint is worth 5 operations a second: their sum follows the stages."""
    record = runs["users"].record
    assert record.measured_s == 12
    series = {part.t - record.window_start: part.operations for part in record.series}
    few, many, few_again = ((series[a] + series[b]) / 2 for a, b in ((0, 1), (6, 7), (10, 11)))
    assert 0 < few <= 11
    assert 2 * few < many <= 51
    assert 0 < few_again <= 11
    assert record.users == 10
    assert runs["users"].stdout.count("2 to 10 users (4 stages)") == 2


def test_users_that_leave_end_their_operation(runs: dict[str, LocustProcess]) -> None:
    """A stage that takes users away loses no answer."""
    assert runs["users"].record.counts.in_flight == 0


def test_what_cannot_be_sent_waits_and_is_dropped(
    runs: dict[str, LocustProcess], slow: Proxy
) -> None:
    """8 users of an endpoint that takes 200 ms send 40 a second, whatever is due."""
    record = runs["too slow"].record
    counts = record.counts
    assert counts.due == pytest.approx(120 * (record.measured_s + 0.5), abs=120)
    assert counts.waiting > 40
    assert counts.dropped > 100
    assert counts.sent < 48 * (record.measured_s + 1)
    assert record.response_ms is not None
    assert record.service_ms is not None
    assert record.service_ms.p50 > 200
    assert 1000 < record.response_ms.p50 < 1500 + 200 * 5


def test_a_rate_that_was_missed_is_not_within_target(runs: dict[str, LocustProcess]) -> None:
    """Waiting users are the endpoint's limit, unless the machine had no time either."""
    verdict = runs["too slow"].record.verdict
    assert verdict.result in ("endpoint_limited", "client_limited"), verdict
    assert "of the wanted 120" in " ".join((verdict.sentence, *verdict.evidence))


def test_a_run_whose_condition_is_lost_ends(runs: dict[str, LocustProcess]) -> None:
    """Half of all operations fail; nobody waits for the end of the 40 s to say so."""
    process = runs["fail fast"]
    assert "'failed_ratio < 5%', which cannot hold any more" in process.record.ended_by
    assert process.record.measured_s < 30
    # A ratio of throttled attempts says nothing about a service that fails.
    assert [condition.passed for condition in process.record.conditions] == [False, None]
    assert process.process.returncode == process.record.exit_code == 1
    (suite,) = process.folder.glob("out/*/junit.xml")
    assert 'failures="1" errors="0"' in suite.read_text(encoding="utf-8")


def test_an_endpoint_that_comes_back_is_loaded_again(runs: dict[str, LocustProcess]) -> None:
    """Errors are counted, the load resumes at its rate, and the run is judged."""
    record = runs["gone"].record
    assert record.ended_by == "run time"
    refused = sum(
        count for name, count in record.attempts_by_status.items() if name.startswith("connection")
    )
    assert refused > RATE
    last = [part.operations - part.failed for part in record.series if part.t >= end_of(record) - 4]
    assert sum(last[:4]) / 4 > RATE * 0.6
    assert record.verdict.result == "failing"
    assert any(gap.length_s >= 2 for gap in record.throttling.gaps)


def end_of(record: RunRecord) -> int:
    """The UTC second after the measured window."""
    return record.window_start + record.measured_s
