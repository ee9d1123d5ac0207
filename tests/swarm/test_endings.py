"""Every end is one way: the run is examined, recorded and cleaned up, whatever it was doing."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import gevent
import gevent.pool
import pytest

from harness.endpoint.endpoint import Endpoint
from tests.support.http_pages import page
from tests.support.locust_process import (
    LOCUSTFILE,
    QUICK,
    WEB,
    LocustProcess,
    Stress,
    forked,
    wait_until,
)
from tests.support.ports import free_port
from tests.support.proxy import Proxy
from tests.support.sdk import table_names
from tests.swarm.test_workers import workers_of

pytestmark = pytest.mark.azurite

CALM = ("--set", "load.max_entities_per_s=50", "-t", "40s")
LONG_LOADING = ("--set", "keys.rows_per_partition=300000")
SLOW_RAMP = ("-u", "60", "-r", "1")
MEASURED = " 0:05 |"
"""Said five seconds after the load began."""
ENOUGH_S = 3.5
"""So much later the measured window is long enough for a verdict."""

SAMPLES = {
    # How it ends: (what the record says of it, exit code)
    "Ctrl-C while loading": ("Ctrl-C", 3),
    "Ctrl-C while ramping": ("Ctrl-C", 3),
    "Ctrl-C while measuring": ("Ctrl-C", 0),
    "Ctrl-C with two workers": ("Ctrl-C", 0),
    "Ctrl-C with the web UI": ("Ctrl-C", 3),
    "SIGTERM while loading": ("SIGTERM", 3),
    "two Ctrl-C": ("Ctrl-C", 3),
    "Ctrl-C while lingering": ("run time", 0),
    "SIGHUP with two workers": ("SIGHUP", 0),
    "SIGTERM to every worker": ("the loss of every worker", 3),
}
IN_FLIGHT = {"Ctrl-C while loading", "Ctrl-C while measuring", "two Ctrl-C"}
"""What they cut off is the session's; the others end alike whatever sends."""
every_ending = pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=pytest.mark.session) if one in IN_FLIGHT else one for one in SAMPLES],
)

DEFECT = "a defect after the record"
BROKEN = f"""
from harness.swarm.master.run_tables import RunTables

def clean_up(self, *, hurry):
    raise RuntimeError("cleaning is broken")

RunTables.clean_up = clean_up
exec(open({str(LOCUSTFILE)!r}).read())
"""


class Endings:
    """What is started for each, and what is done to it."""

    def __init__(self, stress: Stress, host: str, stuck: Proxy, folder: Path) -> None:
        self._stress = stress
        self._host = host
        self._stuck = stuck
        self._folder = folder
        self._done: dict[str, LocustProcess] = {}
        self.left_within_s: dict[str, float] = {}

    def __getitem__(self, name: str) -> LocustProcess:
        if name not in self._done:
            self.run(name)
        return self._done[name]

    def run(self, name: str) -> None:
        start = getattr(self, name.lower().replace(" ", "_").replace("-", "_"))
        process = self._done[name] = start()
        last_s = time.monotonic()
        process.wait()
        self.left_within_s[name] = time.monotonic() - last_s

    def _started(self, *arguments: str, until: str, embedded: bool = False) -> LocustProcess:
        at = () if embedded else ("-H", self._host)
        process = self._stress(*QUICK, *CALM, *at, *arguments)
        process.until_said(until)
        process.children()
        if until == MEASURED:
            gevent.sleep(ENOUGH_S)
        return process

    def ctrl_c_while_loading(self) -> LocustProcess:
        process = self._started(*LONG_LOADING, until="[2/4]", embedded=True)
        gevent.sleep(4.0)
        process.interrupt()
        return process

    def ctrl_c_while_ramping(self) -> LocustProcess:
        process = self._started(*SLOW_RAMP, until="[3/4]")
        gevent.sleep(1.0)
        process.interrupt()
        return process

    def ctrl_c_while_measuring(self) -> LocustProcess:
        process = self._started(until=MEASURED, embedded=True)
        process.interrupt()
        return process

    def ctrl_c_with_two_workers(self) -> LocustProcess:
        process = self._started(*forked(2), until=MEASURED)
        process.interrupt()
        return process

    def sighup_with_two_workers(self) -> LocustProcess:
        process = self._started(*forked(2), until=MEASURED)
        os.killpg(process.pid, signal.SIGHUP)
        return process

    def sigterm_to_every_worker(self) -> LocustProcess:
        process = self._started(*forked(2), until=MEASURED)
        for worker in workers_of(process):
            worker.terminate()
        return process

    def ctrl_c_with_the_web_ui(self) -> LocustProcess:
        port = free_port()
        process = self._stress(*WEB, *CALM, "-H", self._host, "--web-port", str(port))
        process.until_said("Web UI:")
        page(f"http://127.0.0.1:{port}/swarm", user_count=2, spawn_rate=10)
        process.until_said("[3/4]")
        gevent.sleep(1.0)
        process.interrupt()
        return process

    def sigterm_while_loading(self) -> LocustProcess:
        process = self._started(*LONG_LOADING, until="[2/4]")
        gevent.sleep(1.0)
        process.terminate()
        return process

    def two_ctrl_c(self) -> LocustProcess:
        process = self._stress(*QUICK, *CALM, "-H", self._stuck.url)
        process.until_said("[3/4]")
        gevent.sleep(1.0)
        process.interrupt()
        process.until_said("[3/4]")
        gevent.sleep(1.0)
        assert process.process.poll() is None
        process.interrupt()
        return process

    def ctrl_c_while_lingering(self) -> LocustProcess:
        process = self._started(
            *("-t", "5s", "--metrics-linger", "50", "--metrics-port", str(free_port())),
            until="Metrics stay",
        )
        process.interrupt()
        return process

    def a_defect_after_the_record(self) -> LocustProcess:
        locustfile = self._folder / "locustfile.py"
        locustfile.write_text(BROKEN, encoding="utf-8")
        return self._stress(*QUICK, "-H", self._host, locustfile=locustfile)


