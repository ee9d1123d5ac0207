"""Every shipped profile runs: it loads, sends what it says, and leaves nothing behind.

Some seventy runs of a few seconds, three at once: about four minutes.
"""

from __future__ import annotations

import math

import gevent
import gevent.pool
import pytest

from harness.profile.profile_loader import resolve
from tests.support.locust_process import LocustProcess, Stress
from tests.support.profiles import without_trace

pytestmark = [pytest.mark.azurite, pytest.mark.session]

NAMES = without_trace()
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
SHORT_SEARCH = ("-t", "60s", "--set", "search.hold_s=2.0", "--set", "search.most_steps=2")
SMALLER = {
    # What takes long by its nature, made short.
    "burst": SHORT_STAGE,
    "ramp-up": SHORT_STAGE,
    "retry-documented": SHORT_STAGE,
    "retry-schedule": SHORT_STAGE,
    "size-sweep": (*FOR_A_TIME, "--set", "keys.rows_per_partition=[20, 200, 600]"),
    "find-limit": SHORT_SEARCH,
    "find-limit-spread": SHORT_SEARCH,
}
DAMAGE = {"rejected", "unexpected", "defect", "forbidden", "undecided", "connection", "timeout"}
"""Outcomes that no profile may have on an endpoint that works."""


@pytest.fixture(scope="module")
def runs(stress: Stress, host: str) -> dict[str, LocustProcess]:
    """All of them, a few at once, ended."""
    done: dict[str, LocustProcess] = {}

    def run(name: str) -> None:
        # Session blob starts the embedded blob server.
        to = () if resolve(name).profile.session.kind == "blob" else ("-H", host)
        process = stress(*SHORT, "--profile", name, *to, *SMALLER.get(name, FOR_A_TIME))
        process.wait(within_s=240)
        done[name] = process

    with gevent.Timeout(900):
        gevent.pool.Pool(AT_ONCE).map(run, NAMES)
    return done


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
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


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_the_predicted_partition_takes_the_predicted_share(
    name: str, runs: dict[str, LocustProcess]
) -> None:
    """Where shares are calculated, the run has them too, within five times the scatter of draws."""
    record = runs[name].record
    prediction = record.prediction
    if prediction is None or prediction.sampled or not prediction.hottest:
        return
    parts = [part for part in record.partitions if part.key == prediction.hottest]
    everything = sum(part.entities for part in record.partitions)
    if not parts or not everything:
        # Of many partitions the least used are counted together.
        return
    largest = max(part.entities / part.count for part in record.operations if part.count)
    share = prediction.hottest_share
    scatter = math.sqrt(share * (1 - share) * largest / everything)
    assert parts[0].entities / everything == pytest.approx(share, abs=0.02 + 5 * scatter)


@pytest.mark.parametrize("name", NAMES)
def test_it_asks_a_question(name: str) -> None:
    """The first line of a profile is the question that it answers."""
    question = resolve(name).profile.question
    assert question.endswith("?"), question
    assert len(question) <= 110, question
