"""Every operation of a replay is sent by exactly one worker, whenever workers come and go."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from harness.measure.counts.ledger import Ledger
from harness.profile.settings.schema import Profile
from harness.swarm.messages import Share
from harness.swarm.worker.admission import Admission
from harness.workload.budget import Budgets
from harness.workload.pacing import RecordedOrder, Schedule

LENGTH_S = 100.0
PROFILE = Profile(question="Why?")


def worker() -> Admission:
    pacer = RecordedOrder(Schedule.constant(1000.0), int(1000 * LENGTH_S))
    return Admission(PROFILE, pacer, lambda: 0.0, Budgets([None]), Ledger("test"))


def share(rank: int, count: int, from_s: float) -> Share:
    return Share(run_id="r", rank=rank, count=count, epoch_s=0.0, from_s=from_s)


@given(seed=st.integers(0, 10**9), changes=st.integers(0, 4))
def test_shares_are_disjoint_and_complete(seed: int, changes: int) -> None:
    """Workers join and leave; each hears only of the shares since it came, some of them twice."""
    rng = random.Random(seed)
    workers = [worker() for _ in range(rng.randint(1, 4))]
    taking_part = list(workers)
    history = [(0.0, tuple(taking_part))]
    for from_s in sorted(rng.uniform(1.0, LENGTH_S) for _ in range(changes)):
        if rng.random() < 0.5 and len(taking_part) > 1:
            taking_part.remove(rng.choice(taking_part))
        else:
            taking_part.append(worker())
        history.append((from_s, tuple(taking_part)))
    for from_s, members in history:
        for rank, one in enumerate(members):
            for _ in range(rng.randint(1, 2)):
                one.take_share(share(rank, len(members), from_s))
    for place in range(0, int(1000 * LENGTH_S), 777):
        owner, due_s = rng.getrandbits(32), place / 1000
        members = next(members for from_s, members in reversed(history) if from_s <= due_s)
        assert [one.due_at(place) for one in members] == [due_s] * len(members)
        assert sum(one.sends(owner, due_s) for one in members) == 1