@pytest.fixture(scope="module")
def stuck(proxy_to: Callable[..., Proxy]) -> Proxy:
    """An endpoint that stops to answer reads: they stay in flight."""

    def hold(seen: object) -> None:
        if getattr(seen, "method", "") == "GET" and not getattr(seen, "of_table", True):
            gevent.sleep(40)

    return proxy_to(before=hold)


@pytest.fixture(scope="module")
def endings(
    stress: Stress,
    host: str,
    stuck: Proxy,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Endings:
    """Those that were asked for, a few at once, ended."""
    made = Endings(stress, host, stuck, tmp_path_factory.mktemp("broken"))
    called = (getattr(item, "callspec", None) for item in request.session.items)
    wanted = {one.params.get("name") for one in called if one is not None}
    pool = gevent.pool.Pool(5)
    with gevent.Timeout(240):
        pool.map(made.run, (name for name in (*SAMPLES, DEFECT) if name in wanted))
    return made


@every_ending
def test_it_is_recorded_and_has_its_exit_code(name: str, endings: Endings) -> None:
    """The record says what ended the run, and the exit code is judged like that of any run."""
    process = endings[name]
    ended_by, code = SAMPLES[name]
    assert process.record.ended_by == ended_by
    assert process.process.returncode == code, process.said
    assert process.record.exit_code == code
    assert process.record.invariants == ()
    assert "[4/4]" in process.stdout
    assert process.stdout.count("Record: ") == 1


@every_ending
def test_nobody_sees_a_traceback(name: str, endings: Endings) -> None:
    """What is said is the report."""
    said = endings[name].said
    for word in ("Traceback", "nanobind", "KeyboardInterrupt", "Not cleaned up"):
        assert word not in said, said


@every_ending
def test_the_table_is_gone(name: str, endings: Endings, endpoint: Endpoint) -> None:
    """What the run made is deleted."""
    assert endings[name].record.endpoint.table not in table_names(endpoint)


@every_ending
def test_no_process_is_left(name: str, endings: Endings) -> None:
    """Azurite and workers are gone."""
    process = endings[name]
    wait_until(lambda: not process.left_behind(), "no process is left", 5.0)


@pytest.mark.session
def test_what_was_loaded_is_in_the_record(endings: Endings) -> None:
    """A run that ended while loading tells how far it came, and measured nothing."""
    record = endings["Ctrl-C while loading"].record
    assert 0 < record.loading.entities < 300000
    assert (record.measured_s, record.counts.sent) == (0, 0)


def test_a_window_that_is_cut_is_judged(endings: Endings) -> None:
    """Ctrl-C in the measured window gives rates over what there was of it."""
    for name in (
        *("Ctrl-C while measuring", "Ctrl-C with two workers", "SIGHUP with two workers"),
    ):
        record = endings[name].record
        assert 5 <= record.measured_s < 40
        assert record.complete
        assert record.counts.in_flight == 0
        assert record.account.entities_per_s.mean > 10


def test_a_run_that_loses_its_workers_is_not_complete(endings: Endings) -> None:
    """They left in order and every count is known, but nobody sent what was still to come."""
    record = endings["SIGTERM to every worker"].record
    assert not record.complete
    assert "cut short by the loss of every worker" in record.verdict.sentence
    assert 5 <= record.measured_s < 40
    assert record.counts.in_flight == 0


@pytest.mark.session
def test_a_second_ctrl_c_waits_for_nothing(endings: Endings) -> None:
    """With operations in flight a first Ctrl-C waits for them, a second one does not."""
    record = endings["two Ctrl-C"].record
    assert endings.left_within_s["two Ctrl-C"] < 5
    assert not record.complete or record.counts.in_flight > 0


def test_ctrl_c_ends_the_lingering(endings: Endings) -> None:
    """A metrics page that lingers goes at once."""
    assert endings["Ctrl-C while lingering"].process.returncode == 0
    assert endings.left_within_s["Ctrl-C while lingering"] < 5


@pytest.mark.parametrize("name", [DEFECT])
def test_it_changes_no_exit_code(name: str, endings: Endings) -> None:
    """Record and process name the same one, whatever fails after the record is written."""
    process = endings[name]
    assert process.process.returncode == process.record.exit_code == 0, process.said
    assert "cleaning is broken" in process.said


def test_ctrl_c_ends_an_idle_web_ui(stress: Stress, host: str) -> None:
    """Without a run there is nothing to record, and the exit code is 0."""
    process = stress(*WEB, "-H", host, "--web-port", str(free_port()))
    process.until_said("Web UI:")
    process.interrupt()
    assert process.wait() == 0
    assert process.records == []
    assert "Traceback" not in process.said
