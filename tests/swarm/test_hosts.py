"""A master and workers on machines of their own, 20 ms apart, with 1 % of all packets lost.

Workers join late, die, lose their connection, and have wrong clocks. A gateway before Azurite
counts the requests. The runs go on at the same time and last about half a minute.
"""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import gevent
import psutil
import pytest

from harness.measure.record.record import RunRecord
from harness.swarm.master.rehearsal import recorded_counts
from tests.support.fork_server import ForkServer
from tests.support.locust_process import ROOT, LocustProcess, Stress, wait_until
from tests.support.network.hosts import Host, NoNamespaces, hosts, remove_leftovers
from tests.support.network.site import Site

pytestmark = [pytest.mark.azurite, pytest.mark.long, pytest.mark.serial]

RATE = 60
RUN_S = 10
JOINED_S = 20
"""A busy machine needs seconds to start a worker."""
CHANGE_S = 3
"""So long after the load began something happens to a worker."""
CUT_S = 4
BEHIND_S = 4.0
"""How far an accepted clock is behind."""
ENDED_S = 10
"""A worker that does not hear of its master ends by itself within so long."""
LOAD = (
    *("--profile", "key-spread", "--expect-workers", "2", "-u", "40", "-r", "100"),
    *("--set", f"load.operations_per_s={RATE}"),
    *("--set", "load.settle_s=0", "--set", "loading.settle_s=0", "--set", "conditions=[]"),
    *("--set", "fields.key.values=3", "--set", "keys.rows_per_partition=10"),
    *("--set", "mix.transaction=0", "--set", "mix.point_query=30", "--set", "mix.insert=40"),
)
PATIENCE_S = 90.0


@dataclasses.dataclass(slots=True)
class Cluster:
    """One run: its master and its workers, in the order in which they were started."""

    master: LocustProcess
    workers: list[LocustProcess]
    ended_s: float = 0.0

    @property
    def record(self) -> RunRecord:
        return self.master.record


Clusters = dict[str, Cluster]


@pytest.fixture(scope="module")
def network() -> Iterator[list[Host]]:
    """Six hosts; where they cannot be made, these tests are skipped."""
    for command in ("ip", "tc", "ss", "faketime"):
        if shutil.which(command) is None:
            pytest.skip(f"no {command}: run make test-deps")
    try:
        with hosts("table", "lead", "a", "b", "c", "d") as made:
            yield made
    except NoNamespaces as error:
        pytest.skip(f"allowed: {error}")


