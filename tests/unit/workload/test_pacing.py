"""When operations leave: pacing in simulated time, waits between retries, budgets."""

from __future__ import annotations

import heapq
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.outcome import Attempt, Fault
from harness.workload.budget import Budget, equal_parts
from harness.workload.pacing import CATCH_UP_S, STOP, ClosedLoop
from harness.workload.retry import ExponentialBackoff, RetryPolicy, ScheduledBackoff, next_delay_s
from tests.support.examples import examples


def simulate(
    pacer: ClosedLoop, users: int, until_s: float, sizes: list[int], answer_s: float
) -> list[tuple[float, int]]:
    """When each operation left, and its entities, in simulated time."""
    left: list[tuple[float, int]] = []
    free = [(0.0, user) for user in range(users)]
    sent = 0
    while free:
        now, user = heapq.heappop(free)
        due = pacer.next(now, sent)
        if due is STOP or now > until_s:
            continue
        assert isinstance(due, float)
        assert due >= now
        entities = sizes[len(left) % len(sizes)]
        sent += entities
        left.append((due, entities))
        heapq.heappush(free, (due + answer_s, user))
    return left


sizes_of_operations = st.lists(st.integers(1, 100), min_size=1, max_size=5)


@examples(60)
@given(st.floats(20, 500), st.integers(1, 30), sizes_of_operations, st.floats(0, 2))
def test_the_cap_is_not_exceeded_over_any_second(
    rate: float, users: int, sizes: list[int], answer_s: float
) -> None:
    """No second has more entities than the cap and its catching up allow, one operation aside."""
    pacer = ClosedLoop(rate)
    left = simulate(pacer, users, 10.0, sizes, max(answer_s, 1e-3))
    assert left == sorted(left, key=lambda sent: sent[0])
    in_second, end = 0, 0
    for start, entities in left:
        while end < len(left) and left[end][0] < start + 1.0 - 1e-9:
            in_second += left[end][1]
            end += 1
        assert in_second <= rate * (1 + CATCH_UP_S) + max(sizes) + 1e-6
        in_second -= entities


def test_enough_users_reach_the_cap() -> None:
    """Where answers come fast enough, the rate is the cap."""
    left = simulate(ClosedLoop(200.0), 20, 10.0, [1, 1, 10], 0.02)
    total = sum(entities for at, entities in left if at <= 10.0)
    assert total == pytest.approx(2000, rel=0.02)


def test_a_moment_of_lost_time_is_made_up_for() -> None:
    """A generator that was not scheduled for a moment catches up, and the rate holds."""
    pacer = ClosedLoop(10.0)
    assert pacer.next(0.0, 0) == 0.0
    assert pacer.next(0.2, 1) == 0.2
    assert pacer.next(0.2, 2) == 0.2
    assert pacer.next(0.2, 3) == pytest.approx(0.3)


def test_a_stall_is_not_made_up_for() -> None:
    """After a stall of seconds no more is caught up than after a moment: no burst."""
    pacer = ClosedLoop(10.0)
    pacer.next(0.0, 0)
    late = [pacer.next(5.0, sent) for sent in range(1, 6)]
    at_once = [due for due in late if due == 5.0]
    assert len(at_once) == 3
    assert late[3] == pytest.approx(5.0 - CATCH_UP_S + 0.3)


def test_a_transaction_uses_up_as_much_as_it_holds() -> None:
    """Amounts are entities: after a transaction of 100 the next operation waits for 100."""
    pacer = ClosedLoop(50.0)
    pacer.next(0.0, 0)
    assert pacer.next(0.0, 100) == 2.0


def test_without_a_cap_the_answer_is_now() -> None:
    """Without a cap only the answers hold a user back."""
    pacer = ClosedLoop()
    assert [pacer.next(1.0, sent) for sent in range(3)] == [1.0] * 3


def test_from_the_end_on_the_answer_is_stop() -> None:
    """Nothing leaves at or after the end, also not what the cap would have held back."""
    pacer = ClosedLoop(1.0)
    pacer.end(2.0)
    assert pacer.next(0.0, 0) == 0.0
    assert pacer.next(0.5, 1) == 1.0
    assert pacer.next(1.5, 2) is STOP
    assert pacer.next(2.0, 2) is STOP
    assert pacer.share(0, 2).next(2.0, 0) is STOP


