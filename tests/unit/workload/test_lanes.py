"""Operations of one lane keep their order where their results could depend on it."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from harness.workload.lanes import Claim, Lanes


def conflict(one: Claim, other: Claim) -> bool:
    """The rule, written down another way."""
    if one.lane != other.lane:
        return False
    if (one.scans and other.changes) or (other.scans and one.changes):
        return True
    mine, theirs = {*one.reads, *one.writes}, {*other.reads, *other.writes}
    return bool(mine & {*other.writes} or theirs & {*one.writes})


def claims(rng: random.Random, count: int) -> list[Claim]:
    made = []
    for _ in range(count):
        lane = rng.choice("ab")
        rows = tuple(rng.sample("123", rng.randint(1, 2)))
        kind = rng.randrange(4)
        if kind == 0:
            made.append(Claim(lane, scans=True))
        elif kind == 1:
            made.append(Claim(lane, reads=rows[:1]))
        else:
            made.append(Claim(lane, writes=rows, changes=kind == 3))
    return made


@given(seed=st.integers(0, 10**9), count=st.integers(1, 60), users=st.integers(1, 8))
def test_the_order_holds_however_long_operations_take(seed: int, count: int, users: int) -> None:
    """Operations of a lane leave in their order, none while a conflicting one is in flight, and all
    of them leave.
    """
    rng = random.Random(seed)
    lanes, given_claims = Lanes(), claims(rng, count)
    left: list[int] = []
    in_flight: set[int] = set()
    waiting: set[int] = set()
    entered = 0

    def leaves(number: int) -> None:
        assert not any(conflict(given_claims[number], given_claims[one]) for one in in_flight)
        left.append(number)
        in_flight.add(number)

    while len(left) < count or in_flight:
        may_enter = entered < count and len(in_flight) + len(waiting) < users
        if may_enter and (not in_flight or rng.random() < 0.6):
            if lanes.enter(given_claims[entered], entered):
                leaves(entered)
            else:
                waiting.add(entered)
            entered += 1
        else:
            done = rng.choice(sorted(in_flight))
            in_flight.remove(done)
            for number in lanes.leave(given_claims[done]):
                assert isinstance(number, int)
                waiting.remove(number)
                leaves(number)
        assert lanes.waiting == len(waiting)
    for lane in "ab":
        of_lane = [number for number in left if given_claims[number].lane == lane]
        assert of_lane == sorted(of_lane)


def test_operations_on_different_rows_do_not_wait() -> None:
    """Two inserts, and reads of one row, are in flight together."""
    lanes = Lanes()
    assert lanes.enter(Claim("p", writes=("1",), changes=True), "first")
    assert lanes.enter(Claim("p", writes=("2",), changes=True), "second")
    assert lanes.enter(Claim("p", reads=("3",)), "third")
    assert lanes.enter(Claim("p", reads=("3",)), "fourth")
    assert not lanes.enter(Claim("p", reads=("1",)), "fifth")
    assert lanes.enter(Claim("q", scans=True), "elsewhere")
