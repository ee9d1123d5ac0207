"""Workers that join, leave and die in the middle of a scheduled load: the whole rate is followed.

Every operation inserts a row, and a proxy notes when each arrived: RowKeys tell which worker sent
it. What arrived by an instant is compared with what was due by then. Lasts about a minute.
"""

from __future__ import annotations

import collections
import dataclasses
import re
import time
from collections.abc import Callable

import gevent.pool
import pytest

from harness.measure.record.record import RunRecord
from tests.support.command import Command
from tests.support.locust_process import LocustProcess, Stress, wait_until
from tests.support.ports import free_port
from tests.support.proxy import Proxy

pytestmark = [pytest.mark.azurite, pytest.mark.long, pytest.mark.serial]

RATE = 60
RUN_S = 26
CHANGE_S = 5
"""So long after the load began the workers change."""
FOLLOWED_S = 12 + 2
"""A worker that is silent for so long has ended, so its part goes to the others."""
LOADED = 10
"""Entities before the load."""
NAMES = ("joins", "joins with a budget", "leaves", "dies")
KILLED_MASTER = "master dies"
OPEN = (
    *("--headless", "-u", "8", "-r", "100"),
    *("--set", "load.settle_s=0", "--set", "loading.settle_s=0"),
    *("--set", f"keys.rows_per_partition={LOADED}", "--set", "conditions=[]"),
    *("--set", "mix.point_query=0", "--set", "mix.upsert_merge=0"),
    *("--set", "mix.transaction=0", "--set", "mix.insert=1"),
    *("--set", f"stage=[{{for_s = {RUN_S}, to_entities_per_s = {RATE}, jump = true}}]"),
)
BUDGET = ("--set", "limits.billable_transactions=100000")
"""More than there will be."""
_ROW = re.compile(rb'"RowKey": ?"(\d+)"')


@dataclasses.dataclass(frozen=True, slots=True)
class Arrived:
    """A row that a worker inserted.

    Attributes:
        at_s: UTC seconds.
        worker: The number in its RowKey.
    """

    at_s: float
    worker: int
    row_key: str


@dataclasses.dataclass(slots=True)
class Cluster:
    """A master, its workers, and what a proxy saw of them."""

    proxy: Proxy
    master: LocustProcess
    workers: list[LocustProcess]
    join: Callable[[], LocustProcess]
    changed_s: float = 0.0

    @property
    def record(self) -> RunRecord:
        return self.master.record

    def arrived(self) -> list[Arrived]:
        utc_s = time.time() - time.monotonic()
        found = []
        for seen in self.proxy.of_entities:
            if seen.method == "POST" and "$batch" not in seen.path:
                match = _ROW.search(seen.body)
                assert match is not None, seen.body
                row_key = match[1].decode()
                # The last two digits of a new number are those of the worker.
                worker = (int(row_key) - LOADED) % 100
                found.append(Arrived(seen.at_s + utc_s, worker, row_key))
        return found


@pytest.fixture(scope="module")
def clusters(stress: Stress, proxy_to: Callable[..., Proxy]) -> dict[str, Cluster]:
    """All runs at once, ended: a worker joins, leaves by SIGTERM or is killed; or the master is."""

    def begun(name: str) -> Cluster:
        port, proxy, first = str(free_port()), proxy_to(), 1 if "joins" in name else 2
        master = stress(
            *(*OPEN, "-H", proxy.url, "--master", "--master-bind-port", port),
            *("--expect-workers", str(first)),
            *(BUDGET if name == "joins with a budget" else ()),
        )

        def join() -> LocustProcess:
            return stress("--worker", "--master-port", port)

        return Cluster(proxy, master, [join() for _ in range(first)], join)

    def run(name: str) -> tuple[str, Cluster]:
        cluster = begun(name)
        wait_until(lambda: len(cluster.proxy.of_entities) > CHANGE_S * RATE, "the load goes on")
        cluster.changed_s = time.monotonic()
        if "joins" in name:
            cluster.workers.append(cluster.join())
        elif name == "leaves":
            cluster.workers[0].terminate()
        elif name == KILLED_MASTER:
            cluster.master.process.kill()
        else:
            cluster.workers[0].process.kill()
        for process in (cluster.master, *cluster.workers):
            process.wait(90.0)
        return name, cluster

    names = (*NAMES, KILLED_MASTER)
    return dict(gevent.pool.Pool(len(names)).imap_unordered(run, names))