@given(st.floats(0.1, 1e6), st.integers(1, 64))
def test_shares_add_up_to_the_whole_rate(rate: float, count: int) -> None:
    """However many workers there are, together they may send what one alone might."""
    shares = [ClosedLoop(rate).share(rank, count).entities_per_s for rank in range(count)]
    assert sum(share or 0.0 for share in shares) == pytest.approx(rate)
    assert ClosedLoop().share(0, count).entities_per_s is None


@pytest.mark.parametrize(("rank", "count"), [(-1, 2), (2, 2), (0, 0)])
def test_a_rank_outside_the_workers_is_refused(rank: int, count: int) -> None:
    """A share that nobody has is an error, not a rate on top of the others."""
    with pytest.raises(ValueError, match="workers"):
        ClosedLoop(1.0).share(rank, count)


def test_shares_keep_the_cap_together() -> None:
    """Two workers with their shares send no more than one with the whole."""
    whole = ClosedLoop(100.0)
    left = [
        at
        for rank in range(2)
        for at, _ in simulate(whole.share(rank, 2), 5, 10.0, [1], 0.01)
        if at < 10.0
    ]
    assert len(left) == pytest.approx(1000, rel=0.02)


def test_a_cap_that_is_told_anew_holds_at_once() -> None:
    """Other workers, or another cap: the next operation is spaced by it, and nothing is owed."""
    pacer = ClosedLoop(10.0).share(0, 2)
    assert pacer.next(0.0, 0) == 0.0
    pacer.reshare(1, from_s=5.0)
    assert pacer.entities_per_s == 10.0
    assert pacer.next(0.0, 1) == pytest.approx(0.1)
    pacer.reshare(4, from_s=5.0)
    pacer.hold(from_s=6.0, per_s=8.0)
    assert pacer.entities_per_s == 2.0
    assert pacer.next(0.0, 2) == pytest.approx(0.6)
    assert pacer.behind(100.0, 3) == 0.0


def test_a_cap_can_come_later() -> None:
    """Where as many were sent as came, a cap spaces out what follows; none is refused."""
    pacer = ClosedLoop()
    pacer.next(1.0, 0)
    pacer.hold(from_s=1.0, per_s=4.0)
    assert pacer.next(1.0, 1) == 1.25
    with pytest.raises(ValueError, match="is invalid"):
        pacer.hold(from_s=2.0, per_s=0.0)
    with pytest.raises(ValueError, match="workers"):
        pacer.reshare(0, from_s=2.0)


def failed(status: int = 503, fault: Fault | None = None, retry_after_s: float = 0.0) -> Attempt:
    return Attempt(
        status=0 if fault else status,
        fault=fault,
        sent_s=0.0,
        latency_s=0.1,
        retry_after_s=retry_after_s,
    )


EXPONENTIAL = ExponentialBackoff(retries=3, backoff_s=0.5, minimum_s=0.1, maximum_s=8.0)
SCHEDULE = ScheduledBackoff(delays_s=(2.0, 4.0, 10.0, 30.0))


@given(
    st.integers(1, 12),
    st.floats(0.001, 100),
    st.floats(0, 10),
    st.floats(0, 200),
    st.randoms(use_true_random=False),
)
def test_exponential_waits_are_within_the_formula(
    retry: int, backoff_s: float, minimum_s: float, maximum_s: float, rng: random.Random
) -> None:
    """min(z_min + Rand(0.8 z, 1.2 z) (2^x - 1), z_max) for retry x."""
    policy = ExponentialBackoff(
        retries=12, backoff_s=backoff_s, minimum_s=minimum_s, maximum_s=maximum_s
    )
    delay = policy.delay_s(retry, rng)
    assert delay is not None
    lowest = min(minimum_s + 0.8 * backoff_s * (2**retry - 1), maximum_s)
    highest = min(minimum_s + 1.2 * backoff_s * (2**retry - 1), maximum_s)
    assert lowest - 1e-9 <= delay <= highest + 1e-9


