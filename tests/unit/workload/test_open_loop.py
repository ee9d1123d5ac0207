"""The open loop: what is due stays due, over shares that change, rates that change, and stalls."""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.workload.pacing import STOP, ClosedLoop, OpenLoop, Pacer, RateStage, Schedule
from tests.support.examples import examples

RAMP = Schedule.of(
    [
        RateStage(for_s=10.0, to_per_s=200.0),
        RateStage(for_s=10.0, to_per_s=50.0, from_per_s=50.0),
        RateStage(for_s=10.0, to_per_s=300.0),
    ]
)


class Worker:
    """Hands out operations when they are due, and remembers when each was."""

    def __init__(self, pacer: OpenLoop, sizes: list[int]) -> None:
        self.pacer = pacer
        self.sent = 0
        self.due_s: list[float] = []
        self._sizes = itertools.cycle(sizes)

    def keep_up(self, elapsed_s: float) -> None:
        """Hand out all that is due by now."""
        while True:
            due = self.pacer.next(elapsed_s, self.sent)
            if due is STOP or due > elapsed_s:
                return
            size = next(self._sizes)
            self.due_s.append(due)
            self.sent += size


schedules = st.sampled_from(
    [RAMP, Schedule.constant(100.0), Schedule.constant(7.3), RAMP.held(12.0, 80.0)]
)
sizes_of_operations = st.lists(st.integers(1, 20), min_size=1, max_size=5)
instants = st.floats(0.0, 40.0)


def test_operations_are_due_by_the_schedule() -> None:
    """At 10/s one every tenth of a second; a transaction of 5 uses up 5."""
    pacer = OpenLoop(Schedule.constant(10.0))
    assert pacer.next(0.0, 0) == 0.0
    assert pacer.next(0.0, 1) == 0.1
    assert pacer.next(0.0, 6) == 0.6


def test_what_is_due_is_not_put_off_by_late_answers() -> None:
    """An operation that is asked for late keeps its instant, and what is behind is known."""
    pacer = OpenLoop(Schedule.constant(10.0))
    assert pacer.next(5.0, 3) == pytest.approx(0.3)
    assert pacer.behind(5.0, 3) == pytest.approx(47.0)
    assert pacer.behind(5.0, 50) == 0.0
    assert pacer.behind(0.0, 0) == 0.0


def test_from_the_end_on_nothing_is_handed_out() -> None:
    """What is due later never is; what is late may leave until then, and not after."""
    pacer = OpenLoop(Schedule.constant(10.0))
    pacer.end(2.0)
    assert pacer.next(0.0, 19) == 1.9
    assert pacer.next(0.0, 20) is STOP
    assert pacer.next(1.99, 5) == 0.5
    assert pacer.next(2.0, 5) is STOP
    assert pacer.share(1, 2).next(2.0, 0) is STOP
    # What would have come due after the end is no backlog.
    assert pacer.behind(100.0, 5) == pytest.approx(15.0)


def test_a_schedule_that_runs_out_ends_the_load() -> None:
    """After a ramp down to 0 nothing more is ever due."""
    pacer = OpenLoop(
        Schedule.of([RateStage(for_s=2.0, to_per_s=10.0, from_per_s=10.0)]).held(2.0, 0.0)
    )
    assert pacer.next(0.0, 19) is not STOP
    assert pacer.next(0.0, 20) is STOP
    assert pacer.behind(100.0, 18) == pytest.approx(2.0)


@examples(100)
@given(schedules, st.integers(1, 12), instants)
def test_shares_take_turns(schedule: Schedule, count: int, at_s: float) -> None:
    """Operations of one unit: at any time all shares together handed out as much as the whole."""
    whole = OpenLoop(schedule)
    one = Worker(whole, [1])
    workers = [Worker(whole.share(rank, count), [1]) for rank in range(count)]
    for worker in [one, *workers]:
        worker.keep_up(at_s)
    assert abs(sum(worker.sent for worker in workers) - one.sent) <= 1
    due = sorted(due_s for worker in workers for due_s in worker.due_s)
    alone = one.due_s
    assert due[: len(alone)] == pytest.approx(alone[: len(due)], abs=1e-6)


@examples(100)
@given(schedules, st.integers(1, 12), sizes_of_operations, instants)
def test_shares_add_up_to_the_whole(
    schedule: Schedule, count: int, sizes: list[int], at_s: float
) -> None:
    """Operations of any size: at any time the shares have the whole, within one operation each."""
    workers = [Worker(OpenLoop(schedule).share(rank, count), sizes) for rank in range(count)]
    for worker in workers:
        worker.keep_up(at_s)
    total = sum(worker.sent for worker in workers)
    assert abs(total - schedule.due_by(at_s)) <= count * max(sizes) + 1e-6


