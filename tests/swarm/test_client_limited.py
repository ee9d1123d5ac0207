"""A generator without time: verdict and search name it as the limit, not the endpoint.

Others that keep the machine busy meanwhile take even more time from the generator.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest

from harness.gateway.process import GatewayProcess
from tests.support.burners import burnt_core
from tests.support.locust_process import QUICK, LocustProcess, Stress
from tests.swarm.test_search import FIND, PATIENCE_S, SHORT, gateway_with, search_of
from tests.swarm.test_verdicts import CONDITION, UNREACHABLE

pytestmark = pytest.mark.azurite

DELETES = """\
from locust import events, task
from harness.swarm import TableUser, wire

class DeletingUser(TableUser):
    @task
    def delete(self):
        self.table.delete("p0", "is not there")

wire(events)
"""


@pytest.fixture(scope="module")
def client_limited(
    stress: Stress, host: str, tmp_path_factory: pytest.TempPathFactory
) -> LocustProcess:
    """A generator that has a third of a core, and wants more. Deletes what is not there."""
    deletes = tmp_path_factory.mktemp("deletes") / "locustfile.py"
    deletes.write_text(DELETES, encoding="utf-8")
    process = stress(
        *(*QUICK, *CONDITION, *UNREACHABLE, "-H", host, "-u", "20"), locustfile=deletes
    )
    process.until_said("[2/4]")
    with burnt_core() as core:
        os.sched_setaffinity(process.pid, {core})
        process.wait()
    return process


def test_a_starved_generator_is_client_limited(client_limited: LocustProcess) -> None:
    """Where others burn the generator's core, they are the limit, not the endpoint.

    More processes would not help: the advice is to free the core.
    """
    verdict = client_limited.record.verdict
    assert (verdict.result, verdict.limited_by) == ("client_limited", "machine"), verdict
    assert "other processes" in verdict.sentence
    assert "Free the CPU" in verdict.advice[0].text, verdict
    made = client_limited.record.generator.capacity
    assert made is not None
    assert made.operations_per_cpu_s > 0
    assert made.machines[0].others_percent > made.machines[0].workers_percent
    assert client_limited.process.returncode == 3


def test_the_error_log_is_capped(client_limited: LocustProcess) -> None:
    """A thousand failed attempts are kept, the rest is counted."""
    record = client_limited.record
    folder = client_limited.folder / "out" / record.run_id
    lines = [json.loads(line) for line in (folder / "errors.jsonl").read_text("utf-8").splitlines()]
    failed = sum(
        count for name, count in record.attempts_by_status.items() if not name.startswith("2")
    )
    # A very busy machine sends fewer than a thousand.
    kept = min(1000, failed)
    assert {error["error_code"] for error in lines[:kept]} == {"ResourceNotFound"}
    assert lines[kept:] == ([{"not_kept": failed - 1000}] if failed > 1000 else [])


@pytest.fixture(scope="module")
def fast(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """Refuses nothing that a generator can send."""
    limits = "[partition]\nentities_per_s = 1e6\n[account]\nentities_per_s = 1e6\n"
    servers = "[servers]\nentities_per_s = 1e6\n"
    with gateway_with(limits + servers, tmp_path_factory) as process:
        yield process


@pytest.mark.long
def test_a_generators_ceiling_is_not_the_partitions(stress: Stress, fast: GatewayProcess) -> None:
    """Where others burn the generator's core, the result is "at least", and names the generator.

    Bounds: about 25 s, in which one core is burnt.
    """
    process = stress(
        *(*FIND, *SHORT, "-H", fast.url, "-u", "50"),
        # The first rate needs little of a core, the second one more than is left of it.
        *("--set", "search.start_per_s=400", "--set", "search.max_per_s=4000"),
        *("--set", "search.factor=10", "--set", "search.most_steps=3"),
        *("--set", "search.confirm_s=3", "--session", "sdk"),
        *("--set", "limits.billable_transactions=1000000"),
    )
    process.until_said("[3/4]")
    with burnt_core() as core:
        os.sched_setaffinity(process.pid, {core})
        process.wait(PATIENCE_S)
    record = process.record
    search = search_of(record)
    assert search.limited_by == "client-limited", search
    assert search.at_least or search.rate_per_s is None
    assert (record.verdict.result, record.verdict.limited_by) == ("client_limited", "generator")
    assert "the generator was the limit" in record.verdict.sentence