@pytest.mark.parametrize("name", NAMES)
def test_the_whole_rate_is_followed(name: str, clusters: dict[str, Cluster]) -> None:
    """At no time more arrived than was due; what a lost worker owed is all that is missing."""
    cluster = clusters[name]
    start = cluster.record.window_start
    # Of two workers the one that is lost sends nothing until that is noticed.
    lost = 0 if "joins" in name else FOLLOWED_S * RATE / 2
    arrived = sorted(row.at_s for row in cluster.arrived())
    for second in range(RUN_S + 1):
        by_now = sum(at_s <= start + second for at_s in arrived)
        assert by_now <= RATE * second + 3
        assert by_now >= RATE * (second - 2) - lost
    last = sum(start + RUN_S - 4 <= at_s <= start + RUN_S for at_s in arrived)
    assert last > 4 * RATE * 0.7


@pytest.mark.parametrize("name", NAMES)
def test_no_two_inserts_meet(name: str, clusters: dict[str, Cluster]) -> None:
    """Every worker makes keys of its own, whenever it came: no conflict, no row twice."""
    rows = [row.row_key for row in clusters[name].arrived()]
    assert len(set(rows)) == len(rows)
    assert "conflict" not in clusters[name].record.outcomes
    assert not any("409" in status for status in clusters[name].record.attempts_by_status)


def test_a_worker_that_joins_takes_its_part(clusters: dict[str, Cluster]) -> None:
    """At the end both send half of what is due."""
    cluster = clusters["joins"]
    end = cluster.record.window_start + RUN_S
    late = collections.Counter(row.worker for row in cluster.arrived() if row.at_s > end - 4)
    assert len(late) == 2
    assert min(late.values()) > RATE * 4 * 0.25
    assert cluster.record.workers == 2
    assert cluster.record.complete


def test_a_worker_that_joins_a_budget_sends_nothing(clusters: dict[str, Cluster]) -> None:
    """The budget was divided before it came; the whole rate stays with those that have some."""
    cluster = clusters["joins with a budget"]
    assert {row.worker for row in cluster.arrived()} == {0}
    assert cluster.record.workers == 2
    assert cluster.record.complete
    assert cluster.record.ended_by == "run time"


def test_users_that_move_to_another_worker_lose_no_answer(clusters: dict[str, Cluster]) -> None:
    """Locust divides the users anew when a worker joins; who has to go ends its operation."""
    assert clusters["joins"].record.counts.in_flight == 0


def test_a_worker_that_leaves_reports_what_it_did(clusters: dict[str, Cluster]) -> None:
    """After SIGTERM of one of two workers the record is whole, to the last row."""
    cluster = clusters["leaves"]
    record = cluster.record
    assert cluster.master.process.returncode == 0, cluster.master.said
    assert record.complete
    assert record.counts.in_flight == 0
    assert record.counts.operations == len(cluster.arrived())
    assert record.invariants == ()


def test_a_worker_that_is_killed_leaves_what_it_reported(clusters: dict[str, Cluster]) -> None:
    """The totals are those of the reports that came; the record says that one is missing."""
    cluster = clusters["dies"]
    record = cluster.record
    assert cluster.master.process.returncode == 3, cluster.master.said
    assert not record.complete
    assert record.verdict.result == "inconclusive"
    assert "report is missing" in record.verdict.sentence
    # Of a report each second at most the last one, and a slow machine's two more, are missing.
    assert 0 <= len(cluster.arrived()) - record.counts.operations < 3 * RATE / 2
    assert "Traceback" not in cluster.master.said


def test_a_killed_master_stops_its_workers(clusters: dict[str, Cluster], command: Command) -> None:
    """Within 15 s its workers end, and `harness sweep` finds the table."""
    cluster = clusters[KILLED_MASTER]
    assert cluster.proxy.of_entities[-1].at_s - cluster.changed_s < 15
    for worker in cluster.workers:
        assert worker.process.returncode == 3, worker.said
    table = re.search(r"stress\w+", cluster.master.stdout)
    assert table is not None
    at = ("sweep", "-H", cluster.proxy.url)
    assert table[0] not in command(*at), "it is too young for a leftover"
    assert table[0] in command(*at, "--older-than-s", "1")
    assert table[0] in command(*at, "--older-than-s", "1", "--delete", table[0])
    assert table[0] not in command(*at, "--older-than-s", "1")