changes = st.lists(
    st.tuples(st.floats(0.0, 4.0), st.sampled_from(["come", "go", "hold"]), st.floats(0.0, 1.0)),
    max_size=12,
)


@examples(60)
@given(schedules, sizes_of_operations, changes, st.booleans())
def test_changes_at_agreed_instants_keep_the_total(
    schedule: Schedule, sizes: list[int], changes: list[tuple[float, str, float]], early: bool
) -> None:
    """Workers come and go and rates change: no drift, within one operation a worker.

    It makes no difference whether they are told at the instant or before.
    """
    everybody = [Worker(OpenLoop(schedule).share(0, 1), sizes)]
    present = list(everybody)
    now_s = 0.0
    for wait_s, what, chance in changes:
        told_s = now_s if early else now_s + wait_s
        now_s += wait_s
        for worker in everybody:
            worker.keep_up(told_s)
        if what == "hold":
            per_s = 10.0 + 200.0 * chance
            schedule = schedule.held(now_s, per_s)
            for worker in present:
                worker.pacer.hold(now_s, per_s)
            continue
        if what == "go" and len(present) > 1:
            leaver = present.pop(int(chance * (len(present) - 1)))
            leaver.keep_up(now_s)
            leaver.pacer.end(now_s)
        elif what == "come":
            rank = len(present)
            present.append(Worker(OpenLoop(schedule).share(rank, rank + 1, now_s), sizes))
            everybody.append(present[-1])
        for worker in present:
            worker.pacer.reshare(len(present), now_s)
    for at_s in (now_s, now_s + 3.0):
        for worker in everybody:
            worker.keep_up(at_s)
        total = sum(worker.sent for worker in everybody)
        assert abs(total - schedule.due_by(at_s)) <= len(everybody) * max(sizes) + 1e-6


def test_a_change_that_is_heard_late_holds_from_its_instant() -> None:
    """What it brought meanwhile is due at once, with the instants that it should have had."""
    pacer = OpenLoop(Schedule.constant(100.0)).share(0, 2)
    assert pacer.next(3.0, 150) == 3.0
    pacer.reshare(1, from_s=2.0)
    assert pacer.next(3.0, 150) == 2.5
    assert pacer.behind(3.0, 150) == pytest.approx(50.0)


def test_what_was_owed_before_a_new_share_stays_owed() -> None:
    """A worker that is behind keeps its backlog with its instants, and goes on at the new rate."""
    pacer = OpenLoop(Schedule.constant(100.0)).share(0, 1)
    pacer.reshare(4, from_s=2.0)
    assert pacer.next(10.0, 50) == 0.5
    assert pacer.next(10.0, 199) == 1.99
    assert pacer.next(10.0, 200) == 2.0
    assert pacer.next(10.0, 201) == pytest.approx(2.04)
    assert pacer.behind(10.0, 50) == pytest.approx(150.0 + 8.0 * 25.0)


def test_who_comes_later_owes_nothing_before() -> None:
    """A worker that joins at an instant begins there, with its part of the rate of that time."""
    pacer = OpenLoop(RAMP).share(0, 2, from_s=15.0)
    assert pacer.behind(15.0, 0) == 0.0
    assert pacer.next(15.0, 0) == 15.0
    assert pacer.next(15.0, 1) == pytest.approx(15.04)


def test_a_rate_that_is_held_begins_at_its_instant() -> None:
    """Before it the schedule stays as it was; a share keeps its part of the new rate."""
    pacer = OpenLoop(Schedule.constant(10.0)).share(0, 2)
    pacer.hold(from_s=10.0, per_s=200.0)
    assert pacer.next(0.0, 49) == pytest.approx(9.8)
    assert pacer.next(0.0, 51) == pytest.approx(10.01)
    pacer.reshare(1, from_s=11.0)
    assert pacer.next(0.0, 152) == pytest.approx(11.01)


def test_changes_come_in_the_order_of_their_instants() -> None:
    """One that would undo part of an earlier one is a mistake of who tells it."""
    pacer = OpenLoop(Schedule.constant(10.0)).share(0, 2, from_s=1.0)
    pacer.reshare(3, from_s=5.0)
    pacer.reshare(3, from_s=5.0)
    with pytest.raises(ValueError, match="cannot follow"):
        pacer.reshare(2, from_s=4.0)
    with pytest.raises(ValueError, match="cannot follow"):
        pacer.hold(from_s=4.0, per_s=1.0)
    with pytest.raises(ValueError, match="is invalid"):
        pacer.hold(from_s=6.0, per_s=-1.0)
    # None of them left a trace.
    assert pacer.behind(8.0, 0) == pytest.approx(4.0 * 5.0 + 3.0 * 10.0 / 3.0)