@pytest.fixture(scope="module")
def site(
    network: list[Host], fork_server: ForkServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """The table service, and who starts processes on the hosts."""
    stress = Stress(tmp_path_factory.mktemp("hosts"), fork_server)
    folder = tmp_path_factory.mktemp("table")
    with Site(stress, network[0], network[1], folder).serving() as serving:
        yield serving
        stress.end()


@pytest.fixture(scope="module")
def clusters(site: Site, network: list[Host]) -> Clusters:
    """All runs, ended."""
    _, lead, a, b, c, d = network
    begun: Clusters = {}

    def begin(name: str, *workers: tuple[Host, float], session: str, run_s: int = RUN_S) -> Cluster:
        """The workers are started first: they wait for their master."""
        port = 5557 + len(begun)
        started = [site.worker(host, port=port, ahead_s=ahead_s) for host, ahead_s in workers]
        options = (*LOAD, "-t", f"{run_s}s", "--session", session)
        begun[name] = Cluster(site.master(*options, port=port), started)
        return begun[name]

    def join(cluster: Cluster, port: int, host: Host, ahead_s: float = 0.0) -> None:
        cluster.workers.append(site.worker(host, port=port, ahead_s=ahead_s))

    def joined(cluster: Cluster) -> None:
        join(cluster, 5557, a)
        join(cluster, 5557, b, ahead_s=10.0)

    def unplugged(_: Cluster) -> None:
        c.unplug()
        gevent.sleep(CUT_S)
        c.plug_in()

    def cut_off(_: Cluster) -> None:
        d.refuse(lead)
        gevent.sleep(CUT_S)
        d.break_connections(5560)
        d.accept(lead)

    def led_by_none(cluster: Cluster) -> None:
        cluster.master.process.kill()
        killed_s = time.monotonic()
        for worker in cluster.workers:
            worker.wait(PATIENCE_S)
        cluster.ended_s = time.monotonic() - killed_s

    changes: list[tuple[Cluster, Callable[[Cluster], None]]] = [
        (begin("joined", (a, 0.0), (b, -BEHIND_S), session="sdk", run_s=JOINED_S), joined),
        (
            begin("killed", (a, 0.0), (b, 0.0), session="wire"),
            lambda cluster: cluster.workers[1].process.kill(),
        ),
        (begin("unplugged", (a, 0.0), (c, 0.0), session="wire"), unplugged),
        (begin("cut off", (b, 0.0), (d, 0.0), session="sdk"), cut_off),
        (begin("led by none", (a, 0.0), (b, 0.0), session="sdk"), led_by_none),
    ]
    begin("refused", (a, 0.0), (b, -10.0), session="sdk")

    def change(cluster: Cluster, what: Callable[[Cluster], None]) -> None:
        cluster.master.until_said("[3/4]", PATIENCE_S)
        gevent.sleep(CHANGE_S)
        what(cluster)

    gevent.joinall([gevent.spawn(change, *one) for one in changes], raise_error=True)
    for cluster in begun.values():
        for process in (cluster.master, *cluster.workers):
            process.wait(PATIENCE_S)
    return begun


@pytest.mark.parametrize("name", ["joined", "unplugged", "cut off"])
def test_the_counts_are_those_of_the_endpoint(name: str, clusters: Clusters, site: Site) -> None:
    """By partition and status, to the last request, whoever joined or was gone for a while."""
    cluster, record = clusters[name], clusters[name].record
    assert cluster.master.process.returncode == 0, cluster.master.said
    assert record.complete
    assert record.invariants == ()
    counts = recorded_counts(record)
    assert counts == site.counters(record)
    assert counts.total() == record.counts.attempts > RATE


def test_a_worker_that_joins_late_takes_part(clusters: Clusters) -> None:
    """It is told on both consoles; the one with the wrong clock does not count."""
    cluster = clusters["joined"]
    assert cluster.record.workers == 3
    assert "A worker on a joined the run" in cluster.master.stdout
    assert "Unknown message" not in cluster.workers[2].said
    for worker in cluster.workers[:3]:
        assert worker.process.returncode == 0, worker.said
        assert "Connected to the master at 10.16.0.2:5557" in worker.stdout
        assert "this worker sends the load of key-spread" in worker.stdout
        assert "the master has all counts of this worker" in worker.stdout


def test_a_clock_some_seconds_off_is_corrected(clusters: Clusters) -> None:
    """By its own clock the worker would not have sent what was due in the last seconds."""
    cluster = clusters["joined"]
    assert f"is {BEHIND_S:.1f} s behind the master's" in cluster.workers[1].stdout
    # At the end each of three workers sends a third.
    assert cluster.record.counts.waiting < RATE / 3 * BEHIND_S / 2


@pytest.mark.parametrize(("name", "place"), [("joined", 3), ("refused", 1)])
def test_a_clock_ten_seconds_off_is_refused(name: str, place: int, clusters: Clusters) -> None:
    """Both consoles say why; a run goes on without a late worker, and does not begin with one."""
    cluster = clusters[name]
    worker = cluster.workers[place]
    direction = "ahead of" if name == "joined" else "behind"
    reason = f"its clock is 10 s {direction} the master's; synchronize the clocks of both machines"
    assert worker.process.returncode == 2, worker.said
    assert reason in worker.stderr
    assert f"the worker on b refused the run: {reason}" in cluster.master.stderr
    assert cluster.master.process.returncode == (0 if name == "joined" else 2)


def test_what_a_killed_worker_did_not_report_is_missing(clusters: Clusters, site: Site) -> None:
    """The record has at most what the endpoint has, says that it is incomplete, and who is gone."""
    cluster, record = clusters["killed"], clusters["killed"].record
    assert cluster.master.process.returncode == 3, cluster.master.said
    assert not record.complete
    assert record.verdict.result == "inconclusive"
    assert "no last report of the worker on b" in cluster.master.stderr
    missing = site.counters(record)
    missing.subtract(recorded_counts(record))
    assert min(missing.values()) >= 0
    # Of a report each second the last one, and on a slow machine two more.
    assert missing.total() < 3 * RATE / 2


def test_workers_without_a_master_end(clusters: Clusters) -> None:
    """Within 10 s they stop, and say why."""
    cluster = clusters["led by none"]
    assert cluster.ended_s < ENDED_S + 5
    for worker in cluster.workers:
        assert worker.process.returncode == 3, worker.said
        assert "the master has not answered for 10 s, so this worker ends" in worker.stderr


_DIES = """\
import subprocess, sys, time
from tests.support.network.hosts import hosts
with hosts("one") as (one,):
    subprocess.Popen(one.command("sleep", "600"))
    print("ready", flush=True)
    time.sleep(600)
"""


def test_hosts_of_a_killed_test_are_removed(network: list[Host]) -> None:
    """With the processes on them; those of this test stay."""
    command = [sys.executable, "-c", _DIES]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as made:
        assert made.stdout is not None
        assert made.stdout.readline() == "ready\n"
        made.kill()
    left = f"table-stress-{made.pid}-one"
    pids = subprocess.check_output(["ip", "netns", "pids", left], text=True).split()
    assert pids
    remove_leftovers()
    listed = subprocess.check_output(["ip", "netns", "list"], text=True)
    assert left not in listed
    assert network[0].namespace in listed
    wait_until(lambda: not any(psutil.pid_exists(int(pid)) for pid in pids), "it has ended")