def test_the_documented_parameters_wait_as_documented() -> None:
    """30 s, 3 s, 90 s: the first wait is 27 to 39 s, the second 75 to 90 s, the third 90 s."""
    policy = ExponentialBackoff(retries=3, backoff_s=30.0, minimum_s=3.0, maximum_s=90.0)
    for seed in range(50):
        rng = random.Random(seed)
        first = policy.delay_s(1, rng)
        assert first is not None
        assert 27.0 <= first <= 39.0
        second = policy.delay_s(2, random.Random(seed))
        # 3 x (24 to 36) + 3, and 90 at most.
        assert second == min(3.0 + 3.0 * random.Random(seed).uniform(24.0, 36.0), 90.0)
        assert 75.0 <= second <= 90.0
        assert policy.delay_s(3, rng) == 90.0


@pytest.mark.parametrize(
    ("policy", "delays"),
    [
        (ScheduledBackoff(), [None]),
        (ScheduledBackoff(delays_s=(0.3,) * 2), [0.3, 0.3, None]),
        (SCHEDULE, [2.0, 4.0, 10.0, 30.0, None]),
        (ExponentialBackoff(retries=0, backoff_s=1.0, minimum_s=0.0, maximum_s=9.0), [None]),
    ],
)
def test_waits_of_each_strategy(policy: RetryPolicy, delays: list[float | None]) -> None:
    """Each strategy has its waits, and an end."""
    rng = random.Random(1)
    assert [policy.delay_s(retry + 1, rng) for retry in range(len(delays))] == delays


@pytest.mark.parametrize(
    ("attempts", "expected"),
    [
        # The first retry of a refusal waits as the strategy says, the second longer.
        ([failed()], 2.0),
        ([failed(), failed(500)], 4.0),
        # After the last wait there is no retry any more.
        ([failed()] * 5, None),
        # Connection faults are no throttling: again at once, as often as the strategy allows.
        ([failed(fault=Fault.RESET)], 0.0),
        ([failed(), failed(fault=Fault.REFUSED)], 0.0),
        ([failed(fault=Fault.RESET)] * 5, None),
        ([failed(fault=Fault.CONNECT_TIMEOUT)], 0.0),
        # An answer that does not come in time is what a partition that is moved looks like.
        ([failed(fault=Fault.READ_TIMEOUT)], 2.0),
        ([failed(504), failed(fault=Fault.READ_TIMEOUT)], 4.0),
        ([failed(504)], 2.0),
        ([failed(502)], None),
        # What the service asks for is the least wait.
        ([failed(429, retry_after_s=3.5)], 3.5),
        ([failed(429, retry_after_s=0.5)], 2.0),
        # But not without bound; the strategy's own waits may be longer.
        ([failed(503, retry_after_s=1e9)], 3.75),
        ([failed(503), failed(503, retry_after_s=1e9)], 4.0),
        # What can never succeed is not sent again.
        ([failed(404)], None),
        ([failed(501)], None),
        ([failed(fault=Fault.TLS)], None),
    ],
)
def test_when_an_operation_is_sent_again(attempts: list[Attempt], expected: float | None) -> None:
    """The last attempt decides whether, the strategy and the service how late."""
    assert next_delay_s(SCHEDULE, attempts, random.Random(1), longest_s=3.75) == expected


def test_the_factor_comes_from_the_given_source() -> None:
    """The same seed gives the same waits."""
    waits = [EXPONENTIAL.delay_s(2, random.Random(7)) for _ in range(2)]
    assert waits[0] == waits[1]


@given(st.integers(0, 10_000), st.integers(1, 40))
def test_shares_of_a_budget_add_up(amount: int, count: int) -> None:
    """What is shared out is the whole, nothing more and nothing less, and as even as can be."""
    shares = equal_parts(amount, count)
    assert len(shares) == count
    assert sum(shares) == amount
    assert max(shares) - min(shares) <= 1


def test_a_spent_budget_gives_nothing() -> None:
    """A budget of two lets two requests pass."""
    budget = Budget(2)
    assert [budget.take() for _ in range(4)] == [True, True, False, False]
    assert budget.exhausted
    assert budget.spent == 2


def test_no_budget_is_without_bound() -> None:
    """Without a limit nothing is refused."""
    budget = Budget()
    assert all(budget.take() for _ in range(1000))
    assert not budget.exhausted