@pytest.mark.parametrize(("rank", "count"), [(-1, 2), (2, 2), (0, 0)])
def test_a_rank_outside_the_workers_is_refused(rank: int, count: int) -> None:
    """A share that nobody has is an error."""
    with pytest.raises(ValueError, match="workers"):
        OpenLoop(RAMP).share(rank, count)


@pytest.mark.parametrize("sizes", [[1], [1, 1, 10], [100]])
def test_random_arrivals_have_the_rate_of_the_schedule(sizes: list[int]) -> None:
    """Over many operations as much is due as without chance, six standard deviations aside."""
    worker = Worker(OpenLoop(Schedule.constant(1000.0), poisson=random.Random(1)), sizes)
    worker.keep_up(200.0)
    mean_square = sum(size * size for size in sizes) / sum(sizes)
    deviation = math.sqrt(200_000 * mean_square)
    assert worker.sent == pytest.approx(200_000, abs=6 * deviation)


@pytest.mark.parametrize("count", [1, 4])
def test_random_arrivals_are_a_poisson_process(count: int) -> None:
    """Of one worker or of four: gaps as wide as they vary, a third of them wider than the mean."""
    rng = random.Random(1)
    whole = OpenLoop(Schedule.constant(100.0), poisson=rng)
    workers = [Worker(whole.share(rank, count), [1]) for rank in range(count)]
    for worker in workers:
        worker.keep_up(500.0)
    due = sorted(due_s for worker in workers for due_s in worker.due_s)
    gaps = [later - earlier for earlier, later in itertools.pairwise(due)]
    mean = sum(gaps) / len(gaps)
    deviation = math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / len(gaps))
    assert mean == pytest.approx(0.01, rel=0.05)
    assert deviation == pytest.approx(mean, rel=0.05)
    assert sum(gap > mean for gap in gaps) / len(gaps) == pytest.approx(math.exp(-1), rel=0.05)


def test_random_arrivals_are_those_of_their_source() -> None:
    """The same seed gives the same instants, and asking twice changes none."""
    seen = []
    for times in (1, 3):
        pacer = OpenLoop(RAMP, poisson=random.Random(7))
        answers = []
        for sent in range(100):
            for _ in range(times):
                pacer.behind(5.0, sent)
                due = pacer.next(5.0, sent)
            answers.append(due)
        seen.append(answers)
    assert seen[0] == seen[1]


STALL_FROM_S, STALL_TO_S = 8.0, 9.0


def answered_at(sent_s: float, service_s: float) -> float:
    """When a server that stops for a second answers."""
    done_s = sent_s + service_s
    return done_s if done_s < STALL_FROM_S or sent_s >= STALL_TO_S else STALL_TO_S + service_s


def latencies(pacer: Pacer) -> tuple[list[float], list[float]]:
    """Service and response latencies of 20 users over 20 s, sorted."""
    rng = random.Random(1)
    service, response = [], []
    free = [0.0] * 20
    sent = 0
    while free:
        now_s = heapq.heappop(free)
        due = pacer.next(now_s, sent)
        if due is STOP:
            continue
        sent += 1
        sent_s = max(now_s, due)
        done_s = answered_at(sent_s, rng.uniform(0.005, 0.015))
        service.append(done_s - sent_s)
        response.append(done_s - due)
        heapq.heappush(free, done_s)
    return sorted(service), sorted(response)


def p99(values: list[float]) -> float:
    return values[math.ceil(0.99 * len(values)) - 1]


@pytest.mark.parametrize(
    "make",
    [
        lambda: OpenLoop(Schedule.constant(200.0)),
        lambda: OpenLoop(Schedule.constant(200.0), poisson=random.Random(3)),
    ],
    ids=["constant", "poisson"],
)
def test_a_stall_is_seen_by_all_that_it_held_up(make: Callable[[], OpenLoop]) -> None:
    """A server stops for 1 s in 20 s at 200 operations/s: the response latencies show it.

    Of 4,000 operations 200 were due meanwhile, the worst 40 of them 0.8 s before its end. Service
    latencies show it for the 20 that were on their way, which are fewer than a hundredth.
    """
    pacer = make()
    pacer.end(20.0)
    service, response = latencies(pacer)
    assert len(response) == pytest.approx(4000, rel=0.05)
    assert p99(response) == pytest.approx(0.8, abs=0.1)
    assert p99(service) < 0.03
    assert response[len(response) // 2] < 0.03
    # It catches up: nothing that was due stays behind.
    assert pacer.behind(20.0, len(response)) <= 3.0


def test_a_closed_loop_hides_the_stall() -> None:
    """The same with a cap in place of a schedule: what was not sent is not seen."""
    pacer = ClosedLoop(200.0)
    pacer.end(20.0)
    service, response = latencies(pacer)
    assert p99(response) == p99(service) < 0.03
    assert len(response) < 3900
