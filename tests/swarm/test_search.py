"""The search for the highest sustainable rate, in real runs, against a gateway with a known limit.

The gateway stores nothing, so that it and the generator leave a small machine time. On a machine
without time a search rightly says that the generator was the limit: then it is run again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import gevent
import gevent.pool
import pytest

from harness.gateway.process import GatewayProcess, start_gateway
from harness.measure.record.findings import SearchPart
from harness.measure.record.record import RunRecord
from tests.support.locust_process import LocustProcess, Stress

pytestmark = pytest.mark.serial

LIMIT = 120
START = 90
FIND = (
    *("--headless", "--profile", "find-limit"),
    *("--set", "loading.settle_s=0", "--set", "keys.rows_per_partition=50"),
)
SHORT = (
    *("-u", "10", "-r", "100", "--set", "mix.transaction=0", "--set", "mix.upsert_merge=1"),
    *("--set", "search.settle_s=1", "--set", "search.hold_s=3", "--set", "search.confirm_s=5"),
)
"""Steps too short to be exact, for a test that is to be short; operations of one entity."""
PATIENCE_S = 150.0
TRIES = 3
"""Where others keep the machine busy meanwhile, a search says nothing of the limit."""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """Serves `LIMIT` entities/s from one partition, and refuses the rest."""
    # With little of a burst even a short step above the limit is refused something.
    limits = f"[partition]\nentities_per_s = {LIMIT}.0\nburst_s = 0.3\n"
    with gateway_with(limits, tmp_path_factory) as process:
        yield process


def gateway_with(limits: str, folders: pytest.TempPathFactory) -> GatewayProcess:
    file: Path = folders.mktemp("limits") / "known.toml"
    file.write_text(limits, encoding="utf-8")
    return start_gateway(upstream="none", limits=file)


@pytest.fixture(scope="module")
def runs(stress: Stress, gateway: GatewayProcess) -> dict[str, LocustProcess]:
    """A search, one that starts above the limit, and one that is interrupted; at once, ended."""
    options = {
        "found": (
            *("--set", f"search.start_per_s={START}", "--set", "search.max_per_s=1000"),
            *("--set", "search.precision=0.3"),
        ),
        "interrupted": ("--set", "search.start_per_s=60", "--set", "search.max_per_s=60"),
        "above": ("--set", "search.start_per_s=250", "--set", "search.max_per_s=250"),
    }

    def run(name: str) -> tuple[str, LocustProcess]:
        for _ in range(TRIES):
            process = stress(*FIND, *SHORT, "-H", gateway.url, *options[name])
            if name == "interrupted":
                process.until_said("step 1:")
                gevent.sleep(2.0)
                process.interrupt()
            process.wait(PATIENCE_S)
            if name == "interrupted" or search_of(process.record).limited_by == "throttled":
                break
        return name, process

    return dict(gevent.pool.Pool(3).imap_unordered(run, options))


def search_of(record: RunRecord) -> SearchPart:
    assert record.search is not None
    return record.search


def test_a_search_ends_by_itself_and_well(runs: dict[str, LocustProcess]) -> None:
    """Long before its bound, with exit code 0: nothing was to pass or fail."""
    for name, process in runs.items():
        if name == "interrupted":
            assert process.record.ended_by == "Ctrl-C"
        else:
            assert process.process.returncode == 0, process.said
            assert process.record.ended_by == "the end of the search"
        assert process.record.invariants == ()
        assert "Traceback" not in process.said


def test_a_known_limit_is_found(runs: dict[str, LocustProcess]) -> None:
    """Coarse steps find about the gateway's limit, and what was found was held once more."""
    record = runs["found"].record
    search = search_of(record)
    assert search.limited_by == "throttled", search
    assert search.rate_per_s is not None
    assert LIMIT * 0.6 < search.rate_per_s < LIMIT * 1.1
    assert search.confirmed
    assert not search.at_least
    assert search.limit is not None
    assert search.limit.per_s == pytest.approx(LIMIT, rel=0.15)
    assert search.sentence.startswith("The limit is ")


def test_the_verdict_is_what_was_found(runs: dict[str, LocustProcess]) -> None:
    """Steps above the limit are throttled on purpose: the run as a whole says nothing else."""
    for name in ("found", "above"):
        record = runs[name].record
        assert record.verdict.result == "throttled"
        # A run is held to the limits of the gateway that it meets.
        assert record.verdict.limited_by == "partition"
        assert record.verdict.sentence == search_of(record).sentence
        assert record.throttled_ratio > 0.01


def test_every_step_is_in_the_record(runs: dict[str, LocustProcess]) -> None:
    """Its rate, what came of it and what it cost; those that failed say why."""
    record = runs["found"].record
    steps = search_of(record).steps
    assert len(steps) >= 3
    assert steps[0].rate_per_s == START
    assert {step.confirming for step in steps} == {True, False}
    for step in steps:
        assert step.hold_s >= (5 if step.confirming else 3)
        assert step.billable_transactions > 0
        if step.failed is None:
            assert step.achieved_per_s >= step.rate_per_s * 0.95
            assert step.throttled_ratio <= 0.01
    above = [step for step in steps if step.rate_per_s > LIMIT * 1.1]
    assert above
    assert all(step.failed for step in above)
    cost = sum(step.billable_transactions for step in steps)
    assert cost <= record.counts.billable_transactions - record.loading.attempts


def test_what_one_step_left_is_not_sent_on_top_of_the_next(runs: dict[str, LocustProcess]) -> None:
    """A step that passes is served what it wants, also after one that left much unsent."""
    for step in search_of(runs["found"].record).steps:
        assert step.achieved_per_s <= step.rate_per_s * 1.25


def test_each_step_is_told_while_it_is_taken(runs: dict[str, LocustProcess]) -> None:
    """Standard output has every step before the summary."""
    process = runs["found"]
    before = process.stdout.partition("[4/4]")[0]
    for place in range(1, len(search_of(process.record).steps) + 1):
        assert f"step {place}:" in before


def test_an_interrupted_search_says_what_it_knows(runs: dict[str, LocustProcess]) -> None:
    """In its first step that is nothing: no rate, no conclusion."""
    record = runs["interrupted"].record
    search = search_of(record)
    assert search.steps == ()
    assert search.rate_per_s is None
    assert search.sentence == "No sustainable rate was found: the run was ended."
    assert record.verdict.result == "inconclusive"
    assert record.verdict.sentence == search.sentence


def test_a_start_above_the_limit_finds_it(runs: dict[str, LocustProcess]) -> None:
    """What was served while the first step was throttled leads to the limit."""
    search = search_of(runs["above"].record)
    assert search.steps[0].failed == "throttled"
    assert search.limit is not None
    assert search.limit.per_s == pytest.approx(LIMIT, rel=0.15)
