"""Before a run begins: Ctrl-C, closed output, ports in use, and workers of somebody else."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import gevent.pool
import pytest

from harness.model.errors import SetupError
from harness.swarm.ports import HeldPorts
from tests.support.locust_process import (
    QUICK,
    ROOT,
    LocustProcess,
    Stress,
    forked,
    wait_until,
)
from tests.support.ports import free_port
from tests.support.proxy import Proxy
from tests.swarm.test_workers import workers_of

pytestmark = pytest.mark.azurite

MASTER = ("--master", "--expect-workers", "1")


def master_at(port: int) -> tuple[str, ...]:
    return (*MASTER, "--master-bind-port", str(port))


def has_signal(
    process: LocustProcess | subprocess.Popen[str], number: signal.Signals, mask: str
) -> bool:
    """Whether a process catches (``SigCgt``) or ignores (``SigIgn``) a signal."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
            if line.startswith(f"{mask}:"):
                return bool(int(line.split()[1], 16) & 1 << number - 1)
    return False


@pytest.fixture(scope="module")
def anew(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stress]:
    """Starts a process anew, for a test of its first moments."""
    started = Stress(tmp_path_factory.mktemp("locust"))
    yield started
    started.end()


def prepared(process: LocustProcess) -> bool:
    """Whether a run is prepared: its folder is looked at last."""
    return (process.folder / "out").exists()


INTERRUPTED = {
    # When it is interrupted: (what it is started with, what is waited for, to whom it is sent)
    "while it imports": ((), lambda run: has_signal(run, signal.SIGHUP, "SigCgt"), os.killpg),
    "while Azurite starts": ((), lambda run: run.children(), os.killpg),
    "the master alone": (forked(2), lambda run: len(workers_of(run)) == 2, os.kill),
    "while workers are awaited": (master_at(free_port()), prepared, os.kill),
}


@pytest.fixture(scope="module")
def interrupted(anew: Stress, stress: Stress) -> dict[str, LocustProcess]:
    """All of them, interrupted once and ended."""

    def run(name: str) -> tuple[str, LocustProcess]:
        options, ready, send = INTERRUPTED[name]
        process = (anew if name == "while it imports" else stress)(*QUICK, *options)
        wait_until(lambda: ready(process), name)
        process.children()
        send(process.pid, signal.SIGINT)
        process.wait()
        return name, process

    return dict(gevent.pool.Pool(2).imap_unordered(run, INTERRUPTED))


@pytest.mark.parametrize("name", INTERRUPTED)
def test_ctrl_c_before_the_run_ends_with_a_sentence(
    name: str, interrupted: dict[str, LocustProcess]
) -> None:
    """From the first line of the locustfile on: one sentence, exit code 3, nobody left behind."""
    process = interrupted[name]
    assert process.process.returncode == 3, process.said
    assert process.stderr == "error: ended by Ctrl-C before the run began\n"
    assert "Traceback" not in process.said
    wait_until(lambda: not process.left_behind(), "no process is left", 5.0)


@pytest.mark.parametrize(
    ("number", "state"),
    [(signal.SIGHUP, "SigCgt"), (signal.SIGINT, "SigBlk")],
    ids=["the command", "Python starts for Locust"],
)
def test_ctrl_c_while_harness_run_starts_ends_with_a_sentence(
    number: signal.Signals, state: str, tmp_path: Path
) -> None:
    """From the first line of the command on, however long the imports take."""
    process = subprocess.Popen(
        [sys.executable, "-m", "harness", "run", "single-partition"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: has_signal(process, number, state), "it is there", every_s=0.002)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60.0)
    assert (process.returncode, said) == (3, "error: ended by Ctrl-C before the run began\n")


def test_sigterm_before_the_run_is_no_success(stress: Stress, host: str) -> None:
    """A master that still waits for workers has measured nothing."""
    process = stress(*QUICK, "-H", host, *master_at(free_port()))
    wait_until(lambda: prepared(process), "it is prepared")
    process.terminate()
    assert process.wait() == 3, process.said
    assert "error: ended by SIGTERM before the run began" in process.stderr
    assert process.records == []


