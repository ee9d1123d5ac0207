"""A run sends no more than its budget of billable transactions; the gateway counts."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import gevent
import gevent.pool
import pytest

from harness.gateway.limits import limits_path
from harness.gateway.process import start_gateway
from tests.support.locust_process import QUICK, LocustProcess, Stress, forked

pytestmark = pytest.mark.azurite

BUDGET = 500
FAULTS = "[faults]\nerror_500 = 0.1\n"
RUN = (
    *QUICK,
    *("--set", f"limits.billable_transactions={BUDGET}", "--set", "load.max_entities_per_s=5000"),
    *("--set", "keys.rows_per_partition=20", "-t", "60s", "--quiet"),
)
CASES = {
    "four tables": ("--profile", "customers-products-orders", "-u", "20"),
    "two tables, an audit": (
        *("--profile", "index-table", "--set", "fields.customer.values=5"),
        *("--set", "audit.enabled=true", "-u", "20"),
    ),
    "two workers, faults": ("--profile", "upsert", "-u", "20"),
    "sdk-default, faults": ("--profile", "upsert", "--session", "sdk-default", "-u", "20"),
    "an open load, two workers": ("--profile", "upsert", "--set", "load.entities_per_s=60"),
}


@pytest.fixture(scope="module")
def ended(
    stress: Stress, host: str, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[LocustProcess, int]]:
    """The runs that their budget ended, and the requests that arrived of each."""
    done = {}

    def run(name: str) -> None:
        limits = tmp_path_factory.mktemp("limits") / "limits.toml"
        none = limits_path("none").read_text(encoding="utf-8")
        limits.write_text(none + (FAULTS if "faults" in name else ""), encoding="utf-8")
        workers = forked(2) if "workers" in name else ()
        with gateway_of(host, limits) as (url, count):
            process = stress(*RUN, *CASES[name], *workers, "-H", url)
            process.wait()
            done[name] = process, count()

    pool = gevent.pool.Pool(3)
    with gevent.Timeout(200):
        pool.map(run, CASES)
    return done


@contextlib.contextmanager
def gateway_of(host: str, limits: Path) -> Iterator[tuple[str, Callable[[], int]]]:
    """A gateway before the endpoint, and how many requests it has had."""
    with start_gateway(upstream=host, limits=limits) as gateway:
        yield gateway.url, lambda: int(json.loads(gateway.counters())["requests"])


@pytest.mark.parametrize("name", CASES)
def test_a_run_sends_no_more_than_its_budget(
    name: str, ended: dict[str, tuple[LocustProcess, int]]
) -> None:
    """Probe, creating, loading, retries, audit, index tables and deleting included."""
    process, requests = ended[name]
    assert process.record.ended_by == "budget of billable transactions"
    assert requests <= BUDGET
    assert requests == process.record.counts.billable_transactions
    # Little is left: what deleting would have needed if the service had refused it at first.
    assert requests > 0.85 * BUDGET
    assert "Traceback" not in process.said


def test_a_spent_budget_ends_a_valid_run(ended: dict[str, tuple[LocustProcess, int]]) -> None:
    """The run ends before its time, and is worth as much as any other."""
    process, _ = ended["an open load, two workers"]
    assert process.process.returncode == 0, process.said
    assert process.record.complete
    assert process.record.invariants == ()
    assert 5 <= process.record.measured_s < 40
