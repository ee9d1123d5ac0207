"""A profile of each kind runs: it loads, sends what it says, and leaves nothing behind.

What each of the others sends is held by `tests/contract/sessions/test_profiles.py`, and their
shares by `tests/unit/profile/checks/test_exact_shares.py`.
"""

from __future__ import annotations

import gevent
import gevent.pool
import pytest

from tests.support.locust_process import LocustProcess, Stress

pytestmark = [pytest.mark.azurite, pytest.mark.long]

AT_ONCE = 3
SHORT = (
    "--headless",
    *("-u", "4", "-r", "100"),
    *("--set", "load.settle_s=0"),
    *("--set", "loading.settle_s=0"),
    *("--set", "conditions=[]"),
)
FOR_A_TIME = ("-t", "2s")
SHORT_STAGE = ("--set", "stage=[{for_s=2, to_entities_per_s=200.0, jump=true}]")
RUNS = {
    "burst": SHORT_STAGE,
    "retry-documented": SHORT_STAGE,
    "size-sweep": (*FOR_A_TIME, "--set", "keys.rows_per_partition=[20, 200, 600]"),
    "find-limit-spread": (
        *("-t", "60s", "--set", "search.hold_s=2.0"),
        *("--set", "search.most_steps=2"),
    ),
    "index-table": FOR_A_TIME,
    "orders": FOR_A_TIME,
    "payload-compressed": FOR_A_TIME,
}
"""Stages, retries, several sizes, a search, two tables, a scenario, and compression."""
DAMAGE = {"rejected", "unexpected", "defect", "forbidden", "undecided", "connection", "timeout"}
"""Outcomes that no profile may have on an endpoint that works."""


@pytest.fixture(scope="module")
def runs(stress: Stress, host: str) -> dict[str, LocustProcess]:
    """All of them, a few at once, ended."""
    done: dict[str, LocustProcess] = {}

    def run(name: str) -> None:
        process = stress(*SHORT, "--profile", name, "-H", host, *RUNS[name])
        process.wait(within_s=240)
        done[name] = process

    with gevent.Timeout(900):
        gevent.pool.Pool(AT_ONCE).map(run, RUNS)
    return done


@pytest.mark.parametrize("name", RUNS)
def test_it_runs(name: str, runs: dict[str, LocustProcess]) -> None:
    """Something is sent, everything is counted, and nothing is refused for being wrong."""
    process = runs[name]
    record = process.record
    assert record.profile["name"] == name
    assert record.invariants == (), process.said
    assert process.process.returncode in (0, 3), process.said
    assert record.counts.operations > 0
    assert not DAMAGE.intersection(record.outcomes), process.said
    assert "Not cleaned up" not in process.said