def test_workers_that_leave_before_the_run_end_it(stress: Stress, host: str) -> None:
    """A master whose first worker is gone before the second one came does not wait for ever."""
    port = free_port()
    arguments = ("--master", "--expect-workers", "2", "--master-bind-port", str(port))
    master = stress(*QUICK, "-H", host, *arguments)
    worker = stress("--worker", "--master-port", str(port))
    wait_until(lambda: prepared(master), "the run is prepared")
    wait_until(lambda: has_signal(worker, signal.SIGINT, "SigIgn"), "the worker is hooked up")
    worker.terminate()
    assert master.wait() == 3, master.said
    assert master.stderr == "error: all workers left before the run began\n"


def test_workers_that_do_not_come_are_bad_setup(stress: Stress, host: str) -> None:
    """Exit code 1 would say that a condition does not hold."""
    master = stress(*QUICK, "-H", host, *master_at(free_port()), "--expect-workers-max-wait", "1")
    assert master.wait() == 2, master.said
    assert master.stderr == "error: 0 of 1 workers connected within 1 s\n"


CLOSED = {"all of them": "<&- >&- 2>&-", "output to a full disk": ">/dev/full 2>/dev/full"}


@pytest.fixture(scope="module")
def closed(
    stress: Stress,
    host: str,
    meeting: gevent.Greenlet,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, LocustProcess]:
    """A short run with each of them, ended; meanwhile workers meet other masters."""
    folder = tmp_path_factory.mktemp("shells")

    def run(name: str) -> tuple[str, LocustProcess]:
        shell = folder / name
        shell.write_text(f'#!/bin/sh\nexec {sys.executable} "$@" {CLOSED[name]}\n')
        shell.chmod(0o755)
        process = stress(*QUICK, "-H", host, "-t", "1s", python=str(shell))
        process.wait()
        return name, process

    return dict(gevent.pool.Pool(2).imap_unordered(run, CLOSED))


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_full_disk_behind_a_stream_changes_no_exit_code(name: str) -> None:
    """What Locust and its log print does not fail when the process ends either."""
    script = f"import sys; from harness import startup; startup.begin(); sys.{name}.write('x')"
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", script],
            stdout=full if name == "stdout" else None,
            stderr=full if name == "stderr" else None,
            cwd=ROOT,
            # Else nothing is left in a buffer.
            env={key: text for key, text in os.environ.items() if key != "PYTHONUNBUFFERED"},
            check=False,
            timeout=60.0,
        )
    assert done.returncode == 0


@pytest.mark.parametrize("name", CLOSED)
def test_closed_output_changes_no_exit_code(name: str, closed: dict[str, LocustProcess]) -> None:
    """Nobody reads what a run says: it is recorded and judged as ever, here as too short."""
    process = closed[name]
    assert process.process.returncode == process.record.exit_code == 3, process.said
    assert "1 s is shorter" in process.record.verdict.sentence
    assert process.record.ended_by == "run time"
    assert "Traceback" not in process.said


