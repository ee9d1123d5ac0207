"""However many processes send, the totals are the same, and true: an independent count agrees.

A proxy in front of Azurite counts the requests. When the request arrives that deletes the table,
it lists the table first.
"""

from __future__ import annotations

import contextlib
import dataclasses
import signal
from collections.abc import Callable

import psutil
import pytest
from azure.data.tables import TableClient

from harness.endpoint.endpoint import Endpoint
from harness.measure.record.record import RunRecord
from tests.support.locust_process import QUICK, LocustProcess, Stress, forked, wait_until
from tests.support.ports import free_port
from tests.support.proxy import Proxy, Seen
from tests.support.sdk import named_key

pytestmark = pytest.mark.azurite

INSERTS = (
    *("--set", "load.max_entities_per_s=80"),
    *("--set", "mix.point_query=0", "--set", "mix.upsert_merge=0"),
    *("--set", "mix.insert=80", "--set", "mix.transaction=20"),
    *("--set", "transaction.kinds=['insert']"),
)
"""Every write makes a new row, so that rows can be compared with what was acknowledged."""
MODES = ("one process", "--processes 2", "--master and --worker")
PATIENCE_S = 90.0


@dataclasses.dataclass(slots=True)
class Counted:
    """A run through a proxy of its own, and what was counted beside it."""

    proxy: Proxy
    rows: int = -1
    process: LocustProcess | None = None
    workers: tuple[LocustProcess, ...] = ()

    @property
    def record(self) -> RunRecord:
        assert self.process is not None
        return self.process.record


def workers_of(process: LocustProcess) -> list[psutil.Process]:
    """The forked ones, in a fixed order."""
    found = []
    for child in process.children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if "locust" in child.cmdline():
                found.append(child)
    return sorted(found, key=lambda child: child.pid)


@pytest.fixture(scope="module")
def counted(proxy_to: Callable[..., Proxy], endpoint: Endpoint) -> Callable[..., Counted]:
    """Makes a proxy that counts requests, and rows before they are gone."""
    credential = named_key(endpoint)

    def make() -> Counted:
        def list_first(seen: Seen) -> None:
            if seen.method == "DELETE" and seen.of_table:
                name = seen.path.split("'")[1]
                with TableClient(endpoint.url, name, credential=credential) as table:
                    result.rows = sum(1 for _ in table.list_entities(select=["RowKey"]))

        result = Counted(proxy_to(before=list_first))
        return result

    return make


@pytest.fixture(scope="module")
def runs(stress: Stress, counted: Callable[..., Counted]) -> dict[str, Counted]:
    """Three ways to send, and a worker that is killed: all at once, all ended."""
    port = free_port()
    made = {name: counted() for name in (*MODES, "killed")}
    options: dict[str, tuple[str, ...]] = {
        "one process": INSERTS,
        "--processes 2": (*INSERTS, *forked(2)),
        "--master and --worker": (
            *INSERTS,
            *("--master", "--expect-workers", "2", "--master-bind-port", str(port)),
        ),
        "killed": (*INSERTS, "-t", "9s", *forked(2)),
    }
    for name, run in made.items():
        run.process = stress(*QUICK, "-H", run.proxy.url, *options[name])
    made["--master and --worker"].workers = tuple(
        stress("--worker", "--master-port", str(port)) for _ in range(2)
    )
    killed = made["killed"].process
    assert killed is not None
    wait_until(lambda: len(made["killed"].proxy.of_entities) > 60, "the load goes on")
    assert len(workers_of(killed)) == 2
    workers_of(killed)[0].send_signal(signal.SIGKILL)
    for run in made.values():
        assert run.process is not None
        run.process.children()
        for process in (run.process, *run.workers):
            process.wait(PATIENCE_S)
    return made


@pytest.mark.parametrize("name", MODES)
def test_every_way_to_send_ends_well(name: str, runs: dict[str, Counted]) -> None:
    """Exit code 0, whole, nothing said that is no report."""
    run = runs[name]
    assert run.process is not None
    for process in (run.process, *run.workers):
        assert process.process.returncode == 0, process.said
        assert "Traceback" not in process.said
        assert "nanobind" not in process.said
    assert run.record.complete
    assert run.record.workers == (1 if name == "one process" else 2)


@pytest.mark.parametrize("name", MODES)
def test_rows_are_those_acknowledged(name: str, runs: dict[str, Counted]) -> None:
    """Acknowledged writes <= rows an independent listing finds <= acknowledged + in flight."""
    record = runs[name].record
    acknowledged = record.loading.entities + record.counts.entities
    assert record.counts.entities > 150
    assert acknowledged <= runs[name].rows <= acknowledged + 10 * record.counts.in_flight
    assert record.counts.in_flight == 0


@pytest.mark.parametrize("name", MODES)
def test_requests_are_counted_to_the_last(name: str, runs: dict[str, Counted]) -> None:
    """An independent count of requests equals the attempts and the billable transactions."""
    record, proxy = runs[name].record, runs[name].proxy
    assert len(proxy.of_entities) == record.loading.attempts + record.counts.attempts
    assert len(proxy.seen) == record.counts.billable_transactions


def test_the_cap_is_one_for_all(runs: dict[str, Counted]) -> None:
    """The cap holds for all workers together, however many they are: two caps would be 160."""
    for name in MODES:
        record = runs[name].record
        # All seconds under load, because a stall at an edge of the window is caught up in it.
        under_load_s = sum(point.width_s for point in record.series)
        assert record.counts.entities < 80 * 1.05 * (under_load_s + 1)
        assert record.account.entities_per_s.mean > 20


def test_a_killed_worker_does_not_end_the_run(runs: dict[str, Counted]) -> None:
    """The other one sends on until the run time is over."""
    record = runs["killed"].record
    assert record.ended_by == "run time"
    last = runs["killed"].proxy.of_entities[-1].at_s
    first = runs["killed"].proxy.of_entities[0].at_s
    assert last - first > 8


def test_a_killed_worker_makes_the_record_incomplete(runs: dict[str, Counted]) -> None:
    """Its last report is missing: nothing is concluded, and the exit code is 3."""
    run = runs["killed"]
    assert run.process is not None
    assert run.process.process.returncode == 3, run.process.said
    assert not run.record.complete
    assert run.record.verdict.result == "inconclusive"
    assert "report is missing" in run.record.verdict.sentence
    assert len(run.proxy.of_entities) >= run.record.loading.attempts + run.record.counts.attempts
    assert "Traceback" not in run.process.said


def test_no_process_is_left(runs: dict[str, Counted]) -> None:
    """Every worker ends with its master."""
    for run in runs.values():
        assert run.process is not None
        process = run.process
        wait_until(process.has_left_nothing, "workers are gone", 5.0)