def test_a_port_in_use_is_said_before_anything_starts(stress: Stress) -> None:
    """Master, web page and metrics: one sentence, exit code 2, no Azurite and no worker."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        web = tuple(option for option in QUICK if option != "--headless")
        for options in (
            (*QUICK, *forked(2), "--master-bind-port", port),
            (*web, "--web-port", port),
            (*QUICK, "--metrics-port", port),
        ):
            process = stress(*options)
            assert process.wait() == 2, process.said
            assert process.stderr.startswith("error: ")
            assert f"cannot listen on 127.0.0.1:{port}" in process.stderr
            assert len(process.stderr.splitlines()) == 1
            assert options[-2] in process.stderr
            assert not [what for _, what in process.addresses if what.startswith("connect")]


@pytest.fixture(scope="module")
def meeting(stress: Stress, proxy_to: Callable[..., Proxy]) -> gevent.Greenlet:
    """A run with one worker of its own, and workers of others that come before and during it."""
    port, proxy = free_port(), proxy_to()

    def worker(*options: str, environ: dict[str, str] | None = None) -> LocustProcess:
        return stress("--worker", "--master-port", str(port), *options, environ=environ)

    def meet() -> tuple[LocustProcess, list[LocustProcess], Proxy]:
        master = stress(*QUICK, "-H", proxy.url, "-t", "8s", *master_at(port), "--swarm", "ours")
        early = worker("--swarm", "theirs")
        early.wait()
        own = worker(environ={"STRESS_SWARM": "ours"})
        wait_until(lambda: len(proxy.of_entities) > 20, "the load goes on")
        late = worker()
        late.wait()
        master.wait()
        own.wait()
        return master, [early, late], proxy

    return gevent.spawn(meet)


@pytest.fixture(scope="module")
def strangers(
    meeting: gevent.Greenlet,
) -> tuple[LocustProcess, list[LocustProcess], Proxy]:
    """What came of the meeting."""
    met: tuple[LocustProcess, list[LocustProcess], Proxy] = meeting.get()
    return met


def test_a_worker_of_another_swarm_takes_no_part(
    strangers: tuple[LocustProcess, list[LocustProcess], Proxy],
) -> None:
    """Before the run and during it: it says why and ends, and the run knows of its own alone."""
    master, others, proxy = strangers
    for other in others:
        assert other.process.returncode == 2, other.said
        assert "leads another swarm" in other.stderr
        assert "Traceback" not in other.said
        assert other.addresses, "it reached the master"
    record = master.record
    assert master.process.returncode == 0, master.said
    assert record.complete
    assert record.workers == 1
    assert len(proxy.of_entities) == record.loading.attempts + record.counts.attempts
    assert others[0].said not in master.said


def options_of_a_run(**given: object) -> argparse.Namespace:
    """The options of ``--processes 2`` with the web UI that have to do with ports."""
    defaults: dict[str, object] = {
        "processes": 2,
        "master": False,
        "headful": False,
        "headless": False,
        "master_bind_host": "127.0.0.1",
        "master_bind_port": 5557,
        "master_port": 5557,
        "web_host": "127.0.0.1",
        "web_port": 8089,
        "metrics_host": "127.0.0.1",
        "metrics_port": None,
    }
    return argparse.Namespace(**(defaults | given))


PORTS = ("master_bind_port", "web_port", "metrics_port")


def test_a_second_run_moves_on_from_default_ports() -> None:
    """Ports are held from their choice on: a run that starts at the same moment takes other default
    ports, which are named, and refuses chosen ones that are in use.
    """
    first = options_of_a_run()
    with (
        contextlib.closing(HeldPorts()) as ports,
        contextlib.closing(HeldPorts()) as others,
        socket.create_server(("127.0.0.1", 0)) as occupied,
    ):
        ports.settle(first)
        # Another test may hold a default port too, so that only the difference is known.
        second = options_of_a_run()
        said = "\n".join(others.settle(second))
        for name in PORTS:
            assert getattr(second, name) not in (0, getattr(first, name)), said
            assert f"port {getattr(second, name)}" in said
        assert second.master_port == second.master_bind_port
        for given in (
            {"metrics_port": first.metrics_port},
            {"processes": None, "master": True, "master_bind_port": first.master_bind_port},
            {"web_port": occupied.getsockname()[1]},
        ):
            refused = HeldPorts()
            with pytest.raises(SetupError, match="choose another port"):
                refused.settle(options_of_a_run(**given))
        # What was refused holds nothing.
        with contextlib.closing(HeldPorts()) as third:
            third.settle(options_of_a_run(metrics_port=second.metrics_port + 1))


def test_two_runs_start_at_the_same_moment(stress: Stress, host: str) -> None:
    """Each gets a port for its own workers, and says so; no worker meets the other's master.

    Without a name given, a random one keeps every other worker out.
    """
    runs = [stress(*QUICK, "-H", host, "--processes", "2", "-t", "3s") for _ in range(2)]
    named = re.compile(r"the master uses port (\d+)")
    wait_until(lambda: any(named.search(run.said) for run in runs), "another port is named")
    port = next(found[1] for run in runs if (found := named.search(run.said)))
    stranger = stress("--worker", "--master-port", port)
    assert stranger.wait() == 2, stranger.said
    codes = {run.wait() for run in runs}
    said = [run.said for run in runs]
    # Three seconds are too short for a verdict.
    assert codes <= {0, 3}, said
    assert [run.record.workers for run in runs] == [2, 2]
    assert sum("is in use: the master uses port" in one for one in said) >= 1
    assert not any("another swarm" in one or "Traceback" in one for one in said)
